"""A baseline: what runs measured once, and whether they measure worse today.

A number of a scenario has regressed if both hold: its distribution over seeds has moved up by more
than chance explains, all comparisons of the check taken together (:data:`LEVEL`); and it has moved
by enough to matter (:data:`TOLERANCE`). The seeds of both sides may be the same or others.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sim.errors import SimulationError
from sim.suite.outcome import METRICS, Outcome
from sim.suite.statistics import (
    RankTest,
    median_interval,
    rank_test,
    seeds_needed,
    shared_level,
)
from sim.trace.run_files import Shape, misfit, read_mapping
from sim.units import show_duration

FORMAT: Final = 1
_SHAPE: Final[Shape] = {
    "scenarios": {
        "*": {
            "digest": str,
            "code": str,
            "runs": {
                "*": {
                    "status": str,
                    "metrics": {"*": float},
                    "trace_digest": str,
                    "rows": {"*": int},
                    "table_digests": {"*": str},
                }
            },
        }
    }
}

LEVEL: Final = 0.001
"""Chance that a check of an unchanged simulator says *regressed* anywhere."""

TOLERANCE: Final = 0.05
"""Share of the baseline by which a number must be worse to count."""

SMALLEST: Final[Mapping[str, int]] = {"records": 1, "time": 100}
"""And by so many records, or microseconds."""


@dataclass(frozen=True, slots=True)
class MovedNumber:
    """One number of one scenario, then and now."""

    path: str
    metric: str
    before: tuple[int, int, int]
    """Median, and its interval of 95 %."""
    after: tuple[int, int, int]
    seeds: tuple[int, int]
    means: tuple[float, float]
    p: float

    def __str__(self) -> str:
        unit = unit_of(self.metric)
        then, now = (
            f"{_show(middle, unit)} [{_show(low, unit)} to {_show(high, unit)}]"
            for middle, low, high in (self.before, self.after)
        )
        return (
            f"{self.path}: {self.metric}: {then} over {self.seeds[0]} seeds then, {now} over "
            f"{self.seeds[1]} now (p = {self.p:.1g})"
        )


@dataclass(frozen=True, slots=True)
class BaselineComparison:
    """Result of comparing a check with a baseline."""

    regressed: tuple[MovedNumber, ...] = ()
    improved: tuple[MovedNumber, ...] = ()
    compared: int = 0
    """Numbers that were compared."""
    level: float = LEVEL
    """Of each of them."""
    moved: tuple[str, ...] = ()
    """Runs whose trace is another one than then, with the first table that differs."""
    not_deterministic: tuple[str, ...] = ()
    """Those of them that were made by the same code of the same scenario."""
    notes: tuple[str, ...] = field(default_factory=tuple)
    """Runs that could not be compared, and why."""


def unit_of(metric: str) -> str:
    """``time`` or ``records``."""
    return "time" if "." in metric else "records"


def read_baseline(file: Path) -> dict[str, Any]:
    """A baseline's content.

    Raises:
        SimulationError: If there is none, or it is something else.
    """
    try:
        plain = read_mapping(file, {})
    except FileNotFoundError:
        raise SimulationError(f"{file}: no such baseline; --update writes it") from None
    except SimulationError as error:
        raise SimulationError(f"{error}; not a baseline: --update writes it again") from None
    if plain.get("format") != FORMAT:
        raise SimulationError(f"{file}: not a baseline of format {FORMAT}; --update writes it anew")
    if wrong := misfit(plain, _SHAPE):
        raise SimulationError(f"{file}: a damaged baseline: {wrong}; --update writes it anew")
    return plain


def check_power(baseline: Mapping[str, Any], paths: Sequence[str], seeds: int) -> None:
    """Refuse a comparison that could not find anything, before anything runs.

    Raises:
        SimulationError: With the number of seeds that is needed.
    """
    known = [path for path in paths if path in baseline["scenarios"]]
    if not known:
        raise SimulationError("the baseline knows none of these scenarios; --update writes it anew")
    fewest = min(seeds, *(len(baseline["scenarios"][path]["runs"]) for path in known))
    needed = seeds_needed(LEVEL, len(known) * len(METRICS))
    if fewest < needed:
        raise SimulationError(
            f"{fewest} seeds cannot tell a regression from chance in "
            f"{len(known) * len(METRICS)} comparisons; at least {needed} are needed here and in "
            f"the baseline: --seeds 1..{needed}"
        )


def write_baseline(file: Path, outcomes: Sequence[Outcome], code: str) -> None:
    """Write what runs measured; earlier scenarios of the file that were not run now stay."""
    scenarios: dict[str, Any] = {}
    if file.exists():
        scenarios = dict(read_baseline(file)["scenarios"])
    for path, runs in by_path(outcomes).items():
        scenarios[path] = {
            "digest": runs[0].scenario_digest,
            "code": code,
            "runs": {
                str(run.seed): {
                    "status": run.status,
                    "metrics": dict(run.metrics),
                    "trace_digest": run.trace_digest,
                    "rows": dict(run.rows),
                    "table_digests": dict(run.table_digests),
                }
                for run in runs
            },
        }
    file.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"format": FORMAT, "scenarios": dict(sorted(scenarios.items()))}, indent=1)
    file.write_text(text + "\n", encoding="utf-8")


def by_path(outcomes: Sequence[Outcome]) -> dict[str, list[Outcome]]:
    """Outcomes of each scenario, in the order given."""
    found: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        found.setdefault(outcome.path, []).append(outcome)
    return found


def compare(
    baseline: Mapping[str, Any], outcomes: Sequence[Outcome], code: str
) -> BaselineComparison:
    """Hold runs against a baseline; runs without a verdict are not compared."""
    notes: list[str] = []
    moved: list[str] = []
    broken: list[str] = []
    changes: list[tuple[MovedNumber, RankTest, RankTest]] = []
    for path, runs in by_path([o for o in outcomes if o.is_repeatable]).items():
        known = baseline["scenarios"].get(path)
        if known is None:
            notes.append(f"{path}: not in the baseline")
            continue
        is_same = known["digest"] == runs[0].scenario_digest
        if not is_same:
            notes.append(f"{path}: the scenario was changed since the baseline was written")
        changes += _changes(path, known, runs)
        if is_same:
            lines = [line for run in runs if (line := _moved(known, run))]
            (broken if known["code"] == code else moved).extend(lines)
    level = shared_level(LEVEL, [test for _, test, _ in changes])
    back = shared_level(LEVEL, [test for _, _, test in changes])
    return BaselineComparison(
        regressed=tuple(c for c, test, _ in changes if test.p <= level and _matters(c, 1)),
        improved=tuple(c for c, _, test in changes if test.p <= back and _matters(c, -1)),
        compared=len(changes),
        level=level,
        moved=tuple(moved),
        not_deterministic=tuple(broken),
        notes=tuple(notes),
    )


def _changes(
    path: str, known: Mapping[str, Any], runs: Sequence[Outcome]
) -> list[tuple[MovedNumber, RankTest, RankTest]]:
    found = []
    for metric in METRICS:
        before = [
            run["metrics"][metric] for run in known["runs"].values() if metric in run["metrics"]
        ]
        after = [run.metrics[metric] for run in runs if metric in run.metrics]
        if not before or not after:
            continue
        worse, better = rank_test(before, after), rank_test(after, before)
        change = MovedNumber(
            path,
            metric,
            median_interval(before),
            median_interval(after),
            (len(before), len(after)),
            (sum(before) / len(before), sum(after) / len(after)),
            min(worse.p, better.p),
        )
        found.append((change, worse, better))
    return found


def _matters(change: MovedNumber, sign: int) -> bool:
    """True if it moved far enough: times by their median, counts by their mean."""
    then, now = float(change.before[0]), float(change.after[0])
    unit = unit_of(change.metric)
    if unit == "records":
        then, now = change.means
    smallest = max(TOLERANCE * then, SMALLEST[unit])
    return sign * (now - then) >= smallest


def _moved(known: Mapping[str, Any], run: Outcome) -> str:
    then = known["runs"].get(str(run.seed))
    if then is None or then["trace_digest"] == run.trace_digest:
        return ""
    for table in dict.fromkeys([*then["table_digests"], *run.table_digests]):
        if then["table_digests"].get(table) != run.table_digests.get(table):
            rows = f"{then['rows'].get(table, 0):,} rows then, {run.rows.get(table, 0):,} now"
            return f"{run.path}, seed {run.seed}: the trace moved, first in table {table}: {rows}"
    return f"{run.path}, seed {run.seed}: the trace moved"


def _show(value: int, unit: str) -> str:
    return show_duration(value) if unit == "time" else f"{value:,}"
