"""Runs of offsets without a gap, as a compacted log has them."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from sim.ids import Offset


def places_in(runs: Iterable[tuple[Offset, Offset]], base: Offset) -> NDArray[np.int32]:
    """Every offset of runs, given by first and last, relative to the base."""
    counted = [np.arange(first - base, last - base + 1) for first, last in runs]
    return np.concatenate(counted).astype(np.int32) if counted else np.zeros(0, np.int32)
