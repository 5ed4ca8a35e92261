"""Rules between a group's settings, its members' and the version of Kafka (KIP-848).

Source: ``ConsumerConfig.checkUnsupportedConfigsPostProcess``, ``GroupCoordinatorConfig.validate``.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias

from sim.scenario.behaviours.versions import is_since
from sim.scenario.model.apps import ProcessorSpec
from sim.scenario.model.clients import ConsumerModel, ConsumerSpec
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.settings.registry import default_of
from sim.scenario.settings.resolved import Config
from sim.scenario.text.problems import Problem, one_of

Members: TypeAlias = Sequence[ConsumerSpec | ProcessorSpec]

GENERAL_SINCE: Final = "4.0"
"""The first version whose new clusters have ``group.version`` 1."""

_BETWEEN: Final = (
    (
        "group.consumer.session.timeout.ms",
        "group.consumer.min.session.timeout.ms",
        "group.consumer.max.session.timeout.ms",
    ),
    (
        "group.consumer.heartbeat.interval.ms",
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
    ),
)
"""A setting with its least and its largest value."""

LINGER: Final = "group.coordinator.append.linger.ms"
"""Time that the coordinator of KIP-848 waits for more writes."""

_INTERVALS: Final = (
    (
        "group.consumer.assignment.interval.ms",
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
    ),
    (
        "group.share.assignment.interval.ms",
        "group.share.min.assignment.interval.ms",
        "group.share.max.assignment.interval.ms",
    ),
)
"""The least times between two target assignments of a group (4.3), as above."""

_CLASSIC_ONLY: Final = (
    "heartbeat.interval.ms",
    "session.timeout.ms",
    "partition.assignment.strategy",
)


def check_broker(config: Config) -> None:
    """Broker settings of the consumer protocol against each other.

    Raises:
        Problem: With the setting's name as its path.
    """
    for name, low, high in (*_BETWEEN, *_INTERVALS):
        least, most, value = config.number(low), config.number(high), config.number(name)
        if not least <= value <= most:
            raise Problem((name,), f"{value}", f"{least} to {most} ({low}, {high})")
    interval, session = "group.consumer.heartbeat.interval.ms", "group.consumer.session.timeout.ms"
    if config.number(interval) >= config.number(session):
        raise Problem(
            (interval,),
            f"{config.number(interval)}",
            f"less than {session}, {config.number(session)}",
        )


def check_intervals(config: Config, positions: Mapping[str, str]) -> None:
    """Check that no interval of assignments is given where there are none.

    Raises:
        Problem: With the setting's name as its path.
    """
    if positions["group.assignment"] == "interval":
        return
    for bounded in _INTERVALS:
        for each in bounded:
            if config.has(each) and config[each] != default_of("broker", each, config.version):
                raise Problem(
                    (each,),
                    "set where each epoch of a group has its target assignment at once",
                    "no value",
                    "behaviours: {group.assignment: interval}",
                )


def check_coordinator(
    given: Mapping[str, str], positions: Mapping[str, str], config: Config, members: Members
) -> None:
    """Check that the coordinator of before KIP-848 can do what is expected of it.

    Args:
        given: Behaviours that the scenario names.
        positions: Every switch with its position.
        config: The brokers' settings.
        members: Consumers and tasks.

    Raises:
        Problem: With the path of what does not go with it.
    """
    name = "group.coordinator"
    if positions[name] == "new":
        return
    at = ("behaviours", name) if name in given else ("cluster", "kafka")
    instead = f"behaviours: {{{name}: new}}"
    if given.get("group.unload") == "late":
        raise Problem(at, "a classic group coordinator with group.unload: late", "new", instead)
    if config[LINGER] != default_of("broker", LINGER, config.version):
        found = f"{config.number(LINGER)} with a classic group coordinator, which does not wait"
        raise Problem(("cluster", "config", LINGER), found, "no value", instead)
    for each in members:
        if each.membership in {"share", "consumer"}:
            is_share = each.membership == "share"
            kind = "a share group" if is_share else "group.protocol: consumer"
            found = f"a classic group coordinator, and {each.name} has {kind}"
            raise Problem(at, found, "new", instead)


def check_member(
    config: Config, given: Mapping[str, object], cluster: ClusterSpec, group: str
) -> None:
    """Consumer settings, by the protocol that the consumer speaks in its group.

    Raises:
        Problem: Where the client or the coordinator would refuse them, with the setting's name.
    """
    name, remote = "group.protocol", "group.remote.assignor"
    assignor = config.text(remote)
    if config.text(name) == "classic":
        if assignor:
            raise Problem(
                (remote,), f"{assignor} with {name}: classic", "no value", f"set {name}: consumer"
            )
        return
    if not group:
        raise Problem((name,), "consumer without a group", "classic", "name a group")
    if not is_since(cluster.kafka, GENERAL_SINCE):
        raise Problem(
            (name,),
            f"consumer with cluster.kafka {cluster.kafka}",
            f"classic before {GENERAL_SINCE}",
            f"set cluster.kafka: {GENERAL_SINCE!r} or newer",
        )
    for setting in _CLASSIC_ONLY:
        # Kafka refuses its default too; here a scenario as it was run has every default in it.
        if setting in given and config[setting] != default_of("consumer", setting, config.version):
            raise Problem(
                (setting,),
                f"set with {name}: consumer, where the coordinator decides",
                "no value",
                f"leave it out; the brokers have {_INSTEAD[setting]}",
            )
    known = cluster.config.words("group.consumer.assignors")
    if assignor and assignor not in known:
        raise Problem((remote,), assignor, ", ".join(known) + " (group.consumer.assignors)")


_INSTEAD: Final[Mapping[str, str]] = {
    "heartbeat.interval.ms": "group.consumer.heartbeat.interval.ms",
    "session.timeout.ms": "group.consumer.session.timeout.ms",
    "partition.assignment.strategy": "group.consumer.assignors",
}


def with_commits(
    given: Mapping[str, object], commits: str, *, in_group: bool
) -> Mapping[str, object]:
    """Settings of consumers whose application commits, or does not.

    Raises:
        Problem: If the two contradict each other; its path starts below the consumer.
    """
    if commits == "auto":
        return given
    if not in_group:
        raise Problem(("commits",), f"{commits} without a group", "auto", "name a group")
    if given.get("enable.auto.commit") is True:
        raise Problem(
            ("commits",),
            f"{commits} beside enable.auto.commit: true",
            "one of the two",
            "leave enable.auto.commit out",
        )
    return {**given, "enable.auto.commit": False}


def check_tasks(consumers: Sequence[ConsumerSpec], tasks: Sequence[ProcessorSpec]) -> None:
    """Check that no member of the consumer protocol joins a group of classic tasks.

    Their assignor's user data would be lost, for which Kafka refuses to upgrade the group.

    Raises:
        Problem: With the number of the consumer.

    Source: ``ConsumerGroup.fromClassicGroup``.
    """
    classic = [task.group for task in tasks if task.membership == "classic"]
    for at, consumer in enumerate(consumers):
        if consumer.group in classic and consumer.membership == "consumer":
            raise Problem(
                (at, "config", "group.protocol"),
                f"consumer in {consumer.group}, which is a group of tasks",
                "classic",
                "name another group",
            )


def check_fences(tasks: Sequence[ProcessorSpec], positions: Mapping[str, str]) -> None:
    """Check that transactions name the members of consumer-protocol groups, which refuse others.

    Raises:
        Problem: With a path from the top of the file.

    Source: ``ConsumerGroup.validateOffsetCommit``.
    """
    name = "transaction.offsets"
    for task in tasks:
        if task.is_exactly_once and task.membership == "consumer" and positions[name] != "kip447":
            raise Problem(
                ("behaviours", name),
                f"{positions[name]}, and {task.name} has consumer.group.protocol: consumer",
                "kip447",
                "leave it out, or take group.protocol: classic",
            )


PATTERN: Final = "topics.pattern"


def subscribed_topics(
    model: ConsumerModel, cluster: ClusterSpec, known: Collection[str]
) -> tuple[str, ...]:
    """Topics that the scenario's consumers read: given, or those that match, in order.

    Raises:
        Problem: Without either or with both, and for a pattern that means nothing here.
    """
    if not model.pattern:
        if not model.topics:
            raise Problem(
                ("topics",), "no topics", "a name or a list of names", f"or set {PATTERN}"
            )
        return model.topics
    if model.topics:
        raise Problem((PATTERN,), "beside topics", "one of the two")
    if not model.group:
        raise Problem(
            (PATTERN,), "without a group", "topics", "only groups subscribe; name a group"
        )
    if model.group_type == "share":
        raise Problem((PATTERN,), "in a share group", "topics", "share consumers have no patterns")
    if cluster.config.text("authorizer.class.name"):
        raise Problem(
            (PATTERN,),
            "beside an authorizer, whose answer for all topics is not modelled",
            "topics",
            "name the topics",
        )
    try:
        pattern = re.compile(model.pattern)
    except re.error as error:
        found = f"{model.pattern!r} is no regular expression: {error}"
        raise Problem((PATTERN,), found, "one such as 'orders|bills-.*'") from None
    found_topics = tuple(name for name in known if pattern.fullmatch(name))
    if not found_topics:
        raise Problem((PATTERN,), f"{model.pattern!r} matches no topic", one_of(known))
    return found_topics
