"""Two runs side by side: which settings differ, the three numbers, and where they part."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sim.errors import SimulationError
from sim.scenario.run.answer import lines
from sim.scenario.text.yaml import ReadError, read
from sim.trace.difference import Divergence, earliest_difference, lonely_tables
from sim.trace.kept import check_kept
from sim.trace.run_files import CARD, VERDICT, read_mapping
from sim.units import show_instant

_COUNTS: Final = ("sent", "acked", "failed", "unknown", "lost_acked", "duplicated", "reordered")


@dataclass(frozen=True, slots=True)
class Pair:
    """A value of both runs."""

    name: str
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class TwoRuns:
    """Differences of two runs; all empty, and no divergence, if they are one."""

    settings: tuple[Pair, ...]
    """Keys of the scenarios, seed and version that differ; ``-`` where a side has none."""
    answers: tuple[Pair, ...]
    """Lost, down, slow: of both, whether they differ or not."""
    counts: tuple[Pair, ...]
    """Numbers of records that differ."""
    divergence: Divergence | None
    """The first row, in simulated time, that they do not have in common."""
    lonely: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    """Tables that only one of them has, as of another level; they are not compared."""

    @property
    def is_equal(self) -> bool:
        """True if nothing differs."""
        differs = any(pair.first != pair.second for pair in self.answers)
        return not (self.settings or self.counts or differs) and self.divergence is None


def compare(first: Path, second: Path) -> TwoRuns:
    """Compares two run directories.

    Args:
        first: Directory of a run, or its ``verdict.json``.
        second: The other one.

    Raises:
        SimulationError: If one is no run directory, or a file of it is damaged.
    """
    sides = [_Side(path.parent if path.is_file() else path) for path in (first, second)]
    keys = dict.fromkeys([*sides[0].settings, *sides[1].settings])
    pairs = (Pair(key, *(side.settings.get(key, "-") for side in sides)) for key in keys)
    names = [name for name in _COUNTS if any(name in side.records for side in sides)]
    counts = (Pair(n, *(f"{side.records.get(n, 0):,}" for side in sides)) for n in names)
    traces = [side.directory / "trace" for side in sides]
    here, there = lonely_tables(*traces)
    both = zip(sides[0].answer, sides[1].answer, strict=True)
    return TwoRuns(
        settings=tuple(pair for pair in pairs if pair.first != pair.second),
        answers=tuple(Pair(name, one, other) for (name, _, one), (_, _, other) in both),
        counts=tuple(pair for pair in counts if pair.first != pair.second),
        divergence=earliest_difference(*traces),
        lonely=(tuple(here), tuple(there)),
    )


class _Side:
    """One run: what its files say."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        for name in ("run.json", "verdict.json", "scenario.yaml"):
            if not (directory / name).is_file():
                raise SimulationError(
                    f"{directory}: no {name}; give the directory that logquake run wrote"
                )
        check_kept(directory, "trace")
        card = read_mapping(directory / "run.json", CARD)
        verdict = read_mapping(directory / "verdict.json", VERDICT)
        if "answer" not in verdict:
            raise SimulationError(
                f"{directory / 'verdict.json'}: written by an older version; run the scenario again"
            )
        self.records: Mapping[str, int] = verdict.get("records", {})
        self.answer = lines(verdict["answer"])
        self.settings = {
            "seed": str(card.get("seed")),
            "logquake": str(card.get("logquake")),
            **dict(leaves(plain_scenario(directory / "scenario.yaml"), "")),
        }


def plain_scenario(path: Path) -> object:
    """Contents of a scenario file as plain data.

    Raises:
        SimulationError: If it is no YAML.
    """
    try:
        return read(path.read_text(encoding="utf-8"), str(path)).data
    except ReadError as error:
        raise SimulationError(f"{path}: damaged: {error}") from None


def leaves(value: object, where: str) -> Iterator[tuple[str, str]]:
    """Leaves of a scenario by their paths; items of a list by their names, else their places."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from leaves(item, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        for place, item in enumerate(value):
            name = item.get("name", place) if isinstance(item, Mapping) else place
            yield from leaves(item, f"{where}[{name}]")
    else:
        yield where, value if isinstance(value, str) else json.dumps(value)


def words(found: TwoRuns, names: tuple[str, str]) -> Iterator[str]:
    """A comparison in lines.

    Args:
        found: The comparison.
        names: Words for the two runs.
    """
    for name, tables in zip(names, found.lonely, strict=True):
        if tables:
            yield f"compared without {', '.join(tables)}: only {name} has them (--trace)"
    if found.is_equal:
        rows = "every row of the tables that both have" if any(found.lonely) else "every row"
        yield f"the two runs are one: settings, numbers and {rows} are equal"
        return
    for pair in found.settings:
        yield f"setting  {pair.name}: {pair.first} | {pair.second}"
    width = max(map(len, names))
    for pair in found.answers:
        yield f"{pair.name:8} {names[0]:{width}}  {pair.first}"
        yield f"{'':8} {names[1]:{width}}  {pair.second}"
    for pair in found.counts:
        yield f"records  {pair.name}: {pair.first} | {pair.second}"
    if found.divergence is not None:
        yield f"parted   at {show_instant(found.divergence.t_us)}, {found.divergence}"


def as_json(found: TwoRuns) -> dict[str, Any]:
    """The comparison as plain data."""
    parted = found.divergence
    return {
        **{
            kind: {pair.name: [pair.first, pair.second] for pair in pairs}
            for kind, pairs in (
                ("settings", found.settings),
                ("answer", found.answers),
                ("records", found.counts),
            )
        },
        "equal": found.is_equal,
        "not_compared": list(map(list, found.lonely)),
        "divergence": None
        if parted is None
        else {
            "t_us": parted.t_us,
            "table": parted.table,
            "row": parted.number,
            "first": parted.first,
            "second": parted.second,
        },
    }
