"""A producer's metadata, and the back-off of its updates.

Left out: KIP-899 rebootstrap by time (``bootstrap.servers`` can always be used), topics dropped
when idle, topic ids.

Source: ``clients/{Metadata,NetworkClient}.java``; KIP-232, KIP-580, KIP-951, KAFKA-7738.
"""

from collections.abc import Callable

from sim.ids import NO_EPOCH, NO_LEADER, LeaderEpoch, NodeId
from sim.protocol.clients.backoff import backoff_us
from sim.protocol.clients.producer.config import ProducerConfig
from sim.protocol.messages.metadata import MetadataResponse
from sim.units import LONG_AGO, NEVER, Micros


class Backoff:
    """``retry.backoff.ms`` and its maximum, with the chance of one client."""

    __slots__ = ("_initial", "_maximum", "_unit")

    def __init__(self, initial_us: Micros, maximum_us: Micros, unit: Callable[[], float]) -> None:
        self._initial = initial_us
        self._maximum = maximum_us
        self._unit = unit

    def draw(self, earlier_attempts: int) -> Micros:
        """Draws the wait after the attempt that had so many before it."""
        return backoff_us(self._initial, self._maximum, earlier_attempts, self._unit)


class ProducerMetadata:
    """Leaders of one topic's partitions, as known."""

    def __init__(
        self, topic: str, bootstrap: tuple[NodeId, ...], config: ProducerConfig, backoff: Backoff
    ) -> None:
        self.topic = topic
        self.leaders: list[NodeId] = []
        self.epochs: list[LeaderEpoch] = []
        self.brokers = bootstrap
        """Servers for requests; those of ``bootstrap.servers`` until the first response."""
        self.in_progress = False
        """True if a request is in flight."""
        self.is_denied = False
        """True if the last response was TOPIC_AUTHORIZATION_FAILED."""
        self._bootstrap = bootstrap
        self._max_age_us = config.metadata_max_age_us
        self._tracks_epochs = config.tracks_epochs
        self._backoff = backoff
        self._requested = True
        self._failures = 0
        self._unchanged = 0
        self._last_success: Micros = LONG_AGO
        self._not_before: Micros = LONG_AGO

    @property
    def is_known(self) -> bool:
        """True if the topic's partitions are known."""
        return bool(self.leaders)

    def led(self) -> tuple[int, ...]:
        """Partitions with a known leader, ascending."""
        return tuple(p for p, leader in enumerate(self.leaders) if leader != NO_LEADER)

    def partitions_of(self, node: NodeId) -> tuple[int, ...]:
        """Partitions that the broker leads, ascending."""
        return tuple(p for p, leader in enumerate(self.leaders) if leader == node)

    def request(self) -> None:
        """Metadata may be stale: requests an update, as soon as the back-off allows."""
        self._requested = True

    def due_at(self) -> Micros:
        """Time of the next request; NEVER while one is in flight."""
        if self.in_progress:
            return NEVER
        if self._requested:
            return self._not_before
        return max(self._last_success + self._max_age_us, self._not_before)

    def on_failed(self, now: Micros) -> None:
        """The request got no response."""
        self.in_progress = False
        self._requested = True
        self._not_before = now + self._backoff.draw(self._failures)
        self._failures += 1

    def on_response(self, response: MetadataResponse, now: Micros) -> bool:
        """Applies a response; true if a leader or an epoch is new.

        A partition's older epoch is ignored: the broker is behind. Before 2.2 there were no epochs,
        and the last response counted.
        """
        self.in_progress = False
        self._requested = False
        self._failures = 0
        if response.brokers:
            self.brokers = response.brokers
        self.is_denied = self.topic in response.unauthorized
        changed = self.is_denied and self._forget_leaders()
        partitions = response.topics.get(self.topic, ())
        if not partitions and not self.is_denied:
            self._requested = True
        more = len(partitions) - len(self.leaders)
        if more > 0:  # all of them at first; a topic can only grow
            self.leaders += [NO_LEADER] * more
            self.epochs += [NO_EPOCH] * more
            changed = True
        for each in partitions:
            epoch = each.leader_epoch if self._tracks_epochs else NO_EPOCH
            changed |= self._learn(each.partition, each.leader, epoch)
            if each.leader == NO_LEADER:
                self._requested = True
        self._unchanged = 0 if changed else self._unchanged + 1
        self._last_success = now
        self._not_before = now + self._backoff.draw(max(0, self._unchanged - 1))
        return changed

    def _forget_leaders(self) -> bool:
        """The topic is not in the metadata any more; true if a leader was known."""
        known = self.led()
        for partition in known:
            self.leaders[partition] = NO_LEADER
        return bool(known)

    def on_hint(self, partition: int, leader: NodeId, epoch: LeaderEpoch) -> bool:
        """Applies a broker's leader hint (KIP-951); true if it is new."""
        if not self._tracks_epochs or leader not in self.brokers:
            return False
        if epoch <= self.epochs[partition]:
            return False
        return self._learn(partition, leader, epoch)

    def forget_brokers(self) -> None:
        """No known broker is usable: starts again from ``bootstrap.servers``."""
        self.brokers = self._bootstrap

    def _learn(self, partition: int, leader: NodeId, epoch: LeaderEpoch) -> bool:
        if epoch < self.epochs[partition]:
            return False
        if epoch == self.epochs[partition] and leader == self.leaders[partition]:
            return False
        self.leaders[partition] = leader
        self.epochs[partition] = epoch
        return True
