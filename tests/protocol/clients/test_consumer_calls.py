"""Seek, pause and resume between two polls: conversations on the table-top cluster."""

from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.clients.consumer.consumer import ApplicationCall
from sim.protocol.coordinator.group.records import OffsetCommitRecord
from sim.protocol.messages.data import EARLIEST_TIMESTAMP
from sim.units import MS, SECOND
from tests.protocol.clients.test_consumer_reading import (
    JOINED,
    P0,
    P1,
    alone,
    fetches,
    grouped,
    offsets,
)


def call(bench, what, *partitions, **where):
    bench.give(bench.consumers["a"], ApplicationCall(0, what, partitions, **where))


def test_what_is_buffered_of_a_paused_partition_waits_there_and_others_are_read():
    bench = alone(2, poll_records_max=1, processing_us=100 * MS)
    bench.produce(P0, 3)
    bench.produce(P1, 6)
    bench.run(50 * MS)
    first = bench.delivered[0][2].partition
    other = P1 if first == P0 else P0
    call(bench, "pause", first)
    bench.run(450 * MS)
    asked = len(fetches(bench))
    assert len(offsets(bench, first)) == 1
    assert offsets(bench, other)[:3] == [0, 1, 2]
    call(bench, "resume", first)
    bench.run(2 * SECOND)
    assert offsets(bench, first) == list(range(bench.end_of(first)))
    assert asked > 0


def test_a_paused_partition_is_forgotten_in_the_fetch_session():
    bench = alone(2)
    bench.run(SECOND)
    call(bench, "pause", P0)
    bench.run(2 * SECOND)
    assert [request.forgotten for request in fetches(bench) if request.forgotten] == [(P0,)]


def test_a_partition_that_is_assigned_again_is_not_paused():
    """Kafka's client pauses an assignment of a partition, not the partition (KIP-429 keeps it)."""
    bench = grouped(partitions=2)
    bench.run(JOINED)
    call(bench, "pause", P0, P1)
    bench.run(JOINED + SECOND)
    bench.consumer("b", start_at=JOINED + SECOND, auto_offset_reset="earliest")
    bench.run(20 * SECOND)
    bench.produce(P0, 5)
    bench.produce(P1, 5)
    bench.run(22 * SECOND)
    assert sorted(offsets(bench, P0) + offsets(bench, P1)) == sorted([*range(5), *range(5)])


def test_records_of_before_a_seek_are_not_returned_after_it():
    bench = alone(poll_records_max=2, processing_us=100 * MS)
    bench.produce(P0, 10)
    bench.run(150 * MS)
    call(bench, "seek", P0, offset=8)
    bench.run(SECOND)
    assert offsets(bench) == [0, 1, 8, 9]


def test_a_seek_during_a_reset_replaces_it():
    bench = alone(auto_offset_reset="latest")
    bench.produce(P0, 10)
    bench.run(3 * MS)
    call(bench, "seek", P0, offset=4)
    bench.run(SECOND)
    assert offsets(bench) == [4, 5, 6, 7, 8, 9]


def test_a_seek_needs_no_reset_policy():
    bench = grouped(auto_offset_reset="none")
    bench.produce(P0, 5)
    bench.offsets_log[partition_for_group("g")].append(OffsetCommitRecord("g", P0, 3, 0, 0))
    bench.run(9 * SECOND)
    call(bench, "seek", P0, timestamp=EARLIEST_TIMESTAMP)
    bench.run(10 * SECOND)
    assert bench.called == [(P0,)]
    assert (bench.stopped, offsets(bench)) == ({}, [3, 4, 0, 1, 2, 3, 4])
