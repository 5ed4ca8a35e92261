"""``logquake compare``: simulated runs and rehearsals in one table."""

# ruff: noqa: PLC0415 - templates are imported when a page is written, not before

from collections.abc import Sequence
from dataclasses import dataclass
from json import dumps
from pathlib import Path
from typing import Any

import typer
from rich.table import Table

from sim.cli.exits import ExitCode, exit_codes, say_json
from sim.cli.screen import console, escaped, say
from sim.cli.terminal import show_table
from sim.errors import SimulationError
from sim.suite.comparison.groups import Comparison, as_json, compare
from sim.suite.comparison.tolerance import Tolerance
from sim.units import SECOND


@dataclass(frozen=True, slots=True)
class CompareOptions:
    """The options of ``logquake compare``."""

    against: Sequence[Path]
    out: Path | None
    time_share: float
    time_floor_s: float
    latency_factor: float
    records_factor: float
    as_json: bool


def compare_command(runs: Sequence[Path], options: CompareOptions) -> None:
    """Print the table; exits 1 if a row is outside of its tolerance."""
    with exit_codes():
        if not 0 <= options.time_floor_s <= 1e6:
            raise SimulationError(
                f"--time-floor: found {options.time_floor_s}; allowed: 0 to 1,000,000 seconds"
            )
        tolerance = Tolerance(
            options.time_share,
            round(options.time_floor_s * SECOND),
            options.latency_factor,
            options.records_factor,
        )
        found = compare(runs, options.against, tolerance)
        plain = as_json(found)
        if options.out is not None:
            _write(plain, options.out)
        if options.as_json:
            say_json(plain)
        else:
            _show(found)
            if options.out is not None:
                say(str(options.out / "compare.html"))
        raise typer.Exit(ExitCode.HELD if found.is_inside else ExitCode.EXPECTATION_FAILED)


def _write(plain: dict[str, Any], directory: Path) -> None:
    try:
        from analysis.comparison.page import page
    except ImportError as error:
        raise SimulationError(
            f"--out needs the analysis libraries ({error.name} is missing): "
            "install logquake[analysis]"
        ) from None
    directory.mkdir(parents=True, exist_ok=True)
    text = dumps(plain, indent=1, ensure_ascii=False) + "\n"
    (directory / "compare.json").write_text(text, encoding="utf-8")
    (directory / "compare.html").write_text(page(plain), encoding="utf-8")


def _show(found: Comparison) -> None:
    """The table: to a terminal with lines, to a pipe with tabs."""
    out = console()
    for key, one, other in found.settings:
        say(f"setting  {key}: {one} | {other}")
    counts = [
        f"{name} ({len(group)})" for name, group in zip(found.names, found.groups, strict=True)
    ]
    heads = ("number: min / median / max", *counts, "")
    shown = Table(*heads)
    for row in found.rows:
        word = "inside" if row.is_inside else "OUTSIDE"
        cells = (row.name, row.found, row.reference)
        if out.is_terminal:
            colour = "green" if row.is_inside else "red"
            shown.add_row(*map(escaped, cells), f"[{colour}]{word}[/{colour}]")
        else:
            say("\t".join((*cells, word)))
    if out.is_terminal:
        show_table(shown)
    for words in found.tolerance.words():
        say(f"allowed  {words}")
    outside = sum(not row.is_inside for row in found.rows)
    say(f"{outside} of {len(found.rows)} rows are outside")
