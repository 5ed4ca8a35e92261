"""Kafka's broker, controller and coordinator settings (4.1).

Source: ``ServerConfigs``, ``ReplicationConfigs``, ``ServerLogConfigs``, ``SocketServerConfigs``,
``KRaftConfigs``, ``QuorumConfig``, ``GroupCoordinatorConfig``, ``TransactionStateManagerConfig``,
``QuotaConfig``.
"""

from typing import Final

from sim.scenario.settings_types import INT_MAX, LONG_MAX, Setting, absent

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
    *absent("consumers fetch from leaders only", ("replica.selector.class", "string", None)),
    *absent("racks are given by cluster.racks", ("broker.rack", "string", None)),
    *absent(
        "a stop hands over unless it is a crash",
        ("controlled.shutdown.enable", "boolean", True),
        ("controlled.shutdown.max.retries", "int", 3),
        ("controlled.shutdown.retry.backoff.ms", "int", 5_000),
    ),
    *absent(
        "replicas stay in their log directory",
        ("num.replica.alter.log.dirs.threads", "int", None),
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
    Setting("num.network.threads", "int", 3, low=1, high=INT_MAX),
    Setting("num.io.threads", "int", 8, low=1, high=INT_MAX),
    *absent("background work takes no threads", ("background.threads", "int", 10)),
    *absent(
        "the request queue has no bound",
        ("queued.max.requests", "int", 500),
        ("queued.max.request.bytes", "int", -1),
    ),
    *absent(
        "sockets have neither buffer sizes nor limits",
        ("socket.send.buffer.bytes", "int", 102_400),
        ("socket.receive.buffer.bytes", "int", 102_400),
        ("socket.request.max.bytes", "int", 104_857_600),
        ("socket.listen.backlog.size", "int", 50),
        ("connections.max.idle.ms", "int", 600_000),
        ("max.connections", "int", INT_MAX),
        ("max.connections.per.ip", "int", INT_MAX),
        ("max.connection.creation.rate", "int", INT_MAX),
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
    *absent(
        "the failure of a log directory is told at once",
        ("log.dir.failure.timeout.ms", "int", 30_000),
    ),
    *absent("recovery reads one log at a time", ("num.recovery.threads.per.data.dir", "int", 2)),
    *absent(
        "flushes by time are not modelled",
        ("log.flush.interval.ms", "int", None),
        ("log.flush.scheduler.interval.ms", "int", LONG_MAX),
    ),
    *absent("segments roll without jitter", ("log.roll.jitter.hours", "int", 0)),
    *absent("segments roll by log.roll.hours", ("log.roll.ms", "int", None)),
    *absent(
        "logs are neither compacted nor deleted by age or size",
        ("log.flush.start.offset.checkpoint.interval.ms", "int", 60_000),
        ("log.retention.check.interval.ms", "int", 300_000),
        ("log.retention.hours", "int", 168),
        ("log.retention.minutes", "int", None),
        ("log.retention.ms", "int", None),
        ("log.retention.bytes", "int", -1),
        ("log.segment.delete.delay.ms", "int", 60_000),
        ("log.cleaner.enable", "boolean", True),
        ("log.cleaner.threads", "int", 1),
        ("log.cleaner.backoff.ms", "int", 15_000),
        ("log.cleaner.min.cleanable.ratio", "double", 0.5),
        ("log.cleanup.policy", "string", "delete"),
        ("log.initial.task.delay.ms", "int", 30_000),
    ),
    *absent("batches are not compressed", ("compression.type", "string", "producer")),
    *absent(
        "records keep the time of their creation, which is never refused",
        ("log.message.timestamp.type", "string", "CreateTime"),
        ("log.message.timestamp.before.max.ms", "int", LONG_MAX),
        ("log.message.timestamp.after.max.ms", "int", 3_600_000),
    ),
)

_KRAFT: Final[tuple[Setting, ...]] = (
    Setting("controller.quorum.election.timeout.ms", "int", 1_000, low=1, high=INT_MAX),
    Setting("controller.quorum.fetch.timeout.ms", "int", 2_000, low=1, high=INT_MAX),
    Setting("controller.quorum.election.backoff.max.ms", "int", 1_000, low=0, high=INT_MAX),
    Setting("controller.quorum.request.timeout.ms", "int", 2_000, low=1, high=INT_MAX),
    Setting("controller.quorum.retry.backoff.ms", "int", 20, low=0, high=INT_MAX),
    Setting("broker.heartbeat.interval.ms", "int", 2_000, low=1, high=INT_MAX),
    Setting("broker.session.timeout.ms", "int", 9_000, low=1, high=INT_MAX),
    Setting("metadata.max.idle.interval.ms", "int", 500, low=1, high=INT_MAX),
    *absent(
        "the active controller appends each decision at once",
        ("controller.quorum.append.linger.ms", "int", 25),
    ),
    *absent(
        "a broker waits for its registration as long as the run lasts",
        ("initial.broker.registration.timeout.ms", "int", 60_000),
        ("server.max.startup.time.ms", "int", LONG_MAX),
    ),
    *absent(
        "the metadata log has no snapshots and is never cut",
        ("metadata.log.max.record.bytes.between.snapshots", "int", 20_971_520),
        ("metadata.log.max.snapshot.interval.ms", "int", 3_600_000),
        ("metadata.log.segment.bytes", "int", 1_073_741_824),
        ("metadata.log.segment.ms", "int", 604_800_000),
        ("metadata.max.retention.bytes", "int", 104_857_600),
        ("metadata.max.retention.ms", "int", 604_800_000),
    ),
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
    *absent("groups take any number of members", ("group.max.size", "int", INT_MAX)),
    *absent("commits carry no metadata text", ("offset.metadata.max.bytes", "int", 4_096)),
    *absent(
        "committed offsets do not expire",
        ("offsets.retention.minutes", "int", 10_080),
        ("offsets.retention.check.interval.ms", "int", 600_000),
    ),
    *absent("offsets load in one read", ("offsets.load.buffer.size", "int", 5_242_880)),
    *absent(
        "the coordinator works on the request's own thread",
        ("group.coordinator.threads", "int", 4),
    ),
    *absent(
        "groups use the classic protocol only",
        ("group.coordinator.rebalance.protocols", "list", "classic,consumer,streams"),
        ("group.consumer.session.timeout.ms", "int", 45_000),
        ("group.consumer.min.session.timeout.ms", "int", 45_000),
        ("group.consumer.max.session.timeout.ms", "int", 60_000),
        ("group.consumer.heartbeat.interval.ms", "int", 5_000),
        ("group.consumer.min.heartbeat.interval.ms", "int", 5_000),
        ("group.consumer.max.heartbeat.interval.ms", "int", 15_000),
        ("group.consumer.assignors", "list", "uniform,range"),
        ("group.consumer.max.size", "int", INT_MAX),
        ("group.consumer.migration.policy", "string", "bidirectional"),
        ("group.consumer.regex.refresh.interval.ms", "int", 600_000),
        ("group.streams.session.timeout.ms", "int", 45_000),
        ("group.streams.heartbeat.interval.ms", "int", 5_000),
        ("group.streams.num.standby.replicas", "int", 0),
    ),
    *absent(
        "there are no share groups",
        ("group.share.session.timeout.ms", "int", 45_000),
        ("group.share.heartbeat.interval.ms", "int", 5_000),
        ("group.share.max.size", "int", 200),
        ("group.share.record.lock.duration.ms", "int", 30_000),
        ("group.share.min.record.lock.duration.ms", "int", 15_000),
        ("group.share.max.record.lock.duration.ms", "int", 60_000),
        ("group.share.delivery.count.limit", "int", 5),
        ("group.share.partition.max.record.locks", "int", 2_000),
        ("group.share.max.share.sessions", "int", 2_000),
        ("share.coordinator.state.topic.num.partitions", "int", 50),
        ("share.coordinator.state.topic.replication.factor", "int", 3),
        ("share.coordinator.state.topic.min.isr", "int", 2),
        ("share.coordinator.append.linger.ms", "int", 5),
        ("share.coordinator.write.timeout.ms", "int", 5_000),
    ),
    *absent(
        "there are no transactions",
        ("transaction.state.log.num.partitions", "int", 50),
        ("transaction.state.log.replication.factor", "int", 3),
        ("transaction.state.log.min.isr", "int", 2),
        ("transaction.state.log.segment.bytes", "int", 104_857_600),
        ("transaction.max.timeout.ms", "int", 900_000),
        ("transaction.abort.timed.out.transaction.cleanup.interval.ms", "int", 10_000),
        ("transactional.id.expiration.ms", "int", 604_800_000),
        ("transaction.remove.expired.transaction.cleanup.interval.ms", "int", 3_600_000),
        ("transaction.partition.verification.enable", "boolean", True),
        ("transaction.two.phase.commit.enable", "boolean", False),
        ("add.partitions.to.txn.retry.backoff.ms", "int", 20),
        ("add.partitions.to.txn.retry.backoff.max.ms", "int", 100),
    ),
    *absent(
        "producer ids do not expire",
        ("producer.id.expiration.ms", "int", 86_400_000),
        ("producer.id.expiration.check.interval.ms", "int", 600_000),
    ),
)

_QUOTAS: Final[tuple[Setting, ...]] = absent(
    "there are no quotas",
    ("quota.window.num", "int", 11),
    ("quota.window.size.seconds", "int", 1),
    ("controller.quota.window.num", "int", 11),
    ("controller.quota.window.size.seconds", "int", 1),
    ("replication.quota.window.num", "int", 11),
    ("replication.quota.window.size.seconds", "int", 1),
    ("alter.log.dirs.replication.quota.window.num", "int", 11),
    ("alter.log.dirs.replication.quota.window.size.seconds", "int", 1),
    ("leader.replication.throttled.rate", "int", LONG_MAX),
    ("follower.replication.throttled.rate", "int", LONG_MAX),
    ("replica.alter.log.dirs.io.max.bytes.per.second", "int", LONG_MAX),
    ("producer_byte_rate", "int", LONG_MAX),
    ("consumer_byte_rate", "int", LONG_MAX),
    ("request_percentage", "double", None),
    ("controller_mutation_rate", "double", None),
    ("connection_creation_rate", "int", INT_MAX),
)

BROKER_SETTINGS: Final[tuple[Setting, ...]] = (
    *_REPLICATION,
    *_SERVER,
    *_LOG,
    *_KRAFT,
    *_COORDINATORS,
    *_QUOTAS,
)
"""Every broker setting."""
