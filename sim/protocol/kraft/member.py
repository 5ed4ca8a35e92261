"""A member of the metadata quorum: its roles, and the transitions between them.

Transitions are here; their triggers are in :mod:`sim.protocol.kraft.raft`.

    unattached   -> prospective  election timeout (voters)
                 -> follower     learns the leader of its epoch or of a later one
    follower     -> prospective  fetch timeout
    prospective  -> candidate    a majority grants the pre-vote
                 -> follower, unattached   the pre-vote is lost or takes too long
    candidate    -> leader       a majority grants the vote
                 -> prospective  election timeout
    leader       -> resigned     no fetches from a majority, or on request
    resigned     -> unattached   election timeout, in the next epoch
    any          -> unattached, follower   learns of a later epoch

Durable state precedes the messages that depend on it: :class:`PersistQuorumState` and ``Flush``
come first in the list of effects, and the process handles no other event meanwhile.

In a static quorum the voters are given; in a dynamic one (KIP-853) they are those of the log, and a
voter is an id together with the directory that holds its vote.
:mod:`sim.protocol.kraft.voter_changes` changes them, :mod:`sim.protocol.kraft.snapshots` has the
snapshots.

Source: KIP-595, KIP-853, KIP-996; ``org.apache.kafka.raft.{QuorumState,KafkaRaftClient}`` (4.1).
"""

from collections.abc import Callable

from sim.error_codes import ErrorCode
from sim.ids import METADATA_PARTITION, NO_LEADER, LeaderEpoch, NodeId, Offset
from sim.protocol.effects import CancelTimer, Flush, Reply, Send, SetTimer
from sim.protocol.kraft.batch_accumulator import BatchAccumulator
from sim.protocol.kraft.electorate import Electorate
from sim.protocol.kraft.leader_state import Leadership
from sim.protocol.kraft.log import MetadataLog
from sim.protocol.kraft.types import (
    NOBODY,
    Committed,
    LeadershipChanged,
    PersistQuorumState,
    QuorumConfig,
    QuorumEffect,
    QuorumState,
    Role,
    SnapshotLoaded,
)
from sim.protocol.kraft.voter_set import BOOTSTRAP_OFFSET, DynamicMember
from sim.protocol.kraft.votes import Election
from sim.protocol.messages.base import Request
from sim.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    QuorumFetchRequest,
    QuorumFetchResponse,
    VoteRequest,
)
from sim.protocol.metadata.records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    MetadataRecord,
    Voter,
    VotersRecord,
)
from sim.trace.rows.cluster import Quorum
from sim.units import NEVER, Micros, timestamp_ms

CHANNEL = "quorum"
"""The connection that the quorum's requests use."""

_DEFAULTS = QuorumConfig()
_FRESH = QuorumState()


class QuorumMember(Electorate):
    """State of a voter or an observer. Changed only by :class:`~sim.protocol.kraft.raft.Quorum`."""

    def __init__(
        self,
        node: NodeId,
        voters: tuple[NodeId, ...],
        log: MetadataLog,
        unit: Callable[[], float],
        *,
        config: QuorumConfig = _DEFAULTS,
        state: QuorumState = _FRESH,
        dynamic: DynamicMember | None = None,
    ) -> None:
        """Creates a member that has not started.

        Args:
            node: ``node.id``.
            voters: Of a static quorum; none in a dynamic one.
            log: The loaded log.
            unit: Draws the jitter of election timeouts, uniform in [0, 1).
            config: Timers and sizes.
            state: State in the ``quorum-state`` file.
            dynamic: ``None``: the quorum is static.
        """
        super().__init__(node, voters, log, dynamic)
        self.config = config
        self.role = Role.UNATTACHED
        self.epoch: LeaderEpoch = 0
        self.leader: NodeId = NO_LEADER
        self.voted_for: NodeId = NOBODY
        self.voted_directory = ""
        self.high_watermark: Offset = 0
        """End of the records that this process has emitted as :class:`Committed`."""
        self._unit = unit
        self._durable = state
        self._now: Micros = 0
        self._out: list[QuorumEffect] = []
        self._deadline: Micros = NEVER
        self._election: Election | None = None
        self._leadership: Leadership | None = None
        self._has_fetched = False
        self._leader_failed = False
        self._open: dict[int, tuple[NodeId, Request]] = {}
        self._fetch_open: int | None = None
        self._correlation = 0
        self._turn = 0

    @property
    def _hears_leader(self) -> bool:
        """True if a follower refuses pre-votes as it has fetched from its leader (KIP-996)."""
        return self._has_fetched and self.config.refuses_while_fetching

    # -- transitions -------------------------------------------------------------------------------

    def _become(self, role: Role, epoch: LeaderEpoch, leader: NodeId, voted_for: NodeId) -> None:
        """Takes a role; drops the state of the one before."""
        former = self._leadership
        known = (self.epoch, self.leader)
        if (epoch, voted_for) != (self.epoch, self.voted_for):
            self.voted_directory = self.directory if voted_for == self.node else ""
        self.role, self.epoch, self.leader, self.voted_for = role, epoch, leader, voted_for
        self._leadership = None
        self._election = None
        self._has_fetched = False
        self._leader_failed = False
        self._open.clear()
        self._fetch_open = None
        if role is not Role.RESIGNED:
            self._persist()
        self._emit()
        if known != (epoch, leader) or former is not None:
            self._out.append(LeadershipChanged(epoch, leader, is_leader=False))
        if former is not None:
            for fetch in former.parked:
                self._refuse_fetch(fetch.token, ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def _become_unattached(self, epoch: LeaderEpoch, voted_for: NodeId = NOBODY) -> None:
        keeps_timeout = self.role in {Role.CANDIDATE, Role.UNATTACHED, Role.RESIGNED} or (
            self.role is Role.PROSPECTIVE and self._election is not None and not self._election.lost
        )
        deadline = self._deadline
        self._become(Role.UNATTACHED, epoch, NO_LEADER, voted_for)
        if keeps_timeout and deadline != NEVER:
            self._move_deadline(deadline)
        else:
            self._move_deadline(self._election_timeout())
        self._fetch()

    def _become_follower(self, epoch: LeaderEpoch, leader: NodeId) -> None:
        voted_for = self.voted_for if epoch == self.epoch else NOBODY
        self._become(Role.FOLLOWER, epoch, leader, voted_for)
        self._move_deadline(self._now + self.config.fetch_timeout_us)
        self._fetch()

    def _become_prospective(self) -> None:
        if not self.config.pre_votes:
            self._become_candidate()
            return
        self._become(Role.PROSPECTIVE, self.epoch, self.leader, self.voted_for)
        self._send_vote_requests(pre_vote=True)

    def _become_candidate(self) -> None:
        self._become(Role.CANDIDATE, self.epoch + 1, NO_LEADER, self.node)
        self._send_vote_requests(pre_vote=False)

    def _become_leader(self, granting: tuple[NodeId, ...]) -> None:
        self._become(Role.LEADER, self.epoch, self.node, self.voted_for)
        self._leadership = Leadership(
            self.node,
            self.voters,
            self.log.log_end_offset,
            tuple(sorted(granting)),
            BatchAccumulator(self.config.append_linger_us, self.config.batch_bytes_max),
        )
        base = self.log.log_end_offset
        self.log.append_records(self._first_records(), self.epoch, timestamp_ms(self._now))
        self._log_grew(base)
        alone = len(self.voters) == 1
        checked = self.config.checks_quorum and not alone
        self._move_deadline(self._now + self.config.check_quorum_us if checked else NEVER)
        self._send_begin_quorum_epochs()
        self._advance_high_watermark()
        self._out.append(Flush(METADATA_PARTITION))

    def _first_records(self) -> tuple[MetadataRecord, ...]:
        """First records of an epoch; a new cluster's first epoch also has its voters.

        Source: ``LeaderState.appendLeaderChangeMessageAndBootstrapRecords``.
        """
        assert self._leadership is not None
        change = LeaderChangeMessage(self.node, self.voters, self._leadership.granting)
        history = self.history
        if history is None or history.latest_offset != BOOTSTRAP_OFFSET:
            return (change,)
        return (change, KRaftVersionRecord(1), VotersRecord(history.latest))

    def _become_resigned(self, successors: tuple[NodeId, ...]) -> None:
        self._become(Role.RESIGNED, self.epoch, NO_LEADER, self.voted_for)
        self._move_deadline(self._election_timeout())
        for voter in self._others:
            self._send(voter, EndQuorumEpochRequest(self.node, self.epoch, successors))

    def _end_pre_vote(self) -> None:
        """Ends a failed pre-vote: back to the known leader, or unattached."""
        if self.leader != NO_LEADER:
            self._become_follower(self.epoch, self.leader)
        else:
            self._become_unattached(self.epoch, self.voted_for)

    def _maybe_transition(self, leader: NodeId, epoch: LeaderEpoch) -> None:
        """Follows the leader (or none) of an epoch that another member has sent.

        Source: ``KafkaRaftClient.maybeTransition``.
        """
        if leader == self.node:
            leader = NO_LEADER
        if epoch > self.epoch:
            if leader != NO_LEADER:
                self._become_follower(epoch, leader)
            else:
                self._become_unattached(epoch)
        elif epoch == self.epoch and leader != NO_LEADER and self.leader == NO_LEADER:
            self._become_follower(epoch, leader)

    def _handle_common_response(self, error: ErrorCode, leader: NodeId, epoch: LeaderEpoch) -> bool:
        """Handles epoch and leader of a response. True if it needs no further handling.

        Source: ``KafkaRaftClient.maybeHandleCommonResponse``.
        """
        if epoch < self.epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
            return True
        if epoch > self.epoch or error in {
            ErrorCode.FENCED_LEADER_EPOCH,
            ErrorCode.NOT_LEADER_OR_FOLLOWER,
        }:
            self._maybe_transition(leader, epoch)
            return True
        if leader not in {NO_LEADER, self.node} and self.leader == NO_LEADER:
            self._become_follower(epoch, leader)
            return error is not ErrorCode.NONE
        return False

    # -- elections --------------------------------------------------------------------------------

    def _send_vote_requests(self, *, pre_vote: bool) -> None:
        election = self._election = Election(self.voters)
        election.record(self.node, granted=True)
        self._move_deadline(self._election_timeout())
        for voter in self._others:
            self._send_vote_request(voter, pre_vote=pre_vote)
        self._settle_election()

    def _settle_election(self) -> None:
        election = self._election
        if election is None:
            return
        if self.role is Role.PROSPECTIVE:
            if election.won:
                self._become_candidate()
            elif election.lost:
                self._end_pre_vote()
        elif self.role is Role.CANDIDATE and election.won:
            self._become_leader(tuple(election.granted))
        # A lost candidate waits for its timeout: others may become candidates meanwhile.

    def _send_vote_request(self, voter: NodeId, *, pre_vote: bool) -> None:
        log = self.log
        request = VoteRequest(
            self.node,
            self.epoch,
            log.latest_epoch,
            log.log_end_offset,
            pre_vote,
            self.directory,
            self._directory_of(voter),
        )
        self._send(voter, request)

    def _retry_later(self, voter: NodeId) -> None:
        self._out.append(SetTimer(f"retry-{voter}", self._now + self.config.retry_backoff_us))

    def _send_begin_quorum_epochs(self) -> None:
        assert self._leadership is not None
        non_acknowledging = self._leadership.non_acknowledging()
        for voter in non_acknowledging:
            directory = self._directory_of(voter)
            self._send(voter, BeginQuorumEpochRequest(self.node, self.epoch, directory))
        if non_acknowledging:
            self._out.append(SetTimer("begin", self._now + self.config.begin_quorum_us))

    def _voters_changed(self, former: tuple[Voter, ...], *, was_voter: bool) -> None:
        leadership = self._leadership
        if leadership is not None:
            alone = len(former) == 1
            assert self.history is not None
            leadership.update_voters(former, self.history.latest)
            if len(self.voters) == 1:
                self._move_deadline(NEVER)
            elif alone and self.config.checks_quorum:
                self._move_deadline(self._now + self.config.check_quorum_us)
            self._send_begin_quorum_epochs()
        elif self.is_voter is not was_voter:
            self._deadline = NEVER
            self._out.append(CancelTimer("role"))
            if self.role is Role.FOLLOWER:
                self._move_deadline(self._now + self.config.fetch_timeout_us)
            self._emit()

    # -- commits ----------------------------------------------------------------------------------

    def _committable(self) -> Offset:
        assert self._leadership is not None
        return self._leadership.committable(self.log.log_end_offset)

    def _may_commit(self, offset: Offset) -> bool:
        assert self._leadership is not None
        return self._leadership.may_commit(offset)

    def _advance_high_watermark(self) -> None:
        leadership = self._leadership
        assert leadership is not None
        offset = self._committable()
        if not self._may_commit(offset):
            return
        first = leadership.high_watermark < 0
        leadership.high_watermark = offset
        self._commit(offset)
        if first:
            end = self.log.log_end_offset
            self._out.append(
                LeadershipChanged(self.epoch, self.node, is_leader=True, log_end_offset=end)
            )
        self._answer_parked()

    def _commit(self, end: Offset) -> None:
        """Emits records below the offset that were not emitted as committed yet."""
        if self.high_watermark == 0 or self.high_watermark < self.log.log_start_offset:
            self._load_snapshot(end)
        base = self.high_watermark
        if end > base:
            self.high_watermark = end
            log = self.log
            size = log.bytes_between(base, end)
            self._out.append(Committed(base, end, log.records_between(base, end), size))

    def _load_snapshot(self, end: Offset) -> None:
        """Begins with the newest snapshot, if there is one; ``end`` -1: nothing is known yet.

        Source: ``KafkaRaftClient.updateListenersProgress``.
        """
        snapshot = self.log.latest_snapshot
        if end < 0 or snapshot is None or snapshot.offset <= self.high_watermark:
            return
        self.high_watermark = snapshot.offset
        self._out.append(SnapshotLoaded(snapshot, self.log.snapshot_records(snapshot)))

    # -- fetches ----------------------------------------------------------------------------------

    def _next_request(self) -> Request:
        """The follower's next request."""
        log = self.log
        return QuorumFetchRequest(
            self.node,
            self.epoch,
            log.log_end_offset,
            log.latest_epoch,
            self.high_watermark,
            self.config.fetch_max_wait_us,
            self.directory,
        )

    def _fetch(self) -> None:
        """Fetches from the leader; without one, from the bootstrap servers or voters in turn."""
        if self._fetch_open is not None or self.role not in {Role.FOLLOWER, Role.UNATTACHED}:
            return
        to = self.leader
        if to == NO_LEADER or self._leader_failed:
            if not self._contacts:
                return
            to = self._contacts[self._turn % len(self._contacts)]
            self._turn += 1
        joins = self._join_request() if to == self.leader and not self._leader_failed else None
        self._fetch_open = self._send(to, joins or self._next_request())

    def _join_request(self) -> Request | None:
        """The request that an observer sends instead of a fetch, to become a voter."""
        return None

    def _fetch_later(self) -> None:
        if self._fetch_open is None and self.role in {Role.FOLLOWER, Role.UNATTACHED}:
            self._out.append(SetTimer("fetch", self._now + self.config.retry_backoff_us))

    def _answer_parked(self) -> None:
        leadership = self._leadership
        assert leadership is not None
        end = self.log.log_end_offset
        on_commit = self.config.wakes_on_commit
        for fetch in leadership.take_parked(end=end, now=self._now, on_commit=on_commit):
            self._answer_fetch(fetch.token, fetch.request, fetch.high_watermark)

    def _answer_fetch(
        self, token: int, request: QuorumFetchRequest, high_watermark: Offset
    ) -> None:
        batches = self.log.read(request.fetch_offset, self.config.fetch_max_bytes)
        self._out.append(
            Reply(
                token,
                QuorumFetchResponse(
                    ErrorCode.NONE,
                    self.leader,
                    self.epoch,
                    high_watermark,
                    batches,
                ),
            )
        )

    def _refusal(self, epoch: LeaderEpoch) -> ErrorCode:
        """Error for a request to the leader of an epoch; NONE if this member can serve it.

        Source: ``KafkaRaftClient.validateLeaderOnlyRequest``.
        """
        if epoch < self.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if self._leadership is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

    def _note_contact(self, replica: NodeId, directory: str) -> None:
        """Notes a member's fetch, which counts for check-quorum."""
        assert self._leadership is not None
        if not self._votes(replica, directory):
            return
        if self._leadership.note_contact(replica) and self.config.checks_quorum:
            self._move_deadline(self._now + self.config.check_quorum_us)

    def _refuse_fetch(self, token: int, error: ErrorCode) -> None:
        self._out.append(Reply(token, QuorumFetchResponse(error, self.leader, self.epoch)))

    # -- common to roles ---------------------------------------------------------------------------

    def _send(self, to: NodeId, request: Request) -> int:
        self._correlation += 1
        self._open[self._correlation] = (to, request)
        timeout = self.config.request_timeout_us
        self._out.append(Send(to, self._correlation, request, timeout, CHANNEL))
        return self._correlation

    def _persist(self) -> None:
        state = QuorumState(self.epoch, self.leader, self.voted_for, self.voted_directory)
        if state != self._durable:
            self._durable = state
            dynamic = self.history is not None and self.history.latest_offset is not None
            self._out.append(PersistQuorumState(state, int(dynamic)))

    def _move_deadline(self, at: Micros) -> None:
        """Sets the role's timeout: of an election, of fetching, or of check-quorum."""
        if not self.is_voter and self.role not in {Role.LEADER, Role.RESIGNED}:
            return
        self._deadline = at
        self._out.append(CancelTimer("role") if at == NEVER else SetTimer("role", at))

    def _election_timeout(self) -> Micros:
        timeout = self.config.election_timeout_us
        return self._now + timeout + int(self._unit() * timeout)

    @property
    def _role_name(self) -> str:
        """A leader that is no longer a voter leads until that is committed."""
        keeps = self.is_voter or self.role in {Role.LEADER, Role.RESIGNED}
        return self.role.value if keeps else "observer"

    def _emit(self) -> None:
        self._out.append(
            Quorum.row(
                self.node,
                role=self._role_name,
                epoch=self.epoch,
                leader=self.leader,
                voted_for=self.voted_for,
                log_end_offset=self.log.log_end_offset,
                high_watermark=self.high_watermark,
            )
        )
