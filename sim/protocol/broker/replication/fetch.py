"""How a broker serves fetches: followers to its log end, consumers to what is committed.

A fetch with too little to return waits in its session until an append (followers) or a move of the
high watermark (consumers) brings data, or its time is over. A move of the high watermark alone does
not wake a follower.

Followers serve consumers too, up to their own high watermark (KIP-392). Left out: sessionless
fetches.

Source: ``ReplicaManager.fetchMessages``, ``DelayedFetch``; KIP-227, KIP-595's diverging epochs.
"""

from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from sim.error_codes import ErrorCode
from sim.errors import CorruptRecord
from sim.ids import NodeId, Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.fetch_session import FetchSession, FetchSessions, SessionPartition
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.read_replicas import hosted, preferred_read_replica
from sim.protocol.messages import (
    AbortedTransaction,
    FetchRequest,
    FetchResponse,
    FetchResult,
)
from sim.protocol.ports import Batch
from sim.units import NEVER, Bytes, Micros

if TYPE_CHECKING:
    from sim.protocol.broker.replication.replica_manager import ReplicaManager


class FetchPath:
    """Fetch requests on one broker."""

    def __init__(self, manager: "ReplicaManager") -> None:
        self.serves_readers = False
        """Whether a consumer has fetched from a follower here: only then its high watermark wakes
        anybody."""
        self._manager = manager
        self._selects = manager.config.rack_aware_reads
        self._looks_once = manager.config.reads_bound_once
        self._quota = manager.leader_quota
        self._clients = manager.client_quotas
        self._now: Micros = 0
        self._sessions = FetchSessions()
        self._woken: dict[FetchSession, None] = {}
        self._parked: dict[FetchSession, None] = {}
        self._timer_at: Micros = NEVER

    def request(
        self, token: int, client: str, request: FetchRequest, now: Micros, out: list[object]
    ) -> None:
        """Take note of where a follower is; answer, or park the fetch in its session."""
        session = self._sessions.open(client, request, now)
        if isinstance(session, ErrorCode):
            out.append(fx.Reply(token, FetchResponse(session, 0, ())))
            return
        self._now = now
        session.request = request
        session.token = token
        session.min_bytes = request.min_bytes
        session.max_bytes = min(request.max_bytes, self._manager.config.fetch_bytes_max)
        if self._clients is not None and request.replica_id < 0:
            # More than a quota allows in one burst would be held back whatever was read before.
            session.max_bytes = min(session.max_bytes, self._clients.fetch_bytes_max(client))
            session.min_bytes = min(session.min_bytes, session.max_bytes)
        held = deque[tuple[Replica, bool]]()
        if request.replica_id >= 0:
            self._note_follower(session, request, held, now, out)
        session.clock.last_fetch_us = now
        if held:
            self._wait_for_locks(session, token, held, now, now, out)
            return
        if session.reads_committed and not self._looks_once:
            session.looked_free = self._free_of_transactions(session)
            if session.looked_free:
                self._manager.threads.interrupt(partial(self._look_again, session, token), out)
                return
        self._read_or_park(session, request, now, out)

    def _wait_for_locks(
        self,
        session: FetchSession,
        token: int,
        held: deque[tuple[Replica, bool]],
        since: Micros,
        now: Micros,
        out: list[object],
    ) -> None:
        """Go on with a follower's fetch once no flush holds a log where it has to move something.

        Its handler waits for one lock after the other. Here it reads afterwards, in Kafka before.
        """
        manager = self._manager
        while held:
            replica, moved = held[0]
            if manager.locks.is_held(replica.partition):
                rest = partial(self._wait_for_locks, session, token, held, since)
                manager.locks.wait(replica.partition, rest)
                return
            held.popleft()
            if replica.is_leader and session.replica_id in replica.remotes:
                self._follower_moved(replica, session.replica_id, now, out, moved=moved)
        out.append(fx.KeptWaiting(since))
        request = session.request
        if request is not None and session.token == token:
            self._read_or_park(session, request, now, out)

    def _free_of_transactions(self, session: FetchSession) -> dict[TopicPartition, None]:
        """Where a reader of committed data is held back by the high watermark alone.

        Source: ``Log.fetchLastStableOffsetMetadata`` before KAFKA-9807: it compared the first
        unstable offset with the high watermark, and if that was not above it returned the high
        watermark that it found by then.
        """
        free: dict[TopicPartition, None] = {}
        for partition in session.hot:
            replica = self._manager.replicas.get(partition)
            if replica is not None:
                high_watermark = replica.high_watermark
                if replica.log.transactions.last_stable_offset(high_watermark) == high_watermark:
                    free[partition] = None
        return free

    def _look_again(
        self, session: FetchSession, token: int, now: Micros, out: list[object]
    ) -> None:
        """The second look at the high watermark, in front of the read."""
        request = session.request
        if request is not None and session.token == token:
            self._read_or_park(session, request, now, out)
            session.looked_free = {}

    def _read_or_park(
        self, session: FetchSession, request: FetchRequest, now: Micros, out: list[object]
    ) -> None:
        self._now = now
        results, size = self._results(session)
        enough = size >= session.min_bytes or any(_is_urgent(r) for r in results)
        if enough or request.max_wait_us <= 0 or not session.partitions:
            self._answer(session, results, out)
            return
        session.deadline = now + request.max_wait_us
        self._parked[session] = None
        if session.deadline < self._timer_at:
            self._timer_at = session.deadline
            out.append(fx.SetTimer("fetch", self._timer_at))

    def appended(self, partition: TopicPartition) -> None:
        """New data: followers may fetch it."""
        for session in self._sessions.of(partition):
            session.hot[partition] = None
            if session.replica_id >= 0 and session.is_parked:
                self._woken[session] = None

    def high_watermark_moved(self, partition: TopicPartition) -> None:
        """New committed data: consumers may fetch it; followers learn of it when next answered."""
        for session in self._sessions.of(partition):
            session.hot[partition] = None
            if session.replica_id < 0 and session.is_parked:
                self._woken[session] = None

    def changed(self, partition: TopicPartition) -> None:
        """Whoever fetches the partition is told when next answered; nobody is woken for it."""
        for session in self._sessions.of(partition):
            session.hot[partition] = None

    def in_sync_changed(self, replica: Replica) -> None:
        """Followers outside the ISR may come back to it with any fetch, listed there or not."""
        for session in self._sessions.of(replica.partition):
            if session.replica_id >= 0 and session.replica_id not in replica.in_sync:
                session.hot[replica.partition] = None

    def leadership_changed(self, partition: TopicPartition) -> None:
        """Whoever waits for the partition must look again."""
        for session in self._sessions.of(partition):
            session.hot[partition] = None
            if session.is_parked:
                self._woken[session] = None

    def answer_woken(self, now: Micros, out: list[object]) -> None:
        """Answer the parked fetches that have something to return now."""
        if not self._woken:
            return
        self._now = now
        woken, self._woken = self._woken, {}
        for session in woken:
            if not session.is_parked or session not in self._parked:
                continue
            results, size = self._results(session)
            if size >= session.min_bytes or any(_is_urgent(r) for r in results):
                self._answer(session, results, out)

    def expire(self, now: Micros, out: list[object]) -> None:
        """Answer the fetches whose time is over, with what there is."""
        self._now = now
        for session in [s for s in self._parked if s.deadline <= now]:
            if not session.is_parked:
                # The client has opened another session meanwhile: nobody waits for this answer.
                del self._parked[session]
                continue
            results, _ = self._results(session)
            self._answer(session, results, out)
        self._timer_at = min((s.deadline for s in self._parked), default=NEVER)
        if self._timer_at < NEVER:
            out.append(fx.SetTimer("fetch", self._timer_at))

    # -- followers --------------------------------------------------------------------------------

    def _note_follower(
        self,
        session: FetchSession,
        request: FetchRequest,
        held: deque[tuple[Replica, bool]],
        now: Micros,
        out: list[object],
    ) -> None:
        """Update what is known of the follower, for every partition that is hot.

        ``held`` gets the leaders where more follows from it and a flush holds the log's lock, and
        whether the follower moved.
        """
        manager = self._manager
        for partition in list(session.hot):
            replica = manager.replicas.get(partition)
            if replica is None or not replica.is_leader:
                continue
            remote = replica.remotes.get(request.replica_id)
            asked = session.partitions[partition].asked
            if remote is None or not _may_fetch(replica, session.partitions[partition]):
                continue
            if not manager.is_current(request.replica_id, request.replica_epoch):
                continue
            remote.clock = session.clock
            remote.log_start_offset = asked.log_start_offset
            if manager.log_starts.waiting:
                manager.log_starts.check(partition, out)
            end = replica.log.log_end_offset
            moved = remote.fetched(asked.fetch_offset, end, now, request.replica_epoch)
            outside = request.replica_id not in replica.in_sync
            if (moved or outside) and manager.locks.is_held(partition):
                held.append((replica, moved))
            else:
                self._follower_moved(replica, request.replica_id, now, out, moved=moved)

    def _follower_moved(
        self, replica: Replica, follower: NodeId, now: Micros, out: list[object], *, moved: bool
    ) -> None:
        """A follower may come back to the ISR, and the high watermark may move."""
        manager = self._manager
        if follower not in replica.in_sync:
            item = replica.expand_isr(follower, manager.image)
            if item is not None:
                manager.isr.add(item)
                manager.isr.send(now, out)
        if moved:
            manager.advance(replica, now, out)

    # -- answers ----------------------------------------------------------------------------------

    def _results(self, session: FetchSession) -> tuple[list[FetchResult], Bytes]:
        """What the hot partitions have to tell, and how many bytes of records that is.

        A partition stays hot while it has more to read or news that may not be told yet, for an
        answer may still wait, and while its follower is not in the ISR.
        """
        results: list[FetchResult] = []
        room = session.max_bytes
        size = 0
        for partition in list(session.hot):
            known = session.partitions.get(partition)
            if known is None:
                del session.hot[partition]
                continue
            result, is_quiet = self._result(session, known, room)
            if result is not None:
                results.append(result)
                read = sum([b.size_bytes for b in result.batches])
                size += read
                room = max(room - read, 0)
            if is_quiet and result is None:
                del session.hot[partition]
        return results, size

    def _result(
        self, session: FetchSession, known: SessionPartition, room: Bytes
    ) -> tuple[FetchResult | None, bool]:
        """One partition's news (``None`` for none), and whether it may be left alone afterwards."""
        manager = self._manager
        asked = known.asked
        partition = asked.partition
        replica = manager.led(partition)
        if isinstance(replica, ErrorCode):
            if session.replica_id < 0:
                replica = hosted(manager, partition, replica)
            if isinstance(replica, ErrorCode):
                hint = manager.hint(partition, replica)
                return FetchResult(partition, replica, hint=hint), False
            self.serves_readers = True
        error = _epoch_error(replica, known)
        if error is not ErrorCode.NONE:
            hint = manager.hint(partition, error)
            return FetchResult(partition, error, hint=hint), False
        request = session.request
        assert request is not None
        if session.replica_id >= 0 and not manager.is_current(
            session.replica_id, request.replica_epoch
        ):
            return FetchResult(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER), False
        if self._selects and request.rack and session.replica_id < 0 and replica.is_leader:
            elsewhere = self._elsewhere(request.rack, known, replica)
            if elsewhere is not None:
                return elsewhere, False
        return self._read(session, known, replica, room)

    def _elsewhere(
        self, rack: str, known: SessionPartition, replica: Replica
    ) -> FetchResult | None:
        """No data, but who shall be asked for them; ``None`` if it is this leader."""
        offset = known.asked.fetch_offset
        preferred = preferred_read_replica(replica, self._manager.image, rack, offset)
        if preferred < 0:
            return None
        start = replica.log.log_start_offset
        return FetchResult(
            replica.partition, ErrorCode.NONE, replica.high_watermark, start, preferred=preferred
        )

    def _read(
        self, session: FetchSession, known: SessionPartition, replica: Replica, room: Bytes
    ) -> tuple[FetchResult | None, bool]:
        asked = known.asked
        log = replica.log
        start = log.log_start_offset
        partition = asked.partition
        high_watermark = replica.high_watermark
        try:
            diverging = replica.divergence(asked)
        except LookupError:
            return FetchResult(partition, ErrorCode.OFFSET_OUT_OF_RANGE), False
        if not start <= asked.fetch_offset <= log.log_end_offset and diverging is None:
            return FetchResult(partition, ErrorCode.OFFSET_OUT_OF_RANGE), False
        if diverging is not None:
            result = FetchResult(
                partition, ErrorCode.NONE, high_watermark, start, diverging=diverging
            )
            return result, False
        is_follower = session.replica_id >= 0
        if is_follower and self._quota is not None:
            in_sync = session.replica_id in replica.in_sync
            if self._quota.holds_back(partition, in_sync=in_sync, now=self._now):
                room = 0
        bound = log.log_end_offset if is_follower else high_watermark
        if session.reads_committed and partition not in session.looked_free:
            bound = log.transactions.last_stable_offset(high_watermark)
        batches: tuple[Batch, ...] = ()
        if asked.fetch_offset < bound and room > 0:
            try:
                batches = log.read(asked.fetch_offset, bound, min(asked.max_bytes, room))
            except CorruptRecord:
                return FetchResult(partition, ErrorCode.CORRUPT_MESSAGE), False
        news = bool(batches) or high_watermark != known.told_high_watermark
        is_quiet = not batches and asked.fetch_offset >= bound
        if is_follower and session.replica_id not in replica.in_sync:
            is_quiet = False
        if not news and start == known.told_log_start:
            return None, is_quiet
        if session.reads_committed:
            result = _committed_data(replica, asked.fetch_offset, bound, batches)
            return result, is_quiet
        return FetchResult(partition, ErrorCode.NONE, high_watermark, start, batches), is_quiet

    def _hold_back(self, session: FetchSession, out: list[object]) -> None:
        """Answer without anything: the client has to wait. What it was to get stays for later.

        A session that the request was to open is not opened (``FullFetchContext``).
        """
        assert session.request is not None
        token, session.token = session.token, -1
        self._parked.pop(session, None)
        number = session.session_id
        if session.request.session_epoch <= 0:
            self._sessions.close(number)
            number = 0
        out.append(fx.Reply(token, FetchResponse(ErrorCode.NONE, number, ())))

    def _answer(self, session: FetchSession, results: list[FetchResult], out: list[object]) -> None:
        if self._clients is not None and session.replica_id < 0:
            size = FetchResponse(ErrorCode.NONE, session.session_id, tuple(results)).size_bytes
            if self._clients.holds_back(session.token, size, self._now):
                self._hold_back(session, out)
                return
        for result in results:
            known = session.partitions[result.partition]
            known.told_high_watermark = result.high_watermark
            known.told_log_start = result.log_start_offset
        if self._quota is not None and session.replica_id >= 0:
            self._quota.sent(results, self._now)
        token, session.token = session.token, -1
        self._parked.pop(session, None)
        out.append(
            fx.Reply(token, FetchResponse(ErrorCode.NONE, session.session_id, tuple(results)))
        )


def _committed_data(
    replica: Replica, fetch_offset: Offset, stable: Offset, batches: tuple[Batch, ...]
) -> FetchResult:
    """What a reader of committed data gets: with the batches, whose of them it has to skip."""
    log = replica.log
    aborted: tuple[AbortedTransaction, ...] = ()
    if batches:
        found = log.transactions.aborted_between(fetch_offset, batches[-1].last_offset + 1)
        aborted = tuple(AbortedTransaction(*pair) for pair in found)
    return FetchResult(
        replica.partition,
        ErrorCode.NONE,
        replica.high_watermark,
        log.log_start_offset,
        batches,
        last_stable_offset=stable,
        aborted=aborted,
    )


def _is_urgent(result: FetchResult) -> bool:
    """Errors, divergence and the name of another replica are answered at once."""
    return (
        result.error is not ErrorCode.NONE or result.diverging.offset >= 0 or result.preferred >= 0
    )


def _epoch_error(replica: Replica, known: SessionPartition) -> ErrorCode:
    epoch = known.asked.leader_epoch
    if epoch < 0 or epoch == replica.leader_epoch:
        return ErrorCode.NONE
    if epoch < replica.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def _may_fetch(replica: Replica, known: SessionPartition) -> bool:
    """Whether the fetch counts: right epoch, within the log, and not diverging."""
    if _epoch_error(replica, known) is not ErrorCode.NONE:
        return False
    asked = known.asked
    log = replica.log
    if not log.log_start_offset <= asked.fetch_offset <= log.log_end_offset:
        return False
    try:
        return replica.divergence(asked) is None
    except LookupError:
        return False
