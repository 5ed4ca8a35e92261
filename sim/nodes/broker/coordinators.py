"""Between a coordinator and the log partitions that hold its state.

Source: ``CoordinatorLoaderImpl``, ``TransactionStateManager.loadTransactionMetadata``.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.log.partition.log import PartitionLog
from sim.nodes.process.base import TRY_AGAIN_US
from sim.nodes.process.port import Port
from sim.protocol.broker.replication.events import LeadershipApplied
from sim.protocol.coordinator.log import (
    AppendRecords,
    PartitionElected,
    PartitionLoading,
    PartitionResigned,
    RecordsAppended,
    TransactionVerified,
    VerifyTransaction,
)
from sim.units import timestamp_ms
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import RecordBatch

if TYPE_CHECKING:
    from sim.nodes.broker.node import BrokerNode


class CoordinatorShell:
    """One coordinator on one broker: reads its partitions for it, and writes to them.

    Args:
        node: The broker.
        port: The coordinator.
        topic: Its internal topic.
        batch_for: The bytes of records, stamped with milliseconds since 1970.
        records_in: The records that batches hold.
        transactional_batch_for: As ``batch_for``, for a producer's id and epoch.
    """

    def __init__(
        self,
        node: "BrokerNode",
        port: Port,
        topic: str,
        batch_for: Callable[[Any, int], RecordBatch],
        records_in: Callable[[Iterable[RecordBatch]], tuple[Any, ...]],
        transactional_batch_for: Callable[[Any, int, int, int], RecordBatch] | None = None,
    ) -> None:
        self.topic = topic
        self.port = port
        self._node = node
        self._batch_for = batch_for
        self._records_in = records_in
        self._transactional_batch_for = transactional_batch_for

    def leadership_applied(self, effect: LeadershipApplied) -> None:
        """The broker began or ceased to lead a partition of the topic."""
        node, partition = self._node, effect.partition
        if not effect.is_leader:
            node.deliver(self.port, PartitionResigned(partition.partition))
            return
        loading = PartitionLoading(partition.partition, effect.leader_epoch, effect.takes_over)
        node.deliver(self.port, loading)
        self._load(partition, effect.leader_epoch)

    def _load(self, partition: TopicPartition, epoch: int) -> None:
        """Read the partition, from the disk what memory does not hold; then parse it."""
        node = self._node
        log = node.storage.manager.get(partition)
        if log is None:
            return  # its directory has failed: the resignation follows
        read_at = node.storage.read_all(partition)
        if read_at is None:
            node.call_at(node.kernel.time + TRY_AGAIN_US, self._load, partition, epoch)
            return
        parse_us = node.copy_us(log.bytes_between(log.log_start_offset, log.log_end_offset))
        node.call_at(read_at + parse_us, self._loaded, partition, epoch)

    def _loaded(self, partition: TopicPartition, epoch: int) -> None:
        log = self._node.storage.manager.get(partition)
        if log is None:
            return
        try:
            records = self._records_in(log.batches(log.log_start_offset))
            read = PartitionElected(partition.partition, epoch, records)
        except MalformedBytes:
            records = self._in_front_of_damage(log)
            read = PartitionElected(partition.partition, epoch, records, is_whole=False)
        self._node.deliver(self.port, read)

    def _in_front_of_damage(self, log: PartitionLog) -> tuple[Any, ...]:
        """The records of the batches that can be read before one that cannot."""
        found: list[Any] = []
        try:
            for batch in log.batches(log.log_start_offset):
                found += self._records_in((batch,))
        except MalformedBytes:
            pass
        return tuple(found)

    def append(self, effect: AppendRecords) -> None:
        """Write with acks=all; :meth:`appended` brings the outcome."""
        node, stamp = self._node, timestamp_ms(self._node.now())
        partition = TopicPartition(self.topic, effect.partition)
        transaction = effect.transaction
        if transaction is None:
            batch = self._batch_for(effect.records, stamp)
        else:
            assert self._transactional_batch_for is not None, f"{self.topic} has no transactions"
            batch = self._transactional_batch_for(
                effect.records, stamp, transaction.producer_id, transaction.producer_epoch
            )
        node.append_internal(self, effect, partition, batch)

    def verify(self, effect: VerifyTransaction) -> None:
        """Ask for a transaction; :meth:`verified` brings the outcome."""
        partition = TopicPartition(self.topic, effect.partition)
        self._node.verify_internal(self, effect, partition)

    def verified(self, token: int, error: ErrorCode, guard: int) -> None:
        """The outcome of a verification."""
        self._node.deliver(self.port, TransactionVerified(token, error, guard))

    def appended(self, token: int, error: ErrorCode) -> None:
        """The outcome of an append."""
        self._node.deliver(self.port, RecordsAppended(token, error))
