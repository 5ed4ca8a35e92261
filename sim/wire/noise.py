"""Incompressible filler of simulated records."""

import numpy as np
from numpy.typing import NDArray

from sim.units import Bytes


class Noise:
    """Bytes that cannot be compressed: drawn once, and handed out by the records' numbers.

    A record has the same noise whenever it is encoded. Records so far apart that the pool was used
    up between them share theirs.
    """

    __slots__ = ("_pool", "bytes_each")

    def __init__(self, pool: NDArray[np.uint8], bytes_each: Bytes) -> None:
        """Hands out ``bytes_each`` of the pool to each record; the pool is not empty."""
        self._pool = pool
        self.bytes_each = bytes_each

    def rows(self, first_record: int, count: int) -> NDArray[np.uint8]:
        """The noise of ``count`` records from number ``first_record`` on, a row for each."""
        pool, size = self._pool, count * self.bytes_each
        start = first_record * self.bytes_each % len(pool)
        if start + size <= len(pool):
            return pool[start : start + size].reshape(count, self.bytes_each)
        places = np.arange(start, start + size, dtype=np.int64) % len(pool)
        return pool[places].reshape(count, self.bytes_each)

    def of(self, number: int, size: Bytes) -> bytes:
        """The first bytes of one record's noise, at most ``bytes_each``."""
        pool = self._pool
        start = number * self.bytes_each % len(pool)
        head = pool[start : start + size].tobytes()
        return head if len(head) == size else head + pool[: size - len(head)].tobytes()
