"""Judges a mirror: records that the target cluster has, and groups that read them there.

Definitions, for one mirrored topic; a record's copy counts if it is in its final leader's log and
readers of committed data see it:

* ``missing``: acknowledged records without a copy, lost if the source cluster were lost at the end
  of the run (the recovery point).
* ``duplicated``: copies of records beyond the first.

For each group whose offsets are translated, over both clusters together:

* ``skipped``: records whose copy lies before the group's position there, and which the group got in
  neither cluster.
* ``reread``: deliveries of records to the group beyond the first.
* ``away_us``: from the group's last record in the source cluster to its first one in the target
  cluster, longest partition (the recovery time); absent if it never read in both.

The trace row of the mirror's encoding maps copies to records.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from sim.checking.outcomes.history import PartitionHistory
from sim.checking.outcomes.record_keys import (
    Keys,
    Made,
    joined,
    key_of,
    origins,
    place_of,
    row_of,
    visible,
)
from sim.ids import Offset
from sim.trace.rows.clients import Positions, PositionsRow, Reads, ReadsRow
from sim.trace.rows.mirrors import Mirrored, MirroredRow
from sim.units import Micros

COUNTS: Final = ("missing", "duplicated", "skipped", "reread")
"""The numbers of the verdict, in its order."""

EXAMPLES: Final = 10


@dataclass(slots=True)
class _Read:
    """Reads of one group in both clusters."""

    parts: list[Keys] = field(default_factory=list)
    last_us: dict[int, Micros] = field(default_factory=dict)
    """In the source cluster, by partition: instant of its last record."""
    first_us: dict[int, Micros] = field(default_factory=dict)
    """In the target cluster, by partition: instant of its first record."""
    copies: list[tuple[int, int, int]] = field(default_factory=list)
    """Partition, first number and end of the copies that it got."""
    reached: dict[int, Offset] = field(default_factory=dict)
    """In the target cluster, by partition: the greatest position."""

    def reach(self, partition: int, offset: Offset) -> None:
        self.reached[partition] = max(offset, self.reached.get(partition, 0))


class Mirroring:
    """One mirror: listens to the traces of both clusters, and judges at the end of the run.

    Args:
        producer_index: The mirror's number in the target cluster.
        source: The topic.
        target: Its name in the target cluster.
        groups: Groups whose offsets are translated.
    """

    def __init__(
        self, producer_index: int, source: str, target: str, groups: tuple[str, ...]
    ) -> None:
        self._index = producer_index
        self.source = source
        self.target = target
        self._made: dict[int, list[Made]] = {}
        self._groups = {group: _Read() for group in groups}

    def mirrored(self, row: MirroredRow) -> None:
        """Adds copies that the mirror encoded, again when their batch is renumbered or split."""
        if row[Mirrored.PRODUCER_INDEX] == self._index:
            first, count = row[Mirrored.FIRST_RECORD], row[Mirrored.RECORD_COUNT]
            producer, partition = row[Mirrored.SOURCE_PRODUCER], row[Mirrored.SOURCE_PARTITION]
            key = key_of(producer, partition, row[Mirrored.SOURCE_RECORD])
            made = self._made.setdefault(row[Mirrored.PARTITION], [])
            made.append(Made(first, first + count, key))

    def read_source(self, row: ReadsRow) -> None:
        """Adds a poll in the source cluster."""
        group = self._groups.get(row[Reads.GROUP])
        if group is not None and row[Reads.TOPIC] == self.source:
            partition = row[Reads.PARTITION]
            first = key_of(row[Reads.PRODUCER_INDEX], partition, row[Reads.FIRST_RECORD])
            group.parts.append(row_of(first, row[Reads.RECORD_COUNT]))
            group.last_us[partition] = row[Reads.T_US]

    def read_target(self, row: ReadsRow) -> None:
        """Adds a poll in the target cluster."""
        group = self._groups.get(row[Reads.GROUP])
        if group is None or row[Reads.TOPIC] != self.target:
            return
        partition, first = row[Reads.PARTITION], row[Reads.FIRST_RECORD]
        group.reach(partition, row[Reads.LAST_OFFSET] + 1)
        if row[Reads.PRODUCER_INDEX] == self._index:
            group.copies.append((partition, first, first + row[Reads.RECORD_COUNT]))
            group.first_us.setdefault(partition, row[Reads.T_US])

    def position(self, row: PositionsRow) -> None:
        """Adds a consumer's start position in the target cluster."""
        group = self._groups.get(row[Positions.GROUP])
        if group is not None and row[Positions.TOPIC] == self.target:
            group.reach(row[Positions.PARTITION], row[Positions.OFFSET])

    def verdict(
        self, source: Iterable[PartitionHistory], target: Iterable[PartitionHistory]
    ) -> dict[str, object]:
        """Counts, of each group too, and the first examples."""
        numbered = {partition: origins(rows) for partition, rows in self._made.items()}
        places = list(self._places(target, numbered))
        copies = joined(keys for _, keys, _ in places)
        acked = joined(key for history in source for key in _acked(history))
        once = np.unique(copies)
        missing = np.setdiff1d(acked, once)
        found: dict[str, object] = {
            "missing": len(missing),
            "duplicated": len(copies) - len(once),
            "skipped": 0,
            "reread": 0,
            "groups": {},
            "examples": {"missing": [_example(int(key)) for key in missing[:EXAMPLES]]},
        }
        groups: dict[str, dict[str, int]] = {}
        for name, read in self._groups.items():
            groups[name] = _of_group(read, places, numbered)
        for count in ("skipped", "reread"):
            found[count] = sum(group[count] for group in groups.values())
        away = [group["away_us"] for group in groups.values() if "away_us" in group]
        if away:
            found["away_max_us"] = max(away)
        return found | {"groups": groups}

    def _places(
        self, target: Iterable[PartitionHistory], numbered: dict[int, Keys]
    ) -> Iterator[tuple[int, Keys, Keys]]:
        """Partition, keys and offsets of the copies that readers see."""
        for history in target:
            for held in visible(history):
                if held.producer_index == self._index:
                    first, count = held.first_record, held.record_count
                    offsets = row_of(held.base_offset, count)
                    yield history.number, numbered[history.number][first : first + count], offsets


def _of_group(
    read: _Read, places: list[tuple[int, Keys, Keys]], numbered: dict[int, Keys]
) -> dict[str, int]:
    got = joined(
        [*read.parts, *(numbered[partition][first:stop] for partition, first, stop in read.copies)]
    )
    passed = joined(keys[offsets < read.reached.get(p, 0)] for p, keys, offsets in places)
    found = {
        "skipped": len(np.setdiff1d(passed, got)),
        "reread": len(got) - len(np.unique(got)),
    }
    away = [first - read.last_us[p] for p, first in read.first_us.items() if p in read.last_us]
    if away:
        found["away_us"] = max(away)
    return found


def _acked(history: PartitionHistory) -> Iterator[Keys]:
    for producer, numbers in history.acked.items():
        for start, stop in numbers:
            yield row_of(key_of(producer, history.number, start), stop - start)


def _example(key: int) -> dict[str, int]:
    producer, partition, record = place_of(key)
    return {"producer_index": producer, "partition": partition, "record": record}
