"""``logquake import``: a scenario from a running cluster, or from its files and tools."""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sim.cli.exits import ExitCode, exit_codes, failed, say_json
from sim.cli.screen import say, step_bar
from sim.errors import DefectFound, SimulationError
from sim.importer.cluster import Imported, build
from sim.importer.live.guard import WriteRefused
from sim.importer.sources import Sources, read_all
from sim.scenario.text.quantities import QuantityError, parse_duration
from sim.units import SECOND

MEASURED: Final = "60s"
"""Time for which the load of a running cluster is measured, if none is given."""


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The options of ``logquake import``."""

    rate: str | None
    out: Path | None
    force: bool
    strict: bool
    as_json: bool
    bootstrap: str | None = None
    """``HOST:PORT,...`` of a running cluster."""
    command_config: Path | None = None
    for_: str | None = None
    """Time for which its load is measured."""


def import_command(paths: Sequence[Path], options: ImportOptions) -> None:
    """Write the scenario; what is not simulated is listed, and with ``--strict`` refused."""
    with exit_codes():
        found = _built(paths, options)
        if options.strict and found.absent:
            _say(found)
            raise failed("--strict: not everything can be simulated", ExitCode.BAD_INPUT)
        if options.out is not None:
            if options.out.exists() and not options.force:
                raise SimulationError(f"{options.out}: exists; --force replaces it")
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(found.text, encoding="utf-8")
        if options.as_json:
            say_json(
                {
                    "scenario": None if options.out is None else str(options.out),
                    "text": found.text,
                    "brokers": {str(node): name for node, name in found.brokers.items()},
                    "topics": found.topics,
                    "measured": found.measured,
                    "not_known": found.unknown,
                    "not_simulated": found.absent,
                }
            )
            return
        if options.out is None:
            say(found.text, nl=False)
        _say(found)


def _built(paths: Sequence[Path], options: ImportOptions) -> Imported:
    """The scenario; a defect on the way shows where it was, and nothing of the files.

    Raises:
        DefectFound: Without the exception's message, which may hold a line of a file.
    """
    try:
        return build(_sources(paths, options), options.rate)
    except (SimulationError, OSError, WriteRefused):
        raise
    except Exception as error:  # noqa: BLE001 - its message and its cause may hold a secret
        steps = [
            f"{Path(step.filename).name}:{step.lineno}"
            for step in traceback.extract_tb(error.__traceback__)
        ]
        where = f"{type(error).__name__} at {', '.join(steps[-3:])}"
    raise DefectFound(f"the import failed: {where}")


def _sources(paths: Sequence[Path], options: ImportOptions) -> Sources:
    """Sources from the files, or from a running cluster.

    Raises:
        SimulationError: If neither is there, or an option belongs to the other.
    """
    if options.bootstrap is not None:
        return _live(options.bootstrap, options, read_all(paths))
    if options.command_config is not None or options.for_ is not None:
        raise SimulationError("--command-config and --for go with --bootstrap HOST:PORT")
    if not paths:
        raise SimulationError("nothing to read: give files, or --bootstrap HOST:PORT")
    return read_all(paths)


def _live(bootstrap: str, options: ImportOptions, files: Sources) -> Sources:
    """Sources from a running cluster.

    Raises:
        SimulationError: Without kafka-python; for a time that is none; if nobody answers.
    """
    try:
        for_us = parse_duration(options.for_ or MEASURED)
    except QuantityError as error:
        raise SimulationError(f"--for: {error.found}; allowed: {error.allowed}") from None
    if for_us < SECOND:
        raise SimulationError("--for: less than a second; allowed: 1s and more")
    try:
        from sim.importer.live.cluster import live_sources  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "kafka":
            raise
        raise SimulationError(
            "--bootstrap needs kafka-python: pip install 'logquake[live]'"
        ) from None
    with step_bar(f"import from {bootstrap}") as say_step:
        return live_sources(bootstrap, options.command_config, for_us, files, say_step)


def _say(found: Imported) -> None:
    """The summary, on standard error: standard output may be the scenario."""
    for head, lines in (("measured", found.measured), ("not known", found.unknown)):
        for line in lines:
            say(f"{head}: {line}", err=True)
    count = len(found.absent)
    say(
        f"imported: brokers {len(found.brokers)}, topics {found.topics}; "
        f"{count or 'nothing'} not simulated or not alike{':' if count else ''}",
        err=True,
    )
    for line in found.absent:
        say(f"  {line}", err=True)
