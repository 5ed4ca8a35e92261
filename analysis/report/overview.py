"""The page over several runs: one row per run, and the confidence interval of the rate of loss.

Source of the interval: Wilson (1927), "Probable Inference"; at 95 percent.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scipy import stats

from analysis.pages import script
from analysis.pages.markup import render


@dataclass(frozen=True, slots=True)
class RunRow:
    """A row of the table; durations are microseconds, or ``None`` without data."""

    name: str
    link: str
    seed: object
    acked: int
    lost: int
    duplicated: int
    divergent: int
    p99: float | None
    gap: float | None
    agrees: bool


def page(
    directories: Sequence[Path], summaries: Sequence[Mapping[str, object]], target: Path
) -> str:
    """The overview as HTML; links are relative to its directory."""
    pairs = zip(directories, summaries, strict=True)
    runs = [_run(directory, summary, target) for directory, summary in pairs]
    lossy = [run for run in runs if run.lost]
    rate = stats.binomtest(len(lossy), len(runs)).proportion_ci(method="wilson")
    return render(
        "analysis.report",
        "overview.html",
        script.TABLES,
        runs=runs,
        lossy=lossy,
        low=rate.low,
        high=rate.high,
    )


def _run(directory: Path, summary: Mapping[str, object], target: Path) -> RunRow:
    def records(name: str) -> int:
        return int(_number(summary, "durability", "records", name) or 0)

    return RunRow(
        directory.name,
        Path(os.path.relpath(directory / "report" / "index.html", target)).as_posix(),
        summary.get("seed"),
        records("acked"),
        records("lost_acked"),
        records("duplicated"),
        records("divergent"),
        p99=_number(summary, "latency_us", "produce", "p99"),
        gap=_number(summary, "availability", "produce_max_us"),
        agrees=summary.get("agrees_with_checker") is True,
    )


def _number(value: object, *keys: str) -> float | None:
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, int | float) else None
