"""The application's side of a producer: sends that wait, are made later, or fail.

Source: ``KafkaProducer.{send,doSend,waitOnMetadata}``.
"""

import numpy as np
from numpy.typing import NDArray

from sim.protocol.clients.producer.arrivals import ArrivalFeed
from sim.protocol.clients.producer.events import ArrivalSource
from sim.protocol.clients.producer.queues import Refused
from sim.units import LONG_AGO, Micros


class Sends:
    """Sends of one application, which makes one after the other."""

    def __init__(self, source: ArrivalSource, *, by_key: bool) -> None:
        self.refused: list[Refused] = []
        """Records given up, for the producer to report and clear."""
        self.offset_us: Micros = 0
        """Difference of the host's clock from the scenario's."""
        self.is_denied = False
        """True if the metadata are refused: each ``send()`` waits for the next response."""
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

    def deny(self, limit: Micros) -> None:
        """The metadata are refused: the send that waits for them fails, the next one waits again.

        Source: ``KafkaProducer.waitOnMetadata``, ``Metadata.maybeThrowExceptionForTopic``.
        """
        self.is_denied = True
        if self._blocked_since is None:
            return
        self._refuse(limit, "TOPIC_AUTHORIZATION_FAILED", self._feed.take_first())
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
