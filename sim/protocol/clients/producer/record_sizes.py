"""Sizes of encoded records, known before they are encoded.

Source: ``DefaultRecord.sizeInBytes``, ``recordSizeUpperBound``; ``DefaultRecordBatch``.
"""

from sim.protocol.clients.producer.events import TOMBSTONE, ArrivalSource
from sim.protocol.clients.producer.partitioner import KEY_BYTES
from sim.units import Bytes

BATCH_OVERHEAD: Bytes = 61
"""``DefaultRecordBatch.RECORD_BATCH_OVERHEAD``."""

_RECORD_OVERHEAD_MAX: Bytes = 21

WIDTH_BOUNDS = (0, *(1 << (7 * width - 1) for width in range(1, 11)))
"""A number below ``WIDTH_BOUNDS[w]`` takes at most ``w`` bytes as a zigzag varint."""


def varint_width(number: int) -> int:
    """Bytes of a zigzag varint."""
    magnitude = number if number >= 0 else ~number
    return max(1, (magnitude.bit_length() + 7) // 7)


TOMBSTONE_HEADER_BYTES: Bytes = 1 + 2 + 1 + 24
"""Encoded size of the header that identifies a tombstone: ``lq`` and the payload."""


class RecordSizes:
    """Encoded sizes of records that differ only in their offset and timestamp deltas."""

    __slots__ = ("table", "upper_bound")

    def __init__(
        self,
        value_bytes: Bytes,
        *,
        keyed: bool,
        header_count: int = 0,
        header_bytes: Bytes = 0,
        tombstone: bool = False,
    ) -> None:
        key = varint_width(KEY_BYTES) + KEY_BYTES if keyed else 1
        value = varint_width(value_bytes) + value_bytes
        if tombstone:
            value = 1
            header_count += 1
            header_bytes += TOMBSTONE_HEADER_BYTES
        fields = key + value + varint_width(header_count) + header_bytes
        self.table = tuple(
            tuple(_framed(1 + stamp + offset + fields) for offset in range(6))
            for stamp in range(11)
        )
        """``table[timestamp delta's width][offset delta's width]``."""
        self.upper_bound: Bytes = BATCH_OVERHEAD + _RECORD_OVERHEAD_MAX + fields
        """``estimateSizeInBytesUpperBound``: largest size of a batch of one record."""

    @classmethod
    def of(
        cls, source: ArrivalSource, value_bytes: Bytes | None = None, *, tombstone: bool = False
    ) -> "RecordSizes":
        """Sizes of a workload's records, by default with the largest value, or of tombstones."""
        return cls(
            source.value_bytes if value_bytes is None else value_bytes,
            keyed=source.keyed,
            header_count=source.header_count,
            header_bytes=source.header_bytes,
            tombstone=tombstone,
        )


def _framed(body: Bytes) -> Bytes:
    return varint_width(body) + body


class Sizing:
    """Sizes of one workload's records, by the sizes of their values."""

    __slots__ = ("_by_value", "_source", "upper_bound", "values")

    def __init__(self, source: ArrivalSource) -> None:
        self._source = source
        self.values = RecordSizes.of(source)
        """Sizes of records with the largest value."""
        tombstones = RecordSizes.of(source, tombstone=True)
        self._by_value = {source.value_bytes: self.values, TOMBSTONE: tombstones}
        self.upper_bound: Bytes = max(self.values.upper_bound, tombstones.upper_bound)
        """Largest size of a batch of any record."""

    def of(self, value_size: Bytes) -> RecordSizes:
        """Sizes of records with a value of so many bytes, or of tombstones."""
        found = self._by_value.get(value_size)
        if found is None:
            found = self._by_value[value_size] = RecordSizes.of(self._source, value_size)
        return found
