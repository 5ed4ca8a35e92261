"""Rules of disks and networks."""

from sim.scenario.model.machines import DiskModel, NetworkModel
from sim.scenario.text.problems import Problem
from sim.units import MIB


def network(model: NetworkModel) -> NetworkModel:
    """Delays and bandwidth, those of clients filled in."""
    return model.model_copy(update={"client": model.client or model.same_rack})


def check_disk(disk: DiskModel) -> None:
    """Check disks and page cache.

    Raises:
        Problem: With a path below ``cluster``.
    """
    for key, duration in (
        ("dirty.expire", disk.dirty_expire_us),
        ("dirty.writeback", disk.dirty_writeback_us),
    ):
        if duration == 0:
            raise Problem(("disk", key), "0us", "more than zero")
    if disk.dirty_background_bytes > disk.dirty_limit_bytes:
        raise Problem(("disk", "dirty.background"), "more than dirty.limit", "at most dirty.limit")
    if disk.page_cache_bytes < disk.dirty_limit_bytes:
        raise Problem(("disk", "cache"), "less than dirty.limit", "at least dirty.limit")
    if disk.capacity_bytes is not None and disk.capacity_bytes < MIB:
        raise Problem(("disk", "capacity"), f"{disk.capacity_bytes} bytes", "at least 1MiB")
