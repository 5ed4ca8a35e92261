"""Ports that machines require: batches, and a replica's log.

Two logs satisfy :class:`ReplicaLog`: ``ListLog`` in the tests, for speed and search, and
``sim.log.partition.log.PartitionLog``, with real bytes. One contract test runs on both.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, Offset, ProducerId
from sim.units import Bytes


class Batch(Protocol):
    """A record batch as used by machines: its header, never its records.

    Immutable; shared by reference between nodes. ``last_offset`` is inclusive.
    """

    @property
    def base_offset(self) -> Offset:
        """Offset of the first record."""

    @property
    def last_offset(self) -> Offset:
        """Offset of the last record, inclusive."""

    @property
    def leader_epoch(self) -> LeaderEpoch:
        """Epoch of the leader that appended it; -1 before that."""

    @property
    def producer_id(self) -> ProducerId:
        """Idempotent producer; -1 for none."""

    @property
    def producer_epoch(self) -> int:
        """Its epoch; -1 for none."""

    @property
    def base_sequence(self) -> int:
        """Sequence of the first record; -1 for none."""

    @property
    def record_count(self) -> int:
        """Records in it."""

    @property
    def max_timestamp_ms(self) -> int:
        """Largest timestamp, milliseconds since 1970."""

    @property
    def size_bytes(self) -> Bytes:
        """Encoded size."""

    @property
    def crc(self) -> int:
        """CRC-32C, as the header has it."""

    @property
    def is_transactional(self) -> bool:
        """True if it belongs to a transaction, as data or as its marker."""

    @property
    def is_control(self) -> bool:
        """True if it holds control records, which clients never see."""

    @property
    def is_abort_marker(self) -> bool:
        """True if it is the marker that aborts its producer's transaction."""

    @property
    def producer_index(self) -> int:
        """Index of the simulated producer that made the batch; -1 if none did."""

    @property
    def first_record(self) -> int:
        """That producer's number, in this partition, of the batch's first record; -1 if none."""

    def valid(self) -> bool:
        """True if its bytes have the checksum of its header."""

    def offset_runs(self) -> Sequence[tuple[Offset, Offset]]:
        """First and last offsets of records without a gap: several after compaction."""


class EpochEnd(NamedTuple):
    """End of a leader epoch in a log; ``offset`` is exclusive. (-1, -1) when undefined."""

    epoch: LeaderEpoch
    offset: Offset


NO_EPOCH_END = EpochEnd(-1, -1)
"""Result for an epoch that the log does not know."""


class Appended(NamedTuple):
    """Outcome of a leader's append.

    ``error`` other than NONE: nothing was written. ``duplicate``: an idempotent retry of one of the
    producer's last five batches; the offsets are those of the original and nothing was written.
    ``flush_due``: ``flush.messages`` requires an fsync before anything else happens.
    """

    error: ErrorCode
    base_offset: Offset
    last_offset: Offset
    duplicate: bool
    flush_due: bool
    batch: Batch | None
    """The batch as written, with base offset and leader epoch stamped; ``None`` if nothing was."""


NO_GUARD = 0
"""Verification guard of an append without verification; it suffices within an open transaction."""

UNCHECKED_GUARD = -1
"""``transaction.partition.verification.enable`` is false: a client's append needs no guard."""


def by_coordinator(guard: int) -> int:
    """The same guard for a coordinator's own append, whose sequences are not checked."""
    return -3 - guard


class TransactionView(Protocol):
    """The transactions of one log, for its leader and for readers of committed data."""

    @property
    def has_unstable(self) -> bool:
        """True if a transaction may keep the last stable offset below the high watermark."""

    def last_stable_offset(self, high_watermark: Offset) -> Offset:
        """Offset below which every transaction is completed, with its marker committed."""

    def verification_guard(
        self, producer: ProducerId, epoch: int, sequence: int, now_ms: int, *, bumps: bool
    ) -> int:
        """Verification guard with which a transaction's batch must be appended.

        NO_GUARD: no verification is needed, the transaction is open here. ``sequence`` is that of
        the batch's first record; ``bumps``: each transaction has an epoch of its own (KIP-890).
        """

    def aborted_between(self, start: Offset, end: Offset) -> tuple[tuple[ProducerId, Offset], ...]:
        """Aborted transactions with data in [start, end): producer and first offset."""


class ReplicaLog(Protocol):
    """One replica's log: synchronous, as in Kafka; its time is paid by the process."""

    @property
    def transactions(self) -> TransactionView:
        """Transactions of the log."""

    @property
    def log_start_offset(self) -> Offset:
        """First readable offset."""

    @property
    def log_end_offset(self) -> Offset:
        """Log end offset: that of the next record."""

    @property
    def latest_epoch(self) -> LeaderEpoch:
        """Epoch of the last entry of the epoch cache; -1 when it is empty."""

    @property
    def is_tiered(self) -> bool:
        """True if it has a remote log (``remote.storage.enable``)."""

    @property
    def local_log_start_offset(self) -> Offset:
        """First offset of the local log: what is below is in the remote log alone."""

    @property
    def highest_remote_offset(self) -> Offset:
        """Last offset in the remote log, as far as this broker knows; -1 for none."""

    @property
    def epochs(self) -> Sequence[tuple[LeaderEpoch, Offset]]:
        """Entries of the epoch cache: (epoch, start offset), oldest first."""

    def begin_epoch(self, epoch: LeaderEpoch) -> None:
        """Begins a leader epoch at the log end offset (KIP-101)."""

    def end_offset_for_epoch(self, epoch: LeaderEpoch) -> EpochEnd:
        """Largest epoch not above the given one and the offset after its last record (KIP-279)."""

    def append_as_leader(
        self, batch: Batch, leader_epoch: LeaderEpoch, now_ms: int, guard: int = NO_GUARD
    ) -> Appended:
        """Validates (size, producer state), assigns offsets from the log end, and writes.

        ``guard``: verification guard of a transaction's batch.
        """

    def append_marker(
        self,
        producer: ProducerId,
        producer_epoch: int,
        coordinator_epoch: LeaderEpoch,
        leader_epoch: LeaderEpoch,
        now_ms: int,
        *,
        committed: bool,
        version: int = 0,
    ) -> Appended:
        """Appends the marker that ends a producer's transaction of that version."""

    def append_as_follower(self, batches: Sequence[Batch]) -> bool:
        """Writes batches exactly as given, at their own offsets.

        Returns:
            True if ``flush.messages`` requires an fsync now.

        Raises:
            AssertionError: If a batch starts below the log end offset, except before KIP-101.
        """

    def read(self, start: Offset, end: Offset, max_bytes: Bytes) -> tuple[Batch, ...]:
        """Whole batches from the one that holds ``start``, while they end below ``end``.

        At least one batch is returned when there is one, however large.
        """

    def offset_for_timestamp(self, timestamp_ms: int) -> Offset:
        """First offset of a record at or after the timestamp; -1 if there is none."""

    def bytes_between(self, start: Offset, end: Offset) -> Bytes:
        """Approximate bytes that a read of [start, end) would return."""

    def raise_log_start(self, offset: Offset) -> bool:
        """Raises the log start offset; returns true if it was lower."""

    def truncate_to(self, offset: Offset) -> None:
        """Drops everything at and above the offset; epochs and producer state follow.

        Raises:
            CorruptRecord: If a header on the way is damaged; the log end has moved down to it.
        """

    def truncate_fully_and_start_at(self, offset: Offset) -> None:
        """Drops everything; the next record gets the offset."""

    def restart_behind_remote(
        self,
        offset: Offset,
        log_start: Offset,
        epochs: Sequence[tuple[LeaderEpoch, Offset]],
        snapshot: bytes,
    ) -> None:
        """Drops everything local; continues at the offset with the state of the remote log."""
