"""A broker's follower side: fetches, appends, truncates, retries.

Source: ``AbstractFetcherThread``, ``ReplicaFetcherThread``; KIP-101, KIP-279, KIP-595.
"""

from dataclasses import dataclass
from functools import partial

from sim.error_codes import ErrorCode
from sim.errors import CorruptRecord, StorageFailed
from sim.ids import NO_EPOCH, LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects, ReplicaEffect
from sim.protocol.broker.replication.events import StorageBroke
from sim.protocol.broker.replication.fetcher import Fetcher, FetchState
from sim.protocol.broker.replication.fetchers import Fetchers
from sim.protocol.broker.replication.follower.adopted import AdoptedOffsets
from sim.protocol.broker.replication.follower.cuts import LogCuts
from sim.protocol.broker.replication.follower.epoch_lookups import TIMER, EpochLookups
from sim.protocol.broker.replication.follower.tier_state import TierStateMachine
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.replication.log_locks import LogLocks
from sim.protocol.broker.replication.trace_rows import note_append
from sim.protocol.broker.replication_quotas import FollowerQuota
from sim.protocol.broker.tiered.ports import AuxStateDone
from sim.protocol.broker.truncation.out_of_range import TruncationForbidden
from sim.protocol.events import RequestFailed
from sim.protocol.messages.data import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    FetchResponse,
    FetchResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from sim.protocol.messages.leader_epochs import OffsetForLeaderEpochResponse
from sim.protocol.ports import Batch
from sim.protocol.preemption import Threads
from sim.units import NEVER, Micros


@dataclass(slots=True)
class _OutOfRange:
    """A partition whose fetch offset the leader does not have: its open ListOffsets request."""

    fetcher: Fetcher
    partition: TopicPartition
    timestamp: int


class FollowerPath:
    """Work of one broker's fetchers.

    Args:
        hosted: The broker's partitions.
        locks: The locks of their logs.
        threads: The broker's threads.
        fetchers: Fetchers of the partitions.
        adopted: High watermarks and log starts of leaders.
        cuts: Truncates their logs.
        quota: The throttle of followers; ``None`` without a rate.
    """

    def __init__(
        self,
        hosted: HostedPartitions,
        locks: LogLocks,
        threads: Threads[ReplicaEffect],
        fetchers: Fetchers,
        adopted: AdoptedOffsets,
        cuts: LogCuts,
        quota: FollowerQuota | None,
    ) -> None:
        self.epochs = EpochLookups(hosted)
        self.tier = TierStateMachine(hosted, cuts)
        self._hosted = hosted
        self._locks = locks
        self._threads = threads
        self._fetchers = fetchers
        self._adopted = adopted
        self._cuts = cuts
        self._quota = quota
        self._in_flight: dict[int, Fetcher] = {}
        self._lookups: dict[int, _OutOfRange] = {}
        self._unfinished: dict[int, int] = {}
        """Steps that a fetcher waits for before it fetches again: fsyncs, and preempted threads."""

    # -- partitions of fetchers --------------------------------------------------------------------

    def follow(self, replica: Replica, out: Effects) -> None:
        """Fetches a partition from the log end, after the truncation rule's lookup."""
        rule = self._hosted.config.truncation
        partition = replica.partition
        fetcher = self._fetchers.assigned(replica)
        log = replica.log
        cut = rule.cut_before_fetching(replica)
        if cut < log.log_end_offset:
            reason = "no_epoch" if log.latest_epoch == NO_EPOCH else "high_watermark"
            if not self.truncate_or_fail(replica, cut, reason, out):
                return
        state = FetchState(
            log.log_end_offset, replica.leader_epoch, log.latest_epoch, log.log_start_offset
        )
        self._fetchers.add(fetcher, partition, state)
        if rule.needs_lookup(replica):
            self.epochs.look_up(fetcher, replica, out)

    def shut_down_idle(self, out: Effects) -> None:
        """Shuts down every fetcher without partitions, with its connection.

        The next one to that leader begins with a connection and a session of its own, and does not
        wait for a response that may never come.

        Source: ``AbstractFetcherManager.shutdownIdleFetcherThreads``.
        """
        for fetcher in self._fetchers.take_idle():
            self._in_flight.pop(fetcher.correlation, None)
            for requested in [
                c for c, lookup in self._lookups.items() if lookup.fetcher is fetcher
            ]:
                del self._lookups[requested]
            self.epochs.forget(fetcher)
            out.append(fx.Close(fetcher.leader, fetcher.channel))

    def send_all(self, now: Micros, out: Effects) -> None:
        """Lets every idle fetcher fetch."""
        for fetcher in self._fetchers.all():
            self._send(fetcher, now, out)

    def wake(self, name: str, now: Micros, out: Effects) -> None:
        """A back-off has passed."""
        if name == TIMER:
            self.epochs.wake(out)
            return
        _, leader, fetcher_id = name.split("/")
        if (fetcher := self._fetchers.get(int(leader), int(fetcher_id))) is not None:
            self._send(fetcher, now, out)

    # -- responses ---------------------------------------------------------------------------------

    def answered(
        self,
        leader: NodeId,
        correlation: int,
        response: FetchResponse,
        now: Micros,
        out: Effects,
    ) -> None:
        """Handles a fetch response: appends, truncates or backs off, then fetches again."""
        fetcher = self._in_flight.pop(correlation, None)
        if fetcher is None or fetcher.correlation != correlation:
            return
        del leader
        if response.error is not ErrorCode.NONE:
            fetcher.correlation = -1
            fetcher.reopen()
            self._send(fetcher, now, out)
            return
        fetcher.answered(response.session_id)
        self._take_all(fetcher, response.results, now, out)
        self._send(fetcher, now, out)

    def _take_all(
        self, fetcher: Fetcher, results: tuple[FetchResult, ...], now: Micros, out: Effects
    ) -> None:
        """Applies the results one after the other, until a log's flush has to be waited for.

        Source: ``AbstractFetcherThread.processFetchRequest``, one thread.
        """
        locks = self._locks
        for index, result in enumerate(results):
            partition = result.partition
            if locks.is_held(partition):
                self._wait_for_another(fetcher)
                locks.wait(partition, partial(self._continue, fetcher, results[index:]))
                return
            if self._take(fetcher, result, now, out):
                self._wait_for_another(fetcher)
                rest = partial(self._continue, fetcher, results[index + 1 :])
                locks.flush(partition, rest, out, by_handler=False)
                return

    def _continue(
        self, fetcher: Fetcher, results: tuple[FetchResult, ...], now: Micros, out: Effects
    ) -> None:
        """A flush is done: the fetcher's thread continues with the other results."""
        self._take_all(fetcher, results, now, out)
        self._one_is_finished(fetcher, now, out)

    def _wait_for_another(self, fetcher: Fetcher) -> None:
        key = id_of(fetcher)
        self._unfinished[key] = self._unfinished.get(key, 0) + 1

    def _one_is_finished(self, fetcher: Fetcher, now: Micros, out: Effects) -> None:
        key = id_of(fetcher)
        self._unfinished[key] -= 1
        if self._unfinished[key] == 0:
            del self._unfinished[key]
            # Another one may have replaced it meanwhile.
            current = self._fetchers.get(fetcher.leader, fetcher.fetcher_id)
            self._send(fetcher if current is None else current, now, out)

    def failed(self, event: RequestFailed, now: Micros, out: Effects) -> None:
        """A fetch or a lookup failed: backs off and opens a new session."""
        if self.epochs.failed(event.correlation, now, out):
            return
        if (rebuilding := self.tier.failed(event.correlation, now)) is not None:
            self._send(rebuilding, now, out)
            return
        lookup = self._lookups.pop(event.correlation, None)
        backoff = now + self._hosted.config.fetcher.backoff_us
        if lookup is not None:
            if lookup.partition in lookup.fetcher.partitions:
                lookup.fetcher.delay(lookup.partition, backoff)
            self._send(lookup.fetcher, now, out)
            return
        fetcher = self._in_flight.pop(event.correlation, None)
        if fetcher is None or fetcher.correlation != event.correlation:
            return
        fetcher.correlation = -1
        fetcher.reopen()
        for partition, state in fetcher.partitions.items():
            if not state.truncating:
                fetcher.delay(partition, backoff)
        self._send(fetcher, now, out)

    def offsets_listed(
        self, correlation: int, response: ListOffsetsResponse, now: Micros, out: Effects
    ) -> None:
        """Handles ListOffsets of a fetch offset that was out of range."""
        lookup = self._lookups.pop(correlation, None)
        if lookup is None:
            rebuilding = self.tier.offsets_listed(correlation, response, now, out)
            if rebuilding is not None:
                self._send(rebuilding, now, out)
            return
        fetcher, partition = lookup.fetcher, lookup.partition
        replica = self._hosted.replicas.get(partition)
        if replica is None or partition not in fetcher.partitions or replica.is_leader:
            return
        if response.error is not ErrorCode.NONE:
            fetcher.delay(partition, now + self._hosted.config.fetcher.backoff_us)
        elif self.tier.starts_at_last_tiered(replica) and response.offset != 0:
            if lookup.timestamp == LATEST_TIMESTAMP:
                self._look_up(fetcher, partition, EARLIEST_TIMESTAMP, out)
                return
            self.tier.begin(fetcher, replica, response.offset, out)
        elif lookup.timestamp == LATEST_TIMESTAMP:
            if response.offset >= replica.log.log_end_offset:
                self._look_up(fetcher, partition, EARLIEST_TIMESTAMP, out)
                return
            configs = self._hosted.image.configs_of(partition.topic)
            if self._hosted.config.out_of_range.forbids_truncation(configs):
                reason = f"the leader's log ends at {response.offset}"
                out.append(TruncationForbidden(partition, reason))
                return
            self._come_into_range(fetcher, replica, response.offset, now, out)
        else:
            rule = self._hosted.config.out_of_range
            if rule.restarts(response.offset, replica.log.log_end_offset):
                self._cuts.restart_at(replica, response.offset, out)
            self._refetch(fetcher, replica)
        self._send(fetcher, now, out)

    def _come_into_range(
        self, fetcher: Fetcher, replica: Replica, end: Offset, now: Micros, out: Effects
    ) -> None:
        """Truncates a log that is ahead of its leader's; retries later if that fails.

        Source: ``AbstractFetcherThread.handleOutOfRangeError``.
        """
        try:
            self._cuts.cut(replica, end, "out_of_range", out)
        except CorruptRecord:
            self._refetch(fetcher, replica)
            fetcher.delay(replica.partition, now + self._hosted.config.fetcher.backoff_us)
        else:
            self._refetch(fetcher, replica)

    # -- one partition of a response ---------------------------------------------------------------

    def _take(self, fetcher: Fetcher, result: FetchResult, now: Micros, out: Effects) -> bool:
        """Applies one partition's result; true if an fsync is due."""
        partition = result.partition
        state = fetcher.partitions.get(partition)
        replica = self._hosted.replicas.get(partition)
        if (
            replica is None
            or state is None
            or not state.requested
            or state.leader_epoch != replica.leader_epoch
        ):
            return False
        backoff = now + self._hosted.config.fetcher.backoff_us
        match result.error:
            case ErrorCode.NONE:
                if result.diverging.offset >= 0:
                    if self._hosted.config.truncates_first:
                        self._diverged(fetcher, replica, result, out)
                    else:
                        self._diverged_late(fetcher, replica, result, out)
                    return False
                try:
                    flush_due = self._append(fetcher, replica, result, out)
                except CorruptRecord:
                    # Nothing was written; the same offset is fetched again, as by Kafka's fetcher.
                    fetcher.delay(partition, backoff)
                    return False
                if self._quota is not None:
                    self._quota.took(fetcher, result, replica.log.log_end_offset, now)
                return flush_due
            case ErrorCode.OFFSET_OUT_OF_RANGE:
                self._look_up(fetcher, partition, LATEST_TIMESTAMP, out)
            case ErrorCode.OFFSET_MOVED_TO_TIERED_STORAGE:
                self.tier.begin(fetcher, replica, result.log_start_offset, out)
            case ErrorCode.FENCED_LEADER_EPOCH:
                # This follower's metadata is behind: wait for it.
                self._fetchers.stop(partition)
            case _:
                fetcher.delay(partition, backoff)
        return False

    def _append(
        self, fetcher: Fetcher, replica: Replica, result: FetchResult, out: Effects
    ) -> bool:
        """Appends the batches at the leader's offsets, and adopts its high watermark."""
        log = replica.log
        batches = result.batches
        if batches and self._hosted.config.skips_later_epochs:
            batches = _until_later_epoch(batches, replica.leader_epoch)
        flush_due = False
        if batches:
            first, end = batches[0], log.log_end_offset
            overlaps = self._hosted.config.truncation.by_last_offset and first.last_offset >= end
            if first.base_offset < end and not overlaps:
                return False  # offsets may be missing where the leader has compacted, never return
            broker = self._hosted.broker
            try:
                flush_due = log.append_as_follower(batches)
            except CorruptRecord:
                raise
            except StorageFailed as failure:
                for batch in batches:
                    if batch.last_offset < log.log_end_offset:
                        note_append(broker, replica.partition, batch, out, as_leader=False)
                out.append(StorageBroke(replica.partition, str(failure)))
                fetcher.remove(replica.partition)
                return False
            for batch in batches:
                note_append(broker, replica.partition, batch, out, as_leader=False)
            fetcher.moved(replica.partition, log.log_end_offset, log.latest_epoch)
        self._adopted.high_watermark(replica, result.high_watermark, out)
        start = result.log_start_offset
        if self._adopted.log_start(replica, start, out):
            fetcher.starts_at(replica.partition, start)
        return flush_due

    def _diverged(
        self, fetcher: Fetcher, replica: Replica, result: FetchResult, out: Effects
    ) -> None:
        partition = replica.partition
        try:
            offset, _ = replica.truncate_for(result.diverging, fetcher.partitions[partition].offset)
            if self.truncate_or_fail(replica, offset, "diverging_epoch", out):
                self._refetch(fetcher, replica)
        except StorageFailed as failure:
            out.append(StorageBroke(partition, str(failure)))
            fetcher.remove(partition)

    def _diverged_late(
        self, fetcher: Fetcher, replica: Replica, result: FetchResult, out: Effects
    ) -> None:
        """Adopts the leader's high watermark, though the log diverges; truncates after that.

        In between, consumers may read records that are not committed. Waiting ones are woken at the
        end of the fetcher's turn.

        Source: ``AbstractFetcherThread.processFetchRequest`` before KAFKA-14704:
        ``processPartitionData`` came before ``truncateOnFetchResponse``.
        """
        self._adopted.before_truncation(replica, result.high_watermark, out)
        self._wait_for_another(fetcher)
        epoch = replica.leader_epoch
        rest = partial(self._cut_late, fetcher, replica, epoch, result)
        out.append(self._threads.interrupt(rest))

    def _cut_late(
        self,
        fetcher: Fetcher,
        replica: Replica,
        epoch: LeaderEpoch,
        result: FetchResult,
        now: Micros,
        out: Effects,
    ) -> None:
        partition = replica.partition
        if partition in fetcher.partitions and replica.leader_epoch == epoch:
            self._diverged(fetcher, replica, result, out)
            self._adopted.after_truncation(partition)
        self._one_is_finished(fetcher, now, out)

    def state_read(self, event: AuxStateDone, now: Micros, out: Effects) -> None:
        """The state of a remote log was read, or cannot be had."""
        rebuilding = self.tier.state_read(event, now, out)
        if rebuilding is not None:
            self._send(rebuilding, now, out)

    def epoch_answered(
        self,
        correlation: int,
        response: OffsetForLeaderEpochResponse,
        now: Micros,
        out: Effects,
    ) -> None:
        """Handles an epoch end: truncates, then fetches, or looks up an earlier epoch."""
        rebuilding = self.tier.epoch_answered(correlation, response, now, out)
        if rebuilding is not None:
            self._send(rebuilding, now, out)
            return
        found = self.epochs.answered(correlation, response, now, out)
        if found is None:
            return
        fetcher, replica = found.fetcher, found.replica
        if not self.truncate_or_fail(replica, found.offset, "leader_epoch", out):
            return
        if found.settled or not self._hosted.config.truncation.needs_lookup(replica):
            fetcher.partitions[replica.partition].truncating = False
            self._refetch(fetcher, replica)
            self._send(fetcher, now, out)
        else:
            self.epochs.look_up(fetcher, replica, out)

    def truncate_or_fail(self, replica: Replica, offset: Offset, reason: str, out: Effects) -> bool:
        """Truncates a log. A damaged one is not fetched until its next leader epoch.

        Returns:
            False if it failed: the partition is marked as failed.

        Source: ``AbstractFetcherThread.doTruncate``, ``markPartitionFailed`` (KIP-461).
        """
        try:
            self._cuts.cut(replica, offset, reason, out)
        except CorruptRecord:
            self._fetchers.fail(replica.partition)
            return False
        return True

    def _refetch(self, fetcher: Fetcher, replica: Replica) -> None:
        fetcher.moved(replica.partition, replica.log.log_end_offset, replica.log.latest_epoch)

    def _look_up(
        self, fetcher: Fetcher, partition: TopicPartition, timestamp: int, out: Effects
    ) -> None:
        hosted = self._hosted
        state = fetcher.partitions[partition]
        fetcher.delay(partition, NEVER)  # until the response
        correlation = hosted.next_correlation()
        self._lookups[correlation] = _OutOfRange(fetcher, partition, timestamp)
        request = ListOffsetsRequest(partition, timestamp, state.leader_epoch, hosted.broker)
        timeout = hosted.config.fetcher.socket_timeout_us
        out.append(fx.Send(fetcher.leader, correlation, request, timeout, fetcher.channel))

    def _send(self, fetcher: Fetcher, now: Micros, out: Effects) -> None:
        if fetcher.correlation >= 0 or not fetcher.partitions or id_of(fetcher) in self._unfinished:
            return
        hosted = self._hosted
        if self._quota is not None:
            self._quota.hold_back(fetcher, now)
        request = fetcher.next_request(hosted.broker, hosted.broker_epoch, now)
        wake_up = fetcher.wake_up_at()
        if wake_up < NEVER:
            name = f"fetcher/{fetcher.leader}/{fetcher.fetcher_id}"
            out.append(fx.SetTimer(name, wake_up))
        if request is None:
            return
        fetcher.correlation = hosted.next_correlation()
        self._in_flight[fetcher.correlation] = fetcher
        timeout = hosted.config.fetcher.socket_timeout_us
        out.append(fx.Send(fetcher.leader, fetcher.correlation, request, timeout, fetcher.channel))


def _until_later_epoch(batches: tuple[Batch, ...], epoch: LeaderEpoch) -> tuple[Batch, ...]:
    """The batches before the first one of a leader epoch after that one.

    A leader may lose its leadership, and append batches of its successor, before it reads for a
    response.

    Source: ``UnifiedLog.analyzeAndValidateRecords`` (KAFKA-18723).
    """
    for count, batch in enumerate(batches):
        if batch.leader_epoch > epoch:
            return batches[:count]
    return batches


def id_of(fetcher: Fetcher) -> int:
    """A number for a fetcher that is the same in every run."""
    return fetcher.leader * 1_000 + fetcher.fetcher_id
