"""Produce requests at a leader: append, wait for the high watermark, acknowledge.

A request appends to one partition after the other. ``flush.messages`` puts an fsync between an
append and everything that follows it, and other appends to that log wait meanwhile.

Source: ``ReplicaManager.appendRecords``, ``DelayedProduce``; KIP-98 for duplicates.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from sim.error_codes import ErrorCode
from sim.errors import CorruptRecord, StorageFailed
from sim.ids import OFFSETS_TOPIC, SHARE_STATE_TOPIC, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.purgatory import DelayedProduce
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.events import AppendInternal, StorageBroke
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.replication.leader.delayed_fetches import DelayedFetches
from sim.protocol.broker.replication.leader.delayed_produces import DelayedProduces, internal_token
from sim.protocol.broker.replication.leader.high_watermarks import HighWatermarks
from sim.protocol.broker.replication.log_locks import LogLocks
from sim.protocol.broker.replication.trace_rows import note_append
from sim.protocol.messages.data import ProduceRequest, ProduceResponse, ProduceResult
from sim.protocol.ports import NO_GUARD, Appended, Batch
from sim.units import Micros, timestamp_ms


class SpecialWrite(Protocol):
    """Writes of a transaction; see ``sim.protocol.broker.replication.leader.transactions``."""

    def write(self, replica: Replica, batch: Batch | None, now: Micros, out: Effects) -> Appended:
        """Appends to a partition that this broker leads."""


@dataclass(slots=True)
class ProduceWork:
    """A request between its appends and its response."""

    token: int
    acks: int
    timeout_us: Micros
    """Timeout of the wait for followers, which begins after the last append."""
    batches: Sequence[tuple[TopicPartition, Batch | None]]
    """Batches to append one after the other: each waits for its log, and for the fsync before."""
    special: SpecialWrite | None = None
    guard: int = NO_GUARD
    follows_watermark: bool = False
    appended: list[tuple[Replica, Appended]] = field(default_factory=list)
    failed: list[ProduceResult] = field(default_factory=list)
    done: int = 0
    """Number of decided batches."""


class ProducePath:
    """Produce requests on one broker. Internal appends and markers have negative tokens.

    Args:
        hosted: The broker's partitions.
        locks: The locks of their logs.
        watermarks: High watermarks, which an append may advance.
        delayed: Purgatory of requests with acks=all.
        fetches: Fetches of followers, which an append may wake.
    """

    def __init__(
        self,
        hosted: HostedPartitions,
        locks: LogLocks,
        watermarks: HighWatermarks,
        delayed: DelayedProduces,
        fetches: DelayedFetches,
    ) -> None:
        self._hosted = hosted
        self._locks = locks
        self._watermarks = watermarks
        self._delayed = delayed
        self._fetches = fetches

    def request(self, token: int, request: ProduceRequest, now: Micros, out: Effects) -> None:
        """Appends every batch; answers, or waits for the high watermark."""
        if request.acks not in (-1, 0, 1):
            results = tuple(
                ProduceResult(p, ErrorCode.INVALID_REQUIRED_ACKS) for p, _ in request.batches
            )
            out.append(fx.Reply(token, ProduceResponse(results)))
            return
        work = ProduceWork(token, request.acks, request.timeout_us, request.batches)
        self._append_all(work, now, out)

    def append_internal(self, event: AppendInternal, now: Micros, out: Effects) -> None:
        """A coordinator's append: as with acks=all, or completed by the high watermark alone."""
        work = ProduceWork(
            internal_token(event.token),
            -1,
            event.timeout_us,
            ((event.partition, event.batch),),
            guard=event.guard,
            follows_watermark=event.follows_watermark,
        )
        self._append_all(work, now, out)

    def special(
        self,
        token: int,
        acks: int,
        timeout_us: Micros,
        special: SpecialWrite,
        batches: Sequence[tuple[TopicPartition, Batch | None]],
        refused: list[ProduceResult],
        now: Micros,
        out: Effects,
    ) -> None:
        """Appends batches of a transaction; ``refused`` is decided already."""
        work = ProduceWork(token, acks, timeout_us, batches, special, failed=refused)
        self._append_all(work, now, out)

    # -- internals ---------------------------------------------------------------------------------

    def _append_all(self, work: ProduceWork, now: Micros, out: Effects) -> None:
        """Appends the remaining batches, until a log's lock or an fsync has to be waited for.

        Source: ``ReplicaManager.appendToLocalLog``: one partition after the other.
        """
        locks = self._locks
        while work.done < len(work.batches):
            partition, batch = work.batches[work.done]
            if locks.is_held(partition):
                locks.wait(partition, partial(self._continue, work, now))
                return
            work.done += 1
            if self._append(work, partition, batch, now, out):
                rest = partial(self._append_all, work)
                locks.flush(partition, rest, out, by_handler=_by_handler(work, partition))
                return
        self._after_appends(work, now, out)

    def _continue(self, work: ProduceWork, since: Micros, now: Micros, out: Effects) -> None:
        """Continues with a log whose lock is free."""
        if _by_handler(work, work.batches[work.done][0]):
            out.append(fx.HandlerBlocked(since))
        self._append_all(work, now, out)

    def _append(
        self,
        work: ProduceWork,
        partition: TopicPartition,
        batch: Batch | None,
        now: Micros,
        out: Effects,
    ) -> bool:
        """Appends one batch, or refuses it; true if an fsync is due."""
        hosted = self._hosted
        replica = hosted.led(partition)
        if isinstance(replica, ErrorCode):
            hint = hosted.hint(partition, replica)
            work.failed.append(ProduceResult(partition, replica, hint=hint))
            return False
        needs_in_sync = work.acks == -1 and not work.follows_watermark
        if needs_in_sync and len(replica.in_sync) < replica.min_in_sync:
            self._refuse(work, replica, ErrorCode.NOT_ENOUGH_REPLICAS, out)
            return False
        before = replica.log.log_end_offset
        try:
            special = work.special
            if special is None:
                assert batch is not None, "only a marker is made by the leader"
                appended = replica.leader_write(batch, now, timestamp_ms(now), work.guard)
            else:
                appended = special.write(replica, batch, now, out)
        except CorruptRecord:
            # A header of the log, not of the batch; the client retries, as with Kafka.
            self._refuse(work, replica, ErrorCode.CORRUPT_MESSAGE, out)
            return False
        except StorageFailed as failure:
            end = replica.log.log_end_offset
            if end > before:  # its file took the batch, and an index refused
                for taken in replica.log.read(before, end, 1):
                    note_append(hosted.broker, partition, taken, out, as_leader=True)
            out.append(StorageBroke(partition, str(failure)))
            self._refuse(work, replica, ErrorCode.KAFKA_STORAGE_ERROR, out)
            return False
        if appended.error is not ErrorCode.NONE:
            self._refuse(work, replica, appended.error, out)
            return False
        work.appended.append((replica, appended))
        if appended.batch is None:
            return False
        note_append(hosted.broker, partition, appended.batch, out, as_leader=True)
        return appended.flush_due

    def _refuse(self, work: ProduceWork, replica: Replica, error: ErrorCode, out: Effects) -> None:
        work.failed.append(ProduceResult(replica.partition, error))
        self._delayed.acknowledge(replica, work.acks, error, -1, -1, out)

    def _after_appends(self, work: ProduceWork, now: Micros, out: Effects) -> None:
        if self._hosted.offline:
            self._without_offline(work, out)
        for replica, _ in work.appended:
            if replica.is_leader:
                self._watermarks.advance(replica, now, out)
                self._fetches.appended(replica.partition)
        if work.acks == -1 and work.appended:
            self._wait(work, now, out)
            return
        results = list(work.failed)
        for replica, appended in work.appended:
            base, last = appended.base_offset, appended.last_offset
            self._delayed.acknowledge(replica, work.acks, ErrorCode.NONE, base, last, out)
            start = replica.log.log_start_offset
            results.append(ProduceResult(replica.partition, ErrorCode.NONE, base, start))
        if work.acks == 0:
            out.append(fx.Reply(work.token, None, close=bool(work.failed)))
        else:
            self._delayed.answer(work.token, results, out)

    def _without_offline(self, work: ProduceWork, out: Effects) -> None:
        """Appends to a log directory that has failed since are not acknowledged."""
        offline = self._hosted.offline
        lost = [replica for replica, _ in work.appended if replica.partition in offline]
        work.appended = [pair for pair in work.appended if pair[0].partition not in offline]
        for replica in lost:
            self._refuse(work, replica, ErrorCode.KAFKA_STORAGE_ERROR, out)

    def _wait(self, work: ProduceWork, now: Micros, out: Effects) -> None:
        waiting = {
            replica.partition: (a.last_offset + 1, a.base_offset, a.last_offset)
            for replica, a in work.appended
        }
        deadline = now + work.timeout_us
        operation = DelayedProduce(
            work.token, deadline, waiting, list(work.failed), work.follows_watermark
        )
        delayed = self._delayed
        delayed.park(operation)
        for replica, _ in work.appended:
            if not replica.is_leader:
                delayed.leadership_lost(replica.partition, now, out)
            elif replica.high_watermark >= waiting[replica.partition][0]:
                delayed.high_watermark_moved(replica, now, out)
        if not operation.is_done:
            delayed.set_timer(out)


def _by_handler(work: ProduceWork, partition: TopicPartition) -> bool:
    """True if a request handler does it: group coordinators have threads of their own.

    Source: ``CoordinatorRuntime``, ``MultiThreadedEventProcessor``; the transaction coordinator
    appends in the handler of the request.
    """
    if work.special is not None or work.token >= 0:
        return True
    return partition.topic not in (OFFSETS_TOPIC, SHARE_STATE_TOPIC)
