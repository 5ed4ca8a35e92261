"""What a broker does for the partitions it follows: fetch, append, truncate, try again.

Source: ``AbstractFetcherThread``, ``ReplicaFetcherThread``; KIP-101, KIP-279, KIP-595.
"""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from sim.error_codes import ErrorCode
from sim.errors import CorruptRecord, StorageFailed
from sim.ids import NO_EPOCH, LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.epoch_lookups import TIMER, EpochLookups
from sim.protocol.broker.replication.fetcher import Fetcher, FetchState, fetcher_id_of
from sim.protocol.broker.replication.log_starts import note_log_start
from sim.protocol.broker.replication.produce import StorageBroke, note_append
from sim.protocol.broker.truncation.follower_log import restart_at, truncate
from sim.protocol.broker.truncation.out_of_range import TruncationForbidden
from sim.protocol.events import RequestFailed
from sim.protocol.messages import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    FetchResponse,
    FetchResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from sim.protocol.ports import Batch
from sim.units import NEVER, Micros

if TYPE_CHECKING:
    from sim.protocol.broker.replication.replica_manager import ReplicaManager


@dataclass(slots=True)
class _OutOfRange:
    """A partition whose fetch offset the leader does not have: what was asked of it since."""

    fetcher: Fetcher
    partition: TopicPartition
    timestamp: int


class FollowerPath:
    """All fetchers of one broker, by leader and fetcher id."""

    def __init__(self, manager: "ReplicaManager") -> None:
        self._manager = manager
        self.epochs = EpochLookups(manager, self)
        self._fetchers: dict[tuple[NodeId, int], Fetcher] = {}
        self._fetcher_of: dict[TopicPartition, Fetcher] = {}
        self._failed: dict[TopicPartition, None] = {}
        """Partitions whose log could not be cut: Kafka's ``failedPartitions`` (KIP-461)."""
        self._in_flight: dict[int, Fetcher] = {}
        self._lookups: dict[int, _OutOfRange] = {}
        self._unfinished: dict[int, int] = {}
        """What a fetcher waits for before it fetches again: fsyncs, and interrupted threads."""

    # -- which partitions are fetched -------------------------------------------------------------

    def is_fetching(self, partition: TopicPartition) -> bool:
        """Whether a fetcher has the partition, or has marked it as failed in this leader epoch."""
        return partition in self._fetcher_of or partition in self._failed

    def follow(self, replica: Replica, out: list[object]) -> None:
        """Fetch a partition from the log end, after what the truncation rule asks for first."""
        config = self._manager.config.fetcher
        rule = self._manager.config.truncation
        partition = replica.partition
        fetcher_id = fetcher_id_of(partition, config.fetchers_per_leader)
        key = (replica.leader, fetcher_id)
        fetcher = self._fetchers.get(key)
        if fetcher is None:
            fetcher = self._fetchers[key] = Fetcher(
                replica.leader, fetcher_id, config, is_fenced=rule.fences
            )
        log = replica.log
        cut = rule.cut_before_fetching(replica)
        if cut < log.log_end_offset:
            reason = "no_epoch" if log.latest_epoch == NO_EPOCH else "high_watermark"
            if not self.truncate_or_fail(replica, cut, reason, out):
                return
        state = FetchState(
            log.log_end_offset, replica.leader_epoch, log.latest_epoch, log.log_start_offset
        )
        fetcher.add(partition, state)
        self._fetcher_of[partition] = fetcher
        if rule.must_ask(replica):
            self.epochs.ask(fetcher, replica, out)

    def stop(self, partition: TopicPartition) -> None:
        """Stop fetching a partition; one that has failed is as any other from now on."""
        self._failed.pop(partition, None)
        if (fetcher := self._fetcher_of.pop(partition, None)) is not None:
            fetcher.remove(partition)

    def shut_down_idle(self, out: list[object]) -> None:
        """End every fetcher that has no partition left, with its connection.

        The next one to that leader begins with a connection and a session of its own, and does not
        wait for an answer that may never come.

        Source: ``AbstractFetcherManager.shutdownIdleFetcherThreads``.
        """
        for key in [key for key, fetcher in self._fetchers.items() if not fetcher.partitions]:
            fetcher = self._fetchers.pop(key)
            self._in_flight.pop(fetcher.correlation, None)
            for asked in [c for c, lookup in self._lookups.items() if lookup.fetcher is fetcher]:
                del self._lookups[asked]
            self.epochs.forget(fetcher)
            out.append(fx.Close(fetcher.leader, fetcher.channel))

    def send_all(self, now: Micros, out: list[object]) -> None:
        """Let every idle fetcher fetch."""
        for fetcher in self._fetchers.values():
            self._send(fetcher, now, out)

    def wake(self, name: str, now: Micros, out: list[object]) -> None:
        """A back-off is over."""
        if name == TIMER:
            self.epochs.wake(out)
            return
        _, leader, fetcher_id = name.split("/")
        if (fetcher := self._fetchers.get((int(leader), int(fetcher_id)))) is not None:
            self._send(fetcher, now, out)

    # -- answers ----------------------------------------------------------------------------------

    def answered(
        self,
        leader: NodeId,
        correlation: int,
        response: FetchResponse,
        now: Micros,
        out: list[object],
    ) -> None:
        """A leader answered a fetch: append, truncate or back off, then fetch again."""
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
        self, fetcher: Fetcher, results: tuple[FetchResult, ...], now: Micros, out: list[object]
    ) -> None:
        """Use the results one after the other, as far as no log's flush has to be waited for.

        Source: ``AbstractFetcherThread.processFetchRequest``, one thread.
        """
        locks = self._manager.locks
        for index, result in enumerate(results):
            partition = result.partition
            if locks.is_held(partition):
                self._wait_for_another(fetcher)
                locks.wait(partition, partial(self._go_on, fetcher, results[index:]))
                return
            if self._take(fetcher, result, now, out):
                self._wait_for_another(fetcher)
                rest = partial(self._go_on, fetcher, results[index + 1 :])
                locks.flush(partition, rest, out, by_handler=False)
                return

    def _go_on(
        self, fetcher: Fetcher, results: tuple[FetchResult, ...], now: Micros, out: list[object]
    ) -> None:
        """A flush is done: the fetcher's thread goes on with what is left of the answer."""
        self._take_all(fetcher, results, now, out)
        self._one_is_finished(fetcher, now, out)

    def _wait_for_another(self, fetcher: Fetcher) -> None:
        key = id_of(fetcher)
        self._unfinished[key] = self._unfinished.get(key, 0) + 1

    def _one_is_finished(self, fetcher: Fetcher, now: Micros, out: list[object]) -> None:
        key = id_of(fetcher)
        self._unfinished[key] -= 1
        if self._unfinished[key] == 0:
            del self._unfinished[key]
            # Another one may have taken its place meanwhile.
            self._send(self._fetchers.get((fetcher.leader, fetcher.fetcher_id), fetcher), now, out)

    def failed(self, event: RequestFailed, now: Micros, out: list[object]) -> None:
        """A fetch or a lookup got no answer: back off and open a new session."""
        if self.epochs.failed(event.correlation, now, out):
            return
        lookup = self._lookups.pop(event.correlation, None)
        backoff = now + self._manager.config.fetcher.backoff_us
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
        self, correlation: int, response: ListOffsetsResponse, now: Micros, out: list[object]
    ) -> None:
        """The leader said where its log ends or begins, for a fetch that was out of range."""
        lookup = self._lookups.pop(correlation, None)
        if lookup is None:
            return
        fetcher, partition = lookup.fetcher, lookup.partition
        replica = self._manager.replicas.get(partition)
        if replica is None or partition not in fetcher.partitions or replica.is_leader:
            return
        if response.error is not ErrorCode.NONE:
            fetcher.delay(partition, now + self._manager.config.fetcher.backoff_us)
        elif lookup.timestamp == LATEST_TIMESTAMP:
            if response.offset >= replica.log.log_end_offset:
                self._look_up(fetcher, partition, EARLIEST_TIMESTAMP, out)
                return
            configs = self._manager.image.configs_of(partition.topic)
            if self._manager.config.out_of_range.forbids_truncation(configs):
                reason = f"the leader's log ends at {response.offset}"
                out.append(TruncationForbidden(partition, reason))
                return
            self._come_into_range(fetcher, replica, response.offset, now, out)
        else:
            rule = self._manager.config.out_of_range
            if rule.starts_anew(response.offset, replica.log.log_end_offset):
                restart_at(self._manager, replica, response.offset, out)
            self._refetch(fetcher, replica)
        self._send(fetcher, now, out)

    def _come_into_range(
        self, fetcher: Fetcher, replica: Replica, end: Offset, now: Micros, out: list[object]
    ) -> None:
        """Cut a log that is ahead of its leader's; one that cannot be cut is tried again later.

        Source: ``AbstractFetcherThread.handleOutOfRangeError``.
        """
        try:
            truncate(self._manager, replica, end, "out_of_range", out)
        except CorruptRecord:
            self._refetch(fetcher, replica)
            fetcher.delay(replica.partition, now + self._manager.config.fetcher.backoff_us)
        else:
            self._refetch(fetcher, replica)

    # -- one partition of an answer ---------------------------------------------------------------

    def _take(self, fetcher: Fetcher, result: FetchResult, now: Micros, out: list[object]) -> bool:
        """Use one partition's result; returns whether an fsync is due."""
        partition = result.partition
        state = fetcher.partitions.get(partition)
        replica = self._manager.replicas.get(partition)
        if (
            replica is None
            or state is None
            or not state.asked
            or state.leader_epoch != replica.leader_epoch
        ):
            return False
        backoff = now + self._manager.config.fetcher.backoff_us
        match result.error:
            case ErrorCode.NONE:
                if result.diverging.offset >= 0:
                    if self._manager.config.truncates_first:
                        self._diverged(fetcher, replica, result, out)
                    else:
                        self._diverged_late(fetcher, replica, result, out)
                    return False
                try:
                    flush_due = self._append(fetcher, replica, result, out)
                except CorruptRecord:
                    # Nothing was written; the leader is asked again, as Kafka's fetcher does.
                    fetcher.delay(partition, backoff)
                    return False
                quota = self._manager.follower_quota
                if quota is not None:
                    quota.took(fetcher, result, replica.log.log_end_offset, now)
                return flush_due
            case ErrorCode.OFFSET_OUT_OF_RANGE:
                self._look_up(fetcher, partition, LATEST_TIMESTAMP, out)
            case ErrorCode.FENCED_LEADER_EPOCH:
                # This follower's metadata is behind: wait for it.
                fetcher.remove(partition)
                self._fetcher_of.pop(partition, None)
            case _:
                fetcher.delay(partition, backoff)
        return False

    def _append(
        self, fetcher: Fetcher, replica: Replica, result: FetchResult, out: list[object]
    ) -> bool:
        """Write what came, at the leader's offsets, and adopt its high watermark."""
        log = replica.log
        batches = result.batches
        if batches and self._manager.config.skips_later_epochs:
            batches = _until_later_epoch(batches, replica.leader_epoch)
        flush_due = False
        if batches:
            first, end = batches[0], log.log_end_offset
            overlaps = self._manager.config.truncation.by_last_offset and first.last_offset >= end
            if first.base_offset < end and not overlaps:
                return False  # offsets may be missing where the leader has compacted, never return
            broker = self._manager.broker
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
        if self._adopt_watermark(replica, result.high_watermark, out):
            self._manager.losses.watermark_moved(replica, out)
            if self._manager.fetch.serves_readers:
                self._manager.fetch.high_watermark_moved(replica.partition)
        start = result.log_start_offset
        if start > log.log_start_offset and self._manager.log_starts.learned(replica, start, out):
            fetcher.starts_at(replica.partition, start)
        return flush_due

    def _adopt_watermark(self, replica: Replica, sent: Offset, out: list[object]) -> bool:
        """Learn what the leader sent; returns whether that is news."""
        if not replica.follower_advance(sent):
            return False
        partition = replica.partition
        out.append(
            fx.Emit(
                "follower_watermarks",
                (
                    self._manager.broker,
                    partition.topic,
                    partition.partition,
                    replica.leader_epoch,
                    replica.high_watermark,
                    replica.log.log_end_offset,
                    sent,
                ),
            )
        )
        return True

    def _diverged(
        self, fetcher: Fetcher, replica: Replica, result: FetchResult, out: list[object]
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
        self, fetcher: Fetcher, replica: Replica, result: FetchResult, out: list[object]
    ) -> None:
        """Adopt the leader's high watermark, though it is of another branch; cut after that.

        In between, consumers may read what is not committed here. Waiting ones are woken at the
        end of the fetcher's turn.

        Source: ``AbstractFetcherThread.processFetchRequest`` before KAFKA-14704:
        ``processPartitionData`` came before ``truncateOnFetchResponse``.
        """
        self._adopt_watermark(replica, result.high_watermark, out)
        self._manager.fetch.changed(replica.partition)
        self._wait_for_another(fetcher)
        epoch = replica.leader_epoch
        rest = partial(self._cut_late, fetcher, replica, epoch, result)
        self._manager.threads.interrupt(rest, out)

    def _cut_late(
        self,
        fetcher: Fetcher,
        replica: Replica,
        epoch: LeaderEpoch,
        result: FetchResult,
        now: Micros,
        out: list[object],
    ) -> None:
        partition = replica.partition
        if partition in fetcher.partitions and replica.leader_epoch == epoch:
            self._diverged(fetcher, replica, result, out)
            if self._manager.fetch.serves_readers:
                self._manager.fetch.high_watermark_moved(partition)
        self._one_is_finished(fetcher, now, out)

    def truncated(self, fetcher: Fetcher, replica: Replica, now: Micros, out: list[object]) -> None:
        """A log is cut where its leader said: fetch it from its end."""
        fetcher.partitions[replica.partition].truncating = False
        self._refetch(fetcher, replica)
        self._send(fetcher, now, out)

    def truncate_or_fail(
        self, replica: Replica, offset: Offset, reason: str, out: list[object]
    ) -> bool:
        """Cut a log. Whose damage is in the way is not fetched until its next leader epoch.

        Returns:
            Whether nothing was in the way; if not, the partition is marked as failed.

        Source: ``AbstractFetcherThread.doTruncate``, ``markPartitionFailed`` (KIP-461).
        """
        try:
            truncate(self._manager, replica, offset, reason, out)
        except CorruptRecord:
            self.stop(replica.partition)
            self._failed[replica.partition] = None
            return False
        return True

    def note_start(self, replica: Replica, before: Offset, reason: str, out: list[object]) -> None:
        """A log may start elsewhere now: all of it was dropped, or another one took its place."""
        after = replica.log.log_start_offset
        if after != before:
            partition = replica.partition
            note_log_start(self._manager.broker, partition, before, after, reason, out)
            fetcher = self._fetcher_of.get(partition)
            if fetcher is not None:
                fetcher.starts_at(partition, after)

    def _refetch(self, fetcher: Fetcher, replica: Replica) -> None:
        fetcher.moved(replica.partition, replica.log.log_end_offset, replica.log.latest_epoch)

    def _look_up(
        self, fetcher: Fetcher, partition: TopicPartition, timestamp: int, out: list[object]
    ) -> None:
        manager = self._manager
        state = fetcher.partitions[partition]
        fetcher.delay(partition, NEVER)  # until the answer
        correlation = manager.next_correlation()
        self._lookups[correlation] = _OutOfRange(fetcher, partition, timestamp)
        request = ListOffsetsRequest(partition, timestamp, state.leader_epoch, manager.broker)
        timeout = manager.config.fetcher.socket_timeout_us
        out.append(fx.Send(fetcher.leader, correlation, request, timeout, fetcher.channel))

    def _send(self, fetcher: Fetcher, now: Micros, out: list[object]) -> None:
        if fetcher.correlation >= 0 or not fetcher.partitions or id_of(fetcher) in self._unfinished:
            return
        manager = self._manager
        if manager.follower_quota is not None:
            manager.follower_quota.hold_back(fetcher, now)
        request = fetcher.next_request(manager.broker, manager.broker_epoch, now)
        wake_up = fetcher.wake_up_at()
        if wake_up < NEVER:
            name = f"fetcher/{fetcher.leader}/{fetcher.fetcher_id}"
            out.append(fx.SetTimer(name, wake_up))
        if request is None:
            return
        fetcher.correlation = manager.next_correlation()
        self._in_flight[fetcher.correlation] = fetcher
        timeout = manager.config.fetcher.socket_timeout_us
        out.append(fx.Send(fetcher.leader, fetcher.correlation, request, timeout, fetcher.channel))


def _until_later_epoch(batches: tuple[Batch, ...], epoch: LeaderEpoch) -> tuple[Batch, ...]:
    """The batches before the first one of a leader epoch after that one.

    A leader may lose its leadership, and take batches of its successor, before it reads for an
    answer.

    Source: ``UnifiedLog.analyzeAndValidateRecords`` (KAFKA-18723).
    """
    for count, batch in enumerate(batches):
        if batch.leader_epoch > epoch:
            return batches[:count]
    return batches


def id_of(fetcher: Fetcher) -> int:
    """A number for a fetcher that is the same in every run."""
    return fetcher.leader * 1_000 + fetcher.fetcher_id
