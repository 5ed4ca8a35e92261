"""A topic's settings as the controller stores them: Kafka's names, Kafka's notation."""

from collections.abc import Iterable

from sim.faults.operations import AlterConfig
from sim.scenario.scenario import Scenario
from sim.scenario.settings.registry import SETTINGS, resolve
from sim.scenario.settings.resolved import Config

TOPIC_LOG_SETTINGS = (
    "flush.messages",
    "index.interval.bytes",
    "max.message.bytes",
    "min.insync.replicas",
    "segment.bytes",
    "segment.index.bytes",
    "segment.ms",
    "unclean.leader.election.enable",
)
"""Topic settings that always travel to brokers and controllers as topic configs."""

TOPIC_RETENTION_SETTINGS = (
    "cleanup.policy",
    "delete.retention.ms",
    "file.delete.delay.ms",
    "flush.ms",
    "max.compaction.lag.ms",
    "min.cleanable.dirty.ratio",
    "min.compaction.lag.ms",
    "retention.bytes",
    "retention.ms",
    "segment.jitter.ms",
)
"""Topic settings that travel where they are not Kafka's default, which a broker has anyway."""


TOPIC_RECORD_SETTINGS = (
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "message.timestamp.after.max.ms",
    "message.timestamp.before.max.ms",
    "message.timestamp.type",
)
"""The same for what leaders demand of records."""


TOPIC_THROTTLE_SETTINGS = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
)
"""The same for throttled replication."""


def topic_configs(config: Config) -> tuple[tuple[str, str], ...]:
    """A topic's settings as they are stored in the metadata, in Kafka's names and notation."""
    defaults = SETTINGS["topic"]
    optional = (*TOPIC_RECORD_SETTINGS, *TOPIC_RETENTION_SETTINGS, *TOPIC_THROTTLE_SETTINGS)
    off_default = (n for n in optional if config[n] != defaults[n].default)
    return topic_settings(config, (*TOPIC_LOG_SETTINGS, *off_default))


def topic_settings(
    config: Config,
    names: Iterable[str] = (
        *TOPIC_LOG_SETTINGS,
        *TOPIC_RECORD_SETTINGS,
        *TOPIC_RETENTION_SETTINGS,
        *TOPIC_THROTTLE_SETTINGS,
    ),
) -> tuple[tuple[str, str], ...]:
    """Some of a topic's settings, or all that brokers know, in Kafka's names and notation."""
    return tuple((name, _kafka_text(config[name])) for name in names)


def inherited_configs(
    broker: Config, own: Iterable[tuple[str, str]] = ()
) -> tuple[tuple[str, str], ...]:
    """Settings that topics of coordinators take from the brokers', where those are not Kafka's.

    Args:
        broker: Settings of the brokers.
        own: Settings that the coordinator gives its topic; they are left out.

    Source: ``KafkaConfig.extractLogConfigMap``, the defaults of every topic;
    ``GroupCoordinatorService.groupMetadataTopicConfigs``,
    ``TransactionStateManager.transactionTopicConfigs``.
    """
    inherited, known, given = resolve("topic", {}, broker), SETTINGS["topic"], dict(own)
    names = (*TOPIC_LOG_SETTINGS, *TOPIC_RECORD_SETTINGS, *TOPIC_RETENTION_SETTINGS)
    off_default = (n for n in sorted(names) if inherited[n] != known[n].default)
    return topic_settings(inherited, [name for name in off_default if name not in given])


def may_be_compacted(scenario: Scenario, topic: str) -> bool:
    """True if a topic is compacted from the start, or an operation of the scenario makes it so."""
    policies = [str(scenario.topic(topic).config["cleanup.policy"])]
    for fault in scenario.faults:
        if isinstance(fault, AlterConfig) and fault.topic.name == topic:
            policies += [str(each.value) for each in fault.config if each.name == "cleanup.policy"]
    return any("compact" in policy.split(",") for policy in policies)


def _kafka_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
