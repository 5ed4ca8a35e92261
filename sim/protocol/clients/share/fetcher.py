"""A share consumer's fetches and acknowledgements: one request in flight per broker, in a session.

Acknowledgements travel with the next fetch from the broker of the records, or alone while there are
buffered records to process. Nothing is fetched ahead of the application: a lock begins when the
broker delivers the record. Simplified: acknowledgements whose request fails are not sent again
(Kafka repeats those that travel alone); their records are redelivered after their locks.

Source: ``ShareConsumeRequestManager``, ``ShareSessionHandler``, ``ShareFetchCollector`` (4.1).
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple, TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NodeId, Offset, TopicPartition
from sim.protocol.broker.share.partition import ACKNOWLEDGE_TYPES, GAP, RENEW
from sim.protocol.clients.consumer.context import ConsumerLink
from sim.protocol.clients.consumer.effects import delivery
from sim.protocol.clients.consumer.metadata import ConsumerMetadata
from sim.protocol.messages.base import Response
from sim.protocol.messages.share import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    PartitionAcknowledgements,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchResult,
)
from sim.protocol.messages.share_records import Acknowledgement
from sim.protocol.ports import Batch
from sim.trace.rows.share import ShareAcknowledgements
from sim.units import LONG_AGO, Micros

FETCH_AGAIN = "fetch-again"
"""Timer after which partitions with an error are fetched again."""

Said: TypeAlias = dict[TopicPartition, list[Acknowledgement]]
"""Acknowledgements by partition, in the order in which they were made."""


class Received(NamedTuple):
    """Consecutive records for the application."""

    node: NodeId
    partition: TopicPartition
    first: Offset
    last: Offset


@dataclass(slots=True)
class _Session:
    """A share session with one broker; ``epoch`` is that of the next request."""

    epoch: int = INITIAL_EPOCH
    known: dict[TopicPartition, None] = field(default_factory=dict)
    """Partitions of the broker's session."""
    said: Said = field(default_factory=dict)
    """Acknowledgements to be sent there."""
    in_flight: bool = False
    is_fetching: bool = False
    """True if what is in flight is a fetch."""


class _Buffered(NamedTuple):
    node: NodeId
    partition: TopicPartition
    batch: Batch
    first: Offset
    last: Offset
    high_watermark: Offset


class ShareFetcher:
    """Share sessions and buffer of one member, with its ``member_id``."""

    def __init__(
        self, link: ConsumerLink, metadata: ConsumerMetadata, name: str, member_id: str
    ) -> None:
        self._link = link
        self._metadata = metadata
        self._name = name
        self._member_id = member_id
        self._assigned: tuple[TopicPartition, ...] = ()
        self._sessions: dict[NodeId, _Session] = {}
        self._buffer: deque[_Buffered] = deque()
        self._renewing = 0
        """Renewals without an outcome."""
        self._renewed: set[tuple[TopicPartition, Offset]] = set()
        self._turn: NodeId = -1
        """Broker of the last fetch with a limit of records."""
        self._not_before: dict[TopicPartition, Micros] = {}
        self._waits_for: dict[TopicPartition, int] = {}
        """Version of the metadata from which on a partition may be fetched again."""

    @property
    def assigned(self) -> tuple[TopicPartition, ...]:
        """Partitions that it fetches from."""
        return self._assigned

    def assign(self, partitions: tuple[TopicPartition, ...]) -> None:
        """Sets the partitions to fetch from; buffered records of others are still processed."""
        self._assigned = partitions

    # -- the application --------------------------------------------------------------------------

    def collect(self, limit: int) -> list[Received]:
        """Returns up to ``limit`` records to the application, as :class:`Deliver` effects."""
        found: list[Received] = []
        space = limit
        while self._buffer and space > 0:
            item = self._buffer.popleft()
            last = min(item.last, item.first + space - 1)
            if last < item.last:
                self._buffer.appendleft(item._replace(first=last + 1))
            space -= last - item.first + 1
            place, watermark = item.partition, item.high_watermark
            piece = delivery(place, item.batch, item.first, last, watermark, item.node)
            self._link.effects.append(piece)
            found.append(Received(item.node, item.partition, item.first, last))
        return found

    def say(self, node: NodeId, partition: TopicPartition, said: Acknowledgement) -> None:
        """Queues acknowledgements of a broker's records."""
        self._session(node).said.setdefault(partition, []).append(said)

    def renew(self, got: Received) -> None:
        """Queues a renewal of the records' locks (KIP-1222)."""
        self.say(got.node, got.partition, Acknowledgement(got.first, got.last, _RENEWAL))
        self._renewing += 1

    def take_renewed(self) -> set[tuple[TopicPartition, Offset]] | None:
        """Partition and first offset of each renewal that counts; ``None`` before all outcomes."""
        if self._renewing:
            return None
        found, self._renewed = self._renewed, set()
        return found

    # -- requests ----------------------------------------------------------------------------------

    def fetch(self, now: Micros) -> None:
        """Sends fetches to every broker that is free."""
        by_node: dict[NodeId, list[TopicPartition]] = {}
        for place in self._assigned:
            leader = self._metadata.leader(place).leader
            if leader < 0:
                self._metadata.request_update(now)
            elif self._may_fetch(place, now):
                by_node.setdefault(leader, []).append(place)
        for node in by_node:
            self._session(node)
        if self._link.config.share_record_limit:
            by_node = self._one_of(by_node)
        for node, session in self._sessions.items():
            if session.in_flight:
                continue
            requested = by_node.get(node)
            if requested:
                self._fetch(node, session, requested)
            elif session.said:
                self._acknowledge(node, session)

    def _one_of(
        self, by_node: dict[NodeId, list[TopicPartition]]
    ) -> dict[NodeId, list[TopicPartition]]:
        """The next broker in turn, if no other is being fetched from: a limit of records is one.

        Source: ``ShareConsumeRequestManager.poll`` (4.2).
        """
        if any(session.is_fetching for session in self._sessions.values()) or not by_node:
            return {}
        turn = next((node for node in sorted(by_node) if node > self._turn), min(by_node))
        self._turn = turn
        return {turn: by_node[turn]}

    def acknowledge(self) -> None:
        """Sends acknowledgements alone, where nothing is in flight."""
        for node, session in self._sessions.items():
            if session.said and not session.in_flight:
                self._acknowledge(node, session)

    def close(self, done: Callable[[Micros], None], now: Micros) -> None:
        """Sends the last acknowledgements and closes all sessions; ``done`` after all responses."""
        self._buffer.clear()
        waits = dict.fromkeys(n for n, s in self._sessions.items() if s.epoch != INITIAL_EPOCH)
        if not waits:
            done(now)
            return

        def heard(node: NodeId, then: Micros) -> None:
            waits.pop(node, None)
            if not waits:
                done(then)

        for node in list(waits):
            self._acknowledge(node, self._sessions[node], FINAL_EPOCH, heard)

    def _may_fetch(self, place: TopicPartition, now: Micros) -> bool:
        if self._waits_for.get(place, 0) > self._metadata.version:
            return False
        return self._not_before.get(place, LONG_AGO) <= now

    def _session(self, node: NodeId) -> _Session:
        return self._sessions.setdefault(node, _Session())

    def _fetch(self, node: NodeId, session: _Session, requested: list[TopicPartition]) -> None:
        config = self._link.config
        if session.epoch == INITIAL_EPOCH:
            session.known = {}
            self._note_acknowledged(session.said, ErrorCode.SHARE_SESSION_NOT_FOUND)
            session.said = {}
        new = tuple(place for place in requested if place not in session.known)
        dropped = tuple(place for place in session.known if place not in requested)
        session.known = dict.fromkeys(requested)
        said, session.said = session.said, {}
        # Source: ``ShareSessionHandler.newShareFetchBuilder`` (4.2).
        renews = self._renewing > 0 and _renews(said)
        request = ShareFetchRequest(
            config.group_id,
            self._member_id,
            session.epoch,
            0 if renews else config.fetch_wait_us_max,
            0 if renews else config.fetch_bytes_max,
            0 if renews else config.poll_records_max,
            new,
            dropped,
            _packed(said),
            config.share_record_limit,
            renews,
        )
        session.in_flight = session.is_fetching = True
        self._link.send(node, request, partial(self._on_fetched, session, said))

    def _acknowledge(
        self,
        node: NodeId,
        session: _Session,
        epoch: int | None = None,
        heard: Callable[[NodeId, Micros], None] | None = None,
    ) -> None:
        said, session.said = session.said, {}
        if session.epoch == INITIAL_EPOCH:
            self._note_acknowledged(said, ErrorCode.SHARE_SESSION_NOT_FOUND)
            return
        request = ShareAcknowledgeRequest(
            self._link.config.group_id,
            self._member_id,
            session.epoch if epoch is None else epoch,
            _packed(said),
        )
        session.in_flight = True
        self._link.send(node, request, partial(self._on_acknowledged, session, said, heard))

    # -- responses ---------------------------------------------------------------------------------

    def _on_fetched(
        self,
        session: _Session,
        said: Said,
        sender: NodeId,
        response: Response | None,
        error: ErrorCode,
        now: Micros,
    ) -> None:
        session.in_flight = session.is_fetching = False
        if response is not None:
            assert isinstance(response, ShareFetchResponse)
            error = response.error
        if response is None or error is not ErrorCode.NONE:
            session.epoch = INITIAL_EPOCH
            self._note_acknowledged(said, error)
            if response is None:
                self._hold_back(session.known, now)
            return
        session.epoch += 1
        for result in response.results:
            if result.partition in said:
                self._note_acknowledged(
                    {result.partition: said[result.partition]}, result.acknowledge_error
                )
            if result.error is not ErrorCode.NONE:
                self._take_error(result, now)
            else:
                self._take(sender, result)

    def _on_acknowledged(
        self,
        session: _Session,
        said: Said,
        heard: Callable[[NodeId, Micros], None] | None,
        sender: NodeId,
        response: Response | None,
        error: ErrorCode,
        now: Micros,
    ) -> None:
        session.in_flight = False
        results: dict[TopicPartition, ErrorCode] = {}
        if response is not None:
            assert isinstance(response, ShareAcknowledgeResponse)
            error, results = response.error, dict(response.results)
        session.epoch = INITIAL_EPOCH if error is not ErrorCode.NONE else session.epoch + 1
        for place, runs in said.items():
            self._note_acknowledged({place: runs}, results.get(place, error))
        if heard is not None:
            heard(sender, now)

    def _take(self, sender: NodeId, result: ShareFetchResult) -> None:
        """Buffers acquired records; acknowledges offsets without a record with the next request."""
        place = result.partition
        for acquired in result.acquired:
            at = acquired.first
            for batch in result.batches:
                for first, last in _records_of(batch, at, acquired.last):
                    if first > at:
                        self.say(sender, place, Acknowledgement(at, first - 1, (GAP,)))
                    watermark = result.high_watermark
                    item = _Buffered(sender, place, batch, first, last, watermark)
                    self._buffer.append(item)
                    at = last + 1
            if at <= acquired.last:
                self.say(sender, place, Acknowledgement(at, acquired.last, (GAP,)))

    def _take_error(self, result: ShareFetchResult, now: Micros) -> None:
        place, error = result.partition, result.error
        if error is ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            # Source: ``ShareFetchCollector.handleInitializeErrors``, at the next poll.
            self._link.fail(error)
        elif error.refreshes_metadata:
            if result.hint is None or not self._metadata.take_hint(place, result.hint):
                self._waits_for[place] = self._metadata.version + 1
            self._metadata.request_update(now)
        else:
            self._hold_back((place,), now)

    def _hold_back(self, places: Iterable[TopicPartition], now: Micros) -> None:
        """Delays these until the back-off has passed."""
        until = now + self._link.backoff(0)
        for place in places:
            self._not_before[place] = until
        self._link.set_timer(FETCH_AGAIN, until, _nothing)

    def _note_acknowledged(self, said: Said, error: ErrorCode) -> None:
        """Writes the outcome of acknowledgements to the trace."""
        for place, runs in said.items():
            for run in runs:
                if run.types == _RENEWAL:
                    self._renewing -= 1
                    if error is ErrorCode.NONE:
                        self._renewed.add((place, run.first))
                kinds = sorted({ACKNOWLEDGE_TYPES[kind] for kind in run.types})
                self._link.emit(
                    ShareAcknowledgements.row(
                        self._name,
                        self._link.config.group_id,
                        place.topic,
                        place.partition,
                        first_offset=run.first,
                        last_offset=run.last,
                        types=",".join(kinds),
                        error=error.name,
                    )
                )


_RENEWAL = (RENEW,)
"""Types of an acknowledgement that renews locks."""


def _renews(said: Said) -> bool:
    return any(run.types == _RENEWAL for runs in said.values() for run in runs)


def _packed(said: Said) -> tuple[PartitionAcknowledgements, ...]:
    return tuple(
        PartitionAcknowledgements(place, tuple(sorted(runs))) for place, runs in said.items()
    )


def _records_of(batch: Batch, first: Offset, last: Offset) -> list[tuple[Offset, Offset]]:
    """Runs of the batch's records for the application, from the first offset to the last."""
    if batch.is_control or batch.producer_index < 0:
        return []
    whole = batch.record_count > batch.last_offset - batch.base_offset
    held = ((batch.base_offset, batch.last_offset),) if whole else batch.offset_runs()
    runs = []
    for begin, end in held:
        low, high = max(begin, first), min(end, last)
        if low <= high:
            runs.append((low, high))
    return runs


def _nothing(_now: Micros) -> None:
    """Does nothing: the poll that follows every event does the rest."""
