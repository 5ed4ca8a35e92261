"""Kafka's broker, controller and coordinator settings (4.1).

Source: ``ServerConfigs``, ``ReplicationConfigs``, ``ServerLogConfigs``, ``SocketServerConfigs``,
``KRaftConfigs``, ``QuorumConfig``, ``GroupCoordinatorConfig``, ``TransactionStateManagerConfig``,
``QuotaConfig``.
"""

from typing import Final

from sim.scenario.settings.raft import RAFT_SETTINGS
from sim.scenario.settings.share import SHARE_SETTINGS
from sim.scenario.settings.types import (
    DOUBLE_MAX,
    INT_MAX,
    LONG_MAX,
    REPLICA_SELECTORS,
    TIMESTAMP_TYPES,
    TOPIC_CODECS,
    Setting,
    absent,
    codec_levels,
)
from sim.scenario.settings.zookeeper import ZOOKEEPER_SETTINGS

_REPLICATION: Final[tuple[Setting, ...]] = (
    Setting("min.insync.replicas", "int", 1, low=1, high=INT_MAX),
    Setting("unclean.leader.election.enable", "boolean", False),  # noqa: FBT003 - its default
    Setting("unclean.leader.election.interval.ms", "int", 300_000, low=1),
    Setting("auto.leader.rebalance.enable", "boolean", True),  # noqa: FBT003 - its default
    Setting("leader.imbalance.check.interval.seconds", "int", 300, low=1),
    Setting("replica.lag.time.max.ms", "int", 30_000, low=1),
    Setting("replica.fetch.wait.max.ms", "int", 500, low=0, high=INT_MAX),
    Setting("replica.fetch.min.bytes", "int", 1, low=0, high=INT_MAX),
    Setting("replica.fetch.max.bytes", "int", 1_048_576, low=0, high=INT_MAX),
    Setting("replica.fetch.response.max.bytes", "int", 10_485_760, low=0, high=INT_MAX),
    Setting("replica.fetch.backoff.ms", "int", 1_000, low=0, high=INT_MAX),
    Setting("replica.socket.timeout.ms", "int", 30_000, low=1, high=INT_MAX),
    Setting("num.replica.fetchers", "int", 1, low=1, high=INT_MAX),
    Setting("num.replica.alter.log.dirs.threads", "int", None, low=1, high=INT_MAX),
    Setting("replica.high.watermark.checkpoint.interval.ms", "int", 5_000, low=1),
    Setting("fetch.max.bytes", "int", 57_671_680, low=1_024, high=INT_MAX),
    *absent(
        "topics are listed in the scenario and live as long as it does",
        ("default.replication.factor", "int", 1),
        ("num.partitions", "int", 1),
        ("auto.create.topics.enable", "boolean", True),
        ("delete.topic.enable", "boolean", True),
        ("max.request.partition.size.limit", "int", 2_000),
    ),
    Setting("replica.selector.class", "string", None, choices=REPLICA_SELECTORS),
    *absent("racks are given by cluster.racks", ("broker.rack", "string", None)),
    *absent(
        "a stop hands over unless it is a crash",
        ("controlled.shutdown.enable", "boolean", True),
    ),
    *absent(
        "fetch sessions are never evicted",
        ("max.incremental.fetch.session.cache.slots", "int", 1_000),
    ),
    *absent(
        "purgatories are purged as they go",
        ("fetch.purgatory.purge.interval.requests", "int", 1_000),
        ("producer.purgatory.purge.interval.requests", "int", 1_000),
        ("delete.records.purgatory.purge.interval.requests", "int", 1),
    ),
    *absent(
        "brokers keep Kafka's default timeouts towards the controller",
        ("controller.socket.timeout.ms", "int", 30_000),
        ("request.timeout.ms", "int", 30_000),
    ),
)

_SERVER: Final[tuple[Setting, ...]] = (
    Setting("security.inter.broker.protocol", "string", "PLAINTEXT", choices=("PLAINTEXT", "SSL")),
    *absent(
        "TLS costs time, but there are no identities, passwords and certificates",
        ("ssl.client.auth", "string", "none"),
        ("ssl.truststore.location", "string", None),
        ("ssl.keystore.location", "string", None),
    ),
    Setting("num.network.threads", "int", 3, low=1, high=INT_MAX),
    Setting("num.io.threads", "int", 8, low=1, high=INT_MAX),
    *absent("background work takes no threads", ("background.threads", "int", 10)),
    *absent(
        "the request queue has no bound",
        ("queued.max.requests", "int", 500),
        ("queued.max.request.bytes", "int", -1),
    ),
    Setting("max.connections", "int", INT_MAX, low=1, high=INT_MAX),
    Setting("max.connections.per.ip", "int", INT_MAX, low=0, high=INT_MAX),
    Setting("max.connections.per.ip.overrides", "string", ""),
    Setting("max.connection.creation.rate", "int", INT_MAX, low=1, high=INT_MAX),
    *absent(
        "sockets have no buffer sizes",
        ("socket.send.buffer.bytes", "int", 102_400),
        ("socket.receive.buffer.bytes", "int", 102_400),
        ("socket.request.max.bytes", "int", 104_857_600),
        ("socket.listen.backlog.size", "int", 50),
        ("connections.max.idle.ms", "int", 600_000),
        ("connection.failed.authentication.delay.ms", "int", 100),
    ),
)

_LOG: Final[tuple[Setting, ...]] = (
    Setting("log.flush.interval.messages", "int", LONG_MAX, low=1),
    Setting("log.flush.offset.checkpoint.interval.ms", "int", 60_000, low=1, high=INT_MAX),
    Setting("log.segment.bytes", "int", 1_073_741_824, low=1_048_576, high=INT_MAX),
    Setting("log.roll.hours", "int", 168, low=1, high=INT_MAX),
    Setting("log.index.size.max.bytes", "int", 10_485_760, low=4, high=INT_MAX),
    Setting("log.index.interval.bytes", "int", 4_096, low=0, high=INT_MAX),
    Setting("message.max.bytes", "int", 1_048_588, low=0, high=INT_MAX),
    *absent(
        "log directories are made by the scenario: cluster.disk.directories",
        ("log.dirs", "list", None),
        ("log.dir", "string", "/tmp/kafka-logs"),  # noqa: S108 - Kafka's own default
        ("metadata.log.dir", "string", None),
    ),
    Setting("log.dir.failure.timeout.ms", "int", 30_000, low=1),
    Setting("num.recovery.threads.per.data.dir", "int", 2, low=1, high=INT_MAX),
    Setting("log.flush.interval.ms", "int", None, low=0),
    Setting("log.flush.scheduler.interval.ms", "int", LONG_MAX, low=1),
    Setting("log.roll.ms", "int", None, low=1),
    Setting("log.roll.jitter.hours", "int", 0, low=0, high=INT_MAX),
    Setting("log.roll.jitter.ms", "int", None, low=0),
    Setting("log.retention.hours", "int", 168, low=-1, high=INT_MAX),
    Setting("log.retention.minutes", "int", None, low=-1, high=INT_MAX),
    Setting("log.retention.ms", "int", None, low=-1),
    Setting("log.retention.bytes", "int", -1, low=-1),
    Setting("log.retention.check.interval.ms", "int", 300_000, low=1),
    Setting("log.initial.task.delay.ms", "int", 30_000, low=0),
    Setting("log.segment.delete.delay.ms", "int", 60_000, low=0),
    Setting("log.flush.start.offset.checkpoint.interval.ms", "int", 60_000, low=1, high=INT_MAX),
    Setting("log.cleanup.policy", "list", "delete", choices=("compact", "delete")),
    Setting("log.cleaner.threads", "int", 1, low=1, high=INT_MAX),
    Setting("log.cleaner.backoff.ms", "int", 15_000, low=0),
    Setting("log.cleaner.io.max.bytes.per.second", "double", DOUBLE_MAX, low=1),
    Setting("log.cleaner.dedupe.buffer.size", "int", 134_217_728, low=1),
    Setting("log.cleaner.io.buffer.load.factor", "double", 0.9, low=0),
    Setting("log.cleaner.min.cleanable.ratio", "double", 0.5, low=0, high=1),
    Setting("log.cleaner.delete.retention.ms", "int", 86_400_000, low=0),
    Setting("log.cleaner.min.compaction.lag.ms", "int", 0, low=0),
    Setting("log.cleaner.max.compaction.lag.ms", "int", LONG_MAX, low=1),
    *absent("compacted topics are always cleaned", ("log.cleaner.enable", "boolean", True)),
    *absent(
        "the cleaner reads and writes whole segments",
        ("log.cleaner.io.buffer.size", "int", 524_288),
    ),
    *codec_levels(),
    Setting("compression.type", "string", "producer", choices=TOPIC_CODECS),
    Setting("log.message.timestamp.type", "string", "CreateTime", choices=TIMESTAMP_TYPES),
    Setting("log.message.timestamp.before.max.ms", "int", LONG_MAX, low=0),
    Setting("log.message.timestamp.after.max.ms", "int", 3_600_000, low=0),
)

_KRAFT: Final[tuple[Setting, ...]] = (
    Setting("controller.quorum.election.timeout.ms", "int", 1_000, low=1, high=INT_MAX),
    Setting("controller.quorum.fetch.timeout.ms", "int", 2_000, low=1, high=INT_MAX),
    Setting("controller.quorum.election.backoff.max.ms", "int", 1_000, low=0, high=INT_MAX),
    Setting("controller.quorum.request.timeout.ms", "int", 2_000, low=1, high=INT_MAX),
    Setting("controller.quorum.retry.backoff.ms", "int", 20, low=0, high=INT_MAX),
    Setting("controller.quorum.append.linger.ms", "int", 25, low=0, high=INT_MAX),
    Setting("broker.heartbeat.interval.ms", "int", 2_000, low=1, high=INT_MAX),
    Setting("broker.session.timeout.ms", "int", 9_000, low=1, high=INT_MAX),
    Setting("metadata.max.idle.interval.ms", "int", 500, low=1, high=INT_MAX),
    *absent(
        "a broker waits for its registration as long as the run lasts",
        ("initial.broker.registration.timeout.ms", "int", 60_000),
        ("server.max.startup.time.ms", "int", LONG_MAX),
    ),
    Setting("metadata.log.max.record.bytes.between.snapshots", "int", 20_971_520, low=1),
    Setting("metadata.log.max.snapshot.interval.ms", "int", 3_600_000, low=0),
    Setting("metadata.log.segment.bytes", "int", 1_073_741_824, low=8_388_608, high=INT_MAX),
    Setting("metadata.log.segment.ms", "int", 604_800_000, low=0),
    Setting("metadata.max.retention.bytes", "int", 104_857_600),
    Setting("metadata.max.retention.ms", "int", 604_800_000),
    *absent(
        "servers are numbered by the scenario",
        ("node.id", "int", None),
        ("broker.id", "int", None),
        ("process.roles", "list", None),
        ("listeners", "list", None),
        ("advertised.listeners", "list", None),
        ("controller.quorum.voters", "list", None),
        ("controller.quorum.bootstrap.servers", "list", None),
    ),
)

_COORDINATORS: Final[tuple[Setting, ...]] = (
    Setting("offsets.topic.num.partitions", "int", 50, low=1, high=INT_MAX),
    Setting("offsets.topic.replication.factor", "int", 3, low=1, high=32_767),
    Setting("offsets.topic.segment.bytes", "int", 104_857_600, low=1_048_576, high=INT_MAX),
    Setting("offsets.commit.timeout.ms", "int", 5_000, low=1, high=INT_MAX),
    Setting("group.initial.rebalance.delay.ms", "int", 3_000, low=0, high=INT_MAX),
    Setting("group.min.session.timeout.ms", "int", 6_000, low=0, high=INT_MAX),
    Setting("group.max.session.timeout.ms", "int", 1_800_000, low=0, high=INT_MAX),
    Setting("group.coordinator.append.linger.ms", "int", 5, low=0, high=INT_MAX),
    Setting("group.max.size", "int", INT_MAX, low=1, high=INT_MAX),
    *absent("commits carry no metadata text", ("offset.metadata.max.bytes", "int", 4_096)),
    Setting("offsets.retention.minutes", "int", 10_080, low=1, high=INT_MAX),
    Setting("offsets.retention.check.interval.ms", "int", 600_000, low=1),
    *absent("offsets load in one read", ("offsets.load.buffer.size", "int", 5_242_880)),
    *absent(
        "the coordinator works on the request's own thread",
        ("group.coordinator.threads", "int", 4),
    ),
    *absent(
        "a group keeps its protocol",
        ("group.coordinator.rebalance.protocols", "list", "classic,consumer,streams"),
        ("group.consumer.migration.policy", "string", "bidirectional"),
    ),
    Setting("group.consumer.session.timeout.ms", "int", 45_000, low=1, high=INT_MAX),
    Setting("group.consumer.min.session.timeout.ms", "int", 45_000, low=1, high=INT_MAX),
    Setting("group.consumer.max.session.timeout.ms", "int", 60_000, low=1, high=INT_MAX),
    Setting("group.consumer.heartbeat.interval.ms", "int", 5_000, low=1, high=INT_MAX),
    Setting("group.consumer.min.heartbeat.interval.ms", "int", 5_000, low=1, high=INT_MAX),
    Setting("group.consumer.max.heartbeat.interval.ms", "int", 15_000, low=1, high=INT_MAX),
    Setting("group.consumer.assignors", "list", "uniform,range", choices=("uniform", "range")),
    Setting("group.consumer.max.size", "int", INT_MAX, low=1, high=INT_MAX),
    *absent(
        "topics are subscribed to by their names",
        ("group.consumer.regex.refresh.interval.ms", "int", 600_000),
    ),
    *absent(
        "there are no streams groups",
        ("group.streams.session.timeout.ms", "int", 45_000),
        ("group.streams.heartbeat.interval.ms", "int", 5_000),
        ("group.streams.num.standby.replicas", "int", 0),
    ),
    *SHARE_SETTINGS,
    Setting("transaction.state.log.num.partitions", "int", 50, low=1, high=INT_MAX),
    Setting("transaction.state.log.replication.factor", "int", 3, low=1, high=32_767),
    Setting("transaction.state.log.min.isr", "int", 2, low=1, high=INT_MAX),
    Setting("transaction.state.log.segment.bytes", "int", 104_857_600, low=1_048_576, high=INT_MAX),
    Setting("transaction.max.timeout.ms", "int", 900_000, low=1, high=INT_MAX),
    Setting(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "int",
        10_000,
        low=1,
        high=INT_MAX,
    ),
    Setting("transactional.id.expiration.ms", "int", 604_800_000, low=1, high=INT_MAX),
    Setting(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        "int",
        3_600_000,
        low=1,
        high=INT_MAX,
    ),
    Setting("transaction.partition.verification.enable", "boolean", True),  # noqa: FBT003 - its default
    Setting("add.partitions.to.txn.retry.backoff.ms", "int", 20, low=1, high=INT_MAX),
    Setting("add.partitions.to.txn.retry.backoff.max.ms", "int", 100, low=0, high=INT_MAX),
    *absent(
        "transactions have one phase (no KIP-939)",
        ("transaction.two.phase.commit.enable", "boolean", False),
    ),
    Setting("producer.id.expiration.ms", "int", 86_400_000, low=1, high=INT_MAX),
    Setting("producer.id.expiration.check.interval.ms", "int", 600_000, low=1, high=INT_MAX),
)

_QUOTAS: Final[tuple[Setting, ...]] = (
    Setting("leader.replication.throttled.rate", "int", LONG_MAX, low=0),
    Setting("follower.replication.throttled.rate", "int", LONG_MAX, low=0),
    Setting("replication.quota.window.num", "int", 11, low=1, high=INT_MAX),
    Setting("replication.quota.window.size.seconds", "int", 1, low=1, high=INT_MAX),
    Setting("quota.window.num", "int", 11, low=1, high=INT_MAX),
    Setting("quota.window.size.seconds", "int", 1, low=1, high=INT_MAX),
    *absent(
        "quotas of clients stand under quotas:, each with its client.id or user",
        ("producer_byte_rate", "int", LONG_MAX),
        ("consumer_byte_rate", "int", LONG_MAX),
        ("request_percentage", "double", None),
        ("controller_mutation_rate", "double", None),
    ),
    *absent(
        "quotas of addresses stand under quotas:, each with its ip",
        ("connection_creation_rate", "int", INT_MAX),
    ),
    Setting("controller.quota.window.num", "int", 11, low=1, high=INT_MAX),
    Setting("controller.quota.window.size.seconds", "int", 1, low=1, high=INT_MAX),
    *absent(
        "moves between log directories have no throttle",
        ("alter.log.dirs.replication.quota.window.num", "int", 11),
        ("alter.log.dirs.replication.quota.window.size.seconds", "int", 1),
        ("replica.alter.log.dirs.io.max.bytes.per.second", "int", LONG_MAX),
    ),
)

BROKER_SETTINGS: Final[tuple[Setting, ...]] = (
    *_REPLICATION,
    *_SERVER,
    *_LOG,
    *_KRAFT,
    *_COORDINATORS,
    *_QUOTAS,
    *RAFT_SETTINGS,
    *ZOOKEEPER_SETTINGS,
)
"""Every broker setting."""
