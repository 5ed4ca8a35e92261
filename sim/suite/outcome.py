"""Outcome of one run, small enough to keep: read from its directory, written as JSON."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from sim.scenario.expect.bounds import Held, found_in
from sim.scenario.run.answer import NAMES, lines
from sim.scenario.run.result import disputes
from sim.trace.run_files import Shape, misfit

Status: TypeAlias = Literal[
    "held", "failed", "interrupted", "no progress", "defect", "bad input", "not deterministic"
]

METRICS: Final = (
    "lost_acked",
    "duplicated",
    "reordered",
    "unavailable.produce.max",
    "unavailable.fetch.max",
    "produce.p50",
    "produce.p99",
    "end_to_end.p99",
)
"""Numbers that are compared with a baseline; more of any is worse."""

_KEPT: Final[Sequence[Status]] = ("held", "failed")
"""Results that the same run would have again."""

_SHAPE: Final[Shape] = {
    "path": str,
    "seed": int,
    "status": str,
    "message": str,
    "expectations": [
        {"name": str, "where": str, "asked": str, "shown": str, "story": str, "held": bool}
    ],
    "faults_without_effect": [str],
    "unserved": [str],
    "answer": [[str]],
    "sizes": {"*": int},
    "offline_us": int,
    "hits": [[str]],
    "records": {"*": int},
    "metrics": {"*": int},
    "rows": {"*": int},
    "table_digests": {"*": str},
    "scenario_digest": str,
    "trace_digest": str,
    "wall_us": int,
    "directory": str,
    "cached": bool,
}


@dataclass(frozen=True, slots=True)
class Outcome:
    """One run's result."""

    path: str
    seed: int
    status: Status
    message: str = ""
    """Of a run that did not come to a verdict: why."""
    expectations: tuple[Held, ...] = ()
    faults_without_effect: tuple[str, ...] = ()
    unserved: tuple[str, ...] = ()
    """Topics that did not take what producers sent, in words."""
    answer: tuple[tuple[str, str, str], ...] = ()
    """Lost, down, slow: name, colour and words, see :mod:`sim.scenario.run.answer`."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Their numbers by name: records, microseconds, microseconds."""
    records: Mapping[str, int] = field(default_factory=dict)
    metrics: Mapping[str, int] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    """Rows of each trace table."""
    table_digests: Mapping[str, str] = field(default_factory=dict)
    scenario_digest: str = ""
    trace_digest: str = ""
    offline_us: int = 0
    """The longest time in which a partition had no leader; ``offline.max``."""
    hits: tuple[tuple[str, ...], ...] = ()
    """Whom each fault hit: its kind, the instants of its beginning and end, and the names that its
    target meant in this run, sorted; no names if nobody filled the role."""
    wall_us: int = 0
    directory: str = ""
    """The run directory, if it was kept."""
    cached: bool = False

    @property
    def is_repeatable(self) -> bool:
        """True if the same run would have the same result, so that it may be cached."""
        return self.status in _KEPT

    @property
    def failures(self) -> list[str]:
        """Complaints, a line each; empty for a run that held."""
        lines = [
            f"{line['name']}{f' ({where})' if (where := line['where']) else ''}: asked "
            f"{line['asked']}, found {line['shown']}"
            f"{f'; {story}' if (story := line['story']) else ''}"
            for line in self.expectations
            if not line["held"]
        ]
        lines += [f"a fault did not take effect: {fault}" for fault in self.faults_without_effect]
        lines += self.unserved
        if self.message:
            lines.append(self.message)
        return lines if self.status != "held" else []

    def as_json(self) -> dict[str, Any]:
        """Plain data; :func:`from_json` reads it."""
        return asdict(self)


def from_json(plain: Mapping[str, Any]) -> Outcome:
    """The outcome that :meth:`Outcome.as_json` gave.

    Raises:
        TypeError: If it is something else.
    """
    wrong = misfit(plain, _SHAPE)
    if wrong or any(len(line) != 3 for line in plain["answer"]):
        raise TypeError(wrong or "answer: lines of three words expected")
    fields = dict(plain)
    fields["expectations"] = tuple(fields["expectations"])
    fields["faults_without_effect"] = tuple(fields["faults_without_effect"])
    fields["unserved"] = tuple(fields["unserved"])
    fields["answer"] = tuple(tuple(line) for line in fields["answer"])
    fields["hits"] = tuple(tuple(hit) for hit in fields["hits"])
    return Outcome(**fields)


def read_outcome(path: str, directory: Path) -> Outcome:
    """The outcome of a run that has ended, from what it left.

    Raises:
        OSError: If there is no card or verdict.
    """
    card = json.loads((directory / "run.json").read_text(encoding="utf-8"))
    verdict = json.loads((directory / "verdict.json").read_text(encoding="utf-8"))
    status: Status = "held" if verdict["held"] else "failed"
    message = "" if card["complete"] else "interrupted before its end"
    disputed = disputes(verdict) if card["complete"] else ""
    if disputed:
        status, message = "defect", disputed
    found = {name: found_in(name, verdict) for name in METRICS}
    return Outcome(
        path=path,
        seed=card["seed"],
        status=status if card["complete"] else "interrupted",
        message=message,
        expectations=tuple(verdict["expectations"]),
        faults_without_effect=tuple(
            f"fault {f['fault']} ({f['kind']} of {f['target']}): {f['effect']}"
            for f in verdict["faults"]
            if not f["took_effect"]
        ),
        unserved=tuple(verdict["unserved"]),
        answer=tuple(lines(verdict["answer"])),
        sizes={name: verdict["answer"][name]["size"] for name in NAMES},
        records=verdict["records"],
        metrics={name: value for name, value in found.items() if value is not None},
        rows=card["rows"],
        table_digests=card.get("table_digests", {}),
        scenario_digest=card["scenario_digest"],
        trace_digest=card["trace_digest"],
        offline_us=found_in("offline.max", verdict) or 0,
        hits=tuple(_hit(fault) for fault in verdict["faults"]),
        wall_us=card["wall_us"],
        directory=directory.as_posix(),
    )


def _hit(fault: Mapping[str, Any]) -> tuple[str, ...]:
    names = sorted(name for name in fault["resolved"].split(", ") if name)
    return (fault["kind"], str(fault["began_us"]), str(fault["healed_us"]), *names)
