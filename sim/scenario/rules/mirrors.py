"""From the keys of other clusters and of mirrors to their parts.

Source: ``connect.mirror.{DefaultReplicationPolicy,IdentityReplicationPolicy}``.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from sim.scenario.behaviours.versions import is_since
from sim.scenario.model.apps import MirrorModel, MirrorSpec, ProcessorSpec
from sim.scenario.model.clients import ConsumerSpec, ProducerSpec
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.topics import TopicModel, TopicSpec
from sim.scenario.model.types import filled
from sim.scenario.rules import cross as cross_rules
from sim.scenario.rules.tasks import OUTPUT_SIZE_MIN, split_config, under
from sim.scenario.scenario import OtherCluster, Scenario
from sim.scenario.schema.file import OtherClusterModel, ScenarioModel
from sim.scenario.settings import registry as settings
from sim.scenario.settings.mirrors import (
    FIRST_VERSION,
    MIRROR_CONSUMER,
    excluded_configs,
    producers_of_workers,
)
from sim.scenario.text.names import check_name
from sim.scenario.text.problems import Problem, nearest, one_of
from sim.units import Bytes


def mirrors_of(
    model: ScenarioModel,
    cluster: ClusterSpec,
    topics: Sequence[TopicSpec],
    clients: Sequence[ProducerSpec | ConsumerSpec | ProcessorSpec],
) -> tuple[MirrorSpec, ...]:
    """Every mirror, in the order of the file.

    Args:
        model: The checked file.
        cluster: The scenario's own cluster.
        topics: Its topics.
        clients: Its producers, consumers and tasks.

    Raises:
        Problem: With a path from the top of the file.
    """
    found: list[MirrorSpec] = []
    producers = [client for client in clients if isinstance(client, ProducerSpec)]
    taken = _names_of(cluster, clients)
    for place, each in enumerate(model.mirrors):
        try:
            found.append(_mirror(each, model, cluster, topics, producers))
            _check_apart(found, taken)
        except Problem as problem:
            raise problem.below("mirrors", place) from None
    if found:
        _check_beside(model)
        try:
            cross_rules.check_offsets_topic(cluster)
        except Problem as problem:
            raise problem.below("cluster", "config") from None
    return tuple(found)


def others_of(
    model: ScenarioModel,
    mirrors: Sequence[MirrorSpec],
    assemble: Callable[[ScenarioModel, str], Scenario],
) -> tuple[OtherCluster, ...]:
    """Every other cluster, in the order of the file, with the topics that are mirrored to it.

    Raises:
        Problem: With a path from the top of the file.
    """
    found = []
    for alias, other in model.clusters.items():
        mirrored = [mirror for mirror in mirrors if mirror.target == alias]
        try:
            check_name((), alias)
            found.append(_other(alias, other, model, mirrored, assemble))
        except Problem as problem:
            raise problem.below("clusters", alias) from None
    return tuple(found)


def _mirror(
    model: MirrorModel,
    scenario: ScenarioModel,
    cluster: ClusterSpec,
    topics: Sequence[TopicSpec],
    producers: Sequence[ProducerSpec],
) -> MirrorSpec:
    known = {topic.name: topic for topic in topics}
    topic = known.get(model.topic)
    if topic is None:
        allowed = one_of(known)
        raise Problem(("topic",), f"no topic {model.topic!r}", allowed, nearest(model.topic, known))
    clusters = scenario.clusters
    if model.target not in clusters:
        allowed = one_of(clusters) or "a cluster of clusters, and there is none"
        raise Problem(
            ("to",), f"no cluster {model.target!r}", allowed, nearest(model.target, clusters)
        )
    if "compact" in topic.config.words("cleanup.policy"):
        raise Problem(
            ("topic",),
            f"{topic.name!r} is compacted, and copies have no keys",
            "a topic with cleanup.policy: delete",
        )
    if model.start_us >= scenario.run.for_us:
        raise Problem(("start",), "not before the end of the run", "less than run.for")
    kafka, (own, consumer, producer) = cluster.kafka, split_config(model.config)
    if not is_since(kafka, FIRST_VERSION):
        found = f"MirrorMaker 2 came with {FIRST_VERSION}; this cluster runs Kafka {kafka}"
        raise Problem(("name",), found, f"mirrors since {FIRST_VERSION}", "leave mirrors out")
    config = under("", lambda: settings.resolve("mirror", own, version=kafka))
    consumes = {**MIRROR_CONSUMER, **consumer}
    produces = {**producers_of_workers(kafka), **producer}
    _check_fixed(consumes, produces)
    reader = under(
        "consumer.",
        lambda: cross_rules.consumer_config(
            settings.resolve("consumer", consumes, version=kafka),
            consumes,
            cluster.config,
            in_group=True,
        ),
    )
    writer = under(
        "producer.",
        lambda: cross_rules.producer_config(
            settings.resolve("producer", produces, version=kafka), produces
        ),
    )
    prefix = ""
    if config.text("replication.policy.class") == "DefaultReplicationPolicy":
        prefix = config.text("source.cluster.alias") + config.text("replication.policy.separator")
    groups = tuple(dict.fromkeys(model.groups))
    _check_groups(groups, scenario)
    return filled(
        MirrorSpec,
        model,
        groups=groups,
        config=config,
        target_topic=prefix + topic.name,
        partitions=topic.partitions,
        record_size=_record_size(topic.name, producers),
        consumer=reader,
        producer=writer,
    )


def _record_size(topic: str, producers: Sequence[ProducerSpec]) -> Bytes:
    """Of the records that are copied: copies are as large."""
    writers = [producer for producer in producers if producer.topic == topic]
    if any(producer.tombstone_ppm for producer in writers):
        raise Problem(("topic",), f"{topic!r} gets tombstones", "a topic whose records have values")
    if any(producer.record_sizes is not None for producer in writers):
        allowed = "a topic whose records have one record.size"
        raise Problem(("topic",), f"records of {topic!r} have record.sizes", allowed)
    sizes = dict.fromkeys(producer.record_size for producer in writers)
    if not sizes:
        raise Problem(("topic",), f"nobody writes to {topic!r}", "a topic of a producer")
    size: Bytes = next(iter(sizes))
    if len(sizes) > 1 or size < OUTPUT_SIZE_MIN:
        shown = ", ".join(f"{each}B" for each in sizes)
        raise Problem(
            ("topic",),
            f"records of {topic!r} have {shown}",
            f"one record.size of at least {OUTPUT_SIZE_MIN}B, in which a copy names its original",
            "give its producers the same record.size",
        )
    return size


def _check_fixed(consumer: Mapping[str, object], producer: Mapping[str, object]) -> None:
    """Settings of the clients that are the mirror's own."""
    fixed = (
        ("consumer", consumer, "enable.auto.commit", False),
        ("consumer", consumer, "group.protocol", "classic"),
        ("consumer", consumer, "group.instance.id", None),
        ("producer", producer, "transactional.id", None),
        ("producer", producer, "acks", "all"),
    )
    for client, given, name, value in fixed:
        if name in given and given[name] != value:
            raise Problem(
                ("config", f"{client}.{name}"),
                f"{given[name]!r}, which is the mirror's own",
                repr(value),
            )


def _check_groups(groups: Sequence[str], scenario: ScenarioModel) -> None:
    known = [consumer.group for consumer in scenario.consumers if consumer.group]
    for group in groups:
        if group not in known:
            raise Problem(("groups",), f"no group {group!r}", one_of(known), nearest(group, known))


def _names_of(
    cluster: ClusterSpec, clients: Sequence[ProducerSpec | ConsumerSpec | ProcessorSpec]
) -> tuple[str, ...]:
    """Names of servers, of clients, and of groups, which a mirror's own offsets have too."""
    groups = [c.group for c in clients if not isinstance(c, ProducerSpec)]
    names = [name for client in clients for name in (client.name, *client.client_names)]
    return (*(server.name for server in cluster.servers), *names, *groups)


def _check_apart(mirrors: Sequence[MirrorSpec], taken: Sequence[str]) -> None:
    """Check that the newest mirror is not in the way of an earlier one, or of anybody else."""
    *earlier, newest = mirrors
    check_name(("name",), newest.name)
    if newest.name in taken:
        raise Problem(("name",), f"{newest.name!r} is taken already", "a name of its own")
    for other in earlier:
        if other.name == newest.name:
            raise Problem(("name",), f"{newest.name!r} is a mirror already", "a name of its own")
        if (other.topic, other.target) == (newest.topic, newest.target):
            raise Problem(
                ("topic",),
                f"{newest.topic!r} is mirrored to {newest.target!r} by {other.name!r}",
                "one mirror of a topic to a cluster",
            )


def _check_beside(model: ScenarioModel) -> None:
    """Check that nothing is beside mirrors that they do not go with."""
    if model.quotas or any(fault.kind.has_key("quota") for fault in model.faults):
        raise Problem(("mirrors",), "mirrors beside quotas of clients", "one of the two")
    added = [fault.do for fault in model.faults if fault.kind.has_key("more partitions")]
    if added:
        raise Problem(
            ("mirrors",),
            f"mirrors beside {added[0]}, which they would hear of after ten minutes",
            "topics with all their partitions from the beginning",
        )


def _other(
    alias: str,
    other: OtherClusterModel,
    model: ScenarioModel,
    mirrored: Sequence[MirrorSpec],
    assemble: Callable[[ScenarioModel, str], Scenario],
) -> OtherCluster:
    topics = dict(other.topics)
    for mirror in mirrored:
        if mirror.target_topic in topics:
            raise Problem(
                ("topics", mirror.target_topic),
                f"{mirror.target_topic!r} is made by mirror {mirror.name!r}",
                "a name of its own",
            )
        topics[mirror.target_topic] = _mirrored_topic(mirror, model.topics[mirror.topic])
    if not topics:
        raise Problem(("topics",), "no topic", "at least one, or a mirror to this cluster")
    made = ScenarioModel.model_construct(
        claim=model.claim,
        cluster=other.cluster,
        topics=topics,
        producers=other.producers,
        consumers=other.consumers,
        quotas=[],
        acls=[],
        groups={},
        processors=[],
        connectors=[],
        clusters={},
        mirrors=[],
        faults=other.faults,
        run=model.run,
        expect=other.expect,
        behaviours=model.behaviours,
    )
    scenario = assemble(made, alias)
    names = [*scenario.producer_names, *scenario.consumer_names]
    for mirror in mirrored:
        if mirror.name in names:
            raise Problem((), f"{mirror.name!r} is a client here", "another name of the mirror")
    if mirrored:
        cross_rules.check_offsets_topic(scenario.cluster)
    return OtherCluster(alias, other.distance, replace(scenario, is_target=bool(mirrored)))


def _mirrored_topic(mirror: MirrorSpec, source: TopicModel) -> TopicModel:
    excluded = excluded_configs()
    kept = {name: value for name, value in source.config.items() if name not in excluded}
    return TopicModel.model_construct(
        partitions=source.partitions,
        replication_factor=mirror.config.number("replication.factor"),
        config=kept,
    )
