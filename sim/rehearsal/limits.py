"""Refusals: what a rehearsal cannot have on this machine, named before anything starts.

A fault is had as far as a user without special rights can cause it: by signals, in files of the
brokers, and in proxies between the nodes. Nothing of it needs root.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from sim.errors import SimulationError
from sim.faults.disks import WipedDisk
from sim.faults.fault import Fault
from sim.faults.hosts import PowerLoss
from sim.faults.links import Bandwidth, Delay, NetworkPartition
from sim.faults.load import LoadSurge
from sim.faults.process import ControlledShutdown, Crash, Pause, Restart, RollingRestart
from sim.faults.replicas import LostReplica
from sim.faults.target import Target
from sim.rehearsal import properties
from sim.rehearsal.loads import Client, processes
from sim.rehearsal.metadata import WARM_UP
from sim.scenario.behaviours import registry as behaviours
from sim.scenario.model.clients import ConsumerSpec, ProducerSpec
from sim.scenario.rules.limits import records_at_most
from sim.scenario.scenario import Scenario
from sim.scenario.settings import partitioners
from sim.scenario.settings.resolved import Config
from sim.scenario.settings.types import Scope
from sim.units import MIB, MINUTE, SECOND, Bytes, Micros, show_bytes, show_duration

FAULTS: Final[tuple[type[Fault], ...]] = (
    Crash, Restart, ControlledShutdown, Pause, RollingRestart, PowerLoss,
    NetworkPartition, Delay, Bandwidth, WipedDisk, LostReplica, LoadSurge,
)  # fmt: skip
"""Kinds of faults that a rehearsal has."""

_OF_SERVERS: Final = (Crash, Restart, ControlledShutdown, RollingRestart, PowerLoss)

_FLUSHES: Final = (
    "log.flush.interval.messages", "log.flush.interval.ms", "flush.messages", "flush.ms",
)  # fmt: skip
FLUSHED_EACH: Final = ("flush.messages", "1")
"""Setting of a topic that flushes every append before it is acknowledged."""

RUN_MAX: Final[Micros] = 10 * MINUTE
"""Longest workload."""

WARM_UP_MAX: Final[Micros] = 2 * MINUTE
"""Longest load before the workload."""

PROCESSES_MAX: Final = 16
"""Most processes of Java."""

RATE_MAX: Final = 3_000
"""Most records a second, of all producers: two cores carry it with their brokers and proxies."""

BYTES_MAX: Final[Bytes] = 1_024 * MIB
"""Most bytes in all logs together."""

SERVER_BYTES: Final[Bytes] = 450 * MIB
"""Memory of a server with a heap of 256 MB, as measured."""

CLIENT_BYTES: Final[Bytes] = 200 * MIB
"""Memory of a process of clients with a heap of 128 MB."""


def check(scenario: Scenario, clients: Sequence[Client], scale: float) -> None:
    """Refuses what cannot be had.

    Args:
        scenario: The scenario, its rates scaled already.
        clients: Its clients.
        scale: By which its rates were scaled.

    Raises:
        SimulationError: With a line for each thing, what is possible instead, and what to do.
    """
    problems = [
        *_of_the_machine(sys.platform),
        *_of_parts(scenario),
        *_of_topics(scenario),
        *_of_clients(scenario),
        *(line for fault in scenario.faults for line in _of_fault(fault, scenario)),
        *_of_expectations(scenario),
        *_of_size(scenario, clients, scale),
    ]
    if problems:
        raise SimulationError(
            "this scenario cannot be rehearsed on a real Kafka here:\n"
            + "\n".join(f"  {line}" for line in problems)
        )


def _of_the_machine(system: str) -> Iterator[str]:
    if system != "linux":
        yield (
            f"found {system}; a rehearsal needs Linux, where all of 127.0.0.0/8 is this "
            "machine's and children end with their parent; use a virtual machine or a container"
        )


def _of_parts(scenario: Scenario) -> Iterator[str]:
    cluster = scenario.cluster
    if cluster.zookeeper is not None:
        yield "cluster.zookeeper: a rehearsal has KRaft alone; leave it out"
    if cluster.replication != "isr":
        yield f"cluster.replication: {cluster.replication} is not Apache Kafka's; leave it out"
    given = {
        "clusters": scenario.clusters, "mirrors": scenario.mirrors,
        "processors": scenario.processors, "connectors": scenario.connectors,
        "quotas": scenario.quotas, "acls": scenario.acls,
        "cluster.security": cluster.security, "cluster.object-store": cluster.object_store,
        "cluster.internal.replicas": cluster.placed,
        "cluster.quorum: dynamic": cluster.quorum == "dynamic",
        "cluster.initial.brokers": cluster.spare_brokers,
    }  # fmt: skip
    for name, value in given.items():
        if value:
            yield f"{name}: not rehearsed; leave it out"
    released = behaviours.resolve({}, cluster.kafka, preempted=cluster.preempts)
    for name, choice in scenario.behaviours.items():
        if choice != released[name]:
            yield (
                f"behaviours.{name}: found {choice!r}; a real Kafka has the behaviour of its "
                f"release ({released[name]!r}); leave it out"
            )


def _of_expectations(scenario: Scenario) -> Iterator[str]:
    for line in scenario.expect:
        if line.name == "consumers.ended":
            yield (
                "expect.consumers.ended: not rehearsed, its consumers catch what poll() raises; "
                "use unavailable.fetch.max"
            )


def _of_topics(scenario: Scenario) -> Iterator[str]:
    lasts = scenario.run.for_us + scenario.run.drain_timeout_us
    for topic in scenario.topics:
        path = f"topics.{topic.name}.config"
        if topic.name == WARM_UP:
            yield f"topics.{topic.name}: the rehearsal's own topic; choose another name"
        if "compact" in topic.config.text("cleanup.policy"):
            yield f"{path}.cleanup.policy: compaction is not rehearsed; use delete"
        retention = topic.config.number("retention.ms")
        if 0 <= retention * 1_000 <= lasts:
            yield (
                f"{path}.retention.ms: {retention} could end within the rehearsal, whose removed "
                f"records nobody could name; allowed: longer than {show_duration(lasts)}"
            )
        if topic.config.number("retention.bytes") >= 0:
            yield f"{path}.retention.bytes: not rehearsed; leave it out"


def _of_clients(scenario: Scenario) -> Iterator[str]:
    for producer in scenario.producers:
        path = f"producers.{producer.name}"
        if producer.clients is not None:
            yield f"{path}.clients: closed loops are not rehearsed; give a rate"
        if producer.per_request:
            yield f"{path}.producer.per: request is not rehearsed; leave it out"
        if producer.kafka not in (None, scenario.cluster.kafka):
            yield f"{path}.kafka: clients have the release of the brokers; leave it out"
        given = producer.config.text(partitioners.NAME)
        if producer.partitioner_source or partitioners.offered(given) is not None:
            yield f"{path}.config.partitioner.class: one in Python is not rehearsed; leave it out"
    for consumer in scenario.consumers:
        path = f"consumers.{consumer.name}"
        if consumer.is_share:
            yield f"{path}.group.type: share groups are not rehearsed; leave it out"
        if consumer.kafka not in (None, scenario.cluster.kafka):
            yield f"{path}.kafka: clients have the release of the brokers; leave it out"


def _of_fault(fault: Fault, scenario: Scenario) -> Iterator[str]:
    path = f"faults[{fault.index}]"
    if fault.choices:
        for choice in fault.choices:
            yield from _of_fault(choice, scenario)
        return
    possible = ", ".join(kind.kind for kind in FAULTS)
    if type(fault) not in FAULTS:
        yield f"{path}: do: {fault.kind} cannot be had without root; possible: {possible}"
        return
    if isinstance(fault, Delay) and fault.messages:
        yield f"{path}.message: a proxy delays all that passes; leave it out"
    if isinstance(fault, PowerLoss):
        yield from _of_power(path, fault, scenario)
    if isinstance(fault, RollingRestart) and fault.to is not None:
        yield f"{path}.to: upgrades are not rehearsed; leave it out"
    servers = {server.name for server in scenario.cluster.servers}
    if isinstance(fault, _OF_SERVERS):
        for target in fault.targets:
            others = [name for name in target.names if name not in servers]
            others += _clients_in(target, scenario)
            if others:
                yield (
                    f"{path}.target: {', '.join(others)} is a client, whose open records nobody "
                    "would know when it is killed; possible: servers, or do: pause"
                )


def _of_power(path: str, fault: PowerLoss, scenario: Scenario) -> Iterator[str]:
    if fault.unflushed != "lost":
        yield (
            f"{path}.unflushed: found {fault.unflushed!r}; pages that reach a disk by chance "
            "cannot be had: give unflushed: lost, which takes all that is not flushed"
        )
    given = {
        f"cluster.config.{name}": value
        for name, value in _flushes("broker", scenario.cluster.config)
    }
    for topic in scenario.topics:
        for name, value in _flushes("topic", topic.config):
            if (name, value) != FLUSHED_EACH:
                given[f"topics.{topic.name}.config.{name}"] = value
    for name, value in given.items():
        yield (
            f"{path}: found {name}: {value}; what such flushes keep cannot be seen from outside; "
            "allowed: none, or flush.messages: 1 of a topic, which keeps all"
        )


def _flushes(scope: Scope, config: Config) -> list[tuple[str, str]]:
    """Settings off their defaults by which a broker flushes before a segment is full."""
    found = properties.given(scope, config).items()
    return [(name, value) for name, value in found if name in _FLUSHES]


def _clients_in(target: Target, scenario: Scenario) -> list[str]:
    """Clients of a rack that is a target, or of any, if the target is one of them at random."""
    if target.kind not in {"rack", "random rack"}:
        return []
    rack = target.text.removeprefix("rack ")
    specs: list[ProducerSpec | ConsumerSpec] = [*scenario.producers, *scenario.consumers]
    return [
        name
        for spec in specs
        if spec.rack and (target.kind == "random rack" or spec.rack == rack)
        for name in spec.client_names
    ]


def _of_size(scenario: Scenario, clients: Sequence[Client], scale: float) -> Iterator[str]:
    run = scenario.run.for_us
    if run > RUN_MAX:
        yield (
            f"run.for: {show_duration(run)} of real time; at most {show_duration(RUN_MAX)}: give "
            "--set run.for=..., and faults before it"
        )
        return
    records = records_at_most(scenario)
    rate = records * SECOND // max(run, 1)
    if rate > RATE_MAX:
        fits = scale * RATE_MAX / rate
        yield (
            f"producers: {rate:,} records a second; at most {RATE_MAX:,} here: add "
            f"--scale {_rounded_down(fits)}, which scales the rates"
        )
    size = _bytes_of(scenario)
    if size > BYTES_MAX:
        fits = scale * BYTES_MAX / size
        yield (
            f"producers: {show_bytes(size)} in all replicas; at most {show_bytes(BYTES_MAX)}: add "
            f"--scale {_rounded_down(fits)}, which scales the rates"
        )
    servers, others = len(scenario.cluster.servers), len(processes(clients))
    if servers + others > PROCESSES_MAX:
        yield (
            f"cluster: {servers} servers and {others} processes of clients; at most "
            f"{PROCESSES_MAX} processes: give fewer brokers or controllers"
        )
    needed = servers * SERVER_BYTES + others * CLIENT_BYTES
    free = available_bytes()
    if free is not None and needed > free:
        yield (
            f"cluster: its processes need {show_bytes(needed)} of memory, and this machine has "
            f"{show_bytes(free)} left: give fewer brokers or controllers"
        )


def _bytes_of(scenario: Scenario) -> Bytes:
    total = 0
    for spec in scenario.producers:
        lasts = min(spec.stop_us, scenario.run.for_us) - spec.start_us
        peak = max(spec.rate_per_s, 0 if spec.burst is None else spec.burst.peak_per_s)
        size = spec.record_size + 16 + spec.record_headers.count * spec.record_headers.size
        records = spec.count * peak * max(lasts, 0) // SECOND
        total += records * size * scenario.topic(spec.topic).replication_factor
    return total


def _rounded_down(scale: float) -> str:
    """Two digits, never more than the number."""
    text = f"{scale:.2g}"
    return text if float(text) <= scale else f"{scale * 0.9:.2g}"


def available_bytes() -> Bytes | None:
    """Memory that this machine could give; ``None`` if it does not say."""
    return _memory("MemAvailable:")


def total_bytes() -> Bytes | None:
    """Memory of this machine; ``None`` if it does not say."""
    return _memory("MemTotal:")


def _memory(name: str) -> Bytes | None:
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith(name)]
    return int(found[0]) * 1_024 if found else None


def scaled(scenario: Scenario, scale: float) -> Scenario:
    """The scenario with all rates of its producers scaled, at least one record a second."""

    def less(rate: int) -> int:
        return max(1, round(rate * scale)) if rate else 0

    producers = []
    for spec in scenario.producers:
        update: dict[str, object] = {"rate_per_s": less(spec.rate_per_s)}
        if spec.burst is not None:
            peak = less(spec.burst.peak_per_s)
            update["burst"] = spec.burst.model_copy(update={"peak_per_s": peak})
        producers.append(spec.model_copy(update=update))
    return replace(scenario, producers=tuple(producers))
