"""Values of a scenario that differ from their defaults: a run card must show them.

Kafka's settings are compared with Kafka's defaults, those of a task's clients with what Streams
gives them, the cluster's figures with ours. What every
scenario says for itself (topics, workloads, faults) has no default and is not listed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from sim.scenario.behaviours.registry import DEFAULTS
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.hardware import HardwareModel
from sim.scenario.model.machines import CpuModel, DiskModel, HeapModel, NetworkModel
from sim.scenario.model.types import Strict
from sim.scenario.rules import hardware
from sim.scenario.rules.tasks import client_defaults
from sim.scenario.scenario import OffDefault, Scenario
from sim.scenario.settings.registry import default_of
from sim.scenario.settings.resolved import Config
from sim.scenario.settings.types import Scope, as_kafka_writes
from sim.scenario.text.plain import Plain
from sim.scenario.text.quantities import show_size

NOTHING: Final[Mapping[str, object]] = MappingProxyType({})
"""Defaults that are all Kafka's."""


def off_default(scenario: Scenario) -> Scenario:
    """The scenario with ``off_default`` filled in."""
    return replace(scenario, off_default=tuple(_differences(scenario)))


def _differences(scenario: Scenario) -> Iterator[OffDefault]:
    if scenario.cluster.replication != "isr":
        yield OffDefault("cluster.replication", scenario.cluster.replication, "isr")
    if scenario.cluster.combined:
        yield OffDefault("cluster.combined", str(len(scenario.cluster.controllers)), "0")
    if scenario.cluster.initial_controllers:
        yield OffDefault("cluster.quorum", "dynamic", "static")
    yield from _settings("broker", "cluster.config", scenario.cluster.config)
    yield from _of_machines(scenario.cluster)
    yield from _of_topics_and_clients(scenario)
    yield from _of_regions(scenario)
    for name, choice in scenario.behaviours.items():
        if choice != DEFAULTS[name]:
            yield OffDefault(f"behaviours.{name}", choice, DEFAULTS[name])


def _of_machines(cluster: ClusterSpec) -> Iterator[OffDefault]:
    network = hardware.network(NetworkModel.model_construct())
    yield from _figures("cluster.network", cluster.network, network)
    yield from _figures("cluster.disk", cluster.disk, DiskModel.model_construct())
    yield from _figures("cluster.cpu", cluster.cpu, CpuModel.model_construct())
    if cluster.hardware is not None:
        yield from _of_servers(cluster.hardware, cluster)
    if cluster.heap is not None:
        size = cluster.heap.size_bytes
        yield OffDefault("cluster.heap.size", show_size(size), "no end")
        heap = HeapModel.model_construct(size_bytes=size)
        yield from _figures("cluster.heap", cluster.heap, heap)


def _of_servers(hardware: HardwareModel, cluster: ClusterSpec) -> Iterator[OffDefault]:
    """Cores, and servers whose computers are other ones than the cluster's."""
    usual = {"disk": cluster.disk.plain(), "network": cluster.network.plain()}
    cores = "no limit" if hardware.cores is None else str(hardware.cores)
    if hardware.cores is not None:
        yield OffDefault("cluster.hardware.cores", cores, "no limit")
    for name, computer in hardware.servers.items():
        path = f"cluster.hardware.servers.{name}"
        yield from _texts(path, computer.plain(), {**usual, "cores": cores})


def _of_topics_and_clients(scenario: Scenario) -> Iterator[OffDefault]:
    for topic in scenario.topics:
        yield from _settings("topic", f"topics.{topic.name}.config", topic.config)
    for group in scenario.groups:
        yield from _settings("group", f"groups.{group.name}.config", group.config)
    for producer in scenario.producers:
        yield from _settings("producer", f"producers.{producer.name}.config", producer.config)
    for consumer in scenario.consumers:
        yield from _settings("consumer", f"consumers.{consumer.name}.config", consumer.config)
    for task in scenario.processors:
        path = f"processors.{task.name}.config"
        own = client_defaults(task)
        yield from _settings("streams", path, task.config, own["streams"])
        yield from _settings("consumer", f"{path}.consumer", task.consumer, own["consumer"])
        yield from _settings("producer", f"{path}.producer", task.producer, own["producer"])
    for connector in scenario.connectors:
        path = f"connectors.{connector.name}.config"
        client: Scope = "producer" if connector.is_source else "consumer"
        yield from _settings("connect", path, connector.config)
        yield from _settings(client, f"{path}.{client}", connector.client)


def _of_regions(scenario: Scenario) -> Iterator[OffDefault]:
    for mirror in scenario.mirrors:
        path = f"mirrors.{mirror.name}.config"
        yield from _settings("mirror", path, mirror.config)
        yield from _settings("consumer", f"{path}.consumer", mirror.consumer)
        yield from _settings("producer", f"{path}.producer", mirror.producer)
    for other in scenario.clusters:
        for option in other.scenario.off_default:
            if not option.path.startswith("behaviours."):
                yield replace(option, path=f"clusters.{other.alias}.{option.path}")


def _settings(
    scope: Scope, path: str, config: Config, own: Mapping[str, object] = NOTHING
) -> Iterator[OffDefault]:
    """Settings that differ from their default: Kafka's, or in ``own`` the application's."""
    for name, value in config.items():
        default = own.get(name, default_of(scope, name, config.version))
        if value != default:
            yield OffDefault(f"{path}.{name}", as_kafka_writes(value), _written(default))


def _written(default: object) -> str:
    """A default as Kafka's documentation writes it."""
    if default is None or isinstance(default, bool | int | float | str):
        return as_kafka_writes(default)
    return str(default)


def _figures(path: str, found: Strict, default: Strict) -> Iterator[OffDefault]:
    if found != default:
        yield from _texts(path, found.plain(whole=True), default.plain(whole=True))


def _texts(path: str, found: Plain, default: Plain) -> Iterator[OffDefault]:
    if isinstance(found, dict) and isinstance(default, dict):
        for key, value in found.items():
            yield from _texts(f"{path}.{key}", value, default.get(key, "unbounded"))
    elif found != default:
        yield OffDefault(path, str(found), str(default))
