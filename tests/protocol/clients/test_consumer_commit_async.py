"""commitAsync: sent once and never again, told in the order in which it ended.

Source: ``ConsumerCoordinator.{commitOffsetsAsync,invokeCompletedOffsetCommitCallbacks}``, the
documentation of ``KafkaConsumer.commitAsync``.
"""

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.messages.group import OffsetCommitRequest
from sim.trace.rows.clients import Commits
from sim.units import MS, SECOND
from tests.protocol.coordinator.group_bench import Bench

P0 = TopicPartition("orders", 0)
ASYNC = {
    "enable_auto_commit": False, "commit_after_processing": True, "commit_async": True,
    "auto_offset_reset": "earliest",
}  # fmt: skip


def reading(**settings_of_consumer):
    bench = Bench({"orders": 1})
    bench.consumer("a", start_at=50 * MS, **(ASYNC | settings_of_consumer))
    bench.elect(1)
    return bench


def commits(bench):
    return [r.offsets[0][1] for _, _, r in bench.requests if isinstance(r, OffsetCommitRequest)]


def outcomes(bench):
    return [(row[Commits.OFFSET], row[Commits.ERROR]) for row in bench.table("commits")]


def test_the_application_polls_on_while_its_commit_is_under_way():
    bench = reading(poll_records_max=2, processing_us=100)
    bench.produce(P0, 6)
    bench.run(6 * SECOND)
    assert commits(bench) == [2, 4, 6]
    polls = [when for when, _, _ in bench.delivered]
    first = bench.table("commits")[0][0]
    assert polls[-1] < first, "three polls before the first outcome"


def test_a_commit_that_fails_is_not_tried_again():
    bench = reading(processing_us=10 * MS)
    bench.run(6 * SECOND)
    bench.commit_error = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.produce(P0, 2)
    bench.run(20 * SECOND)
    assert outcomes(bench) == [(2, "COORDINATOR_NOT_AVAILABLE")]
    assert bench.consumers["a"].machine.committed() == {}


def test_what_failed_is_made_good_by_the_next_commit():
    bench = reading(processing_us=10 * MS)
    bench.run(6 * SECOND)
    bench.commit_error = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.produce(P0, 2)
    bench.run(8 * SECOND)
    bench.commit_error = ErrorCode.NONE
    bench.produce(P0, 3)
    bench.run(12 * SECOND)
    assert outcomes(bench) == [(2, "COORDINATOR_NOT_AVAILABLE"), (5, "NONE")]


def test_before_it_closes_it_commits_once_more_and_waits():
    bench = reading(processing_us=10 * MS)
    bench.run(6 * SECOND)
    bench.commit_error = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.produce(P0, 2)
    bench.run(8 * SECOND)
    bench.close("a")
    bench.run(9 * SECOND)
    assert "a" not in bench.stopped, "commitSync is tried again"
    bench.commit_error = ErrorCode.NONE
    bench.run(12 * SECOND)
    assert bench.stopped == {"a": ErrorCode.NONE}
    assert outcomes(bench)[-1] == (2, "NONE")


def test_what_is_not_processed_yet_is_not_committed_by_closing():
    bench = reading(processing_us=SECOND)
    bench.produce(P0, 2)
    bench.run(4 * SECOND)
    assert bench.delivered
    bench.close("a")
    began = bench.delivered[0][0]
    bench.run(began + 1900 * MS)
    assert commits(bench) == []
    bench.run(began + 3 * SECOND)
    assert commits(bench) == [2]
    assert bench.stopped == {"a": ErrorCode.NONE}


def test_callbacks_come_at_polls_in_the_order_in_which_commits_ended():
    bench = reading()
    bench.produce(P0, 1)
    bench.run(6 * SECOND)
    told = []
    machine = bench.consumers["a"].machine

    def commit(name):
        machine._commits.commit_async(lambda _o, e, _now: told.append((name, e.name)), bench.now)
        for effect in machine._link.take():
            bench.perform(bench.consumers["a"], effect)

    for name in ("first", "second", "third"):
        commit(name)
    assert told == []
    bench.run(7 * SECOND)
    assert told == [("first", "NONE"), ("second", "NONE"), ("third", "NONE")]


def test_without_a_coordinator_a_commit_waits_for_one_search_and_no_longer():
    """``RetriableCommitFailedException``, once the search has failed."""
    bench = reading()
    bench.produce(P0, 1)
    bench.run(6 * SECOND)
    told = []
    machine = bench.consumers["a"].machine
    before = len(commits(bench))
    machine._finder.lose(machine._finder.node)
    machine._commits.commit_async(lambda _o, e, _now: told.append(e), bench.now)
    machine._finder.on_answer(ErrorCode.COORDINATOR_NOT_AVAILABLE, bench.now)
    machine._commits.invoke_callbacks(bench.now)
    assert told == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert len(commits(bench)) == before
