"""The transactional producer against a small coordinator: flows, errors, retries, fencing."""

from itertools import pairwise

import pytest

from sim.error_codes import ErrorCode as E
from sim.protocol.clients.producer.transaction_manager import TransactionManager
from sim.protocol.clients.producer.transaction_requests import TransactionState
from sim.protocol.clients.producer.transactional_producer import TransactionalProducer
from sim.protocol.messages.group import FindCoordinatorRequest
from sim.protocol.messages.metadata import InitProducerIdRequest, InitProducerIdResponse
from sim.protocol.messages.transaction import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    EndTxnResponse,
)
from sim.rng import Stream
from tests.protocol.coordinator.transaction_kit import EVERY_MS, ID, MS, SECOND, bank

VERSIONS = pytest.mark.parametrize("version", [2, 0])
KEYS = [k * 7 % 40 for k in range(len(EVERY_MS))]


@VERSIONS
def test_every_transaction_commits_whole_and_in_order(version):
    run = bank(version=version).run(20 * SECOND).check()
    assert run.told_outcomes() == ["committed"] * 10
    assert all(sum(b - a + 1 for _, a, b in d.records) == 100 for _, d in run.told)
    assert sorted(run.coordinator.results.values()) == [True] * 10
    assert run.mind.is_idle


@VERSIONS
def test_keyed_records_of_a_transaction_are_the_next_the_application_sends(version):
    run = bank(keys=KEYS, records=30, version=version, partitions=7).run(30 * SECOND).check()
    assert run.told_outcomes() == ["committed"] * 34
    sizes = [sum(b - a + 1 for _, a, b in d.records) for _, d in run.told]
    assert sizes == [30] * 33 + [10]
    intended = sorted(i for _, done in run.done for i in done.intended_us.tolist())
    assert intended == EVERY_MS


@VERSIONS
def test_a_transaction_by_time_ends_that_long_after_its_first_send(version):
    run = bank(every_us=50 * MS, version=version).run(20 * SECOND).check()
    for _, done in run.told[:-1]:
        sent = [
            i
            for _, batch in run.done
            for p, a, b in done.records
            for i in batch.intended_us.tolist()
            if batch.partition == p and a <= batch.first_record <= b
        ]
        assert max(sent) <= done.begun_us + 50 * MS
        assert max(sent) > done.begun_us + 45 * MS
    ends = [now for now, _ in run.coordinator.ends]
    for (_, done), at in zip(run.told, ends, strict=False):
        assert at > done.begun_us


def test_with_kip_890_each_transaction_has_an_epoch_of_its_own_and_nobody_is_told_before():
    run = bank().run(20 * SECOND).check()
    epochs = [done.producer_epoch for _, done in run.told]
    assert epochs == list(range(10))
    assert not run.coordinator.adds


def test_without_it_the_coordinator_hears_of_each_partition_once_before_its_first_batch():
    run = bank(keys=KEYS, version=0).run(20 * SECOND).check()
    assert {done.producer_epoch for _, done in run.told} == {0}
    first_add = min(now for now, _ in run.coordinator.adds)
    assert first_add < min(now for now, _ in run.sent)
    per_transaction = len(run.coordinator.adds) / len(run.told)
    assert 1 <= per_transaction <= 3


def test_records_wait_for_the_transaction_before_to_end_and_keep_their_intended_instants():
    run = bank([200_000 + k for k in range(10)], records=5).run(5 * SECOND).check()
    [(first_end, _), (_, second)] = run.told
    assert second.begun_us >= first_end
    late = [done for _, done in run.done if done.created_us > 200_010]
    assert sorted(i for d in late for i in d.intended_us.tolist()) == list(range(200_005, 200_010))


def test_the_end_of_a_transaction_does_not_wait_for_linger():
    run = bank([200_000], records=1, config={"linger_us": 2 * SECOND}).run(5 * SECOND).check()
    assert run.sent[0][0] == 200_000
    assert run.told_outcomes() == ["committed"]


def test_end_txn_goes_out_only_when_every_batch_is_answered():
    run = bank(latency=(20_000, 60_000)).run(30 * SECOND).check()
    for now, request in [(at, r) for at, _, r in run.sent_plain if isinstance(r, EndTxnRequest)]:
        epoch = request.producer_epoch
        sent = [at for at, sent in run.sent if sent.drafts[0].producer_epoch == epoch]
        assert sent
        assert now > max(sent) + 40_000


@VERSIONS
def test_an_application_that_aborts_is_told_so_and_goes_on(version):
    draws = Stream(3, "aborts").unit
    run = bank(records=20, aborts=lambda: draws() < 0.3, version=version).run(60 * SECOND).check()
    outcomes = run.told_outcomes()
    assert len(outcomes) == 50
    assert 5 < outcomes.count("aborted") < 25
    assert {done.error for _, done in run.told} == {"NONE"}
    assert sorted(run.coordinator.results.values()).count(True) == outcomes.count("committed")


def test_an_aborted_transaction_drops_batches_that_were_never_sent():
    run = bank([200_000], records=1, aborts=lambda: True).run(5 * SECOND).check()
    [(_, batch)] = run.done
    assert (batch.outcome, batch.error, batch.attempts) == ("failed", "TRANSACTION_ABORTED", 0)
    assert run.told_outcomes() == ["aborted"]


# -- errors ---------------------------------------------------------------------------------------


def answer_once(kind, response):
    """A hook that answers the first request of a kind with the response."""
    left = [response]

    def hook(_world, _node, request):
        return left.pop() if isinstance(request, kind) and left else None

    return hook


@VERSIONS
def test_a_failed_batch_aborts_its_transaction_and_the_next_has_a_new_epoch(version):
    run = bank(version=version)
    failed = []

    def refuse(world, p, draft):
        sending = world.mind.state is TransactionState.IN_TRANSACTION
        if world.now > 400_000 and not failed and sending:
            failed.append((p, draft.first_record))
            return E.TRANSACTION_ABORTABLE, -1, None
        return None

    run.answer = refuse
    run.run(20 * SECOND).check()
    [bad] = [done for _, done in run.told if done.outcome == "aborted"]
    assert bad.error == "TRANSACTION_ABORTABLE"
    after = run.told[bad.transaction + 1][1]
    assert after.producer_epoch == bad.producer_epoch + 1
    assert run.told_outcomes().count("committed") == len(run.told) - 1


@pytest.mark.parametrize(
    "error", [E.INVALID_PRODUCER_EPOCH, E.OUT_OF_ORDER_SEQUENCE_NUMBER, E.INVALID_TXN_STATE]
)
def test_errors_of_a_leader_that_only_an_abort_helps_against(error):
    run = bank()
    left = [error]

    def refuse(world, _p, draft):
        if world.now > 400_000 and left and draft.base_sequence == 0:
            return left.pop(), -1, None
        return None

    run.answer = refuse
    run.run(20 * SECOND).check()
    assert run.told_outcomes().count("aborted") == 1
    assert not run.stopped


@pytest.mark.parametrize("kind", [InitProducerIdRequest, EndTxnRequest])
@pytest.mark.parametrize(
    "error",
    [
        E.COORDINATOR_NOT_AVAILABLE,
        E.NOT_COORDINATOR,
        E.COORDINATOR_LOAD_IN_PROGRESS,
        E.CONCURRENT_TRANSACTIONS,
    ],
)
def test_a_coordinator_that_is_not_ready_is_asked_again_after_the_back_off(kind, error):
    run = bank()
    made = InitProducerIdResponse if kind is InitProducerIdRequest else EndTxnResponse
    run.plain = answer_once(kind, made(error))
    run.run(20 * SECOND).check()
    asked = [at for at, _, request in run.sent_plain if isinstance(request, kind)]
    assert 100 * MS <= asked[1] - asked[0] < 120 * MS
    finds = [r for _, _, r in run.sent_plain if isinstance(r, FindCoordinatorRequest)]
    assert len(finds) == (2 if error in (E.COORDINATOR_NOT_AVAILABLE, E.NOT_COORDINATOR) else 1)
    assert run.told_outcomes() == ["committed"] * 10


def test_the_first_add_partitions_is_tried_again_soon_while_the_last_transaction_completes():
    run = bank(records=10, version=0, completion_us=30 * MS, partitions=1).run(20 * SECOND).check()
    adds = [(at, r) for at, _, r in run.sent_plain if isinstance(r, AddPartitionsToTxnRequest)]
    pairs = pairwise(adds)
    gaps = [later - at for (at, first), (later, again) in pairs if first is again]
    assert len(gaps) > 20
    assert min(gaps) >= 20 * MS
    assert max(gaps) < 30 * MS


def test_a_coordinator_that_moves_is_found_again():
    run = bank()

    def move():
        run.coordinator_at = 3

    run.at(500_000, move)
    run.run(20 * SECOND).check()
    assert run.told_outcomes() == ["committed"] * 10
    last = [node for _, node, r in run.sent_plain if isinstance(r, EndTxnRequest)][-1]
    assert last == 3


def test_a_dead_coordinator_is_looked_up_until_another_one_is_found():
    run = bank()

    def die():
        run.dead = (1,)
        run.drop(1, E.NETWORK_EXCEPTION)
        run.leaders = [2 if leader == 1 else leader for leader in run.leaders]

    run.at(500_000, die)
    run.at(900_000, lambda: setattr(run, "coordinator_at", 2))
    run.run(60 * SECOND).check()
    assert run.told_outcomes() == ["committed"] * 10


# -- fencing --------------------------------------------------------------------------------------


@VERSIONS
def test_a_fenced_producer_ends_and_says_so(version):
    run = bank(version=version)

    def rival():
        request = InitProducerIdRequest(ID, 60 * SECOND)
        while run.coordinator.identify(request, run.now).error is not E.NONE:
            run.now += 10 * MS

    run.at(500_000, rival)
    run.run(20 * SECOND).check()
    assert run.stopped[0][1] is E.PRODUCER_FENCED
    assert run.told_outcomes()[-1] == "fenced"
    assert run.told[-1][1].error == "PRODUCER_FENCED"
    assert "fenced" not in run.told_outcomes()[:-1]
    assert run.mind.is_idle
    sent = len(run.sent)
    run.go(40 * SECOND)
    assert len(run.sent) == sent


def test_a_commit_whose_answer_was_lost_before_the_fence_is_unknown_not_fenced():
    run = bank(records=100)
    cut = []

    def lose(world, node, request):
        if isinstance(request, EndTxnRequest) and not cut and world.now > 500_000:
            cut.append(world.coordinator.end(request, world.now))
            world.coordinator.epoch += 1  # a rival came meanwhile
            world.coordinator.last_end = None
            world.drop(node, E.NETWORK_EXCEPTION)

    run.plain = lose
    run.run(20 * SECOND).check()
    assert cut[0].error is E.NONE
    assert run.told_outcomes()[-1] == "unknown"
    assert run.stopped


@VERSIONS
def test_an_unanswered_commit_is_asked_again_and_heard_once(version):
    run = bank(version=version)
    cut = []

    def lose(world, node, request):
        if isinstance(request, EndTxnRequest) and len(cut) < 3:
            cut.append(world.coordinator.end(request, world.now))
            world.drop(node, E.NETWORK_EXCEPTION)

    run.plain = lose
    run.run(20 * SECOND).check()
    assert len(cut) == 3
    assert run.told_outcomes() == ["committed"] * 10


# -- the end of the process -----------------------------------------------------------------------


def test_a_process_that_ends_leaves_an_open_transaction_that_nobody_will_commit():
    run = bank()
    run.run(450_000)
    for done in run.mind.finish(run.now):
        run.take(done)
    last = run.mind.finish_transaction()
    assert last is not None
    assert (last.outcome, last.error) == ("aborted", "NONE")
    assert run.mind.finish_transaction() is None


def test_one_that_ends_while_it_commits_does_not_know():
    run = bank(records=5, instants=[200_000 + k for k in range(5)])
    run.plain = lambda world, node, request: (
        world.drop(node, E.NETWORK_EXCEPTION) if isinstance(request, EndTxnRequest) else None
    )
    run.run(2 * SECOND)
    assert run.mind.state is TransactionState.COMMITTING_TRANSACTION
    run.mind.finish(run.now)
    assert run.mind.finish_transaction().outcome == "unknown"


# -- under fire -----------------------------------------------------------------------------------


@VERSIONS
@pytest.mark.parametrize("seed", range(1, 13))
def test_what_the_client_is_told_is_what_the_coordinator_decided_whatever_happens(version, seed):
    draws = Stream(seed, "aborts").unit
    run = bank(
        records=40,
        keys=KEYS,
        aborts=lambda: draws() < 0.1,
        version=version,
        seed=seed,
        trouble=0.25,
        trouble_until=4 * SECOND,
        config={"delivery_timeout_us": 2 * SECOND, "request_timeout_us": SECOND},
    )
    run.run(300 * SECOND).check()
    assert run.told_outcomes().count("committed") > 5
    sent = sum(b - a + 1 for _, d in run.told for _, a, b in d.records)
    assert run.stopped or sent == len(EVERY_MS)


def test_calling_a_commit_that_was_never_sent_committed_is_caught(monkeypatch):
    complete = TransactionManager._complete
    monkeypatch.setattr(
        TransactionManager, "_complete", lambda self, *, committed: complete(self, committed=True)
    )
    run = bank(records=20, aborts=iter([False, True] * 50).__next__).run(60 * SECOND)
    with pytest.raises(AssertionError, match="transaction 1"):
        run.check()


def test_ending_a_transaction_before_its_batches_are_answered_is_caught(monkeypatch):
    monkeypatch.setattr(TransactionalProducer, "_has_incomplete", lambda _self: False)
    run = bank(records=20, latency=(5_000, 60_000)).run(60 * SECOND)
    assert run.told_outcomes() != ["committed"] * 50
    assert run.stopped[0][1] is E.INVALID_TXN_STATE


@VERSIONS
def test_a_producer_that_waits_does_not_look_again_and_again(version):
    run = bank(records=20, version=version, completion_us=40 * MS)
    handled = []
    handle = run.mind.handle
    run.mind.handle = lambda event, now: handled.append(now) or handle(event, now)
    run.run(60 * SECOND).check()
    assert run.told_outcomes() == ["committed"] * 50
    assert len(handled) < 3_000
