"""Adding and removing voters, one at a time (KIP-853).

A change begins only when the leader has committed a record of its own epoch and nothing of an
earlier change is uncommitted: every majority of one set that could be in force somewhere then
shares a member with every majority of another. It ends when the new set's majority has the record.
A leader that is not in the set any more resigns after that.

Since 4.2 a controller may add itself (KIP-1186): an observer sends the request a fetch timeout
after it has found the leader, and again after each answer, instead of a fetch. If its id votes with
another disk, it has that removed first. The leader answers when the record is appended: as long as
the request is open, the observer fetches nothing.

Left out: UpdateRaftVoter (endpoints and versions of a process never change), and upgrading a static
quorum to ``kraft.version`` 1.

Source: ``org.apache.kafka.raft.internals.{AddVoterHandler,RemoveVoterHandler}``,
``KafkaRaftClient.{handleAddVoterRequest,pollFollowerAsObserver}`` (4.2).
"""

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, NodeId, Offset
from sim.protocol.effects import Reply, SetTimer
from sim.protocol.kraft.leader_state import VoterChange
from sim.protocol.kraft.member import QuorumMember
from sim.protocol.kraft.types import Role, VotersProposed
from sim.protocol.kraft.voter_set import with_voter, without_voter
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
)
from sim.protocol.metadata.records import Voter, VotersRecord
from sim.units import Micros

_BENIGN = frozenset(
    {
        ErrorCode.NONE,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.DUPLICATE_VOTER,
        ErrorCode.VOTER_NOT_FOUND,
    }
)

KRAFT_VERSION = 1
"""Level of ``kraft.version`` at which voters can change."""


class ChangingMember(QuorumMember):
    """A member that can change the voters while it leads, and requests a vote while it follows."""

    _joins_at: Micros = 0
    """The earliest instant of its next request for a vote."""

    def _serve_add(self, token: int, request: AddRaftVoterRequest) -> None:
        voter = Voter(request.voter, request.directory)
        error = self._change_refusal()
        if error is ErrorCode.NONE and voter.node in self.voters:
            error = ErrorCode.DUPLICATE_VOTER
        if error is not ErrorCode.NONE:
            self._out.append(Reply(token, AddRaftVoterResponse(error)))
            return
        assert self.history is not None
        voters = with_voter(self.history.latest, voter)
        self._begin_change(token, voters, added=voter)
        assert self._leadership is not None
        assert self._leadership.change is not None
        self._leadership.change.answers_early = not request.when_committed
        self._send(voter.node, ApiVersionsRequest())

    def _serve_remove(self, token: int, request: RemoveRaftVoterRequest) -> None:
        error = self._change_refusal()
        voters: tuple[Voter, ...] = ()
        if error is ErrorCode.NONE:
            assert self.history is not None
            former = self.history.latest
            voters = without_voter(former, Voter(request.voter, request.directory))
            if voters == former:
                error = ErrorCode.VOTER_NOT_FOUND
            elif not voters:
                error = ErrorCode.UNKNOWN_SERVER_ERROR  # of the exception that Kafka throws
        if error is not ErrorCode.NONE:
            self._out.append(Reply(token, RemoveRaftVoterResponse(error)))
            return
        self._begin_change(token, voters, added=None)
        self._propose()

    def _become_follower(self, epoch: LeaderEpoch, leader: NodeId) -> None:
        self._joins_at = self._now + self.config.fetch_timeout_us
        super()._become_follower(epoch, leader)

    def _join_request(self) -> Request | None:
        """The controller's request for a vote of its own, if it is due."""
        history = self.history
        if not self.config.auto_joins or not self._always_flushes or history is None:
            return None
        waits = self.role is not Role.FOLLOWER or self.is_voter or self._now < self._joins_at
        if waits or history.latest_offset is None:
            return None
        self._joins_at = self._now + self.config.fetch_timeout_us
        for voter in history.latest:
            if voter.node == self.node:
                return RemoveRaftVoterRequest(voter.node, voter.directory)
        return AddRaftVoterRequest(self.node, self.directory, when_committed=False)

    def _on_join_answered(self, response: Response) -> None:
        """The leader has answered the request for a vote: it may be repeated after a while."""
        if not isinstance(response, AddRaftVoterResponse | RemoveRaftVoterResponse):
            message = f"not an answer to the quorum: {response}"
            raise AssertionError(message)  # noqa: TRY004 - a defect of the caller
        if response.error in _BENIGN:
            self._joins_at = self._now + self.config.fetch_timeout_us
            self._fetch()
        else:
            self._fetch_later()

    def _change_refusal(self) -> ErrorCode:
        """Error for a change at this time; NONE if one may begin."""
        leadership, history = self._leadership, self.history
        if leadership is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if leadership.change is not None or leadership.high_watermark < 0:
            return ErrorCode.REQUEST_TIMED_OUT
        if history is None:
            return ErrorCode.UNSUPPORTED_VERSION
        offset = history.latest_offset
        if offset is None or offset >= leadership.high_watermark:
            return ErrorCode.REQUEST_TIMED_OUT
        return ErrorCode.NONE

    def _begin_change(self, token: int, voters: tuple[Voter, ...], *, added: Voter | None) -> None:
        assert self._leadership is not None
        deadline = self._now + self.config.request_timeout_us
        adds = added is not None
        self._leadership.change = VoterChange(token, voters, adds, deadline, added)
        self._out.append(SetTimer("change", deadline))

    def _change_appended(self, change: VoterChange, offset: Offset) -> None:
        """The record of the change is in the leader's log."""
        change.offset = offset
        if change.answers_early:
            self._answer_change(change, ErrorCode.NONE)

    def _propose(self) -> None:
        leadership = self._leadership
        assert leadership is not None
        assert leadership.change is not None
        self._out.append(VotersProposed(self.epoch, VotersRecord(leadership.change.voters)))

    def _on_versions(self, sender: NodeId, response: ApiVersionsResponse) -> None:
        """The new voter has answered ApiVersions."""
        leadership = self._leadership
        if leadership is None or leadership.change is None:
            return
        change = leadership.change
        if change.added is None or change.added.node != sender:
            return
        observed = leadership.observers.get(change.added)
        if not response.kraft_version_min <= KRAFT_VERSION <= response.kraft_version_max:
            self._end_change(ErrorCode.INVALID_REQUEST)
        elif observed is None or not observed.is_caught_up(self._now):
            self._end_change(ErrorCode.REQUEST_TIMED_OUT)
        else:
            change.added = None
            self._propose()

    def _on_versions_failed(self, to: NodeId) -> None:
        """The new voter's ApiVersions request failed."""
        leadership = self._leadership
        if leadership is None or leadership.change is None:
            return
        added = leadership.change.added
        if added is not None and added.node == to:
            self._end_change(ErrorCode.REQUEST_TIMED_OUT)

    def _on_change_timer(self) -> None:
        """Answers the pending change with a timeout.

        A proposed record that is not in the log yet still counts as a change in progress.
        """
        leadership = self._leadership
        if leadership is None or leadership.change is None:
            return
        change = leadership.change
        if self._now < change.deadline:
            return
        if change.added is None and change.offset < 0:
            self._answer_change(change, ErrorCode.REQUEST_TIMED_OUT)
        else:
            self._end_change(ErrorCode.REQUEST_TIMED_OUT)

    def _end_change(self, error: ErrorCode) -> None:
        leadership = self._leadership
        assert leadership is not None
        change, leadership.change = leadership.change, None
        if change is not None:
            self._answer_change(change, error)

    def _answer_change(self, change: VoterChange, error: ErrorCode) -> None:
        if change.token is None:
            return
        response = AddRaftVoterResponse(error) if change.adds else RemoveRaftVoterResponse(error)
        self._out.append(Reply(change.token, response))
        change.token = None

    def _advance_high_watermark(self) -> None:
        super()._advance_high_watermark()
        leadership = self._leadership
        assert leadership is not None
        change = leadership.change
        if change is not None and 0 <= change.offset < leadership.high_watermark:
            self._end_change(ErrorCode.NONE)

    def _become(self, role: Role, epoch: int, leader: NodeId, voted_for: NodeId) -> None:
        """Ends the leadership's changes; their clients look for the next leader."""
        if self._leadership is not None:
            self._end_change(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        super()._become(role, epoch, leader, voted_for)

    def _was_removed(self) -> bool:
        """True if it leads, and the committed log has it as no voter."""
        leadership, history = self._leadership, self.history
        if leadership is None or history is None or self.is_voter:
            return False
        offset = history.latest_offset
        return offset is not None and offset < leadership.high_watermark
