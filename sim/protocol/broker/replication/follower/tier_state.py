"""A follower behind its leader's local log: it takes over the state of the remote log.

It requests from its leader the start of the local log, and the end of the epoch before; it reads
leader epochs and producers from the object store, drops its own log, and fetches on behind the
remote segment. A step that fails is repeated from the start after the back-off. A new follower may
request the first offset that is not in the remote log instead, and so copy nothing that is there
(KIP-1023).

Source: ``TierStateMachine``, ``AbstractFetcherThread.handleOffsetsMovedToTieredStorage``,
``ReplicaFetcherThread.shouldFetchFromLastTieredOffset`` (4.3); KIP-405.
"""

from dataclasses import dataclass
from typing import Final

from sim.error_codes import ErrorCode
from sim.errors import StorageFailed
from sim.ids import LeaderEpoch, Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.events import StorageBroke
from sim.protocol.broker.replication.fetcher import Fetcher
from sim.protocol.broker.replication.follower.cuts import LogCuts
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.tiered.ports import AuxState, AuxStateDone, AuxStateRequested
from sim.protocol.messages.data import (
    EARLIEST_LOCAL_TIMESTAMP,
    EARLIEST_PENDING_UPLOAD_TIMESTAMP,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from sim.protocol.messages.leader_epochs import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from sim.units import NEVER, Micros

_NOT_YET: Final = -1


@dataclass(slots=True)
class _Rebuild:
    """One partition's way to the remote log's state."""

    fetcher: Fetcher
    partition: TopicPartition
    leader_epoch: LeaderEpoch
    log_start: Offset
    """The leader's."""
    local_start: Offset = _NOT_YET
    """Offset of the leader's local log from which on it fetches: the start, or behind the remote
    log."""
    start_epoch: LeaderEpoch = _NOT_YET
    """Leader epoch there."""


class TierStateMachine:
    """Rebuilds of one broker's followers.

    Args:
        hosted: The broker's partitions.
        cuts: Drops their logs.
    """

    def __init__(self, hosted: HostedPartitions, cuts: LogCuts) -> None:
        self._hosted = hosted
        self._cuts = cuts
        self._requested: dict[int, _Rebuild] = {}
        self._reads: dict[int, _Rebuild] = {}

    def begin(self, fetcher: Fetcher, replica: Replica, log_start: Offset, out: Effects) -> None:
        """The leader has what is fetched in its remote log alone."""
        partition, hosted = replica.partition, self._hosted
        fetcher.delay(partition, NEVER)  # until it is rebuilt
        work = _Rebuild(fetcher, partition, replica.leader_epoch, log_start)
        at = EARLIEST_LOCAL_TIMESTAMP
        if self.starts_at_last_tiered(replica):
            at = EARLIEST_PENDING_UPLOAD_TIMESTAMP
        request = ListOffsetsRequest(partition, at, replica.leader_epoch, hosted.broker)
        self._request(work, request, out)

    def starts_at_last_tiered(self, replica: Replica) -> bool:
        """True if a follower without a record continues where the remote log ends."""
        is_new = replica.log.log_end_offset == 0
        return self._hosted.config.fetches_last_tiered and replica.log.is_tiered and is_new

    def _request(
        self,
        work: _Rebuild,
        request: ListOffsetsRequest | OffsetForLeaderEpochRequest,
        out: Effects,
    ) -> None:
        correlation = self._hosted.next_correlation()
        self._requested[correlation] = work
        fetcher, timeout = work.fetcher, self._hosted.config.fetcher.socket_timeout_us
        out.append(fx.Send(fetcher.leader, correlation, request, timeout, fetcher.channel))

    def offsets_listed(
        self, correlation: int, response: ListOffsetsResponse, now: Micros, out: Effects
    ) -> Fetcher | None:
        """The leader's local log start is known; the fetcher of the partition."""
        work = self._requested.pop(correlation, None)
        if work is None:
            return None
        unknown = response.error is not ErrorCode.NONE or response.offset < 0
        if unknown or self._replica(work) is None:
            self._again(work, now)
            return work.fetcher
        work.local_start, work.start_epoch = response.offset, response.leader_epoch
        if work.start_epoch <= 0:
            self._read(work, max(work.start_epoch, 0), out)
            return work.fetcher
        request = OffsetForLeaderEpochRequest(
            work.partition, work.start_epoch - 1, work.leader_epoch, self._hosted.broker
        )
        self._request(work, request, out)
        return work.fetcher

    def epoch_answered(
        self, correlation: int, response: OffsetForLeaderEpochResponse, now: Micros, out: Effects
    ) -> Fetcher | None:
        """The end of the epoch before is known, which may hold the offset before the local log."""
        work = self._requested.pop(correlation, None)
        if work is None:
            return None
        if response.error is not ErrorCode.NONE:
            self._again(work, now)
        elif response.end_offset > work.local_start - 1:
            self._read(work, response.leader_epoch, out)
        else:
            self._read(work, work.start_epoch, out)
        return work.fetcher

    def failed(self, correlation: int, now: Micros) -> Fetcher | None:
        """A request got no answer."""
        work = self._requested.pop(correlation, None)
        if work is None:
            return None
        self._again(work, now)
        return work.fetcher

    def _read(self, work: _Rebuild, epoch: LeaderEpoch, out: Effects) -> None:
        token = self._hosted.next_correlation()
        self._reads[token] = work
        out.append(AuxStateRequested(token, work.partition, epoch, work.local_start - 1))

    def state_read(self, event: AuxStateDone, now: Micros, out: Effects) -> Fetcher | None:
        """The remote log's state is there: the local log continues behind it."""
        work = self._reads.pop(event.token, None)
        if work is None:
            return None
        replica = self._replica(work)
        if event.state is None or replica is None:
            self._again(work, now)
            return work.fetcher
        try:
            self._rebuild(work, replica, event.state, out)
        except StorageFailed as failure:
            out.append(StorageBroke(work.partition, str(failure)))
            work.fetcher.remove(work.partition)
        return work.fetcher

    def _rebuild(self, work: _Rebuild, replica: Replica, state: AuxState, out: Effects) -> None:
        self._cuts.restart_behind_remote(replica, work.log_start, state, out)
        log = replica.log
        work.fetcher.partitions[work.partition].log_start = log.log_start_offset
        work.fetcher.moved(work.partition, log.log_end_offset, log.latest_epoch)

    def _replica(self, work: _Rebuild) -> Replica | None:
        """The replica, if it still follows that leader."""
        replica = self._hosted.replicas.get(work.partition)
        if replica is None or replica.is_leader or replica.leader_epoch != work.leader_epoch:
            return None
        return replica if work.partition in work.fetcher.partitions else None

    def _again(self, work: _Rebuild, now: Micros) -> None:
        if work.partition in work.fetcher.partitions:
            work.fetcher.delay(work.partition, now + self._hosted.config.fetcher.backoff_us)
