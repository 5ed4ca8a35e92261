"""Reports of one run or many: a page, its figures, its numbers and its tables.

``report/`` in the run directory holds ``index.html`` (self-contained), ``report.json``,
``figures/*.svg`` and ``tables/*.parquet``. It is built beside its place and moved there when it is
whole, so an interrupted report leaves the earlier one. Of several runs each has its own report, and
``report/`` of their common directory has an overview.
"""

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from pyspark.sql import SparkSession

from analysis.report import agreement, findings, latency, page, timeline_page
from analysis.report.cells import rows_of
from analysis.report.findings import Findings
from analysis.report.kafka_metrics import metrics
from analysis.report.progress import Progress, silent
from analysis.spark import histogram, tables
from analysis.spark.session import explained as named_errors
from analysis.spark.session import fitted, using
from analysis.verify import availability
from sim.errors import SimulationError

FORMAT: Final = 1
"""Version of ``report.json``."""

LONG_FROM: Final = 5_000_000
"""Rows from which Spark's code is worth the time of a better compiler."""

MANY_RUNS: Final = 5
"""Runs from which it is, too, of any size.

Of six small ones the first three took 118 s of processor time with it and 100 s without, each later
one about 20 s; without it the second and third took 31 s each.
"""


Explain = Callable[[Path], Mapping[str, Any]]
"""Output of ``logquake explain --json`` on a run; empty where there is nothing to explain."""


def _without(_: Path) -> Mapping[str, Any]:
    return {}


def build(
    run_dirs: Sequence[Path],
    *,
    master: str | None = None,
    on_progress: Progress | None = None,
    explain: Explain = _without,
) -> Path:
    """Writes the report of each run, and an overview if there are several.

    Args:
        run_dirs: Run directories, at least one.
        master: Spark master URL; ``None`` for every core of this machine.
        on_progress: Called with the name of each step.
        explain: Called with each run's directory while Spark is at work: what ``logquake explain
            --json`` says of it, for the first screen.

    Returns:
        The page to open: the run's ``report/index.html``, or the overview's.

    Raises:
        SimulationError: If a directory is no run, its trace is of another version, there is no
            Java runtime or no master, or a worker does not see the directory; nothing is written
            for that run then.
    """
    if not run_dirs:
        raise SimulationError("no run directory was given")
    runs = [findings.open_run(directory) for directory in run_dirs]
    report = on_progress or silent
    report("starting Spark")
    summaries = []
    rows = [tables.rows(files.directory) for files in runs]
    is_long = sum(rows) >= LONG_FROM or len(runs) >= MANY_RUNS
    with using(master, is_long=is_long) as spark:
        for place, files in enumerate(runs, start=1):
            prefix = f"{files.name} ({place} of {len(runs)}): " if len(runs) > 1 else ""
            with named_errors(spark, files.directory), fitted(spark, rows[place - 1]):
                _one(spark, files, explain, _prefixed(report, prefix))
            summaries.append(json.loads((files.directory / "report" / "report.json").read_text()))
    if len(runs) == 1:
        return runs[0].directory / "report" / "index.html"
    from analysis.report import overview  # noqa: PLC0415 - one run needs no statistics (1 s)

    shared = Path(os.path.commonpath([files.directory.resolve() for files in runs]))
    target = shared / "report"
    target.mkdir(exist_ok=True)
    directories = [files.directory.resolve() for files in runs]
    (target / "index.html").write_text(overview.page(directories, summaries, target))
    return target / "index.html"


class _Beside:
    """Work of Python while it waits for Spark: imports matplotlib, explains the run.

    In the thread that hears a user's interrupt, for an explanation may run the seed again.
    """

    def __init__(self, directory: Path, explain: Explain) -> None:
        self._directory = directory
        self._explain = explain
        self.why: Mapping[str, Any] = {}

    def prepare(self) -> None:
        """Does all of it."""
        from analysis.report.figures.draw import draw  # noqa: PLC0415 - as long as Java's start

        self.draw = draw
        self.why = self._explain(self._directory)


def _prefixed(report: Progress, prefix: str) -> Progress:
    return lambda step: report(prefix + step)


def _one(spark: SparkSession, files: findings.RunFiles, explain: Explain, report: Progress) -> None:
    target = files.directory / "report"
    half = files.directory / ".report-unfinished"
    earlier = files.directory / ".report-earlier"
    _restore(target, earlier)
    shutil.rmtree(half, ignore_errors=True)
    (half / "tables").mkdir(parents=True)
    (half / "figures").mkdir()
    try:
        beside = _Beside(files.directory, explain)
        found = findings.gather(spark, files, half / "tables", report, beside.prepare)
        report("drawing")
        pictures = beside.draw(found)
        compared = agreement.compare(found)
        for picture in pictures:
            if picture.svg:
                (half / "figures" / f"{picture.name}.svg").write_text(picture.svg)
        for name, frame in found.frames.items():
            frame.to_parquet(half / "tables" / f"{name}.parquet", index=False)
        explored = timeline_page.data(found)
        numbers = summary(found, compared) | {"explanation": beside.why, "timeline": explored}
        (half / "report.json").write_text(_by_line(numbers), encoding="utf-8")
        text = page.page(found, compared, pictures, explored, beside.why)
        (half / "index.html").write_text(text, encoding="utf-8")
        _swap(half, target, earlier)
    finally:
        _restore(target, earlier)
        shutil.rmtree(half, ignore_errors=True)


def _swap(new: Path, target: Path, earlier: Path) -> None:
    """Replaces a directory by another one; at each instant one of the two is whole."""
    if target.exists():
        target.rename(earlier)
    new.rename(target)
    shutil.rmtree(earlier, ignore_errors=True)


def _restore(target: Path, earlier: Path) -> None:
    """Restores the directory that a process left aside when it ended within :func:`_swap`."""
    if earlier.exists() and not target.exists():
        earlier.rename(target)
    shutil.rmtree(earlier, ignore_errors=True)


def _by_line(numbers: Mapping[str, object]) -> str:
    """JSON with a line for each key: long lists of numbers would be all line breaks otherwise."""
    lines = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in numbers.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def summary(found: Findings, compared: Sequence[agreement.JudgedNumber]) -> dict[str, object]:
    """Contents of ``report.json``. Instants and durations are microseconds."""
    differences = [
        {
            "cluster": item.cluster,
            "topic": item.topic,
            "name": item.name,
            "spark": item.ours,
            "checker": item.checker,
        }
        for item in compared
        if not item.is_same
    ]
    stages = {
        latency.STAGES[int(row["stage"])][0]: {
            name: float(row[name]) for name in (*histogram.QUANTILES, "max", "mean")
        }
        for row in rows_of(found.frames["stages"])
    }
    return {
        "format": FORMAT,
        "run": found.files.name,
        "claim": found.files.scenario.get("claim"),
        "seed": found.files.card.get("seed"),
        "complete": found.files.card.get("complete"),
        "verdict": page.sentence(found.totals),
        "durability": {"records": found.totals, "topics": found.topics},
        **({"processing": found.processing} if found.processing else {}),
        **({"sharing": found.sharing} if found.sharing else {}),
        **({"mirroring": found.mirroring} if found.mirroring else {}),
        **({"connecting": found.connecting} if found.connecting else {}),
        "examples": found.examples,
        "unreadable": rows_of(found.unreadable),
        "agrees_with_checker": bool(found.files.verdict)
        and not differences
        and not found.inputs.differences,
        "differences": differences,
        "inputs": {
            "compared": found.inputs.compared,
            "differences": [each.sentence for each in found.inputs.differences],
            "not_compared": found.inputs.unchecked,
        },
        "availability": _availability(found),
        "latency_us": {
            **found.latency_us,
            "stages": stages,
            "relative_error": histogram.RELATIVE_ERROR,
        },
        "replication": rows_of(found.frames["replication"]),
        "metrics": [asdict(each) for each in metrics(found.frames, found.end_us, found.width_us)],
        "faults": [
            {
                "fault": fault.number,
                "kind": fault.kind,
                "target": fault.target,
                "resolved": fault.resolved,
                "from_us": fault.from_us,
                "to_us": fault.to_us if fault.healed else None,
                "took_effect": fault.took_effect,
            }
            for fault in found.faults
        ],
    }


def _availability(found: Findings) -> dict[str, object]:
    """Longest gaps under the verdict's own names, and all gaps long enough to be reported."""
    partitions: dict[str, dict[str, int]] = {}
    listed: dict[str, object] = {}
    largest: dict[str, int] = {}
    for kind in ("produce", "fetch"):
        rows = rows_of(found.frames[f"{kind}_gaps"])
        for row in rows:
            found_gaps = partitions.setdefault(f"{row['topic']}-{row['partition']}", {})
            down = int(row["gap_us"]) if row["gap_us"] > availability.REPORTED_FROM else 0
            found_gaps[f"{kind}_down_us"] = found_gaps.get(f"{kind}_down_us", 0) + down
            if row["is_longest"]:
                found_gaps[f"{kind}_us"] = int(row["gap_us"])
                found_gaps[f"{kind}_from_us"] = int(row["from_us"])
        if rows:
            largest[f"{kind}_max_us"] = max(int(row["gap_us"]) for row in rows)
        listed[f"{kind}_gaps"] = [
            {
                "topic": str(row["topic"]),
                "partition": int(row["partition"]),
                "from_us": int(row["from_us"]),
                "to_us": int(row["to_us"]),
            }
            for row in rows
            if row["gap_us"] > availability.REPORTED_FROM
        ]
    offline = {
        f"{row['topic']}-{row['partition']}": {
            name: int(row[name]) for name in ("max_us", "from_us", "total_us")
        }
        for row in rows_of(found.frames["offline"])
    }
    return {
        **largest,
        "offline_max_us": max((each["max_us"] for each in offline.values()), default=0),
        "offline": offline,
        "partitions": partitions,
        **listed,
        "reported_from_us": availability.REPORTED_FROM,
    }
