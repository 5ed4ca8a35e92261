"""Kafka's settings of single groups: ``kafka-configs --entity-type groups``.

Source: ``org.apache.kafka.coordinator.group.GroupConfig``; KIP-848, KIP-932, KIP-1222, KIP-1240.
"""

from typing import Final

from sim.scenario.settings.overlay import Overlay, absent, modelled

GROUP_SETTINGS: Final[tuple[Overlay, ...]] = (
    *modelled(
        "consumer.session.timeout.ms",
        "consumer.heartbeat.interval.ms",
        "consumer.assignment.interval.ms",
        "share.session.timeout.ms",
        "share.heartbeat.interval.ms",
        "share.assignment.interval.ms",
        "share.record.lock.duration.ms",
        "share.delivery.count.limit",
        "share.partition.max.record.locks",
        "share.renew.acknowledge.enable",
    ),
    *absent(
        "the config of the group's members has it, the same in each",
        "share.auto.offset.reset",
    ),
    *absent(
        "share groups read uncommitted data, too",
        "share.isolation.level",
    ),
    *absent(
        "Streams groups (KIP-1071) do not exist here; tasks are members of classic groups",
        "streams.session.timeout.ms",
        "streams.heartbeat.interval.ms",
        "streams.num.standby.replicas",
        "streams.initial.rebalance.delay.ms",
        "streams.assignment.interval.ms",
    ),
)
"""Every setting of a group."""


def broker_synonym(name: str) -> str:
    """The brokers' setting of groups without a value of their own.

    Source: ``GroupConfig.ALL_GROUP_CONFIG_SYNONYMS`` (4.3).
    """
    return f"group.{name}"


def broker_bounds(name: str) -> tuple[str, str]:
    """The brokers' least and largest value of a group's setting.

    Source: ``GroupConfig.validateValues`` (4.3).
    """
    kind, rest = name.split(".", 1)
    return f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest}"
