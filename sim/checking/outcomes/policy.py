"""What policy removed on purpose: records below a log start that retention or a request moved.

A topic that is deleted takes all its records with it, lawfully. Of log starts, only a move at a
committed offset is policy. Whatever else takes an acknowledged record away (a log
start above the true high watermark, one that a truncation moved) is loss.

Source: ``UnifiedLog.deleteOldSegments`` and ``maybeIncrementLogStartOffset``: both are bounded by
the high watermark. Left out: why a record had outlived its time, which is the broker's business.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from sim.checking.interval_set import IntervalSet
from sim.ids import Offset

POLICIES: Final = ("retention.ms", "retention.bytes", "delete_records")
"""Reasons of ``log_starts`` that remove records lawfully."""


class Held(NamedTuple):
    """A batch in a log."""

    base_offset: Offset
    record_count: int
    producer_index: int
    first_record: int

    def part(self, start: Offset, stop: Offset) -> "Held":
        """What lies in a range of offsets inside it."""
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
        """Where they lay, in order of offset; batches of one producer in a row are one run."""

    def advance(self, to: Offset, batches: Iterable[Held]) -> None:
        """Policy removed the offsets up to ``to``, exclusive.

        Args:
            to: Above :attr:`below`.
            batches: What the log of the replica held from :attr:`below` on, in order.
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
        """The topic was deleted: all that a replica's log held goes."""
        below = self.below
        self.advance(1 << 62, batches)
        self.below = below

    def begin_anew(self) -> None:
        """Another topic takes the name, and begins at offset 0."""
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

    def of(self, producer: int, gone: IntervalSet, untold: IntervalSet, lowest: int) -> IntervalSet:
        """Which of a producer's vanished acknowledged records policy removed.

        A record whose offset nobody was told (``acks=0``) has no place of its own: it counts as
        removed if policy removed anything, and every earlier record of the producer is gone too.

        Args:
            producer: Producer index.
            gone: Acknowledged records that are not in the final leader's log.
            untold: Acknowledged records without an offset.
            lowest: Smallest number of the producer in that log; above all others if there is none.
        """
        if not self.records:
            return IntervalSet()
        known = self.records.get(producer, IntervalSet())
        found = [
            part
            for start, stop in gone
            for told_start, told_stop in untold.missing(start, stop)
            for part in known.within(told_start, told_stop)
        ]
        for start, stop in gone:
            for untold_start, untold_stop in untold.within(start, stop):
                if untold_start < lowest:
                    found.append((untold_start, min(untold_stop, lowest)))
        return IntervalSet(sorted(found))


def shown(runs: Iterable[Held], hidden: IntervalSet) -> Iterator[Held]:
    """The parts of the runs that do not lie at hidden offsets."""
    for held in runs:
        base = held.base_offset
        for begin, end in hidden.missing(base, base + held.record_count):
            yield held.part(begin, end)
