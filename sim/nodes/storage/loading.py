"""How long a server takes to load its logs at a start.

Every log directory has threads of its own, and they all work at once; the threads of a directory
share its disk. A log costs its disk what memory does not hold of the bytes that are read, and its
thread the check of every batch above the recovery point.

Simplified: a log is read first and checked then, and threads always find a core.

Source: ``LogManager.loadLogs``; ``num.recovery.threads.per.data.dir``.
"""

from collections.abc import Callable, Sequence
from heapq import heapreplace

from sim.log.directory.manager import LoadedLog
from sim.substrate.disk import Disk
from sim.units import MS, Bytes, Micros

OPEN_LOG_US: Micros = 1 * MS
"""Opening one log's files at a start; a modelling choice."""


def loading_ends(
    loaded: Sequence[LoadedLog],
    disks: Sequence[Disk],
    threads: int,
    check_us: Callable[[Bytes], Micros],
    now: Micros,
) -> list[Micros]:
    """The instant at which each log is loaded; its disk is busy with it from now on.

    Args:
        loaded: The logs in the order in which they are taken up.
        disks: One for each log directory, none of them stalled.
        threads: ``num.recovery.threads.per.data.dir``.
        check_us: What checking so many bytes costs a thread.
        now: When loading begins.
    """
    free = [[now] * threads for _ in disks]
    ends = []
    for log in loaded:
        recovery, threads_of, disk = log.recovery, free[log.directory], disks[log.directory]
        read = threads_of[0]
        if recovery.cold is not None:
            read = disk.read(recovery.cold, str(log.partition), read)
        end = read + OPEN_LOG_US + check_us(recovery.scanned_bytes)
        heapreplace(threads_of, end)
        ends.append(end)
    return ends
