"""Loads of a plan in the simulator, each alone, in memory but for the simulated disks."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from sim.calibration import plan
from sim.calibration.measured import TABLES, Quantiles, Rows, quantiles, samples
from sim.calibration.parameters import Values, figures
from sim.checking.observer import Observer
from sim.scenario.loader import load_data
from sim.scenario.run.directory import RunDirectory
from sim.scenario.run.hooks import Hooks
from sim.scenario.run.runner import Work
from sim.scenario.scenario import Scenario
from sim.scratch import scratch
from sim.trace.writer import Trace

SEED: Final = 1
"""Of every run: values are compared on the same chance."""


class Listener(Hooks):
    """Keeps the rows of a run that latencies are made of."""

    def __init__(self) -> None:
        self.rows = Rows()

    def hear(self, trace: Trace, observer: Observer) -> None:  # noqa: ARG002 - the interface
        """Adds listeners to the tables."""
        for table in TABLES:
            observer.listen(table, getattr(self.rows, table).append)


class Simulator:
    """Runs loads, each once for the same figures.

    Args:
        shape: Of the cluster.
        seconds: Length of a load.
        fitted: Names of the parameters that are set.
        on_run: Called before each run.
        should_stop: Asked before each run, and during it.
        place: Parent of temporary directories; the system's if not given.
    """

    def __init__(
        self,
        shape: plan.Shape,
        seconds: int,
        fitted: tuple[str, ...],
        on_run: Callable[[str], None] = lambda _: None,
        should_stop: Callable[[], bool] = lambda: False,
        place: Path | None = None,
    ) -> None:
        self.shape = shape
        """Of the cluster."""
        self._seconds = seconds
        self._fitted = fitted
        self._on_run = on_run
        self._should_stop = should_stop
        self._place = place
        self._known: dict[tuple[str, str], Quantiles] = {}
        self.runs = 0
        """Runs so far."""

    def quantiles(self, load: plan.Load, values: Values | None) -> Quantiles:
        """Percentiles of a load with values of the parameters; without any, the simulator's own.

        Raises:
            KeyboardInterrupt: If somebody stopped it.
        """
        parts = {} if values is None else figures(values, self._fitted)
        key = load.name, repr(parts)
        found = self._known.get(key)
        if found is None:
            self._on_run(load.name)
            found = self._known[key] = self._run(load, parts)
            self.runs += 1
        return found

    def _run(self, load: plan.Load, parts: Mapping[str, Any]) -> Quantiles:
        plain = plan.alone(load, self.shape, self._seconds, parts)
        scenario = load_data(plain, load.name)
        rows = heard(scenario, SEED, self._should_stop, self._place)
        return quantiles(load, samples(rows).of(load.name))


def heard(
    scenario: Scenario,
    seed: int,
    should_stop: Callable[[], bool] = lambda: False,
    place: Path | None = None,
) -> Rows:
    """Rows of a run that leaves nothing on the disk.

    Args:
        scenario: A plan, or a load of one.
        seed: Of its chance.
        should_stop: Asked now and then.
        place: Parent of temporary directories; the system's if not given.

    Raises:
        KeyboardInterrupt: If somebody stopped it.
    """
    listener = Listener()
    with scratch(place) as made:
        directory = RunDirectory(made / "run", force=False, is_part=True)
        work = Work(
            scenario, seed, directory, "facts",
            should_stop=should_stop, keeps=False, hooks=listener,
        )  # fmt: skip
        if not work.execute().complete:
            raise KeyboardInterrupt
    return listener.rows
