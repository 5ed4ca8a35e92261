"""Log starts of replicas: moved by retention, DeleteRecords, and followers' leaders.

DeleteRecords moves the leader's log start at once; the request waits until every live follower has
followed, by the log starts in their fetches.

Source: ``ReplicaManager.deleteRecords``, ``DelayedDeleteRecords``,
``Partition.deleteRecordsOnLeader``, ``Partition.lowWatermarkIfLeader``; KIP-107.
"""

from dataclasses import dataclass, field

from sim.error_codes import ErrorCode
from sim.errors import StorageFailed
from sim.ids import Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.events import LogStartMoved, StorageBroke
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.replication.leader.delayed_fetches import DelayedFetches
from sim.protocol.broker.replication.trace_rows import note_log_start
from sim.protocol.messages.delete_records import (
    UP_TO_HIGH_WATERMARK,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsResult,
)
from sim.units import NEVER, Micros

TIMER = "delete-records"
"""Timer of requests that wait for followers."""


@dataclass(slots=True)
class _Deletion:
    """A DeleteRecords request that waits for followers: partitions and offsets."""

    token: int
    deadline: Micros
    waiting: dict[TopicPartition, Offset] = field(default_factory=dict)
    results: list[DeleteRecordsResult] = field(default_factory=list)


class LogStarts:
    """Log start offsets on one broker."""

    def __init__(self, hosted: HostedPartitions, fetches: DelayedFetches) -> None:
        self._hosted = hosted
        self._fetches = fetches
        self.waiting: list[_Deletion] = []
        """Requests that wait for followers, oldest first. Not to be changed."""

    def moved(self, event: LogStartMoved, out: Effects) -> None:
        """Retention has moved a log start: writes the row; followers' next responses have it."""
        note_log_start(
            self._hosted.broker, event.partition, event.before, event.after, event.reason, out
        )
        self._fetches.changed(event.partition)
        self.check(event.partition, out)

    def request(self, token: int, request: DeleteRecordsRequest, now: Micros, out: Effects) -> None:
        """Moves log starts; answers, or waits until followers have done the same."""
        work = _Deletion(token, now + request.timeout_us)
        for partition, offset in request.offsets:
            self._delete(work, partition, offset, out)
        self.waiting.append(work)
        for partition, _ in request.offsets:
            self.check(partition, out)
        if not request.offsets:
            self._finish(work, out)
        elif work in self.waiting:
            self._set_timer(out)

    def check(self, partition: TopicPartition, out: Effects) -> None:
        """Followers may have followed, or this broker is no longer leader: completes requests."""
        for work in [w for w in self.waiting if partition in w.waiting or not w.waiting]:
            target = work.waiting.get(partition)
            if target is not None:
                replica = self._hosted.led(partition)
                if isinstance(replica, ErrorCode):
                    work.results.append(DeleteRecordsResult(partition, replica))
                    del work.waiting[partition]
                elif (low := self.low_watermark(replica)) >= target:
                    work.results.append(DeleteRecordsResult(partition, ErrorCode.NONE, low))
                    del work.waiting[partition]
            if not work.waiting:
                self._finish(work, out)

    def expire(self, now: Micros, out: Effects) -> None:
        """Answers expired requests with REQUEST_TIMED_OUT; the leader's log start stays."""
        for work in [w for w in self.waiting if w.deadline <= now]:
            for partition in work.waiting:
                work.results.append(DeleteRecordsResult(partition, ErrorCode.REQUEST_TIMED_OUT))
            self._finish(work, out)
        self._set_timer(out)

    def low_watermark(self, replica: Replica) -> Offset:
        """Smallest log start of this leader and its live followers; -1 if one is not known."""
        low = replica.log.log_start_offset
        for broker, remote in replica.remotes.items():
            if self._hosted.image.is_active(broker):
                low = min(low, remote.log_start_offset)
        return low

    # -- internals ---------------------------------------------------------------------------------

    def _delete(
        self, work: _Deletion, partition: TopicPartition, offset: Offset, out: Effects
    ) -> None:
        replica = self._hosted.led(partition)
        if isinstance(replica, ErrorCode):
            work.results.append(DeleteRecordsResult(partition, replica))
            return
        target = replica.high_watermark if offset == UP_TO_HIGH_WATERMARK else offset
        error = self._refusal(replica, target)
        if error is ErrorCode.NONE:
            error = self._raise(replica, target, "delete_records", out)
        if error is ErrorCode.NONE:
            work.waiting[partition] = target
        else:
            work.results.append(DeleteRecordsResult(partition, error))

    def _refusal(self, replica: Replica, offset: Offset) -> ErrorCode:
        policy = self._hosted.image.config_of(replica.partition.topic, "cleanup.policy", "delete")
        if "delete" not in policy.split(","):
            return ErrorCode.POLICY_VIOLATION
        if offset < 0 or offset > replica.high_watermark:
            return ErrorCode.OFFSET_OUT_OF_RANGE
        return ErrorCode.NONE

    def _raise(self, replica: Replica, offset: Offset, reason: str, out: Effects) -> ErrorCode:
        partition, log = replica.partition, replica.log
        before = log.log_start_offset
        try:
            moved = log.raise_log_start(offset)
        except StorageFailed as failure:
            out.append(StorageBroke(partition, str(failure)))
            return ErrorCode.KAFKA_STORAGE_ERROR
        if moved:
            note_log_start(self._hosted.broker, partition, before, offset, reason, out)
            self._fetches.changed(partition)
        return ErrorCode.NONE

    def learned(self, replica: Replica, offset: Offset, out: Effects) -> bool:
        """Adopts a leader's log start; true if the follower's own moved.

        Source: ``ReplicaFetcherThread.processPartitionData``.
        """
        before = replica.log.log_start_offset
        if offset <= before or offset > replica.high_watermark:
            return False
        self._raise(replica, offset, "leader", out)
        return replica.log.log_start_offset != before

    def _finish(self, work: _Deletion, out: Effects) -> None:
        self.waiting.remove(work)
        out.append(fx.Reply(work.token, DeleteRecordsResponse(tuple(work.results))))

    def _set_timer(self, out: Effects) -> None:
        at = min((work.deadline for work in self.waiting), default=NEVER)
        if at < NEVER:
            out.append(fx.SetTimer(TIMER, at))
