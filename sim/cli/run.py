"""``logquake run`` and ``logquake report``."""

# ruff: noqa: PLC0415 - Spark and Arrow are imported when they are needed, not before

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from json import loads
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sim.cli.commands.run_options import RunOptions
from sim.cli.exits import Case, ExitCode, defect, exit_codes, failed, say_json
from sim.cli.screen import say
from sim.cli.terminal import progress_bar, show_card, show_judges, show_verdict, step_bar
from sim.errors import SimulationError
from sim.lifetime import INTERRUPTS, is_ignored
from sim.scenario.estimate.forecast import estimate
from sim.scenario.estimate.space import check_run, space_at
from sim.scenario.loader import load
from sim.scenario.run.directory import keep_only
from sim.trace.kept import LEFT_OUT, Kept, check_kept

if TYPE_CHECKING:
    from sim.scenario.run.hooks import Hooks
    from sim.scenario.run.result import Result
    from sim.scenario.scenario import Scenario


@dataclass(frozen=True, slots=True)
class _Report:
    """A report that was made, and what its judges do not agree on."""

    index: Path
    differences: tuple[str, ...]


OTHERWISE = ("choose an --out on a larger disk", "or add --no-space-check")
"""Cures for a run that is to stay as it is."""

_NAMED = "(ok_unanswered, answered_untold in verdict.json)"
_DIFFER = "the two judges of the run differ"


def run_command(path: Path, options: RunOptions) -> None:
    """Run a scenario; exits with what came of it."""
    case = Case(path)
    with exit_codes(case):
        from sim.cli.hunting.capsules import Seen

        scenario = load(path, options.sets)
        seed = scenario.run.seed if options.seed is None else options.seed
        out = target(scenario, seed, options)
        case.seed = seed
        _check_space(scenario, out, options)
        if not options.as_json:
            show_card(scenario, seed, version("logquake"), str(out))
        seen = Seen(path, scenario, is_changed=options.seed is not None or bool(options.sets))
        result = _run(scenario, seed, out, options, case, seen.hooks)
        if not options.as_json:
            show_verdict(result)
            for line in seen.lines(result):
                say(line)
        made = None
        if options.report and result.complete:
            made = _report([result.directory], None)
        ending = _ending(result, made)
        kept: Kept = options.keep if result.complete and not ending else "all"
        keep_only(result.directory, kept, result.card)
        _say(result, seed, made, kept, as_json=options.as_json)
        raise _exit(result, ending, case)


def target(scenario: "Scenario", seed: int, options: RunOptions) -> Path:
    """The run directory."""
    return options.out or Path("runs") / f"{scenario.name}-s{seed}"


def _check_space(scenario: "Scenario", out: Path, options: RunOptions) -> None:
    """Check that the disk has space for the run; one line if it takes much of it."""
    if options.ignores_space:
        return
    place = space_at(out, replaces=options.force)
    line = check_run(estimate(scenario, options.level), place, OTHERWISE)
    if line:
        say(line if options.keep != "all" else f"{line}; --keep verdict removes it", err=True)


def report_command(runs: Sequence[Path], master: str | None, *, as_json: bool) -> None:
    """Make a report; prints where it is."""
    with exit_codes(Case(directory=runs[0] if runs else None)):
        for directory in runs:
            if not (directory / "run.json").is_file():
                raise SimulationError(
                    f"{directory}: not a run directory (no run.json); give what logquake run wrote"
                )
            check_kept(directory, "trace")
        made = _report(list(runs), master)
        if as_json:
            say_json({"report": str(made.index), "judges_differ": list(made.differences)})
        else:
            show_judges(made.differences)
            say(str(made.index))
        if made.differences:
            wrong = next(run for run in runs if any(_differences(run)))
            raise defect(_DIFFER, Case(directory=wrong))


@contextmanager
def stop_requests() -> Iterator[Callable[[], bool]]:
    """Yields a test for a signal of :data:`INTERRUPTS`; the second one acts as before the block."""
    has_come = False

    def note(number: int, _frame: object) -> None:
        nonlocal has_come
        has_come = True
        signal.signal(number, before[number])

    numbers = [int(number) for number in INTERRUPTS if not is_ignored(number)]
    before = {number: signal.getsignal(number) for number in numbers}
    for number in before:
        signal.signal(number, note)
    try:
        yield lambda: has_come
    finally:
        for known, handler in before.items():
            signal.signal(known, handler)


def _run(
    scenario: "Scenario", seed: int, out: Path, options: RunOptions, case: Case, hooks: "Hooks"
) -> "Result":
    from sim.scenario.run.runner import run

    case.directory = out
    with stop_requests() as should_stop, progress_bar(scenario.name) as on_progress:
        return run(
            scenario,
            seed,
            out,
            force=options.force,
            level=options.level,
            on_progress=on_progress,
            should_stop=should_stop,
            hooks=hooks,
        )


def _report(runs: list[Path], master: str | None) -> "_Report":
    try:
        from analysis.report.write import build
    except ImportError as error:
        raise SimulationError(
            f"the report needs the analysis libraries ({error.name} is missing): "
            "install logquake[analysis]"
        ) from None
    from sim.cli.explain import for_report

    explain = partial(for_report, may_rerun=len(runs) == 1)
    with step_bar("report") as on_progress:
        index = build(runs, master=master, on_progress=on_progress, explain=explain)
    return _Report(index, tuple(line for run in runs for line in _differences(run)))


def _differences(run: Path) -> Iterator[str]:
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


def _say(result: "Result", seed: int, made: "_Report | None", kept: Kept, *, as_json: bool) -> None:
    if as_json:
        say_json(
            {
                "directory": str(result.directory),
                "seed": seed,
                "complete": result.complete,
                "held": result.held,
                "kept": kept,
                "report": None if made is None else str(made.index),
                "judges_differ": None if made is None else list(made.differences),
                "faults_without_effect": list(result.unaffected_faults),
                "unserved": list(result.unserved),
                "verdict": result.verdict,
            }
        )
        return
    if made is not None:
        show_judges(made.differences)
    if kept != "all":
        say(f"kept     {kept}: {' and '.join(LEFT_OUT[kept])} removed from the run directory")
    say(str(result.directory if made is None else made.index))


def _ending(result: "Result", made: "_Report | None") -> str:
    """The defect that judges or clients and brokers show who differ; empty without one."""
    if made is not None and made.differences:
        return _DIFFER
    from sim.scenario.run.result import disputes

    disputed = disputes(result.verdict) if result.complete else ""
    return f"{disputed} {_NAMED}" if disputed else ""


def _exit(result: "Result", ending: str, case: Case) -> typer.Exit:
    if ending:
        return defect(ending, case)
    if not result.complete:
        return failed("interrupted: complete is false in run.json", ExitCode.INTERRUPTED)
    return typer.Exit(ExitCode.HELD if result.held else ExitCode.EXPECTATION_FAILED)
