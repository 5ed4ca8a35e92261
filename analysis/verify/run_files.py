"""The files of a run beside its trace."""

from dataclasses import dataclass
from pathlib import Path

import yaml

from sim.errors import SimulationError
from sim.trace.kept import check_kept
from sim.trace.run_files import CARD, VERDICT, Shape, read_mapping


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Files beside the trace; one that is missing or unreadable is empty here."""

    directory: Path
    card: dict[str, object]
    verdict: dict[str, object]
    scenario: dict[str, object]

    @property
    def name(self) -> str:
        """The directory's name."""
        return self.directory.resolve().name


def open_run(directory: Path) -> RunFiles:
    """Reads the files beside the trace.

    Raises:
        SimulationError: If the directory has no trace, or a file of it is damaged.
    """
    check_kept(directory, "trace")
    if not (directory / "trace").is_dir():
        raise SimulationError(f"{directory}: not a run directory: it has no trace/")
    return RunFiles(
        directory,
        _mapping(directory / "run.json", CARD),
        _mapping(directory / "verdict.json", VERDICT),
        _scenario(directory / "scenario.yaml"),
    )


def _mapping(path: Path, shape: Shape) -> dict[str, object]:
    return read_mapping(path, shape) if path.is_file() else {}


def _scenario(path: Path) -> dict[str, object]:
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise SimulationError(f"{path}: damaged: not YAML: {str(error)[:200]}") from None
    if not isinstance(found, dict):
        raise SimulationError(f"{path}: damaged: a mapping of keys expected")
    return found
