"""A broker's settings for transactions. Durations are microseconds; Kafka's names in docstrings.

Source: ``TransactionLogConfig``, ``TransactionStateManagerConfig``, ``AddPartitionsToTxnConfig``.
"""

from dataclasses import dataclass

from sim.ids import TRANSACTIONS_TOPIC, NodeId
from sim.protocol.messages.cluster import NewTopic
from sim.units import HOUR, MINUTE, MS, SECOND, Bytes, Micros


@dataclass(frozen=True, slots=True)
class TransactionConfig:
    """Defaults are Kafka's."""

    version: int = 2
    """``transaction.version`` of the cluster: 2 (KIP-890), or 0."""
    timeout_us_max: Micros = 15 * MINUTE
    """``transaction.max.timeout.ms``."""
    abort_interval_us: Micros = 10 * SECOND
    """``transaction.abort.timed.out.transaction.cleanup.interval.ms``."""
    expiration_us: Micros = 7 * 24 * HOUR
    """``transactional.id.expiration.ms``."""
    expiration_interval_us: Micros = 1 * HOUR
    """``transaction.remove.expired.transaction.cleanup.interval.ms``."""
    reloads: bool = True
    """True if loading a partition replaces its present state (KAFKA-9307)."""
    completes_once: bool = True
    """True if one thread alone writes that a transaction is complete (KAFKA-10080)."""
    repeats_fences: bool = False
    """True if a retried fence takes another epoch (KAFKA-9666); not a setting."""
    bumps_before_end: bool = False
    """True if a fence of version 2 takes an epoch before its abort takes another (KAFKA-19367)."""
    marker_version: int = 0
    """Version of transactions that markers name (KIP-1228); 0 before 4.2; not a setting."""
    verifies: bool = True
    """``transaction.partition.verification.enable``."""
    retry_backoff_us: Micros = 20 * MS
    """``add.partitions.to.txn.retry.backoff.ms``."""
    retry_us_max: Micros = 100 * MS
    """``add.partitions.to.txn.retry.backoff.max.ms``."""
    request_timeout_us: Micros = 30 * SECOND
    """``request.timeout.ms`` of brokers."""
    state_partitions: int = 50
    """``transaction.state.log.num.partitions``."""
    state_replication_factor: int = 3
    """``transaction.state.log.replication.factor``."""
    state_min_in_sync: int = 2
    """``transaction.state.log.min.isr``."""
    state_segment_bytes: Bytes = 100 * 1024 * 1024
    """``transaction.state.log.segment.bytes``."""
    state_assignment: tuple[tuple[NodeId, ...], ...] = ()
    """Replicas of each of its partitions; empty: the controller places them."""

    state_inherited: tuple[tuple[str, str], ...] = ()
    """Settings that the topic inherits from the brokers, unless it has its own."""

    def state_topic(self) -> NewTopic:
        """The topic of transactional ids, for a broker's CreateTopics.

        Source: ``TransactionStateManager.transactionTopicConfigs``.
        """
        own = {
            "cleanup.policy": "compact",
            "compression.type": "uncompressed",
            "min.insync.replicas": str(self.state_min_in_sync),
            "segment.bytes": str(self.state_segment_bytes),
            "unclean.leader.election.enable": "false",
        }
        inherited = [(name, value) for name, value in self.state_inherited if name not in own]
        return NewTopic(
            TRANSACTIONS_TOPIC,
            self.state_partitions,
            self.state_replication_factor,
            (*own.items(), *inherited),
            self.state_assignment,
        )
