"""Purgatory of fetches: the sessions of a broker, and those with something new to read.

A change of a partition makes it *hot* in the sessions that fetch it, and may wake the parked fetch
there. :class:`~sim.protocol.broker.replication.leader.fetch.FetchPath` answers.

Source: ``kafka.server.DelayedFetch``, ``DelayedOperationPurgatory``; KIP-227.
"""

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.fetch_session import FetchSession, FetchSessions
from sim.protocol.broker.fetch_session_slots import UNBOUNDED, FetchSessionConfig
from sim.protocol.broker.replica import FetchClock, Replica
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.events import FollowerRead
from sim.protocol.messages.data import FetchRequest
from sim.units import NEVER, Micros


class DelayedFetches:
    """Fetch sessions of one broker, and the fetches parked in them."""

    def __init__(self, config: FetchSessionConfig = UNBOUNDED) -> None:
        self.serves_readers = False
        """True if a consumer has fetched from a follower here: its high watermark wakes fetches
        only then."""
        self.woken: dict[FetchSession, None] = {}
        """Sessions that may be answered now, oldest first; :meth:`take_woken` empties it."""
        self._sessions = FetchSessions(config)
        self._parked: dict[FetchSession, None] = {}
        self._timer_at: Micros = NEVER
        self._reading: dict[int, FetchClock] = {}
        """Clocks of followers' sessions whose responses wait for the disk, closed ones, too."""

    # -- sessions ---------------------------------------------------------------------------------

    def open(self, client: str, request: FetchRequest, now: Micros) -> FetchSession | ErrorCode:
        """Session of a request, or its error."""
        return self._sessions.open(client, request, now)

    def close(self, session_id: int) -> None:
        """Closes a session."""
        self._sessions.close(session_id)

    def cache(self, session: FetchSession, now: Micros) -> bool:
        """Gives a new session its slot; false if there is none."""
        return self._sessions.cache(session, now)

    def answered(self, session: FetchSession) -> None:
        """A session that was evicted meanwhile ends with its response."""
        self._sessions.answered(session)

    def reading(self, event: FollowerRead) -> None:
        """Notes that a follower's response waits for the disk, or no longer.

        It counts until it is read, whatever becomes of its connection: the leader does not know.
        """
        if event.begins:
            clock = self._sessions.clock_of(event.session_id)
            if clock is not None:
                self._reading[event.session_id] = clock
                clock.is_read = True
            return
        clock = self._reading.pop(event.session_id, None)
        if clock is not None:
            clock.is_read = False

    # -- parked fetches ----------------------------------------------------------------------------

    def park(self, session: FetchSession, deadline: Micros, out: Effects) -> None:
        """Parks the session's fetch, at most until the deadline."""
        session.deadline = deadline
        self._parked[session] = None
        if deadline < self._timer_at:
            self._timer_at = deadline
            out.append(fx.SetTimer("fetch", deadline))

    def waits(self, session: FetchSession) -> bool:
        """True if a fetch is parked in the session."""
        return session.is_parked and session in self._parked

    def complete(self, session: FetchSession) -> None:
        """The session's fetch is answered."""
        self._parked.pop(session, None)

    def take_woken(self) -> dict[FetchSession, None]:
        """Removes and returns the woken sessions."""
        woken, self.woken = self.woken, {}
        return woken

    def expired(self, now: Micros) -> list[FetchSession]:
        """Sessions whose fetch has expired, oldest first."""
        due: list[FetchSession] = []
        for session in [s for s in self._parked if s.deadline <= now]:
            if session.is_parked:
                due.append(session)
            else:
                # The client has opened another session meanwhile: no response is expected.
                del self._parked[session]
        return due

    def set_timer(self, out: Effects) -> None:
        """Sets the timer for the next deadline, after one has passed."""
        self._timer_at = min((s.deadline for s in self._parked), default=NEVER)
        if self._timer_at < NEVER:
            out.append(fx.SetTimer("fetch", self._timer_at))

    # -- changes of partitions ---------------------------------------------------------------------

    def appended(self, partition: TopicPartition) -> None:
        """New data: followers may fetch it."""
        for session in self._sessions.of(partition):
            session.hot[partition] = None
            if session.replica_id >= 0 and session.is_parked:
                self.woken[session] = None

    def high_watermark_moved(self, partition: TopicPartition) -> None:
        """New committed data for consumers; followers learn of it in their next response."""
        for session in self._sessions.of(partition):
            session.hot[partition] = None
            if session.replica_id < 0 and session.is_parked:
                self.woken[session] = None

    def follower_watermark_moved(self, partition: TopicPartition) -> None:
        """The same for a partition with another leader (KIP-392)."""
        if self.serves_readers:
            self.high_watermark_moved(partition)

    def changed(self, partition: TopicPartition) -> None:
        """Sessions of the partition get it in their next response; none is woken."""
        for session in self._sessions.of(partition):
            session.hot[partition] = None

    def in_sync_changed(self, replica: Replica) -> None:
        """Followers outside the ISR may rejoin with any fetch, listed there or not."""
        for session in self._sessions.of(replica.partition):
            if session.replica_id >= 0 and session.replica_id not in replica.in_sync:
                session.hot[replica.partition] = None

    def leadership_changed(self, partition: TopicPartition) -> None:
        """Wakes all fetches of the partition."""
        for session in self._sessions.of(partition):
            session.hot[partition] = None
            if session.is_parked:
                self.woken[session] = None
