"""What idempotent producers may rely on: their sequence numbers in a partition's log.

Sources: S28 and S29 of the semantics rules; KIP-98, KIP-360.
"""

from typing import Final, TypeAlias

from sim.checking.invariant import Invariant
from sim.checking.observer import Observer, Partition, Replica
from sim.checking.rows import AppendRow
from sim.ids import OFFSETS_TOPIC, Offset, ProducerId, server_name

_SEQUENCES: Final = 1 << 31
"""They begin again at 0 after the largest int32."""

_BATCHES_KEPT: Final = 8
"""For each producer and replica; after a deeper truncation nothing is known of the producer."""

Numbered: TypeAlias = tuple[Offset, int, int]
"""Base offset of a batch, its producer epoch, and the sequence number that has to come next."""


class SequencesContiguous(Invariant):
    """Rules S28 and S29, on the log of the leader that appends.

    What a leader knows of a producer is what its log holds: batches that a follower copied count,
    and those that a truncation took away count no more. What a coordinator writes is not numbered.
    """

    name = "sequences-contiguous"
    sentence = (
        "In a partition's log the batches of a producer's epoch follow one another by sequence "
        "number, without gap or repetition, and another epoch begins at 0."
    )
    source = "S28, S29; ProducerAppendInfo.checkSequence, KIP-360"

    def _watch(self, observer: Observer) -> None:
        observer.appends.append(self._append)

    def _append(self, partition: Partition, replica: Replica, row: AppendRow) -> None:
        producer: ProducerId = row[13]
        # A group's coordinator numbers what it writes for a transaction from 0 each time.
        if producer < 0 or row[2] == OFFSETS_TOPIC:
            return
        epoch, sequence = row[14], row[15]
        known = replica.producers.get(producer)
        if known is None:
            known = replica.producers[producer] = []
        if sequence < 0:
            # A marker: within its epoch numbers go on, and a bumped epoch begins anew.
            follows = known[-1][2] if known and known[-1][1] == epoch else 0
        else:
            if row[7] and known:
                self._check(partition, known[-1], row)
            follows = (sequence + row[12]) % _SEQUENCES
        if len(known) >= _BATCHES_KEPT:
            del known[0]
        known.append((row[4], epoch, follows))

    def _check(self, partition: Partition, last: Numbered, row: AppendRow) -> None:
        self.checked += 1
        _, epoch, follows = last
        expected = follows if epoch == row[14] else 0
        if row[15] != expected:
            found = (
                f"producer {row[13]} appends sequence {row[15]} in epoch {row[14]} at offset "
                f"{row[4]}; {expected} comes after {follows - 1} of epoch {epoch}"
            )
            raise self.broken(row[0], server_name(row[1]), found, partition)
