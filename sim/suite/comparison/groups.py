"""Two groups of runs, row by row: the measured one against its reference."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sim.errors import SimulationError
from sim.suite.comparison.measured import Measured, Step, measure
from sim.suite.comparison.tolerance import Tolerance, Value, spread
from sim.units import show_duration

FORMAT: Final = 1
"""Version of ``compare.json``."""

_MOST_KEYS: Final = 3
"""Keys of scenarios that an error names."""

OF_THE_MACHINE: Final = tuple(
    f"cluster.{part}."
    for part in (
        *("network", "cpu", "hardware", "heap"),
        *(f"disk.{figure}" for figure in ("flush", "write", "read", "access", "capacity")),
    )
)
"""Parts of a scenario that a rehearsal does not apply; it has as many log directories."""

_WITHOUT_ROWS: Final[Mapping[str, Value]] = {"records": 0, "events": 0}
"""A number that a run does not speak of: nothing of the kind, or never."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    name: str
    kind: str
    """A kind of number, or ``sequence``."""
    found: str
    reference: str
    is_inside: bool
    found_values: tuple[object, ...]
    reference_values: tuple[object, ...]
    """Of each run, in the order of the directories."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The table, and what it compares."""

    names: tuple[str, str]
    """Words for the two groups."""
    groups: tuple[tuple[Measured, ...], tuple[Measured, ...]]
    tolerance: Tolerance
    settings: tuple[tuple[str, str, str], ...]
    """Leaves of the scenarios that differ, with their two values; only where that is allowed."""
    rows: tuple[Row, ...]

    @property
    def is_inside(self) -> bool:
        """True if every row is."""
        return all(row.is_inside for row in self.rows)


def compare(runs: Sequence[Path], against: Sequence[Path], tolerance: Tolerance) -> Comparison:
    """Compares simulated runs with rehearsals, or any runs with a reference that is named.

    Args:
        runs: Run directories; without a reference both kinds, in any order.
        against: The reference; its scenario may differ. Empty: the rehearsals among the runs.
        tolerance: Of every row.

    Raises:
        SimulationError: If a side has no run, scenarios or scales of a side differ, a directory is
            given twice or is no run.
    """
    seen = [path.resolve() for path in (*runs, *against)]
    twice = next((path for path in seen if seen.count(path) > 1), None)
    if twice is not None:
        raise SimulationError(f"{twice}: given twice; allowed: each run once")
    measured = tuple(measure(path) for path in runs)
    if against:
        names = ("runs", "against")
        groups = (measured, tuple(measure(path) for path in against))
    else:
        names = ("simulated", "real")
        groups = (
            tuple(run for run in measured if not run.is_real),
            tuple(run for run in measured if run.is_real),
        )
    _check_sides(groups)
    for group in groups:
        _check_scenarios(group)
    if not against:
        _check_scenarios([groups[0][0], groups[1][0]])
    first, second = (group[0].scenario for group in groups)
    keys = dict.fromkeys([*first, *second])
    pairs = [(key, first.get(key, "-"), second.get(key, "-")) for key in keys]
    settings = tuple(pair for pair in pairs if pair[1] != pair[2])
    return Comparison(names, groups, tolerance, settings, rows_of(*groups, tolerance))


def rows_of(
    found: Sequence[Measured], reference: Sequence[Measured], tolerance: Tolerance
) -> tuple[Row, ...]:
    """The table of two groups, each with at least one run."""
    return (*_numbers(found, reference, tolerance), *_sequences(found, reference, tolerance))


def _check_sides(groups: Sequence[Sequence[Measured]]) -> None:
    if all(groups):
        return
    counts = f"found {len(groups[0])} simulated and {len(groups[1])} real"
    missing = "logquake rehearse" if groups[0] else "logquake run"
    raise SimulationError(
        f"{counts}; allowed: at least one of each. Add a directory of {missing}, or name the "
        "reference with --against DIR"
    )


def _check_scenarios(group: Sequence[Measured]) -> None:
    """Checks that runs have one scenario, but for what a rehearsal takes from its machine."""
    first = group[0]
    for run in group[1:]:
        keys = [
            key
            for key in dict.fromkeys([*first.scenario, *run.scenario])
            if not ((first.is_real or run.is_real) and f"{key}.".startswith(OF_THE_MACHINE))
        ]
        differing = [key for key in keys if first.scenario.get(key) != run.scenario.get(key)]
        if not differing:
            continue
        shown = "; ".join(
            f"{key}: {first.scenario.get(key, '-')} | {run.scenario.get(key, '-')}"
            for key in differing[:_MOST_KEYS]
        )
        more = len(differing) - _MOST_KEYS
        scales = "".join(
            f", {each.directory} is a rehearsal with --scale {each.scale:.4g}"
            for each in (first, run)
            if each.is_real
        )
        raise SimulationError(
            f"{first.directory} and {run.directory}: found different scenarios: {shown}"
            f"{f'; and {more} more' if more > 0 else ''}{scales}; allowed: one scenario with one "
            "scale, and any seeds. Run scenario.yaml of the rehearsal's directory, which has its "
            "scaled rates"
        )


def _numbers(
    found: Sequence[Measured], reference: Sequence[Measured], tolerance: Tolerance
) -> Iterator[Row]:
    kinds = {
        number.name: number.kind for run in (*reference, *found) for number in run.numbers.values()
    }
    for name, kind in kinds.items():
        sides = []
        for group in (found, reference):
            numbers = (run.numbers.get(name) for run in group)
            default = _WITHOUT_ROWS.get(kind)
            sides.append(tuple(default if each is None else each.value for each in numbers))
        if all(value is None for side in sides for value in side):
            continue
        is_inside = tolerance.holds(kind, *sides)
        here, there = (_spread(kind, side) for side in sides)
        yield Row(name, kind, here, there, is_inside, sides[0], sides[1])


def _sequences(
    found: Sequence[Measured], reference: Sequence[Measured], tolerance: Tolerance
) -> Iterator[Row]:
    for name in dict.fromkeys(name for run in (*reference, *found) for name in run.steps):
        here, there = ([run.steps.get(name, ()) for run in group] for group in (found, reference))
        known = [_states(steps) for steps in there]
        odd = next((steps for steps in here if _states(steps) not in known), None)
        parting = ("equal", "equal") if odd is None else _parting(_states(odd), known)
        yield Row(
            f"sequence of {name}", "sequence", parting[0], parting[1], odd is None,
            tuple(map(_states, here)), tuple(known),
        )  # fmt: skip
        yield from _times(name, here, there, tolerance)


def _times(
    partition: str,
    found: Sequence[Sequence[Step]],
    reference: Sequence[Sequence[Step]],
    tolerance: Tolerance,
) -> Iterator[Row]:
    """Instants of steps to which both sides came by the same way."""
    known = list(dict.fromkeys(_states(steps) for steps in reference))
    ways = dict.fromkeys(way[:end] for way in known for end in range(1, len(way) + 1))
    for way in ways:
        end = len(way)
        sides = [
            tuple(run[end - 1].since_us for run in group if _states(run)[:end] == way)
            for group in (found, reference)
        ]
        after, state = way[-1]
        if not sides[0] or (end == 1 and not any(map(any, sides))):
            continue
        shown = [_spread("time", side) for side in sides]
        yield Row(
            f"step {end - 1} of {partition}, after {after}: {state}", "time", shown[0], shown[1],
            tolerance.holds("time", *sides), sides[0], sides[1],
        )  # fmt: skip


def _states(steps: Sequence[Step]) -> tuple[tuple[str, str], ...]:
    return tuple((step.after, step.state) for step in steps)


def _parting(
    odd: Sequence[tuple[str, str]], known: Sequence[Sequence[tuple[str, str]]]
) -> tuple[str, str]:
    """Next steps of a sequence and of the reference that it follows longest, where they part."""
    common = [
        next((n for n, (a, b) in enumerate(zip(odd, way, strict=False)) if a != b),
             min(len(odd), len(way)))
        for way in known
    ]  # fmt: skip
    at = max(common)
    nearest = known[common.index(at)]
    first, second = (
        f"step {at}, after {way[at][0]}: {way[at][1]}" if at < len(way) else f"no step {at}"
        for way in (odd, nearest)
    )
    return first, second


def _spread(kind: str, values: Sequence[Value]) -> str:
    texts = [
        "never" if value is None
        else show_duration(value) if kind in ("time", "latency")
        else f"{value:,}"
        for value in spread(values)
    ]  # fmt: skip
    return texts[0] if len(set(texts)) == 1 else " / ".join(texts)


def as_json(found: Comparison) -> dict[str, Any]:
    """``compare.json``: the same inputs give the same text; times are microseconds."""
    tolerance = found.tolerance
    return {
        "format": FORMAT,
        "inside": found.is_inside,
        "tolerance": {
            "time_share": tolerance.time_share,
            "time_floor_us": tolerance.time_floor_us,
            "latency_factor": tolerance.latency_factor,
            "records_factor": tolerance.records_factor,
            "words": tolerance.words(),
        },
        "groups": [
            {"name": name, "runs": [_run(run) for run in group]}
            for name, group in zip(found.names, found.groups, strict=True)
        ],
        "settings": {key: [one, other] for key, one, other in found.settings},
        "rows": [
            {
                "name": row.name,
                "kind": row.kind,
                "inside": row.is_inside,
                found.names[0]: {"shown": row.found, "values": row.found_values},
                found.names[1]: {"shown": row.reference, "values": row.reference_values},
            }
            for row in found.rows
        ],
    }


def _run(run: Measured) -> dict[str, Any]:
    return {
        "directory": run.directory.as_posix(),
        "real": run.is_real,
        "kafka": run.kafka,
        "scale": run.scale,
        "end_us": run.end_us,
        "events": [event._asdict() for event in run.events],
        "partitions": {name: [s._asdict() for s in steps] for name, steps in run.steps.items()},
    }
