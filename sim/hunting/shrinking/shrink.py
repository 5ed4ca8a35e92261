"""Delta debugging: the smallest scenario that fails with the same fingerprint.

Each move is tried by a run with the same seed. Of moves that are tried at once the first that keeps
the failure is made, so that the result does not depend on the number of processes. A last pass
tries every move from the result: none keeps the failure, so it is minimal by one.

Source: A. Zeller and R. Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (ddmin).
"""

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, Final

from sim.errors import ScenarioError, SimulationError
from sim.hunting.fingerprint import Finding
from sim.hunting.replay import Replay, replay
from sim.hunting.shrinking.lean import lean
from sim.hunting.shrinking.moves import STAGES, Data, Move, Stage, pinned
from sim.hunting.sought import Sought
from sim.scenario.loader import load_data
from sim.suite.pool import Pool, ShouldStop

RUNS_MAX: Final = 500
"""Runs that one shrinking may make, if nothing else is said."""


@dataclass(frozen=True, slots=True)
class Task:
    """A run of a candidate."""

    data: Data
    seed: int
    sought: tuple[Sought, ...]


@dataclass(slots=True)
class Shrunk:
    """Result of a shrinking."""

    data: Data
    steps: list[str] = field(default_factory=list)
    """Moves that were made."""
    runs: int = 0
    is_minimal: bool = False
    """True if no single move keeps the failure; false if the budget ended before that was known."""
    last: Replay | None = None
    """Of the last run that failed in the same way."""


def attempt(task: Task, should_stop: ShouldStop) -> Replay | None:
    """Run a candidate; ``None`` if it cannot be run."""
    try:
        scenario = load_data(task.data)
        return replay(scenario, task.seed, task.sought, should_stop=should_stop)
    except SimulationError:
        return None


class Shrinker:
    """One shrinking.

    Args:
        finding: The failure that must stay.
        sought: What is looked for.
        seed: Of the runs.
        pool: Processes.
        processes: How many moves are tried at once.
        runs_max: Budget.
        should_stop: Asked now and then: a signal, or the end of the time.
        on_run: Called with the move of each run, and whether it kept the failure.
    """

    def __init__(
        self,
        finding: Finding,
        sought: Sequence[Sought],
        seed: int,
        pool: Pool,
        processes: int,
        *,
        runs_max: int = RUNS_MAX,
        should_stop: ShouldStop = lambda: False,
        on_run: Callable[[str, bool], None] = lambda _words, _kept: None,
    ) -> None:
        self._finding = finding
        self._sought = tuple(each for each in sought if each.name == finding.kind) or tuple(sought)
        self._seed = seed
        self._pool = pool
        self._at_once = max(processes, 1)
        self._runs_max = runs_max
        self._should_stop = should_stop
        self._on_run = on_run
        self._failed: dict[str, None] = {}
        """Scenarios that were tried and did not fail in the same way."""

    def shrink(self, data: Data) -> Shrunk:
        """The smallest scenario.

        Raises:
            SimulationError: If the scenario does not fail in that way at all.
        """
        found = Shrunk(lean(data))
        found.data.pop("expect", None)
        if not self._try(found, [Move("as it is", found.data)]):
            if self._is_spent(found):
                return found
            raise SimulationError(
                f"the failure does not happen again: {self._finding.fingerprint}; give a run or a "
                "capsule of this version of Logquake"
            )
        assert found.last is not None
        fixed = pinned(found.data, found.last.hits)
        if fixed is not None and self._try(found, [Move("instants as drawn", fixed)]):
            found.steps.append("instants as drawn")
        found.steps.clear()
        while not self._is_spent(found):
            before = len(found.steps)
            for stage in STAGES:
                self._exhaust(found, stage)
            if len(found.steps) == before:
                found.is_minimal = not self._is_spent(found)
                break
        return found

    def _exhaust(self, found: Shrunk, stage: Stage) -> None:
        """Make moves of a stage until none of those that are left keeps the failure."""
        refused: dict[str, None] = {}
        while not self._is_spent(found):
            waiting = [m for m in self._open(found, stage(found.data)) if m.words not in refused]
            made = None
            for start in range(0, len(waiting), self._at_once):
                some = waiting[start : start + min(self._at_once, self._runs_max - found.runs)]
                made = self._try(found, some)
                if made is not None or self._is_spent(found):
                    break
                refused.update(dict.fromkeys(move.words for move in some))
            if made is None:
                return

    def _open(self, found: Shrunk, moves: Iterator[Move]) -> Iterator[Move]:
        """Moves that lead to another scenario that can be run, and was not tried before."""
        for move in moves:
            try:
                scenario = load_data(move.data)
            except (ScenarioError, KeyError, TypeError, AttributeError):
                continue
            if scenario.digest not in self._failed and move.data != found.data:
                yield move

    def _try(self, found: Shrunk, moves: Sequence[Move]) -> Move | None:
        """The first of some moves that keeps the failure, which is made; ``None`` without one."""
        tasks = [Task(deepcopy(move.data), self._seed, self._sought) for move in moves]
        results: dict[int, Replay | None] = {}
        for number, result in self._pool.results(attempt, tasks, self._should_stop):
            found.runs += 1
            results[number] = result
            self._on_run(moves[number].words, self._is_same(result))
        for number, move in enumerate(moves):
            result = results.get(number)
            if number not in results or (result is not None and not result.complete):
                return None
            if self._is_same(result):
                found.data, found.last = move.data, result
                found.steps.append(move.words)
                return move
            self._failed[load_data(move.data).digest] = None
        return None

    def _is_same(self, result: Replay | None) -> bool:
        return result is not None and self._finding in result.findings

    def _is_spent(self, found: Shrunk) -> bool:
        return found.runs >= self._runs_max or self._should_stop()


def claimed(data: Data, finding: Finding, sought: Sequence[Sought]) -> dict[str, Any]:
    """The scenario with a claim and an expectation that the failure denies."""
    each = next((one for one in sought if one.name == finding.kind), None)
    name = {"down": "unavailable.produce.max"}.get(finding.kind, finding.kind)
    expect: dict[str, object] = {}
    if each is not None and finding.kind != "stuck":
        bound = str(each).partition(">")[2]
        is_time = not bound.isdecimal()
        expect = {name: (f"at most {bound}" if is_time else f"0..{bound}") if bound else 0}
    words = _CLAIMS.get(finding.kind, f"{finding.kind} stays within its bound.")
    return {"claim": words, **{k: v for k, v in data.items() if k != "claim"}} | (
        {"expect": expect} if expect else {}
    )


_CLAIMS: Final = {
    "lost_acked": "No acknowledged record is lost.",
    "divergent": "Replicas do not differ.",
    "duplicated": "No record is in the log twice.",
    "reordered": "Records of a producer stay in order.",
    "down": "No partition is out of service for long.",
    "stuck": "After the last heal everything comes to rest.",
    "broken": "No promise of the protocol is broken.",
}
