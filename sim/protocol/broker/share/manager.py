"""A broker's share partitions: ShareFetch and ShareAcknowledge of share group members.

The leader of a partition holds the states of its records for each group, which it reads from the
share coordinator on first use, and has written there with every acknowledgement. A fetch waits for
records; a response waits for the acknowledgements in its request. When a member's connection
breaks, its acquired records are released.

Left out: readers of committed data, ``fetch.min.bytes`` above 1, groups that are deleted.

Source: ``SharePartitionManager``, ``DelayedShareFetch``, ``KafkaApis.handleShareFetchRequest``
(4.1); KIP-932.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, assert_never

from sim.error_codes import ErrorCode
from sim.errors import CorruptRecord
from sim.ids import NodeId, Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.authorization import ApiAuthorizer
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.events import HighWatermarkMoved, LeadershipApplied
from sim.protocol.broker.share.config import ShareConfig
from sim.protocol.broker.share.effects import Effects, ShareSessionOpened
from sim.protocol.broker.share.leadership import LedShare
from sim.protocol.broker.share.limits import ShareLimits
from sim.protocol.broker.share.partition import SharePartition
from sim.protocol.broker.share.sessions import ShareSession, ShareSessions
from sim.protocol.coordinator.share.persister import FENCED, SharePersister, member_error
from sim.protocol.coordinator.share.records import UNINITIALIZED
from sim.protocol.events import RequestFailed, RequestReceived, ResponseReceived, TimerFired
from sim.protocol.messages.base import Response
from sim.protocol.messages.data import LeaderHint
from sim.protocol.messages.share import (
    FINAL_EPOCH,
    PartitionAcknowledgements,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    ShareAcknowledgeRequest,
    ShareAcknowledgeResponse,
    ShareFetchRequest,
    ShareFetchResponse,
    ShareFetchResult,
)
from sim.protocol.messages.share_records import ShareKey, StateBatch
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.ports import Batch
from sim.units import KIB, NEVER, Bytes, Micros

SHARE_REQUESTS = (ShareFetchRequest, ShareAcknowledgeRequest)
"""Requests that leaders of share partitions answer."""

FETCH_TIMER = "share-fetch"
"""Timer of fetches' deadlines."""


@dataclass(frozen=True, slots=True)
class ShareConnectionClosed:
    """Event: the connection of a member's share session is closed."""

    group: str
    member_id: str


ShareEvent = (
    RequestReceived
    | ResponseReceived
    | RequestFailed
    | TimerFired
    | HighWatermarkMoved
    | LeadershipApplied
    | ShareConnectionClosed
)
"""Events of a broker's share partitions."""


class LedPartitions(Protocol):
    """Port to the partitions that a broker leads."""

    def led(self, partition: TopicPartition) -> Replica | ErrorCode:
        """The replica, if this broker leads the partition; else the error for a client."""

    def hint(self, partition: TopicPartition, error: ErrorCode) -> LeaderHint | None:
        """The partition's leader, for errors that redirect clients."""

    def watch(self, partition: TopicPartition) -> None:
        """Reports from now on when the high watermark advances."""


@dataclass(slots=True, eq=False)
class _Answer:
    """A response that waits for the acknowledgements in its request."""

    token: int
    session: ShareSession
    open: int = 0
    """Open writes."""
    errors: dict[TopicPartition, ErrorCode] = field(default_factory=dict)
    fetch: ShareFetchRequest | None = None
    """``None``: only acknowledgements."""
    deadline: Micros = NEVER
    results: list[ShareFetchResult] = field(default_factory=list)
    is_fetched: bool = False
    denied: tuple[str, ...] = ()
    """Topics that the member may not read."""


class SharePartitionManager:
    """All share partitions that one broker leads.

    Args:
        broker: This broker's id.
        config: Settings.
        replicas: The partitions that it leads.
        image: Its metadata.
        unit: Draws numbers uniform in [0, 1), for the jitter of waits.
        authorizer: Members' rights; ``None``: nobody is refused.
    """

    def __init__(
        self,
        broker: NodeId,
        config: ShareConfig,
        replicas: LedPartitions,
        image: Callable[[], MetadataImage],
        unit: Callable[[], float],
        authorizer: ApiAuthorizer | None = None,
    ) -> None:
        self.config = config
        self._authorizer = authorizer
        self._broker = broker
        self._replicas = replicas
        self._image = image
        self._configured = False
        """True if a group had settings of its own when an event was last handled."""
        self._persister = SharePersister(image, config.request_timeout_us, unit)
        self._sessions = ShareSessions(config.sessions_max)
        self._shared: dict[tuple[str, TopicPartition], LedShare] = {}
        self._names: dict[str, str] = {}
        """Names of members, by their ids."""
        self._waiting: dict[_Answer, None] = {}
        self._ends_at: Micros = NEVER
        """Due time of the fetch timer."""
        self._dirty = False
        """True if something has changed that may complete a waiting fetch."""
        self._out: Effects = []

    def handle(self, event: ShareEvent, now: Micros) -> Effects:
        """Handles an event; returns effects in order."""
        self._configure()
        match event:
            case RequestReceived():
                self._request(event, now)
            case ResponseReceived() | RequestFailed():
                self._persister.handle(event, now)
            case TimerFired(name):
                self._timer(name, now)
            case HighWatermarkMoved():
                self._dirty = True
            case LeadershipApplied():
                self._leadership(event)
            case ShareConnectionClosed():
                session = self._sessions.get(event.group, event.member_id)
                if session is not None:
                    self._close(session, None, now)
            case _:
                assert_never(event)
        self._serve(now)
        out, self._out = [*self._out, *self._persister.out], []
        self._persister.out = []
        return out

    def share(self, group: str, partition: TopicPartition) -> SharePartition | None:
        """A share partition; ``None`` if it is not loaded here. Not to be changed."""
        shared = self._shared.get((group, partition))
        return None if shared is None else shared.share

    def _configure(self) -> None:
        """Takes the settings of groups as this broker's metadata has them now."""
        configs = self._image().group_configs
        if configs or self._configured:
            self._configured = bool(configs)
            for shared in self._shared.values():
                shared.use(self._limits_of(shared.key.group))

    def _limits_of(self, group: str) -> ShareLimits:
        configs = self._image().group_configs.get(group)
        return self.config.limits.of_group(configs) if configs else self.config.limits

    # -- requests ---------------------------------------------------------------------------------

    def _request(self, event: RequestReceived, now: Micros) -> None:
        request, token = event.request, event.token
        if isinstance(request, ShareFetchRequest):
            session = self._sessions.fetch(event.client, request)
            if isinstance(session, ErrorCode):
                self._out.append(fx.Reply(token, ShareFetchResponse(session)))
                return
            self._names[session.member_id] = session.client
            self._out.append(ShareSessionOpened(token, session.group, session.member_id))
            answer = _Answer(token, session, fetch=request, deadline=now + request.max_wait_us)
            # A renewed lock might expire while the fetch waits: it brings no records (KIP-1222).
            answer.is_fetched = request.renews
        else:
            assert isinstance(request, ShareAcknowledgeRequest), f"not for it: {request}"
            session = self._sessions.acknowledge(request)
            if isinstance(session, ErrorCode):
                self._out.append(fx.Reply(token, ShareAcknowledgeResponse(session)))
                return
            answer = _Answer(token, session, is_fetched=True)
        self._waiting[answer] = None
        self._authorize(answer, event.client, request)
        for acknowledged in request.acknowledgements:
            self._acknowledge(answer, acknowledged, now)
        if request.session_epoch == FINAL_EPOCH:
            answer.is_fetched = True
            self._close(session, answer, now)
        self._dirty = True

    def _authorize(
        self, answer: _Answer, client: str, request: ShareFetchRequest | ShareAcknowledgeRequest
    ) -> None:
        """Notes the topics that the request may not read.

        Source: ``KafkaApis.{handleShareFetchRequest,handleShareAcknowledgeRequest}``.
        """
        authorizer = self._authorizer
        if authorizer is None:
            return
        places = [each.partition for each in request.acknowledgements]
        name = "ShareAcknowledge"
        if isinstance(request, ShareFetchRequest):
            places += answer.session.partitions
            name = "ShareFetch"
        topics = dict.fromkeys(place.topic for place in places)
        answer.denied = tuple(
            topic for topic in topics if not authorizer.may_read(client, topic, name)
        )

    def _acknowledge(
        self, answer: _Answer, acknowledged: PartitionAcknowledgements, now: Micros
    ) -> None:
        session, place = answer.session, acknowledged.partition
        if place.topic in answer.denied:
            answer.errors[place] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            return
        shared = self._shared.get((session.group, place))
        if shared is None or shared.share is None:
            led = self._replicas.led(place)
            missing = led if isinstance(led, ErrorCode) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            answer.errors[place] = missing
            return
        share, member = shared.share, session.member_id
        error, token, states = share.acknowledge(member, acknowledged.said, now)
        answer.errors[place] = error
        if share.renewals:
            self._write_rows(shared, now)
        if token:
            answer.open += 1
            self._write(shared, token, states, answer, now)

    def _close(self, session: ShareSession, answer: _Answer | None, now: Micros) -> None:
        """The member has left: releases its acquired records."""
        self._sessions.close(session)
        for place in session.partitions:
            shared = self._shared.get((session.group, place))
            if shared is None or shared.share is None:
                continue
            token, states = shared.share.release(session.member_id)
            if not token:
                continue
            if answer is not None:
                answer.open += 1
                answer.errors.setdefault(place, ErrorCode.NONE)
            self._write(shared, token, states, answer, now)

    # -- fetches ----------------------------------------------------------------------------------

    def _serve(self, now: Micros) -> None:
        """Serves waiting fetches, and answers those that are complete."""
        if self._dirty:
            self._dirty = False
            for answer in list(self._waiting):
                if not answer.is_fetched:
                    self._fetch(answer, now)
        for answer in list(self._waiting):
            late = answer.deadline <= now
            if answer.open == 0 and (answer.is_fetched or late):
                del self._waiting[answer]
                self._out.append(fx.Reply(answer.token, self._response(answer)))
        waits = [a.deadline for a in self._waiting if not a.is_fetched and a.deadline > now]
        ends_at = min(waits, default=NEVER)
        if ends_at < NEVER and ends_at != self._ends_at:
            self._out.append(fx.SetTimer(FETCH_TIMER, ends_at))
        self._ends_at = ends_at

    def _fetch(self, answer: _Answer, now: Micros) -> None:
        """Reads every partition of the session once; an error is answered at once."""
        request, session = answer.fetch, answer.session
        assert request is not None, "only fetches wait for records"
        places = session.rotated()
        capacity = request.max_records
        for place in places:
            if place.topic in answer.denied:
                error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
                answer.results.append(ShareFetchResult(place, error))
                answer.is_fetched = True
                continue
            max_bytes = request.max_bytes // len(places)
            result = self._read(request, session, place, max_bytes, capacity, now)
            if result is not None:
                answer.results.append(result)
                answer.is_fetched = True
                capacity -= sum(got.last - got.first + 1 for got in result.acquired)

    def _read(
        self,
        request: ShareFetchRequest,
        session: ShareSession,
        place: TopicPartition,
        max_bytes: Bytes,
        capacity: int,
        now: Micros,
    ) -> ShareFetchResult | None:
        """Acquired records of the partition; ``None`` if it has none now."""
        replica = self._replicas.led(place)
        if isinstance(replica, ErrorCode):
            return ShareFetchResult(place, replica, hint=self._replicas.hint(place, replica))
        shared = self._shared_of(session.group, place, replica, now)
        if shared.error is not ErrorCode.NONE:
            del self._shared[session.group, place]
            return ShareFetchResult(place, shared.error)
        share = shared.share
        if share is None or capacity <= 0:
            return None
        if replica.log.log_start_offset > share.start_offset:
            share.log_start_moved(replica.log.log_start_offset)
            self._write_rows(shared, now)
        offset = share.next_fetch_offset()
        if not share.can_acquire() or offset >= replica.high_watermark:
            return None
        try:
            batches = _batches(replica, offset, capacity, max_bytes)
        except CorruptRecord:
            return ShareFetchResult(place, ErrorCode.CORRUPT_MESSAGE)
        ends = [(batch.base_offset, batch.last_offset) for batch in batches]
        member, exact = session.member_id, request.record_limit
        acquired = share.acquire(member, ends, capacity, now, exact=exact)
        if not acquired:
            return None
        self._write_rows(shared, now)
        first, last = acquired[0].first, acquired[-1].last
        sent = tuple(b for b in batches if b.last_offset >= first and b.base_offset <= last)
        watermark = replica.high_watermark
        return ShareFetchResult(
            place, batches=sent, acquired=tuple(acquired), high_watermark=watermark
        )

    def _response(self, answer: _Answer) -> Response:
        errors = answer.errors
        if answer.fetch is None:
            return ShareAcknowledgeResponse(ErrorCode.NONE, tuple(errors.items()))
        results = []
        for result in answer.results:
            error = errors.pop(result.partition, ErrorCode.NONE)
            if error is not ErrorCode.NONE:
                result = ShareFetchResult(  # noqa: PLW2901 - the same with the error
                    result.partition, result.error, error, result.batches, result.acquired,
                    result.high_watermark, result.hint,
                )  # fmt: skip
            results.append(result)
        results += [ShareFetchResult(place, acknowledge_error=errors[place]) for place in errors]
        lock_us = self._limits_of(answer.session.group).lock_us
        return ShareFetchResponse(ErrorCode.NONE, tuple(results), lock_us)

    # -- share partitions -------------------------------------------------------------------------

    def _shared_of(
        self, group: str, place: TopicPartition, replica: Replica, now: Micros
    ) -> LedShare:
        shared = self._shared.get((group, place))
        if shared is None:
            key = ShareKey(group, replica.topic_id, place.partition)
            shared = LedShare(key, place, replica.leader_epoch, self._limits_of(group))
            self._shared[group, place] = shared
            self._replicas.watch(place)
            request = ReadShareGroupStateRequest(key, replica.leader_epoch)
            self._persister.send(request, partial(self._loaded, shared), now)
        return shared

    def _loaded(
        self, shared: LedShare, response: Response | None, error: ErrorCode, now: Micros
    ) -> None:
        self._dirty = True
        if self._shared.get((shared.key.group, shared.place)) is not shared:
            return
        replica = self._replicas.led(shared.place)
        if isinstance(replica, ErrorCode) or error is not ErrorCode.NONE:
            shared.error = replica if isinstance(replica, ErrorCode) else member_error(error)
            return
        assert replica.leader_epoch == shared.epoch, "another leadership has a state of its own"
        assert isinstance(response, ReadShareGroupStateResponse)
        start = response.start_offset
        if start == UNINITIALIZED:
            earliest = shared.key.group in self.config.from_earliest
            start = replica.log.log_start_offset if earliest else replica.high_watermark
        shared.begin(response.state_epoch, start, response.batches)
        shared.write_start_row(self._broker, "loaded", self._out)
        self._write_rows(shared, now)

    def _leadership(self, event: LeadershipApplied) -> None:
        """Drops the state of a former leadership."""
        self._dirty = True
        for key in [key for key in self._shared if key[1] == event.partition]:
            if event.is_leader and self._shared[key].epoch == event.leader_epoch:
                continue
            self._fence(self._shared[key])

    def _fence(self, shared: LedShare) -> None:
        if self._shared.pop((shared.key.group, shared.place), None) is None:
            return
        if shared.share is not None:
            self._out.append(fx.CancelTimer(shared.timer))
            shared.write_start_row(self._broker, "given up", self._out)

    # -- the share coordinator --------------------------------------------------------------------

    def _write(
        self,
        shared: LedShare,
        token: int,
        states: tuple[StateBatch, ...],
        answer: _Answer | None,
        now: Micros,
    ) -> None:
        written = partial(self._written, shared, token, answer)
        self._persister.send(shared.write_request(states), written, now)

    def _written(
        self,
        shared: LedShare,
        token: int,
        answer: _Answer | None,
        _response: Response | None,
        error: ErrorCode,
        now: Micros,
    ) -> None:
        """Handles the outcome of a write; ``token`` 0 is of a write without a waiting request."""
        self._dirty = True
        share = shared.share
        assert share is not None, "it was loaded when it was written"
        late = share.settle(token, written=error is ErrorCode.NONE, now=now) if token else ()
        if self._shared.get((shared.key.group, shared.place)) is shared:
            self._write_rows(shared, now)
            if late:
                self._write(shared, 0, late, None, now)
            if error in FENCED:
                self._fence(shared)
        else:  # the leadership has ended, and its write counts
            shared.write_state_rows(self._broker, self._names, self._out)
        if answer is not None:
            answer.open -= 1
            if error is not ErrorCode.NONE:
                answer.errors[shared.place] = member_error(error)

    def _write_rows(self, shared: LedShare, now: Micros) -> None:
        shared.write_rows(self._broker, self._names, now, self._out)

    def _timer(self, name: str, now: Micros) -> None:
        if name == FETCH_TIMER or self._persister.wake(name, now):
            return
        for shared in self._shared.values():
            if shared.timer == name and shared.share is not None:
                states = shared.share.expire(now)
                self._write_rows(shared, now)
                if states:
                    self._dirty = True
                    self._write(shared, 0, states, None, now)


def _batches(replica: Replica, offset: Offset, capacity: int, max_bytes: Bytes) -> list[Batch]:
    """Committed batches from the offset on, up to so many records or bytes."""
    found: list[Batch] = []
    at, left = offset, max_bytes
    while at < min(offset + capacity, replica.high_watermark) and left > 0:
        read = replica.log.read(at, replica.high_watermark, min(left, _READ_BYTES))
        if not read:
            break
        found += read
        left -= sum(batch.size_bytes for batch in read)
        at = read[-1].last_offset + 1
    return found


_READ_BYTES: Bytes = 64 * KIB
"""Bytes of one read of a log: most fetches need no more."""
