"""A scenario written out with every default filled in, and its digest.

What is written can be loaded again and gives the same scenario. Only settings that are modelled are
written: the others stand at Kafka's default, or the loader would have refused them.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar, cast

import yaml

from sim.faults.fault import Fault
from sim.ids import NodeId
from sim.scenario.behaviours.races import RACES
from sim.scenario.canonical import connectors as canonical_connectors
from sim.scenario.canonical import faults as canonical_faults
from sim.scenario.canonical import mirrors as canonical_mirrors
from sim.scenario.expect import lines as expectation_lines
from sim.scenario.model.connectors import ConnectorSpec
from sim.scenario.model.mirrors import MirrorSpec, OtherCluster
from sim.scenario.model.parts import (
    ClusterSpec,
    ConsumerSpec,
    Expectation,
    ProducerSpec,
    QuotaSpec,
    RunSpec,
    ServerSpec,
    TopicSpec,
    TransactionSpec,
)
from sim.scenario.model.tasks import ProcessorSpec
from sim.scenario.settings import raft as settings_raft
from sim.scenario.settings import zookeeper as settings_zookeeper
from sim.scenario.settings.resolved import Config
from sim.scenario.text.plain import Plain
from sim.scenario.text.quantities import (
    show_duration,
    show_rate,
    show_share,
    show_size,
)

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Parts:
    """What a scenario file says, in its order."""

    claim: str
    cluster: ClusterSpec
    topics: tuple[TopicSpec, ...]
    producers: tuple[ProducerSpec, ...]
    consumers: tuple[ConsumerSpec, ...]
    faults: tuple[Fault, ...]
    run: RunSpec
    expect: tuple[Expectation, ...]
    behaviours: Mapping[str, str]
    quotas: tuple[QuotaSpec, ...]
    processors: tuple[ProcessorSpec, ...] = ()
    connectors: tuple[ConnectorSpec, ...] = ()
    clusters: tuple[OtherCluster, ...] = ()
    mirrors: tuple[MirrorSpec, ...] = ()
    """From the scenario's own cluster to others."""
    is_target: bool = False
    """Whether mirrors of another scenario write to its cluster."""


def document(parts: Parts) -> dict[str, Plain]:
    """The scenario as plain data, every default filled in, keys in the order of the file."""
    asked = [_asked(line.asked) for line in parts.expect]
    plain: dict[str, Plain] = {
        "claim": parts.claim,
        "cluster": _cluster(parts.cluster),
        "topics": {t.name: _topic(t, parts.cluster) for t in parts.topics},
        "producers": [_producer(producer) for producer in parts.producers],
        "consumers": [_consumer(consumer) for consumer in parts.consumers],
        **_processors(parts.processors),
        **canonical_connectors.connectors(parts.connectors),
        **canonical_mirrors.regions(parts.clusters, parts.mirrors, _other_document),
        "faults": [canonical_faults.entry(fault) for fault in parts.faults],
        "run": {
            "for": show_duration(parts.run.for_us),
            "then": "heal and drain" if parts.run.drain else "stop",
            "seed": parts.run.seed,
            "drain.timeout": show_duration(parts.run.drain_timeout_us),
        },
        "expect": cast("Plain", expectation_lines.plain(parts.expect, asked)),
        "behaviours": _behaviours(parts),
    }
    if parts.quotas:
        plain["quotas"] = [canonical_faults.quota_keys(quota.alteration) for quota in parts.quotas]
    return plain


def _other_document(other: OtherCluster) -> dict[str, Plain]:
    return document(other.scenario)


def _behaviours(parts: Parts) -> dict[str, Plain]:
    """Those that mean something here; a scenario without mirrors has none of mirrors.

    Races are written out where they are run, so that they move no digest of other scenarios.
    """
    races = {race.name: race.default for race in RACES}
    return {
        name: choice
        for name, choice in _applying(parts.cluster, parts.behaviours).items()
        if (parts.mirrors or not name.startswith("mirror.")) and races.get(name) != choice
    }


def to_yaml(parts: Parts) -> str:
    """The text of ``scenario.yaml`` in a run directory."""
    return _dump(document(parts))


def digest(parts: Parts) -> str:
    """SHA-256 of the scenario as written out, the seed left out."""
    plain = document(parts)
    run = plain["run"]
    assert isinstance(run, dict)
    plain["run"] = {key: value for key, value in run.items() if key != "seed"}
    return hashlib.sha256(_dump(plain).encode()).hexdigest()


def _dump(plain: Mapping[str, Plain]) -> str:
    return yaml.safe_dump(dict(plain), sort_keys=False, width=100, allow_unicode=True)


def _asked(asked: str) -> str | int:
    return int(asked) if asked.isascii() and asked.isdecimal() else asked


def _cluster(cluster: ClusterSpec) -> dict[str, Plain]:
    where: dict[str, Plain] = {"brokers": len(cluster.brokers)}
    if cluster.racks:
        where = {"racks": _per_rack(cluster.racks, cluster.brokers)}
    ids = [server.node for server in cluster.brokers]
    if ids != list(range(1, len(ids) + 1)):
        where["ids"] = list[Plain](ids)
    if cluster.initial_brokers:
        where["initial.brokers"] = cluster.initial_brokers
    if cluster.zookeeper is not None:
        where["zookeeper"] = {
            "servers": _governing(cluster, cluster.zookeeper.servers),
            "tickTime": show_duration(cluster.zookeeper.tick_us),
            "syncLimit": cluster.zookeeper.sync_limit,
        }
    elif cluster.combined:
        where["combined"] = len(cluster.controllers)
    else:
        where["controllers"] = _governing(cluster, cluster.controllers)
    return {
        "kafka": cluster.kafka,
        **where,
        **_quorum(cluster),
        "replication": cluster.replication,
        **_internal_replicas(cluster),
        "config": dict(_applying(cluster, cluster.config.values)),
        "network": cluster.network.plain(),
        "disk": cluster.disk.plain(),
        "cpu": cluster.cpu.plain(),
        **({"heap": cluster.heap.plain()} if cluster.heap else {}),
    }


def _internal_replicas(cluster: ClusterSpec) -> dict[str, Plain]:
    if not cluster.internal_replicas:
        return {}
    placed: dict[str, Plain] = {
        topic: _named(given, cluster) for topic, given in cluster.internal_replicas
    }
    return {"internal.replicas": placed}


def _named(placed: Sequence[Sequence[NodeId]], cluster: ClusterSpec) -> list[Plain]:
    names = {server.node: server.name for server in cluster.brokers}
    return [[names[node] for node in each] for each in placed]


def _quorum(cluster: ClusterSpec) -> dict[str, Plain]:
    if not cluster.initial_controllers:
        return {}  # a static quorum, as every cluster had before there was another
    return {"quorum": "dynamic", "initial.controllers": cluster.initial_controllers}


def _applying(cluster: ClusterSpec, values: Mapping[str, T]) -> dict[str, T]:
    """Settings or behaviours that mean something in this cluster."""
    return settings_zookeeper.that_apply(
        settings_raft.that_apply(cluster.replication, values),
        zookeeper=cluster.zookeeper is not None,
    )


def _governing(cluster: ClusterSpec, servers: Sequence[ServerSpec]) -> Plain:
    return _per_rack(cluster.racks, servers) if cluster.racks else len(servers)


def _per_rack(racks: Sequence[str], servers: Sequence[ServerSpec]) -> Plain:
    return {rack: sum(server.rack == rack for server in servers) for rack in racks}


def _config(config: Config) -> Plain:
    return dict(config.values)


def _topic(topic: TopicSpec, cluster: ClusterSpec) -> Plain:
    plain: dict[str, Plain] = {
        "partitions": topic.partitions,
        "replication.factor": topic.replication_factor,
        "config": dict(_applying(cluster, topic.config.values)),
    }
    if topic.assignment:
        plain["replicas"] = _named(topic.assignment, cluster)
    return plain


def _producer(producer: ProducerSpec) -> Plain:
    plain: dict[str, Plain] = {
        "name": producer.name,
        "topic": producer.topic,
        "count": producer.count,
        "rate": show_rate(producer.rate_per_s),
        "record.size": show_size(producer.record_size),
        "record.headers": {
            "count": producer.header_count,
            "size": show_size(producer.header_bytes),
        },
        "record.compressibility": producer.compressibility,
        "keys": producer.keys,
    }
    if producer.keys != "none":
        plain["key.count"] = producer.key_count
        plain["tombstones"] = show_share(producer.tombstone_ppm)
    if producer.keys == "zipf":
        plain["key.skew"] = producer.key_skew
    plain["arrivals"] = producer.arrivals
    if producer.burst is not None:
        plain["burst"] = {
            "on": show_duration(producer.burst.on_us),
            "off": show_duration(producer.burst.off_us),
            "peak": show_rate(producer.burst.peak_per_s),
        }
    if producer.transaction is not None:
        plain["transaction"] = _transaction(producer.transaction)
    if producer.per_request:
        plain["producer.per"] = "request"
    plain["start"] = show_duration(producer.start_us)
    plain["stop"] = show_duration(producer.stop_us)
    if producer.rack:
        plain["rack"] = producer.rack
    plain["config"] = _config(producer.config)
    return plain


def _transaction(transaction: TransactionSpec) -> Plain:
    size: dict[str, Plain] = {"records": transaction.records}
    if not transaction.records:
        size = {"every": show_duration(transaction.every_us)}
    return {**size, "abort": show_share(transaction.abort_ppm)}


def _consumer(consumer: ConsumerSpec) -> Plain:
    plain: dict[str, Plain] = {"name": consumer.name, "group": consumer.group or "none"}
    if consumer.share is not None:
        plain["group.type"] = "share"
    plain["topics"] = list(consumer.topics)
    plain["count"] = consumer.count
    plain["processing"] = show_duration(consumer.processing_us)
    if consumer.share is not None:
        plain["release"] = show_share(consumer.share.release_ppm)
        plain["reject"] = show_share(consumer.share.reject_ppm)
    if consumer.commits != "auto":
        plain["commits"] = consumer.commits
    plain["start"] = show_duration(consumer.start_us)
    if consumer.stop_us is not None:
        plain["stop"] = show_duration(consumer.stop_us)
    if consumer.rack:
        plain["rack"] = consumer.rack
    plain["config"] = _config(consumer.config)
    return plain


def _processors(processors: Sequence[ProcessorSpec]) -> dict[str, Plain]:
    """The key of tasks; a scenario without any does not have it."""
    return {"processors": [_processor(each) for each in processors]} if processors else {}


def _processor(processor: ProcessorSpec) -> Plain:
    plain: dict[str, Plain] = {"name": processor.name}
    plain["topics"] = list(processor.topics)
    plain["output"] = processor.output
    plain["count"] = processor.count
    plain["outputs"] = processor.outputs
    plain["processing"] = show_duration(processor.processing_us)
    plain["commits"] = processor.commits
    plain["record.size"] = show_size(processor.record_size)
    plain["start"] = show_duration(processor.start_us)
    if processor.stop_us is not None:
        plain["stop"] = show_duration(processor.stop_us)
    if processor.rack:
        plain["rack"] = processor.rack
    plain["config"] = dict(processor.settings())
    return plain
