"""Cores that the threads of a server share: who waits for one, and for how long."""

import random

import pytest

from sim.kernel import Kernel
from sim.rng import Streams
from sim.substrate.cores import Cores
from sim.substrate.host import Host, HostSpec, Servers
from sim.substrate.links import NetworkSpec
from sim.substrate.network import Network


def cores(count):
    return Cores(Kernel(), count)


def test_as_much_work_runs_at_a_time_as_there_are_cores():
    two = cores(2)
    assert [two.take(0, 10) for _ in range(5)] == [0, 0, 10, 10, 20]


def test_work_that_begins_later_leaves_the_core_to_others_until_then():
    """A thread that sleeps on a disk must not keep its core from threads that are awake."""
    one = cores(1)
    assert one.take(50_000, 20) == 50_000
    assert one.take(0, 20) == 0
    assert one.take(0, 49_960) == 20
    assert one.take(0, 1) == 49_980
    assert one.take(0, 20) == 50_020, "no room is left before"


def test_work_of_no_time_needs_no_core():
    one = cores(1)
    one.take(0, 100)
    assert one.take(5, 0) == 5


@pytest.mark.parametrize("count", [1, 3])
def test_no_core_is_booked_twice_and_none_is_idle_while_work_waits(count):
    chance = random.Random(7)
    pool, booked = cores(count), []
    for _ in range(500):
        at, service = chance.randrange(10_000), chance.randrange(1, 60)
        begin = pool.take(at, service)
        assert begin >= at
        for instant in range(at, begin):
            busy = sum(start <= instant < end for start, end in booked)
            ahead = sum(instant < start < instant + service for start, _ in booked)
            assert busy + ahead >= count, "there was room"
        booked.append((begin, begin + service))
        at_once = sum(start <= begin < end for start, end in booked)
        assert at_once <= count


def test_threads_share_the_cores_of_their_host():
    shared = cores(1)
    network, handlers = Servers(3, cores=shared), Servers(8, cores=shared)
    assert [network.take(0, 10), handlers.take(0, 30), network.take(0, 10)] == [10, 40, 50]
    alone = Servers(8)
    assert [alone.take(0, 30) for _ in range(8)] == [30] * 8, "the twin: each has its own"


def test_a_thread_that_waits_for_a_disk_needs_its_core_only_afterwards():
    shared = cores(1)
    network, handlers = Servers(1, cores=shared), Servers(1, cores=shared)
    assert network.take(0, 5_010, 5_000) == 5_010
    assert handlers.take(0, 100) == 100
    assert network.take(0, 10) == 5_020, "the thread itself waited"


def host(count):
    network = Network(Kernel(), Streams(1), NetworkSpec())
    return Host("broker-1", "a", network, HostSpec(cores=count))


def test_a_slow_cpu_keeps_cores_busy_for_longer_and_what_is_left_speeds_up_with_it():
    one = host(1)
    one.slow_cpu(10)
    assert [one.request_handlers.take(0, 10) for _ in range(2)] == [100, 200]
    one.slow_cpu(1)
    assert one.request_handlers.take(0, 5) == 25, "200 us of work became 20"


def test_a_host_without_power_forgets_what_its_cores_had_to_do():
    one = host(1)
    one.request_handlers.take(0, 1_000)
    one.power_off()
    one.power_on()
    assert one.request_handlers.take(0, 10) == 10
    assert host(0).cores is None
