"""One run of a scenario for its failures: first its numbers alone, then with a trace if it fails.

A run that fails in nothing leaves nothing on the disk, and costs half of one that is recorded.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sim.checking.observer import Observer
from sim.errors import SimulationError
from sim.hunting.fingerprint import Finding, of_error, of_numbers, of_run
from sim.hunting.rest import Leftover, Rest
from sim.hunting.sought import STUCK, Sought
from sim.scenario.run.directory import RunDirectory
from sim.scenario.run.hooks import Hooks
from sim.scenario.run.runner import Work, run
from sim.scenario.scenario import Scenario
from sim.scratch import scratch
from sim.trace.writer import Trace
from sim.units import Micros


class Watcher(Hooks):
    """Watches a run for what is not at rest in the end.

    Args:
        scenario: Of the run.
        is_waiting: True if the drain waits until everything is at rest, or its time is up.
    """

    def __init__(self, scenario: Scenario, *, is_waiting: bool) -> None:
        self._scenario = scenario
        self._is_waiting = is_waiting
        self._rest: Rest | None = None
        self.leftovers: list[Leftover] = []

    def hear(self, trace: Trace, observer: Observer) -> None:  # noqa: ARG002 - the interface
        """Listens to the rows of groups, transactions and partitions."""
        if self._is_waiting:
            self._rest = Rest(self._scenario, observer)

    def is_at_rest(self, at: Micros) -> bool:
        """True if nothing is left over or may yet be, or nobody looks for that."""
        return self._rest is None or self._rest.is_reached(at)

    def rest(self, at: Micros) -> None:
        """Takes down what is left over; a run that is not healed at its end is never at rest."""
        if self._rest is not None and self._scenario.run.drain:
            self.leftovers = self._rest.leftovers(at)


@dataclass(frozen=True, slots=True)
class Replay:
    """Outcome of a run that was made for its failures."""

    findings: tuple[Finding, ...]
    hits: tuple[tuple[str, ...], ...] = ()
    """Whom each fault hit, as in :class:`~sim.suite.outcome.Outcome`."""
    effective: tuple[str, ...] = ()
    """Kinds of the faults that took effect, each once."""
    simulated_us: Micros = 0
    complete: bool = True
    """False if somebody stopped it: then it says nothing."""
    kinds: tuple[str, ...] = ()
    """Names of what was found, whether or not it was explained."""


def replay(
    scenario: Scenario,
    seed: int,
    sought: Sequence[Sought],
    *,
    should_stop: Callable[[], bool] | None = None,
    watcher: Watcher | None = None,
    within: Path | None = None,
) -> Replay:
    """Run a scenario for its failures; its own expectations are left aside.

    Args:
        scenario: What is run.
        seed: Of its chance.
        sought: Which failures count.
        should_stop: Asked now and then.
        watcher: Hooks of the first run; one that looks for what is not at rest if not given.
        within: Where the recorded run of a failure may be, for as long as it is read.

    Raises:
        SimulationError: If the cluster cannot come up.
        OSError: If the real disk fills up.
    """
    bare = replace(scenario, expect=())
    watching = watcher or watcher_of(scenario, sought)
    with scratch(within) as place:
        directory = RunDirectory(place / "run", force=False, is_part=True)
        try:
            work = Work(
                bare, seed, directory, "facts", should_stop=should_stop, keeps=False, hooks=watching
            )
            result = work.execute()
        except SimulationError as error:
            if type(error) is SimulationError:
                raise
            return Replay((of_error(error),), kinds=("defect",))
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001 - a broken promise is a finding
            return Replay((of_error(error),), kinds=(of_error(error).kind,))
        verdict: dict[str, Any] = dict(result.verdict)
        names = of_numbers(verdict, watching.leftovers, sought)
        if not result.complete or not names:
            return _replay((), verdict, work.kernel.now(), complete=result.complete)
        found = recorded(bare, seed, sought, place / "recorded", should_stop)
        return _replay(
            tuple(found or ()), verdict, work.kernel.now(), names, complete=found is not None
        )


def recorded(
    scenario: Scenario,
    seed: int,
    sought: Sequence[Sought],
    directory: Path,
    should_stop: Callable[[], bool] | None = None,
) -> list[Finding] | None:
    """Failures of a run that leaves its directory; ``None`` if somebody stopped it."""
    watching = watcher_of(scenario, sought)
    result = run(
        scenario, seed, directory, force=True, level="facts", should_stop=should_stop,
        hooks=watching,
    )  # fmt: skip
    return of_run(directory, watching.leftovers, sought) if result.complete else None


def watcher_of(scenario: Scenario, sought: Sequence[Sought]) -> Watcher:
    """A watcher that waits for rest if that is looked for."""
    return Watcher(scenario, is_waiting=any(each.name == STUCK for each in sought))


def _replay(
    findings: tuple[Finding, ...],
    verdict: dict[str, Any],
    simulated_us: Micros,
    names: Sequence[str] = (),
    *,
    complete: bool,
) -> Replay:
    reports = verdict["faults"]
    return Replay(
        findings,
        tuple(_hit(report) for report in reports),
        tuple(dict.fromkeys(str(each["kind"]) for each in reports if each["took_effect"])),
        simulated_us,
        complete,
        tuple(names),
    )


def _hit(report: dict[str, Any]) -> tuple[str, ...]:
    names = sorted(name for name in str(report["resolved"]).split(", ") if name)
    return (str(report["kind"]), str(report["began_us"]), str(report["healed_us"]), *names)
