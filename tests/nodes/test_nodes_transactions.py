"""Transactions through a whole cluster: real brokers, real logs, a client that asks by hand.

All invariants are held against every trace.
"""

import pytest

from sim.error_codes import ErrorCode as E
from sim.errors import InvariantBroken
from sim.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from sim.log.producers.state import ProducerStates
from sim.log.producers.transactions import Transactions
from sim.protocol.coordinator.transaction.coordinator import TransactionCoordinator
from sim.protocol.coordinator.transaction.markers import MarkerSender
from sim.protocol.messages.metadata import InitProducerIdRequest
from sim.protocol.messages.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    EndTxnRequest,
)
from sim.trace.rows.clients import Transactions as Columns
from sim.units import MS, SECOND
from tests.nodes.transaction_cluster import P0, P1, TransactionCluster, commit_offsets, raw_offsets


@pytest.fixture(scope="module")
def new(tmp_path_factory):
    return lambda **how: TransactionCluster(tmp_path_factory.mktemp("cluster"), **how)


@pytest.fixture(scope="module", params=[2, 0], ids=["kip890", "kip98"])
def shared(request, new):
    """One cluster for tests that leave it as it was, each with an id of its own."""
    cluster = new(version=request.param)
    cluster.version = request.param
    return cluster


def begin(cluster, name, ids, *partitions, first=0):
    """The first record of a transaction in each partition, as a client of that version."""
    if cluster.version == 0:
        assert cluster.add(name, ids, *partitions) is E.NONE
    for partition in partitions:
        result = cluster.produce(name, ids, first, partition=partition, value=name.encode())
        assert result.error is E.NONE, result


def end(cluster, name, ids, *, committed=True):
    answer = cluster.end(name, ids, committed=committed)
    assert answer.error is E.NONE, answer
    return (answer.producer_id, answer.producer_epoch) if cluster.version else ids


# -- in good order --------------------------------------------------------------------------------


def test_a_committed_transaction_is_seen_whole_and_an_aborted_one_not_at_all(shared):
    before = len(shared.values(P1, "read_uncommitted"))
    for name, committed in (("t-a", True), ("t-b", False), ("t-c", True)):
        ids = shared.init(name)
        begin(shared, name, ids, P0, P1)
        end(shared, name, ids, committed=committed)
        shared.settled(name)
    for partition in (P0, P1):
        assert shared.values(partition)[-2:] == [b"t-a", b"t-c"]
    assert shared.values(P1, "read_uncommitted")[before:] == [b"t-a", b"t-b", b"t-c"]


@pytest.mark.parametrize(("position", "times"), [("once", 1), ("twice", 3)])
def test_a_thread_is_interrupted_for_as_long_as_the_scenario_says_and_only_in_a_race(
    new, position, times
):
    """KAFKA-10080: one sent the markers and two heard of them, and each looks, waits and writes."""
    cluster = new(version=0, race=f"transaction.completion: {position}")
    cluster.version = 0
    ids = cluster.init("t")
    begin(cluster, "t", ids, P0, P1)
    end(cluster, "t", ids)
    cluster.settled("t")
    cluster.run(SECOND)
    rows = [row for row in cluster.rows["transactions"] if row[Columns.TRANSACTIONAL_ID] == "t"]
    decided = next(row[Columns.T_US] for row in rows if row[Columns.STATE] == "PrepareCommit")
    complete = [row for row in rows if row[Columns.STATE] == "CompleteCommit"]
    reasons = [row[Columns.REASON] for row in complete]
    assert reasons == ["markers written", *["written again"] * (times - 1)]
    waited = 20 * MS if position == "twice" else 0
    assert waited < complete[0][Columns.T_US] - decided < waited + 5 * MS


def test_readers_of_committed_data_wait_for_the_end_and_are_woken_by_it(shared):
    ids = shared.init("t-wait")
    begin(shared, "t-wait", ids, P0)
    stable = shared.latest(P0)
    assert shared.latest(P0, "read_uncommitted") == stable + 1
    assert shared.fetch(P0, stable).batches == ()
    asked = shared.now
    end(shared, "t-wait", ids)
    result = shared.fetch(P0, stable, wait=20 * SECOND)
    assert [batch.is_control for batch in result.batches] == [False, True]
    assert shared.now - asked < SECOND
    assert result.last_stable_offset == result.high_watermark == stable + 2


def test_markers_and_states_are_written_in_order(shared):
    ids = shared.init("t-order")
    begin(shared, "t-order", ids, P0, P1)
    end(shared, "t-order", ids)
    shared.settled("t-order")
    rows = shared.table("transactions", transactional_id="t-order")
    assert [row["state"] for row in rows if row["state"] != "Ongoing"] == [
        "Empty",
        "PrepareCommit",
        "CompleteCommit",
    ]
    prepared, complete = (row["t_us"] for row in rows[-2:])
    markers = shared.table("markers", producer_id=ids[0])
    assert {(m["partition"], m["committed"]) for m in markers} == {(0, True), (1, True)}
    assert all(prepared < m["t_us"] < complete for m in markers)
    bumped = 1 if shared.version else 0
    assert {m["producer_epoch"] for m in markers} == {ids[1] + bumped}
    epochs = [row["coordinator_epoch"] for row in rows]
    assert {m["coordinator_epoch"] for m in markers} == set(epochs)


def test_a_later_producer_of_the_id_fences_the_earlier_one(shared):
    first = shared.init("t-zombie")
    begin(shared, "t-zombie", first, P0)
    answer = shared.ask(
        shared.coordinator("t-zombie"), InitProducerIdRequest("t-zombie", 60 * SECOND)
    )
    assert answer.error is E.CONCURRENT_TRANSACTIONS  # the open transaction is ended first
    second = shared.init("t-zombie")
    assert second > first
    shared.settled("t-zombie")
    assert shared.produce("t-zombie", first, 1).error in (
        E.INVALID_PRODUCER_EPOCH,
        E.INVALID_TXN_STATE,
    )
    assert shared.end("t-zombie", first).error is E.PRODUCER_FENCED
    assert b"t-zombie" not in shared.values(P0)


def test_offsets_of_a_transaction_are_the_groups_when_it_commits(shared):
    ids = shared.init("t-offsets")
    for number, (committed, expected) in enumerate([(True, 10), (False, 10), (True, 30)]):
        offset = 10 * (number + 1)
        if shared.version == 0:
            request = AddOffsetsToTxnRequest("t-offsets", *ids, "g")
            answer = shared.retrying(lambda: shared.coordinator("t-offsets"), request)
            assert answer.error is E.NONE
        assert commit_offsets(shared, "t-offsets", "g", ids, [(P0, offset)]) is E.NONE
        assert raw_offsets(shared, "g", (P0,)).error is E.UNSTABLE_OFFSET_COMMIT
        known = raw_offsets(shared, "g", (P0,), stable=False)
        assert known.offsets[0][1] == (-1, 10, 10)[number]
        assert raw_offsets(shared, "g", (P1,)).error is E.NONE
        ids = end(shared, "t-offsets", ids, committed=committed)
        shared.settled("t-offsets")
        assert raw_offsets(shared, "g", (P0,)).offsets[0][1] == expected
    assert {m["topic"] for m in shared.table("markers", producer_id=ids[0])} == {OFFSETS_TOPIC}


def test_a_write_outside_the_open_transaction_is_refused(shared):
    ids = shared.init("t-outside")
    begin(shared, "t-outside", ids, P0)
    assert shared.produce("", ids, 1).error is E.INVALID_TXN_STATE
    end(shared, "t-outside", ids)


# -- what KIP-890 changed -------------------------------------------------------------------------


def test_a_leader_adds_its_partition_to_the_transaction(new):
    cluster = new()
    ids = cluster.init("t")
    assert cluster.produce("t", ids, 0, partition=P1).error is E.NONE
    assert cluster.states("t") == ["Empty", "Ongoing"]
    asked = cluster.table("requests", kind="AddPartitionsToTxn")
    assert [row["client"] for row in asked] == [f"broker-{cluster.leader(P1)}"]
    # The second batch of the transaction asks nobody.
    assert cluster.produce("t", ids, 1, partition=P1).error is E.NONE
    assert len(cluster.table("requests", kind="AddPartitionsToTxn")) == 1
    # What arrives when its transaction has ended is fenced: no hanging transaction.
    cluster.end("t", ids)
    cluster.settled("t")
    late = cluster.produce("t", ids, 2, partition=P1)
    assert late.error is E.INVALID_PRODUCER_EPOCH
    assert cluster.latest(P1) == cluster.latest(P1, "read_uncommitted")


def test_without_it_a_leader_only_verifies(new):
    cluster = new(version=0)
    ids = cluster.init("t")
    stranger = cluster.produce("t", ids, 0)
    assert stranger.error is E.TRANSACTION_ABORTABLE
    assert cluster.states("t") == ["Empty"]
    assert cluster.add("t", ids, P0) is E.NONE
    assert cluster.produce("t", ids, 0).error is E.NONE
    cluster.end("t", ids)
    cluster.settled("t")
    # The epoch is still good, but no transaction has the partition.
    assert cluster.produce("t", ids, 1).error is E.TRANSACTION_ABORTABLE


def test_without_verification_a_late_batch_hangs_for_ever(new):
    cluster = new(version=0, config="transaction.partition.verification.enable: false")
    ids = cluster.init("t")
    cluster.add("t", ids, P0)
    cluster.produce("t", ids, 0)
    cluster.end("t", ids)
    cluster.settled("t")
    stable = cluster.latest(P0)
    assert cluster.produce("t", ids, 1).error is E.NONE
    cluster.run(120 * SECOND)
    assert cluster.latest(P0) == stable < cluster.latest(P0, "read_uncommitted")


def test_a_busy_coordinator_is_asked_again_by_the_broker_itself(new):
    cluster = new()
    ids = cluster.init("t")
    cluster.produce("t", ids, 0)
    answer = cluster.end("t", ids)
    following = (answer.producer_id, answer.producer_epoch)
    # Markers are still under way: the client need not notice.
    result = cluster.produce("t", following, 0, final=[E.CONCURRENT_TRANSACTIONS])
    assert result.error is E.NONE
    asked = cluster.table("requests", kind="AddPartitionsToTxn")
    assert len(asked) >= 2


# -- the topic of transactional ids ---------------------------------------------------------------


def test_the_topic_is_created_for_the_first_producer_with_kafkas_settings(new):
    cluster = new(config="transaction.state.log.num.partitions: 7")
    image = cluster.cluster.image
    assert TRANSACTIONS_TOPIC not in image.topic_ids
    cluster.coordinator("t")
    assert image.partition_counts[TRANSACTIONS_TOPIC] == 7
    assert image.topic_configs[TRANSACTIONS_TOPIC] == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "2",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }
    assert cluster.leader(cluster.state_partition("t")) == cluster.coordinator("t")


def test_one_broker_is_its_own_coordinator(new):
    cluster = new(
        brokers=1,
        config="transaction.state.log.replication.factor: 1, transaction.state.log.min.isr: 1",
    )
    cluster.version = 2
    ids = cluster.init("t")
    begin(cluster, "t", ids, P0, P1)
    end(cluster, "t", ids)
    cluster.settled("t")
    assert cluster.values(P0) == cluster.values(P1) == [b"t"]


# -- failures -------------------------------------------------------------------------------------


def test_the_next_coordinator_ends_what_the_last_one_had_decided(new):
    cluster = new()
    cluster.version = 2
    ids = cluster.init("t")
    begin(cluster, "t", ids, P0, P1)
    coordinator = cluster.coordinator("t")
    # The decision is durable, its markers are not.
    cluster.begin(coordinator, _end("t", ids))
    while cluster.states("t")[-1] != "PrepareCommit":
        cluster.run(20)
    assert cluster.table("markers") == []
    cluster.cluster.brokers[coordinator].crash()
    cluster.run(15 * SECOND)
    cluster.settled("t")
    assert cluster.states("t")[-1] == "CompleteCommit"
    rows = cluster.table("transactions", transactional_id="t")
    assert rows[-1]["coordinator_epoch"] > rows[0]["coordinator_epoch"]
    for partition in (P0, P1):
        assert cluster.values(partition) == [b"t"]


def test_an_open_transaction_survives_its_coordinator(new):
    cluster = new()
    cluster.version = 2
    ids = cluster.init("t")
    begin(cluster, "t", ids, P0)
    cluster.cluster.brokers[cluster.coordinator("t")].crash()
    cluster.run(15 * SECOND)
    assert cluster.produce("t", ids, 1, value=b"more").error is E.NONE
    end(cluster, "t", ids)
    cluster.settled("t")
    assert cluster.values(P0) == [b"t", b"more"]


def test_the_next_leader_of_a_partition_knows_what_is_open_and_what_was_aborted(new):
    cluster = new()
    cluster.version = 2
    ids = cluster.init("old")
    begin(cluster, "old", ids, P0)
    end(cluster, "old", ids, committed=False)
    cluster.settled("old")
    ids = cluster.init("t")
    begin(cluster, "t", ids, P0)
    stable = cluster.latest(P0)
    cluster.run(SECOND)
    cluster.cluster.brokers[cluster.leader(P0)].crash()
    cluster.run(15 * SECOND)
    cluster.until(lambda: cluster.latest(P0) == stable)
    assert cluster.values(P0) == []
    assert cluster.produce("t", ids, 1, value=b"more").error is E.NONE
    end(cluster, "t", ids)
    cluster.settled("t")
    assert cluster.values(P0) == [b"t", b"more"]


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced(new):
    cluster = new()
    cluster.version = 2
    ids = cluster.init("t", timeout=5 * SECOND)
    begin(cluster, "t", ids, P0)
    began = cluster.now
    cluster.until(lambda: cluster.states("t")[-1] == "CompleteAbort", 20 * SECOND)
    assert 5 * SECOND < cluster.now - began < 15 * SECOND + 100 * MS
    assert cluster.produce("t", ids, 1).error is E.INVALID_PRODUCER_EPOCH
    # An epoch that is one behind may be a retry; then it is one of another decision (KAFKA-19367).
    assert cluster.end("t", ids).error is E.INVALID_TXN_STATE
    assert cluster.values(P0) == []
    assert cluster.latest(P0) == cluster.latest(P0, "read_uncommitted")
    cluster.init("t")
    assert cluster.end("t", ids).error is E.PRODUCER_FENCED


def test_offsets_of_a_transaction_survive_the_groups_coordinator(new):
    cluster = new()
    cluster.version = 2
    ids = cluster.init("t")
    assert commit_offsets(cluster, "t", "g", ids, [(P0, 7)]) is E.NONE
    for place in [p for p in cluster.cluster.image.partitions if p.topic == OFFSETS_TOPIC]:
        cluster.cluster.brokers[cluster.leader(place)].crash()
        break
    cluster.run(15 * SECOND)
    assert raw_offsets(cluster, "g", (P0,)).error is E.UNSTABLE_OFFSET_COMMIT
    end(cluster, "t", ids)
    cluster.settled("t")
    assert raw_offsets(cluster, "g", (P0,)).offsets[0][1] == 7


def test_nothing_is_decided_while_the_log_of_the_coordinator_lacks_replicas(new):
    cluster = new()
    cluster.version = 2
    ids = cluster.init("t")
    begin(cluster, "t", ids, P0)
    coordinator = cluster.coordinator("t")
    for number, broker in cluster.cluster.brokers.items():
        if number != coordinator:
            broker.crash()
    cluster.run(40 * SECOND)
    answer = cluster.ask(coordinator, _end("t", ids))
    assert answer.error is E.COORDINATOR_NOT_AVAILABLE
    assert cluster.states("t")[-1] == "Ongoing"


def test_a_coordinator_that_does_not_know_it_was_replaced_decides_nothing(new):
    cluster = new()
    cluster.version = 2
    ids = cluster.init("t")
    begin(cluster, "t", ids, P0)
    zombie = cluster.coordinator("t")
    cluster.cluster.brokers[zombie].pause()
    cluster.run(30 * SECOND)
    end(cluster, "t", ids, committed=False)
    cluster.settled("t")
    answers, correlation = cluster.begin(zombie, _end("t", ids))
    cluster.cluster.brokers[zombie].resume()
    cluster.until(lambda: correlation in answers)
    answer = answers[correlation]
    assert answer is None or answer.error is not E.NONE
    assert cluster.values(P0) == []


def _end(name, ids, *, committed=True):
    return EndTxnRequest(name, *ids, committed)


@pytest.mark.parametrize("verify", [True, False])
def test_a_request_for_somebody_elses_id_is_not_answered_here(new, verify):
    cluster = new()
    cluster.init("t")
    wrong = next(b for b in cluster.cluster.brokers if b != cluster.coordinator("t"))
    request = AddPartitionsToTxnRequest("t", 0, 0, (P0,), verify)
    assert cluster.ask(wrong, request).error is E.NOT_COORDINATOR


# -- planted defects that the live checks must catch ----------------------------------------------


def test_planted_readers_that_do_not_wait_for_open_transactions_are_caught(new, monkeypatch):
    monkeypatch.setattr(Transactions, "first_unstable", lambda self, high_watermark: None)
    cluster = new()
    cluster.version = 2
    ids = cluster.init("t")
    with pytest.raises(InvariantBroken, match="stable-offset-below-open"):
        begin(cluster, "t", ids, P0)


def test_planted_a_log_that_takes_fenced_epochs_is_caught(new, monkeypatch):
    monkeypatch.setattr(ProducerStates, "check_transactional", lambda self, batch, guard: E.NONE)
    cluster = new()
    cluster.version = 2
    ids = cluster.init("t")
    begin(cluster, "t", ids, P0)
    end(cluster, "t", ids)
    cluster.settled("t")
    monkeypatch.setattr(
        TransactionCoordinator,
        "_add",
        lambda self, request, places, token, answer, now: self._store.reply(token, answer(E.NONE)),
    )
    with pytest.raises(InvariantBroken, match="fenced-epoch-never-appends"):
        cluster.produce("t", ids, 0)


def test_planted_a_coordinator_that_writes_the_opposite_is_caught(new, monkeypatch):
    cluster = new()
    cluster.version = 2
    ids = cluster.init("t")
    begin(cluster, "t", ids, P0)
    wrong = MarkerSender._send

    def opposite(self, ending, leader, partitions):
        ending.committed = not ending.committed
        wrong(self, ending, leader, partitions)

    monkeypatch.setattr(MarkerSender, "_send", opposite)
    cluster.begin(cluster.coordinator("t"), _end("t", ids))
    with pytest.raises(InvariantBroken, match="markers-follow-the-decision"):
        cluster.settled("t")
