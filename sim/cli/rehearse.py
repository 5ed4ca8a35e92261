"""``logquake rehearse``: a scenario on a real Apache Kafka."""

# ruff: noqa: PLC0415 - what starts processes is imported when it is needed, not before

from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from sim.cli.exits import Case, ExitCode, exit_codes, failed, say_json
from sim.cli.run import stop_requests
from sim.cli.screen import say
from sim.cli.terminal import progress_bar, show_card, show_verdict
from sim.errors import SimulationError
from sim.scenario.loader import load
from sim.scenario.text.quantities import QuantityError, parse_duration
from sim.units import Micros, show_duration

if TYPE_CHECKING:
    from sim.scenario.run.result import Result

_SCALE_MAX = 1.0


@dataclass(frozen=True, slots=True)
class RehearseOptions:
    """The options of ``logquake rehearse``."""

    seed: int | None
    sets: tuple[str, ...]
    out: Path | None
    force: bool
    kafka: Path | None
    scale: float
    repeat: int
    warm_up: str
    as_json: bool


def rehearse_command(path: Path, options: RehearseOptions) -> None:
    """Rehearse a scenario, once or several times; exits with what came of it."""
    from sim.rehearsal import apache, limits
    from sim.rehearsal.loads import clients_of
    from sim.rehearsal.run import Options, rehearse

    case = Case(path)
    with exit_codes(case):
        if not 0 < options.scale <= _SCALE_MAX:
            raise SimulationError(f"--scale: found {options.scale}; allowed: above 0, up to 1")
        warm_up_us = _warm_up(options.warm_up)
        scenario = limits.scaled(load(path, options.sets), options.scale)
        seed = scenario.run.seed if options.seed is None else options.seed
        limits.check(scenario, clients_of(scenario), options.scale)
        release = apache.found(scenario.cluster.kafka, options.kafka)
        out = options.out or Path("runs") / f"{scenario.name}-s{seed}-real"
        results: list[Result] = []
        for number in range(1, options.repeat + 1):
            where = out if options.repeat == 1 else out.with_name(f"{out.name}-{number}")
            case.directory = where
            if not options.as_json:
                show_card(scenario, seed, version("logquake"), str(where))
                say(f"on       Apache Kafka {release.release}, {number} of {options.repeat}")
            chosen = Options(seed, where, options.force, options.scale, warm_up_us)
            with stop_requests() as should_stop, progress_bar(scenario.name) as on_progress:
                results.append(rehearse(scenario, release, chosen, on_progress, should_stop))
            if not options.as_json:
                show_verdict(results[-1])
                for line in (_noise(results[-1]), *_exits(results[-1])):
                    say(line)
                say(str(where))
            if not results[-1].complete:
                break
        if options.as_json:
            say_json([_plain(result) for result in results])
        raise _exit(results)


def _warm_up(text: str) -> Micros:
    """Time of the load before the workload."""
    from sim.rehearsal.limits import WARM_UP_MAX

    try:
        lasts = parse_duration(text)
    except QuantityError as error:
        raise SimulationError(f"--warm-up: {error.found}; allowed: {error.allowed}") from None
    if lasts > WARM_UP_MAX:
        raise SimulationError(
            f"--warm-up: found {text}; allowed: 0s to {show_duration(WARM_UP_MAX)}"
        )
    return lasts


def _noise(result: "Result") -> str:
    """The machine's noise, in a line."""
    noise = result.card["noise"]
    assert isinstance(noise, dict), "the run card has it"
    if not noise["samples"]:
        return "noise    not measured"
    return f"noise    a sleeper woke late by {noise['p50_us']} us (p50), {noise['p99_us']} us (p99)"


def _exits(result: "Result") -> list[str]:
    """Ends of processes that no fault and no order caused, a line for each."""
    found = result.card["unordered_exits"]
    assert isinstance(found, list), "the run card has it"
    return [f"ended    {text}" for text in found]


def _plain(result: "Result") -> dict[str, object]:
    return {
        "directory": str(result.directory),
        "seed": result.seed,
        "complete": result.complete,
        "held": result.held,
        "faults_without_effect": list(result.unaffected_faults),
        "unserved": list(result.unserved),
        "noise": result.card["noise"],
        "verdict": result.verdict,
    }


def _exit(results: "list[Result]") -> typer.Exit:
    if not all(result.complete for result in results):
        return failed("interrupted: complete is false in run.json", ExitCode.INTERRUPTED)
    held = all(result.held for result in results)
    return typer.Exit(ExitCode.HELD if held else ExitCode.EXPECTATION_FAILED)
