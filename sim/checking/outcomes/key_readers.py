"""Readers' views of each key of a compacted topic, and resurrected keys.

A reader that builds a table from a compacted topic keeps a key until it reads the key's tombstone.
If it passes after a cleaner has removed the tombstone, it keeps the key for good: the key is
*resurrected*. Lawful if the reader came later than ``delete.retention.ms`` after the tombstone's
first cleaning; tombstones removed before that count as ``early_tombstones`` as well.

Source: KAFKA-4545; the failure catalogue, entry D7.
"""

from sim.checking.outcomes.compaction import Keys
from sim.ids import Offset
from sim.trace.rows.clients import Reads, ReadsRow


class _Reader:
    """One consumer without a group, or one group."""

    __slots__ = ("end", "held")

    def __init__(self) -> None:
        self.end: Offset = 0
        self.held: dict[int, Offset] = {}
        """Offset of its present value, by key."""


class KeyReaders:
    """All readers of one partition of a compacted topic."""

    __slots__ = ("_readers",)

    def __init__(self) -> None:
        self._readers: dict[str, _Reader] = {}

    def read(self, row: ReadsRow, keys: Keys) -> None:
        """Adds a run of records that a reader got."""
        name = row[Reads.GROUP] or row[Reads.CONSUMER]
        reader = self._readers.get(name)
        if reader is None:
            reader = self._readers[name] = _Reader()
        base = row[Reads.BASE_OFFSET]
        reader.end = max(reader.end, row[Reads.LAST_OFFSET] + 1)
        read = keys.of(row[Reads.PRODUCER_INDEX], row[Reads.FIRST_RECORD], row[Reads.RECORD_COUNT])
        for place, (key, is_tombstone) in enumerate(read):
            if is_tombstone:
                reader.held.pop(key, None)
            elif key >= 0:
                reader.held[key] = base + place

    def resurrected(self, deleted: dict[int, Offset]) -> int:
        """Number of keys that readers hold after passing their last record, a tombstone.

        Args:
            deleted: Keys without a record in the final log but perhaps a tombstone, and the offset
            of the last tombstone.
        """
        return sum(
            held < deleted[key] < reader.end
            for reader in self._readers.values()
            for key, held in reader.held.items()
            if key in deleted
        )
