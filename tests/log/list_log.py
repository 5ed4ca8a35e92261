"""The log's port in memory: a list of batches, for tests of machines and for search.

Same answers as ``PartitionLog``, without bytes: sizes are checked, checksums and segments are not.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sim.error_codes import ErrorCode
from sim.protocol.ports import (
    NO_EPOCH_END,
    NO_GUARD,
    UNCHECKED_GUARD,
    Appended,
    Batch,
    EpochEnd,
    by_coordinator,
)
from sim.wire.control_batch import Marker, end_transaction_marker, read_marker


@dataclass(frozen=True)
class ListBatch:
    """A batch that is only its header."""

    record_count: int = 1
    size_bytes: int = 100
    base_offset: int = 0
    leader_epoch: int = -1
    producer_id: int = -1
    producer_epoch: int = -1
    base_sequence: int = -1
    max_timestamp_ms: int = 0
    crc: int = 0
    is_transactional: bool = False
    is_control: bool = False
    producer_index: int = -1
    first_record: int = -1

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.record_count - 1

    def offset_runs(self) -> list[tuple[int, int]]:
        return [(self.base_offset, self.last_offset)]


@dataclass
class _Producer:
    epoch: int
    batches: deque = field(default_factory=lambda: deque(maxlen=5))


class ListTransactions:
    """Transactions by looking at every batch, every time."""

    def __init__(self, log: "ListLog") -> None:
        self._log = log
        self.guards: dict[int, int] = {}
        self._given = 0
        self._lowest: dict[int, tuple[int, int]] = {}

    def all(self) -> list[tuple[int, int, int | None, bool]]:
        """Producer, first offset, offset of the marker or None, whether it aborts."""
        found: list = []
        begun: dict[int, int] = {}
        for batch in self._log.batches:
            if not batch.is_transactional:
                continue
            if not batch.is_control:
                begun.setdefault(batch.producer_id, batch.base_offset)
            elif batch.producer_id in begun:
                aborts = not read_marker(batch).commit
                first = begun.pop(batch.producer_id)
                found.append((batch.producer_id, first, batch.base_offset, aborts))
        return found + [(producer, first, None, False) for producer, first in begun.items()]

    @property
    def has_unstable(self) -> bool:
        return bool(self.all())

    def last_stable_offset(self, high_watermark: int) -> int:
        unstable = [f for _, f, end, _ in self.all() if end is None or end >= high_watermark]
        return min([high_watermark, *unstable])

    def is_ongoing(self, producer: int, epoch: int) -> bool:
        epochs = [b.producer_epoch for b in self._log.batches if b.producer_id == producer]
        is_open = any(p == producer and end is None for p, _, end, _ in self.all())
        return is_open and epochs[-1] == epoch

    def verification_guard(
        self, producer: int, epoch: int, sequence: int, now_ms: int, *, bumps: bool
    ) -> int:
        if self.is_ongoing(producer, epoch):
            return NO_GUARD
        if producer not in self.guards:
            self._given += 1
            self.guards[producer] = self._given
            self._lowest[self._given] = epoch, sequence
        guard = self.guards[producer]
        known, lowest = self._lowest[guard]
        if epoch > known:
            self._lowest[guard] = epoch, sequence
        elif epoch == known:
            self._lowest[guard] = epoch, min(lowest, sequence)
        return guard

    def is_beyond(self, producer: int, sequence: int) -> bool:
        """True if a batch with a lower sequence was verified, and is not there yet."""
        guard = self.guards.get(producer)
        return guard is not None and sequence > self._lowest[guard][1]

    def aborted_between(self, start: int, end: int) -> tuple:
        ended = sorted((m, p, f) for p, f, m, aborts in self.all() if aborts)
        return tuple((p, f) for m, p, f in ended if m >= start and f < end)


class ListLog:
    """One replica's log as a list."""

    def __init__(
        self, *, max_message_bytes: int = 1_048_588, flush_messages: int = 1 << 62
    ) -> None:
        self.batches: list = []
        self.transactions = ListTransactions(self)
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.recovery_point = 0
        self.epochs: list[tuple[int, int]] = []
        self._producers: dict[int, _Producer] = {}
        self._max_message_bytes = max_message_bytes
        self._flush_messages = flush_messages

    is_tiered = False
    highest_remote_offset = -1

    @property
    def local_log_start_offset(self) -> int:
        return self.log_start_offset

    @property
    def latest_epoch(self) -> int:
        return self.epochs[-1][0] if self.epochs else -1

    def begin_epoch(self, epoch: int) -> None:
        self._assign(epoch, self.log_end_offset)

    def end_offset_for_epoch(self, epoch: int) -> EpochEnd:
        if epoch < 0 or epoch > self.latest_epoch:
            return NO_EPOCH_END
        if epoch == self.latest_epoch:
            return EpochEnd(epoch, self.log_end_offset)
        below = [e for e, _ in self.epochs if e <= epoch]
        above = next(start for e, start in self.epochs if e > epoch)
        return EpochEnd(below[-1] if below else epoch, above)

    def append_marker(
        self,
        producer: int,
        producer_epoch: int,
        coordinator_epoch: int,
        leader_epoch: int,
        now_ms: int,
        *,
        committed: bool,
        version: int = 0,
    ) -> Appended:
        marks = [b for b in self.batches if b.producer_id == producer]
        if marks and producer_epoch < marks[-1].producer_epoch:
            return self._no(ErrorCode.INVALID_PRODUCER_EPOCH)
        seen = [read_marker(b).coordinator_epoch for b in marks if b.is_control]
        if seen and coordinator_epoch < seen[-1]:
            return self._no(ErrorCode.TRANSACTION_COORDINATOR_FENCED)
        said = Marker(committed, producer, producer_epoch, coordinator_epoch)
        return self.append_as_leader(end_transaction_marker(said, now_ms), leader_epoch, now_ms)

    def append_as_leader(
        self, batch: Batch, leader_epoch: int, now_ms: int, guard: int = NO_GUARD
    ) -> Appended:
        if batch.size_bytes > self._max_message_bytes:
            return self._no(ErrorCode.MESSAGE_TOO_LARGE)
        if batch.max_timestamp_ms - now_ms > 3_600_000:
            return self._no(ErrorCode.INVALID_TIMESTAMP)
        self._assign(leader_epoch, self.log_end_offset)
        if batch.producer_id >= 0 and not batch.is_control:
            verdict = self._check(batch)
            by_client = guard > by_coordinator(UNCHECKED_GUARD)
            if not by_client:
                guard = by_coordinator(guard)
                fenced = verdict is ErrorCode.INVALID_PRODUCER_EPOCH
                verdict = verdict if fenced else None
            if not isinstance(verdict, tuple):
                refusal = self._guarded(batch, guard)
                verdict = refusal or verdict if batch.is_transactional else verdict or refusal
            if verdict is None and batch.is_transactional and by_client:
                late = self.transactions.is_beyond(batch.producer_id, batch.base_sequence)
                verdict = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER if late else None
            if isinstance(verdict, ErrorCode):
                return self._no(verdict)
            if verdict is not None:
                return Appended(ErrorCode.NONE, verdict[2], verdict[3], True, False, None)
        stamped = self._stamp(batch, leader_epoch)
        self._write(stamped)
        return Appended(
            ErrorCode.NONE, stamped.base_offset, stamped.last_offset, False, self._due(), stamped
        )

    def append_as_follower(self, batches: Sequence[Batch]) -> bool:
        for batch in batches:
            assert batch.base_offset >= self.log_end_offset, "batches follow the log end"
            self._assign(batch.leader_epoch, batch.base_offset)
            self._write(batch)
        return self._due()

    def read(self, start: int, end: int, max_bytes: int) -> tuple:
        found: list = []
        for batch in self.batches:
            if batch.last_offset < start:
                continue
            if batch.last_offset >= end:
                break
            max_bytes -= batch.size_bytes
            if max_bytes < 0 and found:
                break
            found.append(batch)
        return tuple(found)

    def offset_for_timestamp(self, timestamp_ms: int) -> int:
        for batch in self.batches:
            if (
                batch.max_timestamp_ms >= timestamp_ms
                and batch.last_offset >= self.log_start_offset
            ):
                return max(batch.base_offset, self.log_start_offset)
        return -1

    def bytes_between(self, start: int, end: int) -> int:
        return sum(batch.size_bytes for batch in self.read(start, end, 1 << 62))

    def raise_log_start(self, offset: int) -> bool:
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        before = [entry for entry in self.epochs if entry[1] <= offset]
        if before:
            later = [entry for entry in self.epochs if entry[1] > offset]
            self.epochs = [(before[-1][0], offset), *later]
        return True

    def truncate_to(self, offset: int) -> None:
        self.epochs = [entry for entry in self.epochs if entry[1] < offset]
        if offset >= self.log_end_offset:
            return
        if offset < self.log_start_offset:
            self.truncate_fully_and_start_at(offset)
            return
        kept = [batch for batch in self.batches if batch.last_offset < offset]
        end = kept[-1].last_offset + 1 if kept else self.log_start_offset
        self._restart(kept, end)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        self.epochs = []
        self.log_start_offset = self.recovery_point = offset
        self._restart([], offset)

    def restart_behind_remote(
        self, offset: int, log_start: int, epochs: Sequence[tuple[int, int]], snapshot: bytes
    ) -> None:
        assert not snapshot, "its producers are read from its batches alone"
        self.truncate_fully_and_start_at(offset)
        self.log_start_offset = min(log_start, offset)
        for epoch, start in epochs:
            self._assign(epoch, start)

    def flush(self) -> int:
        self.recovery_point = self.log_end_offset
        return 0

    def _restart(self, kept: list, end: int) -> None:
        self.batches = []
        self.transactions.guards.clear()
        self._producers = {}
        for batch in kept:
            self._write(batch)
        self.log_end_offset = end
        self.recovery_point = min(self.recovery_point, end)

    def _stamp(self, batch: Batch, epoch: int) -> Batch:
        if isinstance(batch, ListBatch):
            return replace(batch, base_offset=self.log_end_offset, leader_epoch=epoch)
        return batch.stamped(self.log_end_offset, epoch)

    def _guarded(self, batch: Batch, guard: int) -> ErrorCode | None:
        known = self.transactions
        is_open = known.is_ongoing(batch.producer_id, batch.producer_epoch)
        if not batch.is_transactional:
            # Of any epoch: a new one inherits the open transaction (ProducerAppendInfo).
            begun = any(p == batch.producer_id and end is None for p, _, end, _ in known.all())
            return ErrorCode.INVALID_TXN_STATE if begun else None
        good = guard == UNCHECKED_GUARD or guard == known.guards.get(batch.producer_id)
        return None if is_open or good else ErrorCode.INVALID_TXN_STATE

    def _write(self, batch: Batch) -> None:
        self.batches.append(batch)
        self.log_end_offset = batch.last_offset + 1
        if batch.producer_id >= 0 and batch.is_transactional:
            self.transactions.guards.pop(batch.producer_id, None)
        if batch.producer_id < 0 or batch.is_control:
            if batch.producer_id >= 0 and batch.producer_epoch != getattr(
                self._producers.get(batch.producer_id), "epoch", -1
            ):
                self._producers[batch.producer_id] = _Producer(batch.producer_epoch)
            return
        known = self._producers.get(batch.producer_id)
        if known is None or known.epoch != batch.producer_epoch:
            known = self._producers[batch.producer_id] = _Producer(batch.producer_epoch)
        first = batch.base_sequence
        last = (first + batch.record_count - 1) % (1 << 31)
        known.batches.append((first, last, batch.base_offset, batch.last_offset))

    def _check(self, batch: Batch) -> "ErrorCode | tuple | None":
        known = self._producers.get(batch.producer_id)
        if known is None:
            return None
        first = batch.base_sequence
        last = (first + batch.record_count - 1) % (1 << 31)
        if batch.producer_epoch < known.epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if batch.producer_epoch > known.epoch:
            return None if first == 0 else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        for seen in known.batches:
            if seen[:2] == (first, last):
                return seen
        expected = (known.batches[-1][1] + 1) % (1 << 31) if known.batches else 0
        return None if first == expected else ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def _assign(self, epoch: int, start: int) -> None:
        if epoch < 0 or (
            self.epochs and epoch == self.latest_epoch and start >= self.epochs[-1][1]
        ):
            return
        while self.epochs and (self.epochs[-1][0] >= epoch or self.epochs[-1][1] >= start):
            self.epochs.pop()
        self.epochs.append((epoch, start))

    def _due(self) -> bool:
        return self.log_end_offset - self.recovery_point >= self._flush_messages

    def _no(self, error: ErrorCode) -> Appended:
        return Appended(error, -1, -1, False, False, None)
