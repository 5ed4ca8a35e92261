"""Tiered storage: what a scenario needs for it, what excludes it, and its settings.

Source: ``RemoteLogManagerConfig``, ``LogConfig.validateRemoteStorageOnlyIfSystemEnabled``,
``validateRemoteStorageRequiresDeleteCleanupPolicy``, ``validateRemoteStorageRetentionTime``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sim.faults.fault import Fault
from sim.faults.objects import OBJECT_FAULTS
from sim.scenario.behaviours.versions import VERSIONS, is_since
from sim.scenario.model.clients import ConsumerSpec
from sim.scenario.model.cluster import ClusterModel
from sim.scenario.model.topics import TopicSpec
from sim.scenario.settings.registry import default_of
from sim.scenario.settings.resolved import Config
from sim.scenario.settings.tiered import TIERED_SETTINGS
from sim.scenario.text.problems import Problem

SYSTEM: Final = "remote.log.storage.system.enable"
METADATA_PARTITIONS: Final = "rlmm.config.remote.log.metadata.topic.num.partitions"
METADATA_FACTOR: Final = "rlmm.config.remote.log.metadata.topic.replication.factor"
TOPIC: Final = "remote.storage.enable"
FIRST_VERSION: Final = "3.6"
"""The first version with tiered storage, as early access."""


def check_cluster(model: ClusterModel, config: Config, brokers: int) -> None:
    """Check that tiered storage has its object store, and that the cluster can have it.

    Raises:
        Problem: With a path below ``cluster``.
    """
    if not config.flag(SYSTEM):
        if model.object_store is not None:
            raise Problem(
                ("object-store",),
                f"an object store without {SYSTEM}",
                f"config: {{{SYSTEM}: true}} beside it",
                "leave it out, or switch tiered storage on",
            )
        names = [setting.name for setting in TIERED_SETTINGS if setting.name != SYSTEM]
        for name in names:
            if name in config and config[name] != default_of("broker", name, config.version):
                raise Problem(
                    ("config", name), f"{name} without {SYSTEM}", f"{SYSTEM}: true beside it"
                )
        return
    if model.object_store is None:
        raise Problem(
            ("object-store",),
            f"none, with {SYSTEM}",
            "object-store: {latency: {p50: 30ms, p99: 200ms}, bandwidth: 100MB/s}",
            "say how quick it is; {} takes those figures",
        )
    _check_kind(model)
    factor = config.number(METADATA_FACTOR)
    if factor > brokers:
        raise Problem(
            ("config", METADATA_FACTOR),
            f"{factor} with {brokers} brokers, and {SYSTEM} is on",
            f"1 to {brokers}",
            f"set {METADATA_FACTOR}: {brokers}",
        )


def _check_kind(model: ClusterModel) -> None:
    if model.zookeeper is not None:
        raise Problem(
            ("zookeeper",), f"an ensemble with {SYSTEM}", "KRaft", "leave cluster.zookeeper out"
        )
    if model.replication != "isr":
        raise Problem(
            ("replication",),
            f"{model.replication} with {SYSTEM}: its groups have no remote log here",
            "isr",
            "leave it out",
        )
    if model.disk.directories > 1:
        raise Problem(
            ("disk", "directories"),
            f"{model.disk.directories} with {SYSTEM}: moves of tiered logs are not modelled",
            "1",
            "leave it out",
        )
    if not is_since(model.kafka, FIRST_VERSION):
        known = ", ".join(version for version in VERSIONS if is_since(version, FIRST_VERSION))
        raise Problem(("kafka",), f"{model.kafka} with {SYSTEM}", known, "name a later version")


def check_topic(topic: TopicSpec, broker: Config, given: Mapping[str, object]) -> None:
    """Check a topic's settings of tiered storage.

    Raises:
        Problem: With a path that starts below the topic.
    """
    config = topic.config
    if not config.flag(TOPIC):
        for name in ("local.retention.ms", "local.retention.bytes"):
            if name in given and config.number(name) != -2:
                raise Problem(("config", name), f"{name} without {TOPIC}", f"{TOPIC}: true")
        return
    if not broker.flag(SYSTEM):
        raise Problem(
            ("config", TOPIC),
            f"true without {SYSTEM}",
            f"cluster.config: {{{SYSTEM}: true}} and cluster.object-store beside it",
        )
    if config.text("cleanup.policy") != "delete":
        policy = config.text("cleanup.policy")
        raise Problem(("config", "cleanup.policy"), f"{policy} with {TOPIC}", "delete")
    if config.flag("unclean.leader.election.enable"):
        raise Problem(
            ("config", "unclean.leader.election.enable"),
            f"true with {TOPIC}: which copies count after one is not judged here",
            "false",
        )
    for name in ("retention.ms", "retention.bytes"):
        total, local = config.number(name), config.number(f"local.{name}")
        if local != -2 and total >= 0 and not 0 <= local <= total:
            raise Problem(
                ("config", f"local.{name}"),
                f"{local} with {name}: {total}",
                f"-2 (as {name}), or 0 to {total}",
            )


def check_change(given: Mapping[str, object]) -> None:
    """Check that an administrator does not change whether a topic is tiered.

    Raises:
        Problem: With ``config`` and the setting's name as its path.
    """
    if TOPIC in given:
        raise Problem(
            ("config", TOPIC),
            f"a change of {TOPIC} on the way, which is not modelled (KIP-950)",
            "local.retention.ms, local.retention.bytes and other settings of the topic",
            "set it under topics, from the start",
        )


def check_faults(faults: Iterable[Fault], topics: Sequence[TopicSpec], *, has_store: bool) -> None:
    """Check that faults of the object store have one, and that nothing is sought in it by time.

    Raises:
        Problem: With the fault's number as its path.
    """
    for fault in faults:
        if isinstance(fault, OBJECT_FAULTS) and not has_store:
            raise Problem(
                (fault.index, "do"),
                f"{fault.kind} without cluster.object-store",
                "cluster.object-store beside it",
                "leave it out, or switch tiered storage on",
            )
        _check_times(fault, topics)


def _check_times(fault: Fault, topics: Sequence[TopicSpec]) -> None:
    tiered = [topic.name for topic in topics if topic.config.flag(TOPIC)]
    for name in ("datetime", "duration"):
        if getattr(fault, name, None) is None:
            continue
        for partition in getattr(fault, "partitions", ()):
            if partition.topic in tiered:
                raise Problem(
                    (fault.index, name),
                    f"{fault.kind} of {partition} by time, and {partition.topic} has {TOPIC}: "
                    "remote segments have no search by timestamp here",
                    "to: OFFSET",
                )


def check_readers(topics: Sequence[TopicSpec], consumers: Sequence[ConsumerSpec]) -> None:
    """Check that no share group reads a tiered topic.

    Raises:
        Problem: With the consumer's number and ``topics`` as its path.
    """
    tiered = [topic.name for topic in topics if topic.config.flag(TOPIC)]
    for number, consumer in enumerate(consumers):
        for name in consumer.topics:
            if consumer.is_share and name in tiered:
                raise Problem(
                    ("consumers", number, "topics"),
                    f"a share group that reads {name}, which has {TOPIC}",
                    "topics without a remote log: share partitions read local logs alone here",
                )
