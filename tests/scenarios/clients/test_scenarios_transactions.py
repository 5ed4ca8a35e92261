"""Transactions in a whole cluster: atomic, fenced, and read only once they are decided.

Source: KIP-98, KIP-360, KIP-890.
"""

import pytest

from sim.errors import ScenarioError
from sim.protocol.clients.consumer.isolation import CommittedOnly
from sim.protocol.clients.producer.transactional_producer import TransactionalProducer
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import S, go, text_of

COMMITTED = {
    "group": "billing",
    "topics": ["orders"],
    "config": {"isolation.level": "read_committed", "auto.offset.reset": "earliest"},
}
ANYTHING = {"group": "audit", "topics": ["orders"], "config": {"auto.offset.reset": "earliest"}}
VERSIONS = pytest.mark.parametrize("version", ["kip890", "kip98"])


def till(name="shop", transactional_id="shop", config=(), **more):
    return {
        "name": name, "topic": "orders", "rate": "300/s", "record.size": "100B",
        "transaction": {"records": 25, "abort": "10%"},
        "config": {"transactional.id": transactional_id, **dict(config)}, **more,
    }  # fmt: skip


def numbers_of(row):
    """(producer index, partition, record number) of a row with a range of records."""
    last = row.get("last_record", row["first_record"] + row.get("record_count", 0) - 1)
    return [
        (row["producer_index"], row["partition"], n) for n in range(row["first_record"], last + 1)
    ]


def sent_in(ran, *outcomes):
    """Records of transactions that ended so, as their producers were told."""
    ended = {
        (row["producer"], row["transaction"])
        for row in ran.rows("transaction_outcomes")
        if row["outcome"] in outcomes
    }
    return {
        number
        for row in ran.rows("transaction_records")
        if (row["producer"], row["transaction"]) in ended
        for number in numbers_of(row)
    }


def read_by(ran, consumer):
    return [number for row in ran.rows("reads", consumer=consumer) for number in numbers_of(row)]


def check_atomic(ran):
    """Committed transactions are read whole and once, aborted ones not at all, others all or none.

    What the producer does not know is asked of the markers' side: whole transactions.
    """
    read = read_by(ran, "billing")
    assert len(read) == len(set(read)), "a record was read twice"
    seen = set(read)
    assert sent_in(ran, "committed") <= seen
    assert not sent_in(ran, "aborted", "fenced") & seen
    in_doubt = {}
    for row in ran.rows("transaction_records"):
        in_doubt.setdefault((row["producer"], row["transaction"]), set()).update(numbers_of(row))
    for row in ran.rows("transaction_outcomes", outcome="unknown"):
        mine = in_doubt.get((row["producer"], row["transaction"]), set())
        assert mine <= seen or not mine & seen, "half a transaction"


@VERSIONS
def test_readers_of_committed_data_get_whole_transactions_and_others_everything(version, tmp_path):
    ran = go(
        tmp_path, producers=[till()], consumers=[COMMITTED, ANYTHING], lasts="5s",
        behaviours={"transactions": version},
    )  # fmt: skip
    check_atomic(ran)
    outcomes = [row["outcome"] for row in ran.rows("transaction_outcomes")]
    assert len(outcomes) == 60
    assert 0 < outcomes.count("aborted") < 20
    written = {n for row in ran.rows("client_batches", outcome="ok") for n in numbers_of(row)}
    assert set(read_by(ran, "audit")) == written
    assert len(written) > len(read_by(ran, "billing"))


@VERSIONS
@pytest.mark.parametrize("seed", [1, 2])
def test_the_coordinator_dies_and_transactions_stay_whole(version, seed, tmp_path):
    faults = [{"at": "2s", "do": "crash", "target": "transaction coordinator of shop"}]
    quick = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}
    ran = go(
        tmp_path, producers=[till()], consumers=[COMMITTED], lasts="10s", faults=faults, seed=seed,
        config=quick, behaviours={"transactions": version},
    )  # fmt: skip
    check_atomic(ran)
    after = [row for row in ran.rows("transaction_outcomes") if row["t_us"] > 7 * S]
    assert "committed" in {row["outcome"] for row in after}
    states = ran.rows("transactions", transactional_id="shop")
    assert len({row["broker"] for row in states}) == 2, "another broker coordinates"


@VERSIONS
def test_a_zombie_is_fenced_and_nothing_that_it_did_not_commit_is_read(version, tmp_path):
    heir = till("heir", start="2s")
    ran = go(
        tmp_path, producers=[till(), heir], consumers=[COMMITTED], lasts="5s",
        behaviours={"transactions": version},
    )  # fmt: skip
    check_atomic(ran)
    last = ran.rows("transaction_outcomes", producer="shop")[-1]
    assert (last["outcome"], last["error"]) == ("fenced", "PRODUCER_FENCED")
    assert last["t_us"] < 3 * S
    assert ran.rows("node_states", node="shop", state="stopped")
    heirs = ran.rows("transaction_outcomes", producer="heir")
    assert {row["outcome"] for row in heirs} <= {"committed", "aborted"}
    assert min(row["producer_epoch"] for row in heirs) > last["producer_epoch"]


def test_alone_with_its_id_nobody_is_fenced(tmp_path):
    other = till("other", "another", start="2s")
    ran = go(tmp_path, producers=[till(), other], consumers=[COMMITTED], lasts="5s")
    check_atomic(ran)
    assert not ran.rows("transaction_outcomes", outcome="fenced")


@pytest.mark.parametrize(
    ("behaviours", "last"),
    [
        ({}, "committed"),
        ({"transaction.fenced_end": "two_epochs"}, "fenced"),
        ({"transactions": "kip98"}, "fenced"),
    ],
)
def test_an_application_that_hangs_is_aborted_by_the_coordinator(behaviours, last, tmp_path):
    """Since 4.0.1 its own abort is taken for a retry, so it goes on (KAFKA-19367)."""
    faults = [{"at": "2050ms", "do": "pause", "target": "shop", "for": "8s"}]
    every = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": 1000}
    ran = go(
        tmp_path, producers=[till(config={"transaction.timeout.ms": 2000})], consumers=[COMMITTED],
        faults=faults, lasts="14s", config=every, behaviours=behaviours,
    )  # fmt: skip
    check_atomic(ran)
    (ended,) = [
        row
        for row in ran.rows("transactions", state="PrepareAbort")
        if 4 * S <= row["t_us"] <= 6 * S
    ]
    assert ended["transactional_id"] == "shop"
    assert ran.rows("transaction_outcomes")[-1]["outcome"] == last


def test_a_producer_that_dies_in_a_transaction_has_it_aborted_by_its_next_process(tmp_path):
    faults = [{"at": "2s", "do": "crash", "target": "shop", "for": "1s"}]
    ran = go(tmp_path, producers=[till()], consumers=[COMMITTED], faults=faults, lasts="6s")
    check_atomic(ran)
    at = [row for row in ran.rows("transaction_outcomes") if row["t_us"] == 2 * S]
    assert [row["outcome"] for row in at] in (["aborted"], ["unknown"])
    later = [row for row in ran.rows("transaction_outcomes") if row["t_us"] > 3 * S]
    assert "committed" in {row["outcome"] for row in later}


def test_the_lag_of_a_reader_of_committed_data_is_from_the_last_stable_offset(tmp_path):
    """A transaction that stays open holds it back; the high watermark moves on."""
    faults = [{"at": "2050ms", "do": "pause", "target": "shop"}]
    other = till("other", "another")
    ran = go(
        tmp_path, producers=[till(), other], consumers=[COMMITTED, ANYTHING], faults=faults,
        lasts="8s",
    )  # fmt: skip
    (end,) = {row["t_us"] for row in ran.rows("stable_lag") if row["t_us"] == 7 * S}
    stable = ran.rows("stable_lag", t_us=end)
    assert {row["group"] for row in stable} == {"billing"}
    behind = {row["partition"]: row["high_watermark"] for row in ran.rows("lag", t_us=end)}
    assert all(row["position"] <= row["last_stable_offset"] for row in stable)
    held = [row for row in stable if behind[row["partition"]] - row["last_stable_offset"] > 100]
    assert held, "the open transaction holds its partition back"
    assert all(row["last_stable_offset"] - row["position"] < 100 for row in held)


# -- planted defects ------------------------------------------------------------------------------


def test_a_reader_that_does_not_leave_out_aborted_data_is_caught(tmp_path, monkeypatch):
    monkeypatch.setattr(CommittedOnly, "hides", lambda _self, batch: batch.is_control)
    ran = go(tmp_path, producers=[till()], consumers=[COMMITTED], lasts="4s")
    with pytest.raises(AssertionError):
        check_atomic(ran)


def test_a_producer_that_calls_its_aborted_transactions_committed_is_caught(tmp_path, monkeypatch):
    told = TransactionalProducer._transaction_done
    monkeypatch.setattr(
        TransactionalProducer, "_transaction_done", lambda self, _outcome: told(self, "committed")
    )
    ran = go(tmp_path, producers=[till()], consumers=[COMMITTED], lasts="4s")
    with pytest.raises(AssertionError):
        check_atomic(ran)


# -- transactions that are chosen to be aborted ---


def chosen(by, at="2s", target="shop"):
    return {"at": at, "do": "abort-transaction", "target": target, "by": by}


STEADY = {"transaction": {"records": 25}}


def test_an_application_aborts_the_transaction_that_is_chosen_and_no_other(tmp_path):
    ran = go(
        tmp_path, producers=[till(**STEADY)], consumers=[COMMITTED], lasts="5s",
        faults=[chosen("application")],
    )  # fmt: skip
    assert ran.faults[0]["effect"] == "its application aborted a transaction"
    check_atomic(ran)
    ended = [row for row in ran.rows("transaction_outcomes") if row["outcome"] == "aborted"]
    (aborted,) = ended
    assert 2 * S <= aborted["begun_us"] < 3 * S
    assert ran.verdict["held"]


@VERSIONS
def test_an_administrator_fences_the_producer_whose_open_transaction_is_aborted(version, tmp_path):
    """Admin.fenceProducers: InitProducerId with the same transactional id."""
    ran = go(
        tmp_path, producers=[till(**STEADY)], consumers=[COMMITTED], lasts="6s", then="stop",
        faults=[chosen("administrator")], behaviours={"transactions": version},
    )  # fmt: skip
    assert ran.faults[0]["took_effect"], ran.faults[0]["effect"]
    check_atomic(ran)
    last = ran.rows("transaction_outcomes")[-1]
    assert last["outcome"] in {"aborted", "fenced"}
    assert 2 * S <= last["t_us"] < 3 * S, "the fenced producer ends"


def test_a_producer_that_begins_no_transaction_any_more_aborts_none(tmp_path):
    early = till(**STEADY, stop="2s")
    ran = go(tmp_path, producers=[early], lasts="5s", faults=[chosen("application", at="4s")])
    assert not ran.faults[0]["took_effect"]
    assert ran.faults[0]["effect"] == "it began no further transaction"


def test_a_producer_without_transactions_has_none_to_abort():
    with pytest.raises(ScenarioError, match="no producer has transactions"):
        load_text(text_of(faults=[chosen("application")]))


def test_a_leader_that_begins_with_an_open_transaction_has_a_row_of_its_last_stable_offset(
    tmp_path,
):
    """Even if it led before, and that offset has not moved since."""
    faults = [
        {"at": "3s", "do": "pause", "target": "leader of orders-0", "for": "5s"},
        {"at": "12s", "do": "elect-leader", "partition": "orders-0", "election": "preferred"},
    ]
    ran = go(
        tmp_path, producers=[till(transaction={"every": "60s"})], lasts="16s", then="stop",
        topic={"partitions": 1}, faults=faults,
        config={"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500},
    )  # fmt: skip
    began: dict[int, tuple[int, int]] = {}
    for row in ran.rows("leadership", topic="orders", role="leader"):
        began.setdefault(row["leader_epoch"], (row["t_us"], row["broker"]))
    assert [broker for _, broker in began.values()] == [1, 2, 1]
    stable = [
        (row["leader_epoch"], (row["t_us"], row["broker"]), row["last_stable_offset"])
        for row in ran.rows("stable_offsets", topic="orders")
        if row["leader_epoch"] > 0
    ]
    assert stable[:2] == [(1, began[1], 0), (2, began[2], 0)]
