"""One execution of a hunt: a schedule, and what its run reached and broke."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from sim.checking.observer import Observer
from sim.errors import SimulationError
from sim.hunting.fingerprint import Finding
from sim.hunting.replay import Watcher, replay
from sim.hunting.search.coverage import Coverage
from sim.hunting.search.points import Point
from sim.hunting.search.schedule import Schedule, from_json
from sim.hunting.sought import STUCK, Sought
from sim.scenario.loader import load_data
from sim.scenario.scenario import Scenario
from sim.suite.pool import ShouldStop
from sim.trace.rows.run import Messages, MessagesRow
from sim.trace.writer import Trace
from sim.units import Micros


@dataclass(frozen=True, slots=True)
class Task:
    """An execution to come."""

    number: int
    origin: str
    """``calm``, ``uniform`` or ``guided``."""
    schedule: Schedule
    data: Mapping[str, Any]
    """The scenario with the schedule."""
    sought: tuple[Sought, ...]


@dataclass(frozen=True, slots=True)
class Execution:
    """An execution that has ended."""

    number: int
    origin: str
    schedule: Schedule
    cells: tuple[int, ...] = ()
    landmarks: tuple[str, ...] = ()
    points: tuple[Point, ...] = ()
    findings: tuple[Finding, ...] = ()
    kinds: tuple[str, ...] = ()
    """Kinds of faults that took effect."""
    simulated_us: Micros = 0
    distance: int = 0
    """Of the run from a loss, see :mod:`sim.hunting.search.nearness`."""
    messages: tuple[str, ...] = ()
    """Messages as ``SENDER KIND RECEIVER``, each once; of the calm one alone."""

    def as_json(self) -> dict[str, Any]:
        """A line of the journal."""
        return {
            "number": self.number,
            "origin": self.origin,
            "schedule": self.schedule.as_json(),
            "cells": list(self.cells),
            "landmarks": list(self.landmarks),
            "points": [[p.name, p.at_us, p.node] for p in self.points],
            "findings": [[f.kind, list(f.chain), f.words] for f in self.findings],
            "kinds": list(self.kinds),
            "simulated_us": self.simulated_us,
            "distance": self.distance,
            "messages": list(self.messages),
        }


def read_execution(plain: Mapping[str, Any]) -> Execution:
    """The execution of a line of the journal.

    Raises:
        KeyError: If a key is missing.
    """
    return Execution(
        plain["number"],
        plain["origin"],
        from_json(plain["schedule"]),
        tuple(plain["cells"]),
        tuple(plain["landmarks"]),
        tuple(Point(*point) for point in plain["points"]),
        tuple(Finding(kind, tuple(chain), words) for kind, chain, words in plain["findings"]),
        tuple(plain["kinds"]),
        plain["simulated_us"],
        plain["distance"],
        tuple(plain["messages"]),
    )


class Scout(Watcher):
    """Watches a run for what it reaches, and for what is not at rest in the end."""

    def __init__(self, scenario: Scenario, *, is_waiting: bool, hears_messages: bool) -> None:
        super().__init__(scenario, is_waiting=is_waiting)
        self._hears_messages = hears_messages
        self.messages: dict[str, None] = {}
        self.coverage: Coverage | None = None

    def hear(self, trace: Trace, observer: Observer) -> None:
        """Listens to the rows of steps."""
        super().hear(trace, observer)
        self.coverage = Coverage(observer)
        if self._hears_messages:
            observer.listen("messages", self._message)

    def _message(self, row: MessagesRow) -> None:
        if row[Messages.T_US] >= 0:
            route = f"{row[Messages.SENDER]} {row[Messages.KIND]} {row[Messages.RECEIVER]}"
            self.messages[route] = None


def execute(task: Task, should_stop: ShouldStop) -> Execution | None:
    """Run a task; ``None`` if somebody stopped it, or its cluster cannot come up."""
    scenario = load_data(task.data)
    is_waiting = any(each.name == STUCK for each in task.sought)
    scout = Scout(scenario, is_waiting=is_waiting, hears_messages=task.origin == "calm")
    made = Execution(task.number, task.origin, task.schedule)
    try:
        found = replay(
            scenario, task.schedule.seed, task.sought, should_stop=should_stop, watcher=scout
        )
    except SimulationError:
        return made  # a fault was so early that the cluster did not boot: nothing was reached
    if not found.complete:
        return None
    seen = scout.coverage
    assert seen is not None, "a run begins with its hooks"
    return replace(
        made,
        cells=tuple(seen.cells),
        landmarks=tuple(seen.landmarks),
        points=seen.points.kept(),
        findings=found.findings,
        kinds=found.effective,
        simulated_us=found.simulated_us,
        distance=seen.near.distance,
        messages=tuple(sorted(scout.messages)),
    )
