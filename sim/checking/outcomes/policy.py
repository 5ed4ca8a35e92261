"""Records that policy removed: those below a log start that retention or a request moved.

Deleting a topic removes all its records, lawfully. Of log starts, only a move to a committed offset
is policy. Any other removal of an acknowledged record (a log start above the true high watermark,
one that a truncation moved) is loss.

Source: ``UnifiedLog.deleteOldSegments`` and ``maybeIncrementLogStartOffset``: both are bounded by
the high watermark. Left out: the reason for which the broker considered a record expired.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from sim.checking.interval_set import IntervalSet
from sim.ids import Offset
from sim.trace.rows.tiered import RemoteSegments, RemoteSegmentsRow

POLICIES: Final = ("retention.ms", "retention.bytes", "delete_records")
"""Reasons of ``log_starts`` that remove records lawfully."""


class Held(NamedTuple):
    """A batch in a log."""

    base_offset: Offset
    record_count: int
    producer_index: int
    first_record: int

    def part(self, start: Offset, stop: Offset) -> "Held":
        """Its part in a range of offsets."""
        skipped = start - self.base_offset
        return Held(start, stop - start, self.producer_index, self.first_record + skipped)


class Expired:
    """Records of one partition that lay below the log start when policy moved it."""

    __slots__ = ("below", "records", "runs")

    def __init__(self) -> None:
        self.below: Offset = 0
        """Policy has removed all offsets below this one."""
        self.records: dict[int, IntervalSet] = {}
        """Record numbers by producer index."""
        self.runs: list[Held] = []
        """Their offsets, in order; batches of one producer in a row are one run."""

    def advance(self, to: Offset, batches: Iterable[Held]) -> None:
        """Removes the offsets up to ``to``, exclusive, by policy.

        Args:
            to: Above :attr:`below`.
            batches: Batches of the replica's log from :attr:`below` on, in order.
        """
        for batch in batches:
            if batch.base_offset >= to:
                break
            if batch.producer_index < 0:
                continue
            count = min(batch.record_count, to - batch.base_offset)
            records = self.records.get(batch.producer_index)
            if records is None:
                records = self.records[batch.producer_index] = IntervalSet()
            records.add(batch.first_record, batch.first_record + count)
            self._note(batch._replace(record_count=count))
        self.below = to

    def take_all(self, batches: Iterable[Held]) -> None:
        """Removes all that a replica's log held, as its topic was deleted."""
        below = self.below
        self.advance(1 << 62, batches)
        self.below = below

    def start_over(self) -> None:
        """Starts another topic of the name at offset 0."""
        self.below = 0
        self.runs.clear()

    def _note(self, run: Held) -> None:
        if self.runs:
            base, count, producer, first = self.runs[-1]
            if (base + count, producer, first + count) == (
                run.base_offset,
                run.producer_index,
                run.first_record,
            ):
                self.runs[-1] = Held(base, count + run.record_count, producer, first)
                return
        self.runs.append(run)

    def of(
        self, producer: int, absent: IntervalSet, unplaced: IntervalSet, lowest: int
    ) -> IntervalSet:
        """Acknowledged records of a producer that policy removed.

        A record whose response had no offset (``acks=0``) has no known place: it counts as removed
        if policy removed anything, and every earlier record of the producer is missing, too.

        Args:
            producer: Producer index.
            absent: Acknowledged records that are not in the final leader's log.
            unplaced: Acknowledged records without an offset.
            lowest: Smallest number of the producer in that log; above all others if there is none.
        """
        if not self.records:
            return IntervalSet()
        known = self.records.get(producer, IntervalSet())
        found = [
            part
            for start, stop in absent
            for known_start, known_stop in unplaced.missing(start, stop)
            for part in known.within(known_start, known_stop)
        ]
        for start, stop in absent:
            for low, high in unplaced.within(start, stop):
                if low < lowest:
                    found.append((low, min(high, lowest)))
        return IntervalSet(sorted(found))


def shown(runs: Iterable[Held], hidden: IntervalSet) -> Iterator[Held]:
    """The parts of the runs that do not lie at hidden offsets."""
    for held in runs:
        base = held.base_offset
        for begin, end in hidden.missing(base, base + held.record_count):
            yield held.part(begin, end)


class RemoteCopy(NamedTuple):
    """A finished copy."""

    start: Offset
    end: Offset
    """Exclusive."""
    held: tuple[Held, ...]


class RemoteCopies:
    """The finished copies of one tiered partition: what lies in one survives.

    Where copies overlap, the one that begins first holds the batch.
    """

    __slots__ = ("copies",)

    def __init__(self) -> None:
        self.copies: dict[str, RemoteCopy] = {}

    def apply(
        self, row: RemoteSegmentsRow, held: Callable[[Offset, Offset], Sequence[Held]]
    ) -> None:
        """Applies the event of a segment.

        Args:
            row: The event.
            held: Batches of the copying broker's local log between two offsets.
        """
        state, name = row[RemoteSegments.STATE], row[RemoteSegments.SEGMENT]
        if state == "COPY_SEGMENT_FINISHED":
            start, end = row[RemoteSegments.START_OFFSET], row[RemoteSegments.END_OFFSET] + 1
            self.copies[name] = RemoteCopy(start, end, tuple(held(start, end)))
        elif state in ("DELETE_SEGMENT_STARTED", "LOST"):
            self.copies.pop(name, None)

    def batches(self, begin: Offset, below: Offset) -> Iterator[Held]:
        """Batches of [begin, below) in order of offset, each once."""
        for copy in sorted(self.copies.values()):
            for batch in copy.held:
                start = max(begin, batch.base_offset)
                stop = min(below, batch.base_offset + batch.record_count)
                if start < stop:
                    yield batch.part(start, stop)
                    begin = stop
