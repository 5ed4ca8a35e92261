"""Arithmetic of the verdict: acknowledged records against the final leaders' logs.

Definitions, for records of producers (internal topics and control batches do not count):

* ``sent``: of every batch with an outcome at its producer, ``unknown`` included; ``acked``,
  ``failed``, ``unknown`` by that outcome (``ok``, ``failed``, ``unknown``).
* *final leader*: of the partition's last committed state that had a leader; if there was none, the
  replica whose log has the greatest last epoch, then the longest log.
* ``survived``: in the final leader's log, at or above its log start. ``removed``: acknowledged, not
  survived, and removed by policy (:mod:`sim.checking.outcomes.policy`). ``lost_acked``:
  acknowledged, neither survived nor removed; ``early_tombstones`` those of them that are tombstones
  which a cleaner removed too early. ``unacked_present``: survived and not acknowledged.
* ``duplicated``: copies in the final leader's log beyond the first.
* ``reordered``: records whose number is smaller than the largest one before them of the same
  producer in the final leader's log, first copies only.
* ``divergent``: offsets at which the logs of two replicas, below the smallest end and at or above
  the largest log start of the partition's non-empty logs, differ by (leader epoch, CRC). A hole
  that a lost segment left counts, at the start of a log, too; retention moves the log start.

A judge that reads the replicas' files can compute the same numbers, and has to find the same ones.
Of transactions (:mod:`sim.checking.outcomes.transactions`):

* ``aborted``: sent in a transaction that aborted; in the log such records are neither survivors nor
  duplicates, and their absence is no loss. ``undecided``: in the final leader's log,
  and no marker behind them.
* ``aborted_visible``: covered by a commit marker although the client got an abort.
  ``aborted_read``: aborted, and a reader of committed data got them.
* ``torn_transactions``: some of their acknowledged records are visible and others neither visible
  nor removed lawfully.
* A record of a transaction whose outcome its client never got is not guaranteed.
"""

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Final

from sim.checking.interval_set import IntervalSet, size
from sim.checking.outcomes.deliveries import KINDS, Deliveries
from sim.checking.outcomes.history import PartitionHistory
from sim.checking.outcomes.policy import Held, shown
from sim.checking.outcomes.slices import Lost
from sim.checking.outcomes.transactions import Name, Settled, common
from sim.checking.scope import pair_name
from sim.ids import Offset

COUNTS: Final = (
    "sent",
    "acked",
    "failed",
    "unknown",
    "survived",
    "lost_acked",
    "removed",
    "early_tombstones",
    "aborted",
    "aborted_visible",
    "aborted_read",
    "undecided",
    "torn_transactions",
    "unacked_present",
    "duplicated",
    "reordered",
    "divergent",
)
"""The numbers of a verdict, in its order."""

EXAMPLES: Final = 10
"""First findings of each kind that a verdict shows."""

Example = dict[str, object]
"""``topic, partition, producer, record, offset``; of a divergence no producer and record.
``offset`` of a lost record is one it had in some log; -1 if it was never appended."""


class Verdict:
    """Counts and examples, summed over partitions."""

    def __init__(self, producers: dict[int, str]) -> None:
        self._producers = producers
        self.topics: dict[str, dict[str, int]] = {}
        self.partitions: dict[str, dict[str, int]] = {}
        """The same counts by partition, without ``torn_transactions``."""
        self.divergence: dict[str, int] = {}
        """Offsets at which the logs of two brokers differ, by their names."""
        self.lost: Lost = {}
        self.examples: dict[str, list[Example]] = {}
        self.internal_divergent = 0
        self.unsent_present = 0
        self.ok_unanswered = 0
        """Records that producers count as acknowledged and no leader acknowledged."""
        self.answered_untold = 0
        """Records that a leader acknowledged and their producer counts as failed, or not at all."""
        self._readers: dict[str, dict[str, int]] = {}
        self._torn: dict[tuple[str, Name], tuple[bool, bool]] = {}

    def totals(self) -> dict[str, int]:
        """Counts over all topics."""
        return {name: sum(topic[name] for topic in self.topics.values()) for name in COUNTS}

    def readers(self) -> dict[str, object]:
        """Deliveries of records to readers; nothing without readers."""
        if not self._readers:
            return {}
        found: dict[str, object] = {
            kind: sum(counts[kind] for counts in self._readers.values()) for kind in KINDS
        }
        return {**found, "by_reader": {name: self._readers[name] for name in sorted(self._readers)}}

    def judge(self, history: PartitionHistory, deliveries: Deliveries | None = None) -> None:
        """Adds one partition, with its readers."""
        leader = history.logs.get(history.final_leader)
        settled = None
        if history.transactions is not None:
            settled = history.transactions.settle(leader.batches() if leader is not None else ())
        present = Present(history, self._note, settled)
        divergent = history.differing()
        reported = [*history.acked, *history.failed, *history.unknown]
        producers = sorted({*reported, *present.records, *history.answered})
        if not producers:
            self.internal_divergent += len(divergent)
            return
        counts = self.topics.setdefault(history.topic, dict.fromkeys(COUNTS, 0))
        before = dict(counts)
        cleaned = None if history.compaction is None else Cleaned(history, present.records)
        for producer in producers:
            records = present.records.get(producer, IntervalSet())
            self._add_producer(counts, history, producer, records, cleaned, settled)
        if deliveries is not None and not history.is_deleted:
            self._add_readers(history, deliveries, present, cleaned, settled)
        counts["duplicated"] += present.duplicated
        counts["reordered"] += present.reordered
        counts["divergent"] += len(divergent)
        self.partitions[history.name] = {
            name: counts[name] - before[name] for name in COUNTS if name != "torn_transactions"
        }
        if divergent:
            self._compare_pairs(history)
        for start, stop in divergent:
            for offset in range(start, min(stop, start + EXAMPLES)):
                self._note("divergent", history, -1, -1, offset)

    def _compare_pairs(self, history: PartitionHistory) -> None:
        for pair in combinations(sorted(history.logs), 2):
            count = len(history.differing(pair))
            if count:
                name = pair_name(pair)
                self.divergence[name] = self.divergence.get(name, 0) + count

    def _add_producer(
        self,
        counts: dict[str, int],
        history: PartitionHistory,
        producer: int,
        present: IntervalSet,
        cleaned: "Cleaned | None",
        settled: Settled | None,
    ) -> None:
        nothing = IntervalSet()
        acked = history.acked.get(producer, nothing)
        failed = history.failed.get(producer, nothing)
        unknown = history.unknown.get(producer, nothing)
        sent = acked.union(failed, unknown)
        absent = IntervalSet(acked.minus(present))
        lowest = next((start for start, _ in present), 1 << 62)
        without_offset = history.without_offset.get(producer, nothing)
        removed = history.expired.of(producer, absent, without_offset, lowest)
        if cleaned is not None:
            removed = removed.union(cleaned.removed_of(producer, absent, without_offset))
        if settled is not None:
            missing = IntervalSet(absent.minus(removed))
            self._add_transactions(counts, history.topic, settled, producer, sent, missing)
            aborted = settled.aborted(producer)
            absent = IntervalSet(absent.minus(aborted.union(settled.unpromised(producer))))
            removed = common(removed, absent)
        lost = absent.minus(removed)
        if cleaned is not None:
            counts["early_tombstones"] += len(cleaned.early_of(producer, IntervalSet(lost)))
        if lost:
            self.lost[history.topic, history.number, producer] = IntervalSet(lost)
        unasked = present.minus(acked)
        counts["sent"] += len(sent)
        counts["acked"] += len(acked)
        counts["failed"] += len(failed)
        counts["unknown"] += len(unknown)
        counts["survived"] += len(present)
        counts["lost_acked"] += size(lost)
        counts["removed"] += len(removed)
        counts["unacked_present"] += size(unasked)
        self.unsent_present += size(present.minus(sent))
        answered = history.answered.get(producer, nothing)
        self.ok_unanswered += size(IntervalSet(acked.minus(without_offset)).minus(answered))
        self.answered_untold += size(answered.minus(acked.union(unknown)))
        for kind, ranges in (("lost_acked", lost), ("unacked_present", unasked)):
            for start, stop in ranges:
                for record in range(start, min(stop, start + EXAMPLES)):
                    self._note(kind, history, producer, record, None)

    def _add_readers(
        self,
        history: PartitionHistory,
        deliveries: Deliveries,
        present: "Present",
        cleaned: "Cleaned | None",
        settled: Settled | None,
    ) -> None:
        nothing = IntervalSet()

        def lawful(producer: int, absent: IntervalSet) -> IntervalSet:
            # A record that a reader got has a known offset.
            removed = history.expired.of(producer, absent, nothing, 0)
            if cleaned is not None:
                removed = removed.union(cleaned.removed_of(producer, absent, nothing))
            return removed

        def aborted(producer: int) -> IntervalSet:
            return nothing if settled is None else settled.aborted(producer)

        leader = history.logs.get(history.final_leader)
        log: Iterable[Held] = () if leader is None else leader.batches()
        if settled is not None:
            log = shown(log, settled.hidden)
        removed = history.expired.runs
        by_reader = deliveries.judged(log, removed, present.records, lawful, aborted)
        for name, found in by_reader.items():
            counts = self._readers.setdefault(name, dict.fromkeys(KINDS, 0))
            for kind, count in found.items():
                counts[kind] += count

    def _add_transactions(
        self,
        counts: dict[str, int],
        topic: str,
        settled: Settled,
        producer: int,
        sent: IntervalSet,
        missing: IntervalSet,
    ) -> None:
        counts["aborted"] += len(common(settled.aborted(producer), sent))
        counts["aborted_visible"] += len(settled.aborted_visible(producer))
        counts["aborted_read"] += len(settled.aborted_read(producer))
        counts["undecided"] += len(settled.undecided(producer))
        for name, is_seen, is_missing in settled.torn(producer, missing):
            was_seen, was_missing = self._torn.get((topic, name), (False, False))
            now = was_seen or is_seen, was_missing or is_missing
            self._torn[topic, name] = now
            if all(now) and not (was_seen and was_missing):
                counts["torn_transactions"] += 1

    def _note(
        self,
        kind: str,
        history: PartitionHistory,
        producer: int,
        record: int,
        offset: Offset | None,
    ) -> None:
        examples = self.examples.setdefault(kind, [])
        if len(examples) >= EXAMPLES:
            return
        example: Example = {"topic": history.topic, "partition": history.number}
        if producer >= 0:
            example["producer"] = self._producers.get(producer, f"producer {producer}")
            example["record"] = record
        example["offset"] = history.offset_of(producer, record) if offset is None else offset
        examples.append(example)


_Note = Callable[[str, PartitionHistory, int, int, Offset | None], None]


class Present:
    """One pass over the final leader's log, in order of offset."""

    def __init__(self, history: PartitionHistory, note: _Note, settled: Settled | None) -> None:
        self.records: dict[int, IntervalSet] = {}
        """Record numbers in the log, by producer index; not what abort markers cover."""
        self.duplicated = 0
        self.reordered = 0
        log = history.logs.get(history.final_leader)
        if log is None:
            return
        highest: dict[int, int] = {}
        runs = log.batches() if settled is None else shown(log.batches(), settled.hidden)
        for base, count, producer, first in runs:
            if producer < 0:
                continue
            stop = first + count
            top = highest.get(producer, -1)
            highest[producer] = max(top, stop - 1)
            records = self.records.get(producer)
            if records is None:
                records = self.records[producer] = IntervalSet()
            if first <= top:
                again = records.within(first, stop)
                # The highest number is in the log itself, so no gap reaches over it.
                late = [gap for gap in records.missing(first, stop) if gap[0] < top]
                self.duplicated += size(again)
                self.reordered += size(late)
                for kind, ranges in (("duplicated", again), ("reordered", late)):
                    for start, end in ranges:
                        for record in range(start, min(end, start + EXAMPLES)):
                            note(kind, history, producer, record, base + record - first)
            records.add(first, stop)


class Cleaned:
    """Removals of cleaners in one partition, at the end of the run."""

    __slots__ = ("_compaction", "_early", "_keys", "_removed")

    def __init__(self, history: PartitionHistory, present: dict[int, IntervalSet]) -> None:
        leader = history.logs.get(history.final_leader)
        log = leader.batches() if leader is not None else iter(())
        self._compaction = history.compacted()
        self._removed, self._early = self._compaction.settle(log)
        self._keys: dict[int, bool] = {}
        """Keys that have a record in the log; the values have no meaning."""
        for producer, numbers in present.items() if history.without_offset else ():
            for start, stop in numbers:
                for key, _ in self._compaction.keys.of(producer, start, stop - start):
                    self._keys[key] = key >= 0

    def removed_of(self, producer: int, absent: IntervalSet, unplaced: IntervalSet) -> IntervalSet:
        """Acknowledged records of a producer that cleaners removed lawfully.

        A record whose response had no offset (``acks=0``) counts as removed if its key has a record
        in the final leader's log.
        """
        known = self._removed.get(producer, IntervalSet())
        lawful = []
        for start, stop in absent:
            for known_start, known_stop in unplaced.missing(start, stop):
                lawful += known.within(known_start, known_stop)
            for number, end in unplaced.within(start, stop):
                keys = self._compaction.keys.of(producer, number, end - number)
                lawful += [(n, n + 1) for n, (key, _) in enumerate(keys, number) if self._has(key)]
        return IntervalSet(sorted(lawful))

    def early_of(self, producer: int, lost: IntervalSet) -> IntervalSet:
        """Lost records of a producer that are tombstones removed too early."""
        early = self._early.get(producer, IntervalSet())
        return IntervalSet(part for start, stop in lost for part in early.within(start, stop))

    def _has(self, key: int) -> bool:
        return self._keys.get(key, False)
