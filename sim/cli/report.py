"""``logquake report``, and the report of a run that has just ended.

Nothing of the simulator is imported before Java starts: it takes longer than a small query.
"""

# ruff: noqa: PLC0415 - Spark and the simulator are imported when they are needed, not before

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from json import loads
from pathlib import Path
from typing import Any, Final

from sim.cli.exits import Case, defect, exit_codes, say_json
from sim.cli.screen import console, escaped, say, step_bar
from sim.errors import SimulationError
from sim.trace.kept import check_kept
from sim.trace.run_files import CARD, VERDICT, read_mapping
from sim.units import SECOND, Micros

DIFFER: Final = "the two judges of the run differ"

RERUN_MAX: Final[Micros] = 15 * SECOND
"""Wall time of a run from which a report leaves it to the user to try changes."""


@dataclass(frozen=True, slots=True)
class Report:
    """A report that was made, and what its judges do not agree on."""

    index: Path
    differences: tuple[str, ...]


def report_command(
    runs: Sequence[Path], master: str | None, *, prepares: bool, as_json: bool
) -> None:
    """Make a report; prints where it is."""
    with exit_codes(Case(directory=runs[0] if runs else None)):
        if prepares and master is not None:
            raise SimulationError(
                f"--prepare beside --master {master}: it keeps the classes of this machine's own "
                "Java, which a report with a master does not start alone; leave one of both out"
            )
        for directory in runs:
            if not (directory / "run.json").is_file():
                raise SimulationError(
                    f"{directory}: not a run directory (no run.json); give what logquake run wrote"
                )
            check_kept(directory, "trace")
        made = report(list(runs), master, prepares=prepares)
        if as_json:
            say_json({"report": str(made.index), "judges_differ": list(made.differences)})
        else:
            show_judges(made.differences)
            say(str(made.index))
        if made.differences:
            wrong = next(run for run in runs if any(differences(run)))
            raise defect(DIFFER, Case(directory=wrong))


def report(runs: list[Path], master: str | None, *, prepares: bool = False) -> Report:
    """Makes a report, with the explanation of what is not green.

    Args:
        runs: Run directories.
        master: Spark's master URL; ``None``: this machine's cores.
        prepares: Whether Java's classes are kept for later reports.
    """
    try:
        from analysis.report.write import build
    except ImportError as error:
        raise SimulationError(
            f"the report needs the analysis libraries ({error.name} is missing): "
            "install logquake[analysis]"
        ) from None
    explain = partial(for_report, may_rerun=len(runs) == 1)
    with step_bar("report") as on_progress:
        index = build(
            runs, master=master, on_progress=on_progress, explain=explain, prepares=prepares
        )
    return Report(index, tuple(line for run in runs for line in differences(run)))


def differences(run: Path) -> Iterator[str]:
    """Differences of the judges, a line for each number; an interrupted run is not compared."""
    found = loads((run / "report" / "report.json").read_text(encoding="utf-8"))
    if found["complete"] is False or not (run / "verdict.json").is_file():
        return
    for item in found["differences"]:
        of = f" of topic {item['topic']}" if item["topic"] else ""
        of += f" of cluster {item['cluster']}" if item.get("cluster") else ""
        yield f"{run}: {item['name']}{of}: {item['checker']} inside, {item['spark']} on disk"
    for sentence in found["inputs"]["differences"]:
        yield f"{run}: {sentence}"


def show_judges(differences: Sequence[str]) -> None:
    """Agreement of the checker and Spark; a line for each number on which they differ."""
    out = console()
    if not differences:
        out.print("[bold]judges[/bold]   agree to the record: the checker inside, Spark on disk")
    for line in differences:
        out.print(f"[red]differ[/red]   {escaped(line)}")


def for_report(directory: Path, *, may_rerun: bool) -> dict[str, Any]:
    """The explanation that a report shows: of what is not green, tried with changes if it is red.

    Args:
        directory: A run that has ended.
        may_rerun: Whether a run of at most :data:`RERUN_MAX` may be made again with changes.

    Returns:
        :func:`explanation`, with ``is_tried`` and ``wall_us``, the time of the run; empty if
        everything is green, or the run's trace does not explain it.

    Raises:
        SimulationError: If the card or the verdict is damaged.
    """
    card, verdict = directory / "run.json", directory / "verdict.json"
    if not card.is_file() or not verdict.is_file():
        return {}
    answer = read_mapping(verdict, VERDICT).get("answer", {})
    levels = [answer[name]["level"] for name in ("lost", "down") if name in answer]
    if not {"red", "amber"} & set(levels):
        return {}
    wall_us = int(read_mapping(card, CARD).get("wall_us", 0))
    from sim.cli.explain import explanation  # the whole simulator, which runs a seed again

    is_tried = may_rerun and "red" in levels and wall_us <= RERUN_MAX
    try:
        found = explanation(directory, "", rerun=is_tried, hear=_silent)
    except SimulationError:
        return {}
    return found | {"is_tried": is_tried, "wall_us": wall_us}


def _silent(_: str) -> None:
    """Ignores a line."""
