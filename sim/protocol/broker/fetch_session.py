"""Fetch sessions: a leader's state between the incremental fetches of one client.

A parked fetch waits in its session. Only *hot* partitions are read when a fetch is answered: those
that the request lists, those written to or advanced since the last response, and those of a
follower that is not in the ISR. All others have nothing new.

A session takes its slot of the cache with its first response. One that is evicted is not found by
its client's next fetch; a fetch that is parked in it is answered as usual.

Source: KIP-227; ``kafka.server.FetchSession``, ``DelayedFetch``.
"""

from dataclasses import dataclass
from typing import Final

from sim.error_codes import ErrorCode
from sim.ids import NodeId, Offset, TopicPartition
from sim.protocol.broker.fetch_session_slots import (
    UNBOUNDED,
    FetchSessionConfig,
    FetchSessionSlots,
)
from sim.protocol.broker.replica import FetchClock
from sim.protocol.messages.data import READ_COMMITTED, FetchPartition, FetchRequest
from sim.units import NEVER, Bytes, Micros

FINAL_EPOCH: Final = -1
"""Of a full fetch that closes the session it names and opens none."""

NO_SESSION: Final = 0
"""The session id of such a fetch's answer."""

_LARGEST_ID: Final = (1 << 31) - 1
_SPREAD: Final = 2_654_435_761
"""Knuth's multiplier: instants that are close give ids that are far apart."""


@dataclass(slots=True)
class SessionPartition:
    """One partition of a session: its last request and its last response."""

    requested: FetchPartition
    sent_high_watermark: Offset = -1
    sent_log_start: Offset = -1


class FetchSession:
    """One client's incremental fetches from this broker."""

    __slots__ = (
        "client",
        "clock",
        "deadline",
        "denied",
        "epoch",
        "hot",
        "is_evicted",
        "looked_free",
        "max_bytes",
        "min_bytes",
        "partitions",
        "reads_committed",
        "replica_id",
        "request",
        "session_id",
        "token",
    )

    def __init__(self, session_id: int, replica_id: NodeId, client: str) -> None:
        self.session_id = session_id
        self.reads_committed = False
        """``isolation.level`` read_committed: up to the last stable offset."""
        self.client = client
        self.replica_id = replica_id
        self.epoch = 0
        self.partitions: dict[TopicPartition, SessionPartition] = {}
        self.hot: dict[TopicPartition, None] = {}
        self.clock = FetchClock()
        self.token = -1
        """Token of the parked fetch; -1 without one."""
        self.deadline: Micros = NEVER
        self.min_bytes: Bytes = 1
        """Bytes of records that the response needs before its deadline."""
        self.max_bytes: Bytes = 0
        """Limit of its bytes of records."""
        self.request: FetchRequest | None = None
        self.denied: dict[TopicPartition, None] = {}
        """Partitions that its present fetch may not read."""
        self.looked_free: dict[TopicPartition, None] = {}
        """Partitions without an open transaction below the high watermark (KAFKA-9807)."""
        self.is_evicted = False
        """True if another session has its slot."""

    @property
    def is_kept(self) -> bool:
        """True if it outlives its first response: not that of a sessionless fetch."""
        return self.epoch != FINAL_EPOCH

    @property
    def is_parked(self) -> bool:
        """True if a fetch waits for data."""
        return self.token >= 0

    def update(self, request: FetchRequest) -> None:
        """Applies a request's listed and forgotten partitions; listed partitions are hot."""
        for requested in request.partitions:
            known = self.partitions.get(requested.partition)
            if known is None:
                self.partitions[requested.partition] = SessionPartition(requested)
            else:
                known.requested = requested
            self.hot[requested.partition] = None
        for partition in request.forgotten:
            self.partitions.pop(partition, None)
            self.hot.pop(partition, None)


class FetchSessions:
    """All sessions of a broker, also by partition."""

    def __init__(self, config: FetchSessionConfig = UNBOUNDED) -> None:
        self._slots = FetchSessionSlots(config)
        self._sessions: dict[int, FetchSession] = {}
        self._by_partition: dict[TopicPartition, list[FetchSession]] = {}

    def of(self, partition: TopicPartition) -> list[FetchSession]:
        """Sessions that fetch the partition."""
        return self._by_partition.get(partition, [])

    def clock_of(self, session_id: int) -> FetchClock | None:
        """Clock of a session; ``None`` if it is closed."""
        session = self._sessions.get(session_id)
        return None if session is None else session.clock

    def open(self, client: str, request: FetchRequest, now: Micros) -> FetchSession | ErrorCode:
        """The session a request belongs to: a new one for a full fetch, else the one it names.

        A fetch of one final epoch has a session of its own until it is answered, see ``is_kept``,
        and so has the last one of a session without partitions. ``now`` is the host's clock.

        Source: ``FetchManager.newContext``, ``SessionlessFetchContext``.
        """
        if request.session_epoch <= 0:
            session = self._begin(client, request, now)
        else:
            known = self._sessions.get(request.session_id)
            if known is None:
                return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            if known.epoch + 1 != request.session_epoch:
                return ErrorCode.INVALID_FETCH_SESSION_EPOCH
            session = known
            session.epoch = request.session_epoch
        for requested in request.partitions:
            if requested.partition not in session.partitions:
                self._by_partition.setdefault(requested.partition, []).append(session)
        for partition in request.forgotten:
            if partition in session.partitions:
                self._by_partition[partition].remove(session)
        session.update(request)
        if session.partitions:
            self._slots.touch(session.session_id, len(session.partitions), now)
        elif request.session_epoch > 0:
            session.epoch = FINAL_EPOCH
            self._slots.free(session.session_id)
        return session

    def _begin(self, client: str, request: FetchRequest, now: Micros) -> FetchSession:
        """Session of a full fetch.

        A client closes the session that it names. A consumer has only one, and if it begins again
        without its name, as another process does, the slot stays taken.
        """
        self._slots.free(request.session_id)
        own = [s for s in self._sessions.values() if s.client == client]
        # A broker is a follower, and of tiered storage's metadata a consumer.
        for old in [s for s in own if s.replica_id == request.replica_id]:
            if request.replica_id < 0 or old.session_id == request.session_id:
                self._drop(old)
        session = FetchSession(self._new_id(now), request.replica_id, client)
        session.epoch = request.session_epoch
        session.reads_committed = request.isolation_level == READ_COMMITTED
        self._sessions[session.session_id] = session
        return session

    def cache(self, session: FetchSession, now: Micros) -> bool:
        """Gives a new session its slot; false if there is none, and it ends with its response.

        Source: ``FetchSessionCacheShard.maybeCreateSession``.
        """
        is_cached, evicted = self._slots.take(
            session.session_id,
            len(session.partitions),
            now,
            privileged=session.replica_id >= 0,
        )
        if evicted is not None and (loser := self._sessions.pop(evicted, None)) is not None:
            loser.is_evicted = True
            if not loser.is_parked:
                self._unlink(loser)
        return is_cached

    def answered(self, session: FetchSession) -> None:
        """A session that is not found any more ends with its last response."""
        if session.is_evicted:
            self._unlink(session)

    def _new_id(self, now: Micros) -> int:
        """Draws an id from the instant: no session of a former process has the same.

        A client may continue a session that its broker had before a restart, and must not find
        another one's under its id. Kafka draws at random (``FetchSessionCache.newSessionId``).
        """
        session_id = now * _SPREAD % _LARGEST_ID + 1
        while session_id in self._sessions:
            session_id = session_id % _LARGEST_ID + 1
        return session_id

    def close(self, session_id: int) -> None:
        """Closes a session; its parked fetch is dropped without a response."""
        self._slots.free(session_id)
        session = self._sessions.get(session_id)
        if session is not None:
            self._drop(session)

    def _drop(self, session: FetchSession) -> None:
        """Forgets a session; its slot stays taken."""
        del self._sessions[session.session_id]
        session.token = -1
        self._unlink(session)

    def _unlink(self, session: FetchSession) -> None:
        for partition in session.partitions:
            self._by_partition[partition].remove(session)
