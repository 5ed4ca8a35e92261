"""``logquake hunt``: a guided search for failures that nobody wrote down."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer

from sim.cli.exits import Case, ExitCode, exit_codes, failed, say_json
from sim.cli.hunting.clock import alarm, seconds_of
from sim.cli.run import stop_requests
from sim.cli.screen import say, step_bar
from sim.errors import SimulationError
from sim.hunting import capsule as capsules
from sim.hunting.fingerprint import BROKEN, DEFECT, Finding
from sim.hunting.search import page
from sim.hunting.search.execution import Execution
from sim.hunting.search.hunt import UNIFORM_SHARE, Hunt, Plan
from sim.hunting.shrinking.result import files_of, save
from sim.hunting.shrinking.shrink import Shrinker
from sim.scenario.loader import load
from sim.scenario.overrides import apply as changes
from sim.scenario.text.capsules import unpacked
from sim.scenario.text.yaml import read
from sim.suite.pool import Pool, pool

PAGE: Final = "hunt.md"
NUMBERS: Final = "found.json"
FOUND: Final = "found"
"""Directory of the capsules."""


@dataclass(frozen=True, slots=True)
class HuntOptions:
    """The options of ``logquake hunt``."""

    lasts: str
    runs: int | None
    faults: int
    looking_for: str
    seed: int
    kinds: str
    vary: tuple[str, ...]
    sets: tuple[str, ...]
    uniform: bool
    shrink: str
    jobs: int
    out: Path | None
    as_json: bool


def hunt_command(path: Path, options: HuntOptions) -> None:
    """Hunt, shrink what was found, and write the page; exits 1 if a failure was found."""
    with exit_codes(Case(path)):
        seconds = seconds_of("--for", options.lasts)
        shrink_for = seconds_of("--shrink", options.shrink)
        plan = _plan(path, options)
        out = options.out or Path("runs") / f"{plan.name}-hunt"
        hunt = Hunt(plan, out)
        processes = options.jobs or os.cpu_count() or 1
        with stop_requests() as interrupted, pool(processes) as some:
            is_late = alarm(seconds)
            with step_bar(f"hunt {plan.name}") as on_step:
                hunt.go(
                    some,
                    runs_max=options.runs,
                    should_stop=lambda: interrupted() or (options.runs is None and is_late()),
                    on_execution=lambda hunt: on_step(_progress(hunt)),
                )
            files = _write_capsules(hunt, out)
            if shrink_for and not interrupted():
                _shrink(hunt, files, some, processes, shrink_for, interrupted)
            was_stopped = interrupted()
        found = page.numbers(hunt, {f: file.as_posix() for f, file in files.items()})
        _write(found, out)
        _say(found, out, as_json=options.as_json)
        if was_stopped:
            raise failed(
                "interrupted: the same command resumes the hunt where it was", ExitCode.INTERRUPTED
            )
        raise typer.Exit(_exit_code(list(files)))


def _plan(path: Path, options: HuntOptions) -> Plan:
    scenario = load(path, options.sets)
    if not scenario.producers:
        raise SimulationError(
            f"{path}: producers: none; allowed: at least one; without producers nothing can be lost"
        )
    if scenario.modules:
        raise SimulationError(
            f"{path}: uses a class in {scenario.modules[0][0]}; allowed: a scenario in one file; "
            "remove partitioner.class"
        )
    document = unpacked(read(path.read_text(encoding="utf-8"), str(path)))
    changes.apply(document, options.sets)
    base = document.data
    assert isinstance(base, dict), "it has been loaded"
    return Plan(
        scenario.name,
        base,
        options.looking_for,
        options.faults,
        options.seed,
        tuple(word for word in options.kinds.split(",") if word),
        options.vary,
        1.0 if options.uniform else UNIFORM_SHARE,
    )


def _progress(hunt: Hunt) -> str:
    return f"{hunt.ended:,} executions, {hunt.states:,} states, {len(hunt.first_found)} failures"


def _name(number: int, finding: Finding) -> str:
    return f"{number:02d}-{finding.file_name}"


def _write_capsules(hunt: Hunt, out: Path) -> dict[Finding, Path]:
    """A capsule of each failure, as it was found; one that was shrunk already stays."""
    files: dict[Finding, Path] = {}
    for number, (finding, execution) in enumerate(hunt.first_found.items(), start=1):
        file = out / FOUND / f"{_name(number, finding)}{capsules.ENDING}"
        files[finding] = file
        if not file.is_file():
            file.parent.mkdir(parents=True, exist_ok=True)
            made = capsules.made(
                hunt.data_of(execution), execution.schedule.seed, hunt.sought, finding
            )
            file.write_text(capsules.text_of(made), encoding="utf-8")
    return files


def _shrink(
    hunt: Hunt,
    files: dict[Finding, Path],
    some: Pool,
    processes: int,
    seconds: float,
    interrupted: Callable[[], bool],
) -> None:
    """Shrink every failure that has no scenario beside its capsule yet."""
    for finding, file in files.items():
        target = files_of(file, force=True)
        if target.scenario.is_file() or interrupted():
            continue
        execution = hunt.first_found[finding]
        _shrink_one(hunt, finding, execution, file, some, processes, seconds, interrupted)


def _shrink_one(
    hunt: Hunt,
    finding: Finding,
    execution: Execution,
    file: Path,
    some: Pool,
    processes: int,
    seconds: float,
    interrupted: Callable[[], bool],
) -> None:
    is_late = alarm(seconds)
    with step_bar(f"shrink {finding.fingerprint}") as on_step:
        shrinker = Shrinker(
            finding,
            hunt.sought,
            execution.schedule.seed,
            some,
            processes,
            should_stop=lambda: interrupted() or is_late(),
            on_run=lambda words, kept: on_step(f"{words}{': kept' if kept else ''}"),
        )
        found = shrinker.shrink(hunt.data_of(execution))
    if found.last is None or interrupted():
        return
    origin = f"execution {execution.number} of the hunt of {hunt.plan.name}"
    target = files_of(file, force=True)
    save(target, found, execution.schedule.seed, hunt.sought, finding, origin)


def _write(found: dict[str, Any], out: Path) -> None:
    (out / PAGE).write_text(page.markdown(found), encoding="utf-8")
    (out / NUMBERS).write_text(
        json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def _say(found: dict[str, Any], out: Path, *, as_json: bool) -> None:
    if as_json:
        say_json({**found, "page": (out / PAGE).as_posix()})
        return
    for each in found["found"]:
        say(f"{each['fingerprint']}\n    {each['words']}\n    logquake check {each['capsule']}")
    executions = found["executions"]["all"]
    say(
        f"{len(found['found'])} failures in {executions:,} executions, {found['cells']:,} states; "
        f"see {(out / PAGE).as_posix()}"
    )


def _exit_code(findings: list[Finding]) -> ExitCode:
    if any(finding.kind in (BROKEN, DEFECT) for finding in findings):
        return ExitCode.DEFECT
    return ExitCode.EXPECTATION_FAILED if findings else ExitCode.HELD
