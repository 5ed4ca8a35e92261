"""Provenance of a task's outputs: each names the input record that it was made from.

The payload of its value is followed by ``LQI1``, the input record's producer index, partition and
number, and which of that record's outputs this one is.

Source: our own.
"""

import struct
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.units import Bytes
from sim.wire.noise import Noise
from sim.wire.payload import MIN_VALUE_BYTES, Int64s

ORIGIN_MAGIC: Final = b"LQI1"

ORIGIN: Final = struct.Struct(">4siiqi")

ORIGIN_BYTES: Bytes = ORIGIN.size
"""24 bytes."""

OUTPUT_BYTES_MIN: Bytes = MIN_VALUE_BYTES + ORIGIN_BYTES
"""Smallest value of an output."""

_ROW: Final = np.dtype(
    [("magic", "S4"), ("producer", ">i4"), ("partition", ">i4"), ("number", ">i8"),
     ("ordinal", ">i4")]
)  # fmt: skip


class Origin(NamedTuple):
    """The input of one output; its topic is the one that the producer writes to."""

    producer_index: int
    partition: int
    number: int
    ordinal: int


def origin_of(value: bytes | None) -> Origin | None:
    """Origin in an output's value; ``None`` for any other value."""
    if value is None or len(value) < OUTPUT_BYTES_MIN:
        return None
    magic, producer, partition, number, ordinal = ORIGIN.unpack_from(value, MIN_VALUE_BYTES)
    return Origin(producer, partition, number, ordinal) if magic == ORIGIN_MAGIC else None


def origin_rows(
    producers: Int64s, partitions: Int64s, numbers: Int64s, ordinals: Int64s
) -> "OriginRows":
    """Origins of a batch's records, in order, encoded as they follow the payloads."""
    rows = np.empty(len(numbers), dtype=_ROW)
    rows["magic"] = ORIGIN_MAGIC
    rows["producer"] = producers
    rows["partition"] = partitions
    rows["number"] = numbers
    rows["ordinal"] = ordinals
    return OriginRows(np.frombuffer(rows.tobytes(), dtype=np.uint8))


class OriginRows(Noise):
    """Takes the place of noise in values: one row for each record of one batch."""

    __slots__ = ()

    def __init__(self, rows: NDArray[np.uint8]) -> None:
        super().__init__(rows, ORIGIN_BYTES)

    def rows(self, first_record: int, count: int) -> NDArray[np.uint8]:  # noqa: ARG002 - its batch's
        """The rows of all records of the batch."""
        return self._pool.reshape(count, ORIGIN_BYTES)
