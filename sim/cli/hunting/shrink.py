"""``logquake shrink``: the smallest scenario that fails in the same way."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer

from sim.cli.exits import Case, ExitCode, exit_codes, failed, say_json
from sim.cli.explain import explanation
from sim.cli.hunting.clock import alarm, seconds_of
from sim.cli.run import stop_requests
from sim.cli.screen import say, step_bar
from sim.errors import SimulationError
from sim.hunting import capsule as capsules
from sim.hunting import sought as looked
from sim.hunting.capsule import Capsule
from sim.hunting.replay import recorded, replay
from sim.hunting.shrinking.result import OTHER_SEEDS, Files, elsewhere, files_of, save
from sim.hunting.shrinking.shrink import Shrinker, Shrunk
from sim.scenario.loader import load
from sim.scenario.run.directory import CARD
from sim.scenario.text.yaml import read
from sim.scratch import scratch
from sim.suite.pool import Pool, pool
from sim.trace.run_files import CARD as CARD_SHAPE
from sim.trace.run_files import read_mapping

FAILURES: Final = "lost_acked,divergent,duplicated,reordered,unprocessed,reprocessed,down>30s,stuck"
"""Failures of a run that is to be shrunk, in order, if nothing else is said."""

_EXPLAINED: Final = ("broken", "defect", "stuck")
"""Kinds that are not those of a record or an outage; their words say it all."""


@dataclass(frozen=True, slots=True)
class ShrinkOptions:
    """The options of ``logquake shrink``."""

    looking_for: str
    runs: int
    budget: str
    jobs: int
    out: Path | None
    force: bool
    as_json: bool


def shrink_command(path: Path, options: ShrinkOptions) -> None:
    """Shrink the failure of a run or a capsule; exits 1, for the failure is there."""
    with exit_codes(Case(directory=path if path.is_dir() else None)):
        seconds = seconds_of("--budget", options.budget)
        processes = options.jobs or os.cpu_count() or 1
        with stop_requests() as interrupted, pool(processes) as some:
            is_late = alarm(seconds)
            begun = _opened(path, options, interrupted)
            stem = begun.scenario.name.removesuffix(".capsule")
            out = options.out or Path("runs") / f"{stem}-shrunk.yaml"
            files = files_of(out, force=options.force)
            say(f"{path}: {begun.finding.fingerprint}; seed {begun.seed}", err=True)
            found = _shrunk(begun, options, some, processes, lambda: interrupted() or is_late())
            if interrupted():
                raise failed("interrupted: nothing was written", ExitCode.INTERRUPTED)
            ended = save(files, found, begun.seed, begun.sought, begun.finding, path.as_posix())
            seeds = elsewhere(ended, some, interrupted)
        _say(ended, found, files, seeds, as_json=options.as_json)
        raise typer.Exit(ExitCode.EXPECTATION_FAILED)


def _opened(path: Path, options: ShrinkOptions, should_stop: Callable[[], bool]) -> Capsule:
    """The failure: that of a capsule, or the first one of a run."""
    if not path.is_dir():
        if options.looking_for:
            raise SimulationError(
                f"--looking-for with the capsule {path}: a capsule says itself what it is; "
                "leave the option out"
            )
        return capsules.opened(path)
    card = read_mapping(path / CARD, CARD_SHAPE)
    file = path / "scenario.yaml"
    scenario, seed = load(file), int(card["seed"])
    sought = looked.parse(options.looking_for or FAILURES)
    found = replay(scenario, seed, sought, should_stop=should_stop)
    if not found.complete:
        raise failed("interrupted: nothing was written", ExitCode.INTERRUPTED)
    if not found.findings:
        raise SimulationError(
            f"{path}: none of {looked.show(sought)} is in this run; allowed: a run with a "
            "failure; say which one with --looking-for"
        )
    data = read(file.read_text(encoding="utf-8"), str(file)).data
    assert isinstance(data, dict), "it has been loaded"
    return capsules.made(data, seed, sought, found.findings[0], path)


def _shrunk(
    begun: Capsule,
    options: ShrinkOptions,
    some: Pool,
    processes: int,
    should_stop: Callable[[], bool],
) -> Shrunk:
    with step_bar("shrink") as on_step:
        return Shrinker(
            begun.finding,
            begun.sought,
            begun.seed,
            some,
            processes,
            runs_max=options.runs,
            should_stop=should_stop,
            on_run=lambda words, kept: on_step(f"{words}{': kept' if kept else ''}"),
        ).shrink(dict(begun.data))


def _say(
    ended: Capsule, found: Shrunk, files: Files, seeds: tuple[int, int], *, as_json: bool
) -> None:
    words = _explained(ended, hear=(lambda _line: None) if as_json else say)
    happens, tried = seeds
    if as_json:
        say_json(
            {
                "scenario": files.scenario.as_posix(),
                "capsule": files.capsule.as_posix(),
                "fingerprint": {"kind": ended.finding.kind, "chain": list(ended.finding.chain)},
                "found": ended.finding.words,
                "runs": found.runs,
                "minimal": found.is_minimal,
                "steps": list(found.steps),
                "other_seeds": {"happens": happens, "tried": tried},
                "explanation": words,
            }
        )
        return
    say(f"\n{capsules.dumped(ended.data)}")
    minimal = (
        "without any of its faults, or with half of any number, it does not fail like that"
        if found.is_minimal
        else "the budget ended before it was known to be the smallest: --runs and --budget"
    )
    say(f"{found.runs} runs, {len(found.steps)} steps; {minimal}")
    say(f"with {tried} of {OTHER_SEEDS} other seeds tried, it happens {happens} times")
    say(f"{files.scenario}\n{files.capsule}")


def _explained(ended: Capsule, hear: Callable[[str], None]) -> dict[str, Any]:
    """The explanation of the failure; of one that is about no record, its words."""
    if ended.finding.kind in _EXPLAINED:
        hear(ended.finding.words)
        return {"head": ended.finding.words}
    with scratch() as place:
        recorded(ended.scenario, ended.seed, ended.sought, place / "run")
        return explanation(place / "run", "", rerun=False, hear=hear)
