"""End of a run, and the windows of its faults."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from analysis.spark import tables
from sim.units import Micros


@dataclass(frozen=True, slots=True)
class FaultWindow:
    """A fault as injected; ``to_us`` is the end of the run if nothing healed it."""

    number: int
    kind: str
    target: str
    resolved: str
    from_us: Micros
    to_us: Micros
    healed: bool
    took_effect: bool
    effect: str


def end_of(run: Path, faults: pd.DataFrame) -> Micros:
    """The latest instant of a run's client, load and fault tables; 0 where they are empty."""
    found = [tables.latest(run, name) for name in ("client_batches", "load")]
    found.extend(faults["t_us"].tolist())
    return max((int(end) for end in found if end is not None), default=0)


def fault_windows(faults: pd.DataFrame, end_us: Micros) -> tuple[FaultWindow, ...]:
    """One window per beginning of a fault, in the order in which they began.

    A rejected fault has ``took_effect`` false in all its rows; the last row counts.
    """
    windows: list[FaultWindow] = []
    for number, rows in faults.sort_values("t_us", kind="stable").groupby("fault"):
        first, last = rows.iloc[0], rows.iloc[-1]
        healed = str(last["phase"]) == "healed"
        windows.append(
            FaultWindow(
                int(str(number)),
                str(first["kind"]),
                str(first["target"]),
                str(first["resolved"]),
                int(first["t_us"]),
                int(last["t_us"]) if healed else end_us,
                healed,
                bool(rows["took_effect"].any()),
                str(last["effect"] or first["effect"]),
            )
        )
    return tuple(sorted(windows, key=lambda window: (window.from_us, window.number)))
