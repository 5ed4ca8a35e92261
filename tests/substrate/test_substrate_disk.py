"""A disk's time for reads: access, transfer, and a queue that reads and writes share."""

import pytest

from sim.kernel import Kernel
from sim.log.files import FileStore
from sim.log.page_cache import ColdRead
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
    assert disk.operations_affected == 1
