"""What is told of brokers' heaps at the end."""

from sim.checking.outcomes.heaps import Heaps

GB = 10**9


def row(at, broker, event, live, pause=0):
    return (at, broker, event, live, 6 * GB, 1_000, 10, pause)


def test_without_a_heap_nothing_is_told():
    assert Heaps().report() == {}


def test_brokers_that_ran_out_are_counted_once_and_the_fullest_heap_is_found():
    heaps = Heaps()
    for each in (
        row(1, 2, "sample", 3 * GB),
        row(2, 1, "collection", 5_500_000_001, pause=5_500_001),
        row(3, 1, "out_of_memory", 5_900_000_000),
        row(4, 1, "out_of_memory", 5_890_000_000),
        row(5, 2, "collection", 5_410_000_000, pause=4_000_000),
        row(6, 2, "collection", 5_410_000_000, pause=4_000_000),
    ):
        heaps.heap(each)
    assert heaps.report()["heaps"] == {
        "exhausted": 1,
        "used_max_percent": 99,
        "brokers": {
            "broker-1": {
                "used_max_percent": 99, "collections": 1, "stopped_us": 5_500_001, "exhausted": 2,
            },
            "broker-2": {
                "used_max_percent": 91, "collections": 2, "stopped_us": 8_000_000, "exhausted": 0,
            },
        },
    }  # fmt: skip
