"""Kafka's broker, controller and coordinator settings.

Source: ``ServerConfigs``, ``ReplicationConfigs``, ``ServerLogConfigs``, ``SocketServerConfigs``,
``KRaftConfigs``, ``QuorumConfig``, ``GroupCoordinatorConfig``, ``TransactionStateManagerConfig``,
``QuotaConfig``.
"""

from typing import Final

from sim.scenario.settings.overlay import (
    NO_BOUND,
    NO_JAVA,
    NO_SASL,
    SEGMENT,
    UNLIMITED,
    ZERO,
    Overlay,
    absent,
    codec_levels,
    modelled,
    narrowed,
    newer,
)
from sim.scenario.settings.proposed import BROKER_PROPOSALS
from sim.scenario.settings.raft import RAFT_SETTINGS
from sim.scenario.settings.share import SHARE_SETTINGS
from sim.scenario.settings.tiered import TIERED_SETTINGS
from sim.scenario.settings.types import INT_MAX, LONG_MAX, REPLICA_SELECTORS, Setting
from sim.scenario.settings.zookeeper import ZOOKEEPER_SETTINGS

_REPLICATION: Final[tuple[Overlay, ...]] = (
    *modelled(
        "min.insync.replicas",
        "unclean.leader.election.enable",
    ),
    # Before, a controller looked for such elections only when a broker or a setting changed.
    newer("unclean.leader.election.interval.ms", LONG_MAX),
    *modelled(
        "auto.leader.rebalance.enable",
        "leader.imbalance.check.interval.seconds",
    ),
    *narrowed(
        NO_BOUND,
        "replica.lag.time.max.ms",
        low=1,
    ),
    *narrowed(
        NO_BOUND,
        "replica.fetch.wait.max.ms",
        "replica.fetch.min.bytes",
        low=0,
    ),
    *modelled(
        "replica.fetch.max.bytes",
        "replica.fetch.response.max.bytes",
        "replica.fetch.backoff.ms",
    ),
    *narrowed(
        NO_BOUND,
        "replica.socket.timeout.ms",
        "num.replica.fetchers",
        "num.replica.alter.log.dirs.threads",
        "replica.high.watermark.checkpoint.interval.ms",
        low=1,
    ),
    newer("fetch.max.bytes", INT_MAX),
    *absent(
        "topics are listed in the scenario and live as long as it does",
        "default.replication.factor",
        "num.partitions",
        "auto.create.topics.enable",
        "delete.topic.enable",
        "max.request.partition.size.limit",
    ),
    *narrowed(
        NO_JAVA,
        "replica.selector.class",
        choices=REPLICA_SELECTORS,
    ),
    *absent(
        "racks are given by cluster.racks",
        "broker.rack",
    ),
    *absent(
        "a stop hands over unless it is a crash",
        "controlled.shutdown.enable",
    ),
    *modelled(
        "max.incremental.fetch.session.cache.slots",
    ),
    *absent(
        "purgatories are purged as they go",
        "fetch.purgatory.purge.interval.requests",
        "producer.purgatory.purge.interval.requests",
        "delete.records.purgatory.purge.interval.requests",
    ),
    *absent(
        "brokers keep Kafka's default timeouts towards the controller",
        "controller.socket.timeout.ms",
        "request.timeout.ms",
    ),
)

_SERVER: Final[tuple[Overlay, ...]] = (
    *narrowed(
        NO_SASL,
        "security.inter.broker.protocol",
        choices=("PLAINTEXT", "SSL"),
    ),
    *absent(
        "the listener of clients is given by cluster.security; no files of certificates",
        "ssl.client.auth",
        "ssl.truststore.location",
        "ssl.keystore.location",
    ),
    *modelled(
        "num.network.threads",
        "num.io.threads",
        "queued.max.requests",
        "connections.max.idle.ms",
    ),
    *absent(
        "background work takes no threads",
        "background.threads",
    ),
    *absent(
        "memory for requests has no bound of its own",
        "queued.max.request.bytes",
    ),
    *narrowed(
        "Kafka takes 0, which is a broker without clients",
        "max.connections",
        low=1,
    ),
    *modelled(
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
    ),
    *narrowed(
        "Kafka takes 0, which is a broker without clients",
        "max.connection.creation.rate",
        low=1,
    ),
    *absent(
        "sockets have no buffer sizes",
        "socket.send.buffer.bytes",
        "socket.receive.buffer.bytes",
        "socket.request.max.bytes",
        "socket.listen.backlog.size",
        "connection.failed.authentication.delay.ms",
    ),
)

_LOG: Final[tuple[Overlay, ...]] = (
    *modelled(
        "log.flush.interval.messages",
    ),
    *narrowed(
        ZERO,
        "log.flush.offset.checkpoint.interval.ms",
        low=1,
    ),
    *modelled(
        "log.segment.bytes",
        "log.roll.hours",
        "log.index.size.max.bytes",
        "log.index.interval.bytes",
        "message.max.bytes",
    ),
    *absent(
        "log directories are made by the scenario: cluster.disk.directories",
        "log.dirs",
        "log.dir",
        "metadata.log.dir",
    ),
    *modelled(
        "log.dir.failure.timeout.ms",
        "cordoned.log.dirs",
        "num.recovery.threads.per.data.dir",
    ),
    *narrowed(
        NO_BOUND,
        "log.flush.interval.ms",
        low=0,
    ),
    *narrowed(
        NO_BOUND,
        "log.flush.scheduler.interval.ms",
        "log.roll.ms",
        low=1,
    ),
    *modelled(
        "log.roll.jitter.hours",
    ),
    *narrowed(
        NO_BOUND,
        "log.roll.jitter.ms",
        low=0,
    ),
    *narrowed(
        UNLIMITED,
        "log.retention.hours",
        "log.retention.minutes",
        "log.retention.ms",
        "log.retention.bytes",
        low=-1,
    ),
    *modelled(
        "log.retention.check.interval.ms",
        "log.initial.task.delay.ms",
        "log.segment.delete.delay.ms",
    ),
    *narrowed(
        ZERO,
        "log.flush.start.offset.checkpoint.interval.ms",
        low=1,
    ),
    *modelled(
        "log.cleanup.policy",
    ),
    *narrowed(
        "Kafka takes 0, which is a cleaner that never cleans",
        "log.cleaner.threads",
        low=1,
    ),
    *modelled(
        "log.cleaner.backoff.ms",
    ),
    *narrowed(
        NO_BOUND,
        "log.cleaner.io.max.bytes.per.second",
        "log.cleaner.dedupe.buffer.size",
        low=1,
    ),
    *narrowed(
        NO_BOUND,
        "log.cleaner.io.buffer.load.factor",
        low=0,
    ),
    *modelled(
        "log.cleaner.min.cleanable.ratio",
        "log.cleaner.delete.retention.ms",
        "log.cleaner.min.compaction.lag.ms",
        "log.cleaner.max.compaction.lag.ms",
        "log.cleaner.enable",
    ),
    *absent(
        "the cleaner reads and writes whole segments",
        "log.cleaner.io.buffer.size",
    ),
    *codec_levels(),
    *modelled(
        "compression.type",
        "log.message.timestamp.type",
        "log.message.timestamp.before.max.ms",
        "log.message.timestamp.after.max.ms",
    ),
)

_KRAFT: Final[tuple[Overlay, ...]] = (
    *narrowed(
        ZERO,
        "controller.quorum.election.timeout.ms",
        "controller.quorum.fetch.timeout.ms",
        low=1,
    ),
    *modelled(
        "controller.quorum.election.backoff.max.ms",
    ),
    *narrowed(
        ZERO,
        "controller.quorum.request.timeout.ms",
        low=1,
    ),
    *modelled(
        "controller.quorum.retry.backoff.ms",
        "controller.quorum.append.linger.ms",
        "controller.quorum.auto.join.enable",
        "controller.quorum.fetch.max.bytes",
        "controller.quorum.fetch.snapshot.max.bytes",
    ),
    *narrowed(
        NO_BOUND,
        "broker.heartbeat.interval.ms",
        "broker.session.timeout.ms",
        low=1,
    ),
    # Before, there were no such records (KIP-835).
    newer("metadata.max.idle.interval.ms", 0),
    *narrowed(
        NO_BOUND,
        "initial.broker.registration.timeout.ms",
        low=1,
    ),
    *absent(
        "a broker may recover its logs as long as the run lasts",
        "server.max.startup.time.ms",
    ),
    # 2.8 took no snapshots, and until KIP-876 none was taken for its age.
    newer("metadata.log.max.record.bytes.between.snapshots", LONG_MAX),
    newer("metadata.log.max.snapshot.interval.ms", 0),
    *modelled("metadata.log.segment.bytes"),
    *narrowed(
        NO_BOUND,
        "metadata.log.segment.ms",
        low=0,
    ),
    *modelled(
        "metadata.max.retention.bytes",
        "metadata.max.retention.ms",
    ),
    *absent(
        "servers are numbered by the scenario",
        "node.id",
        "broker.id",
        "process.roles",
        "listeners",
        "advertised.listeners",
        "controller.quorum.voters",
        "controller.quorum.bootstrap.servers",
    ),
)

_COORDINATORS: Final[tuple[Overlay, ...]] = (
    *modelled(
        "offsets.topic.num.partitions",
        "offsets.topic.replication.factor",
    ),
    *narrowed(
        SEGMENT,
        "offsets.topic.segment.bytes",
        low=1_048_576,
    ),
    *modelled(
        "offsets.commit.timeout.ms",
    ),
    Overlay("group.initial.rebalance.delay.ms", because=NO_BOUND, low=0, before=0),
    *narrowed(
        NO_BOUND,
        "group.min.session.timeout.ms",
        "group.max.session.timeout.ms",
        low=0,
    ),
    *modelled(
        "group.coordinator.append.linger.ms",
        "group.max.size",
    ),
    *absent(
        "commits carry no metadata text",
        "offset.metadata.max.bytes",
    ),
    *modelled(
        "offsets.retention.minutes",
        "offsets.retention.check.interval.ms",
    ),
    *absent(
        "offsets load in one read",
        "offsets.load.buffer.size",
    ),
    *absent(
        "the coordinator works on the request's own thread",
        "group.coordinator.threads",
    ),
    *absent(
        "every kind of group that a release has is enabled",
        "group.coordinator.rebalance.protocols",
    ),
    *modelled(
        "group.consumer.migration.policy",
        "group.consumer.session.timeout.ms",
        "group.consumer.min.session.timeout.ms",
        "group.consumer.max.session.timeout.ms",
        "group.consumer.heartbeat.interval.ms",
        "group.consumer.min.heartbeat.interval.ms",
        "group.consumer.max.heartbeat.interval.ms",
        "group.consumer.assignment.interval.ms",
        "group.consumer.min.assignment.interval.ms",
        "group.consumer.max.assignment.interval.ms",
    ),
    *narrowed(
        NO_JAVA,
        "group.consumer.assignors",
        choices=("uniform", "range"),
    ),
    *modelled(
        "group.consumer.max.size",
    ),
    *absent(
        "topics are subscribed to by their names",
        "group.consumer.regex.refresh.interval.ms",
    ),
    *absent(
        "there are no streams groups",
        "group.streams.session.timeout.ms",
        "group.streams.heartbeat.interval.ms",
        "group.streams.num.standby.replicas",
    ),
    *SHARE_SETTINGS,
    *modelled(
        "transaction.state.log.num.partitions",
        "transaction.state.log.replication.factor",
        "transaction.state.log.min.isr",
    ),
    *narrowed(
        SEGMENT,
        "transaction.state.log.segment.bytes",
        low=1_048_576,
    ),
    *modelled(
        "transaction.max.timeout.ms",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "transactional.id.expiration.ms",
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        "transaction.partition.verification.enable",
        "add.partitions.to.txn.retry.backoff.ms",
        "add.partitions.to.txn.retry.backoff.max.ms",
    ),
    *absent(
        "transactions have one phase (no KIP-939)",
        "transaction.two.phase.commit.enable",
    ),
    newer("producer.id.expiration.ms", like="transactional.id.expiration.ms"),
    *modelled(
        "producer.id.expiration.check.interval.ms",
    ),
)

_AUTHORIZER: Final[tuple[Overlay | Setting, ...]] = (
    *narrowed(NO_JAVA, "authorizer.class.name", choices=("", "StandardAuthorizer")),
    # Kafka's authorizer reads them; no ConfigDef has them.
    Setting("super.users", "string", ""),
    Setting("allow.everyone.if.no.acl.found", "boolean", False),  # noqa: FBT003 - its default
)

_TOKENS: Final[tuple[Overlay, ...]] = (
    *modelled(
        "delegation.token.secret.key",
        "delegation.token.max.lifetime.ms",
        "delegation.token.expiry.time.ms",
        "delegation.token.expiry.check.interval.ms",
    ),
    *absent(
        "the older name of delegation.token.secret.key, which 3.9 was the last to know",
        "delegation.token.master.key",
    ),
)

_QUOTAS: Final[tuple[Overlay, ...]] = (
    *modelled(
        "leader.replication.throttled.rate",
        "follower.replication.throttled.rate",
        "replication.quota.window.num",
        "replication.quota.window.size.seconds",
        "quota.window.num",
        "quota.window.size.seconds",
    ),
    *absent(
        "quotas of clients stand under quotas:, each with its client.id or user",
        "producer_byte_rate",
        "consumer_byte_rate",
        "request_percentage",
        "controller_mutation_rate",
    ),
    *absent(
        "quotas of addresses stand under quotas:, each with its ip",
        "connection_creation_rate",
    ),
    *modelled(
        "controller.quota.window.num",
        "controller.quota.window.size.seconds",
    ),
    *absent(
        "moves between log directories have no throttle",
        "alter.log.dirs.replication.quota.window.num",
        "alter.log.dirs.replication.quota.window.size.seconds",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    ),
)

BROKER_SETTINGS: Final[tuple[Overlay | Setting, ...]] = (
    *_REPLICATION,
    *_SERVER,
    *_LOG,
    *_KRAFT,
    *_COORDINATORS,
    *_QUOTAS,
    *_AUTHORIZER,
    *_TOKENS,
    *RAFT_SETTINGS,
    *TIERED_SETTINGS,
    *ZOOKEEPER_SETTINGS,
    *BROKER_PROPOSALS,
)
"""Every broker setting."""
