"""Named random streams from one seed.

A stream is derived from the seed and its own name, so a new draw in one stream never moves another,
in whatever order streams are first used. Only ``random()`` is drawn: the one method whose sequence
Python keeps from version to version.
"""

import hashlib
import random
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray


class Stream:
    """One named stream of chance.

    Source: MadSim's lesson that one global generator makes each new draw shift all later ones.
    """

    __slots__ = ("_generator", "name", "unit")

    unit: Callable[[], float]
    """The next draw, uniform in [0, 1); the same object for the life of the stream."""

    def __init__(self, seed: int, name: str) -> None:
        self.name = name
        self._generator = random.Random(_digest(seed, name))
        self.unit = self._generator.random

    def reseed(self, seed: int) -> None:
        """Continues with the draws of the stream of that name from another seed."""
        self._generator.seed(_digest(seed, self.name))

    def below(self, bound: int) -> int:
        """A whole number, uniform in [0, bound)."""
        return int(self.unit() * bound)

    def between(self, low: int, high: int) -> int:
        """A whole number, uniform in [low, high]; ``low`` if the range is empty."""
        return low + int(self.unit() * (max(high, low) - low + 1))

    def shuffled(self, items: list[int]) -> list[int]:
        """A new list with the items in random order (Fisher-Yates)."""
        order = list(items)
        for last in range(len(order) - 1, 0, -1):
            other = int(self.unit() * (last + 1))
            order[last], order[other] = order[other], order[last]
        return order


class Streams:
    """All streams of a run, by name."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[str, Stream] = {}
        self._vectors: list[VectorStream] = []

    def named(self, name: str) -> Stream:
        """The stream of that name; the same object each time."""
        stream = self._streams.get(name)
        if stream is None:
            stream = self._streams[name] = Stream(self.seed, name)
        return stream

    def vector(self, name: str) -> "VectorStream":
        """A new stream of that name which draws many numbers at a time."""
        stream = VectorStream(self.seed, name)
        self._vectors.append(stream)
        return stream

    def reseed(self, seed: int) -> None:
        """Continues every stream, and those that are first used later, with another seed.

        Numbers that an owner has drawn ahead stay as they are.
        """
        self.seed = seed
        for stream in self._streams.values():
            stream.reseed(seed)
        for vector in self._vectors:
            vector.reseed(seed)


class VectorStream:
    """A named stream which draws arrays: uniform numbers made from raw PCG64 words.

    The words of the bit generator are stable across numpy versions; numpy's distributions are not,
    so they are not used.
    """

    __slots__ = ("_bits", "name")

    def __init__(self, seed: int, name: str) -> None:
        self.name = name
        self._bits = np.random.PCG64(_digest(seed, name))

    def reseed(self, seed: int) -> None:
        """Continues with the draws of the stream of that name from another seed."""
        self._bits = np.random.PCG64(_digest(seed, self.name))

    def units(self, count: int) -> NDArray[np.float64]:
        """``count`` draws, uniform in [0, 1); shape ``(count,)``."""
        words: NDArray[np.uint64] = self._bits.random_raw(count)
        units: NDArray[np.float64] = np.multiply(words >> np.uint64(11), 1.0 / (1 << 53))
        return units

    def octets(self, count: int) -> NDArray[np.uint8]:
        """``count`` bytes, each uniform; shape ``(count,)``."""
        words: NDArray[np.uint64] = self._bits.random_raw(-(-count // 8))
        return words.astype("<u8").view(np.uint8)[:count]


def _digest(seed: int, name: str) -> int:
    return int.from_bytes(hashlib.sha256(f"{seed}/{name}".encode()).digest()[:16], "big")
