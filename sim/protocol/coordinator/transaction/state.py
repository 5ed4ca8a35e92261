"""One transactional id at its coordinator: its state, and the rules of its transitions.

A transition is prepared (the record to write, and a pending state that blocks others), written, and
only then made. With transaction version 2 each end of a transaction bumps the epoch in its Prepare
record (KIP-890), so that no batch of the old epoch is accepted after the marker.

Source: ``TransactionMetadata``, ``TransactionState``; KIP-98, KIP-360, KIP-890.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sim.error_codes import ErrorCode
from sim.ids import ProducerId, TopicPartition
from sim.protocol.coordinator.transaction.records import TransactionRecord, TransactionState
from sim.units import Micros

LARGEST_EPOCH = (1 << 15) - 1
"""Kafka's producer epochs are 16-bit numbers; a client never gets this one."""

_S = TransactionState

VALID_PREVIOUS: Mapping[TransactionState, tuple[TransactionState, ...]] = {
    _S.EMPTY: (_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT),
    _S.ONGOING: (_S.ONGOING, _S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT),
    _S.PREPARE_COMMIT: (_S.ONGOING,),
    _S.PREPARE_ABORT: (
        _S.ONGOING,
        _S.PREPARE_EPOCH_FENCE,
        _S.EMPTY,
        _S.COMPLETE_COMMIT,
        _S.COMPLETE_ABORT,
    ),
    _S.COMPLETE_COMMIT: (_S.PREPARE_COMMIT,),
    _S.COMPLETE_ABORT: (_S.PREPARE_ABORT,),
    _S.DEAD: (_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT),
    _S.PREPARE_EPOCH_FENCE: (_S.ONGOING,),
}
"""Previous states of each state; from Empty and Complete to PrepareAbort by KIP-890."""


def is_exhausted(epoch: int) -> bool:
    """True if a producer id has no further epoch for a client: one is kept to fence it with."""
    return epoch >= LARGEST_EPOCH - 1


@dataclass(slots=True)
class Transaction:
    """One transactional id. Changed only by its own methods."""

    transactional_id: str
    producer_id: ProducerId
    timeout_us: Micros
    last_update_ms: int
    producer_epoch: int = -1
    last_producer_epoch: int = -1
    previous_producer_id: ProducerId = -1
    next_producer_id: ProducerId = -1
    state: TransactionState = TransactionState.EMPTY
    partitions: dict[TopicPartition, None] = field(default_factory=dict)
    """In the order in which they were added."""
    start_ms: int = -1
    version: int = 0
    pending: TransactionState | None = None
    """State being entered; while there is one, others get CONCURRENT_TRANSACTIONS."""
    failed_fence: bool = False
    """True if a bump of the epoch may not have reached the log: it is not repeated."""

    @classmethod
    def restored(cls, record: TransactionRecord) -> "Transaction":
        """Restores a record's state."""
        found = cls(record.transactional_id, record.producer_id, record.timeout_us, 0)
        found.adopt(record)
        return found

    @property
    def record(self) -> TransactionRecord:
        """The present state as a record."""
        return TransactionRecord(
            self.transactional_id,
            self.producer_id,
            self.producer_epoch,
            self.timeout_us,
            self.state,
            tuple(self.partitions),
            self.last_update_ms,
            self.start_ms,
            self.previous_producer_id,
            self.next_producer_id,
            self.version,
            self.last_producer_epoch,
        )

    def is_known_producer(self, producer_id: ProducerId, epoch: int) -> bool:
        """True if a producer in InitProducerId is the present one, or was before.

        Source: ``TransactionCoordinator.isValidProducerId``.
        """
        return (
            self.producer_epoch < 0
            or producer_id == self.producer_id
            or (producer_id == self.previous_producer_id and is_exhausted(epoch))
        )

    # -- transitions -------------------------------------------------------------------------------

    @property
    def cannot_be_fenced(self) -> bool:
        """True if no epoch is left to fence its producer with: Kafka throws then.

        Source: ``TransactionMetadata.prepareFenceProducerEpoch``.
        """
        return self.producer_epoch >= LARGEST_EPOCH

    def prepare_fence(self, *, repeats: bool = False) -> TransactionRecord:
        """Bumps the epoch of an ongoing transaction's producer; never written as such.

        Args:
            repeats: True if another epoch is taken although that of a failed fence is still free,
                as before 2.7 (KAFKA-9666).
        """
        assert not self.cannot_be_fenced, f"{self.transactional_id} has no epoch left"
        epoch = self.producer_epoch
        if repeats or not self.failed_fence:
            epoch += 1
        return self._prepare(
            replace(self.record, state=_S.PREPARE_EPOCH_FENCE, producer_epoch=epoch)
        )

    def next_epoch(self, expected: int | None) -> tuple[int, int] | ErrorCode:
        """Epoch for an InitProducerId, and the one before; else PRODUCER_FENCED.

        ``expected`` is the epoch in the request, ``None`` for a new producer (KIP-360).
        """
        bumped = self.producer_epoch + 1
        if expected is None:
            return bumped, -1
        if self.producer_epoch < 0 or expected == self.producer_epoch:
            return bumped, self.producer_epoch
        if expected == self.last_producer_epoch:
            return self.producer_epoch, self.last_producer_epoch
        return ErrorCode.PRODUCER_FENCED

    def prepare_empty(
        self, epochs: tuple[int, int], timeout_us: Micros, now_ms: int
    ) -> TransactionRecord:
        """A producer begins with the epoch of :meth:`next_epoch`."""
        return self._prepare(
            replace(
                self.record,
                state=_S.EMPTY,
                producer_epoch=epochs[0],
                last_producer_epoch=epochs[1],
                timeout_us=timeout_us,
                partitions=(),
                start_ms=-1,
                last_update_ms=now_ms,
            )
        )

    def prepare_rotation(
        self, producer_id: ProducerId, timeout_us: Micros, now_ms: int, *, keep_last: bool
    ) -> TransactionRecord:
        """A producer begins with a new id and epoch 0: the old one's epochs are exhausted."""
        last = self.producer_epoch if keep_last else -1
        rotated = replace(self.record, producer_id=producer_id)
        return self._prepare(
            replace(
                rotated,
                state=_S.EMPTY,
                producer_epoch=0,
                last_producer_epoch=last,
                timeout_us=timeout_us,
                partitions=(),
                start_ms=-1,
                last_update_ms=now_ms,
            )
        )

    def prepare_add(
        self, added: tuple[TopicPartition, ...], now_ms: int, version: int
    ) -> TransactionRecord:
        """Adds partitions; the first ones begin the transaction."""
        begins = self.state is not _S.ONGOING
        return self._prepare(
            replace(
                self.record,
                state=_S.ONGOING,
                partitions=tuple(dict.fromkeys((*self.partitions, *added))),
                start_ms=now_ms if begins else self.start_ms,
                last_update_ms=now_ms,
                version=version,
            )
        )

    def prepare_end(
        self, state: TransactionState, now_ms: int, version: int, next_id: ProducerId
    ) -> TransactionRecord:
        """PrepareCommit or PrepareAbort; with version 2 under the next epoch."""
        epoch, last = self.producer_epoch, self.last_producer_epoch
        if version >= 2:
            last = epoch
            epoch = min(epoch + 1, LARGEST_EPOCH)
        return self._prepare(
            replace(
                self.record,
                state=state,
                producer_epoch=epoch,
                last_producer_epoch=last,
                next_producer_id=next_id,
                start_ms=self.start_ms if self.state is _S.ONGOING else now_ms,
                last_update_ms=now_ms,
                version=version,
            )
        )

    def prepare_complete(self, now_ms: int) -> TransactionRecord:
        """All markers are written; an exhausted id is replaced by the next one."""
        self.failed_fence = False
        commits = self.state is _S.PREPARE_COMMIT
        rotates = self.version >= 2 and self.next_producer_id >= 0
        return self._prepare(
            replace(
                self.record,
                state=_S.COMPLETE_COMMIT if commits else _S.COMPLETE_ABORT,
                producer_id=self.next_producer_id if rotates else self.producer_id,
                producer_epoch=0 if rotates else self.producer_epoch,
                next_producer_id=-1,
                partitions=(),
                last_update_ms=now_ms,
            )
        )

    def prepare_dead(self) -> TransactionRecord:
        """The id has expired."""
        return self._prepare(replace(self.record, state=_S.DEAD, partitions=()))

    def abandon_fence(self, epoch: int) -> None:
        """Keeps the bump of :meth:`prepare_fence`; the abort can be prepared."""
        self.pending = None
        self.producer_epoch = epoch
        self.last_producer_epoch = -1

    def _prepare(self, record: TransactionRecord) -> TransactionRecord:
        assert self.pending is None, f"{self.transactional_id} is on its way to {self.pending}"
        allowed = self.state in VALID_PREVIOUS[record.state]
        assert allowed, f"{self.transactional_id}: {record.state} cannot follow {self.state}"
        self.pending = record.state
        return replace(record, previous_producer_id=self.producer_id)

    # -- records -----------------------------------------------------------------------------------

    def complete(self, record: TransactionRecord) -> None:
        """The record is committed: applies it."""
        assert self.pending is record.state, f"{record.state} is not what was prepared"
        self.pending = None
        self.adopt(record)

    def adopt(self, record: TransactionRecord) -> None:
        """Applies a record."""
        self.producer_id = record.producer_id
        self.producer_epoch = record.producer_epoch
        self.last_producer_epoch = record.last_producer_epoch
        self.previous_producer_id = record.previous_producer_id
        self.next_producer_id = record.next_producer_id
        self.timeout_us = record.timeout_us
        self.state = record.state
        self.partitions = dict.fromkeys(record.partitions)
        self.start_ms = record.start_ms
        self.last_update_ms = record.last_update_ms
        self.version = record.version
