"""A whole batch with all fixed bytes in place: numbers are filled in, then it is copied.

Most batches of a producer have records of one size whose timestamps lie within 63 ms, so that only
numbers, instants and keys differ between them, each at a known place. Filling the template takes a
handful of numpy calls for a batch of any number of records.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from crc32c import crc32c
from numpy.typing import NDArray

from sim.ids import NO_EPOCH, ProducerId
from sim.units import Bytes
from sim.wire.record_batch import CHECKED, HEADER_BYTES, LEAD, LOG_OVERHEAD, MAGIC

STAMP_MAX: Final = 63
"""Largest timestamp delta, in milliseconds, that takes one byte."""

_HEAD: Final = np.dtype([("producer", ">i4"), ("number", ">i8"), ("intended", ">i8")])
_UNFILLED: Final = -2


class _Block:
    """Rows of one size within the template."""

    __slots__ = ("end", "heads", "keys", "position", "row_bytes", "stamps", "start")

    def __init__(self, rows: NDArray[np.void], start: int, buffer: bytearray, at: int) -> None:
        fields = rows.dtype.fields
        assert fields is not None, "rows have named columns"
        self.row_bytes: Bytes = rows.dtype.itemsize
        self.position = at
        self.start = start
        self.end = start + len(rows)
        names = ["stamp", "head"] + (["key"] if "key" in fields else [])
        here = np.frombuffer(
            buffer,
            np.dtype(
                {
                    "names": names,
                    "formats": ["u1", f"V{_HEAD.itemsize}", "V8"][: len(names)],
                    "offsets": [
                        fields[name][1] for name in ("timestamp", "producer", "key")[: len(names)]
                    ],
                    "itemsize": self.row_bytes,
                }
            ),
            len(rows),
            at,
        )
        self.stamps = here["stamp"]
        self.heads = here["head"]
        self.keys = here["key"] if len(names) > 2 else None


class BatchTemplate:
    """Batches of one record size, with keys or without, of up to ``capacity`` records."""

    __slots__ = (
        "_blocks", "_buffer", "_instants", "_numbers", "_producer", "_producers", "_ranks",
        "_stage", "_stamps", "capacity",
    )  # fmt: skip

    def __init__(self, blocks: Sequence[NDArray[np.void]]) -> None:
        """Builds the template.

        Args:
            blocks: All rows, from row 0 on, fixed bytes in place, cut where their size changes;
                columns ``timestamp`` (one byte), ``producer``, ``number``, ``intended`` (these
                three side by side) and ``key`` (eight digits) if there are keys.
        """
        self._buffer = bytearray(HEADER_BYTES) + b"".join(block.tobytes() for block in blocks)
        self._blocks: list[_Block] = []
        rows, at = 0, HEADER_BYTES
        for block in blocks:
            self._blocks.append(_Block(block, rows, self._buffer, at))
            rows += len(block)
            at += block.nbytes
        self.capacity = rows
        self._ranks = np.arange(rows, dtype=np.int64)
        heads = np.zeros(rows, dtype=_HEAD)
        self._stage = heads.view(f"V{_HEAD.itemsize}")
        self._producers = heads["producer"]
        self._numbers = heads["number"]
        self._instants = heads["intended"]
        self._stamps = np.zeros(rows, dtype=np.uint8)
        self._producer = _UNFILLED

    def fill(
        self,
        producer_index: int,
        first_record: int,
        intended_us: NDArray[np.int64],
        deltas_ms: NDArray[np.int64],
        digits: NDArray[np.uint8] | None,
    ) -> Bytes:
        """Writes a batch's numbers into the template; returns the bytes it takes up.

        Args:
            producer_index: Of the simulated producer.
            first_record: Number of the first record.
            intended_us: For each record; at most ``capacity`` of them.
            deltas_ms: Timestamp of each less the first one's, from 0 to ``STAMP_MAX``.
            digits: The keys' digits, eight bytes to a record, if there are keys.
        """
        count = len(intended_us)
        if producer_index != self._producer:
            self._producers[:] = producer_index
            self._producer = producer_index
        np.add(self._ranks[:count], first_record, out=self._numbers[:count])
        self._instants[:count] = intended_us
        np.left_shift(deltas_ms, 1, out=self._stamps[:count], casting="unsafe")
        end = HEADER_BYTES
        for block in self._blocks:
            start, stop = block.start, min(block.end, count)
            if stop <= start:
                break
            rows = stop - start
            block.heads[:rows] = self._stage[start:stop]
            block.stamps[:rows] = self._stamps[start:stop]
            if digits is not None and block.keys is not None:
                block.keys[:rows] = digits[start:stop].view("V8")[:, 0]
            end = block.position + rows * block.row_bytes
        return end

    def batch(
        self,
        end: Bytes,
        count: int,
        base_timestamp_ms: int,
        max_timestamp_ms: int,
        producer_id: ProducerId,
        producer_epoch: int,
        base_sequence: int,
        attributes: int,
    ) -> bytes:
        """A copy of the first ``end`` bytes with the header of an uncompressed batch."""
        buffer = self._buffer
        CHECKED.pack_into(
            buffer, HEADER_BYTES - CHECKED.size, attributes, count - 1, base_timestamp_ms,
            max_timestamp_ms, producer_id, producer_epoch, base_sequence, count,
        )  # fmt: skip
        view = memoryview(buffer)
        crc = crc32c(view[HEADER_BYTES - CHECKED.size : end])
        LEAD.pack_into(buffer, 0, 0, end - LOG_OVERHEAD, NO_EPOCH, MAGIC, crc)
        return view[:end].tobytes()
