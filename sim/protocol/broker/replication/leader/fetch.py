"""Fetch requests at a broker: followers read to the log end, consumers committed records.

A fetch with too little data is parked in its session until an append (followers) or an advance of
the high watermark (consumers) brings more, or its deadline passes. An advance of the high watermark
alone does not wake a follower.

Followers serve consumers too, up to their own high watermark (KIP-392). Left out: sessionless
fetches.

Source: ``ReplicaManager.fetchMessages``, ``DelayedFetch``; KIP-227, KIP-595's diverging epochs.
"""

from collections import deque
from functools import partial

from sim.error_codes import ErrorCode
from sim.errors import CorruptRecord
from sim.ids import Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.authorization import ApiAuthorizer
from sim.protocol.broker.fetch_session import NO_SESSION, FetchSession, SessionPartition
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects, ReplicaEffect
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.replication.leader.delayed_fetches import DelayedFetches
from sim.protocol.broker.replication.leader.follower_fetches import FollowerFetches, epoch_error
from sim.protocol.broker.replication.leader.read_replicas import (
    follower_for_reader,
    preferred_read_replica,
)
from sim.protocol.broker.replication.leader.remote_fetches import RemoteFetches, RemotePart
from sim.protocol.broker.replication.log_locks import LogLocks
from sim.protocol.broker.replication_quotas import LeaderQuota
from sim.protocol.broker.tiered.ports import RemoteReadDone
from sim.protocol.messages.data import (
    AbortedTransaction,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
)
from sim.protocol.ports import Batch
from sim.protocol.preemption import Threads
from sim.protocol.quotas.client import ClientQuotas
from sim.units import Bytes, Micros


class FetchPath:
    """Fetch requests on one broker.

    Args:
        hosted: The broker's partitions.
        locks: The locks of their logs.
        threads: The broker's threads.
        delayed: The fetch sessions, with parked fetches.
        followers: Leaders' state of their followers.
        quota: The throttle of leaders; ``None`` without a rate.
        clients: Consumers' quotas; ``None``: none.
        authorizer: Consumers' rights; ``None``: nobody is refused.
    """

    def __init__(
        self,
        hosted: HostedPartitions,
        locks: LogLocks,
        threads: Threads[ReplicaEffect],
        delayed: DelayedFetches,
        followers: FollowerFetches,
        quota: LeaderQuota | None,
        clients: ClientQuotas | None,
        authorizer: ApiAuthorizer | None = None,
    ) -> None:
        self._hosted = hosted
        self._locks = locks
        self._threads = threads
        self._delayed = delayed
        self._followers = followers
        self._quota = quota
        self._clients = clients
        self._authorizer = authorizer
        self._selects = hosted.config.rack_aware_reads
        self._looks_once = hosted.config.reads_bound_once
        self._now: Micros = 0
        self._remote = RemoteFetches(hosted.config.remote_wait_us)
        self._remote_part: RemotePart | None = None
        """First partition of the fetch at hand that needs the remote log."""

    def request(
        self, token: int, client: str, request: FetchRequest, now: Micros, out: Effects
    ) -> None:
        """Updates a follower's state; answers, or parks the fetch in its session."""
        session = self._delayed.open(client, request, now)
        if isinstance(session, ErrorCode):
            out.append(fx.Reply(token, FetchResponse(session, 0, ())))
            return
        self._now = now
        session.request = request
        session.token = token
        session.min_bytes = request.min_bytes
        session.max_bytes = min(request.max_bytes, self._hosted.config.fetch_bytes_max)
        if self._clients is not None and request.replica_id < 0:
            # More than a quota allows in one burst would be throttled whatever was read before.
            session.max_bytes = min(session.max_bytes, self._clients.fetch_bytes_max(client))
            session.min_bytes = min(session.min_bytes, session.max_bytes)
        if self._authorizer is not None and request.replica_id < 0:
            self._authorize(self._authorizer, session)
        held = deque[tuple[Replica, bool]]()
        if request.replica_id >= 0:
            self._followers.update(session, request, held, now, out)
        session.clock.last_fetch_us = now
        if held:
            self._wait_for_locks(session, token, held, now, now, out)
            return
        if session.reads_committed and not self._looks_once:
            session.looked_free = self._free_of_transactions(session)
            if session.looked_free:
                out.append(
                    self._threads.interrupt(partial(self._read_watermark_again, session, token))
                )
                return
        self._read_or_park(session, request, now, out)

    def _authorize(self, authorizer: ApiAuthorizer, session: FetchSession) -> None:
        """Notes which partitions of the session this fetch may not read.

        Source: ``KafkaApis.handleFetchRequest``: every fetch is checked, when it arrives.
        """
        client = session.client
        topics = {partition.topic: False for partition in session.partitions}
        for topic in topics:
            topics[topic] = authorizer.may_read(client, topic)
        denied = [partition for partition in session.partitions if not topics[partition.topic]]
        session.hot.update(dict.fromkeys(denied))
        session.hot.update(session.denied)
        session.denied = dict.fromkeys(denied)

    def _wait_for_locks(
        self,
        session: FetchSession,
        token: int,
        held: deque[tuple[Replica, bool]],
        since: Micros,
        now: Micros,
        out: Effects,
    ) -> None:
        """Continues a follower's fetch once no flush holds a log whose high watermark it advances.

        Its handler waits for one lock after the other. Here it reads afterwards, in Kafka before.
        """
        locks = self._locks
        while held:
            replica, moved = held[0]
            if locks.is_held(replica.partition):
                rest = partial(self._wait_for_locks, session, token, held, since)
                locks.wait(replica.partition, rest)
                return
            held.popleft()
            if replica.is_leader and session.replica_id in replica.remotes:
                self._followers.advanced(replica, session.replica_id, now, out, moved=moved)
        out.append(fx.HandlerBlocked(since))
        request = session.request
        if request is not None and session.token == token:
            self._read_or_park(session, request, now, out)

    def _free_of_transactions(self, session: FetchSession) -> dict[TopicPartition, None]:
        """Partitions in which only the high watermark limits a reader of committed data.

        Source: ``Log.fetchLastStableOffsetMetadata`` before KAFKA-9807: it compared the first
        unstable offset with the high watermark, and if that was not above it returned the high
        watermark that it found by then.
        """
        free: dict[TopicPartition, None] = {}
        for partition in session.hot:
            replica = self._hosted.replicas.get(partition)
            if replica is not None:
                high_watermark = replica.high_watermark
                if replica.log.transactions.last_stable_offset(high_watermark) == high_watermark:
                    free[partition] = None
        return free

    def _read_watermark_again(
        self, session: FetchSession, token: int, now: Micros, out: Effects
    ) -> None:
        """Second read of the high watermark, right before the log's."""
        request = session.request
        if request is not None and session.token == token:
            self._read_or_park(session, request, now, out)
            session.looked_free = {}

    def _read_or_park(
        self, session: FetchSession, request: FetchRequest, now: Micros, out: Effects
    ) -> None:
        self._now = now
        results, size = self._results(session)
        if self._waits_for_remote(session, results, out):
            return
        enough = size >= session.min_bytes or any(_is_urgent(r) for r in results)
        if enough or request.max_wait_us <= 0 or not session.partitions:
            self._answer(session, results, out)
            return
        self._delayed.park(session, now + request.max_wait_us, out)

    def answer_woken(self, now: Micros, out: Effects) -> None:
        """Answers the parked fetches that have something to return now."""
        delayed = self._delayed
        if not delayed.woken:
            return
        self._now = now
        for session in delayed.take_woken():
            if not delayed.waits(session):
                continue
            results, size = self._results(session)
            if self._waits_for_remote(session, results, out):
                continue
            if size >= session.min_bytes or any(_is_urgent(r) for r in results):
                self._answer(session, results, out)

    def expire(self, now: Micros, out: Effects) -> None:
        """Answers expired fetches, with what there is."""
        self._now = now
        for session in self._delayed.expired(now):
            results, _ = self._results(session)
            if not self._waits_for_remote(session, results, out):
                self._answer(session, results, out)
        self._delayed.set_timer(out)

    # -- remote log -------------------------------------------------------------------------------

    def _waits_for_remote(
        self, session: FetchSession, results: list[FetchResult], out: Effects
    ) -> bool:
        """True if a partition of the fetch is read remotely; then it waits for that."""
        part, self._remote_part = self._remote_part, None
        if part is None:
            return False
        self._delayed.complete(session)
        self._remote.begin(session, part, results, self._now, out)
        return True

    def remote_read(self, event: RemoteReadDone, now: Micros, out: Effects) -> None:
        """A remote read is done: answers its fetch."""
        self._now = now
        fetch = self._remote.done(event)
        if fetch is not None:
            self._answer(fetch.session, fetch.results, out)

    def expire_remote(self, now: Micros, out: Effects) -> None:
        """Answers fetches whose remote reads took too long, without those records."""
        self._now = now
        for fetch in self._remote.expired(now, out):
            self._answer(fetch.session, fetch.results, out)

    # -- responses ---------------------------------------------------------------------------------

    def _results(self, session: FetchSession) -> tuple[list[FetchResult], Bytes]:
        """Results of the hot partitions, and their bytes of records.

        A partition stays hot while it has more to read or changes that are not in a response yet,
        and while its follower is not in the ISR.
        """
        results: list[FetchResult] = []
        capacity = session.max_bytes
        size = 0
        for partition in list(session.hot):
            known = session.partitions.get(partition)
            if known is None:
                del session.hot[partition]
                continue
            result, is_quiet = self._result(session, known, capacity)
            if result is not None:
                results.append(result)
                read = sum([b.size_bytes for b in result.batches])
                size += read
                capacity = max(capacity - read, 0)
            if is_quiet and result is None:
                del session.hot[partition]
        return results, size

    def _result(
        self, session: FetchSession, known: SessionPartition, capacity: Bytes
    ) -> tuple[FetchResult | None, bool]:
        """One partition's result (``None`` for none), and true if it is no longer hot."""
        hosted = self._hosted
        requested = known.requested
        partition = requested.partition
        if partition in session.denied:
            return FetchResult(partition, ErrorCode.TOPIC_AUTHORIZATION_FAILED), False
        replica = hosted.led(partition)
        if isinstance(replica, ErrorCode):
            if session.replica_id < 0:
                replica = follower_for_reader(hosted, partition, replica)
            if isinstance(replica, ErrorCode):
                hint = hosted.hint(partition, replica)
                return FetchResult(partition, replica, hint=hint), False
            self._delayed.serves_readers = True
        error = epoch_error(replica, known)
        if error is not ErrorCode.NONE:
            hint = hosted.hint(partition, error)
            return FetchResult(partition, error, hint=hint), False
        request = session.request
        assert request is not None
        if session.replica_id >= 0 and not hosted.is_current(
            session.replica_id, request.replica_epoch
        ):
            return FetchResult(partition, ErrorCode.NOT_LEADER_OR_FOLLOWER), False
        if self._selects and request.rack and session.replica_id < 0 and replica.is_leader:
            elsewhere = self._preferred_replica(request.rack, known, replica)
            if elsewhere is not None:
                return elsewhere, False
        return self._read(session, known, replica, capacity)

    def _preferred_replica(
        self, rack: str, known: SessionPartition, replica: Replica
    ) -> FetchResult | None:
        """Result that names the preferred read replica; ``None`` for this leader."""
        offset = known.requested.fetch_offset
        preferred = preferred_read_replica(replica, self._hosted.image, rack, offset)
        if preferred < 0:
            return None
        start = replica.log.log_start_offset
        return FetchResult(
            replica.partition, ErrorCode.NONE, replica.high_watermark, start, preferred=preferred
        )

    def _read(
        self, session: FetchSession, known: SessionPartition, replica: Replica, capacity: Bytes
    ) -> tuple[FetchResult | None, bool]:
        """Reads locally; what lies in the remote log alone is another way, or another error."""
        requested, log = known.requested, replica.log
        start = log.log_start_offset
        below = start <= requested.fetch_offset < log.local_log_start_offset
        if not below or _diverges(replica, requested):
            return self._read_locally(session, known, replica, capacity)
        if session.replica_id >= 0:
            moved = ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE
            return FetchResult(replica.partition, moved, replica.high_watermark, start), False
        self._read_remotely(session, known, replica, capacity)
        return None, False

    def _read_locally(
        self, session: FetchSession, known: SessionPartition, replica: Replica, capacity: Bytes
    ) -> tuple[FetchResult | None, bool]:
        requested = known.requested
        log = replica.log
        start = log.log_start_offset
        partition = requested.partition
        high_watermark = replica.high_watermark
        try:
            diverging = replica.divergence(requested)
        except LookupError:
            return FetchResult(partition, ErrorCode.OFFSET_OUT_OF_RANGE), False
        if not start <= requested.fetch_offset <= log.log_end_offset and diverging is None:
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
                capacity = 0
        bound = log.log_end_offset if is_follower else high_watermark
        if session.reads_committed and partition not in session.looked_free:
            bound = log.transactions.last_stable_offset(high_watermark)
        batches: tuple[Batch, ...] = ()
        if requested.fetch_offset < bound and capacity > 0:
            try:
                batches = log.read(
                    requested.fetch_offset, bound, min(requested.max_bytes, capacity)
                )
            except CorruptRecord:
                return FetchResult(partition, ErrorCode.CORRUPT_MESSAGE), False
        news = bool(batches) or high_watermark != known.sent_high_watermark
        is_quiet = not batches and requested.fetch_offset >= bound
        if is_follower and session.replica_id not in replica.in_sync:
            is_quiet = False
        if not news and start == known.sent_log_start:
            return None, is_quiet
        if session.reads_committed:
            result = _committed_data(replica, requested.fetch_offset, bound, batches)
            return result, is_quiet
        return FetchResult(partition, ErrorCode.NONE, high_watermark, start, batches), is_quiet

    def _read_remotely(
        self, session: FetchSession, known: SessionPartition, replica: Replica, capacity: Bytes
    ) -> None:
        """Notes a partition whose records are below the local log, unless another one is noted."""
        if self._remote_part is not None:
            return
        stable = -1
        if session.reads_committed:
            stable = replica.log.transactions.last_stable_offset(replica.high_watermark)
        self._remote_part = RemotePart(
            replica.partition,
            known.requested.fetch_offset,
            min(known.requested.max_bytes, capacity),
            replica.high_watermark,
            replica.log.log_start_offset,
            stable,
        )

    def _hold_back(self, session: FetchSession, out: Effects) -> None:
        """Answers without records: the client is throttled. The records stay for later.

        A session that the request was to open is not opened (``FullFetchContext``).
        """
        assert session.request is not None
        is_kept = session.request.session_epoch > 0 and session.is_kept
        self._reply(session, (), out, is_kept=is_kept)

    def _answer(self, session: FetchSession, results: list[FetchResult], out: Effects) -> None:
        if self._clients is not None and session.replica_id < 0:
            size = FetchResponse(ErrorCode.NONE, session.session_id, tuple(results)).size_bytes
            if self._clients.holds_back(session.token, size, self._now):
                self._hold_back(session, out)
                return
        for result in results:
            known = session.partitions[result.partition]
            known.sent_high_watermark = result.high_watermark
            known.sent_log_start = result.log_start_offset
        if self._quota is not None and session.replica_id >= 0:
            self._quota.sent(results, self._now)
        self._reply(session, tuple(results), out, is_kept=session.is_kept)

    def _reply(
        self,
        session: FetchSession,
        results: tuple[FetchResult, ...],
        out: Effects,
        *,
        is_kept: bool,
    ) -> None:
        """Answer the fetch that waits in a session, which is closed unless it is kept."""
        token, session.token = session.token, -1
        self._delayed.complete(session)
        number = session.session_id
        if is_kept and session.epoch == 0:
            is_kept = self._delayed.cache(session, self._now)
        if not is_kept:
            self._delayed.close(number)
            number = NO_SESSION
        self._delayed.answered(session)
        out.append(fx.Reply(token, FetchResponse(ErrorCode.NONE, number, results)))


def _committed_data(
    replica: Replica, fetch_offset: Offset, stable: Offset, batches: tuple[Batch, ...]
) -> FetchResult:
    """Result of a reader of committed data, with the aborted transactions in its batches."""
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


def _diverges(replica: Replica, requested: FetchPartition) -> bool:
    """True if the fetcher's log is another one than this, or has an epoch unknown here."""
    try:
        return replica.divergence(requested) is not None
    except LookupError:
        return True


def _is_urgent(result: FetchResult) -> bool:
    """True for errors, divergence and another preferred replica, which are answered at once."""
    return (
        result.error is not ErrorCode.NONE or result.diverging.offset >= 0 or result.preferred >= 0
    )
