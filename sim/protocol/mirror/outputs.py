"""Copies for the target cluster: each has the partition of its original.

Source: ``connect.mirror.MirrorSourceTask.convertRecord``.
"""

import numpy as np
from numpy.typing import NDArray

from sim.protocol.clients.producer.arrivals import ArrivalFeed
from sim.protocol.clients.producer.config import ProducerSetup
from sim.protocol.clients.producer.events import ArrivalSource
from sim.protocol.streams.outputs import TaskAccumulator, TaskOutputs
from sim.units import Bytes


class MirrorOutputs(TaskOutputs):
    """The copies of one topic, one of each record.

    Args:
        value_bytes: Size of each record's value, at least ``OUTPUT_BYTES_MIN``.
    """

    def __init__(self, value_bytes: Bytes) -> None:
        super().__init__(value_bytes, 1)

    def partitions_of(self, outputs: NDArray[np.int64]) -> NDArray[np.int64]:
        """The partition of each copy's original."""
        at, _ = self.places(outputs)
        partitions = np.array([piece.partition.partition for piece in self.pieces], dtype=np.int64)
        return partitions[at]

    def offsets_of(self, outputs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Offset of each copy's original; a poll's records have no gaps inside a batch."""
        at, within = self.places(outputs)
        return np.array([piece.base_offset for piece in self.pieces], dtype=np.int64)[at] + within


class MirrorFeed(ArrivalFeed):
    """Chooses the partitions of records without keys."""

    def __init__(self, source: ArrivalSource, outputs: MirrorOutputs) -> None:
        self._outputs = outputs
        super().__init__(source, by_key=True)

    def partitions_of(self, keys: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """Partitions of numbered copies; the target topic has at least those of the source's."""
        partitions = self._outputs.partitions_of(keys)
        assert int(partitions.max()) < count, f"{count} partitions in the target cluster"
        return partitions


class MirrorAccumulator(TaskAccumulator):
    """An accumulator of copies."""

    def __init__(self, setup: ProducerSetup, outputs: MirrorOutputs) -> None:
        super().__init__(setup, outputs)
        self._feed = MirrorFeed(self._ration, outputs)
        self._keyed = True
