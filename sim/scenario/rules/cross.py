"""Rules between settings: those that no single key can break.

Source: Kafka's ``KafkaConfig.validateValues``, ``ProducerConfig.postProcessParsedConfig``,
``KafkaProducer.configureDeliveryTimeout``, ``ConsumerConfig``, ``GroupCoordinatorConfig``.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from sim.ids import NodeId
from sim.scenario.behaviours.versions import is_since
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.topics import TopicSpec
from sim.scenario.rules import rebalance as rebalance_rules
from sim.scenario.settings import partitioners, proposed
from sim.scenario.settings.resolved import Config, SettingValue
from sim.scenario.settings.types import INT_MAX
from sim.scenario.text.problems import Problem, nearest, one_of
from sim.units import MIB

RECORD_OVERHEAD_BYTES: Final = 100
"""More than a batch of one record takes beside its key and value."""

_IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
_IN_FLIGHT_MAX: Final = 5
"""Most requests in flight with idempotence."""

_AT_MOST: Final = (
    ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms"),
    ("replica.fetch.wait.max.ms", "replica.socket.timeout.ms"),
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
)


def check_cluster(config: Config, brokers: int) -> None:
    """Broker settings against each other.

    Raises:
        Problem: With the setting's name as its path.
    """
    for low, high in _AT_MOST:
        if config.number(low) > config.number(high):
            raise _above(low, config, high)
    heartbeat, session = "broker.heartbeat.interval.ms", "broker.session.timeout.ms"
    if config.number(heartbeat) * 2 > config.number(session):
        raise Problem(
            (heartbeat,),
            f"{config.number(heartbeat)} with {session} {config.number(session)}",
            f"at most half of {session}",
        )
    check_upkeep(config)
    if config.number("min.insync.replicas") > brokers:
        raise Problem(
            ("min.insync.replicas",),
            f"{config.number('min.insync.replicas')} with {brokers} brokers",
            f"1 to {brokers}",
        )


def check_upkeep(config: Config) -> None:
    """Broker settings of retention and compaction.

    Raises:
        Problem: With the setting's name as its path.
    """
    for name in ("log.retention.ms", "log.retention.minutes", "log.retention.hours"):
        given = config.optional_number(name)
        if given == 0:
            raise Problem((name,), "0", "-1 (no limit) or at least 1")
        if given is not None:
            break
    threads = config.number("log.cleaner.threads")
    buffer = config.size("log.cleaner.dedupe.buffer.size")
    if buffer // threads <= MIB:
        raise Problem(
            ("log.cleaner.dedupe.buffer.size",),
            f"{buffer} for log.cleaner.threads {threads}",
            f"more than {MIB} for each thread",
        )


def check_offsets_topic(cluster: ClusterSpec) -> None:
    """Check that ``__consumer_offsets`` can be made and written, when there are groups.

    Raises:
        Problem: With the setting's name as its path.
    """
    name, brokers = "offsets.topic.replication.factor", len(cluster.first_brokers)
    factor = cluster.config.number(name)
    if factor > brokers:
        raise Problem(
            (name,),
            f"{factor} with {brokers} brokers, and there are consumer groups",
            f"1 to {brokers}",
            f"set {name}: {brokers}",
        )
    minimum = cluster.config.number("min.insync.replicas")
    if minimum > factor:
        raise Problem(
            ("min.insync.replicas",),
            f"{minimum} is above {name}, {factor}: no group could commit",
            f"1 to {factor}",
        )


def check_client_rack(config: Config, cluster: ClusterSpec) -> None:
    """Check that a consumer prefers replicas of a known rack; Kafka would read from leaders.

    Raises:
        Problem: With the setting's name as its path.
    """
    rack = config.text("client.rack")
    if rack and rack not in cluster.racks:
        known = one_of(cluster.racks) or "no rack, for the cluster has none"
        raise Problem(("client.rack",), f"no rack {rack!r}", known, nearest(rack, cluster.racks))


def check_gzip_level(config: Config) -> None:
    """Kafka's own rule: gzip has no level 0.

    Raises:
        Problem: With the setting's name as its path.
    """
    if config.number("compression.gzip.level") == 0:
        raise Problem(("compression.gzip.level",), "0", "-1 (the codec's default), or 1 to 9")


def check_topic(topic: TopicSpec, nodes: Sequence[NodeId], given: Mapping[str, object]) -> None:
    """Replication of one topic.

    Raises:
        Problem: With a path that starts below the topic.
    """
    try:
        check_gzip_level(topic.config)
        proposed.check_topic(given)
    except Problem as problem:
        raise problem.below("config") from None
    factor, brokers = topic.replication_factor, len(nodes)
    if factor > brokers:
        raise Problem(
            ("replication.factor",),
            f"{factor} is above the number of brokers, {brokers}",
            f"1 to {brokers}",
            "add brokers or lower it",
        )
    check_compaction(topic)
    check_throttled(topic, nodes)
    minimum = topic.config.number("min.insync.replicas")
    if minimum > factor:
        source = "" if "min.insync.replicas" in given else " (from cluster.config)"
        raise Problem(
            ("config", "min.insync.replicas"),
            f"{minimum}{source} is above replication.factor, {factor}; acks=all cannot be",
            f"1 to {factor}",
            "lower it or raise replication.factor",
        )


def check_throttled(topic: TopicSpec, nodes: Sequence[NodeId]) -> None:
    """Check which replicas of one topic are throttled.

    Raises:
        Problem: With a path that starts below the topic.

    Source: ``ThrottledReplicaListValidator``; it does not ask whether there are such brokers.
    """
    for side in ("leader", "follower"):
        name = f"{side}.replication.throttled.replicas"
        for word in topic.config.words(name):
            partition, _, broker = word.partition(":")
            known = partition.isdigit() and broker in map(str, nodes)
            if word != "*" and not known:
                raise Problem(
                    ("config", name),
                    repr(word),
                    f"* or partition:broker, as in '0:1', with one of the brokers "
                    f"{', '.join(map(str, nodes))}",
                    "quote it: YAML takes 1:2 for a number",
                )


def check_compaction(topic: TopicSpec) -> None:
    """Compaction of one topic.

    Raises:
        Problem: With a path that starts below the topic.

    Source: ``LogConfig.validateValues``.
    """
    low, high = "min.compaction.lag.ms", "max.compaction.lag.ms"
    if topic.config.number(low) > topic.config.number(high):
        raise _above(low, topic.config, high).below("config")


def producer_config(
    config: Config, given: Mapping[str, object], *, partitions: bool = False
) -> Config:
    """Producer settings as the Java client would run with them.

    Idempotence that was not given is silently off where it cannot be; a delivery timeout that
    was not given is raised to linger and request timeout together.

    Args:
        config: The settings.
        given: Those of the scenario's file.
        partitions: True if a ``partitioner.class`` is asked about its records.

    Raises:
        Problem: Where Kafka throws ConfigException, with the setting's name as its path.
    """
    if not partitions and partitioners.is_chosen(config):
        raise Problem(
            ("partitioner.class",),
            f"{config.text('partitioner.class')} where the application gives each record its place",
            "Kafka's default, null",
            "leave it out; producers may have one",
        )
    check_gzip_level(config)
    config = _with_idempotence(partitioners.pinned(config), given)
    values = dict(config)
    acks = "all" if config.text("acks") == "-1" else config.text("acks")
    values["acks"] = acks
    if config.flag("enable.idempotence"):
        obstacle = _against_idempotence(config, acks)
        if obstacle and ("enable.idempotence" in given or not is_since(config.version, "3.0")):
            raise Problem(
                ("enable.idempotence",), f"true with {obstacle}", "acks all and retries above 0"
            )
        values["enable.idempotence"] = not obstacle
    if values.get("enable.idempotence") is True:
        values["enable.idempotence"] = _few_in_flight(config, given)
    least = config.number("linger.ms") + config.number("request.timeout.ms")
    if config.number("delivery.timeout.ms") < least:
        if "delivery.timeout.ms" in given:
            raise Problem(
                ("delivery.timeout.ms",),
                f"{config.number('delivery.timeout.ms')} is below linger.ms + request.timeout.ms",
                f"at least {least}",
                "raise it or lower request.timeout.ms",
            )
        values["delivery.timeout.ms"] = least
    return config.changed(values)


def check_record(record_size: int, config: Config, topic: TopicSpec) -> None:
    """Check that a record fits into a request and into a batch of its topic.

    Raises:
        Problem: With an empty path.
    """
    limits = (
        ("max.request.size", config.number("max.request.size")),
        ("buffer.memory", config.number("buffer.memory")),
        ("max.message.bytes", topic.config.number("max.message.bytes")),
    )
    for name, limit in limits:
        if record_size + RECORD_OVERHEAD_BYTES > limit:
            raise Problem(
                (),
                f"{record_size}B does not fit into {name}, {limit}",
                f"at most {limit - RECORD_OVERHEAD_BYTES}B",
                f"lower it or raise {name}",
            )


def consumer_config(
    config: Config, given: Mapping[str, object], broker: Config, *, in_group: bool
) -> Config:
    """Consumer settings as the Java client would run with them.

    Raises:
        Problem: Where client or coordinator would refuse them, with the setting's name as its path.
    """
    config = rebalance_rules.with_each_assignor_once(config)
    values = dict(config)
    if not in_group:
        if given.get(rebalance_rules.INSTANCE) is not None:
            raise Problem(
                (rebalance_rules.INSTANCE,),
                "an instance id without a group",
                "none",
                "name a group",
            )
        if given.get("enable.auto.commit") is True:
            raise Problem(("enable.auto.commit",), "true without a group", "false", "name a group")
        values["enable.auto.commit"] = False
        return config.changed(values)
    if config.text("group.protocol") == "consumer":
        return config.changed(values)  # the session is the brokers' to choose
    session = config.number("session.timeout.ms")
    low = broker.number("group.min.session.timeout.ms")
    high = broker.number("group.max.session.timeout.ms")
    if not low <= session <= high:
        raise Problem(
            ("session.timeout.ms",),
            f"{session}",
            f"{low} to {high} (group.min.session.timeout.ms, group.max.session.timeout.ms)",
        )
    if config.number("heartbeat.interval.ms") >= session:
        raise Problem(
            ("heartbeat.interval.ms",),
            f"{config.number('heartbeat.interval.ms')}",
            f"less than session.timeout.ms, {session}",
        )
    return config.changed(values)


def _with_idempotence(config: Config, given: Mapping[str, object]) -> Config:
    """Settings that idempotence brings where nothing else is given, before it was the default.

    Source: ``ProducerConfig.{maybeOverrideEnableIdempotence,maybeOverrideAcksAndRetries}`` (2.8),
    ``KafkaProducer.configureInflightRequests`` (0.11).
    """
    name, version = "enable.idempotence", config.version
    if is_since(version, "3.0") or not config.has(name):
        return config
    if not config.flag(name) and (name in given or not config.text("transactional.id")):
        return config
    brought: dict[str, SettingValue] = {"acks": "all", "retries": INT_MAX}
    if version == "0.11":
        brought[_IN_FLIGHT] = 1
    left = {other: value for other, value in brought.items() if other not in given}
    return config.changed({name: True, **left})


def _few_in_flight(config: Config, given: Mapping[str, object]) -> bool:
    """True if idempotence stays; 3.0 to 3.9 gave up what was not given, others refuse.

    Raises:
        Problem: For more requests in flight than the version allows.

    Source: ``ProducerConfig.postProcessAndValidateIdempotenceConfigs``.
    """
    version, in_flight = config.version, config.number(_IN_FLIGHT)
    most = 1 if version == "0.11" else _IN_FLIGHT_MAX
    if in_flight <= most:
        return True
    lenient = is_since(version, "3.0") and not is_since(version, "4.0")
    if lenient and "enable.idempotence" not in given:
        return False
    raise Problem(
        (_IN_FLIGHT,),
        f"{in_flight} with enable.idempotence true",
        f"1 to {most}" if most > 1 else "1",
        "lower it, or set enable.idempotence: false",
    )


def _against_idempotence(config: Config, acks: str) -> str:
    if acks != "all":
        return f"acks {acks}"
    return "retries 0" if config.number("retries") == 0 else ""


def _above(low: str, config: Config, high: str) -> Problem:
    return Problem(
        (low,), f"{config.number(low)} is above {high}, {config.number(high)}", f"at most {high}"
    )
