"""``logquake import``: a scenario from what a running cluster's files and tools say."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from sim.cli.answers import ExitCode, exit_codes, failed, say_json
from sim.errors import SimulationError
from sim.importer.cluster import Imported, build
from sim.importer.sources import read_all


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The options of ``logquake import``."""

    rate: str
    out: Path | None
    force: bool
    strict: bool
    as_json: bool


def import_command(paths: Sequence[Path], options: ImportOptions) -> None:
    """Write the scenario; what is not simulated is told, and with ``--strict`` refused."""
    with exit_codes():
        found = build(read_all(paths), options.rate)
        if options.strict and found.absent:
            _tell(found)
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
                    "not_simulated": found.absent,
                }
            )
            return
        if options.out is None:
            typer.echo(found.text, nl=False)
        _tell(found)


def _tell(found: Imported) -> None:
    """The summary, on standard error: standard output may be the scenario."""
    count = len(found.absent)
    typer.echo(
        f"imported: brokers {len(found.brokers)}, topics {found.topics}; "
        f"{count or 'nothing'} not simulated or not alike{':' if count else ''}",
        err=True,
    )
    for line in found.absent:
        typer.echo(f"  {line}", err=True)
