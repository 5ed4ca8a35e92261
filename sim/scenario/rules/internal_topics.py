"""The topics of coordinators: whether they can be made, and where their replicas are.

An administrator may make them before a broker does, and say where.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from sim.ids import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from sim.protocol.messages.cluster import NewTopic
from sim.scenario.model.apps import ConnectorSpec, ProcessorSpec
from sim.scenario.model.clients import ConsumerSpec, ProducerSpec
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.topics import Assignment
from sim.scenario.rules import cross as cross_rules
from sim.scenario.rules import share_groups, transactions
from sim.scenario.rules.assignments import placed_as
from sim.scenario.rules.topic_configs import inherited_configs
from sim.scenario.text.problems import Problem

SIZES: Final = {
    OFFSETS_TOPIC: ("offsets.topic.num.partitions", "offsets.topic.replication.factor"),
    TRANSACTIONS_TOPIC: (
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
    ),
}
"""Settings that say how many partitions and replicas an internal topic has."""


def assignments(
    given: Mapping[str, Sequence[Sequence[str]]], cluster: ClusterSpec
) -> tuple[tuple[str, Assignment], ...]:
    """The replicas of internal topics, by topic.

    Raises:
        Problem: With a path below ``internal.replicas``.
    """
    placed = []
    for topic, replicas in given.items():
        partitions, factor = (cluster.config.number(name) for name in SIZES[topic])
        hint = f"{SIZES[topic][0]} is {partitions}"
        placed.append((topic, placed_as((topic,), replicas, partitions, factor, cluster, hint)))
    return tuple(placed)


def offsets_topic(cluster: ClusterSpec) -> NewTopic:
    """The topic that keeps committed offsets and groups.

    Source: ``GroupCoordinatorService.groupMetadataTopicConfigs``; the rest are the brokers'.
    """
    config = cluster.config
    configs = (
        ("cleanup.policy", "compact"),
        ("compression.type", "producer"),
        ("min.insync.replicas", str(config.number("min.insync.replicas"))),
        ("segment.bytes", str(config.number("offsets.topic.segment.bytes"))),
    )
    partitions, factor = (config.number(name) for name in SIZES[OFFSETS_TOPIC])
    return NewTopic(
        OFFSETS_TOPIC,
        partitions,
        factor,
        (*configs, *inherited_configs(config, configs)),
        cluster.internal_assignment(OFFSETS_TOPIC),
    )


def check(
    cluster: ClusterSpec,
    producers: Sequence[ProducerSpec],
    consumers: Sequence[ConsumerSpec],
    processors: Sequence[ProcessorSpec],
    connectors: Sequence[ConnectorSpec],
) -> None:
    """Check that the topics of the coordinators that the clients need can be made.

    Raises:
        Problem: With the whole path.
    """
    groups = bool(processors or connectors) or any(consumer.group for consumer in consumers)
    exactly = (
        any(producer.transaction for producer in producers)
        or any(task.is_exactly_once for task in processors)
        or any(connector.is_exactly_once for connector in connectors)
    )
    _check_needed(cluster, {OFFSETS_TOPIC: groups, TRANSACTIONS_TOPIC: exactly})
    if groups:
        _below_config(lambda: cross_rules.check_offsets_topic(cluster))
    if any(consumer.is_share for consumer in consumers):
        _below_config(lambda: share_groups.check_state_topic(cluster))
    if exactly:
        _below_config(lambda: transactions.check_state_topic(cluster))


def _check_needed(cluster: ClusterSpec, needed: Mapping[str, bool]) -> None:
    for topic in cluster.internal_replicas:
        if not needed[topic]:
            found = f"{topic} is never made: no client here needs it"
            allowed = "groups need __consumer_offsets, transactions __transaction_state"
            raise Problem(("cluster", "internal.replicas", topic), found, allowed)


def _below_config(check_them: Callable[[], None]) -> None:
    try:
        check_them()
    except Problem as problem:
        raise problem.below("cluster", "config") from None
