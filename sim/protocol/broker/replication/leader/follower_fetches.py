"""Followers' fetch states at a leader: log ends, and returns to the ISR.

Source: ``Partition.updateFollowerFetchState``, ``Partition.maybeExpandIsr``; KIP-903 for epochs.
"""

from collections import deque

from sim.error_codes import ErrorCode
from sim.ids import NodeId
from sim.protocol.broker.fetch_session import FetchSession, SessionPartition
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.replication.leader.high_watermarks import HighWatermarks
from sim.protocol.broker.replication.leader.isr_changes import IsrChanges
from sim.protocol.broker.replication.leader.log_starts import LogStarts
from sim.protocol.broker.replication.log_locks import LogLocks
from sim.protocol.messages.data import FetchRequest
from sim.units import Micros


class FollowerFetches:
    """Fetch states of the followers of one broker's leaders.

    Args:
        hosted: The broker's partitions.
        locks: The locks of their logs.
        log_starts: DeleteRecords requests that wait for followers.
        isr: ISR changes, which add followers that caught up.
        watermarks: High watermarks, which a follower's fetch may advance.
    """

    def __init__(
        self,
        hosted: HostedPartitions,
        locks: LogLocks,
        log_starts: LogStarts,
        isr: IsrChanges,
        watermarks: HighWatermarks,
    ) -> None:
        self._hosted = hosted
        self._locks = locks
        self._log_starts = log_starts
        self._isr = isr
        self._watermarks = watermarks

    def update(
        self,
        session: FetchSession,
        request: FetchRequest,
        held: deque[tuple[Replica, bool]],
        now: Micros,
        out: Effects,
    ) -> None:
        """Updates the follower's state in every hot partition.

        ``held`` gets the leaders whose log's lock a flush holds and that have more to do, and
        whether the follower's log end moved.
        """
        hosted, log_starts = self._hosted, self._log_starts
        for partition in list(session.hot):
            replica = hosted.replicas.get(partition)
            if replica is None or not replica.is_leader:
                continue
            remote = replica.remotes.get(request.replica_id)
            requested = session.partitions[partition].requested
            if remote is None or not _may_fetch(replica, session.partitions[partition]):
                continue
            if not hosted.is_current(request.replica_id, request.replica_epoch):
                continue
            remote.clock = session.clock
            remote.log_start_offset = requested.log_start_offset
            if log_starts.waiting:
                log_starts.check(partition, out)
            end = replica.log.log_end_offset
            moved = remote.fetched(requested.fetch_offset, end, now, request.replica_epoch)
            outside = request.replica_id not in replica.in_sync
            if (moved or outside) and self._locks.is_held(partition):
                held.append((replica, moved))
            else:
                self.advanced(replica, request.replica_id, now, out, moved=moved)

    def advanced(
        self, replica: Replica, follower: NodeId, now: Micros, out: Effects, *, moved: bool
    ) -> None:
        """A follower may rejoin the ISR, and the high watermark may advance."""
        if follower not in replica.in_sync:
            item = replica.expand_isr(follower, self._hosted.image)
            if item is not None:
                self._isr.add(item)
                self._isr.send(now, out)
        if moved:
            self._watermarks.advance(replica, now, out)


def epoch_error(replica: Replica, known: SessionPartition) -> ErrorCode:
    """Error for a fetch with that leader epoch; NONE if it is valid."""
    epoch = known.requested.leader_epoch
    if epoch < 0 or epoch == replica.leader_epoch:
        return ErrorCode.NONE
    if epoch < replica.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def _may_fetch(replica: Replica, known: SessionPartition) -> bool:
    """True if the fetch counts: right epoch, within the log, and not diverging."""
    if epoch_error(replica, known) is not ErrorCode.NONE:
        return False
    requested = known.requested
    log = replica.log
    if not log.log_start_offset <= requested.fetch_offset <= log.log_end_offset:
        return False
    try:
        return replica.divergence(requested) is None
    except LookupError:
        return False
