"""The page of a comparison: ``compare.html``, self-contained, in the style of a run's report.

First both timelines above each other on one axis, then the table and its tolerances.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from analysis.pages import script
from analysis.pages.markup import render
from sim.units import SECOND, Micros

MOST_LANES: Final = 40
"""Lanes of each side that are drawn; ``compare.json`` has all."""

_LEFT: Final = 300
_RIGHT: Final = 1080
_LANE: Final = 18
_HEAD: Final = 26
_LABEL: Final = 42
"""Characters of a lane's name."""


class Bar(NamedTuple):
    """A state of a partition."""

    x: float
    width: float
    level: str
    text: str


class Lane(NamedTuple):
    """One partition of one run, with the run's faults."""

    y: int
    label: str
    bars: list[Bar]
    marks: list[tuple[float, str, str]]
    """Place, phase and words of each fault."""


class Side(NamedTuple):
    """One group of runs."""

    y: int
    name: str
    lanes: list[Lane]
    hidden: int


def page(found: Mapping[str, Any]) -> str:
    """The whole document of what ``compare.json`` has."""
    runs = [run for group in found["groups"] for run in group["runs"]]
    end = max(1, *(run["end_us"] for run in runs))
    sides, height = _sides(found["groups"], end)
    return render(
        "analysis.comparison",
        "comparison.html",
        script.TABLES,
        found=found,
        names=[group["name"] for group in found["groups"]],
        outside=sum(not row["inside"] for row in found["rows"]),
        sides=sides,
        height=height,
        left=_LEFT,
        right=_RIGHT,
        ticks=list(_ticks(end)),
    )


def _sides(groups: Sequence[Mapping[str, Any]], end: Micros) -> tuple[list[Side], int]:
    sides, y = [], _HEAD
    for group in groups:
        head, lanes = y, []
        lines = [(run, name) for run in group["runs"] for name in run["partitions"]]
        for run, name in lines[:MOST_LANES]:
            y += _LANE
            label = f"{run['directory'].rpartition('/')[2]} {name}"
            label = label if len(label) <= _LABEL else f"...{label[3 - _LABEL :]}"
            lanes.append(Lane(y, label, list(_bars(run, name, end)), list(_marks(run, end))))
        sides.append(Side(head, group["name"], lanes, len(lines) - len(lanes)))
        y += _LANE + _HEAD
    return sides, y + _HEAD


def _bars(run: Mapping[str, Any], name: str, end: Micros) -> Iterator[Bar]:
    steps = run["partitions"][name]
    ends = [*(step["t_us"] for step in steps[1:]), run["end_us"]]
    for step, until in zip(steps, ends, strict=True):
        left, right = _x(step["t_us"], end), _x(until, end)
        words = f"{step['t_us'] / SECOND:.3f} s: {step['state']}"
        yield Bar(left, round(max(right - left, 0), 2), step["level"], words)


def _marks(run: Mapping[str, Any], end: Micros) -> Iterator[tuple[float, str, str]]:
    for event in run["events"]:
        words = f"{event['t_us'] / SECOND:.3f} s: {event['name']} {event['phase']}"
        yield _x(event["t_us"], end), event["phase"], f"{words} {event['resolved']}"


def _ticks(end: Micros) -> Iterator[tuple[float, str]]:
    sizes = (size * 10**power for power in range(-3, 9) for size in (1, 2, 5))
    step = next(size for size in sizes if end / SECOND / size <= 10)
    for number in range(11):
        at = number * step
        if at * SECOND <= end:
            yield _x(round(at * SECOND), end), f"{at:.4g} s"


def _x(at: Micros, end: Micros) -> float:
    return round(_LEFT + (_RIGHT - _LEFT) * min(max(at, 0), end) / end, 2)
