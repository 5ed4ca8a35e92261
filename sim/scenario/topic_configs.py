"""A topic's settings as the controller stores them: Kafka's names, Kafka's notation."""

from sim.scenario.config import Config

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
"""Topic settings that travel to brokers and controllers as topic configs."""


def topic_configs(config: Config) -> tuple[tuple[str, str], ...]:
    """A topic's settings as they are stored in the metadata, in Kafka's names and notation."""
    return tuple((name, _kafka_text(config[name])) for name in TOPIC_LOG_SETTINGS)


def _kafka_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
