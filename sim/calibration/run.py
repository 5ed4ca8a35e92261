"""A calibration from its loads to its preset: measured here, outside, or by an earlier one."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sim.calibration import measured, plan
from sim.calibration.fit import Fit, fit, parameters_of, stages_of
from sim.calibration.measured import Samples
from sim.calibration.outside import Outside, described, measure
from sim.calibration.preset import Origin
from sim.calibration.simulated import Simulator
from sim.errors import SimulationError
from sim.rehearsal import limits
from sim.rehearsal.apache import Apache
from sim.rehearsal.loads import clients_of
from sim.rehearsal.run import Options, rehearse
from sim.scenario.loader import load, load_data
from sim.scenario.run.directory import RunDirectory
from sim.scenario.run.result import Progress
from sim.scenario.scenario import Scenario
from sim.trace.run_files import ENDED_CARD, Shape, read_mapping
from sim.units import SECOND

MEASURED: Final = "measured"
"""Run directory of the real loads, below that of the calibration."""

NAME: Final = "calibrate"
SEED: Final = 1
_THIS: Final = "this machine"
_CARD: Final[Shape] = {
    **{key: shape for key, shape in ENDED_CARD.items() if key != "seed"},
    "?date": str,
    "?kafka": str,
    "?outside": str,
    "?noise": {"*": int},
}


@dataclass(frozen=True, slots=True)
class Observed:
    """Latencies of real clients, and the cluster they are of."""

    samples: Samples
    shape: plan.Shape
    seconds: int
    origin: Origin


Report = Callable[[Progress], None] | None


def here(
    apache: Apache,
    kafka: str,
    out: Path,
    seconds: int,
    *,
    force: bool,
    on_progress: Report = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Observed | None:
    """Measures a cluster that is started for it, as a rehearsal starts one.

    Args:
        apache: The release.
        kafka: Its version.
        out: Directory of the calibration.
        seconds: Length of a window.
        force: Replace an earlier run there.
        on_progress: Called now and then.
        should_stop: Asked often.

    Returns:
        ``None`` if somebody stopped it.

    Raises:
        SimulationError: If this machine cannot have the cluster, or it cannot come up.
    """
    scenario = load_data(plan.whole(plan.Shape(kafka=kafka), seconds), NAME)
    limits.check(scenario, clients_of(scenario), 1.0)
    options = Options(SEED, out / MEASURED, force=force)
    result = rehearse(scenario, apache, options, on_progress, should_stop)
    return kept([out / MEASURED]) if result.complete else None


def running(
    outside: Outside,
    apache: Apache,
    kafka: str,
    out: Path,
    seconds: int,
    *,
    force: bool,
    on_progress: Report = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Observed | None:
    """Measures a cluster that runs already; arguments and errors are those of :func:`here`."""
    shape = described(outside, apache, kafka)
    scenario = load_data(plan.whole(shape, seconds), NAME)
    directory = RunDirectory(out / MEASURED, force=force)
    try:
        done = measure(scenario, outside, apache, directory, on_progress, should_stop)
    finally:
        directory.release()
    return kept([out / MEASURED]) if done else None


def kept(directories: Sequence[Path]) -> Observed:
    """Reads what earlier calibrations measured; simulated runs of a plan are read, too.

    Args:
        directories: Of calibrations, or of the runs that they left.

    Raises:
        SimulationError: If one of them is none, is not complete, or their clusters differ.
    """
    places = [_run_of(directory) for directory in directories]
    cards = [_card(place) for place in places]
    scenarios = [load(place / "scenario.yaml") for place in places]
    shapes = [_shape(scenario, place) for scenario, place in zip(scenarios, places, strict=True)]
    for place, shape in zip(places, shapes, strict=True):
        if shape != shapes[0]:
            raise SimulationError(
                f"{place}: {_words(shape)}; {places[0]} has {_words(shapes[0])}: give "
                "calibrations of one cluster, or fit each alone"
            )
    samples = measured.joined(_read(place) for place in places)
    seconds = min(_seconds(scenario) for scenario in scenarios)
    return Observed(samples, shapes[0], seconds, _origin(cards, samples))


def fitted(
    observed: Observed,
    on_run: Callable[[str], None] = lambda _: None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Fit:
    """Fits the simulator to what was observed.

    Raises:
        SimulationError: If there are too few latencies.
        KeyboardInterrupt: If somebody stopped it.
    """
    names = parameters_of(stages_of(observed.samples, observed.shape))
    simulator = Simulator(observed.shape, observed.seconds, names, on_run, should_stop)
    return fit(observed.samples, simulator)


def _run_of(directory: Path) -> Path:
    place = directory / MEASURED
    return place if (place / "run.json").is_file() else directory


def _card(place: Path) -> Mapping[str, Any]:
    for name in ("run.json", "scenario.yaml"):
        if not (place / name).is_file():
            raise SimulationError(
                f"{place}: no {name}; give directories that logquake calibrate wrote (--out)"
            )
    card = read_mapping(place / "run.json", _CARD)
    if not card["complete"]:
        raise SimulationError(f"{place}: interrupted; allowed: runs that came to their end")
    return card


def _read(place: Path) -> Samples:
    try:
        return measured.read(place)
    except SimulationError as error:
        raise SimulationError(f"{place}: {error}") from None


def _shape(scenario: Scenario, place: Path) -> plan.Shape:
    brokers, kafka = len(scenario.cluster.brokers), scenario.cluster.kafka
    names = {producer.name for producer in scenario.producers}
    if not any(plan.by_name(name) for name in names):
        raise SimulationError(
            f"{place}: no producer in it is one of the plan of logquake calibrate; give "
            "directories that it wrote (--out)"
        )
    topic = scenario.topics[0]
    if len(scenario.topics) > 1:
        return plan.Shape(brokers=brokers, kafka=kafka)
    return plan.Shape(brokers, kafka, topic.name, topic.partitions, topic.replication_factor)


def _words(shape: plan.Shape) -> str:
    where = f", topic {shape.topic}" if shape.topic else ""
    return f"{shape.brokers} brokers of Kafka {shape.kafka}{where}"


def _seconds(scenario: Scenario) -> int:
    """Length of the shortest window."""
    return min(
        (producer.stop_us - producer.start_us) // SECOND
        for producer in scenario.producers
        if plan.by_name(producer.name)
    )


def _origin(cards: Sequence[Mapping[str, Any]], samples: Samples) -> Origin:
    last = cards[-1]
    is_real = bool(last.get("real"))
    where = str(last.get("outside", _THIS)) if is_real else "a simulated cluster"
    return Origin(
        date=str(last.get("date", "")),
        kafka=str(last.get("kafka", "")),
        cores=os.cpu_count() or 0,
        noise=last.get("noise", {}),
        cluster=where,
        rounds=len(samples.rounds),
    )
