"""Places of rows on one line of whole numbers: what a row belongs to first, then its own number.

Records of one producer in one partition, offsets of one log, or requests of one client to one
broker follow one another on it, so that a search among sorted places is a join.
"""

from typing import Final

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

    def _placed(self, owners: Numbers, number: Numbers) -> Numbers:
        keys, places = np.unique(owners, return_inverse=True)
        known = [self._numbers.setdefault(each, len(self._numbers)) for each in keys.tolist()]
        found: Numbers = (np.array(known, np.int64)[places] << NUMBER_BITS) + number
        return found

    def _in_partition(self, rows: pa.Table, other: str) -> Numbers:
        topic = tables.codes(rows["topic"], self._texts) << _PARTITION_BITS
        # A record that was refused before it had a partition has -1, and so has a row of no one.
        partition = (topic + 1 + rows["partition"].to_numpy()) << _OTHER_BITS
        found: Numbers = partition + 1 + rows[other].to_numpy()
        return found


class Records(_Owners):
    """Records of a producer in a partition, by their numbers."""

    def placed(self, rows: pa.Table) -> Numbers:
        """Places of the first record of each row."""
        owners = self._in_partition(rows, "producer_index")
        return self._placed(owners, rows["first_record"].to_numpy())


class Offsets(_Owners):
    """Offsets of a partition's log on a broker."""

    def placed(self, rows: pa.Table) -> Numbers:
        """Places of the base offset of each row."""
        return self._placed(self._in_partition(rows, "broker"), rows["base_offset"].to_numpy())


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
