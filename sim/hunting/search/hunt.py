"""Hunt: generations of executions, a corpus that grows, a journal from which it is resumed.

The schedules of a generation are made of the corpus as it was when it began, each from a random
stream of its own, and its results are added in their order: the same seed hunts the same, whatever
the number of processes, and however often it was stopped. The first generation has no parents, nor
has a share of the schedules after it; those are independent draws, so that estimates may rest on
them.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sim.errors import SimulationError
from sim.hunting import sought as looked
from sim.hunting.fingerprint import Finding
from sim.hunting.search.corpus import Corpus, coarse
from sim.hunting.search.execution import Execution, Task, execute, read_execution
from sim.hunting.search.menu import Menu
from sim.hunting.search.schedule import Breeder, Parent, Schedule, data_of
from sim.rng import Stream
from sim.scenario.loader import load_data
from sim.scenario.overrides.vary import variation
from sim.suite.plan import code_digest
from sim.suite.pool import Pool, ShouldStop

GENERATION: Final = 16
"""Executions whose schedules are made of one corpus."""

UNIFORM_SHARE: Final = 0.25
"""Of schedules without a parent."""

_CROSSED: Final = 0.2
"""Share of children that have two parents."""

PLAN: Final = "hunt.json"
JOURNAL: Final = "executions.jsonl"


@dataclass(frozen=True, slots=True)
class Plan:
    """A scenario that is hunted, and the bounds of the search."""

    name: str
    """Of the scenario."""
    base: Mapping[str, Any]
    """The scenario, as its file has it."""
    looking_for: str
    faults: int
    """Most faults of a run."""
    seed: int
    kinds: tuple[str, ...] = ()
    vary: tuple[str, ...] = ()
    share: float = UNIFORM_SHARE
    """Of uniform draws; 1: nothing is guided."""

    def as_json(self) -> dict[str, Any]:
        """Everything on which the executions depend."""
        return {
            "name": self.name,
            "scenario": load_data(self.base).digest,
            "looking_for": self.looking_for,
            "faults": self.faults,
            "seed": self.seed,
            "kinds": list(self.kinds),
            "vary": list(self.vary),
            "share": self.share,
            "generation": GENERATION,
            "code": code_digest(),
        }


class Hunt:
    """A hunt in a directory.

    Args:
        plan: What is hunted.
        directory: Where its journal is; made if it is not there.

    Raises:
        SimulationError: If the directory holds something else, or another hunt.
    """

    def __init__(self, plan: Plan, directory: Path) -> None:
        self.plan = plan
        self.directory = directory
        self.sought = looked.parse(plan.looking_for)
        self.corpus = Corpus()
        self.executions: list[Execution] = []
        """All that have ended, in order; of the present generation some may be missing."""
        self._done: dict[int, Execution] = {}
        self._known: dict[Finding, None] = {}
        """Failures of earlier executions."""
        self._breeder: Breeder | None = None
        self._variations = tuple(variation(text) for text in plan.vary)
        self._begin()

    @property
    def first_found(self) -> dict[Finding, Execution]:
        """Every failure, with the first execution that had it."""
        found: dict[Finding, Execution] = {}
        for each in self.executions:
            for finding in each.findings:
                found.setdefault(finding, each)
        return found

    @property
    def states(self) -> int:
        """States that the executions reached, each once."""
        return len({cell for each in self.executions for cell in each.cells})

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of faults that are drawn; none before the calm run has ended."""
        if 0 not in self._done:
            return ()
        return (self._breeder or self._make_breeder()).menu.kinds

    def go(
        self,
        pool: Pool,
        *,
        runs_max: int | None,
        should_stop: ShouldStop,
        on_execution: Callable[["Hunt"], None] = lambda _hunt: None,
    ) -> None:
        """Hunt until so many executions have ended in all, or somebody stops it.

        Raises:
            ScenarioError: If no schedule can be run.
        """
        number = 0
        while not should_stop() and (runs_max is None or number < runs_max):
            tasks = self._generation(number)
            size = len(tasks)
            due = [
                task
                for task in tasks
                if task.number not in self._done and (runs_max is None or task.number < runs_max)
            ]
            self._run(pool, due, should_stop, on_execution)
            some = [self._done[task.number] for task in tasks if task.number in self._done]
            self.executions += some
            if len(some) < size:
                return
            for each in some:
                known = self._known
                is_known = bool(each.findings) and known.keys() >= set(each.findings)
                known |= dict.fromkeys(each.findings)
                parent = Parent(each.schedule, each.points)
                marks = coarse(each.landmarks, each.kinds)
                self.corpus.add(
                    parent, marks, each.distance, is_found=bool(each.findings), is_known=is_known
                )
            number += size

    def data_of(self, execution: Execution) -> dict[str, Any]:
        """The scenario of an execution."""
        return data_of(self.plan.base, execution.schedule)

    # -- generations -------------------------------------------------------------------------------

    def _generation(self, first: int) -> list[Task]:
        if first == 0:
            calm = Schedule(seed=self.plan.seed)
            return [Task(0, "calm", calm, data_of(self.plan.base, calm), self.sought)]
        return [self._task(number) for number in range(first, first + GENERATION)]

    def _task(self, number: int) -> Task:
        breeder = self._breeder or self._make_breeder()
        stream = Stream(self.plan.seed, f"hunt/{number}")
        # The run without faults has reached nothing from which a child could begin.
        is_first = number <= GENERATION or not self.corpus.entries
        is_uniform = stream.unit() < self.plan.share or is_first
        if is_uniform:
            schedule, _ = breeder.uniform(stream)
        else:
            parents = [self.corpus.pick(stream)]
            if stream.unit() < _CROSSED:
                parents.append(self.corpus.pick(stream))
            schedule, _ = breeder.child(parents, stream)
        origin = "uniform" if is_uniform else "guided"
        return Task(number, origin, schedule, data_of(self.plan.base, schedule), self.sought)

    def _make_breeder(self) -> Breeder:
        calm = self._done[0]
        menu = Menu(load_data(data_of(self.plan.base, Schedule())), self.plan.kinds, calm.messages)
        self._breeder = Breeder(self.plan.base, menu, self.plan.faults, self._variations)
        return self._breeder

    def _run(
        self,
        pool: Pool,
        tasks: Sequence[Task],
        should_stop: ShouldStop,
        on_execution: Callable[["Hunt"], None],
    ) -> None:
        with (self.directory / JOURNAL).open("a", encoding="utf-8") as journal:
            for _, execution in pool.results(execute, tasks, should_stop):
                if execution is None:
                    continue
                self._done[execution.number] = execution
                journal.write(json.dumps(execution.as_json()) + "\n")
                journal.flush()
                on_execution(self)

    # -- the directory -----------------------------------------------------------------------------

    def _begin(self) -> None:
        where, file = self.directory, self.directory / PLAN
        if where.exists() and not file.is_file() and (not where.is_dir() or any(where.iterdir())):
            raise SimulationError(f"{where}: holds something else; choose another --out")
        due = self.plan.as_json()
        if file.is_file():
            here = json.loads(file.read_text(encoding="utf-8"))
            differing = [key for key in due if here.get(key) != due[key]]
            if differing:
                raise SimulationError(
                    f"{where}: holds a hunt with another {', '.join(differing)}; a hunt is resumed "
                    "with what it was begun with; choose another --out for another one"
                )
            self._done = {each.number: each for each in self._read()}
            return
        where.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(due, indent=1) + "\n", encoding="utf-8")

    def _read(self) -> Iterator[Execution]:
        journal = self.directory / JOURNAL
        if not journal.is_file():
            return
        lines = journal.read_text(encoding="utf-8").splitlines()
        for number, line in enumerate(lines):
            try:
                yield read_execution(json.loads(line))
            except (ValueError, KeyError, TypeError):
                if number < len(lines) - 1:
                    raise SimulationError(
                        f"{journal}:{number + 1}: damaged: no execution; remove {self.directory}, "
                        "or choose another --out"
                    ) from None
                # The last line of a hunt that was killed is made again.
                journal.write_text("".join(f"{each}\n" for each in lines[:-1]), encoding="utf-8")

    def all_ended(self) -> Iterator[Execution]:
        """Executions that have ended, those of the present generation included, in order."""
        for number in sorted(self._done):
            yield self._done[number]

    @property
    def ended(self) -> int:
        """Executions that have ended, resumed ones included."""
        return len(self._done)
