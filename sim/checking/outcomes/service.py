"""Gaps of service of partitions: records waited, and none was acknowledged, or delivered.

A record *waits for its producer* from the instant at which it was meant to be sent until the
producer has any outcome. Where that is a failure that a retry might have mended, the application
waits for as long as it takes until its next record, if that is no more than :data:`DOWN_FROM`: a
client without retries is not served either. A *produce gap* is a stretch of time throughout which
some record of the partition, or its application, waits and none is acknowledged. A record *waits
for its readers* from the same instant until a consumer gets it or, if none ever does, until the
traffic of the partition ends; a *fetch gap* is a stretch throughout which some acknowledged record
waits so and no consumer gets any record of the partition, on partitions that were read. A partition
without traffic has no gap.

Twenty-four bytes are kept for each batch of a client, and sixteen for each read.
"""

from array import array
from typing import Final

import numpy as np
from numpy.typing import NDArray

from sim.error_codes import RETRIABLE_NAMES
from sim.trace.rows.clients import Reads, ReadsRow
from sim.trace.rows.log import ClientBatches, ClientBatchesRow
from sim.units import LONG_AGO, NEVER, SECOND, Micros

DOWN_FROM: Final[Micros] = SECOND
"""Length from which a gap counts as an outage: a client's retry takes less."""

_UNSEEN: Final[Micros] = 1 << 62

_NOT_ACKED: Final = -2
"""In the place of an offset; -1 is an acknowledgement without one, with ``acks=0``."""

_FAILED: Final = -3
"""In the place of an offset: not acknowledged, by an error that a retry might have mended."""

Instants = NDArray[np.int64]


class PartitionService:
    """Gaps of one partition."""

    __slots__ = (
        "_offsets", "_read_at", "_read_from", "_read_to", "_to", "_waits_from", "_waits_to",
    )  # fmt: skip

    def __init__(self) -> None:
        self._waits_from = array("q")
        self._waits_to = array("q")
        self._offsets = array("q")
        self._read_at = array("q")
        self._read_from = array("q")
        self._read_to = -1
        self._to: Micros = -_UNSEEN

    def batch(self, row: ClientBatchesRow) -> None:
        """Adds the outcome of a batch, whose records are in the order of their instants."""
        at, latencies = row[ClientBatches.T_US], row[ClientBatches.LATENCY_US]
        meant = at
        if len(latencies):
            meant = at - int(latencies[0])
            self._to = max(self._to, at - int(latencies[-1]))
        is_acked = row[ClientBatches.OUTCOME] == "ok"
        if is_acked:
            self._to = max(self._to, at)
        self._waits_from.append(meant)
        self._waits_to.append(at)
        if is_acked:
            self._offsets.append(row[ClientBatches.BASE_OFFSET])
        else:
            may_be_retried = row[ClientBatches.ERROR] in RETRIABLE_NAMES
            self._offsets.append(_FAILED if may_be_retried else _NOT_ACKED)

    def read(self, row: ReadsRow) -> None:
        """Adds records that a consumer got."""
        self._read_at.append(row[Reads.T_US])
        self._read_from.append(row[Reads.BASE_OFFSET])
        self._read_to = max(self._read_to, row[Reads.LAST_OFFSET])

    def report(self, from_us: Micros = LONG_AGO, to_us: Micros = NEVER) -> dict[str, int]:
        """``produce_us`` and ``fetch_us`` with ``…_from_us``; absent without traffic or readers.

        Of each gap the part in [from_us, to_us) counts. ``…_down_us`` is the sum of those longer
        than :data:`DOWN_FROM`.
        """
        found: dict[str, int] = {}
        if not self._waits_from:
            return found
        stretches, acked = self._unacknowledged()
        _put_gaps(found, "produce", _gaps(*_clipped(*stretches, from_us, to_us), acked))
        if self._read_at:
            unread = _clipped(*self._unread(), from_us, to_us)
            _put_gaps(found, "fetch", _gaps(*unread, _column(self._read_at)))
        return found

    def start(self) -> dict[str, int]:
        """Numbers of a partition whose first delivery took long.

        Returns:
            ``first_us``, its instant, and ``later_us``, ``later_from_us`` and ``later_down_us`` of
            the fetch gaps after it; empty if the wait was no longer than :data:`DOWN_FROM`.
        """
        if not self._read_at or not self._waits_from:
            return {}
        begins, lengths = _gaps(*self._unread(), _column(self._read_at))
        if not len(lengths) or lengths[0] <= DOWN_FROM:
            return {}
        first = int(begins[0] + lengths[0])
        found = {"first_us": first, "later_us": 0, "later_from_us": first, "later_down_us": 0}
        _put_gaps(found, "later", (begins[1:], lengths[1:]))
        return found

    def outages(self) -> list[tuple[Micros, Micros]]:
        """Beginnings and ends of the produce gaps longer than :data:`DOWN_FROM`."""
        stretches, acked = self._unacknowledged()
        begins, lengths = _gaps(*stretches, acked)
        long = lengths > DOWN_FROM
        return [
            (begin, begin + length)
            for begin, length in zip(begins[long].tolist(), lengths[long].tolist(), strict=True)
        ]

    def _unacknowledged(self) -> tuple[tuple[Instants, Instants], Instants]:
        """Stretches of waiting for the producer, and the instants of acknowledgements."""
        starts, ends = _column(self._waits_from), _column(self._waits_to)
        offsets = _column(self._offsets)
        stretches = _joined(*_united(starts, ends), np.unique(ends[offsets == _FAILED]))
        return stretches, ends[offsets > _NOT_ACKED]

    def _unread(self) -> tuple[Instants, Instants]:
        """Waiting times of the records of each read, and of those never read."""
        offsets, meant = _column(self._offsets), _column(self._waits_from)
        known = offsets >= 0
        offsets, meant = offsets[known], meant[known]
        read_at = _column(self._read_at)
        if not len(offsets):
            return read_at, read_at
        order = np.lexsort((meant, offsets))
        offsets, meant = offsets[order], meant[order]
        places = np.searchsorted(offsets, _column(self._read_from), side="right") - 1
        since = np.where(places >= 0, np.minimum(meant[np.maximum(places, 0)], read_at), read_at)
        never = meant[offsets > self._read_to]
        end = max(self._to, int(read_at[-1]))
        if not len(never) or int(never.min()) >= end:
            return since, read_at
        return np.append(since, never.min()), np.append(read_at, end)


def _column(values: "array[int]") -> Instants:
    return np.frombuffer(values, np.int64) if values else np.zeros(0, np.int64)


def _clipped(
    starts: Instants, stops: Instants, from_us: Micros, to_us: Micros
) -> tuple[Instants, Instants]:
    if from_us == LONG_AGO and to_us == NEVER:
        return starts, stops
    starts, stops = np.maximum(starts, from_us), np.minimum(stops, to_us)
    inside = starts < stops
    return starts[inside], stops[inside]


def _put_gaps(found: dict[str, int], name: str, gaps: tuple[Instants, Instants]) -> None:
    begins, lengths = gaps
    if not len(lengths):
        return
    longest = int(np.argmax(lengths))
    found[f"{name}_us"], found[f"{name}_from_us"] = int(lengths[longest]), int(begins[longest])
    found[f"{name}_down_us"] = int(lengths[lengths > DOWN_FROM].sum())


def _gaps(starts: Instants, stops: Instants, served: Instants) -> tuple[Instants, Instants]:
    """Beginnings and lengths of the stretches in [start, stop] without anything served.

    Ranges may overlap and touch: together they are the time of waiting. In order of time, so that
    of equal stretches the earliest comes first; empty if no range has a length.
    """
    if not len(starts):
        return starts, starts
    waits_from, waits_to = _united(starts, stops)
    points = np.unique(np.concatenate((waits_from, waits_to, served)))
    low, high = points[:-1], points[1:]
    place = np.searchsorted(waits_from, low, side="right") - 1
    inside = (place >= 0) & (high <= waits_to[np.maximum(place, 0)])
    return low[inside], (high - low)[inside]


def _united(starts: Instants, stops: Instants) -> tuple[Instants, Instants]:
    """Ranges without those that they overlap and touch, in order of time."""
    if not len(starts):
        return starts, stops
    order = np.argsort(starts, kind="stable")
    starts, reach = starts[order], np.maximum.accumulate(stops[order])
    return _merged(starts, reach, np.concatenate(([True], starts[1:] > reach[:-1])))


def _joined(starts: Instants, stops: Instants, failed: Instants) -> tuple[Instants, Instants]:
    """Ranges, the next one joined to each that ends by a failure shortly before it."""
    if not len(failed):
        return starts, stops
    place = np.minimum(np.searchsorted(failed, stops[:-1]), len(failed) - 1)
    is_joined = (failed[place] == stops[:-1]) & (starts[1:] - stops[:-1] <= DOWN_FROM)
    return _merged(starts, stops, np.concatenate(([True], ~is_joined)))


def _merged(
    starts: Instants, stops: Instants, begins: NDArray[np.bool_]
) -> tuple[Instants, Instants]:
    """Ranges of each run of ranges that begins where it says so."""
    firsts = np.flatnonzero(begins)
    return starts[firsts], stops[np.append(firsts[1:], len(starts)) - 1]
