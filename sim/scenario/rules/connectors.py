"""From the keys of connectors to their parts.

Source: ``connect.runtime.{Worker,SourceConnectorConfig}``; KIP-618.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sim.protocol.assignors.registry import COOPERATIVE
from sim.scenario.model.apps import ConnectorModel, ConnectorSpec, MirrorSpec, ProcessorSpec
from sim.scenario.model.clients import ConsumerSpec, ProducerSpec
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.topics import TopicSpec
from sim.scenario.model.types import filled
from sim.scenario.releases.clients import client_release
from sim.scenario.rules import cross as cross_rules
from sim.scenario.rules.rebalance import STRATEGY
from sim.scenario.rules.tasks import OUTPUT_SIZE_MIN, member, split_config, under
from sim.scenario.schema.file import ScenarioModel
from sim.scenario.settings import registry as settings
from sim.scenario.settings.connect import EXACTLY_ONCE_SOURCE, SINK_CONSUMER
from sim.scenario.settings.mirrors import producers_of_workers
from sim.scenario.settings.resolved import Config
from sim.scenario.text.names import check_name
from sim.scenario.text.problems import Problem, nearest, one_of
from sim.units import Micros

_BOUNDARIES: Final = (
    "exactly.once.source.support",
    "exactly.once.support",
    "transaction.boundary",
    "transaction.boundary.interval.ms",
)


def connectors_of(
    model: ScenarioModel,
    cluster: ClusterSpec,
    topics: Sequence[TopicSpec],
    clients: Sequence[ProducerSpec | ConsumerSpec | ProcessorSpec | MirrorSpec],
) -> tuple[ConnectorSpec, ...]:
    """Every connector, in the order of the file.

    Args:
        model: The checked file.
        cluster: Where they run.
        topics: Of the cluster.
        clients: Producers, consumers, tasks and mirrors.

    Raises:
        Problem: With a path from the top of the file.
    """
    found: list[ConnectorSpec] = []
    taken = {server.name for server in cluster.servers}
    for client in clients:
        taken |= {client.name, *client.client_names}
        if not isinstance(client, ProducerSpec):
            taken.add(client.group)
    known = {topic.name: topic for topic in topics}
    for place, each in enumerate(model.connectors):
        try:
            found.append(_connector(each, cluster, known, model.run.for_us))
            _check_apart(found[-1], taken)
        except Problem as problem:
            raise problem.below("connectors", place) from None
        taken |= {found[-1].name, *found[-1].client_names}
    if found and (model.quotas or any(f.kind.has_key("quota") for f in model.faults)):
        raise Problem(("connectors",), "connectors beside quotas of clients", "one of the two")
    return tuple(found)


def _connector(
    model: ConnectorModel,
    cluster: ClusterSpec,
    topics: Mapping[str, TopicSpec],
    end_us: Micros,
) -> ConnectorSpec:
    check_name(("name",), model.name)
    _check_keys(model)
    for name in model.topics:
        _check_topic(name, topics)
    if model.rack is not None and model.rack not in cluster.racks:
        known = one_of(cluster.racks) or "no rack, for the cluster has none"
        raise Problem(("rack",), f"no rack {model.rack!r}", known)
    if model.start_us >= end_us:
        raise Problem(("start",), "not before the end of the run", "less than run.for")
    own, consumer, producer = split_config(model.config)
    other, prefix = (consumer, "consumer") if model.kind == "source" else (producer, "producer")
    for name in other:
        raise Problem(
            ("config", f"{prefix}.{name}"),
            f"a {prefix}'s setting of a {model.kind}",
            f"settings of its {'producer' if prefix == 'consumer' else 'consumer'}",
        )
    release = client_release(model.kafka, cluster)
    config = under("", lambda: settings.resolve("connect", own, version=release))
    if model.kind == "source":
        client = _source(model, config, producer, cluster, topics[model.topics[0]])
    else:
        for name in _BOUNDARIES:
            if name in own:
                raise Problem(("config", name), f"{name} for a sink", "a source's", "leave it out")
        client = under(
            "consumer.", lambda: _sink(consumer, cluster, release, f"connect-{model.name}")
        )
    return filled(
        ConnectorSpec,
        model,
        rate_per_s=model.rate_per_s or 0,
        stop_us=end_us if model.stop_us is None else model.stop_us,
        config=config,
        client=client,
    )


def _check_keys(model: ConnectorModel) -> None:
    """Check that only keys of its kind are given."""
    for key in model.meaningless():
        if key in model.model_fields_set:
            name = ConnectorModel.model_fields[key].alias or key
            kind = "sink" if model.kind == "source" else "source"
            raise Problem((name,), f"{name} for a {model.kind}", f"a {kind}'s", "leave it out")
    if model.kind == "sink":
        return
    if len(model.topics) != 1:
        raise Problem(("topics",), f"{len(model.topics)} topics for a source", "one")
    if not model.rate_per_s:
        raise Problem(("rate",), "no record ever", "records a second, such as 100/s")
    if not model.poll_us:
        raise Problem(("poll",), "0us", "more than zero")
    if model.record_size < OUTPUT_SIZE_MIN:
        raise Problem(
            ("record.size",),
            f"{model.record_size}B",
            f"at least {OUTPUT_SIZE_MIN}B, in which a record names itself and the external one",
        )


def _check_topic(name: str, topics: Mapping[str, TopicSpec]) -> None:
    topic = topics.get(name)
    if topic is None:
        raise Problem(("topics",), f"no topic {name!r}", one_of(topics), nearest(name, topics))
    if "compact" in topic.config.words("cleanup.policy"):
        raise Problem(
            ("topics",),
            f"{name!r} is compacted, and which records are to be there is not judged",
            "a topic with cleanup.policy: delete",
        )


def _check_apart(connector: ConnectorSpec, taken: set[str]) -> None:
    for name in (connector.name, *connector.client_names):
        if name in taken:
            raise Problem(("name",), f"{name!r} is taken already", "a name of its own")
    if connector.group in taken:
        raise Problem(("name",), f"the group {connector.group!r} is taken", "another name")


def _source(
    model: ConnectorModel,
    config: Config,
    given: Mapping[str, object],
    cluster: ClusterSpec,
    topic: TopicSpec,
) -> Config:
    """Settings of its producers."""
    if model.tasks > topic.partitions:
        raise Problem(
            ("tasks",),
            f"{model.tasks} tasks that write to {topic.partitions} partitions",
            f"1 to {topic.partitions}: a position is kept as an offset of the task's partition",
        )
    once = config.text("exactly.once.source.support") == "enabled"
    if config.text("exactly.once.support") == "required" and not once:
        raise Problem(
            ("config", "exactly.once.support"),
            "required, and the workers do not support it",
            "requested",
            "set exactly.once.source.support: enabled",
        )
    by_interval = config.text("transaction.boundary") == "interval"
    if not once or not by_interval:
        for name in ("transaction.boundary", "transaction.boundary.interval.ms"):
            if name in model.config and not (once and name == "transaction.boundary"):
                raise Problem(
                    ("config", name),
                    f"{name} of transactions that there are not",
                    "exactly.once.source.support: enabled, and transaction.boundary: interval",
                )
    fixed: dict[str, object] = {"transactional.id": None}
    if once:
        fixed |= {"enable.idempotence": True, "acks": "all"}
    for name, value in fixed.items():
        if name in given and given[name] != value:
            raise Problem(
                ("config", f"producer.{name}"),
                f"{given[name]!r}, which is the connector's own",
                repr(value),
            )
    kafka = config.version
    own = producers_of_workers(kafka)
    whole = {**own, **(EXACTLY_ONCE_SOURCE if once else {}), **given}
    found = under(
        "producer.",
        lambda: cross_rules.producer_config(
            settings.resolve("producer", whole, version=kafka), whole
        ),
    )
    longest = cluster.config.number("transaction.max.timeout.ms")
    if once and found.number("transaction.timeout.ms") > longest:
        raise Problem(
            ("config", "producer.transaction.timeout.ms"),
            f"{found.number('transaction.timeout.ms')} is above transaction.max.timeout.ms",
            f"1 to {longest}",
        )
    try:
        cross_rules.check_record(model.record_size, found, topic)
    except Problem as problem:
        raise problem.below("record.size") from None
    return found


def _sink(given: Mapping[str, object], cluster: ClusterSpec, release: str, group: str) -> Config:
    """Settings of its consumers, members of the group."""
    for name, value in (("enable.auto.commit", False), ("group.protocol", "classic")):
        if name in given and given[name] != value:
            raise Problem((name,), f"{given[name]!r}, which is the connector's own", repr(value))
    if given.get("group.instance.id") is not None:
        raise Problem(
            ("group.instance.id",), "one instance id for all tasks of a connector", "none"
        )
    found = member({**SINK_CONSUMER, **given}, cluster, release, group)
    if set(found.words(STRATEGY)) <= set(COOPERATIVE):
        raise Problem(
            (STRATEGY,),
            f"{found.text(STRATEGY)} for sinks, which give up everything in a rebalance",
            "range, roundrobin or sticky among them",
        )
    return found
