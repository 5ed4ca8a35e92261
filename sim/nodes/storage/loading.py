"""Time of a server's log loading at a start.

Every log directory has threads of its own, and they all work at once; the threads of a directory
share its disk. A log costs its disk the read bytes that are not in the page cache, and its thread
the check of every batch above the recovery point.

Simplified: a log is read first and checked afterwards, and threads always find a core.

Source: ``LogManager.loadLogs``; ``num.recovery.threads.per.data.dir``.
"""

from collections.abc import Callable, Sequence
from heapq import heapreplace

from sim.log.directory.manager import LoadedLog
from sim.substrate.disk import Disk
from sim.units import MS, Bytes, Micros

OPEN_LOG_US: Micros = 1 * MS
"""Time to open one log's files at a start; a modelling choice."""


def loading_ends(
    loaded: Sequence[LoadedLog],
    disks: Sequence[Disk],
    threads: int,
    check_us: Callable[[Bytes], Micros],
    now: Micros,
) -> list[Micros]:
    """End of each log's loading; its disk is busy from now on.

    Args:
        loaded: The logs in loading order.
        disks: One for each log directory, none of them stalled.
        threads: ``num.recovery.threads.per.data.dir``.
        check_us: Time of a thread to check so many bytes.
        now: Beginning of loading.
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
