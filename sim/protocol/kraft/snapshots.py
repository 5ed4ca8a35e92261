"""Snapshots in the quorum: the need for one, its transfer in slices, and deletion of old ones.

A leader that has dropped the head of its log answers a fetch from below it, or from a member with
an empty log, with the id of its newest snapshot. The member fetches the snapshot slice by slice,
restarts its log at the snapshot's end, and fetches on from there.

Source: KIP-630; ``KafkaRaftClient.{validateFetchOffsetAndEpoch,handleFetchSnapshotRequest,
handleFetchSnapshotResponse}``, ``RaftLog.validateOffsetAndEpoch`` (4.1).
"""

from sim.error_codes import ErrorCode
from sim.ids import METADATA_PARTITION, NO_LEADER, LeaderEpoch, NodeId, SnapshotId
from sim.protocol.effects import Flush, Reply, SetTimer
from sim.protocol.kraft.types import Role
from sim.protocol.kraft.voter_changes import ChangingMember
from sim.protocol.messages.base import Request
from sim.protocol.messages.quorum import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
)
from sim.units import timestamp_ms


class SnapshotMember(ChangingMember):
    """A member that can also send, fetch and delete snapshots."""

    _fetching: SnapshotId | None = None
    """The snapshot that is being fetched."""
    _slices: tuple[bytes, ...] = ()

    def _become(self, role: Role, epoch: LeaderEpoch, leader: NodeId, voted_for: NodeId) -> None:
        """A download belongs to one leader: it is dropped with the role."""
        self._end_download()
        super()._become(role, epoch, leader, voted_for)

    # -- the leader -------------------------------------------------------------------------------

    def _snapshot_due(self, request: QuorumFetchRequest) -> SnapshotId | None:
        """Snapshot that the member needs before it can fetch records; ``None`` if it needs none.

        A member with an empty log gets one if there is one: faster than the whole log.
        """
        log = self.log
        latest, earliest = log.latest_snapshot, log.earliest_snapshot
        if latest is None or earliest is None or latest.offset == 0:
            return None
        offset, epoch = request.fetch_offset, request.last_fetched_epoch
        needed = (
            offset == 0
            or offset < log.log_start_offset
            or (offset == log.log_start_offset and epoch != earliest.epoch)
            or epoch < earliest.epoch
        )
        return latest if needed else None

    def _point_to_snapshot(self, token: int, snapshot: SnapshotId) -> None:
        assert self._leadership is not None
        response = QuorumFetchResponse(
            ErrorCode.NONE,
            self.node,
            self.epoch,
            self._leadership.high_watermark,
            snapshot=snapshot,
        )
        self._out.append(Reply(token, response))

    def _serve_snapshot(self, token: int, request: FetchSnapshotRequest) -> None:
        error = self._refusal(request.epoch)
        if error is ErrorCode.NONE:
            self._note_contact(request.replica, request.directory)
            part = self.log.snapshot_part(request.snapshot, request.position, request.max_bytes)
            if part is None:
                error = ErrorCode.SNAPSHOT_NOT_FOUND
            elif not 0 <= request.position < part.size:
                error = ErrorCode.POSITION_OUT_OF_RANGE
            else:
                response = FetchSnapshotResponse(
                    ErrorCode.NONE,
                    self.leader,
                    self.epoch,
                    request.snapshot,
                    part.size,
                    request.position,
                    part.data,
                )
                self._out.append(Reply(token, response))
                return
        self._out.append(Reply(token, FetchSnapshotResponse(error, self.leader, self.epoch)))

    # -- the follower -----------------------------------------------------------------------------

    def _next_request(self) -> Request:
        fetching = self._fetching
        if fetching is None or self.leader == NO_LEADER or self._leader_failed:
            return super()._next_request()
        position = sum(map(len, self._slices))
        return FetchSnapshotRequest(
            self.node,
            self.epoch,
            fetching,
            position,
            self.config.snapshot_max_bytes,
            self.directory,
        )

    def _begin_download(self, snapshot: SnapshotId) -> None:
        """The leader's log begins above this member's end: fetches the leader's snapshot."""
        if snapshot not in {self._fetching, self.log.latest_snapshot}:
            self._fetching, self._slices = snapshot, ()

    def _end_download(self) -> None:
        self._fetching, self._slices = None, ()

    def _on_snapshot_part(self, sender: NodeId, response: FetchSnapshotResponse) -> None:
        if self._handle_common_response(response.error, response.leader, response.epoch):
            return
        fetching = self._fetching
        if (
            fetching is None
            or self.role is not Role.FOLLOWER
            or sender != self.leader
            or self._fetch_open is not None
        ):
            return
        self._move_deadline(self._now + self.config.fetch_timeout_us)
        if response.error is not ErrorCode.NONE:
            self._end_download()  # the leader has deleted it meanwhile: fetch again
            self._fetch()
            return
        assert response.position == sum(map(len, self._slices)), "slices come in their order"
        self._slices += (response.data,)
        if response.position + len(response.data) == response.size:
            self._finish_download(fetching)
        self._fetch()

    def _finish_download(self, snapshot: SnapshotId) -> None:
        data = b"".join(self._slices)
        self._end_download()
        if self.log.install_snapshot(snapshot, data):
            self._log_restarted(snapshot)
            if self.is_voter or self._always_flushes:
                self._out.append(Flush(METADATA_PARTITION))
            self._commit(snapshot.offset)

    # -- every role --------------------------------------------------------------------------------

    def _clean_later(self) -> None:
        self._out.append(SetTimer("clean", self._now + self.config.clean_interval_us))

    def _clean_log(self) -> None:
        """Deletes old snapshots and the log below them, as the retention settings say."""
        self.log.clean(timestamp_ms(self._now))
        self._clean_later()
