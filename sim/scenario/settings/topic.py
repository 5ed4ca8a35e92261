"""Kafka's topic settings and the broker settings that replace them.

Source: ``org.apache.kafka.common.config.TopicConfig``, ``ServerTopicConfigSynonyms``.
"""

from typing import Final

from sim.scenario.settings.facts import settings_of
from sim.scenario.settings.overlay import (
    UNLIMITED,
    Overlay,
    absent,
    codec_levels,
    modelled,
    narrowed,
)
from sim.scenario.settings.proposed import TOPIC_PROPOSALS
from sim.scenario.settings.types import Setting

TOPIC_SETTINGS: Final[tuple[Overlay | Setting, ...]] = (
    *modelled(
        "cleanup.policy",
        "delete.retention.ms",
        "file.delete.delay.ms",
    ),
    *codec_levels(),
    *modelled(
        "compression.type",
        "flush.messages",
        "flush.ms",
        "index.interval.bytes",
        "max.compaction.lag.ms",
        "max.message.bytes",
        "min.cleanable.dirty.ratio",
        "min.compaction.lag.ms",
        "message.timestamp.after.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.type",
        "min.insync.replicas",
    ),
    *narrowed(
        UNLIMITED,
        "retention.bytes",
        low=-1,
    ),
    *modelled(
        "retention.ms",
        "segment.bytes",
        "segment.index.bytes",
        "segment.jitter.ms",
        "segment.ms",
        "unclean.leader.election.enable",
    ),
    *modelled(
        "local.retention.bytes",
        "local.retention.ms",
        "remote.storage.enable",
    ),
    *absent(
        "a tiered topic stays one (no KIP-950)",
        "remote.log.copy.disable",
        "remote.log.delete.on.disable",
    ),
    *modelled(
        "follower.replication.throttled.replicas",
        "leader.replication.throttled.replicas",
    ),
    *absent(
        "files hold exactly what was written",
        "preallocate",
    ),
    *TOPIC_PROPOSALS,
)
"""Every topic setting."""


def broker_settings(name: str) -> tuple[tuple[str, int], ...]:
    """Broker settings that replace a topic's, and the factor of each unit to the topic's.

    The first that is not null counts. Source: ``ServerTopicConfigSynonyms``.
    """
    found = settings_of("topic").get(name)
    # A proposal's, which no release has, has the same name for brokers.
    return ((name, 1),) if found is None else found.brokers
