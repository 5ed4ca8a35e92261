"""Faults of disks: slow, stalled, failed, full, lying, or empty; of log directories.

Source: Kafka's log directory failures (KIP-112, KIP-858); the failure catalogue A11, D3.
"""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from sim.faults.action import Evidence, Instant
from sim.faults.fault import LATE, NOTHING, ONE_COPY, Fault, Hits, Outage, Span, TargetFault, key
from sim.faults.resolve import Site
from sim.faults.surface import Disk, Process, World
from sim.substrate.distributions import Spread
from sim.substrate.trouble import Trouble
from sim.units import NEVER

_DIRECTORY: Final = key("directory", "directory")


class _DiskFault(TargetFault):
    """A fault of the same log directory of some hosts."""

    hits: ClassVar[Hits] = "server"
    directory = 0
    trouble: ClassVar[Trouble]
    """Name under which the disk counts the operations that it affects."""
    verb: ClassVar[str]
    """Effect on those operations, as text."""

    @property
    def place(self) -> int:
        """Number of the log directory."""
        return self.directory

    @abstractmethod
    def break_disk(self, disk: Disk) -> None:
        """Breaks one disk."""

    def on(self, names: tuple[str, ...], site: Site) -> "BrokenDisks | None":
        """Action on those of these hosts that have that log directory."""
        at = self.directory
        disks = [host.disks[at] for host in site.hosts(names) if at < len(host.disks)]
        return BrokenDisks(self, disks, site) if disks else None


class BrokenDisks:
    """One fault on the same log directory of some hosts."""

    def __init__(self, fault: _DiskFault, disks: Sequence[Disk], site: Site) -> None:
        self._fault = fault
        self._disks = disks
        self._troubles = site.disks
        self._before = 0

    def begin(self) -> None:
        """Breaks the disks."""
        self._before = self._affected()
        for disk in self._disks:
            self._troubles.begin(disk, self._fault.break_disk)

    def heal(self) -> bool:
        """Heals the disks."""
        for disk in self._disks:
            self._troubles.heal(disk, self._fault.break_disk)
        return True

    def evidence(self) -> Evidence:
        """Operations that were slower or refused."""
        affected = self._affected() - self._before
        return Evidence(affected > 0, f"{affected} disk operations {self._fault.verb}")

    def _affected(self) -> int:
        return sum(disk.affected(self._fault.trouble) for disk in self._disks)


class DiskSwap(Instant):
    """Replaces log directories by empty ones, while their process is down for a moment."""

    def __init__(self, world: World, names: Sequence[str], directory: int | None) -> None:
        self._processes: list[tuple[Process, list[Disk]]] = []
        for name in names:
            disks = list(world.host_of(name).disks)
            if directory is not None:
                disks = disks[directory : directory + 1]
            self._processes.append((world.nodes[name], disks))
        self._wiped: list[str] = []

    def begin(self) -> None:
        """Kills processes that run, swaps the disks, starts those processes again."""
        for process, disks in self._processes:
            was_running = process.running
            if was_running:
                process.crash()
            files = sum(disk.swap() for disk in disks)
            if files:
                self._wiped.append(f"{process.name} ({files} files)")
            if was_running:
                process.start()

    def evidence(self) -> Evidence:
        """Processes whose files were removed."""
        if not self._wiped:
            return Evidence(took_effect=False, effect="there were no files")
        return Evidence(took_effect=True, effect=f"wiped {', '.join(self._wiped)}")


@dataclass(frozen=True, kw_only=True)
class _WithoutFactor(_DiskFault):
    """A disk fault without a factor."""

    directory: int = field(default=0, metadata=_DIRECTORY)


@dataclass(frozen=True, kw_only=True)
class SlowDisk(_DiskFault):
    """A log directory's disk takes `factor` times as long, or as long as `flush` says to flush."""

    kind = "slow-disk"
    proof = "disk operations took longer"
    may_break = LATE
    trouble: ClassVar[Trouble] = "slow"
    verb = "took longer"
    alternatives: ClassVar[tuple[str, ...]] = ("factor", "flush")
    factor: int | None = field(
        default=None, metadata=key("factor", "whole", "of every operation", low=2, high=1_000_000)
    )
    flush: Spread | None = field(
        default=None, metadata=key("flush", "spread", "instead of factor: latency of an fsync")
    )
    directory: int = field(default=0, metadata=_DIRECTORY)

    def break_disk(self, disk: Disk) -> None:
        """Slows the disk down."""
        until = NEVER if self.until_us is None else self.until_us
        disk.slow(self.factor or 1, until, self.flush)


@dataclass(frozen=True, kw_only=True)
class SlowReads(_DiskFault):
    """Reads that miss the page cache take `factor` times as long, or `access` for each access."""

    kind = "slow-reads"
    proof = "a read missed the page cache, and took longer"
    may_break = LATE
    trouble: ClassVar[Trouble] = "slow reads"
    verb = "took longer"
    alternatives: ClassVar[tuple[str, ...]] = ("factor", "access")
    factor: int | None = field(
        default=None, metadata=key("factor", "whole", "of every read", low=2, high=1_000_000)
    )
    access: Spread | None = field(
        default=None, metadata=key("access", "spread", "instead of factor: latency of an access")
    )
    directory: int = field(default=0, metadata=_DIRECTORY)

    def break_disk(self, disk: Disk) -> None:
        """Slows reads down."""
        disk.slow_reads(self.factor or 1, self.access)


class StalledDisk(_WithoutFactor):
    """A log directory's disk answers nothing until healed."""

    kind = "stalled-disk"
    proof = "disk operations waited"
    may_break = LATE
    trouble: ClassVar[Trouble] = "stalled"
    verb = "waited"

    def break_disk(self, disk: Disk) -> None:
        """Stalls the disk."""
        disk.stall()


class FailedDisk(_WithoutFactor):
    """A log directory's disk answers with EIO; healing replaces it by an empty one."""

    kind = "failed-disk"
    outage: ClassVar[Outage] = "data"
    takes_copies = True
    proof = "a disk operation failed"
    may_break = ONE_COPY
    trouble: ClassVar[Trouble] = "failed"
    verb = "were refused"

    def break_disk(self, disk: Disk) -> None:
        """Fails the disk."""
        disk.fail()


class FullDisk(_WithoutFactor):
    """Writes to a log directory fail with ENOSPC until healed."""

    kind = "full-disk"
    proof = "a write was refused"
    may_break = NOTHING
    trouble: ClassVar[Trouble] = "full"
    verb = "were refused"

    def break_disk(self, disk: Disk) -> None:
        """Fills the disk."""
        disk.fill()


class LyingFlush(_WithoutFactor):
    """A log directory's disk acknowledges flushes that it has not done, until healed."""

    kind = "lying-flush"
    proof = "an fsync left bytes in the cache"
    may_break = "durability of flushed data: a later power loss takes it"
    trouble: ClassVar[Trouble] = "lying"
    verb = "flushed nothing"

    def break_disk(self, disk: Disk) -> None:
        """Lets the disk acknowledge fsyncs without writing."""
        disk.lie()


@dataclass(frozen=True, kw_only=True)
class WipedDisk(TargetFault):
    """One log directory, or all, come back empty: the process dies, and starts on new disks."""

    kind = "wiped-disk"
    takes_copies = True
    proof = "a log directory held files"
    may_break = ONE_COPY
    span: ClassVar[Span] = "instant"
    hits: ClassVar[Hits] = "server"
    directory: int | None = field(
        default=None, metadata=key("directory", "directory", "default: all of them")
    )

    @property
    def place(self) -> int:
        """Number of the log directory; the first represents all."""
        return self.directory or 0

    def on(self, names: tuple[str, ...], site: Site) -> DiskSwap:
        """Action on these processes."""
        return DiskSwap(site.world, names, self.directory)


DISK_FAULTS: Final[tuple[type[Fault], ...]] = (
    SlowDisk, SlowReads, StalledDisk, FailedDisk, FullDisk, LyingFlush, WipedDisk,
)  # fmt: skip
