"""Measures a cluster that runs already: produces to one topic that was named, and nothing else.

Kafka's Java clients are those of a rehearsal, in a process that ends with this one. What needs
other topics, settings or faults is not measured, and its parameters are not fitted.

Left out: TLS and SASL, and a consumer, whose group would write to the cluster's own topics.
"""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Final

from sim.calibration import plan
from sim.errors import SimulationError
from sim.rehearsal import client_log, launcher
from sim.rehearsal.apache import Apache, java_version
from sim.rehearsal.client_processes import ClientProcess
from sim.rehearsal.clock import Clock
from sim.rehearsal.fleet import CLIENT_HEAP
from sim.rehearsal.loads import SHARED, Client, Loads, clients_of
from sim.rehearsal.noise import Sleeper
from sim.scenario.run.directory import RunDirectory
from sim.scenario.run.result import Progress
from sim.scenario.scenario import Scenario
from sim.trace.writer import Trace
from sim.units import MS, SECOND, Micros

SEED: Final = 1
_HEADSTART_US: Final[Micros] = 500 * MS
_PATIENCE_US: Final[Micros] = 20 * SECOND
"""For answers that are open when the last window has ended."""
_DESCRIBE_S: Final = 60


@dataclass(frozen=True, slots=True)
class Outside:
    """A running cluster, and the topic of it that may be written to."""

    servers: str
    topic: str


def described(outside: Outside, apache: Apache, kafka: str) -> plan.Shape:
    """The cluster's shape.

    Args:
        outside: The cluster.
        apache: Whose clients are used.
        kafka: Version that the simulator is to have.

    Raises:
        SimulationError: If nobody answers, or the topic is not there or has records.
    """
    program = _java(apache, "Describe", outside.servers, outside.topic)
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            launcher.command(program),
            capture_output=True, text=True, check=False, timeout=_DESCRIBE_S,
        )  # fmt: skip
        said = done.stderr.strip()[-500:]
    except subprocess.TimeoutExpired:
        said = f"no answer within {_DESCRIBE_S} s"
    else:
        if done.returncode == 0:
            return _shape(outside, [int(word) for word in done.stdout.split()], kafka)
    raise SimulationError(
        f"--bootstrap-servers {outside.servers}: {said}; allowed: HOST:PORT of a listener without "
        "TLS and SASL that can be reached from here"
    )


def _shape(outside: Outside, numbers: list[int], kafka: str) -> plan.Shape:
    if len(numbers) == 1:
        raise SimulationError(
            f"--topic {outside.topic}: the cluster has no such topic; make one for this alone: "
            f"kafka-topics.sh --bootstrap-server {outside.servers} --create --topic "
            f"{outside.topic} --partitions 1"
        )
    brokers, partitions, replicas, records = numbers
    if records:
        raise SimulationError(
            f"--topic {outside.topic}: has {records:,} records; a calibration writes only to a "
            "topic of its own: give a new one, or delete this one and make it again"
        )
    return plan.Shape(
        brokers=brokers,
        kafka=kafka,
        topic=outside.topic,
        partitions=partitions,
        replicas=replicas,
    )


def measure(
    scenario: Scenario,
    outside: Outside,
    apache: Apache,
    directory: RunDirectory,
    on_progress: Callable[[Progress], None] | None,
    should_stop: Callable[[], bool],
) -> bool:
    """Runs the plan's producers against the cluster; leaves their rows, and a run card.

    Returns:
        False if somebody stopped it; then there are no rows.
    """
    place = directory.path / "real"
    place.mkdir()
    directory.write_text("scenario.yaml", scenario.as_yaml())
    clients = clients_of(scenario)
    loads = Loads(scenario, (), SEED, outside.servers, place)
    events = place / f"{SHARED}.tsv"
    program = _java(apache, "Clients", str(loads.write(SHARED, clients)), str(events))
    process = ClientProcess(SHARED, program, place / f"{SHARED}.log", _ignore, events)
    clock, sleeper = Clock(), Sleeper()

    def beat() -> bool:
        process.look()
        if on_progress is not None:
            on_progress(Progress("run", clock.now(), scenario.run.for_us, 0, 0, 0))
        return should_stop()

    process.start()
    try:
        process.order("prepare")
        clock.begin_in(_HEADSTART_US)
        process.order("start", str(clock.zero_us))
        sleeper.start()
        clock.advance(scenario.run.for_us, beat)
        limit = clock.now() + _PATIENCE_US
        while not should_stop() and clock.now() < limit and _open(process):
            clock.advance(clock.now() + 250 * MS, beat)
        process.order("close")
    finally:
        process.kill()
    noise = sleeper.report()
    if should_stop():
        return False
    _write(directory, events, clock)
    directory.write_card(_card(scenario, clients, apache, outside, clock) | {"noise": noise})
    return True


def _open(process: ClientProcess) -> bool:
    """True while a producer sends, or waits for an answer."""
    return any(int(sending) or int(left) for _, _, sending, left, *_ in process.order("status"))


def _write(directory: RunDirectory, events: Path, clock: Clock) -> None:
    trace = Trace(directory.trace, level="facts")
    rows = sorted(client_log.rows(events, clock.zero_us), key=itemgetter(0))
    for at, emit in rows:
        trace.write(at, emit)
    trace.close()


def _card(
    scenario: Scenario, clients: tuple[Client, ...], apache: Apache, outside: Outside, clock: Clock
) -> dict[str, object]:
    return {
        "scenario": scenario.name,
        "complete": True,
        "kept": "all",
        "real": True,
        "outside": outside.servers,
        "kafka": apache.release,
        "date": clock.date(),
        "producers": [client.name for client in clients],
        "simulated_us": clock.now(),
        "machine": {"java": java_version()},
    }


def _java(apache: Apache, main: str, *arguments: str) -> list[str]:
    return apache.java(main, *arguments, heap=CLIENT_HEAP, quick=True, classes=apache.classes())


def _ignore(name: str, state: str, incarnation: int) -> None:
    """No row has the state of a process that is no part of the cluster."""
