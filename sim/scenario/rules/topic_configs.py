"""A topic's settings as the controller stores them, and those of brokers that may change.

A broker setting that the calendar changes is left out of a topic's own settings where the topic has
the brokers' value, for else no change of theirs would ever reach it.

Source: ``DynamicBrokerConfig.AllDynamicConfigs``, ``DynamicConfig.Broker``,
``BrokerDynamicThreadPool.validateReconfiguration`` (4.1).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from sim.faults.broker_configs import AlterBrokerConfig, BrokerConfigChange
from sim.faults.fault import Fault
from sim.faults.operations import AlterConfig
from sim.protocol.metadata.server_configs import TOPIC_NAMES, ServerFile
from sim.scenario.rules.hardware import CORDONED
from sim.scenario.scenario import Scenario
from sim.scenario.settings import proposed
from sim.scenario.settings.registry import SETTINGS, resolve
from sim.scenario.settings.resolved import Config
from sim.scenario.text.problems import Problem, nearest, one_of

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


TOPIC_TIERED_SETTINGS = (
    "local.retention.bytes",
    "local.retention.ms",
    "remote.storage.enable",
)
"""The same for tiered storage."""


TOPIC_THROTTLE_SETTINGS = (
    "follower.replication.throttled.replicas",
    "leader.replication.throttled.replicas",
)
"""The same for throttled replication."""


TOPIC_PROPOSED_SETTINGS = ("unclean.recovery.strategy",)
"""The same for proposals that no release has."""


def topic_configs(config: Config) -> tuple[tuple[str, str], ...]:
    """A topic's settings as they are stored in the metadata, in Kafka's names and notation."""
    defaults = SETTINGS["topic"]
    optional = (
        *TOPIC_PROPOSED_SETTINGS,
        *TOPIC_RECORD_SETTINGS,
        *TOPIC_RETENTION_SETTINGS,
        *TOPIC_THROTTLE_SETTINGS,
        *TOPIC_TIERED_SETTINGS,
    )
    off_default = (n for n in optional if config[n] != defaults[n].default)
    return topic_settings(config, (*TOPIC_LOG_SETTINGS, *off_default))


def topic_settings(
    config: Config,
    names: Iterable[str] = (
        *TOPIC_LOG_SETTINGS,
        *TOPIC_PROPOSED_SETTINGS,
        *TOPIC_RECORD_SETTINGS,
        *TOPIC_RETENTION_SETTINGS,
        *TOPIC_THROTTLE_SETTINGS,
        *TOPIC_TIERED_SETTINGS,
    ),
) -> tuple[tuple[str, str], ...]:
    """Some of a topic's settings, or all that brokers know, in Kafka's names and notation."""
    return tuple((name, kafka_text(config[name])) for name in names)


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
    names = (
        *TOPIC_LOG_SETTINGS,
        *TOPIC_PROPOSED_SETTINGS,
        *TOPIC_RECORD_SETTINGS,
        *TOPIC_RETENTION_SETTINGS,
    )
    off_default = (n for n in sorted(names) if inherited[n] != known[n].default)
    return topic_settings(inherited, [name for name in off_default if name not in given])


def check_faults(faults: Iterable[Fault], positions: Mapping[str, str]) -> None:
    """Check that no administrator changes a setting of a proposal that is not switched on.

    Raises:
        Problem: With the fault's number as its path.
    """
    for fault in faults:
        if isinstance(fault, AlterConfig | AlterBrokerConfig):
            try:
                proposed.check((change.name for change in fault.config), positions)
            except Problem as problem:
                raise problem.below(fault.index, "config") from None


def may_be_compacted(scenario: Scenario, topic: str) -> bool:
    """True if a topic is compacted from the start, or an operation of the scenario makes it so."""
    policies = [str(scenario.topic(topic).config["cleanup.policy"])]
    for fault in scenario.faults:
        if isinstance(fault, AlterConfig) and fault.topic.name == topic:
            policies += [str(each.value) for each in fault.config if each.name == "cleanup.policy"]
    return any("compact" in policy.split(",") for policy in policies)


def kafka_text(value: object) -> str:
    """A value in Kafka's notation; null is empty."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


_THREADS: Final = ("num.io.threads", "num.network.threads")

CHANGEABLE: Final[tuple[str, ...]] = (
    *TOPIC_NAMES,
    CORDONED,
    "follower.replication.throttled.rate",
    "leader.replication.throttled.rate",
    "log.cleaner.backoff.ms",
    "log.cleaner.dedupe.buffer.size",
    "log.cleaner.io.buffer.load.factor",
    "log.cleaner.io.max.bytes.per.second",
    "log.cleaner.threads",
    *_THREADS,
)
"""Broker settings that may be changed while brokers run."""

KAFKAS: Final[tuple[str, ...]] = (
    "log.cleaner.io.buffer.size", "log.preallocate", "log.local.retention.bytes",
    "log.local.retention.ms", "num.replica.fetchers", "num.recovery.threads.per.data.dir",
    "background.threads", "metric.reporters", "listeners", "advertised.listeners",
    "listener.security.protocol.map", "max.connections", "max.connections.per.ip",
    "max.connections.per.ip.overrides", "max.connection.creation.rate", "producer.id.expiration.ms",
    "transaction.partition.verification.enable", "remote.fetch.max.wait.ms",
    "replica.alter.log.dirs.io.max.bytes.per.second",
)  # fmt: skip
"""Others that Kafka changes in a running broker, and that are not changed here."""

_OWN: Final = ("cleanup.policy", "compression.type", "min.insync.replicas", "segment.bytes")
"""Settings that coordinators give their topics."""


def changes_of(
    given: Mapping[str, object], config: Config, *, one_broker: bool
) -> tuple[BrokerConfigChange, ...]:
    """The changes of an entry; null removes the dynamic value.

    Args:
        given: Names and values as the scenario has them.
        config: The brokers' file.
        one_broker: True if it is about a single broker.

    Raises:
        Problem: For a setting that is static, unknown or out of range; its path is the name.
    """
    for name in given:
        _check_name(name)
    resolved = resolve("broker", {n: v for n, v in given.items() if v is not None})
    for name in _THREADS:
        if given.get(name) is not None:
            _check_threads(name, resolved.number(name), config.number(name))
    if CORDONED in given:
        if not config.has(CORDONED):
            raise Problem((CORDONED,), "came with 4.3", f"settings of Kafka {config.version}")
        if not one_broker:
            raise Problem(
                (CORDONED,), "of all brokers at once", "one broker's, as in Kafka", "add broker"
            )
    if one_broker and "min.insync.replicas" in given:
        raise Problem(
            ("min.insync.replicas",),
            "the minimum ISR of one broker",
            "that of all of them: the controller has eligible leader replicas by it (KIP-966)",
            "leave out the broker",
        )
    return tuple(
        BrokerConfigChange(n, resolved[n], kafka_text(resolved[n]))
        if value is not None
        else BrokerConfigChange(n, None, None)
        for n, value in given.items()
    )


def _check_name(name: str) -> None:
    if name in CHANGEABLE:
        return
    if name in KAFKAS:
        raise Problem((name,), f"{name} is not changed here while brokers run", one_of(CHANGEABLE))
    if name in SETTINGS["broker"]:
        raise Problem(
            (name,),
            f"{name} is static: Kafka cannot update it dynamically",
            one_of(CHANGEABLE),
            "write it under cluster.config",
        )
    near = nearest(name, CHANGEABLE)
    raise Problem((name,), f"unknown broker setting {name}", one_of(CHANGEABLE), near)


def _check_threads(name: str, count: int, now: int) -> None:
    """Kafka takes half to twice as many at a time."""
    if not now // 2 <= count <= now * 2 or count < 1:
        raise Problem((name,), f"{count}, with {now} in the file", f"{now // 2 or 1} to {now * 2}")


def changed_names(faults: Iterable[Fault], config: Config) -> tuple[str, ...]:
    """Broker settings that a calendar changes, each once, and cordoned directories if there are."""
    found = [change.name for f in faults if isinstance(f, AlterBrokerConfig) for change in f.config]
    if config.text(CORDONED):
        found.append(CORDONED)
    return tuple(dict.fromkeys(found))


def server_file(config: Config, names: Iterable[str]) -> ServerFile:
    """Values of some settings in the brokers' file."""
    inherited = dict(
        topic_settings(resolve("topic", {}, config), dict.fromkeys(TOPIC_NAMES.values()))
    )
    return ServerFile(
        -1,
        {
            name: inherited[TOPIC_NAMES[name]] if name in TOPIC_NAMES else kafka_text(config[name])
            for name in names
        },
    )


def without_inherited(
    configs: Iterable[tuple[str, str]], file: ServerFile, *, internal: bool = False
) -> tuple[tuple[str, str], ...]:
    """A topic's own settings: those that are not its brokers', of those that may change."""
    brokers = {TOPIC_NAMES[n]: value for n, value in file.settings.items() if n in TOPIC_NAMES}
    return tuple(
        (name, value)
        for name, value in configs
        if brokers.get(name) != value or (internal and name in _OWN)
    )
