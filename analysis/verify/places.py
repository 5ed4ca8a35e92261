"""Places of rows on one line of whole numbers: what a row belongs to first, then its own number.

Records of one producer in one partition, offsets of one log, or requests of one client to one
broker follow one another on it, so that a search among sorted places is a join, and ranges of
places are added up at their ends.
"""

from collections.abc import Mapping
from typing import ClassVar, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.spark import tables

Numbers = npt.NDArray[np.int64]

NUMBER_BITS: Final = 40
"""Bits of a row's own number: a record's, an offset, a request's correlation."""

_PARTITION_BITS: Final = 24
_OTHER_BITS: Final = 20


class _Owners:
    """Small numbers of what rows belong to, in the order in which it was found."""

    def __init__(self) -> None:
        self._texts: dict[str, int] = {}
        self._numbers: dict[int, int] = {}

    def _numbered(self, owners: Numbers) -> Numbers:
        keys, places = np.unique(owners, return_inverse=True)
        known = [self._numbers.setdefault(each, len(self._numbers)) for each in keys.tolist()]
        found: Numbers = np.array(known, np.int64)[places]
        return found

    def _placed(self, owners: Numbers, number: Numbers) -> Numbers:
        found: Numbers = (self._numbered(owners) << NUMBER_BITS) + number
        return found


class _InPartitions(_Owners):
    """Owners that are something of a partition, by a column of numbers from -1 on."""

    other: ClassVar[str]

    def owners(self) -> list[tuple[str, int, int]]:
        """Topic, partition and third number of each owner, in the order of its own number."""
        texts = list(self._texts)
        return [
            (
                texts[owner >> _OTHER_BITS + _PARTITION_BITS],
                (owner >> _OTHER_BITS) % (1 << _PARTITION_BITS) - 1,
                owner % (1 << _OTHER_BITS) - 1,
            )
            for owner in self._numbers
        ]

    def _of(self, rows: pa.Table) -> Numbers:
        topic = tables.codes(rows["topic"], self._texts) << _PARTITION_BITS
        # A record that was refused before it had a partition has -1, and so has a row of no one.
        partition = (topic + 1 + rows["partition"].to_numpy()) << _OTHER_BITS
        found: Numbers = partition + 1 + rows[self.other].to_numpy()
        return found


class Records(_InPartitions):
    """Records of a producer in a partition, by their numbers."""

    other = "producer_index"

    def placed(self, rows: pa.Table) -> Numbers:
        """Places of the first record of each row."""
        return self._placed(self._of(rows), rows["first_record"].to_numpy())


class Offsets(_InPartitions):
    """Offsets of a partition's log on a broker."""

    other = "broker"

    def placed(self, rows: pa.Table) -> Numbers:
        """Places of the base offset of each row."""
        return self._placed(self._of(rows), rows["base_offset"].to_numpy())

    def logs(self, rows: pa.Table) -> Numbers:
        """Number of each row's log, see :meth:`owners`."""
        return self._numbered(self._of(rows))


class Requests(_Owners):
    """Requests of a client to a broker, by their correlations."""

    def placed(self, rows: pa.Table, client: str, broker: str) -> Numbers:
        """Places of the request of each row.

        Args:
            rows: Rows with a column ``correlation``.
            client: Column of the client's name.
            broker: Column of the broker's number.
        """
        owners = tables.codes(rows[client], self._texts) << _OTHER_BITS
        return self._placed(owners + 1 + rows[broker].to_numpy(), rows["correlation"].to_numpy())


class Levels:
    """Numbers of ranges that hold each place, kept as changes of that number."""

    def __init__(self) -> None:
        self._parts: list[tuple[Numbers, Numbers]] = []

    def add(self, begin: Numbers, count: Numbers) -> None:
        """Adds ranges of so many places from each beginning on; those without any are none."""
        is_any = count > 0
        begin, count = begin[is_any], count[is_any]
        ends = np.ones(len(begin), np.int64)
        edges = np.concatenate([begin, begin + count])
        # Where one range ends and the next begins nothing changes: most of them leave no edge.
        self._parts.append(_changes(edges, np.concatenate([ends, -ends])))

    def edges(self) -> tuple[Numbers, Numbers]:
        """Places at which the number of ranges changes, in order, and by how much."""
        nothing = np.zeros(0, np.int64)
        at, change = zip(*self._parts, strict=True) if self._parts else ((nothing,), (nothing,))
        found = _changes(np.concatenate(at), np.concatenate(change))
        self._parts = [found]
        return found

    def ranges(self) -> tuple[Numbers, Numbers]:
        """Begin and end of ranges that do not overlap, in order, with the places held by any."""
        at, change = self.edges()
        is_held = np.cumsum(change) > 0
        begin = np.flatnonzero(is_held)
        return at[begin], at[begin + 1]


def together(levels: Mapping[str, Levels]) -> dict[str, Numbers]:
    """Ranges within which no number changes and some is not 0, in order.

    Returns:
        Columns ``begin`` and ``count``, and of each name the number of ranges that hold a place.
    """
    edges = {name: each.edges() for name, each in levels.items()}
    at = np.unique(np.concatenate([places for places, _ in edges.values()]))
    found = {"begin": at, "count": np.diff(at, append=0)}
    for name, (places, change) in edges.items():
        changes = np.zeros(len(at), np.int64)
        changes[np.searchsorted(at, places)] = change
        found[name] = np.cumsum(changes)
    is_held = sum(found[name] for name in levels) > 0
    return {name: column[is_held] for name, column in found.items()}


def _changes(at: Numbers, change: Numbers) -> tuple[Numbers, Numbers]:
    places, inverse = np.unique(at, return_inverse=True)
    summed = np.bincount(inverse, weights=change, minlength=len(places)).astype(np.int64)
    is_any = summed != 0
    return places[is_any], summed[is_any]
