"""A broker's heap: when its collector stops the work, for how long, and when it gives up."""

import pytest

from sim.substrate.heap import Collection, Heap, HeapSpec, OutOfMemory
from sim.units import SECOND

GB, MB = 10**9, 10**6
SPEC = HeapSpec(
    size_bytes=6 * GB,
    used_bytes=3 * GB,
    producer_bytes=448,
    connection_bytes=MB,
    request_bytes=MB,
    collected_bytes_per_s=1 * GB,
)


def test_what_lives_are_the_broker_its_producers_in_every_log_and_its_connections():
    heap = Heap(SPEC)
    assert heap.live_bytes(0, 0) == 3 * GB
    assert heap.live_bytes(4_200_000, 100) == 3 * GB + 4_200_000 * 448 + 100 * MB


def test_nothing_stops_while_the_collector_has_room():
    heap = Heap(SPEC)
    assert all(heap.look(int(5.4 * GB), 100_000) is None for _ in range(100))


def requests_between_collections(heap, live):
    for number in range(1, 10_000):
        if heap.look(live, 1) is not None:
            return number
    raise AssertionError("never")


def test_the_less_is_left_the_sooner_everything_stops_and_for_as_long_as_what_lives_takes():
    heap = Heap(SPEC)
    counts = [requests_between_collections(heap, int(live * GB)) for live in (5.5, 5.7, 5.85)]
    assert counts == [501, 301, 151], "what is left, in requests"
    heap = Heap(SPEC)
    verdict = heap.look(int(5.5 * GB), 501)
    assert isinstance(verdict, Collection)
    assert verdict.pause_us == int(5.5 * SECOND)


@pytest.mark.parametrize(("live", "ends"), [(5.88, False), (5.89, True), (7, True)])
def test_the_jvm_gives_up_when_no_more_than_two_percent_are_left(live, ends):
    assert isinstance(Heap(SPEC).look(int(live * GB), 0), OutOfMemory) is ends


def test_garbage_of_a_time_with_room_does_not_count_later():
    heap = Heap(SPEC)
    heap.look(4 * GB, 10_000)
    assert heap.look(int(5.5 * GB), 1) is None
