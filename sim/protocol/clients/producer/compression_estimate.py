"""Estimated size of a compressed batch, by which a producer fills its batches.

A batch is compressed when it is drained; until then its size is estimated by the ratio of former
batches. An optimistic estimate makes a batch larger than ``batch.size``.

All arithmetic is that of Java's 32-bit floats, so that a batch takes the same records as Kafka's.

Source: ``CompressionRatioEstimator``, ``MemoryRecordsBuilder.estimatedBytesWritten``,
``hasRoomFor``; KIP-126.
"""

import struct

from sim.units import Bytes

_SINGLE = struct.Struct("<f")


def _single(number: float) -> float:
    """The nearest 32-bit float."""
    rounded: float = _SINGLE.unpack(_SINGLE.pack(number))[0]
    return rounded


_FACTOR = _single(1.05)
"""``COMPRESSION_RATE_ESTIMATION_FACTOR``: estimates are a little larger than the ratio."""

_IMPROVING_STEP = _single(0.005)
_DETERIORATING_STEP = _single(0.05)


class RatioEstimator:
    """The compression ratio of one producer's topic: compressed bytes by uncompressed bytes.

    It follows a worse ratio at once and a better one slowly.
    """

    __slots__ = ("_worst", "ratio")

    def __init__(self) -> None:
        self.ratio = 1.0
        """Expected ratio of the next batch; 32 bits."""
        self._worst = 1.0

    def bound(self, size: Bytes) -> Bytes:
        """Largest expected size of records in any batch so far."""
        self._worst = max(self._worst, self.ratio)
        return int(size * self._worst * _FACTOR) + 1

    def observe(self, compressed: Bytes, raw: Bytes) -> float:
        """A batch was closed: its records had ``raw`` bytes and have ``compressed`` now.

        Returns:
            The batch's own ratio.
        """
        observed = _single(compressed / raw)
        ratio = self.ratio
        self._worst = max(self._worst, ratio)
        if observed > ratio:
            self.ratio = max(_single(ratio + _DETERIORATING_STEP), observed)
        elif observed < ratio:
            self.ratio = max(_single(ratio - _IMPROVING_STEP), observed)
        return observed

    def reset(self, observed: float) -> None:
        """A batch with that ratio was too large for the broker: expects no compression."""
        self.ratio = max(1.0, observed)


class Packing:
    """Records of one open batch, at their expected compressed size."""

    __slots__ = ("guess", "observed", "ratio", "raw")

    def __init__(self, ratio: float, raw: Bytes = 0) -> None:
        """Begins with ``raw`` bytes of records; keeps the present ratio."""
        self.ratio = ratio
        self.raw = raw
        """Bytes of the records, uncompressed."""
        self.guess = self._guess(raw)
        """Their expected bytes, without the batch's header."""
        self.observed = 1.0
        """Ratio of the closed batch."""

    def copy(self) -> "Packing":
        """A copy, to try more records."""
        return Packing(self.ratio, self.raw)

    def grow(self, raw: Bytes) -> Bytes:
        """Adds records of so many bytes; returns the growth of the estimate."""
        before = self.guess
        self.raw += raw
        self.guess = self._guess(self.raw)
        return self.guess - before

    def fitting(self, size: Bytes, space: Bytes, most: int) -> int:
        """Number of records of the size that fit, one after the other, at most ``most``.

        Each is counted uncompressed when it is checked, and compressed afterwards.
        """
        if most <= 0 or size > space:
            return 0
        limit = self.guess + space - size
        if self._guess(self.raw + (most - 1) * size) <= limit:
            return most
        low, high = 1, most
        while high - low > 1:
            middle = (low + high) // 2
            if self._guess(self.raw + (middle - 1) * size) <= limit:
                low = middle
            else:
                high = middle
        return low

    def reaching(self, size: Bytes, quota: Bytes, most: int) -> int:
        """Number of records of the size that grow the estimate by the quota; at most ``most``."""
        if quota <= 0:
            return 0
        target = self.guess + quota
        if most <= 0 or self._guess(self.raw + most * size) < target:
            return most
        low, high = 0, most
        while high - low > 1:
            middle = (low + high) // 2
            if self._guess(self.raw + middle * size) < target:
                low = middle
            else:
                high = middle
        return high

    def _guess(self, raw: Bytes) -> Bytes:
        return int(_single(_single(_single(raw) * self.ratio) * _FACTOR))
