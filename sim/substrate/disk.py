"""A disk's timing, and the write-back of the page cache above it.

The bytes are the file store's (:mod:`sim.log.store.files`); here is only time. Writes go to the
page cache; the kernel's flusher wakes at an interval, moves what is older than the expiry, and
moves everything when too much is dirty; writers wait when far too much is. An fsync queues behind
what the disk is doing.

Reads that miss the page cache queue with the writes. A read that is not sequential to the one
before it waits for the access first; the cost for writes is in the fsync's latency.

Source: Linux ``vm.dirty_writeback_centisecs``, ``vm.dirty_expire_centisecs``,
``vm.dirty_background_bytes``, ``vm.dirty_bytes``.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from sim.kernel import Kernel
from sim.log.store.files import FileStore
from sim.log.store.page_cache import ColdRead
from sim.substrate.distributions import Delays, Spread
from sim.substrate.trouble import Trouble
from sim.units import GIB, LONG_AGO, MIB, NEVER, SECOND, Bytes, Micros


@dataclass(frozen=True, slots=True)
class DiskSpec:
    """Speed in bytes per second, fsync latency, and the kernel's write-back settings."""

    write_bytes_per_s: int = 1_000_000_000
    read_bytes_per_s: int = 1_000_000_000
    access_us: Micros = 100
    """Time until the first byte of a random read: seek and rotation, or a request."""
    flush: Spread = Spread(1_000, 10_000)
    writeback_us: Micros = 5 * SECOND
    expire_us: Micros = 30 * SECOND
    background_bytes: Bytes = 256 * MIB
    limit_bytes: Bytes = GIB
    capacity_bytes: Bytes = 0
    """Capacity for all files of a log directory; 0: unlimited."""


class Disk:
    """One disk below one log directory."""

    def __init__(
        self,
        kernel: Kernel,
        store: FileStore,
        spec: DiskSpec,
        unit: Callable[[], float],
    ) -> None:
        self.kernel = kernel
        self.store = store
        self.spec = spec
        self.busy_until: Micros = -(1 << 60)
        self.busy_us: Micros = 0
        self.written_bytes: Bytes = 0
        self.read_bytes: Bytes = 0
        self._affected: dict[str, int] = {}
        self.on_io: Callable[[str, Bytes, Micros, str], None] | None = None
        """Called for each operation: name, bytes, instant of begin, file."""
        self._unit = unit
        self._flush = Delays(spec.flush, unit)
        self._factor = 1
        self._slow_flush: Delays | None = None
        self._slow_until: Micros = NEVER
        self._read_factor = 1
        self._slow_read: Delays | None = None
        self._stalled = False
        self._head = -1
        self._marks: deque[tuple[Micros, int]] = deque()
        store.on_refusal = self._refused
        store.capacity = spec.capacity_bytes

    # -- time -------------------------------------------------------------------------------------

    def fsync(self, size: Bytes, file: str) -> Micros:
        """Queues an fsync of so many bytes; returns the instant at which it is done.

        Not for a stalled disk: see :attr:`stalled`.
        """
        assert not self._stalled, "a stalled disk queues nothing"
        if self.store.lies and size:
            self._note("lying")
        unit = self._unit()
        usual, slow = self._flush.at(unit), self._slow_flush
        longer = 0 if slow is None else slow.at(unit) - usual
        return self._occupy("flush", size, usual, file, longer=longer)

    def read(self, read: ColdRead, file: str, not_before: Micros = LONG_AGO) -> Micros:
        """Queues a read that misses the page cache; returns the instant at which it is done.

        Not for a stalled disk: see :attr:`stalled`.
        """
        assert not self._stalled, "a stalled disk queues nothing"
        return self._occupy("read", read.bytes, self.reading_us(read), file, not_before)

    def reading_us(self, read: ColdRead) -> Micros:
        """Service time of a read; moves the disk's head to its end."""
        accesses = read.runs - (read.first == self._head)
        self._head = read.last
        transfer = -(-read.bytes * SECOND // self.spec.read_bytes_per_s)
        if self._read_factor == 1 and self._slow_read is None:
            return accesses * self.spec.access_us + transfer
        self._note("slow reads")
        if self._slow_read is not None:
            return sum(self._slow_read.draw() for _ in range(max(accesses, 1))) + transfer
        return (accesses * self.spec.access_us + transfer) * self._read_factor

    def writers_wait_until(self) -> Micros:
        """The instant until which writers wait because too much is dirty; past if they need not."""
        dirty = self.store.dirty_bytes
        if dirty <= self.spec.background_bytes:
            return LONG_AGO
        if dirty <= self.spec.limit_bytes:
            if not self._stalled and not self.store.failed:
                # The flusher is woken at once, not at its next tick; the writer does not wait.
                self._marks.clear()
                self._move(self.store.mark())
            return LONG_AGO
        if self._stalled:
            self._note("stalled")
            return NEVER
        self._move(self.store.mark())
        return self.busy_until

    def start_flusher(self, phase: float = 1.0) -> None:
        """Begins the kernel's periodic write-back.

        Args:
            phase: Part of an interval until the first, in [0, 1]: other kernels woke at other
                instants.
        """
        self.kernel.call_in(int(self.spec.writeback_us * phase), self._tick)

    # -- faults -----------------------------------------------------------------------------------

    def slow(self, factor: int, until: Micros = NEVER, flush: Spread | None = None) -> None:
        """Makes every operation take ``factor`` times as long, until an instant.

        With ``flush`` fsyncs have that latency instead of the disk's, whatever it is.

        An operation under way at that instant does the rest at the usual speed. Where the instant
        is not known beforehand, it keeps its pace, as does one under way when slowness begins.
        """
        self._factor = factor
        self._slow_flush = None if flush is None else Delays(flush, self._unit)
        self._slow_until = until

    def slow_reads(self, factor: int, latency: Spread | None = None) -> None:
        """Makes reads that miss the page cache take so many times as long.

        With ``latency`` each of their accesses takes that long instead.
        """
        self._read_factor = factor
        self._slow_read = None if latency is None else Delays(latency, self._unit)

    def stall(self) -> None:
        """Stalls the disk: operations begin but do not end until it is healed."""
        self._stalled = True

    def fail(self) -> None:
        """Fails every read and write with EIO."""
        self.store.failed = True

    def fill(self) -> None:
        """Fails every write with ENOSPC."""
        self.store.full = True

    def lie(self) -> None:
        """Makes fsyncs lie: they take their time, and move nothing."""
        self.store.lies = True

    @property
    def awaits_mount(self) -> bool:
        """True if it was replaced, and no process has mounted the new one."""
        return self.store.awaits_mount

    def swap(self) -> int:
        """Replaces it by an empty disk, under a process that is down; returns files lost."""
        files = self.store.file_count
        self.store.wipe()
        self._marks.clear()
        return files

    def heal(self) -> None:
        """Ends slowness, stall, lies and fullness; a disk that failed is replaced by an empty one.

        The process that had it open still gets EIO: the new one is mounted at a start.
        """
        self._factor = self._read_factor = 1
        self._slow_flush = self._slow_read = None
        if self.store.failed and not self.store.awaits_mount:
            self.store.wipe()
            self._marks.clear()
        self.store.full = False
        self.store.lies = False
        if self._stalled:
            self._stalled = False
            self.busy_until = max(self.busy_until, self.kernel.now())

    def extend(self) -> None:
        """Removes the limit of its capacity, as an operator would."""
        self.store.capacity = 0

    def power_loss(self, *, spares_none: bool = False) -> Bytes:
        """Drops the page cache; returns the bytes that never reached the platter.

        ``spares_none``: all of it; else a random prefix of each file reached it, or nothing if the
        disk is stalled.
        """
        self._marks.clear()
        self.busy_until = self.kernel.now()
        none = spares_none or self._stalled
        return self.store.power_loss(_no_page if none else self._unit)

    @property
    def stalled(self) -> bool:
        """True if operations do not end now."""
        return self._stalled

    def refuse(self) -> None:
        """Counts an operation that had to wait for a stalled disk."""
        if self._stalled:
            self._note("stalled")

    def affected(self, trouble: Trouble) -> int:
        """Operations so far that one trouble has affected."""
        return self._affected.get(trouble, 0)

    # -- inside -----------------------------------------------------------------------------------

    def _occupy(
        self,
        operation: str,
        size: Bytes,
        service: Micros,
        file: str,
        not_before: Micros = LONG_AGO,
        longer: Micros = 0,
    ) -> Micros:
        if operation == "read":
            self.read_bytes += size
        else:
            self._head = -1
            self.written_bytes += size
            service += -(-size * SECOND // self.spec.write_bytes_per_s)
        start = max(self.kernel.now(), self.busy_until, not_before)
        if self._factor != 1 and start < self._slow_until:
            self._note("slow")
            done = min(service, (self._slow_until - start) // self._factor)
            service += done * (self._factor - 1)
        elif longer and start < self._slow_until:
            service = self._lengthened(service, longer, self._slow_until - start)
        self.busy_until = start + service
        self.busy_us += service
        if self.on_io is not None:
            self.on_io(operation, size, start, file)
        return self.busy_until

    def _lengthened(self, usual: Micros, longer: Micros, left: Micros) -> Micros:
        """Service time of an fsync whose latency is another one for the time that is left."""
        if longer > 0:
            self._note("slow")
        slow = usual + longer
        return slow if slow <= left else left + usual - usual * left // slow

    def _refused(self) -> None:
        """Counts a rejected write: for a fault, or because the capacity is used up."""
        if self.store.failed:
            self._note("failed")
        elif self.store.full:
            self._note("full")

    def _note(self, trouble: Trouble) -> None:
        self._affected[trouble] = self._affected.get(trouble, 0) + 1

    def _tick(self) -> None:
        now = self.kernel.now()
        self.kernel.call_in(self.spec.writeback_us, self._tick)
        if self.store.failed or self._stalled:
            if self.store.dirty_bytes:
                self._note("failed" if self.store.failed else "stalled")
            return
        self._marks.append((now, self.store.mark()))
        if self.store.dirty_bytes > self.spec.background_bytes:
            self._move(self._marks.pop()[1])
            self._marks.clear()
            return
        due = None
        while self._marks and self._marks[0][0] <= now - self.spec.expire_us:
            due = self._marks.popleft()[1]
        if due is not None:
            self._move(due)

    def _move(self, mark: int) -> None:
        moved = self.store.write_back(mark)
        if moved:
            self._occupy("write_back", moved, 0, "")


def _no_page() -> float:
    """The draw with which no dirty page reached the platter."""
    return 0.0
