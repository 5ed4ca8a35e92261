"""Outputs of a task for its producer: their times, and the input record of each.

Source: ``org.apache.kafka.streams.processor.internals.RecordCollectorImpl``.
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.protocol.clients.consumer.effects import Deliver
from sim.protocol.clients.consumer.work import WorkTaken
from sim.protocol.clients.producer.config import ProducerSetup
from sim.protocol.clients.producer.events import ArrivalBlock
from sim.protocol.clients.producer.transaction_workload import (
    TransactionalAccumulator,
    TransactionPlan,
)
from sim.units import NEVER, Bytes, Micros

ROUNDS = TransactionPlan(0, NEVER, lambda: False)
"""Transactions that neither records nor time end: a task ends its rounds."""


class Origins(NamedTuple):
    """Input records of consecutive outputs; arrays are int64, one element for each output."""

    topics: tuple[str, ...]
    """Topic of the input record of each output."""
    partitions: NDArray[np.int64]
    """Its partition."""
    producers: NDArray[np.int64]
    """Its producer."""
    records: NDArray[np.int64]
    """Its number."""
    ordinals: NDArray[np.int64]
    """Index among the input record's outputs, from 0."""

    def runs(self, each: int) -> list[tuple[int, int]]:
        """Runs of outputs of consecutive input records: first element, and the end."""
        nth = self.records * each + self.ordinals
        breaks = np.diff(nth) != 1
        breaks |= (np.diff(self.producers) != 0) | (np.diff(self.partitions) != 0)
        edges = [0, *(np.flatnonzero(breaks) + 1).tolist(), len(nth)]
        return list(pairwise(edges))


class TaskOutputs:
    """Satisfies ``producer_events.ArrivalSource``: outputs have no keys and are of one size.

    Each output has a number of its own while it waits; blocks carry it where keys would be.

    Args:
        value_bytes: Size of each output's value.
        each: Outputs of each input record, at least one.
    """

    def __init__(self, value_bytes: Bytes, each: int) -> None:
        self.value_bytes = value_bytes
        self.keyed = False
        self.header_bytes: Bytes = 0
        self.header_count = 0
        self._each = each
        self._blocks: list[ArrivalBlock] = []
        self._next = 0
        self.pieces: list[Deliver] = []
        """Polled pieces that may still be needed."""
        self._starts: list[int] = []

    def take(self, work: WorkTaken, clock_offset_us: Micros) -> None:
        """Begins to process; instants are on the scenario's clock from here on."""
        records = sum(piece.record_count for piece in work.pieces)
        if not records:
            return
        first = self._next
        for piece in work.pieces:
            self.pieces.append(piece)
            self._starts.append(self._next)
            self._next += piece.record_count * self._each
        nth = np.repeat(np.arange(1, records + 1, dtype=np.int64), self._each)
        instants = work.begun_us - clock_offset_us + nth * work.each_us
        numbers = np.arange(first, self._next, dtype=np.int64)
        self._blocks.append(ArrivalBlock(instants, numbers))

    def next_block(self) -> ArrivalBlock | None:
        """Next outputs; ``None`` if none wait."""
        return self._blocks.pop(0) if self._blocks else None

    def places(self, outputs: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Piece of each output, and its number among that piece's outputs."""
        starts = np.array(self._starts, dtype=np.int64)
        at: NDArray[np.int64] = np.searchsorted(starts, outputs, side="right") - 1
        return at, outputs - starts[at]

    def origins(self, outputs: NDArray[np.int64]) -> Origins:
        """Input records of the outputs of these numbers."""
        at, within = self.places(outputs)
        chosen: list[int] = at.tolist()
        pieces = self.pieces
        firsts = np.array([pieces[n].first_record for n in chosen], dtype=np.int64)
        makers = np.array([pieces[n].producer_index for n in chosen], dtype=np.int64)
        topics = tuple([pieces[n].partition.topic for n in chosen])
        partitions = np.array([pieces[n].partition.partition for n in chosen], dtype=np.int64)
        numbers = firsts + within // self._each
        return Origins(topics, partitions, makers, numbers, within % self._each)

    def forget(self) -> None:
        """Drops the pieces of all outputs made until now."""
        self.pieces.clear()
        self._starts.clear()


class TaskAccumulator(TransactionalAccumulator):
    """An accumulator whose application sends the outputs that it has just made."""

    def __init__(self, setup: ProducerSetup, outputs: TaskOutputs) -> None:
        super().__init__(setup, outputs, ROUNDS)

    def take_more(self) -> None:
        """There are new outputs."""
        if self._feed.block_end == NEVER:
            self._next_block()

    def discard(self) -> None:
        """Drops outputs that were not sent: the application rolls the round back."""
        self._feed.take_until(NEVER)
        while self._ration.next_block() is not None:
            pass
        self._blocked_since = None
        self._next_block()
