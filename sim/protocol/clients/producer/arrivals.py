"""The application's sends that are not in the accumulator yet, block by block.

Records without keys form one lane; records with keys one lane for each partition, because their
partition is known from the start. A lane is read from its front.
"""

from bisect import bisect_right

import numpy as np
from numpy.typing import NDArray

from sim.protocol.clients.producer.batch import Arrivals
from sim.protocol.clients.producer.events import ArrivalBlock, ArrivalSource
from sim.protocol.clients.producer.partitioner import partitions_of_keys
from sim.protocol.clients.producer.queues import Refused
from sim.units import LONG_AGO, NEVER, Micros


class ArrivalFeed:
    """The present block of a source, and the next when that is used up.

    Instants are of the scenario's clock.

    Args:
        source: The application.
        by_key: True if a record's partition follows from its key alone.
    """

    def __init__(self, source: ArrivalSource, *, by_key: bool) -> None:
        self._source = source
        self._keyed = by_key
        self._partition_count = 0
        self._pending: ArrivalBlock | None = None
        self.offset_us: Micros = 0
        """Difference of the host's clock from the scenario's; timestamps follow it."""
        self.lanes: list[Arrivals] = []
        """One, or one for each partition; empty while partitions are unknown, and at the end."""
        self.block_end: Micros = NEVER
        """Last instant of the block; NEVER after the last block."""
        self.fetch()

    def fetch(self) -> None:
        """Takes the next block."""
        self.lanes = []
        self._pending = self._source.next_block()
        if self._pending is None:
            self.block_end = NEVER
            return
        self.block_end = int(self._pending.instants_us[-1])
        self._spread()

    def learn_partitions(self, count: int) -> None:
        """Sets the number of partitions of records.

        Records with keys that were not sent yet use the new number: ``hash mod count``.
        """
        self._gather()
        self._partition_count = count
        self._spread()

    def set_clock_offset(self, offset_us: Micros) -> None:
        """The host's clock has moved."""
        self.offset_us = offset_us
        for lane in self.lanes:
            lane.stamp(offset_us)

    def first_instant(self) -> Micros:
        """Intended instant of the next send; NEVER if the block has none."""
        if self._pending is not None:
            return int(self._pending.instants_us[0])
        return min(
            (lane.times[lane.at] for lane in self.lanes if lane.at < len(lane.times)), default=NEVER
        )

    def first_lane(self) -> tuple[int, Arrivals]:
        """Lane of the next send in the application's order, and its place; there is one."""
        best, best_place = 0, 1 << 62
        for number, lane in enumerate(self.lanes):
            if lane.at < len(lane.times):
                place = lane.places[lane.at] if lane.places is not None else 0
                if place < best_place:
                    best, best_place = number, place
        return best, self.lanes[best]

    def count_until(self, limit: Micros) -> int:
        """Sends of this block that are due up to the instant, inclusive."""
        return sum(bisect_right(lane.times, limit, lane.at) - lane.at for lane in self.lanes)

    def take_first(self) -> NDArray[np.int64]:
        """Removes the next send; its intended instant, as an array of one."""
        if self._pending is not None:
            first = self._pending.instants_us[:1]
            self._cut_pending(1)
            return first
        _, lane = self.first_lane()
        lane.at += 1
        return lane.instants_us[lane.at - 1 : lane.at]

    def take_until(self, limit: Micros) -> list[NDArray[np.int64]]:
        """Removes the sends of this block up to the instant; their intended instants, by lane."""
        taken = []
        if self._pending is not None:
            instants = self._pending.instants_us
            cut = int(np.searchsorted(instants, limit, side="right"))
            taken.append(instants[:cut])
            self._cut_pending(cut)
        for lane in self.lanes:
            cut = bisect_right(lane.times, limit, lane.at)
            taken.append(lane.instants_us[lane.at : cut])
            lane.at = cut
        return [instants for instants in taken if len(instants)]

    def partitions_of(self, keys: NDArray[np.int64], count: int) -> NDArray[np.int64]:
        """Partitions of keys, of so many."""
        return partitions_of_keys(keys, count)

    def _cut_pending(self, count: int) -> None:
        assert self._pending is not None
        instants, keys, sizes = self._pending
        self._pending = None
        if count < len(instants):
            self._pending = ArrivalBlock(
                instants[count:],
                None if keys is None else keys[count:],
                None if sizes is None else sizes[count:],
            )

    def _gather(self) -> None:
        """Merges unsent records of keyed lanes again, in the application's order."""
        places: list[int] = []
        instants: list[NDArray[np.int64]] = []
        keys: list[NDArray[np.int64]] = []
        sizes: list[NDArray[np.int64]] = []
        for lane in self.lanes:
            if lane.key_ids is None or lane.places is None:
                return
            places += lane.places[lane.at :]
            instants.append(lane.instants_us[lane.at :])
            keys.append(lane.key_ids[lane.at :])
            if lane.value_sizes is not None:
                sizes.append(lane.value_sizes[lane.at :])
        if not instants:
            return
        self.lanes = []
        order = np.argsort(np.array(places, dtype=np.int64))
        self._pending = ArrivalBlock(
            np.concatenate(instants)[order],
            np.concatenate(keys)[order],
            np.concatenate(sizes)[order] if sizes else None,
        )

    def _spread(self) -> None:
        """Splits the block into lanes, once the partitions are known."""
        if self._pending is None or not self._partition_count:
            return
        instants, keys, sizes = self._pending
        self._pending = None
        if keys is None or not self._keyed:
            self.lanes = [Arrivals(instants, keys, self.offset_us, None, sizes)]
            return
        count = self._partition_count
        partitions = self.partitions_of(keys, count)
        order = np.argsort(partitions, kind="stable")
        bounds = np.searchsorted(partitions[order], np.arange(count + 1)).tolist()
        self.lanes = []
        for partition in range(count):
            places = order[bounds[partition] : bounds[partition + 1]]
            self.lanes.append(
                Arrivals(
                    instants[places],
                    keys[places],
                    self.offset_us,
                    places.tolist(),
                    None if sizes is None else sizes[places],
                )
            )


class Sends:
    """Sends of one application, one after the other: they wait, are made later, or fail.

    Source: ``KafkaProducer.{send,doSend,waitOnMetadata}``.
    """

    def __init__(self, source: ArrivalSource, *, by_key: bool) -> None:
        self.refused: list[Refused] = []
        """Records given up, for the producer to report and clear."""
        self.offset_us: Micros = 0
        """Difference of the host's clock from the scenario's."""
        self.is_denied = False
        """True if the metadata are refused: each ``send()`` waits for the next response."""
        self.fatal = ""
        """Error with which each ``send()`` fails at once; empty without one."""
        self._feed = ArrivalFeed(source, by_key=by_key)
        self._floor: Micros = LONG_AGO
        self._blocked_since: Micros | None = None

    @property
    def blocked(self) -> bool:
        """True if the application waits in ``send()``."""
        return self._blocked_since is not None

    def resume_at(self, instant: Micros) -> None:
        """Sends intended before the instant and not taken yet happen then."""
        self._set_floor(instant)

    def fail_for_good(self, limit: Micros, error: str) -> None:
        """The producer has a fatal error: each ``send()`` fails, now and later.

        Source: ``TransactionManager.maybeFailWithError``.
        """
        self.deny(limit, error)
        self.fatal = error

    def deny(self, limit: Micros, error: str = "TOPIC_AUTHORIZATION_FAILED") -> None:
        """The metadata are refused: the send that waits for them fails, the next one waits again.

        Source: ``KafkaProducer.waitOnMetadata``, ``Metadata.maybeThrowExceptionForTopic``.
        """
        self.is_denied = True
        if self._blocked_since is None:
            return
        self._refuse(limit, error, self._feed.take_first())
        self._set_floor(limit)
        self._blocked_since = None

    def recompute_ends(self) -> None:
        """The estimator has changed: precomputed ends of batches are recomputed."""
        for lane in self._feed.lanes:
            lane.filled_at = -1

    def _block_if_waiting(self, limit: Micros) -> None:
        """Without metadata the first send blocks."""
        first = self._feed.first_instant()
        if first <= limit:
            self._blocked_since = max(first, self._floor)

    def _set_floor(self, instant: Micros) -> None:
        """Sends intended before the instant happen at it; precomputed ends of batches are void."""
        self._floor = max(self._floor, instant)
        self.recompute_ends()

    def _refuse(self, at: Micros, error: str, intended_us: NDArray[np.int64]) -> None:
        if len(intended_us):
            self.refused.append(Refused(at + self.offset_us, error, intended_us))

    def _refuse_until(self, limit: Micros, error: str) -> None:
        """Refuses sends intended up to the instant in the present block."""
        for intended_us in self._feed.take_until(limit):
            self._refuse(limit, error, intended_us)
