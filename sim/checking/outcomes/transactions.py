"""Outcomes of transactions and markers in logs: aborted records are neither lost nor present.

A client has the outcome of each of its transactions; a log has for each record a marker behind it
that committed or aborted it, or none yet. A record is *aborted* if its client has this outcome, or
if an abort marker covers it and its client has no outcome. It is no loss, and in the log it is
neither a survivor nor a duplicate. A record of a transaction with the outcome committed is
guaranteed like any acknowledged record, and covered by an abort marker it is lost.

Source: KIP-98, KIP-890; ``CompletedFetch.nextFetchedRecord`` for readers of committed data. Left
out: offsets that groups commit within transactions.
"""

from bisect import bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from sim.checking.interval_set import IntervalSet
from sim.checking.outcomes.policy import Held
from sim.ids import Offset, ProducerId
from sim.trace.rows.clients import (
    Markers,
    MarkersRow,
    Reads,
    ReadsRow,
    TransactionOutcomes,
    TransactionOutcomesRow,
    TransactionRecords,
    TransactionRecordsRow,
)

Name = tuple[str, int]
"""A transaction: its producer's name, and that producer's number of it."""

NEVER_COMMITTED: Final = ("aborted", "fenced")
"""Outcomes after which no record may ever be visible."""


class Ended(NamedTuple):
    """Outcome of a transaction at its client."""

    producer_id: ProducerId
    outcome: str


class Part(NamedTuple):
    """Records of one transaction in one partition: numbers from ``first`` up to ``stop``."""

    first: int
    stop: int
    name: Name


class Outcomes:
    """Outcomes of all transactions of a run."""

    def __init__(self) -> None:
        self._ended: dict[Name, Ended] = {}
        self.readers: dict[str, bool] = {}
        """Consumers of committed data; the values have no meaning."""

    def add(self, row: TransactionOutcomesRow) -> None:
        """Adds the outcome of a transaction, known to its client or not."""
        name = row[TransactionOutcomes.PRODUCER], row[TransactionOutcomes.TRANSACTION]
        producer_id = row[TransactionOutcomes.PRODUCER_ID]
        self._ended[name] = Ended(producer_id, row[TransactionOutcomes.OUTCOME])

    def of(self, name: Name) -> Ended:
        """The outcome of a transaction; ``unknown`` without a producer id if there is no row."""
        return self._ended.get(name, Ended(-1, "unknown"))


class PartitionTransactions:
    """Transactions of one partition."""

    __slots__ = ("_markers", "_parts", "_reads", "outcomes")

    def __init__(self, outcomes: Outcomes) -> None:
        self.outcomes = outcomes
        self._parts: dict[int, list[Part]] = {}
        self._markers: dict[Offset, tuple[ProducerId, bool]] = {}
        self._reads: dict[int, IntervalSet] = {}

    def records(self, row: TransactionRecordsRow) -> None:
        """Adds records that a client sent in a transaction."""
        name = row[TransactionRecords.PRODUCER], row[TransactionRecords.TRANSACTION]
        first, last = row[TransactionRecords.FIRST_RECORD], row[TransactionRecords.LAST_RECORD]
        parts = self._parts.setdefault(row[TransactionRecords.PRODUCER_INDEX], [])
        insort(parts, Part(first, last + 1, name))

    def marker(self, row: MarkersRow) -> None:
        """Adds a marker that a leader appended."""
        self._markers[row[Markers.OFFSET]] = row[Markers.PRODUCER_ID], row[Markers.COMMITTED]

    def read(self, row: ReadsRow) -> None:
        """Adds records that a reader of committed data got."""
        producer, first = row[Reads.PRODUCER_INDEX], row[Reads.FIRST_RECORD]
        if producer >= 0:
            got = self._reads.setdefault(producer, IntervalSet())
            got.add(first, first + row[Reads.RECORD_COUNT])

    def settle(self, log: Iterable[Held]) -> "Settled":
        """State of a log's records by its markers, given in order of offset."""
        settled = Settled(self)
        waiting: dict[ProducerId, list[Held]] = {}
        for held in log:
            if held.producer_index < 0:
                marker = self._markers.get(held.base_offset)
                if marker is not None:
                    settled.decide(waiting.pop(marker[0], ()), committed=marker[1])
                continue
            for piece, name in self._pieces(held):
                producer_id = self.outcomes.of(name).producer_id
                waiting.setdefault(producer_id, []).append(piece)
        for pieces in waiting.values():
            settled.leave(pieces)
        return settled

    def parts(self, producer: int) -> list[Part]:
        """All parts of a producer's transactions, in order."""
        return self._parts.get(producer, [])

    def known(self, producer: int, outcomes: tuple[str, ...]) -> IntervalSet:
        """A producer's records in transactions with one of these outcomes."""
        return IntervalSet(
            (part.first, part.stop)
            for part in self.parts(producer)
            if self.outcomes.of(part.name).outcome in outcomes
        )

    def reads(self, producer: int) -> IntervalSet:
        """A producer's records that readers of committed data got."""
        return self._reads.get(producer, IntervalSet())

    @property
    def producers(self) -> list[int]:
        """Producers that had transactions here."""
        return list(self._parts)

    def _pieces(self, held: Held) -> Iterator[tuple[Held, Name]]:
        parts = self.parts(held.producer_index)
        stop = held.first_record + held.record_count
        place = max(0, bisect_right(parts, held.first_record, key=_first) - 1)
        while place < len(parts) and parts[place].first < stop:
            part = parts[place]
            begin, end = max(part.first, held.first_record), min(part.stop, stop)
            if begin < end:
                offset = held.base_offset - held.first_record
                yield held.part(offset + begin, offset + end), part.name
            place += 1


class Settled:
    """Records of one partition at the end of a run, as its final leader's log has them."""

    __slots__ = ("_aborted", "_committed", "_transactions", "_undecided", "hidden")

    def __init__(self, transactions: PartitionTransactions) -> None:
        self._transactions = transactions
        self._aborted: dict[int, IntervalSet] = {}
        self._committed: dict[int, IntervalSet] = {}
        self._undecided: dict[int, IntervalSet] = {}
        self.hidden = IntervalSet()
        """Offsets that abort markers cover."""

    def decide(self, pieces: Sequence[Held], *, committed: bool) -> None:
        """Settles these records by a marker."""
        _note(self._committed if committed else self._aborted, pieces)
        if not committed:
            ranges = sorted((piece.base_offset, piece.base_offset + piece.record_count)
                            for piece in pieces)  # fmt: skip
            self.hidden = self.hidden.union(IntervalSet(ranges))

    def leave(self, pieces: Iterable[Held]) -> None:
        """Adds records without a marker."""
        _note(self._undecided, pieces)

    def aborted(self, producer: int) -> IntervalSet:
        """Records of transactions that aborted."""
        known = self._transactions.known(producer, NEVER_COMMITTED)
        covered = self._aborted.get(producer, IntervalSet())
        promised = self._transactions.known(producer, ("committed",))
        return known.union(IntervalSet(covered.minus(promised)))

    def unpromised(self, producer: int) -> IntervalSet:
        """Records of transactions without an outcome at their client."""
        return self._transactions.known(producer, ("unknown",))

    def undecided(self, producer: int) -> IntervalSet:
        """Records that no marker covers."""
        return self._undecided.get(producer, IntervalSet())

    def aborted_visible(self, producer: int) -> IntervalSet:
        """Records that a commit marker covers although their client got an abort."""
        known = self._transactions.known(producer, NEVER_COMMITTED)
        return common(known, self._committed.get(producer, IntervalSet()))

    def aborted_read(self, producer: int) -> IntervalSet:
        """Aborted records that a reader of committed data got."""
        return common(self.aborted(producer), self._transactions.reads(producer))

    def torn(self, producer: int, missing: IntervalSet) -> Iterator[tuple[Name, bool, bool]]:
        """Each transaction here, with flags for visible and for missing records.

        Args:
            producer: Producer index.
            missing: Its acknowledged records that are not visible and that no policy removed.
        """
        seen = self._committed.get(producer, IntervalSet())
        for part in self._transactions.parts(producer):
            is_seen = bool(seen.within(part.first, part.stop))
            yield part.name, is_seen, bool(missing.within(part.first, part.stop))


def common(one: IntervalSet, other: IntervalSet) -> IntervalSet:
    """Numbers that are in both sets."""
    return IntervalSet(part for start, stop in one for part in other.within(start, stop))


def _first(part: Part) -> int:
    return part.first


def _note(into: dict[int, IntervalSet], pieces: Iterable[Held]) -> None:
    for piece in pieces:
        known = into.get(piece.producer_index)
        if known is None:
            known = into[piece.producer_index] = IntervalSet()
        known.add(piece.first_record, piece.first_record + piece.record_count)
