"""Faults of disks: slow, stalled, failed, full, lying; one log directory each.

Source: Kafka's log directory failures (KIP-112, KIP-858); the failure catalogue A11, D3.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from sim.faults.action import Evidence
from sim.faults.spec import Fault
from sim.faults.surface import Disk
from sim.substrate.disk import Trouble
from sim.units import NEVER

_TROUBLES: Final[dict[str, tuple[Trouble, str]]] = {
    "slow-disk": ("slow", "took longer"),
    "stalled-disk": ("stalled", "waited"),
    "failed-disk": ("failed", "were refused"),
    "full-disk": ("full", "were refused"),
    "lying-flush": ("lying", "flushed nothing"),
}
"""What each kind does to the disk, and what becomes of operations there."""


@dataclass(slots=True)
class DiskFaults:
    """Which faults are at work on each disk: healing one of two must leave the other."""

    _active: list[tuple[Disk, Fault]] = field(default_factory=list)

    def begin(self, disk: Disk, fault: Fault) -> None:
        """Break the disk."""
        self._active.append((disk, fault))
        _apply(disk, fault)

    def heal(self, disk: Disk, fault: Fault) -> None:
        """Mend the disk of one fault."""
        self._active = [pair for pair in self._active if pair != (disk, fault)]
        disk.heal()
        for other, left in self._active:
            if other is disk:
                _apply(disk, left)


class DiskFault:
    """One fault on the same log directory of some hosts."""

    def __init__(self, faults: DiskFaults, fault: Fault, disks: Sequence[Disk]) -> None:
        self._faults = faults
        self._fault = fault
        self._disks = disks
        self._trouble, self._verb = _TROUBLES[fault.kind]
        self._before = 0

    def begin(self) -> None:
        """Break the disks."""
        self._before = self._affected()
        for disk in self._disks:
            self._faults.begin(disk, self._fault)

    def heal(self) -> bool:
        """Mend the disks."""
        for disk in self._disks:
            self._faults.heal(disk, self._fault)
        return True

    def evidence(self) -> Evidence:
        """Whether an operation was slower or refused."""
        affected = self._affected() - self._before
        return Evidence(affected > 0, f"{affected} disk operations {self._verb}")

    def _affected(self) -> int:
        return sum(disk.affected(self._trouble) for disk in self._disks)


def _apply(disk: Disk, fault: Fault) -> None:
    match fault.kind:
        case "slow-disk":
            disk.slow(fault.factor, NEVER if fault.until_us is None else fault.until_us)
        case "stalled-disk":
            disk.stall()
        case "failed-disk":
            disk.fail()
        case "full-disk":
            disk.fill()
        case "lying-flush":
            disk.lie()
        case _:
            raise AssertionError(f"{fault.kind} is no fault of a disk")
