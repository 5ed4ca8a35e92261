"""Invariants of idempotent producers: their sequence numbers in a partition's log.

Sources: S28 and S29 of the semantics rules; KIP-98, KIP-360.
"""

from typing import Final, TypeAlias

from sim.checking.invariant import Invariant
from sim.checking.observer import Observer
from sim.checking.partition import Partition, Replica
from sim.ids import OFFSETS_TOPIC, Offset, ProducerId
from sim.trace.rows.log import Appends, AppendsRow

_SEQUENCES: Final = 1 << 31
"""Number of sequence numbers; 0 follows the largest int32."""

_BATCHES_KEPT: Final = 8
"""Batches kept by producer and replica; a deeper truncation drops the producer's state."""

Numbered: TypeAlias = tuple[Offset, int, int]
"""Base offset of a batch, its producer epoch, and the sequence number that has to come next."""


class SequencesContiguous(Invariant):
    """Rules S28 and S29, on the log of the leader that appends.

    A leader derives a producer's state from its log: batches that a follower copied count,
    truncated ones do not. Batches of coordinators are not numbered.
    """

    name = "sequences-contiguous"
    sentence = (
        "In a partition's log the batches of a producer's epoch follow one another by sequence "
        "number, without gap or repetition, and another epoch begins at 0."
    )
    source = "S28, S29; ProducerAppendInfo.checkSequence, KIP-360"

    def _watch(self, observer: Observer) -> None:
        observer.appends.append(self._append)

    def _append(self, partition: Partition, replica: Replica, row: AppendsRow) -> None:
        producer: ProducerId = row[Appends.PRODUCER_ID]
        # A group coordinator's batches of a transaction begin at 0 each time.
        if producer < 0 or row[Appends.TOPIC] == OFFSETS_TOPIC:
            return
        epoch, sequence = row[Appends.PRODUCER_EPOCH], row[Appends.BASE_SEQUENCE]
        known = replica.producers.get(producer)
        if known is None:
            known = replica.producers[producer] = []
        if sequence < 0:
            # A marker: sequences continue within its epoch, and a bumped epoch begins at 0.
            follows = known[-1][2] if known and known[-1][1] == epoch else 0
        else:
            if row[Appends.AS_LEADER] and known:
                self._check(partition, known[-1], row)
            follows = (sequence + row[Appends.RECORD_COUNT]) % _SEQUENCES
        if len(known) >= _BATCHES_KEPT:
            del known[0]
        known.append((row[Appends.BASE_OFFSET], epoch, follows))

    def _check(self, partition: Partition, last: Numbered, row: AppendsRow) -> None:
        self.checked += 1
        _, before, follows = last
        epoch, sequence = row[Appends.PRODUCER_EPOCH], row[Appends.BASE_SEQUENCE]
        expected = follows if before == epoch else 0
        if sequence != expected:
            producer, base = row[Appends.PRODUCER_ID], row[Appends.BASE_OFFSET]
            found = (
                f"producer {producer} appends sequence {sequence} in epoch {epoch} at offset "
                f"{base}; {expected} comes after {follows - 1} of epoch {before}"
            )
            raise self.broken_by(row, found, partition)


SEQUENCE_INVARIANTS: Final[tuple[type[Invariant], ...]] = (SequencesContiguous,)
"""Invariants of producers' sequence numbers."""
