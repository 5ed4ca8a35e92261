"""Loading of a coordinator's state from its internal topic, and writes to it.

Source: ``CoordinatorLoaderImpl``, ``TransactionStateManager.loadTransactionMetadata``,
``CoordinatorPartitionWriter`` (4.1).
"""

from abc import abstractmethod
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, NamedTuple

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.log.partition.log import PartitionLog
from sim.nodes.broker.replicas import Replicas
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.process.dispatcher import TRY_AGAIN_US, Dispatcher, Performer
from sim.nodes.process.port import Port
from sim.nodes.storage.log_dirs import Storage
from sim.protocol.broker.replication.events import (
    AppendInternal,
    InternalAppended,
    InternalVerified,
    LeadershipApplied,
    VerifyInternal,
)
from sim.protocol.coordinator.log import (
    AppendRecords,
    PartitionElected,
    PartitionLoading,
    PartitionResigned,
    RecordsAppended,
    TransactionVerified,
    VerifyTransaction,
)
from sim.records import consumer_offsets, share_group_state, transaction_state
from sim.units import timestamp_ms
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import RecordBatch


class InternalWriter:
    """A part that appends to an internal topic."""

    @abstractmethod
    def appended(self, token: int, error: ErrorCode) -> None:
        """Outcome of an append."""

    @abstractmethod
    def verified(self, token: int, error: ErrorCode, guard: int) -> None:
        """Outcome of a verification."""


class InternalAppends:
    """The internal appends of one broker process; each start of the process has its own.

    Args:
        replicas: Its replicas.
    """

    def __init__(self, replicas: Replicas) -> None:
        self._replicas = replicas
        self._writers: dict[int, tuple[InternalWriter, int]] = {}
        self._tokens = 0
        self.performers: dict[type, Performer] = {
            InternalAppended: self._appended,
            InternalVerified: self._verified,
        }
        """Performers of the replica manager's effects for internal appends."""

    def append(
        self,
        writer: InternalWriter,
        effect: AppendRecords,
        partition: TopicPartition,
        batch: RecordBatch,
    ) -> None:
        """Appends to a partition that this broker leads; the writer gets the outcome."""
        token = self._token(writer, effect.token)
        event = AppendInternal(
            token, partition, batch, effect.timeout_us, effect.guard, effect.follows_watermark
        )
        self._replicas.deliver(event)

    def verify(
        self, writer: InternalWriter, effect: VerifyTransaction, partition: TopicPartition
    ) -> None:
        """Verifies a transaction before records of it are appended; the writer gets the outcome."""
        token = self._token(writer, effect.token)
        self._replicas.deliver(VerifyInternal(token, partition, effect.transaction))

    def _token(self, writer: InternalWriter, token: int) -> int:
        self._tokens += 1
        self._writers[self._tokens] = writer, token
        return self._tokens

    def _appended(self, _port: Port, effect: InternalAppended) -> None:
        writer, token = self._writers[effect.token]
        if effect.final:
            del self._writers[effect.token]
        writer.appended(token, effect.error)

    def _verified(self, _port: Port, effect: InternalVerified) -> None:
        writer, token = self._writers.pop(effect.token)
        writer.verified(token, effect.error, effect.guard)


class Codec(NamedTuple):
    """Codec of a coordinator's records."""

    batch_for: Callable[[Any, int], RecordBatch]
    """Encodes records, stamped with milliseconds since 1970."""
    records_in: Callable[[Iterable[RecordBatch]], tuple[Any, ...]]
    """Decodes the records of batches."""
    transactional_batch_for: Callable[[Any, int, int, int], RecordBatch] | None = None
    """As ``batch_for``, for a producer's id and epoch."""


def offsets_codec(form: consumer_offsets.OffsetsForm) -> Codec:
    """Codec of a group coordinator's records, in the versions of its release."""
    return Codec(
        partial(consumer_offsets.batch_for, form=form),
        consumer_offsets.records_in,
        partial(consumer_offsets.transactional_batch_for, form=form),
    )


TRANSACTIONS_CODEC = Codec(transaction_state.batch_for, transaction_state.records_in)
SHARE_STATES_CODEC = Codec(share_group_state.batch_for, share_group_state.records_in)


class CoordinatorStorage(InternalWriter):
    """One coordinator on one broker: loads its partitions, and appends to them.

    Args:
        process: The broker.
        storage: Its logs.
        cpu: Costs of parsing.
        appends: Appends to partitions that it leads.
        port: The coordinator.
        topic: Its internal topic.
        codec: Codec of its records.
    """

    def __init__(
        self,
        process: Dispatcher,
        storage: Storage,
        cpu: CpuSpec,
        appends: InternalAppends,
        port: Port,
        topic: str,
        codec: Codec,
    ) -> None:
        self.topic = topic
        self.port = port
        self._process = process
        self._storage = storage
        self._cpu = cpu
        self._appends = appends
        self._batch_for = codec.batch_for
        self._records_in = codec.records_in
        self._transactional_batch_for = codec.transactional_batch_for

    def leadership_applied(self, effect: LeadershipApplied) -> None:
        """The broker became or ceased to be leader of a partition of the topic."""
        process, partition = self._process, effect.partition
        if not effect.is_leader:
            process.deliver(self.port, PartitionResigned(partition.partition))
            return
        loading = PartitionLoading(partition.partition, effect.leader_epoch, effect.takes_over)
        process.deliver(self.port, loading)
        self._load(partition, effect.leader_epoch)

    def _load(self, partition: TopicPartition, epoch: int) -> None:
        """Reads the partition, from the disk what is not in the page cache, then parses it."""
        process, storage = self._process, self._storage
        log = storage.manager.get(partition)
        if log is None:
            return  # its directory has failed: the resignation follows
        read_at = storage.read_all(partition)
        if read_at is None:
            process.call_at(process.kernel.time + TRY_AGAIN_US, self._load, partition, epoch)
            return
        parse_us = self._cpu.copy_us(log.bytes_between(log.log_start_offset, log.log_end_offset))
        process.call_at(read_at + parse_us, self._loaded, partition, epoch)

    def _loaded(self, partition: TopicPartition, epoch: int) -> None:
        log = self._storage.manager.get(partition)
        if log is None:
            return
        try:
            records = self._records_in(log.batches(log.log_start_offset))
            read = PartitionElected(partition.partition, epoch, records)
        except MalformedBytes:
            records = self._readable_records(log)
            read = PartitionElected(partition.partition, epoch, records, is_whole=False)
        self._process.deliver(self.port, read)

    def _readable_records(self, log: PartitionLog) -> tuple[Any, ...]:
        """Records of the batches before the first unreadable one."""
        found: list[Any] = []
        try:
            for batch in log.batches(log.log_start_offset):
                found += self._records_in((batch,))
        except MalformedBytes:
            pass
        return tuple(found)

    def append(self, effect: AppendRecords) -> None:
        """Appends with acks=all; :meth:`appended` gets the outcome."""
        stamp = timestamp_ms(self._process.now())
        partition = TopicPartition(self.topic, effect.partition)
        transaction = effect.transaction
        if transaction is None:
            batch = self._batch_for(effect.records, stamp)
        else:
            assert self._transactional_batch_for is not None, f"{self.topic} has no transactions"
            batch = self._transactional_batch_for(
                effect.records, stamp, transaction.producer_id, transaction.producer_epoch
            )
        self._appends.append(self, effect, partition, batch)

    def verify(self, effect: VerifyTransaction) -> None:
        """Verifies a transaction; :meth:`verified` gets the outcome."""
        partition = TopicPartition(self.topic, effect.partition)
        self._appends.verify(self, effect, partition)

    def verified(self, token: int, error: ErrorCode, guard: int) -> None:
        """Outcome of a verification."""
        self._process.deliver(self.port, TransactionVerified(token, error, guard))

    def appended(self, token: int, error: ErrorCode) -> None:
        """Outcome of an append."""
        self._process.deliver(self.port, RecordsAppended(token, error))
