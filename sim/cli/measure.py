"""``logquake bench``, and ``run --estimate``: this machine, and what a run would take of it."""

# ruff: noqa: PLC0415 - the whole simulator is imported for measuring only

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sim.cli.commands.run_options import RunOptions
from sim.cli.exits import Case, exit_codes, say_json
from sim.cli.screen import console, escaped, say
from sim.compiled import WHY_SOURCES
from sim.errors import SimulationError

if TYPE_CHECKING:
    from sim.scenario.estimate.forecast import Estimate

ERRORS: Final = {"disk": 1.3, "memory": 1.5, "time": 2.0}
"""Factors within which estimates of a cluster in service are held by a test."""


def bench_command(*, as_json: bool) -> None:
    """Measure, and print the figures."""
    with exit_codes():
        from sim.bench import measure

        figures = measure()
        if as_json:
            say_json(figures)
            return
        out = console()
        for name, value in figures.items():
            shown = f"{value:,.2f}" if isinstance(value, float) else str(value)
            out.print(f"[bold]{name:20}[/bold] {escaped(shown)}")
        if WHY_SOURCES:
            out.print(
                f"run from the sources ({escaped(WHY_SOURCES)}): make compile doubles the speed"
            )


def estimate_command(path: Path, options: RunOptions, *, refresh: bool) -> None:
    """Print the time, memory and disk that a run would need; nothing is run but the measurement."""
    with exit_codes(Case(path)):
        from sim.bench import speed
        from sim.cli.run import OTHERWISE, target
        from sim.scenario.estimate.forecast import estimate
        from sim.scenario.estimate.space import check_run, space_at
        from sim.scenario.loader import load

        scenario = load(path, options.sets)
        seed = scenario.run.seed if options.seed is None else options.seed
        found = estimate(scenario, options.level)
        place = space_at(target(scenario, seed, options), replaces=options.force)
        refused = ""
        try:
            check_run(found, place, OTHERWISE)
        except SimulationError as error:
            refused = str(error)
        machine, how = speed(refresh=refresh)
        seconds, memory = found.seconds(machine), found.memory(machine)
        if not options.as_json:
            for line in _lines(found, seconds, memory, f"{place.where}: {place}", how):
                say(line)
            if refused:
                say(f"refused  {refused}")
            return
        disk = found.disk
        say_json(
            {
                "scenario": scenario.name,
                "level": options.level,
                "seconds": round(seconds, 1),
                "memory_bytes": memory,
                "disk_bytes": {"logs": disk.logs, "trace": disk.trace, "total": disk.total},
                "kept_bytes": disk.kept(options.keep),
                "free_bytes": place.free,
                "reserve_bytes": place.reserve,
                "refused": refused,
                "from": {
                    "records": round(found.records),
                    "batches": round(found.batches),
                    "requests": round(found.requests),
                    "appended_bytes": disk.appended,
                    "trace_rows": round(found.rows),
                    "replicas": found.replicas,
                    "speed": how,
                },
                "within_factor": ERRORS,
            }
        )


def _lines(found: "Estimate", seconds: float, memory: int, place: str, how: str) -> Iterator[str]:
    from sim.scenario.estimate.space import about

    disk = found.disk
    spans = f"{_span(seconds / ERRORS['time'])} to {_span(seconds * ERRORS['time'])}"
    yield f"time     about {_span(seconds)} ({spans}), with a core of its own; without a report"
    yield f"memory   about {about(memory)}"
    yield (
        f"disk     about {about(disk.total)}: logs {about(disk.logs)}, trace {about(disk.trace)}; "
        f"kept as logs {about(disk.kept('logs'))}, as verdict {about(disk.kept('verdict'))}"
    )
    yield f"space    {place}"
    yield (
        f"from     {found.records:,.0f} records in {found.batches:,.0f} batches, "
        f"{about(disk.appended)} on all replicas, {found.requests:,.0f} requests, "
        f"{found.rows:,.0f} trace rows ({found.level}), {found.replicas:,} replicas"
    )
    yield f"machine  {how}"
    factors = ", ".join(f"{name} {factor:g}" for name, factor in ERRORS.items())
    yield f"error    of a cluster in service within a factor: {factors}"


def _span(seconds: float) -> str:
    """A time to two figures."""
    if seconds < 100:
        return f"{seconds:.2g} s" if seconds >= 10 else f"{seconds:.1f} s"
    if seconds < 5_400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3_600:.1f} h"
