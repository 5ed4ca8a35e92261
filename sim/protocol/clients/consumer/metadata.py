"""A consumer's metadata: brokers, partition counts, leaders with their epochs.

It is requested when it may be stale, no more often than the retry back-off allows, and after
``metadata.max.age.ms``; it never goes back to an older leader epoch. Before 2.2 metadata had no
epochs for a client (``tracks_epochs`` off): the last response counts, although its broker may be
behind, and requests carry no epoch. It is requested from the broker with the fewest open requests,
in place of Kafka's least loaded node. With a pattern all topics are requested, and those that match
are subscribed to (``ConsumerCoordinator.updatePatternSubscription``).

Left out: re-bootstrapping (KIP-899), and automatic topic creation.
"""

import re
from collections.abc import Callable, Mapping

from sim.error_codes import ErrorCode
from sim.ids import (
    NO_EPOCH,
    NO_LEADER,
    OFFSETS_TOPIC,
    SHARE_STATE_TOPIC,
    TRANSACTIONS_TOPIC,
    NodeId,
    TopicPartition,
)
from sim.protocol.clients.consumer.context import ConsumerLink
from sim.protocol.messages.base import Response
from sim.protocol.messages.data import LeaderHint
from sim.protocol.messages.metadata import MetadataRequest, MetadataResponse, PartitionMetadata
from sim.units import LONG_AGO, SECOND, Micros

_SHY_US: Micros = 1 * SECOND
"""A broker that failed so recently is used only if all did (``reconnect.backoff.max.ms``)."""


class ConsumerMetadata:
    """Brokers and partitions as known to the consumer."""

    def __init__(
        self,
        link: ConsumerLink,
        bootstrap: tuple[NodeId, ...],
        topics: tuple[str, ...],
        pattern: str = "",
    ) -> None:
        self.subscribed = topics
        """Topics of the subscription; with a pattern those that match, as far as known."""
        self.version = 0
        """Number of responses received."""
        self.counts: dict[str, int] = {}
        """Partitions of each topic known."""
        self.racks: dict[str, tuple[tuple[str, ...], ...]] = {}
        """Racks of each partition's live replicas, for each topic known."""
        self.on_change: list[Callable[[Micros], None]] = []
        """Called after each response."""
        self._link = link
        self._brokers = bootstrap
        self._topics = dict.fromkeys(topics)
        self._pattern = re.compile(pattern) if pattern else None
        self._leaders: dict[TopicPartition, LeaderHint] = {}
        self._in_flight = False
        self._needed = True
        self._fruitless = 0
        self._ready_at: Micros = LONG_AGO
        link.on_disconnect = self._note_stale

    # -- views -------------------------------------------------------------------------------------

    def leader(self, partition: TopicPartition) -> LeaderHint:
        """Leader and epoch as known; NO_LEADER and -1 if unknown."""
        return self._leaders.get(partition, _UNKNOWN)

    def partitions(self, topics: tuple[str, ...]) -> tuple[TopicPartition, ...]:
        """All partitions of the topics that are known, sorted."""
        return tuple(
            TopicPartition(topic, number)
            for topic in sorted(topics)
            for number in range(self.counts.get(topic, 0))
        )

    def is_online(self, broker: NodeId) -> bool:
        """True if the broker is in the last metadata."""
        return broker in self._brokers

    def knows(self, topics: tuple[str, ...]) -> bool:
        """True if each of the topics exists in the metadata."""
        return all(topic in self.counts for topic in topics)

    def add_topics(self, topics: tuple[str, ...], now: Micros) -> None:
        """Adds topics to the requests, from now on."""
        new = [topic for topic in topics if topic not in self._topics]
        if new:
            self._topics.update(dict.fromkeys(new))
            self.request_update(now)

    def least_loaded(self, now: Micros) -> NodeId:
        """Least loaded broker."""
        link = self._link
        brokers = self._brokers
        recent = now - _SHY_US
        fine = [b for b in brokers if link.failed_at.get(b, LONG_AGO) < recent] or list(brokers)
        start = int(link.unit() * len(fine))
        order = fine[start:] + fine[:start]
        return min(order, key=link.open_requests)

    # -- updates ----------------------------------------------------------------------------------

    def take_hint(self, partition: TopicPartition, hint: LeaderHint) -> bool:
        """Applies a broker's leader hint (KIP-951) if its epoch is newer, and epochs are known.

        Returns:
            True if anything changed.
        """
        if hint.leader < 0 or not self._link.config.tracks_epochs:
            return False
        if hint.leader_epoch <= self.leader(partition).leader_epoch:
            return False
        self._leaders[partition] = hint
        return True

    def begin_refresh(self, now: Micros) -> bool:
        """Requests an update unless the back-off forbids it; true if one is awaited."""
        if now >= self._ready_at:
            self.request_update(now)
        return self._in_flight or self._needed

    def request_update(self, now: Micros) -> None:
        """Metadata are stale: requests them as soon as the back-off allows."""
        self._needed = True
        self.progress(now)

    def progress(self, now: Micros) -> None:
        """Requests metadata, if due; otherwise sets the timer."""
        if self._in_flight or not self._needed:
            return
        if now < self._ready_at:
            if not self._link.is_set("metadata"):
                self._link.set_timer("metadata", self._ready_at, self.progress)
            return
        self._link.cancel_timer("metadata")
        self._needed = False
        self._in_flight = True
        topics = tuple(self._topics) if self._pattern is None else None
        self._link.send(self.least_loaded(now), MetadataRequest(topics), self._on_answer)

    def _note_stale(self) -> None:
        self._needed = True

    def _on_answer(
        self, _sender: NodeId, response: Response | None, _error: ErrorCode, now: Micros
    ) -> None:
        self._in_flight = False
        if response is None:
            self._note_fruitless(now)
            self._needed = True
            return
        assert isinstance(response, MetadataResponse)
        self.version += 1
        if response.brokers:
            self._brokers = response.brokers
        before = dict(self._leaders)
        incomplete = self._take(response)
        if response.unauthorized:
            # Source: ``Metadata.maybeThrowAnyException``, at the next poll.
            self._link.fail(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        if before == self._leaders:
            self._note_fruitless(now)
        else:
            self._fruitless = 0
            self._ready_at = now + self._link.backoff(0)
        if incomplete:
            self._needed = True
        else:
            self._link.set_timer(
                "metadata-age", now + self._link.config.metadata_age_us_max, self.request_update
            )
        for listener in self.on_change:
            listener(now)

    def _note_fruitless(self, now: Micros) -> None:
        """A failure, or a response without news: the next request waits longer."""
        self._ready_at = now + self._link.backoff(self._fruitless)
        self._fruitless += 1

    def _take(self, response: MetadataResponse) -> bool:
        """Applies the response; true if a topic or a leader is still missing."""
        incomplete = False
        tracks = self._link.config.tracks_epochs
        if self._pattern is not None:
            self._match(self._pattern, response.topics)
        for topic in dict.fromkeys((*self._topics, *self.subscribed)):
            partitions = response.topics.get(topic)
            if partitions is None:
                incomplete = incomplete or self._pattern is None
                continue
            self.counts[topic] = len(partitions)
            self.racks[topic] = tuple(
                tuple(dict.fromkeys(response.racks[r] for r in p.replicas if r in response.racks))
                for p in partitions
            )
            for said in partitions:
                place = TopicPartition(topic, said.partition)
                epoch = said.leader_epoch if tracks else NO_EPOCH
                if epoch >= self.leader(place).leader_epoch:
                    self._leaders[place] = LeaderHint(said.leader, epoch)
                incomplete = incomplete or said.leader == NO_LEADER
        return incomplete

    def _match(
        self, pattern: re.Pattern[str], topics: Mapping[str, tuple[PartitionMetadata, ...]]
    ) -> None:
        """Subscribes to the topics that match; those that are there no more are forgotten."""
        for topic in [known for known in self.counts if known not in topics]:
            del self.counts[topic], self.racks[topic]
            for place in [place for place in self._leaders if place.topic == topic]:
                del self._leaders[place]
        matching = (topic for topic in topics if pattern.fullmatch(topic))
        self.subscribed = tuple(sorted(topic for topic in matching if topic not in _INTERNAL))


_INTERNAL = frozenset({OFFSETS_TOPIC, TRANSACTIONS_TOPIC, SHARE_STATE_TOPIC})
"""Topics that no pattern matches (``exclude.internal.topics``)."""

_UNKNOWN = LeaderHint(NO_LEADER, NO_EPOCH)
