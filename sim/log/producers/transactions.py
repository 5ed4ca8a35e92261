"""Transactions of one log: open ones, and decided ones whose markers are not committed.

A transaction is open from its first batch in this log to its marker. For readers of committed data
it stays unstable until the marker is below the high watermark, so the last stable offset is the
first offset of the earliest such transaction, or the high watermark if there is none.

A client's first batch of a transaction must have been verified: the coordinator has confirmed that
the partition is in the transaction (KIP-890). Pending verifications are kept here, in memory only;
a guard that has been used, or lost in a restart, admits nothing.

Source: ``ProducerStateManager``'s ongoing and unreplicated transactions, ``VerificationGuard``,
``VerificationStateEntry``; KIP-98, KIP-890.
"""

from typing import NamedTuple

from sim.ids import Offset, ProducerId

NO_GUARD = 0
"""Guard of an unverified append; it suffices within an open transaction."""

UNCHECKED_GUARD = -1
"""``transaction.partition.verification.enable`` is false: a client's append needs no guard."""

_COORDINATOR = -3


def by_coordinator(guard: int) -> int:
    """The same guard for a coordinator's own append, whose sequences are not checked."""
    return _COORDINATOR - guard


def is_by_coordinator(guard: int) -> bool:
    """True if the guard was made by :func:`by_coordinator`."""
    return guard <= _COORDINATOR - UNCHECKED_GUARD


class CompletedTransaction(NamedTuple):
    """A transaction whose marker was just written; offsets are inclusive."""

    producer_id: ProducerId
    first_offset: Offset
    last_offset: Offset
    """Offset of the marker."""
    aborted: bool


class Transactions:
    """Open transactions by first offset, and decided ones until their markers are committed."""

    __slots__ = ("_ongoing", "_undecided_for_readers")

    def __init__(self) -> None:
        self._ongoing: dict[Offset, ProducerId] = {}
        self._undecided_for_readers: dict[Offset, Offset] = {}

    @property
    def is_idle(self) -> bool:
        """True if no transaction hides records from readers."""
        return not self._ongoing and not self._undecided_for_readers

    @property
    def ongoing(self) -> tuple[tuple[Offset, ProducerId], ...]:
        """Open transactions: first offset and producer, earliest first."""
        return tuple(sorted(self._ongoing.items()))

    def begin(self, producer: ProducerId, first_offset: Offset) -> None:
        """Begins a transaction with the producer's batch at the offset."""
        self._ongoing[first_offset] = producer

    def stable_after(self, completed: CompletedTransaction) -> Offset:
        """The last stable offset as the index of aborted transactions has it.

        The first offset of the earliest transaction of another producer, else behind the marker.

        Source: ``ProducerStateManager.lastStableOffset``.
        """
        others = [o for o, producer in self._ongoing.items() if producer != completed.producer_id]
        return min(others, default=completed.last_offset + 1)

    def complete(self, completed: CompletedTransaction) -> None:
        """Ends a transaction by its marker, which readers see when it is committed."""
        del self._ongoing[completed.first_offset]
        self._undecided_for_readers[completed.first_offset] = completed.last_offset

    def first_unstable(self, high_watermark: Offset) -> Offset | None:
        """First offset of the earliest transaction without a committed marker, ``None`` for none.

        Source: ``ProducerStateManager.onHighWatermarkUpdated`` and ``firstUnstableOffset``.
        """
        waiting = self._undecided_for_readers
        for first in [f for f, marker in waiting.items() if marker < high_watermark]:
            del waiting[first]
        lowest = min(waiting, default=None)
        open_from = min(self._ongoing, default=None)
        if lowest is None or open_from is None:
            return open_from if lowest is None else lowest
        return min(lowest, open_from)

    def clear(self) -> None:
        """Forgets all of them."""
        self._ongoing.clear()
        self._undecided_for_readers.clear()


class _Verification:
    """One producer's verification under way."""

    __slots__ = ("epoch", "guard", "lowest_sequence", "needs_sequence_zero", "timestamp_ms")

    def __init__(
        self, guard: int, epoch: int, sequence: int, timestamp_ms: int, *, bumps: bool
    ) -> None:
        self.guard = guard
        self.epoch = epoch
        self.lowest_sequence = sequence
        self.timestamp_ms = timestamp_ms
        self.needs_sequence_zero = bumps


class Verifications:
    """Pending verifications by producer; at most one guard is valid for each."""

    __slots__ = ("_by_producer", "_guards")

    def __init__(self) -> None:
        self._by_producer: dict[ProducerId, _Verification] = {}
        self._guards = 0

    def begin(
        self, producer: ProducerId, epoch: int, sequence: int, now_ms: int, *, bumps: bool
    ) -> int:
        """The guard that the append must present; the same while a verification is pending.

        Args:
            producer: Who appends.
            epoch: Its epoch.
            sequence: Of the batch's first record.
            now_ms: Milliseconds since 1970.
            bumps: Whether each transaction has an epoch of its own (transaction version 2), so
                that its first sequence is 0.

        Source: ``ProducerStateManager.maybeCreateVerificationStateEntry``.
        """
        entry = self._by_producer.get(producer)
        if entry is None:
            self._guards += 1
            entry = _Verification(self._guards, epoch, sequence, now_ms, bumps=bumps)
            self._by_producer[producer] = entry
        elif epoch > entry.epoch:
            entry.epoch, entry.lowest_sequence = epoch, sequence
        elif epoch == entry.epoch:
            entry.lowest_sequence = min(entry.lowest_sequence, sequence)
        return entry.guard

    def admits(self, producer: ProducerId, guard: int) -> bool:
        """True if the guard is the producer's present one."""
        entry = self._by_producer.get(producer)
        return guard == UNCHECKED_GUARD or (entry is not None and entry.guard == guard)

    def refuses(self, producer: ProducerId, sequence: int, *, is_known: bool) -> bool:
        """True if the sequence cannot be the first: an earlier batch is missing.

        Args:
            producer: Who appends.
            sequence: Of the batch's first record.
            is_known: Whether the log has batches of the producer.

        Source: ``ProducerAppendInfo.checkSequence``.
        """
        entry = self._by_producer.get(producer)
        if entry is None:
            return False
        if entry.needs_sequence_zero and sequence != 0 and not is_known:
            return True
        return sequence > entry.lowest_sequence

    def end(self, producer: ProducerId) -> None:
        """Removes the guard after a batch of the producer's transaction was written."""
        self._by_producer.pop(producer, None)

    def on_marker(self, producer: ProducerId, marker_epoch: int) -> None:
        """Removes the guard after a marker, unless it is of the producer's next transaction.

        With transaction version 2 the previous marker carries that one's epoch already.

        Source: ``UnifiedLog.updateProducers`` since 4.0 (KAFKA-18575).
        """
        entry = self._by_producer.get(producer)
        if entry is None or (entry.needs_sequence_zero and entry.epoch == marker_epoch):
            return
        del self._by_producer[producer]

    def expire(self, now_ms: int, expiration_ms: int) -> None:
        """Expires old ones."""
        old = [
            producer
            for producer, entry in self._by_producer.items()
            if now_ms - entry.timestamp_ms >= expiration_ms
        ]
        for producer in old:
            del self._by_producer[producer]

    def clear(self) -> None:
        """Clears all of them; their guards admit nothing any more."""
        self._by_producer.clear()
