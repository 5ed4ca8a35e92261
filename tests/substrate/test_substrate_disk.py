"""A disk's time for reads: access, transfer, and a queue that reads and writes share."""

from dataclasses import replace

import pytest

from sim.kernel import Kernel
from sim.log.store.files import DiskFull, FileStore
from sim.log.store.page_cache import ColdRead
from sim.substrate.disk import Disk, DiskSpec
from sim.substrate.distributions import Spread

MB = 1_000_000
SPEC = DiskSpec(
    write_bytes_per_s=100 * MB,
    read_bytes_per_s=50 * MB,
    access_us=8_000,
    flush=Spread(3_000, 3_000),
)


@pytest.fixture
def disk(tmp_path):
    return Disk(Kernel(), FileStore(tmp_path), SPEC, lambda: 0.5)


def test_a_read_costs_an_access_for_each_run_and_its_bytes(disk):
    now = disk.kernel.now()
    assert disk.read(ColdRead(MB, 1, 5, 6), "a") - now == 8_000 + 20_000
    assert disk.read_bytes == MB
    assert disk.written_bytes == 0


def test_a_read_that_goes_on_where_the_last_one_ended_needs_no_access(disk):
    first = disk.read(ColdRead(MB, 1, 5, 6), "a")
    second = disk.read(ColdRead(MB, 1, 6, 7), "a")
    assert second - first == 20_000
    assert disk.read(ColdRead(MB, 1, 6, 7), "a") - second == 28_000, "the twin: it went back"


def test_a_write_in_between_moves_the_head(disk):
    disk.read(ColdRead(MB, 1, 5, 6), "a")
    flushed = disk.fsync(0, "a")
    assert disk.read(ColdRead(MB, 1, 6, 7), "a") - flushed == 28_000


def test_an_fsync_waits_for_the_read_before_it(disk):
    alone = disk.fsync(MB, "a") - disk.kernel.now()
    read = disk.read(ColdRead(MB, 1, 5, 6), "a")
    assert disk.fsync(MB, "a") - read == alone
    assert alone == 13_000


def test_a_slow_disk_is_slow_to_read(disk):
    disk.slow(10)
    assert disk.read(ColdRead(MB, 1, 5, 6), "a") - disk.kernel.now() == 280_000
    assert disk.affected("slow") == 1


def test_what_is_under_way_when_slowness_ends_does_the_rest_at_the_usual_speed(disk):
    now = disk.kernel.now()
    disk.slow(10, until=now + 200_000)
    assert disk.read(ColdRead(MB, 1, 5, 6), "a") - now == 200_000 + 8_000, "20 of 28 ms were done"
    assert disk.read(ColdRead(MB, 1, 8, 9), "a") - now == 208_000 + 28_000, "begins after it"
    assert disk.affected("slow") == 1


def test_what_ends_while_it_is_slow_takes_all_of_the_factor(disk):
    now = disk.kernel.now()
    disk.slow(10, until=now + 300_000)
    assert disk.read(ColdRead(MB, 1, 5, 6), "a") - now == 280_000


def test_an_fsync_takes_the_latency_that_a_fault_names_and_reads_take_their_own(disk):
    now = disk.kernel.now()
    disk.slow(1, flush=Spread(50_000, 50_000))
    assert disk.fsync(0, "a") - now == 50_000
    assert disk.read(ColdRead(MB, 1, 5, 6), "a") - now == 50_000 + 28_000
    assert disk.affected("slow") == 1, "the fsync alone"
    disk.heal()
    assert disk.fsync(0, "a") - now == 78_000 + 3_000


def test_a_latency_that_a_fault_names_has_its_median_and_its_99th_percentile(tmp_path):
    kernel = Kernel()
    draws = iter([0.5, 0.99])
    disk = Disk(kernel, FileStore(tmp_path / "log-0"), DiskSpec(), draws.__next__)
    disk.slow(1, flush=Spread(50_000, 200_000))
    median = disk.fsync(0, "a")
    assert abs(median - 50_000) < 500
    assert abs(disk.fsync(0, "a") - median - 200_000) < 2_000


def test_an_fsync_under_way_when_the_named_latency_ends_does_the_rest_as_usual(disk):
    now = disk.kernel.now()
    disk.slow(1, until=now + 25_000, flush=Spread(50_000, 50_000))
    assert disk.fsync(0, "a") - now == 25_000 + 1_500, "half of it was done"
    assert disk.fsync(0, "a") - now == 26_500 + 3_000, "begins after it"


def test_a_named_latency_that_is_none_too_slow_is_no_effect(disk):
    disk.slow(1, flush=Spread(1_000, 1_000))
    assert disk.fsync(0, "a") - disk.kernel.now() == 1_000
    assert disk.affected("slow") == 0


def test_what_a_fault_does_is_counted_by_itself(disk):
    """A lying flush is not at work because the same disk is slow, nor because it is full."""
    disk.lie()
    disk.slow(10)
    disk.fill()
    disk.fsync(0, "a")
    with pytest.raises(DiskFull):
        disk.store.admit("a", 1)
    found = {name: disk.affected(name) for name in ("slow", "full", "lying", "failed", "stalled")}
    assert found == {"slow": 1, "full": 1, "lying": 0, "failed": 0, "stalled": 0}


def test_a_disk_that_is_full_by_its_own_capacity_is_no_fault(tmp_path):
    store = FileStore(tmp_path)
    small = Disk(Kernel(), store, replace(SPEC, capacity_bytes=10), lambda: 0.5)
    with pytest.raises(DiskFull):
        store.admit("a", 11)
    assert small.affected("full") == 0


def test_a_power_loss_that_spares_none_takes_what_chance_would_have_kept(tmp_path):
    """The draw is a lucky one: the last page of three is torn, those before it are whole."""
    lost = []
    for spares_none in (False, True):
        store = FileStore(tmp_path / str(spares_none))
        store.create("a").append(bytes(10_000))
        disk = Disk(Kernel(), store, SPEC, lambda: 1 - 2**-53)
        lost.append(disk.power_loss(spares_none=spares_none))
    assert 0 < lost[0] < 4_096
    assert lost[1] == 10_000


@pytest.mark.parametrize("healed", [False, True])
def test_no_page_reaches_a_disk_that_is_stalled_when_the_power_goes(tmp_path, healed):
    """The draw is the lucky one of above; a disk that answers again is as any other."""
    store = FileStore(tmp_path)
    disk = Disk(Kernel(), store, SPEC, lambda: 1 - 2**-53)
    disk.stall()
    store.create("a").append(bytes(10_000))
    if healed:
        disk.heal()
    assert (disk.power_loss() == 10_000) is not healed
