"""Acknowledgements by both sides: as sent by brokers, and as received by producers.

From tables of the trace alone. A row of ``acknowledgements`` has offsets of the leader's log, and
``appends`` the records that the broker wrote there last before its response; of a batch that came
twice the broker acknowledges the first one's offsets (KIP-98). Only here the analysis reads
``appends``: an acknowledged batch may no longer be in any file. Counts are those of the checker's
:mod:`sim.checking.outcomes.verdict`:

* ``ok_unanswered``: a producer counts them as acknowledged, at a known offset, and no broker
  acknowledged them.
* ``answered_untold``: a broker acknowledged them, and their producer counts them neither as
  acknowledged nor as unknown, as after a lost response.

Spark is not involved: tables are read a row group at a time, and of an acknowledgement and of the
append behind it 48 bytes are held.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow.compute as pc

from analysis.spark import tables
from analysis.verify.places import Levels, Numbers, Offsets, Records

COUNTS: Final = ("ok_unanswered", "answered_untold")
"""The numbers of the verdict, in its order."""

_BATCHES: Final = (
    "topic", "partition", "producer_index", "first_record", "record_count", "base_offset",
    "outcome",
)  # fmt: skip
_ANSWERS: Final = ("t_us", "broker", "topic", "partition", "base_offset", "error")
_APPENDS: Final = (
    "t_us", "broker", "topic", "partition", "base_offset", "producer_index", "first_record",
    "record_count",
)  # fmt: skip


def counts(run: Path) -> Mapping[str, int]:
    """Records on which the two sides differ, by :data:`COUNTS`.

    Args:
        run: Run directory, with the trace tables ``client_batches``, ``acknowledgements`` and
            ``appends``.

    Raises:
        SimulationError: If a table is of another version, or cannot be read.
    """
    records = Records()
    placed, known = Levels(), Levels()
    for rows in tables.row_groups(run, "client_batches", _BATCHES):
        begin, count = records.placed(rows), rows["record_count"].to_numpy().astype(np.int64)
        is_ok = pc.equal(rows["outcome"], "ok").to_numpy()
        is_placed = is_ok & (rows["base_offset"].to_numpy() >= 0)
        is_known = is_ok | pc.equal(rows["outcome"], "unknown").to_numpy()
        placed.add(begin[is_placed], count[is_placed])
        known.add(begin[is_known], count[is_known])
    given = answered(run, records)
    return {"ok_unanswered": _beyond(placed, given), "answered_untold": _beyond(given, known)}


def answered(run: Path, records: Records) -> Levels:
    """Records of producers that brokers acknowledged."""
    offsets = Offsets()
    answers = _answers(run, offsets)
    found = Levels()
    kept: list[tuple[Numbers, Numbers, Numbers, Numbers]] = []
    known = np.unique(answers[0])
    for rows in tables.row_groups(run, "appends", _APPENDS):
        place = offsets.placed(rows)
        at = np.minimum(np.searchsorted(known, place), max(len(known) - 1, 0))
        is_answered = known[at] == place if len(known) else np.zeros(len(place), np.bool_)
        count = rows["record_count"].to_numpy().astype(np.int64)
        # Without a producer it is no record of a workload: it has no place among them.
        count[rows["producer_index"].to_numpy() < 0] = 0
        columns = place, rows["t_us"].to_numpy(), records.placed(rows), count
        kept.append(tuple(column[is_answered] for column in columns))
    place, t_us, begin, count = (np.concatenate(parts) for parts in zip(*kept, strict=True))
    last = _last_before(answers, (place, t_us))
    found.add(begin[last], count[last])
    return found


def _answers(run: Path, offsets: Offsets) -> tuple[Numbers, Numbers]:
    """Place and instant of each acknowledgement of a known offset."""
    parts = []
    for rows in tables.row_groups(run, "acknowledgements", _ANSWERS):
        good = pc.and_(pc.equal(rows["error"], "NONE"), pc.greater_equal(rows["base_offset"], 0))
        given = rows.filter(good)
        parts.append((offsets.placed(given), given["t_us"].to_numpy()))
    place, t_us = (np.concatenate(each) for each in zip(*parts, strict=True))
    return place, t_us


def _last_before(answers: tuple[Numbers, Numbers], appends: tuple[Numbers, Numbers]) -> Numbers:
    """Numbers of the last appends at the places of answers and not after them, each once."""
    place = np.concatenate([appends[0], answers[0]])
    t_us = np.concatenate([appends[1], answers[1]])
    own = np.arange(len(place))
    is_answer = own >= len(appends[0])
    order = np.lexsort((is_answer, t_us, place))
    # Of each row the last append up to it, in this order; -1 before the first.
    latest = np.maximum.accumulate(np.where(is_answer[order], -1, np.arange(len(order))))
    here = latest[is_answer[order]]
    same = (here >= 0) & (place[order][here] == place[order][is_answer[order]])
    found: Numbers = np.unique(order[here[same]])
    return found


def _beyond(some: Levels, others: Levels) -> int:
    """Number of places in some ranges and not in others."""
    begin, end = some.ranges()
    starts, stops = others.ranges()
    below = np.concatenate([[0], np.cumsum(stops - starts)])

    def covered(at: Numbers) -> Numbers:
        """Number of places of the others below each."""
        number = np.searchsorted(starts, at, side="right")
        ended = np.append(stops, 0)[number - 1]
        found: Numbers = below[number] - np.where(number > 0, np.maximum(ended - at, 0), 0)
        return found

    return int((end - begin - covered(end) + covered(begin)).sum())
