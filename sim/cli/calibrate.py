"""``logquake calibrate``: a real cluster is measured, and a preset of hardware is fitted to it."""

# ruff: noqa: PLC0415 - what starts processes is imported when it is needed, not before

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.table import Table

from sim.cli.exits import ExitCode, exit_codes, failed, say_json
from sim.cli.run import stop_requests
from sim.cli.screen import console, escaped, json_text, say, step_bar
from sim.cli.terminal import progress_bar, show_table
from sim.errors import SimulationError
from sim.units import MS, Micros

if TYPE_CHECKING:
    from sim.calibration.fit import Error, Fit
    from sim.calibration.plan import Role
    from sim.calibration.run import Observed
    from sim.rehearsal.apache import Apache

OUT: Final = Path("runs/calibration")


@dataclass(frozen=True, slots=True)
class CalibrateOptions:
    """The options of ``logquake calibrate``."""

    kafka: str
    unpacked: Path | None
    out: Path
    force: bool
    seconds: int
    kept: Sequence[Path]
    servers: str | None
    topic: str | None
    yes_produce: bool
    as_json: bool


def calibrate_command(options: CalibrateOptions) -> None:
    """Measure, fit, check and write the preset."""
    from sim.calibration import preset
    from sim.calibration.run import fitted

    with exit_codes():
        _check(options)
        files = [options.out / preset.NAME, options.out / preset.REPORT]
        for file in files:
            if file.exists() and not options.force:
                raise SimulationError(f"{file}: exists; --force replaces it, or give another --out")
        with stop_requests() as should_stop:
            observed = _observed(options, should_stop)
            if observed is None:
                raise failed("interrupted: nothing was fitted", ExitCode.INTERRUPTED)
            with step_bar("fit") as step:
                found = fitted(observed, step, should_stop)
        options.out.mkdir(parents=True, exist_ok=True)
        plain = preset.report(found, observed.origin)
        files[0].write_text(preset.text(found, observed.origin), encoding="utf-8")
        files[1].write_text(json_text(plain, indent=1) + "\n", encoding="utf-8")
        if options.as_json:
            say_json(plain | {"preset": str(files[0])})
            return
        _show(found)
        say(str(files[0]))


def _check(options: CalibrateOptions) -> None:
    """Refuses options that contradict each other.

    Raises:
        SimulationError: With what is allowed.
    """
    from sim.calibration.plan import SECONDS_MAX, SECONDS_MIN

    if not SECONDS_MIN <= options.seconds <= SECONDS_MAX:
        raise SimulationError(
            f"--seconds: found {options.seconds}; allowed: {SECONDS_MIN} to {SECONDS_MAX}"
        )
    if options.kept and options.servers is not None:
        raise SimulationError("--from beside --bootstrap-servers; allowed: one of the two")
    if options.servers is None:
        if options.topic is not None or options.yes_produce:
            raise SimulationError(
                "--topic and --yes-produce go with --bootstrap-servers HOST:PORT; without it a "
                "cluster is started here"
            )
        return
    if not options.topic:
        raise SimulationError(
            "--bootstrap-servers without --topic NAME: name a topic that was made for this alone"
        )
    if not options.yes_produce:
        raise SimulationError(
            f"--bootstrap-servers: this would write records to {options.topic} of the cluster at "
            f"{options.servers}, up to 1,000 a second and 200 kB each; add --yes-produce to do it"
        )


def _observed(options: CalibrateOptions, should_stop: "Callable[[], bool]") -> "Observed | None":
    from sim.calibration import run
    from sim.calibration.outside import Outside

    if options.kept:
        return run.kept(options.kept)
    version, apache = _release(options)
    if not options.as_json:
        say(f"measures for about {_lasts(options)} s, then fits; writes {options.out}", err=True)
    with progress_bar(run.NAME) as on_progress:
        if options.servers is None:
            return run.here(
                apache, version, options.out, options.seconds,
                force=options.force, on_progress=on_progress, should_stop=should_stop,
            )  # fmt: skip
        outside = Outside(options.servers, options.topic or "")
        return run.running(
            outside, apache, version, options.out, options.seconds,
            force=options.force, on_progress=on_progress, should_stop=should_stop,
        )  # fmt: skip


def _release(options: CalibrateOptions) -> "tuple[str, Apache]":
    """Version and jars; a version may be given as a release that this program runs.

    Raises:
        SimulationError: If there is no such release.
    """
    from sim.rehearsal import apache

    known = {**{version: version for version in apache.RELEASES}}
    known |= {release: version for version, release in apache.RELEASES.items()}
    if options.kafka not in known:
        raise SimulationError(f"--kafka: found {options.kafka!r}; allowed: {', '.join(known)}")
    version = known[options.kafka]
    return version, apache.found(version, options.unpacked)


def _lasts(options: CalibrateOptions) -> int:
    from sim.calibration import plan

    loads = [load for load in plan.LOADS if not (options.servers and load.needs_own_cluster)]
    own = 0 if options.servers else plan.MOVE_S + 30
    return plan.WARM_UP_S + plan.ROUNDS * options.seconds * len(loads) + own


def _show(found: "Fit") -> None:
    """Parameters, and the table of loads: to a terminal with lines, to a pipe with tabs."""
    from sim.calibration.fit import FACTOR
    from sim.calibration.parameters import PARAMETERS, shown

    for each in PARAMETERS:
        if each.name in found.fitted:
            low, high = (shown(each, value) for value in found.ranges[each.name])
            value, before = shown(each, found.values[each.name]), shown(each, each.start)
            say(f"fitted   {each.name}: {value} (rounds alone {low} to {high}; before {before})")
    if found.absent:
        say(f"absent   not fitted: {', '.join(found.absent)}")
    out = console()
    heads = ("load", "", "percentile", "real", "before", "after", "factor")
    table = Table(*heads)
    for line in found.lines:
        times = (line.real_us, line.before_us, line.after_us)
        cells = [line.load.name, line.load.role, line.percentile, *map(_ms, times)]
        cells.append(f"{line.factor:.2f}")
        if out.is_terminal:
            colour = "green" if line.factor <= FACTOR else "red"
            table.add_row(*map(escaped, cells[:-1]), f"[{colour}]{cells[-1]}[/{colour}]")
        else:
            say("\t".join(cells))
    if out.is_terminal:
        show_table(table)
    roles: tuple[Role, ...] = ("fitted", "held back")
    for role in roles:
        default, preset = found.error(role, before=True), found.error(role)
        say(f"{role:<9}{_error(default)} without the preset; {_error(preset)} with it")


def _ms(value: Micros) -> str:
    return f"{value / MS:.3g} ms"


def _error(error: "Error") -> str:
    return (
        f"factor {error.median:.2f} at the median, {error.worst:.2f} at worst, "
        f"{error.near} of {error.lines} within 1.5"
    )
