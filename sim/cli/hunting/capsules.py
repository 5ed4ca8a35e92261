"""Replays of capsules, for ``logquake check`` and ``logquake run``."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from sim.errors import NoProgress, SimulationError
from sim.hunting import capsule as capsules
from sim.hunting.capsule import Recurrence
from sim.hunting.fingerprint import of_run
from sim.hunting.replay import watcher_of
from sim.scenario.run.hooks import NO_HOOKS, Hooks
from sim.scenario.run.result import Result
from sim.scenario.scenario import Scenario
from sim.suite.outcome import Outcome, Status
from sim.suite.pool import pool


def divided(files: Sequence[Path]) -> tuple[list[Path], list[Path]]:
    """Scenario files, and capsules."""
    found = [file for file in files if capsules.is_capsule_file(file)]
    return [file for file in files if file not in found], found


def replayed(
    files: Sequence[Path], processes: int, should_stop: Callable[[], bool]
) -> Iterator[Outcome]:
    """Replay capsules; each held if its failure does not happen any more."""
    with pool(min(processes, len(files))) as some:
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


class Seen:
    """A run of ``logquake run``, of which something is said if its file is a capsule.

    Args:
        path: The file.
        scenario: As it is run.
        is_changed: True if it is run with another seed, or other settings, than the file has.
    """

    def __init__(self, path: Path, scenario: Scenario, *, is_changed: bool) -> None:
        self._capsule = capsules.opened(path) if capsules.is_capsule_file(path) else None
        self._is_changed = is_changed
        self._watcher = None
        if self._capsule is not None:
            self._watcher = watcher_of(scenario, self._capsule.sought)

    @property
    def hooks(self) -> Hooks:
        """Hooks of the run: none for a scenario."""
        return self._watcher or NO_HOOKS

    def lines(self, result: Result) -> list[str]:
        """Sentences about a run that has ended; none about a scenario that is no capsule."""
        if self._capsule is None or self._watcher is None or not result.complete:
            return []
        findings = of_run(result.directory, self._watcher.leftovers, self._capsule.sought)
        same = Recurrence(
            self._capsule.finding in findings, tuple(findings), self._capsule.difference()
        )
        changed = ["note: with another seed or other settings than the capsule has"]
        return [*(changed if self._is_changed else []), *same.lines(self._capsule)]
