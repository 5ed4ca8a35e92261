"""A sink task writes before it commits, and begins where its offsets are kept.

Source: ``connect.runtime.WorkerSinkTask``.
"""

from itertools import pairwise

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.connect.sink_task import SinkPlan, SinkTask
from sim.protocol.messages.group import OffsetCommitRequest
from sim.units import MS, SECOND
from tests.protocol.coordinator.group_bench import Bench

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
SETTINGS = {
    "enable_auto_commit": False, "commit_after_processing": True, "commit_async": True,
    "auto_offset_reset": "earliest", "session_timeout_us": 10 * SECOND,
}  # fmt: skip


class Sinks:
    """Sink tasks on the bench, and what their external system keeps."""

    def __init__(self, partitions=1):
        self.kept = {}
        self.bench = Bench({"orders": partitions})

    def task(self, name="a", start_at=50 * MS, processing_us=0, **plan):
        told = {"flush_interval_us": 5 * SECOND, "flush_timeout_us": 2 * SECOND} | plan
        self.bench.consumer(
            name, start_at, SinkTask, (SinkPlan(**told), lambda place: self.kept.get(place, -1)),
            processing_us=processing_us, **SETTINGS,
        )  # fmt: skip
        return self

    def begin(self, until=4 * SECOND):
        self.bench.elect(1)
        self.bench.run(until)
        return self.bench

    def written(self, name=None):
        return [
            offset
            for _, who, piece in self.bench.written
            if name in {None, who}
            for offset in range(piece.base_offset, piece.last_offset + 1)
        ]

    def commits(self):
        return [
            (when, each.offsets[0][1])
            for when, _, each in self.bench.requests
            if isinstance(each, OffsetCommitRequest)
        ]


def test_what_a_poll_returns_is_written_at_once_and_committed_at_the_interval():
    sinks = Sinks().task()
    bench = sinks.begin()
    bench.produce(P0, 5)
    bench.run(4500 * MS)
    assert sinks.written() == [0, 1, 2, 3, 4]
    assert sinks.commits() == []
    bench.run(20 * SECOND)
    ((_, offset),) = sinks.commits()
    assert offset == 5, "and what is committed is not committed again"


def test_what_is_put_takes_its_time_and_is_not_committed_before():
    sinks = Sinks().task(processing_us=SECOND)
    bench = sinks.begin()
    bench.produce(P0, 3)
    bench.run(6500 * MS)
    assert sinks.written() == []
    assert sinks.commits() == []
    bench.run(9 * SECOND)
    assert sinks.written() == [0, 1, 2]
    assert [offset for _, offset in sinks.commits()] == [3]


def test_a_buffer_is_written_when_it_is_full_and_before_each_commit():
    sinks = Sinks().task(buffer=4)
    bench = sinks.begin()
    bench.produce(P0, 3)
    bench.run(4500 * MS)
    assert sinks.written() == []
    bench.produce(P0, 3)
    bench.run(4700 * MS)
    assert sinks.written() == [0, 1, 2, 3, 4, 5]
    bench.produce(P0, 1)
    bench.run(8 * SECOND)
    (when, offset) = sinks.commits()[0]
    assert offset == 7
    assert bench.written[-1][0] < when


def test_planted_a_buffer_that_is_committed_and_not_written_is_lost_with_its_task():
    sinks = Sinks().task(buffer=100, flushes_first=False)
    bench = sinks.begin()
    bench.produce(P0, 3)
    bench.run(12 * SECOND)
    assert [offset for _, offset in sinks.commits()] == [3]
    bench.kill("a")
    sinks.task("b", start_at=12 * SECOND)
    bench.run(40 * SECOND)
    assert sinks.written() == []


def test_what_was_not_committed_when_a_task_died_is_written_again():
    sinks = Sinks().task()
    bench = sinks.begin()
    bench.produce(P0, 3)
    bench.run(12 * SECOND)
    bench.produce(P0, 2)
    bench.run(12100 * MS)
    bench.kill("a")
    sinks.task("b", start_at=13 * SECOND)
    bench.run(40 * SECOND)
    assert sinks.written("a") == [0, 1, 2, 3, 4]
    assert sinks.written("b") == [3, 4]


def test_a_sink_that_keeps_offsets_with_its_data_begins_there():
    sinks = Sinks().task(exactly_once=True)
    sinks.kept[P0] = 4
    bench = sinks.begin(0)
    bench.produce(P0, 6)
    bench.run(10 * SECOND)
    assert sinks.written() == [4, 5]


def test_a_commit_that_fails_is_made_good_at_the_next_interval_and_not_before():
    sinks = Sinks().task()
    bench = sinks.begin()
    bench.commit_error = ErrorCode.NOT_ENOUGH_REPLICAS
    bench.produce(P0, 3)
    bench.run(20 * SECOND)
    times = [when for when, _ in sinks.commits()]
    assert len(times) >= 2
    assert all(later - at >= 5 * SECOND for at, later in pairwise(times))


def test_before_partitions_are_given_up_everything_is_written_and_committed():
    sinks = Sinks(partitions=2).task(buffer=100)
    bench = sinks.begin()
    bench.produce(P0, 3)
    bench.produce(P1, 3)
    bench.run(4500 * MS)
    sinks.task("b", start_at=4500 * MS)
    bench.run(30 * SECOND)
    assert sorted(sinks.written()) == [0, 0, 1, 1, 2, 2]


def test_at_the_end_everything_is_written_and_committed():
    sinks = Sinks().task(buffer=100)
    bench = sinks.begin()
    bench.produce(P0, 3)
    bench.run(4500 * MS)
    bench.close("a")
    bench.run(6 * SECOND)
    assert sinks.written() == [0, 1, 2]
    assert [offset for _, offset in sinks.commits()] == [3]
    assert bench.stopped == {"a": ErrorCode.NONE}
