"""Replays of capsules, for ``logquake check``."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sim.errors import NoProgress, SimulationError
from sim.hunting import capsule as capsules
from sim.scenario.text.capsules import is_capsule_file
from sim.suite.outcome import Outcome, Status
from sim.suite.pool import Pool


def divided(files: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Scenario files, and capsules."""
    found = [file for file in files if is_capsule_file(file)]
    return [file for file in files if file not in found], found


def replayed(
    files: Sequence[Path], some: Pool, should_stop: Callable[[], bool]
) -> Iterator[Outcome]:
    """Replay capsules; each held if its failure does not happen any more."""
    for number, outcome in some.results(_replayed, files, should_stop):
        ended = Outcome(files[number].as_posix(), 0, "interrupted", "its process ended")
        yield outcome or ended


def _replayed(file: Path, should_stop: Callable[[], bool]) -> Outcome:
    try:
        capsule = capsules.opened(file)
        found = capsules.check(capsule, should_stop)
    except NoProgress as error:
        return Outcome(file.as_posix(), 0, "no progress", str(error))
    except SimulationError as error:
        return Outcome(file.as_posix(), 0, "bad input", str(error))
    status: Status = "failed" if found.happens else "held"
    message = "; ".join(found.lines(capsule))
    if not found.complete:
        status, message = "interrupted", "interrupted before its end"
    return Outcome(file.as_posix(), capsule.seed, status, message)
