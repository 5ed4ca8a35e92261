"""Which values of a scenario differ from their defaults: what a run card must show.

Kafka's settings are compared with Kafka's defaults, the cluster's figures with ours. What every
scenario says for itself (topics, workloads, faults) has no default and is not listed.
"""

from collections.abc import Iterator
from dataclasses import replace

from sim.scenario.behaviours.registry import DEFAULTS
from sim.scenario.canonical.scenario import document
from sim.scenario.scenario import OffDefault, Scenario
from sim.scenario.settings.registry import SETTINGS
from sim.scenario.settings.resolved import Config
from sim.scenario.settings.types import Scope, as_kafka_writes
from sim.scenario.text.plain import Plain

_FIGURES = ("network", "disk", "cpu")


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
    figures = document(scenario)["cluster"]
    assert isinstance(figures, dict)
    for key in _FIGURES:
        yield from _figures(f"cluster.{key}", figures[key], DEFAULT_FIGURES[key])
    if scenario.cluster.heap is not None:
        yield from _figures("cluster.heap", figures["heap"], DEFAULT_HEAP)
    yield from _of_topics_and_clients(scenario)
    yield from _of_regions(scenario)
    for name, choice in scenario.behaviours.items():
        if choice != DEFAULTS[name]:
            yield OffDefault(f"behaviours.{name}", choice, DEFAULTS[name])


def _of_topics_and_clients(scenario: Scenario) -> Iterator[OffDefault]:
    for topic in scenario.topics:
        yield from _settings("topic", f"topics.{topic.name}.config", topic.config)
    for producer in scenario.producers:
        yield from _settings("producer", f"producers.{producer.name}.config", producer.config)
    for consumer in scenario.consumers:
        yield from _settings("consumer", f"consumers.{consumer.name}.config", consumer.config)
    for task in scenario.processors:
        path = f"processors.{task.name}.config"
        yield from _settings("streams", path, task.config)
        yield from _settings("consumer", f"{path}.consumer", task.consumer)
        yield from _settings("producer", f"{path}.producer", task.producer)
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


def _settings(scope: Scope, path: str, config: Config) -> Iterator[OffDefault]:
    for name, value in config.values.items():
        default = SETTINGS[scope][name].default
        if value != default:
            yield OffDefault(f"{path}.{name}", as_kafka_writes(value), as_kafka_writes(default))


def _figures(path: str, found: Plain, default: Plain) -> Iterator[OffDefault]:
    if isinstance(found, dict) and isinstance(default, dict):
        for key, value in found.items():
            yield from _figures(f"{path}.{key}", value, default[key])
    elif found != default:
        yield OffDefault(path, str(found), str(default))


DEFAULT_FIGURES: dict[str, Plain] = {
    "network": {
        "same-rack": {"p50": "100us", "p99": "250us"},
        "cross-rack": {"p50": "400us", "p99": "1ms"},
        "client": {"p50": "100us", "p99": "250us"},
        "bandwidth": "1250MB/s",
    },
    "disk": {
        "write": "1GB/s",
        "read": "1GB/s",
        "access": "100us",
        "flush": {"p50": "1ms", "p99": "10ms"},
        "dirty.expire": "30s",
        "dirty.writeback": "5s",
        "dirty.background": "256MiB",
        "dirty.limit": "1GiB",
        "cache": "8GiB",
        "directories": 1,
        "capacity": "unbounded",
    },
    "cpu": {
        "network.request": "10us",
        "handler.request": "20us",
        "handler.produce.partition": "5us",
        "handler.fetch.partition": "2us",
        "handler.produce.bytes": "3300MB/s",
        "handler.fetch.bytes": "20GB/s",
        "tls.bytes": "1GB/s",
        "tls.handshake": "1ms",
        "metadata.load": {"p50": "40ms", "p99": "70ms"},
        "metadata.publish": {"p50": "50ms", "p99": "75ms"},
        "metadata.partition": "20us",
        "preempted": {"p50": "2ms", "p99": "20ms"},
        "wakeup": {"p50": "30us", "p99": "121us"},
        "teardown": "60ms",
        "young.generation": "256MiB",
        "young.per.request": "16KiB",
        "young.pause": {"p50": "5ms", "p99": "20ms"},
    },
}
"""The cluster's figures when a scenario says nothing; a test holds them to the schema."""

DEFAULT_HEAP: dict[str, Plain] = {
    "size": "no end",
    "used": "1GiB",
    "per.producer.id": "264B",
    "per.connection": "64KiB",
    "per.request": "64KiB",
    "collection": "1GB/s",
}
"""The same of a heap, which is there only if a scenario has one."""
