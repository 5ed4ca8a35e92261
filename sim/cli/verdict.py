"""``logquake verdict``: what a cluster loses by single faults, in sentences that can be checked."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Final

import typer

from sim.cli.check import announce
from sim.cli.exits import Case, ExitCode, defect, exit_codes, failed, say_json
from sim.cli.hunting.ways import Way, Ways
from sim.cli.run import stop_requests
from sim.cli.screen import say
from sim.cli.terminal import count_bar, show_numbers
from sim.errors import SimulationError
from sim.hunting.coincidences import Rate, rates_of
from sim.suite import fault_outcomes as conclusions
from sim.suite.cache import DIRECTORY, Cache
from sim.suite.fault_outcomes import FaultOutcome
from sim.suite.plan import parse_seeds
from sim.suite.pool import pool
from sim.suite.survey import Survey, execute, prepare, untried
from sim.trace.kept import Kept
from sim.units import SECOND

_CODES: Final = (
    ("defect", ExitCode.DEFECT),
    ("no progress", ExitCode.NO_PROGRESS),
    ("bad input", ExitCode.BAD_INPUT),
)
"""Of runs that came to no verdict; the worst decides."""


@dataclass(frozen=True, slots=True)
class VerdictOptions:
    """The options of ``logquake verdict``."""

    seeds: str
    budget: str
    jobs: int
    sets: tuple[str, ...]
    out: Path | None
    keep: Kept | None
    use_cache: bool
    faults: int
    mtbf: tuple[str, ...]
    as_json: bool


def verdict_command(path: Path, options: VerdictOptions) -> None:
    """Try every single fault and say what came of it; exits 1 if one loses records."""
    with exit_codes():
        seconds = _budget(options.budget)
        deadline = monotonic() + seconds
        rates = rates_of(options.mtbf)
        if options.mtbf and options.faults < 2:
            raise SimulationError("--mtbf without --faults 2: single faults are not ranked by it")
        survey = prepare(path, options.sets, parse_seeds(options.seeds), options.out, options.keep)
        if not options.as_json:
            say(
                f"{survey.name}: {len(survey.faults) - 1} single faults, {len(survey.jobs)} runs "
                f"of {survey.run_us // SECOND} s; scenarios in {survey.directory}"
            )
        found, was_stopped = _run(survey, deadline, options)
        ways = None
        if options.faults > 1 and not was_stopped:
            ways, was_stopped = _ways(survey, found, rates, deadline, options)
        left = untried(survey, found)
        closing = conclusions.closing(
            [a for a in found if a.name != "nothing"], left, options.budget
        )
        if options.as_json:
            say_json(_as_json(survey, found, left, closing) | _ways_as_json(ways))
        else:
            _say(found, closing)
            for line in _ways_lines(ways, options):
                say(line)
        if was_stopped:
            raise failed("interrupted: not everything was tried", ExitCode.INTERRUPTED)
        code = _exit_code(found)
        if code is ExitCode.HELD and ways is not None and ways.found:
            code = ExitCode.EXPECTATION_FAILED
        if code is ExitCode.DEFECT:
            each, words, seed = next(
                (each, words, seed)
                for each in found
                for kind, words, seed in zip(
                    each.error_kinds, each.errors, each.error_seeds, strict=True
                )
                if kind == "defect"
            )
            where = next(j.directory for j in survey.jobs if (j.path, j.seed) == (each.file, seed))
            raise defect(words, Case(Path(each.file), seed, Path(where)))
        raise typer.Exit(code)


def _budget(text: str) -> float:
    try:
        return conclusions.parse_budget(text) / SECOND
    except ValueError as error:
        raise SimulationError(
            f"--budget: {error.args[0]}; allowed: a time such as 90s, 5m or 1h"
        ) from None


def _run(
    survey: Survey, deadline: float, options: VerdictOptions
) -> tuple[list[FaultOutcome], bool]:
    """The answers, and whether somebody stopped it."""
    cache = Cache(DIRECTORY if options.use_cache else None)
    processes = options.jobs or os.cpu_count() or 1
    waiting = [job for job in survey.jobs if cache.find(job) is None]
    announce(waiting, processes)
    with (
        stop_requests() as interrupted,
        pool(min(processes, len(waiting))) as some,
        count_bar(survey.name, len(survey.jobs)) as on_result,
    ):
        found = execute(
            survey,
            cache,
            some,
            lambda: interrupted() or monotonic() > deadline,
            on_result,
        )
        return found, interrupted()


@dataclass(frozen=True, slots=True)
class _Ways:
    """Ways to lose data, and what was left."""

    found: list[Way]
    runs: int
    untried: int


def _ways(
    survey: Survey,
    found: Sequence[FaultOutcome],
    rates: Mapping[str, Rate],
    deadline: float,
    options: VerdictOptions,
) -> tuple[_Ways, bool]:
    """Ways to lose data, and whether somebody stopped the search."""
    processes = options.jobs or os.cpu_count() or 1
    with stop_requests() as interrupted, pool(processes) as some:
        ways = Ways(
            survey,
            found,
            rates,
            some,
            processes,
            lambda: interrupted() or monotonic() > deadline,
        )
        return _Ways(ways.search(options.faults), ways.runs, ways.untried), interrupted()


def _ways_as_json(ways: "_Ways | None") -> dict[str, object]:
    if ways is None:
        return {}
    found = [way.as_json() for way in ways.found]
    return {"ways": found, "ways_runs": ways.runs, "ways_untried": ways.untried}


def _ways_lines(ways: "_Ways | None", options: VerdictOptions) -> Iterator[str]:
    if ways is None:
        return
    yield ""
    if not ways.found:
        yield f"No way to lose data with at most {options.faults} of these faults was found."
    for number, way in enumerate(ways.found, start=1):
        first, *rest = way.lines()
        yield f"{number}. {first}"
        yield from rest
    left = (
        f"; {ways.untried} coincidences did not fit into {options.budget}" if ways.untried else ""
    )
    yield f"{ways.runs} runs of coincidences{left}."


def _say(found: Sequence[FaultOutcome], closing: Sequence[str]) -> None:
    show_numbers((line.name, line.level, line.text) for line in conclusions.three(found))
    for each in found:
        for sentence, seed in each.sentences():
            say(f"\n{sentence}\n    {each.command(seed)}")
        for error in each.errors:
            say(f"\n{each.words} came to no verdict: {error}")
    say()
    for line in closing:
        say(line)


def _as_json(
    survey: Survey, found: Sequence[FaultOutcome], left: int, closing: Sequence[str]
) -> dict[str, object]:
    return {
        "scenario": survey.name,
        "directory": survey.directory.as_posix(),
        "run_us": survey.run_us,
        "untried": left,
        "answers": [
            {
                **asdict(each),
                "findings": [
                    {"sentence": sentence, "seed": seed, "command": each.command(seed)}
                    for sentence, seed in each.sentences()
                ],
            }
            for each in found
        ],
        "answer": [line._asdict() for line in conclusions.three(found)],
        "closing": list(closing),
    }


def _exit_code(found: Sequence[FaultOutcome]) -> ExitCode:
    kinds = [kind for each in found for kind in each.error_kinds]
    for status, code in _CODES:
        if status in kinds:
            return code
    return ExitCode.EXPECTATION_FAILED if any(each.lost for each in found) else ExitCode.HELD
