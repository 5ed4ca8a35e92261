"""``logquake run`` and ``logquake report``."""

# ruff: noqa: PLC0415 - Spark and Arrow are imported when they are needed, not before

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import typer

from sim.cli.answers import ExitCode, exit_codes, failed, say_json
from sim.cli.terminal import progress_bar, show_card, show_verdict, step_bar
from sim.errors import SimulationError
from sim.scenario.loader import load

if TYPE_CHECKING:
    from sim.scenario.model import Scenario
    from sim.scenario.result import Result


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The options of ``logquake run``."""

    seed: int | None
    sets: tuple[str, ...]
    out: Path | None
    force: bool
    report: bool
    level: Literal["facts", "detail"]
    as_json: bool


def run_command(path: Path, options: RunOptions) -> None:
    """Run a scenario; exits with what came of it."""
    with exit_codes():
        scenario = load(path, options.sets)
        seed = scenario.run.seed if options.seed is None else options.seed
        out = options.out or Path("runs") / f"{scenario.name}-s{seed}"
        if not options.as_json:
            show_card(scenario, seed, version("logquake"), str(out))
        result = _run(scenario, seed, out, options)
        index = None
        if options.report and result.complete:
            index = _report([result.directory], None)
        _tell(result, seed, index, as_json=options.as_json)
        raise _exit(result)


def report_command(runs: Sequence[Path], master: str | None, *, as_json: bool) -> None:
    """Make a report; prints where it is."""
    with exit_codes():
        for directory in runs:
            if not (directory / "run.json").is_file():
                raise SimulationError(
                    f"{directory}: not a run directory (no run.json); give what logquake run wrote"
                )
        index = _report(list(runs), master)
        if as_json:
            say_json({"report": str(index)})
        else:
            typer.echo(str(index))


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Whether SIGINT or SIGTERM has come; a second one ends the process the ordinary way."""
    asked = False

    def ask(number: int, _frame: object) -> None:
        nonlocal asked
        asked = True
        signal.signal(number, before[number])

    numbers = (signal.SIGINT, signal.SIGTERM)
    before = {int(number): signal.getsignal(number) for number in numbers}
    for number in before:
        signal.signal(number, ask)
    try:
        yield lambda: asked
    finally:
        for known, handler in before.items():
            signal.signal(known, handler)


def _run(scenario: "Scenario", seed: int, out: Path, options: RunOptions) -> "Result":
    from sim.scenario.run import run

    with stop_requests() as should_stop, progress_bar(scenario.name) as on_progress:
        return run(
            scenario,
            seed,
            out,
            force=options.force,
            level=options.level,
            on_progress=on_progress,
            should_stop=should_stop,
        )


def _report(runs: list[Path], master: str | None) -> Path:
    try:
        from analysis.report import build
    except ImportError as error:
        raise SimulationError(
            f"the report needs the analysis libraries ({error.name} is missing): "
            "install logquake[analysis]"
        ) from None
    with step_bar("report") as on_progress:
        return build(runs, master=master, on_progress=on_progress)


def _tell(result: "Result", seed: int, index: Path | None, *, as_json: bool) -> None:
    if as_json:
        say_json(
            {
                "directory": str(result.directory),
                "seed": seed,
                "complete": result.complete,
                "held": result.held,
                "report": None if index is None else str(index),
                "faults_without_effect": list(result.unaffected_faults),
                "verdict": result.verdict,
            }
        )
        return
    show_verdict(result)
    typer.echo(str(index or result.directory))


def _exit(result: "Result") -> typer.Exit:
    if not result.complete:
        return failed("interrupted: complete is false in run.json", ExitCode.INTERRUPTED)
    return typer.Exit(ExitCode.HELD if result.held else ExitCode.EXPECTATION_FAILED)
