"""``logquake explore``."""

# ruff: noqa: PLC0415 - Spark is imported when it is needed, not before

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table

from sim.cli.exits import Case, defect, exit_codes, say_json
from sim.cli.screen import console, escaped, say, say_step
from sim.cli.terminal import show_table
from sim.errors import SimulationError
from sim.progress import Step

if TYPE_CHECKING:
    from analysis.sweep.explore import Sweep

SEEDS_MAX: Final = 1_000_000
"""Seeds of one sweep."""

_SEEDS: Final = re.compile(r"(\d{1,18})(?:\.\.(\d{1,18}))?")


@dataclass(frozen=True, slots=True)
class ExploreOptions:
    """The options of ``logquake explore``."""

    vary: tuple[str, ...]
    seeds: str
    sets: tuple[str, ...]
    outage: str
    master: str | None
    out: Path | None
    as_json: bool


def explore_command(path: Path, options: ExploreOptions) -> None:
    """Run a sweep, or what is left of it; prints the table and where the report is."""
    with exit_codes():
        seeds = parse_seeds(options.seeds)
        try:
            from analysis.sweep.explore import explore
        except ImportError as error:
            raise SimulationError(
                f"explore needs the analysis libraries ({error.name} is missing): "
                "install logquake[analysis]"
            ) from None
        with _bar(path.stem) as on_progress:
            sweep = explore(
                path,
                options.vary,
                seeds,
                sets=options.sets,
                outage=options.outage,
                master=options.master,
                out=options.out,
                on_progress=on_progress,
                on_space=lambda line: say(line, err=True),
            )
        index = sweep.directory / "report" / "index.html"
        if options.as_json:
            numbers = loads((index.parent / "report.json").read_text(encoding="utf-8"))
            say_json({"directory": str(sweep.directory), "report": str(index), **numbers})
        else:
            _show(sweep)
            say(str(index))
        if not sweep.failed.empty:
            count = len(sweep.failed)
            first = sweep.failed.iloc[0]
            message = f"{count} of {len(sweep.runs)} runs failed; seed {first['seed']}"
            case = Case(path, int(first["seed"]), sweep.directory)
            raise defect(f"{message}: {first['message']}", case)


def parse_seeds(text: str) -> int | range:
    """A number of seeds, counted from 1, or a range such as ``5..20``.

    Raises:
        SimulationError: For anything else, or too many.
    """
    match = _SEEDS.fullmatch(text.strip())
    if match is not None:
        first, last = int(match[1]), match[2]
        seeds = range(1, first + 1) if last is None else range(first, int(last) + 1)
        if 0 < len(seeds) <= SEEDS_MAX:
            return seeds
    raise SimulationError(
        f"--seeds: found {text!r}; give a number such as 50, or a range such as 1..50, "
        f"at most {SEEDS_MAX:,} seeds"
    )


@contextmanager
def _bar(name: str) -> Iterator[Callable[[int, int], None]]:
    """A bar of runs on a terminal; lines of progress for a program that requests them."""
    err = Console(stderr=True)
    if not err.is_terminal:
        say_step(Step(0, None, "starting Spark"))
        yield lambda done, total: say_step(Step(done, total, f"{done} of {total} runs"))
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("runs, left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=err, transient=True) as bar:
        task = bar.add_task(f"{escaped(name)}: starting Spark", total=None)

        def show(done: int, total: int) -> None:
            bar.update(task, description=escaped(name), completed=done, total=total)

        yield show


def _show(sweep: "Sweep") -> None:
    """The table: to a terminal with lines, to a pipe with tabs."""
    from analysis.pages.cells import rows_of, short
    from analysis.sweep.page import sentence
    from analysis.sweep.results import probability, spell, three

    out = console()
    outage = f"outages above {short(sweep.outage_us)}"
    heads = (
        *sweep.varied,
        "lost",
        "down",
        "slow: p99",
        "loss",
        outage,
        "longest time without service",
        "p50",
        "p99",
        "acked/s",
    )
    shown = Table(*heads)
    for row in rows_of(sweep.configurations):
        labels = sweep.labels[int(row["configuration"])].values()
        found = [f"all {row['failed_runs']} runs failed", *("" for _ in range(8))]
        if row["runs"]:
            found = [
                *(cell.text for cell in three(row)),
                probability(row, "loss", "lost_runs"),
                probability(row, "outage", "outages"),
                *(spell(row, name) for name in ("unavailable_us", "p50", "p99")),
                f"{row['throughput']:,.0f}",
            ]
        cells = (*labels, *found)
        if out.is_terminal:
            shown.add_row(*(escaped(cell) for cell in cells))
        else:
            say("\t".join(cells))
    if out.is_terminal:
        show_table(shown)
    out.print(escaped(sentence(sweep)))
    for name, why in sweep.refused:
        out.print(f"[yellow]cannot be[/yellow]  {escaped(name)}: {escaped(why)}")
