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
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import SparkSession

from analysis.pages.cells import Picture
from analysis.report.progress import Progress, silent
from analysis.spark import class_archive, java, tables
from analysis.spark.session import explained as named_errors
from analysis.spark.session import fitted, using
from analysis.verify.run_files import RunFiles, open_run
from sim.errors import SimulationError

if TYPE_CHECKING:
    from analysis.report.findings import Drawable, Findings

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
    prepares: bool = False,
) -> Path:
    """Writes the report of each run, and an overview if there are several.

    Args:
        run_dirs: Run directories, at least one.
        master: Spark master URL; ``None`` for every core of this machine.
        on_progress: Called with the name of each step.
        explain: Called with each run's directory while Spark is at work: what ``logquake explain
            --json`` says of it, for the first screen.
        prepares: Whether Java's classes are kept for later reports, which start sooner then.

    Returns:
        The page to open: the run's ``report/index.html``, or the overview's.

    Raises:
        SimulationError: If a directory is no run, its trace is of another version, there is no
            Java runtime or no master, or a worker does not see the directory; nothing is written
            for that run then.
    """
    if not run_dirs:
        raise SimulationError("no run directory was given")
    runs = [open_run(directory) for directory in run_dirs]
    report = on_progress or silent
    report("starting Spark")
    summaries = []
    rows = [tables.rows(files.directory) for files in runs]
    is_long = sum(rows) >= LONG_FROM or len(runs) >= MANY_RUNS
    with using(master, is_long=is_long, meanwhile=import_analysis, keeps_classes=prepares) as spark:
        for place, files in enumerate(runs, start=1):
            prefix = f"{files.name} ({place} of {len(runs)}): " if len(runs) > 1 else ""
            with named_errors(spark, files.directory), fitted(spark, rows[place - 1]):
                _one(spark, files, explain, _prefixed(report, prefix))
            summaries.append(json.loads((files.directory / "report" / "report.json").read_text()))
    if prepares:
        report("keeping Java's classes for later reports")
        class_archive.keep(java.find())
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
    """Work of Python while it waits for Spark: explains the run, and draws.

    In the thread that hears a user's interrupt, for an explanation may run the seed again.
    """

    def __init__(self, directory: Path, explain: Explain) -> None:
        self._directory = directory
        self._explain = explain
        self.why: Mapping[str, Any] = {}
        self.pictures: Sequence[Picture] = ()

    def explain(self) -> None:
        """Imports matplotlib, and explains the run."""
        import_drawing()
        self.why = self._explain(self._directory)

    def draw(self, drawable: "Drawable") -> None:
        """Draws all figures."""
        from analysis.report.figures.draw import draw  # noqa: PLC0415 - see import_drawing

        self.pictures = draw(drawable)


def import_analysis() -> None:
    """Imports what computes and writes a report: half as long as Java's start."""
    from analysis.report import findings, page, summary, timeline_page  # noqa: F401, PLC0415


def import_drawing() -> None:
    """Imports matplotlib."""
    from analysis.report.figures import draw  # noqa: F401, PLC0415


def _prefixed(report: Progress, prefix: str) -> Progress:
    return lambda step: report(prefix + step)


def _one(spark: SparkSession, files: RunFiles, explain: Explain, report: Progress) -> None:
    target = files.directory / "report"
    half = files.directory / ".report-unfinished"
    earlier = files.directory / ".report-earlier"
    _restore(target, earlier)
    shutil.rmtree(half, ignore_errors=True)
    (half / "tables").mkdir(parents=True)
    (half / "figures").mkdir()
    from analysis.report import findings  # noqa: PLC0415 - see import_analysis

    try:
        beside = _Beside(files.directory, explain)
        found = findings.gather(spark, files, half / "tables", report, beside.explain, beside.draw)
        report("writing the page")
        _fill(half, found, beside.why, beside.pictures)
        _swap(half, target, earlier)
    finally:
        _restore(target, earlier)
        shutil.rmtree(half, ignore_errors=True)


def _fill(
    half: Path, found: "Findings", why: Mapping[str, Any], pictures: Sequence[Picture]
) -> None:
    from analysis.report import agreement, page, timeline_page  # noqa: PLC0415
    from analysis.report.summary import summary  # noqa: PLC0415

    compared = agreement.compare(found)
    for picture in pictures:
        if picture.svg:
            (half / "figures" / f"{picture.name}.svg").write_text(picture.svg)
    for name, frame in found.frames.items():
        frame.to_parquet(half / "tables" / f"{name}.parquet", index=False)
    explored = timeline_page.data(found)
    numbers = summary(found, compared) | {"explanation": why, "timeline": explored}
    (half / "report.json").write_text(_by_line(numbers), encoding="utf-8")
    text = page.page(found, compared, pictures, explored, why)
    (half / "index.html").write_text(text, encoding="utf-8")


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
