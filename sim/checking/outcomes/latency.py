"""Latency from the instant a record was meant to be sent, to its acknowledgement and its readers.

Counting from the intended instant keeps the time in which a producer could not send. A reader's row
and the batch's own row come in either order; whichever comes first waits for the other, within a
bound: of a reader that lags further behind than that, deliveries are counted as unmatched.
"""

from bisect import bisect_right, insort
from collections import deque
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sim.checking.outcomes.histogram import Histogram
from sim.trace.rows.clients import Reads, ReadsRow
from sim.trace.rows.log import ClientBatches, ClientBatchesRow
from sim.units import Micros

BATCHES_KEPT: Final = 40_000
"""Batches whose instants are kept for later readers."""

Key = tuple[int, str, int]
"""Producer index, topic, partition: the scope of record numbers."""


class _Known:
    """Batches of one key, by first record."""

    __slots__ = ("batches", "firsts", "waiting")

    def __init__(self) -> None:
        self.firsts: list[int] = []
        self.batches: dict[int, tuple[Micros, NDArray[np.int32]]] = {}
        self.waiting: list[tuple[int, int, Micros]] = []
        """Reads of batches without a row yet: first record, count, instant; sorted."""


class Latency:
    """Both distributions, fed with rows."""

    def __init__(self, batches_kept: int = BATCHES_KEPT) -> None:
        self._produce = Histogram()
        self._end_to_end = Histogram()
        self._known: dict[Key, _Known] = {}
        self._ages: deque[tuple[Key, int]] = deque()
        self._batches_kept = batches_kept
        self._forgotten = 0

    def batch(self, row: ClientBatchesRow) -> None:
        """Adds the outcome of a producer's batch."""
        at, latencies = row[ClientBatches.T_US], row[ClientBatches.LATENCY_US]
        if row[ClientBatches.OUTCOME] == "ok":
            self._produce.add(latencies)
        producer, first = row[ClientBatches.PRODUCER_INDEX], row[ClientBatches.FIRST_RECORD]
        key = (producer, row[ClientBatches.TOPIC], row[ClientBatches.PARTITION])
        known = self._known.get(key) or self._known.setdefault(key, _Known())
        if known.firsts and first < known.firsts[-1]:
            insort(known.firsts, first)
        else:
            known.firsts.append(first)
        known.batches[first] = (at, latencies)
        self._ages.append((key, first))
        if len(self._ages) > self._batches_kept:
            self._forget()
        if known.waiting:
            self._serve(known, first, row[ClientBatches.RECORD_COUNT])

    def read(self, row: ReadsRow) -> None:
        """Adds consecutive records of one producer that a consumer got, of one batch or several."""
        producer = row[Reads.PRODUCER_INDEX]
        if producer < 0:
            return
        key = (producer, row[Reads.TOPIC], row[Reads.PARTITION])
        known = self._known.get(key) or self._known.setdefault(key, _Known())
        first, count, at = row[Reads.FIRST_RECORD], row[Reads.RECORD_COUNT], row[Reads.T_US]
        self._take(known, first, count, at)
        if len(known.waiting) > self._batches_kept:
            self._forgotten += known.waiting.pop(0)[1]

    def report(self) -> dict[str, dict[str, int]]:
        """``produce`` and ``end_to_end``; ``unmatched``: records read whose batch was unknown."""
        end_to_end = self._end_to_end.summary()
        waiting = (count for known in self._known.values() for _, count, _ in known.waiting)
        unmatched = self._forgotten + sum(waiting)
        if unmatched:
            end_to_end["unmatched"] = unmatched
        return {"produce": self._produce.summary(), "end_to_end": end_to_end}

    def _take(self, known: _Known, first: int, count: int, at: Micros) -> None:
        """Counts records batch by batch; the rest waits from the first one without its batch."""
        while count > 0:
            done = self._count(known, first, count, at)
            if not done:
                insort(known.waiting, (first, count, at))
                return
            first += done
            count -= done

    def _count(self, known: _Known, first: int, count: int, at: Micros) -> int:
        """Counts records of the batch that has the first of them; returns their number."""
        batch = known.batches.get(first)
        start = first
        if batch is None:
            place = bisect_right(known.firsts, first) - 1
            if place < 0:
                return 0
            start = known.firsts[place]
            batch = known.batches[start]
            if first >= start + len(batch[1]):
                return 0
        outcome_at, latencies = batch
        skipped = first - start
        found = latencies[skipped : skipped + count]
        self._end_to_end.add(found, at - outcome_at)
        return len(found)

    def _serve(self, known: _Known, first: int, count: int) -> None:
        served = [w for w in known.waiting if first <= w[0] < first + count]
        if served:
            known.waiting = [w for w in known.waiting if not first <= w[0] < first + count]
        for read_first, read_count, at in served:
            self._take(known, read_first, read_count, at)

    def _forget(self) -> None:
        key, first = self._ages.popleft()
        known = self._known[key]
        if known.batches.pop(first, None) is not None:
            known.firsts.remove(first)
