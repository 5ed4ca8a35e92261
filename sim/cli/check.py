"""``logquake check``: many scenarios, many seeds, one answer for a CI job."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import typer

from sim.cli.exits import Case, ExitCode, defect, exit_codes, failed, say_json
from sim.cli.hunting.capsules import divided, replayed
from sim.cli.run import stop_requests
from sim.cli.screen import say
from sim.cli.terminal import count_bar
from sim.errors import SimulationError
from sim.suite import baseline as base
from sim.suite import reports
from sim.suite.cache import DIRECTORY, Cache
from sim.suite.outcome import Outcome, Status
from sim.suite.plan import Job, code_digest, find_files, parse_seeds, plan
from sim.suite.pool import outcomes, pool
from sim.suite.work import check_space
from sim.trace.kept import Kept

RUNS: Final = Path("runs") / "check"
"""Directory of runs; those that did not hold stay there."""

_CODES: Final[Sequence[tuple[Status, ExitCode]]] = (
    ("defect", ExitCode.DEFECT),
    ("not deterministic", ExitCode.NOT_DETERMINISTIC),
    ("no progress", ExitCode.NO_PROGRESS),
    ("bad input", ExitCode.BAD_INPUT),
    ("interrupted", ExitCode.INTERRUPTED),
    ("failed", ExitCode.EXPECTATION_FAILED),
)
"""The worst of all runs decides."""


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """The options of ``logquake check``."""

    seeds: str
    jobs: int
    junit: Path | None
    summary: Path | None
    annotate: bool
    baseline: Path | None
    update: bool
    golden: bool
    twice: bool
    fail_fast: bool
    keep: Kept | None
    use_cache: bool
    as_json: bool


def check_command(paths: Sequence[Path], options: CheckOptions) -> None:
    """Run everything and say what did not hold; exits with the worst of it."""
    with exit_codes():
        files, capsules = divided(find_files(paths))
        _check_capsules(files, capsules, options)
        jobs = _plan(files, options)
        found, was_stopped = _run(jobs, options)
        code = code_digest()
        comparison = None
        if options.baseline is not None and not options.update:
            comparison = base.compare(base.read_baseline(options.baseline), found, code)
        again = [] if was_stopped else _replay(capsules, options)
        was_stopped = was_stopped or len(again) < len(capsules)
        _write([*found, *again], comparison, options)
        if options.as_json:
            _say_as_json(found, again, comparison)
        else:
            _say(found, again, comparison, len(jobs) + len(capsules))
        if was_stopped:
            raise failed("interrupted: not everything was run", ExitCode.INTERRUPTED)
        worst = _exit_code([*found, *again], comparison, golden=options.golden)
        if worst is ExitCode.DEFECT:
            raise _defect(found, options)
        if options.baseline is not None and options.update:
            _update(options.baseline, found, code, worst)
        raise typer.Exit(worst)


def _check_capsules(files: Sequence[Path], capsules: Sequence[Path], options: CheckOptions) -> None:
    """Check that no option is about capsules that has no meaning for them."""
    given = ["--twice"] if options.twice else []
    given += ["--seeds"] if options.seeds and not files else []
    if capsules and given:
        raise SimulationError(
            f"{given[0]} with the capsule {capsules[0]}: found a capsule, which has one seed and "
            "is run once; allowed: scenario files; leave the option or the capsule out"
        )


def _replay(capsules: Sequence[Path], options: CheckOptions) -> list[Outcome]:
    """Results of capsules in the order of the files; fewer if somebody stopped it."""
    if not capsules:
        return []
    with (
        stop_requests() as interrupted,
        pool(min(options.jobs or _cores(), len(capsules))) as some,
        count_bar("capsules", len(capsules)) as on_result,
    ):
        found = []
        for outcome in replayed(capsules, some, interrupted):
            on_result(outcome.path, outcome.status == "held")
            found.append(outcome)
        order = [path.as_posix() for path in capsules]
        return sorted(
            (each for each in found if not (interrupted() and each.status == "interrupted")),
            key=lambda each: order.index(each.path),
        )


def _plan(files: Sequence[Path], options: CheckOptions) -> list[Job]:
    if (options.update or options.golden) and options.baseline is None:
        word = "--update" if options.update else "--golden"
        raise SimulationError(f"{word} without --baseline FILE: there is nothing to compare with")
    seeds = parse_seeds(options.seeds) if options.seeds else ()
    jobs = plan(files, seeds, RUNS, twice=options.twice, keep=options.keep)
    if options.baseline is not None and not options.update:
        names = list(dict.fromkeys(job.path for job in jobs))
        if names:
            base.check_power(base.read_baseline(options.baseline), names, len(jobs) // len(names))
    return jobs


def _run(jobs: Sequence[Job], options: CheckOptions) -> tuple[list[Outcome], bool]:
    """The results in the order of the jobs, and whether somebody stopped it."""
    cache = Cache(DIRECTORY if options.use_cache else None)
    known = {job: outcome for job in jobs if (outcome := cache.find(job)) is not None}
    results: dict[Job, Outcome] = dict(known)
    broken = any(outcome.status != "held" for outcome in known.values())
    waiting = [job for job in jobs if job not in known]
    processes = options.jobs or _cores()
    announce(waiting, processes)
    with (
        stop_requests() as interrupted,
        pool(min(processes, len(waiting))) as some,
        count_bar("check", len(jobs)) as on_result,
    ):
        for outcome in known.values():
            on_result(outcome.path, outcome.status == "held")

        def should_stop() -> bool:
            return interrupted() or (broken and options.fail_fast)

        for job, outcome in outcomes(waiting, some, should_stop):
            is_cut = outcome.status == "interrupted" and should_stop()
            if is_cut and not interrupted():
                continue  # --fail-fast ended it; it says nothing about the scenario
            results[job] = outcome
            cache.keep(job, outcome)
            broken = broken or outcome.status != "held"
            on_result(outcome.path, outcome.status == "held")
        return [results[job] for job in jobs if job in results], interrupted()


def announce(jobs: Sequence[Job], processes: int) -> None:
    """Check that the disk has space for runs; one line if they take much of it."""
    line = check_space(jobs, processes)
    if line:
        say(line, err=True)


def _cores() -> int:
    return os.cpu_count() or 1


def _write(
    found: Sequence[Outcome], comparison: base.BaselineComparison | None, options: CheckOptions
) -> None:
    if options.junit is not None:
        options.junit.parent.mkdir(parents=True, exist_ok=True)
        options.junit.write_text(reports.junit(found, comparison), encoding="utf-8")
    if options.summary is not None:
        with options.summary.open("a", encoding="utf-8") as page:
            page.write(reports.markdown(found, comparison))
    if options.annotate and not options.as_json:
        for line in reports.annotations(found, comparison):
            say(line)


def _defect(found: Sequence[Outcome], options: CheckOptions) -> typer.Exit:
    """The first run in which the simulator failed; the baseline is left as it was."""
    first = next(outcome for outcome in found if outcome.status == "defect")
    if options.baseline is not None and options.update:
        typer.echo(f"{options.baseline}: left as it was", err=True)
    return defect(first.message, Case(Path(first.path), first.seed, Path(first.directory)))


def _update(file: Path, found: Sequence[Outcome], code: str, worst: ExitCode) -> None:
    if worst not in (ExitCode.HELD, ExitCode.EXPECTATION_FAILED):
        raise failed(f"{file}: left as it was: not every run came to a verdict", worst)
    base.write_baseline(file, found, code)
    say(f"{file}: written, {len(found)} runs", err=True)


def _say(
    found: Sequence[Outcome],
    again: Sequence[Outcome],
    comparison: base.BaselineComparison | None,
    planned: int,
) -> None:
    for path, runs in base.by_path(found).items():
        held = [run for run in runs if run.status == "held"]
        word = "held  " if len(held) == len(runs) else "FAILED"
        cached = sum(run.cached for run in runs)
        say(
            f"{word}  {path}  {len(held)}/{len(runs)} seeds"
            f"{f', {cached} known' if cached else ''}, lost {reports.span(runs, 'lost_acked')}, "
            f"down {reports.span(runs, 'unavailable.produce.max')}, "
            f"slow (p99) {reports.span(runs, 'produce.p99')}"
        )
        for run in runs:
            for line in run.failures:
                say(f"        seed {run.seed}: {line}")
            if run.status != "held":
                for name, _, text in run.answer:
                    say(f"        seed {run.seed}: {name}: {text}")
            if run.status != "held" and run.directory:
                say(f"        seed {run.seed}: see {run.directory}")
    for run in again:
        say(f"{'held  ' if run.status == 'held' else 'FAILED'}  {run.path}  seed {run.seed}")
        say(f"        {run.message}")
    if comparison is not None:
        for line in reports.comparison_lines(comparison):
            say(line)
    every = [*found, *again]
    bad = sum(run.status != "held" for run in every)
    rest = f"; {planned - len(every)} not run" if planned > len(every) else ""
    say(f"{len(every) - bad} of {len(every)} runs held{rest}")


def _say_as_json(
    found: Sequence[Outcome],
    again: Sequence[Outcome],
    comparison: base.BaselineComparison | None,
) -> None:
    plain: dict[str, object] = {"runs": [outcome.as_json() for outcome in found]}
    if again:
        plain["capsules"] = [
            {"path": o.path, "seed": o.seed, "status": o.status, "message": o.message}
            for o in again
        ]
    if comparison is not None:
        plain["baseline"] = {
            "regressed": [str(change) for change in comparison.regressed],
            "improved": [str(change) for change in comparison.improved],
            "compared": comparison.compared,
            "level": comparison.level,
            "moved": list(comparison.moved),
            "not_deterministic": list(comparison.not_deterministic),
            "notes": list(comparison.notes),
        }
    say_json(plain)


def _exit_code(
    found: Sequence[Outcome], comparison: base.BaselineComparison | None, *, golden: bool
) -> ExitCode:
    for status, code in _CODES:
        if any(outcome.status == status for outcome in found):
            return code
        is_other = comparison is not None and bool(comparison.not_deterministic)
        if status == "not deterministic" and is_other:
            return code
    if comparison is not None and (comparison.regressed or (golden and comparison.moved)):
        return ExitCode.EXPECTATION_FAILED
    return ExitCode.HELD
