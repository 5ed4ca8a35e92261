"""A capsule that ``logquake run`` runs: what it says of the failure that is in it."""

from pathlib import Path

from sim.hunting import capsule as capsules
from sim.hunting.capsule import Recurrence
from sim.hunting.fingerprint import of_run
from sim.hunting.replay import watcher_of
from sim.scenario.run.result import Result
from sim.scenario.scenario import Scenario


class Seen:
    """A run of ``logquake run`` whose file is a capsule, of which something is said.

    Args:
        path: The capsule.
        scenario: As it is run.
        is_changed: True if it is run with another seed, or other settings, than the file has.
    """

    def __init__(self, path: Path, scenario: Scenario, *, is_changed: bool) -> None:
        self._capsule = capsules.opened(path)
        self._is_changed = is_changed
        self.hooks = watcher_of(scenario, self._capsule.sought)
        """Hooks of the run."""

    def lines(self, result: Result) -> list[str]:
        """Sentences about a run; none about one that was interrupted."""
        if not result.complete:
            return []
        findings = of_run(result.directory, self.hooks.leftovers, self._capsule.sought)
        same = Recurrence(
            self._capsule.finding in findings, tuple(findings), self._capsule.difference()
        )
        changed = ["note: with another seed or other settings than the capsule has"]
        return [*(changed if self._is_changed else []), *same.lines(self._capsule)]
