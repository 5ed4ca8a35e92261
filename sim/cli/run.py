"""``logquake run``."""

# ruff: noqa: PLC0415 - Spark and Arrow are imported when they are needed, not before

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sim.cli.commands.run_options import RunOptions
from sim.cli.exits import Case, ExitCode, defect, exit_codes, failed, say_json
from sim.cli.report import DIFFER, Report, report, show_judges
from sim.cli.screen import say
from sim.cli.terminal import progress_bar, show_card, show_verdict
from sim.lifetime import INTERRUPTS, is_ignored
from sim.scenario.estimate.forecast import estimate
from sim.scenario.estimate.space import check_run, space_at
from sim.scenario.loader import load
from sim.scenario.run.directory import keep_only
from sim.scenario.run.hooks import NO_HOOKS
from sim.scenario.text.capsules import is_capsule_file
from sim.trace.kept import LEFT_OUT, Kept

if TYPE_CHECKING:
    from sim.cli.hunting.recurrence import Seen
    from sim.scenario.run.hooks import Hooks
    from sim.scenario.run.result import Result
    from sim.scenario.scenario import Scenario


OTHERWISE = ("choose an --out on a larger disk", "or add --no-space-check")
"""Cures for a run that is to stay as it is."""

_NAMED = "(ok_unanswered, answered_untold in verdict.json)"


def run_command(path: Path, options: RunOptions) -> None:
    """Run a scenario; exits with what came of it."""
    case = Case(path)
    with exit_codes(case):
        scenario = load(path, options.sets)
        seed = scenario.run.seed if options.seed is None else options.seed
        out = target(scenario, seed, options)
        case.seed = seed
        _check_space(scenario, out, options)
        if not options.as_json:
            show_card(scenario, seed, version("logquake"), str(out))
        seen = _seen(path, scenario, options)
        result = _run(scenario, seed, out, options, case, seen.hooks if seen else NO_HOOKS)
        if not options.as_json:
            show_verdict(result)
            for line in seen.lines(result) if seen else ():
                say(line)
        made = None
        if options.report and result.complete:
            made = report([result.directory], None)
        ending = _ending(result, made)
        kept: Kept = options.keep if result.complete and not ending else "all"
        keep_only(result.directory, kept, result.card)
        _say(result, seed, made, kept, as_json=options.as_json)
        raise _exit(result, ending, case)


def target(scenario: "Scenario", seed: int, options: RunOptions) -> Path:
    """The run directory."""
    return options.out or Path("runs") / f"{scenario.name}-s{seed}"


def _seen(path: Path, scenario: "Scenario", options: RunOptions) -> "Seen | None":
    """Recurrence of a capsule's failure; ``None`` for a scenario, which needs nothing of hunts."""
    if not is_capsule_file(path):
        return None
    from sim.cli.hunting.recurrence import Seen

    return Seen(path, scenario, is_changed=options.seed is not None or bool(options.sets))


def _check_space(scenario: "Scenario", out: Path, options: RunOptions) -> None:
    """Check that the disk has space for the run; one line if it takes much of it."""
    if options.ignores_space:
        return
    place = space_at(out, replaces=options.force)
    line = check_run(estimate(scenario, options.level), place, OTHERWISE)
    if line:
        say(line if options.keep != "all" else f"{line}; --keep verdict removes it", err=True)


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


def _say(result: "Result", seed: int, made: Report | None, kept: Kept, *, as_json: bool) -> None:
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


def _ending(result: "Result", made: Report | None) -> str:
    """The defect that judges or clients and brokers show who differ; empty without one."""
    if made is not None and made.differences:
        return DIFFER
    from sim.scenario.run.result import disputes

    disputed = disputes(result.verdict) if result.complete else ""
    return f"{disputed} {_NAMED}" if disputed else ""


def _exit(result: "Result", ending: str, case: Case) -> typer.Exit:
    if ending:
        return defect(ending, case)
    if not result.complete:
        return failed("interrupted: complete is false in run.json", ExitCode.INTERRUPTED)
    return typer.Exit(ExitCode.HELD if result.held else ExitCode.EXPECTATION_FAILED)
