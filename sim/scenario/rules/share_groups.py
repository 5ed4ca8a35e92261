"""Share groups in a scenario (KIP-932): what a member may say, and what must fit.

Source: ``ConsumerConfig.SHARE_GROUP_UNSUPPORTED_CONFIGS``, ``ShareGroupConfig.validate``,
``ShareCoordinatorConfig``.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from sim.ids import SHARE_STATE_TOPIC
from sim.protocol.broker.share.config import ShareConfig
from sim.protocol.broker.share.limits import ShareLimits
from sim.protocol.clients.consumer.config import ConsumerConfig
from sim.protocol.clients.share.consumer import ShareApplication
from sim.protocol.coordinator.share.coordinator import ShareCoordinatorConfig
from sim.protocol.messages.cluster import NewTopic
from sim.scenario.behaviours.versions import is_since
from sim.scenario.model.clients import (
    SHARE_ACQUIRE,
    SHARE_MODE,
    SHARE_RESET,
    ConsumerModel,
    ConsumerSpec,
)
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.rules.topic_configs import inherited_configs
from sim.scenario.settings.registry import default_of
from sim.scenario.settings.resolved import Config
from sim.scenario.text.problems import Problem
from sim.units import Micros

SINCE: Final = "4.1"
"""The first version that has them as they are here, with ``share.version`` 1."""


RENEWS_SINCE: Final = "4.2"
"""The first version whose share consumers renew locks (KIP-1222)."""

_UNSUPPORTED: Final = (
    "auto.offset.reset",
    "enable.auto.commit",
    "group.instance.id",
    "group.protocol",
    "group.remote.assignor",
    "heartbeat.interval.ms",
    "isolation.level",
    "partition.assignment.strategy",
    "session.timeout.ms",
)
"""Settings that Kafka refuses."""

_WITHOUT_EFFECT: Final = (
    "auto.commit.interval.ms",
    "check.crcs",
    "fetch.min.bytes",
    "max.partition.fetch.bytes",
)
"""Settings that have no effect here."""

_BETWEEN: Final = (
    (
        "group.share.record.lock.duration.ms",
        "group.share.min.record.lock.duration.ms",
        "group.share.max.record.lock.duration.ms",
    ),
)
"""A setting with its least and its largest value."""

_BETWEEN_SINCE_4_3: Final = (
    (
        "group.share.delivery.count.limit",
        "group.share.min.delivery.count.limit",
        "group.share.max.delivery.count.limit",
    ),
    (
        "group.share.partition.max.record.locks",
        "group.share.min.partition.max.record.locks",
        "group.share.max.partition.max.record.locks",
    ),
)


def check_broker(config: Config, kafka: str) -> None:
    """Broker settings of share groups against each other, as the release compares them.

    Raises:
        Problem: With the setting's name as its path.
    """
    later = _BETWEEN_SINCE_4_3 if is_since(kafka, "4.3") else ()
    for name, low, high in (*_BETWEEN, *later):
        least, most, value = config.number(low), config.number(high), config.number(name)
        if not least <= value <= most:
            raise Problem((name,), f"{value}", f"{least} to {most} ({low}, {high})")
    interval, session = "group.share.heartbeat.interval.ms", "group.share.session.timeout.ms"
    if config.number(interval) >= config.number(session):
        raise Problem(
            (interval,),
            f"{config.number(interval)}",
            f"less than {session}, {config.number(session)}",
        )


def check_share(
    model: ConsumerModel, config: Config, given: Mapping[str, object], cluster: ClusterSpec
) -> None:
    """Check an entry of ``consumers`` as members of a share group, or that it has no keys of those.

    Raises:
        Problem: Where client or broker would refuse it, or it has no effect here.
    """
    if model.group_type is None:
        _check_outside(model, config)
        return
    if not model.group:
        raise Problem(("group.type",), "share without a group", "a group's name")
    if model.commits != "auto":
        raise Problem(("commits",), "commits in a share group, which has no positions", "no value")
    if not is_since(cluster.kafka, SINCE):
        raise Problem(
            ("group.type",),
            f"share with cluster.kafka {cluster.kafka}",
            f"no share groups before {SINCE}",
            f"set cluster.kafka: {SINCE!r}",
        )
    if cluster.replication == "raft":
        raise Problem(("group.type",), "share with replication: raft", "replication: isr")
    for name in (*_UNSUPPORTED, *_WITHOUT_EFFECT):
        # Kafka refuses its default too; here a scenario as it was run has every default in it.
        if name in given and config[name] != default_of("consumer", name, config.version):
            remedy = f"there is {SHARE_RESET}" if name == "auto.offset.reset" else "leave it out"
            raise Problem(("config", name), "set in a share group", "no value", remedy)
    _check_application(model, config)
    if model.renew_us is not None:
        _check_renewal(model.renew_us, config, cluster)


def _check_outside(model: ConsumerModel, config: Config) -> None:
    """Check that an entry that is no share group has no keys of one."""
    for key, share in (
        ("release", model.release_ppm),
        ("reject", model.reject_ppm),
        ("renew", model.renew_us is not None),
    ):
        if share:
            raise Problem((key,), f"{key} in no share group", "no value", "group.type: share")
    for name in (SHARE_MODE, SHARE_RESET, SHARE_ACQUIRE):
        if config[name] != default_of("consumer", name, config.version):
            raise Problem(
                ("config", name), "set outside a share group", "no value", "group.type: share"
            )


def _check_renewal(renew_us: Micros, config: Config, cluster: ClusterSpec) -> None:
    """Check that an application may renew locks.

    Source: KIP-1222; ``ShareConsumerImpl.acknowledge``, ``ShareFetchRequest.Builder``.
    """
    key = ("renew",)
    if renew_us == 0:
        raise Problem(key, "0us", "more than zero")
    if config.text(SHARE_MODE) != "explicit":
        found = "renewals with implicit acknowledgement, which accepts all"
        raise Problem(key, found, "explicit", f"set config: {{{SHARE_MODE}: explicit}}")
    for what, release in (("a client", config.version), ("a cluster", cluster.kafka)):
        if not is_since(release, RENEWS_SINCE):
            raise Problem(key, f"renewals by {what} of {release}", f"{RENEWS_SINCE} or newer")


def _check_application(model: ConsumerModel, config: Config) -> None:
    explicit = config.text(SHARE_MODE) == "explicit"
    if model.release_ppm + model.reject_ppm > 1_000_000:
        raise Problem(("release",), "release and reject above 100% together", "at most 100%")
    if not explicit and model.release_ppm + model.reject_ppm:
        raise Problem(
            ("config", SHARE_MODE),
            "implicit, and the application releases or rejects",
            "explicit",
            f"set config: {{{SHARE_MODE}: explicit}}",
        )


def check_groups(consumers: Sequence[ConsumerSpec], others: Sequence[str]) -> None:
    """Check that all members of a group say the same of it.

    Args:
        consumers: Every entry.
        others: Groups of tasks and mirrors, which are no share groups.

    Raises:
        Problem: With the number of the entry that differs.
    """
    known: dict[str, ConsumerSpec | None] = dict.fromkeys(others)
    for at, consumer in enumerate(consumers):
        if not consumer.group:
            continue
        first = known.setdefault(consumer.group, consumer)
        if (first is not None and first.is_share) != consumer.is_share:
            raise Problem(
                (at, "group.type"), f"{consumer.group} is a group of another type", "one type"
            )
        if first is None or not first.is_share:
            continue
        if first.from_earliest != consumer.from_earliest:
            raise Problem(
                (at, "config", SHARE_RESET),
                "not what another member says",
                "one value for the group",
            )


def check_state_topic(cluster: ClusterSpec) -> None:
    """Check that ``__share_group_state`` can be made and written, when there are share groups.

    Raises:
        Problem: With the setting's name as its path.
    """
    factor_name, least_name = (
        "share.coordinator.state.topic.replication.factor",
        "share.coordinator.state.topic.min.isr",
    )
    brokers = len(cluster.brokers)
    factor, least = cluster.config.number(factor_name), cluster.config.number(least_name)
    if factor > brokers:
        raise Problem(
            (factor_name,),
            f"{factor} with {brokers} brokers, and there are share groups",
            f"1 to {brokers}",
            f"set {factor_name}: {brokers}",
        )
    if least > factor:
        raise Problem(
            (least_name,),
            f"{least} is above {factor_name}, {factor}: nothing could be acknowledged",
            f"1 to {factor}",
        )


# -- what the machines take -----------------------------------------------------------------------


def state_topic(config: Config) -> NewTopic:
    """The topic that keeps the states of share partitions.

    Source: ``ShareCoordinatorService.shareGroupStateTopicConfigs``, where nothing ever expires.
    """
    configs = (
        ("cleanup.policy", "delete"),
        ("compression.type", "producer"),
        ("min.insync.replicas", str(config.number("share.coordinator.state.topic.min.isr"))),
        ("retention.ms", "-1"),
        ("segment.bytes", str(config.number("share.coordinator.state.topic.segment.bytes"))),
    )
    return NewTopic(
        SHARE_STATE_TOPIC,
        config.number("share.coordinator.state.topic.num.partitions"),
        config.number("share.coordinator.state.topic.replication.factor"),
        (*configs, *inherited_configs(config, configs)),
    )


def share_config(
    config: Config, consumers: Sequence[ConsumerSpec], behaviours: Mapping[str, str]
) -> ShareConfig:
    """A broker's settings for share partitions."""
    earliest = [c.group for c in consumers if c.is_share and c.from_earliest]
    return ShareConfig(
        ShareLimits(
            lock_us=config.micros("group.share.record.lock.duration.ms"),
            deliveries_max=config.number("group.share.delivery.count.limit"),
            in_flight_max=config.number("group.share.partition.max.record.locks"),
            isolates=behaviours["share.delivery"] == "isolated",
            counts=behaviours["share.state"] == "counted",
        ),
        sessions_max=config.number("group.share.max.share.sessions"),
        from_earliest=tuple(dict.fromkeys(earliest)),
    )


def share_coordinator_config(config: Config) -> ShareCoordinatorConfig:
    """A broker's settings for its share coordinator."""
    return ShareCoordinatorConfig(
        partition_count=config.number("share.coordinator.state.topic.num.partitions"),
        append_linger_us=config.micros("share.coordinator.append.linger.ms"),
        write_timeout_us=config.micros("share.coordinator.write.timeout.ms"),
        updates_per_snapshot=config.number(
            "share.coordinator.snapshot.update.records.per.snapshot"
        ),
    )


def member_config(reader: ConsumerConfig, mode: str) -> ConsumerConfig:
    """A share consumer's settings, with its ``share.acquire.mode``: it commits no positions."""
    limits = mode == "record_limit"
    return replace(reader, enable_auto_commit=False, share_record_limit=limits)


def application(members: ConsumerSpec) -> ShareApplication:
    """Answers of members to records."""
    return ShareApplication(
        members.is_explicit, members.release_ppm, members.reject_ppm, members.renew_us or 0
    )
