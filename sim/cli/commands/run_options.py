"""The options of ``logquake run``, and those that other commands share with it; light."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Literal

import typer


class Level(StrEnum):
    """Levels of tracing; the verdict is the same."""

    FACTS = "facts"
    DETAIL = "detail"


class Keep(StrEnum):
    """Parts of a run directory that stay when its judges have run."""

    ALL = "all"
    LOGS = "logs"
    VERDICT = "verdict"


Report = Annotated[bool, typer.Option("--report", help="Make the report as well.")]
Trace = Annotated[Level, typer.Option(help="How much to record.")]
Kept = Annotated[
    Keep,
    typer.Option(
        "--keep",
        help="What stays on the disk when the run is judged: logs leaves out the trace, verdict "
        "the segment files, too.",
    ),
]
KeptOfMany = Annotated[
    Keep | None,
    typer.Option(
        "--keep",
        help="What stays of each run, those that held included; default: all of a run that did "
        "not hold, nothing of others.",
    ),
]
Estimate = Annotated[
    bool,
    typer.Option(
        "--estimate", help="Print the time, memory and disk that the run would need; run nothing."
    ),
]
NoCache = Annotated[
    bool, typer.Option("--no-cache", help="With --estimate: measure this machine again.")
]
NoSpaceCheck = Annotated[
    bool, typer.Option("--no-space-check", help="Run although it may fill the disk.")
]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of ``logquake run``."""

    seed: int | None
    sets: tuple[str, ...]
    out: Path | None
    force: bool
    report: bool
    level: Literal["facts", "detail"]
    keep: Literal["all", "logs", "verdict"]
    ignores_space: bool
    """True if nobody is to look for space on the disk."""
    as_json: bool
