"""The run in one strip, for the first screen: faults, outages and latency over time.

Lanes are cut into :data:`COLUMNS` of equal length, so that a strip is of bounded size whatever the
run was. A lane of outages has the worst colour that any partition has there
(:mod:`sim.levels`: of the whole outage, not of the part in the column), and the share of the
partitions of that lane that are down. Time before the first record is not drawn.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd

from analysis.pages.cells import instant, rows_of, short
from analysis.report.findings import Findings
from analysis.verify import availability
from sim.levels import Level, formed, level_of
from sim.units import SECOND, Micros

COLUMNS: Final = 240
MOST_FAULTS: Final = 60
"""Faults with a bar; the table of faults has all of them."""

_ROWS: Final = 4
"""Rows with a bar for each of the faults that overlap; one more row has the others together."""
_BARS: Final = 80
_LEAST: Final = 0.35
"""Opacity where hardly any partition is down."""
_TICKS: Final = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400)
_MOST_TICKS: Final = 8
_LAST_TICK: Final = 95
"""Percent of the run behind which an instant would be cut off."""

_LANES: Final = (
    ("produce down", "produce_gaps"),
    ("consume down", "fetch_gaps"),
    ("no leader", "offline_stretches"),
)


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of a lane; places are percent of the run."""

    start: float
    width: float
    title: str
    level: Level | None = None
    opacity: float = 1
    height: float = 100
    """Percent of the lane."""
    label: str = ""
    row: int = 0
    after: float = 0
    """Width of the time from the end of a fault to the end of what it cost."""


@dataclass(frozen=True, slots=True)
class Lane:
    """Bars one beside the other, or in rows."""

    name: str
    kind: str
    """``faults``, ``down`` or ``slow``: how it is drawn."""
    bars: tuple[Bar, ...]
    rows: int = 1


@dataclass(frozen=True, slots=True)
class Glance:
    """The strip."""

    lanes: tuple[Lane, ...]
    ticks: tuple[tuple[float, str], ...]
    """Places in percent, and instants."""


def glance(found: Findings) -> Glance:
    """The strip of a run."""
    end = max(found.end_us, 1)
    return Glance(
        (_faults(found, end), *_outages(found, end), _latency(found, end)),
        tuple((at / end * 100, instant(at)) for at in _ticks(end)),
    )


def _ticks(end_us: Micros) -> range:
    step = next(
        (step for step in _TICKS if step * SECOND * _MOST_TICKS >= end_us),
        -(-end_us // (SECOND * _MOST_TICKS)),
    )
    return range(0, end_us * _LAST_TICK // 100, step * SECOND)


def _faults(found: Findings, end: Micros) -> Lane:
    verdict: Mapping[str, Any] = found.files.verdict
    windows = verdict["windows"]["faults"] if "windows" in verdict else ()
    until = {each["fault"]: int(each["to_us"]) for each in windows}
    free = [0] * _ROWS
    bars: list[Bar] = []
    others: list[Bar] = []
    shown = [each for each in found.faults if each.from_us < end and each.to_us > 0]
    for fault in shown[:MOST_FAULTS]:
        begin, stop = max(fault.from_us, 0), min(fault.to_us, end)
        last = min(max(stop, until.get(fault.number, 0)), end)
        row = next((n for n, at in enumerate(free) if at <= begin), _ROWS)
        healed = f"healed at {instant(fault.to_us)}" if fault.healed else "not healed"
        bar = Bar(
            begin / end * 100,
            (stop - begin) / end * 100,
            f"{fault.kind} {fault.target} at {instant(fault.from_us)}, {healed}",
            label=str(fault.number),
            row=row,
            after=(last - stop) / end * 100,
        )
        if row < _ROWS:
            free[row] = last
            bars.append(bar)
        else:
            others.append(bar)
    bars += _together(others)
    return Lane("faults", "faults", tuple(bars), max((bar.row for bar in bars), default=0) + 1)


def _together(bars: Iterable[Bar]) -> Iterator[Bar]:
    """Bars in the order of their starts, those that overlap as one that says how many they are."""
    group: list[Bar] = []
    reach = 0.0
    for bar in bars:
        if group and bar.start >= reach:
            yield _one(group)
            group = []
        group.append(bar)
        reach = max(each.start + each.width + each.after for each in group)
    if group:
        yield _one(group)


def _one(group: Sequence[Bar]) -> Bar:
    if len(group) == 1:
        return group[0]
    stop = max(bar.start + bar.width for bar in group)
    reach = max(bar.start + bar.width + bar.after for bar in group)
    start = group[0].start
    return Bar(
        start,
        stop - start,
        "; ".join(f"{bar.label}: {bar.title}" for bar in group),
        label=f"+{len(group)}",
        row=group[0].row,
        after=reach - stop,
    )


def _outages(found: Findings, end: Micros) -> Iterator[Lane]:
    started = _started(found.files.verdict)
    for name, table in _LANES:
        rows = found.frames[table]
        # Gaps have a row for each partition with traffic: at least its longest.
        every = found.frames["partition_states"] if table == "offline_stretches" else rows
        partitions = len(every[["topic", "partition"]].drop_duplicates())
        rows = rows[rows["to_us"] - rows["from_us"] > availability.REPORTED_FROM]
        if table == "fetch_gaps":
            names = rows["topic"].astype(str) + "-" + rows["partition"].astype(str)
            rows = rows[rows["to_us"] > names.map(started).fillna(0)]
        yield Lane(name, "down", tuple(_down(rows, end, partitions)))


def _started(verdict: Mapping[str, Any]) -> dict[str, int]:
    """Instants of first records of partitions whose readers had one before any fault."""
    if "availability" not in verdict:
        return {}
    return {name: int(each["first_us"]) for name, each in formed(verdict).items()}


def _down(rows: pd.DataFrame, end: Micros, partitions: int) -> Iterator[Bar]:
    """Columns in which as many partitions are down for as long, joined."""
    counts, longest = np.zeros(COLUMNS, int), np.zeros(COLUMNS, int)
    for row in rows_of(rows):
        begin = min(int(max(row["from_us"], 0) * COLUMNS // end), COLUMNS - 1)
        stop = max(begin + 1, -(-int(min(row["to_us"], end)) * COLUMNS // end))
        counts[begin:stop] += 1
        longest[begin:stop] = np.maximum(longest[begin:stop], row["to_us"] - row["from_us"])
    ends = np.flatnonzero((np.diff(counts) != 0) | (np.diff(longest) != 0)) + 1
    for place, after in pairwise([0, *ends.tolist(), COLUMNS]):
        if counts[place]:
            number, length = int(counts[place]), int(longest[place])
            yield Bar(
                place / COLUMNS * 100,
                (after - place) / COLUMNS * 100,
                f"{number:,} of {partitions:,} partitions, for up to {short(length)}, "
                f"at {instant(place * end // COLUMNS)}",
                level_of(length),
                round(_LEAST + (1 - _LEAST) * min(1.0, number / partitions), 2),
            )


def _latency(found: Findings, end: Micros) -> Lane:
    """The largest p99 of each part of the run, on a logarithmic scale from 0.1 ms to 100 s."""
    bands = found.frames["produce_latency_bands"]
    bars = min(_BARS, max(1, -(-end // found.fine_us)))
    place = (bands["bin"].astype("int64") * found.fine_us * bars // end).clip(0, bars - 1)
    worst = bands[bands["bin"] >= 0].groupby(place)["p99"].max()
    return Lane(
        "p99",
        "slow",
        tuple(
            Bar(
                number / bars * 100,
                100 / bars,
                f"p99 {short(p99)} at {instant(number * end // bars)}",
                level_of(int(p99)),
                height=round(min(100, max(6, (np.log10(max(p99, 1)) - 2) / 6 * 100))),
            )
            for number, p99 in zip(worst.index.tolist(), worst.tolist(), strict=True)
        ),
    )
