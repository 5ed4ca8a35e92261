"""Transactional ids of one broker, and the log that keeps them.

A broker serves the partitions of ``__transaction_state`` that it leads. A change is written with
acks=all, and made when it is committed. Failed ones are rolled back; pending ones of a lost
partition are answered NOT_COORDINATOR, and its next coordinator finds the written ones.

Source: ``TransactionStateManager``.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, NodeId, ProducerId
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.coordinator.log import AppendRecords, PartitionElected, error_for_client
from sim.protocol.coordinator.partitions import CoordinatorPartitions
from sim.protocol.coordinator.transaction.config import TransactionConfig
from sim.protocol.coordinator.transaction.records import (
    TransactionEffect,
    TransactionLogRecord,
    TransactionRecord,
    TransactionState,
    TransactionTombstone,
)
from sim.protocol.coordinator.transaction.state import Transaction
from sim.protocol.effects import Reply
from sim.protocol.messages.base import Response
from sim.trace.rows.clients import Transactions
from sim.units import Micros

Outcome: TypeAlias = Callable[[ErrorCode, Micros], None]
"""Callback of a change: committed (NONE) or failed."""

_DECIDED: Final = (TransactionState.PREPARE_COMMIT, TransactionState.PREPARE_ABORT)
"""States in which markers are still to be written."""


class _Append(NamedTuple):
    """A change that is being written."""

    transaction: Transaction
    record: TransactionRecord
    partition: int
    epoch: LeaderEpoch
    reason: str
    outcome: Outcome
    stays_pending: bool


class TransactionStore:
    """Transactional ids of one broker, and the effects of one decision."""

    def __init__(self, broker: NodeId, config: TransactionConfig) -> None:
        self.config = config
        self.out: list[TransactionEffect] = []
        self.transactions: dict[str, Transaction] = {}
        self._broker = broker
        self._homes = CoordinatorPartitions()
        self._appends: dict[int, _Append] = {}
        self._token = 0

    def take(self) -> list[TransactionEffect]:
        """Effects since the last call, in order."""
        taken, self.out = self.out, []
        return taken

    def reply(self, token: int, response: Response) -> None:
        """Answers a request."""
        self.out.append(Reply(token, response))

    # -- views -------------------------------------------------------------------------------------

    def partition_of(self, transactional_id: str) -> int:
        """Partition of an id in the log; hashed as groups are."""
        return partition_for_group(transactional_id, self.config.state_partitions)

    def refusal(self, transactional_id: str) -> ErrorCode:
        """Error for requests about the id; NONE if it is served here."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        return self._homes.error(self.partition_of(transactional_id))

    def epoch_of(self, transactional_id: str) -> LeaderEpoch:
        """Coordinator epoch under which the id is served; -1 if it is not."""
        return self._homes.epoch(self.partition_of(transactional_id))

    def active_partitions(self) -> tuple[int, ...]:
        """Partitions of the log that are loaded here, sorted."""
        return self._homes.active()

    def create(
        self, transactional_id: str, producer_id: ProducerId, timeout_us: Micros, now_ms: int
    ) -> Transaction:
        """Creates a transaction of a new id; nothing is written yet."""
        made = Transaction(transactional_id, producer_id, timeout_us, now_ms)
        return self.transactions.setdefault(transactional_id, made)

    # -- writing -----------------------------------------------------------------------------------

    def append(
        self,
        transaction: Transaction,
        record: TransactionRecord,
        reason: str,
        outcome: Outcome,
        *,
        stays_pending: bool = False,
    ) -> None:
        """Writes a prepared record; ``outcome`` is called once.

        Args:
            transaction: The transaction that changes.
            record: Its prepared record.
            reason: For the trace.
            outcome: Called with the error for clients.
            stays_pending: COORDINATOR_NOT_AVAILABLE does not roll it back: it is written again.
        """
        partition = self.partition_of(transaction.transactional_id)
        epoch = self._homes.epoch(partition)
        self._token += 1
        self._appends[self._token] = _Append(
            transaction, record, partition, epoch, reason, outcome, stays_pending
        )
        written: TransactionLogRecord = record
        if record.state is TransactionState.DEAD:
            written = TransactionTombstone(record.transactional_id)
        self.out.append(AppendRecords(partition, self._token, (written,), record.timeout_us))

    def appended(self, token: int, error: ErrorCode, now: Micros) -> None:
        """Outcome of an append; one for an unloaded partition is ignored."""
        entry = self._appends.pop(token, None)
        if entry is None:
            return
        client_error = error_for_client(error)
        transaction = entry.transaction
        if client_error is ErrorCode.NONE:
            expected = transaction.pending is entry.record.state
            if not expected and not self.config.completes_once:
                # An IllegalStateException in Kafka: memory stays as it is, and the log has it.
                self._note(entry.record, entry.epoch, "written again")
                return
            transaction.complete(entry.record)
            if entry.record.state is TransactionState.DEAD:
                self.transactions.pop(transaction.transactional_id, None)
            self._note(entry.record, entry.epoch, entry.reason)
        elif not (entry.stays_pending and client_error is ErrorCode.COORDINATOR_NOT_AVAILABLE):
            transaction.pending = None
        entry.outcome(client_error, now)

    def _note(self, record: TransactionRecord, epoch: LeaderEpoch, reason: str) -> None:
        self.out.append(
            Transactions.row(
                self._broker,
                transactional_id=record.transactional_id,
                producer_id=record.producer_id,
                producer_epoch=record.producer_epoch,
                state=record.state.value,
                partitions=len(record.partitions),
                coordinator_epoch=epoch,
                reason=reason,
            )
        )

    # -- partitions of the log ---------------------------------------------------------------------

    def serves(self, partition: int) -> bool:
        """True if the partition is loaded here."""
        return self._homes.epoch(partition) >= 0

    def load(self, partition: int, epoch: LeaderEpoch, *, takes_over: bool = False) -> None:
        """The broker leads the partition and loads it.

        A coordinator that still serves the partition, because it did not learn of its resignation,
        cannot replace its ids by loaded ones, and the load never ends (KAFKA-9307).

        Source: ``TransactionStateManager.addLoadedTransactionsToCache`` (to 2.4).
        """
        self._homes.load(partition, epoch, anyway=takes_over)

    def elected(self, event: PartitionElected) -> list[Transaction]:
        """The partition is loaded: returns the ids whose markers are still to be written.

        Of a damaged one that is the part before the damage, as if that were all.

        Source: ``TransactionStateManager.loadTransactionMetadata``.
        """
        if not self._homes.elect(event):
            return []
        found: dict[str, Transaction] = {}
        for record in event.records:
            found.pop(record.transactional_id, None)
            if isinstance(record, TransactionRecord):
                found[record.transactional_id] = Transaction.restored(record)
        self.transactions.update(found)
        for transaction in found.values():
            # The former coordinator may have died before its row, or have had one that is lost.
            if transaction.state is TransactionState.ONGOING or transaction.state in _DECIDED:
                self._note(transaction.record, event.epoch, "loaded")
        return [t for t in found.values() if t.state in _DECIDED]

    def resigned(self, partition: int, now: Micros) -> None:
        """The partition has another leader: drops its ids, and fails pending changes."""
        self._homes.resign(partition)
        lost = [name for name in self.transactions if self.partition_of(name) == partition]
        for name in lost:
            del self.transactions[name]
        failed = [token for token, entry in self._appends.items() if entry.partition == partition]
        for token in failed:
            self._appends.pop(token).outcome(ErrorCode.NOT_COORDINATOR, now)
