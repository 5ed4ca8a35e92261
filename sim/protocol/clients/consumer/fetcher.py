"""A consumer's fetches: one request in flight per broker, sessions, and a buffer before poll.

A partition is fetched only when nothing of it is buffered, and from a broker only when nothing of
any of its partitions is, so fetching is at most one response ahead of the application. A partition
is fetched from its leader, or from its preferred read replica (KIP-392), until its lease of
``metadata.max.age.ms`` ends, another leader is known, it is offline, or a fetch from it fails. What
is buffered of a paused partition stays there.

A partition whose broker does not lead it waits here for newer metadata; Kafka sends to the same
broker again until it has them.

Source: ``AbstractFetch``, ``FetchCollector``, ``FetchSessionHandler`` (KIP-227).
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import partial

from sim.error_codes import ErrorCode
from sim.ids import NO_EPOCH, NO_LEADER, LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol.clients.consumer.context import ConsumerLink
from sim.protocol.clients.consumer.effects import Deliver, delivery
from sim.protocol.clients.consumer.isolation import CommittedOnly
from sim.protocol.clients.consumer.metadata import ConsumerMetadata
from sim.protocol.clients.consumer.positions import ConsumerPositions, Position, Stage
from sim.protocol.messages.base import Response
from sim.protocol.messages.data import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    LeaderHint,
)
from sim.protocol.ports import Batch
from sim.units import NEVER, Micros

_RETRY_AFTER_METADATA = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
    }
)

_LAST_SESSION_EPOCH = (1 << 31) - 1


@dataclass(slots=True)
class _Session:
    """A fetch session with one broker; ``epoch`` is that of the next request, 0 for a full one."""

    id: int = 0
    epoch: int = 0
    requested: dict[TopicPartition, tuple[Offset, LeaderEpoch]] = field(default_factory=dict)
    """The broker's state of each partition."""
    places: dict[TopicPartition, Position] = field(default_factory=dict)
    """The partitions of the last request; the same object as long as nothing but offsets moved."""
    in_flight: bool = False


@dataclass(slots=True)
class _Buffered:
    """One partition's part of a response, not fully returned yet."""

    partition: TopicPartition
    position: Position
    offset: Offset
    """Position of the consumer for which it is valid."""
    result: FetchResult
    sender: NodeId
    committed_only: CommittedOnly | None
    """Filter of a reader of committed data."""
    next_batch: int = 0
    is_corrupt: bool = False
    """True if the next batch is damaged (``CompletedFetch.maybeEnsureValid``)."""


class ConsumerFetcher:
    """The fetch requests and the buffer of one consumer."""

    def __init__(
        self,
        link: ConsumerLink,
        metadata: ConsumerMetadata,
        positions: ConsumerPositions,
    ) -> None:
        self._link = link
        self._metadata = metadata
        self._positions = positions
        self._sessions: dict[NodeId, _Session] = {}
        self._buffer: deque[_Buffered] = deque()
        self._by_node: dict[NodeId, dict[TopicPartition, Position]] = {}
        self._layout = -1
        """Layout of the positions, when they were grouped by broker; -1 to group them again."""
        self._lease_ends: Micros = NEVER
        """First end of a preferred read replica's lease."""
        self._leaderless = False
        self._committed_only = link.config.isolation_level == "read_committed"
        self._moved: dict[TopicPartition, None] = {}
        """Partitions whose offset has moved since their last fetch."""
        self.collected: list[Deliver] = []
        """Records that the last poll returned."""

    def forget(self) -> None:
        """Partitions were removed: drops the buffer."""
        self._buffer.clear()
        self._moved.clear()

    # -- requests ----------------------------------------------------------------------------------

    def send(self, now: Micros) -> None:
        """Sends fetches to every broker that is free."""
        if not self._positions.changed:
            return
        self._positions.changed = False
        if self._layout != self._positions.layout or now >= self._lease_ends:
            self._group_by_node(now)
        if self._leaderless:
            self._metadata.request_update(now)
        buffered = [
            item.position.read_from(self._metadata.leader(item.partition), now)
            for item in self._buffer
            if not item.position.paused
        ]
        for node, places in self._by_node.items():
            session = self._sessions.get(node)
            if session is None:
                session = self._sessions[node] = _Session()
            if session.in_flight or node in buffered or self._positions.resetting.get(node):
                continue
            self._fetch(node, session, places)

    def _group_by_node(self, now: Micros) -> None:
        self._layout = self._positions.layout
        self._leaderless = False
        self._lease_ends = NEVER
        self._by_node = {}
        for place, position in self._positions.all().items():
            if position.stage is not Stage.FETCHING or position.paused:
                continue
            known = self._metadata.leader(place)
            if known.leader < 0:
                self._leaderless = True
            elif position.waits_for_version <= self._metadata.version:
                node = known.leader
                if position.preferred >= 0:
                    node = self._read_replica(position, known, now)
                self._by_node.setdefault(node, {})[place] = position

    def _read_replica(self, position: Position, known: LeaderHint, now: Micros) -> NodeId:
        node = position.read_from(known, now)
        if position.preferred < 0:
            return node
        if not self._metadata.is_online(node):
            position.preferred = NO_LEADER
            self._metadata.request_update(now)
            return known.leader
        self._lease_ends = min(self._lease_ends, position.preferred_until)
        return node

    def _fetch(
        self, node: NodeId, session: _Session, places: dict[TopicPartition, Position]
    ) -> None:
        config = self._link.config
        if session.epoch == 0:
            session.requested = {}
        candidates: Iterable[TopicPartition] = places
        forgotten: tuple[TopicPartition, ...] = ()
        if session.places is places and session.epoch > 0:
            candidates = [place for place in self._moved if place in places]
        else:
            forgotten = tuple(place for place in session.requested if place not in places)
            session.places = places
        for place in forgotten:
            del session.requested[place]
        changed = []
        for place in candidates:
            self._moved.pop(place, None)
            position = places[place]
            epoch = self._metadata.leader(place).leader_epoch if config.names_epochs else NO_EPOCH
            if session.requested.get(place) != (position.offset, epoch):
                session.requested[place] = (position.offset, epoch)
                changed.append(
                    FetchPartition(
                        place, position.offset, epoch, max_bytes=config.partition_fetch_bytes_max
                    )
                )
        session.in_flight = True
        request = FetchRequest(
            -1,
            -1,
            config.fetch_wait_us_max,
            config.fetch_bytes_min,
            config.fetch_bytes_max,
            session.id,
            session.epoch,
            tuple(changed),
            forgotten,
            config.client_rack,
            config.isolation_level,
        )
        self._link.send(node, request, partial(self._on_answer, session, places))

    # -- responses ---------------------------------------------------------------------------------

    def _on_answer(
        self,
        session: _Session,
        places: dict[TopicPartition, Position],
        sender: NodeId,
        response: Response | None,
        _error: ErrorCode,
        _now: Micros,
    ) -> None:
        session.in_flight = False
        self._positions.changed = True
        if response is None:
            for requested_of in places.values():
                requested_of.preferred = NO_LEADER
            self._reopen(session)  # the broker may or may not have seen the request
            return
        assert isinstance(response, FetchResponse)
        if response.error is not ErrorCode.NONE:
            if response.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
                session.id = 0
            self._reopen(session)
            return
        session.id = response.session_id
        if session.id == 0:
            self._reopen(session)
        else:
            session.epoch = session.epoch % _LAST_SESSION_EPOCH + 1
        for result in response.results:
            place = result.partition
            position = places.get(place)
            if position is None:
                continue
            if result.batches or result.error is not ErrorCode.NONE or result.preferred >= 0:
                requested = session.requested[place][0]
                committed_only = CommittedOnly(result.aborted) if self._committed_only else None
                self._buffer.append(
                    _Buffered(place, position, requested, result, sender, committed_only)
                )

    def _reopen(self, session: _Session) -> None:
        """The next request lists all partitions, those fetched last at its end."""
        session.epoch = 0
        self._layout = -1

    # -- poll -------------------------------------------------------------------------------------

    def collect(self, limit: int, now: Micros) -> int:
        """Returns up to ``limit`` records to the application, as :class:`Deliver` effects.

        Returns:
            Number of records.
        """
        count = 0
        self.collected = []
        buffer = self._buffer
        paused: list[_Buffered] = []
        while buffer and count < limit:
            item = buffer[0]
            position = item.position
            current = self._positions.all().get(item.partition) is position
            if (
                not current
                or position.stage is not Stage.FETCHING
                or position.offset != item.offset
            ):
                done = True
            elif item.result.error is not ErrorCode.NONE:
                self._take_error(item, now)
                done = True
            elif item.result.preferred >= 0:
                self._prefer(item, now)
                done = True
            elif position.paused:
                paused.append(buffer.popleft())
                continue
            else:
                count += self._drain(item, limit - count)
                if item.is_corrupt:
                    # What was collected before is returned first; the next poll raises it.
                    if count == 0:
                        self._link.fail(ErrorCode.CORRUPT_MESSAGE)
                    break
                done = item.next_batch == len(item.result.batches)
                if done:
                    self._positions.move_to_end(item.partition)
            if done:
                buffer.popleft()
                self._positions.changed = True
        buffer.extend(paused)
        return count

    def _drain(self, item: _Buffered, limit: int) -> int:
        count = 0
        position = item.position
        batches = item.result.batches
        committed_only = item.committed_only
        checks = self._link.config.check_crcs
        while item.next_batch < len(batches) and count < limit:
            batch = batches[item.next_batch]
            if checks and not batch.valid():
                item.is_corrupt = True
                break
            first = max(position.offset, batch.base_offset)
            last = batch.last_offset
            hidden = batch.is_control if committed_only is None else committed_only.hides(batch)
            if not hidden and last >= first:
                if batch.record_count > last - batch.base_offset:
                    last = min(last, first + limit - count - 1)
                    count += last - first + 1
                    self._deliver(item, batch, first, last)
                else:
                    found, last = self._drain_compacted(item, batch, first, limit - count)
                    count += found
            if last >= position.offset:
                position.offset = last + 1
                position.epoch = batch.leader_epoch
            if last >= batch.last_offset:
                item.next_batch += 1
        item.offset = position.offset
        self._moved[item.partition] = None
        return count

    def _drain_compacted(
        self, item: _Buffered, batch: Batch, first: Offset, limit: int
    ) -> tuple[int, Offset]:
        """Delivers the records of a compacted batch; returns their number, and the last offset."""
        count = 0
        for begin, end in batch.offset_runs():
            begin = max(begin, first)  # noqa: PLW2901 - cut to what was not delivered before
            if begin > end:
                continue
            if count == limit:
                return count, begin - 1
            last = min(end, begin + limit - count - 1)
            self._deliver(item, batch, begin, last)
            count += last - begin + 1
            if last < end:
                return count, last
        return count, batch.last_offset

    def _deliver(self, item: _Buffered, batch: Batch, first: Offset, last: Offset) -> None:
        if batch.producer_index < 0:
            return
        watermark = item.result.high_watermark
        piece = delivery(item.partition, batch, first, last, watermark, item.sender)
        self._link.effects.append(piece)
        self.collected.append(piece)

    def _prefer(self, item: _Buffered, now: Micros) -> None:
        until = now + self._link.config.metadata_age_us_max
        leader = self._metadata.leader(item.partition)
        item.position.prefer(item.result.preferred, until, leader)
        self._positions.rearranged()

    def _take_error(self, item: _Buffered, now: Micros) -> None:
        result = item.result
        error = result.error
        if item.position.preferred >= 0 and error is not ErrorCode.UNKNOWN_LEADER_EPOCH:
            # It came from a follower: back to the leader, which decides whether it is in range.
            item.position.preferred = NO_LEADER
            self._positions.rearranged()
            if error in _RETRY_AFTER_METADATA:
                self._metadata.request_update(now)
                return
            if error is ErrorCode.OFFSET_OUT_OF_RANGE:
                return
        if error in _RETRY_AFTER_METADATA:
            hint = result.hint
            if hint is None or not self._metadata.take_hint(item.partition, hint):
                item.position.waits_for_version = self._metadata.version + 1
            self._positions.heed_leaders()
            self._metadata.request_update(now)
        elif error is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._positions.reset(item.partition)
        elif error is not ErrorCode.UNKNOWN_LEADER_EPOCH:
            self._link.fail(error)
