"""``logquake import``: a scenario from what a running cluster's files and tools say."""

import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sim.cli.exits import ExitCode, exit_codes, failed, say_json
from sim.cli.screen import say
from sim.errors import DefectFound, SimulationError
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
    """Write the scenario; what is not simulated is listed, and with ``--strict`` refused."""
    with exit_codes():
        found = _built(paths, options.rate)
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
                    "not_simulated": found.absent,
                }
            )
            return
        if options.out is None:
            say(found.text, nl=False)
        _say(found)


def _built(paths: Sequence[Path], rate: str) -> Imported:
    """The scenario; a defect on the way shows where it was, and nothing of the files.

    Raises:
        DefectFound: Without the exception's message, which may hold a line of a file.
    """
    try:
        return build(read_all(paths), rate)
    except (SimulationError, OSError):
        raise
    except Exception as error:  # noqa: BLE001 - its message and its cause may hold a secret
        steps = [
            f"{Path(step.filename).name}:{step.lineno}"
            for step in traceback.extract_tb(error.__traceback__)
        ]
        where = f"{type(error).__name__} at {', '.join(steps[-3:])}"
    raise DefectFound(f"the import failed: {where}")


def _say(found: Imported) -> None:
    """The summary, on standard error: standard output may be the scenario."""
    count = len(found.absent)
    say(
        f"imported: brokers {len(found.brokers)}, topics {found.topics}; "
        f"{count or 'nothing'} not simulated or not alike{':' if count else ''}",
        err=True,
    )
    for line in found.absent:
        say(f"  {line}", err=True)
