"""Tolerances of a comparison: how far a number may be from the reference's, by its kind."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Literal, TypeAlias

from sim.errors import SimulationError
from sim.units import SECOND, Micros

Kind: TypeAlias = Literal["time", "latency", "records", "events"]
"""A duration, a percentile of latencies, a number of records, a number of events."""

Value: TypeAlias = int | None
"""Microseconds or a number; ``None`` for what never happened, which is later than everything."""


@dataclass(frozen=True, slots=True)
class Tolerance:
    """Declared once for all rows.

    Raises:
        SimulationError: If one is out of range.
    """

    time_share: float = 0.2
    """Of the reference's median."""
    time_floor_us: Micros = 300_000
    latency_factor: float = 1.5
    records_factor: float = 2.0

    def __post_init__(self) -> None:
        least = {"time_share": 0, "time_floor_us": 0, "latency_factor": 1, "records_factor": 1}
        for name, bound in least.items():
            value = getattr(self, name)
            if not isfinite(value) or value < bound:
                raise SimulationError(f"{name}: found {value}; allowed: a number from {bound} on")

    def words(self) -> list[str]:
        """The tolerances in sentences."""
        times = f"within {self.time_share:.4g} of the reference's median"
        return [
            f"times: {times}, or {self.time_floor_us / SECOND:.4g} s of it, or inside its range",
            f"latencies: within a factor of {self.latency_factor:.4g} of the reference's median",
            f"records: inside the reference's range, or a factor of {self.records_factor:.4g}",
            "events: inside the reference's range",
            "sequences: each is one of the reference's",
        ]

    def holds(self, kind: Kind, found: Sequence[Value], reference: Sequence[Value]) -> bool:
        """True if the median of one side is near enough to the other side.

        Args:
            kind: Decides which tolerance counts.
            found: A number of each run; at least one.
            reference: The same of the reference; at least one.
        """
        middle, due = median(found), median(reference)
        if middle is None or due is None:
            return middle == due or (kind != "latency" and middle is None and None in reference)
        last = max(map(_rank, reference))
        in_range = _rank(min(reference, key=_rank)) <= _rank(middle) <= last
        match kind:
            case "time":
                return in_range or abs(middle - due) <= max(
                    self.time_share * due, self.time_floor_us
                )
            case "latency":
                return _near(middle, due, self.latency_factor)
            case "records":
                return in_range or _near(middle, due, self.records_factor)
            case "events":
                return in_range


def median(values: Sequence[Value]) -> Value:
    """The lower middle member."""
    return sorted(values, key=_rank)[(len(values) - 1) // 2]


def spread(values: Sequence[Value]) -> tuple[Value, Value, Value]:
    """Minimum, median, maximum."""
    return min(values, key=_rank), median(values), max(values, key=_rank)


def _rank(value: Value) -> tuple[bool, int]:
    return value is None, value or 0


def _near(one: int, other: int, factor: float) -> bool:
    return one <= other * factor and other <= one * factor
