"""The metadata quorum's machine: requests, responses and timeouts of every role.

Voters (controllers) and observers (brokers) run the same machine. Replication is by fetching: the
leader learns from a fetch how far the follower is and answers with records, or with the epoch at
which the two logs part. A fetch that finds nothing waits at the leader up to 500 ms for records,
and since 4.1 for a move of the high watermark (KIP-1166), which came with the next records before.

The process must run it alone (``serial``): an event during its fsync waits, as in Kafka's thread.

Source: KIP-595, KIP-996, KIP-1166; ``org.apache.kafka.raft.KafkaRaftClient`` (4.1).
"""

from typing import assert_never

from sim.error_codes import ErrorCode
from sim.ids import METADATA_PARTITION, NO_LEADER, LeaderEpoch, NodeId
from sim.protocol.effects import Flush, Reply, SetTimer
from sim.protocol.events import (
    Flushed,
    RequestFailed,
    RequestReceived,
    ResponseReceived,
    TimerFired,
)
from sim.protocol.kraft.batch_accumulator import WaitingBatch
from sim.protocol.kraft.leader_state import ObserverState, ParkedFetch
from sim.protocol.kraft.snapshots import SnapshotMember
from sim.protocol.kraft.types import (
    AppendMetadata,
    Halt,
    QuorumEffect,
    QuorumEvent,
    QuorumStarted,
    Resign,
    Role,
)
from sim.protocol.kraft.voter_changes import KRAFT_VERSION
from sim.protocol.kraft.votes import (
    end_quorum_backoff_us,
    grants_pre_vote,
    grants_vote,
    up_to_date,
)
from sim.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    QuorumEpochResponse,
    QuorumFetchRequest,
    QuorumFetchResponse,
    VoteRequest,
    VoteResponse,
)
from sim.protocol.messages.voters import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    RemoveRaftVoterRequest,
)
from sim.protocol.metadata.records import Voter, VotersRecord
from sim.protocol.ports import NO_EPOCH_END, EpochEnd
from sim.units import NEVER, Micros, timestamp_ms


class Quorum(SnapshotMember):
    """One member of the metadata quorum.

    Constructed with what was loaded from disk (``log``, ``state``); begins with
    :class:`QuorumStarted`. ``unit`` draws the jitter of election timeouts.
    """

    def handle(self, event: QuorumEvent, now: Micros) -> list[QuorumEffect]:
        """Handles an event; returns effects in the order in which they must be performed."""
        self._now = now
        out = self._out = []
        match event:
            case RequestReceived():
                self._on_request(event)
            case ResponseReceived():
                self._on_response(event)
            case RequestFailed():
                self._on_failure(event)
            case TimerFired():
                self._on_timer(event.name)
            case AppendMetadata():
                self._on_append(event)
            case QuorumStarted():
                self._on_start()
            case Resign():
                self._on_resign()
            case Flushed():
                pass  # nothing of this machine waits for a token
            case _:
                assert_never(event)
        if self.history is not None and self._was_removed():
            self._on_resign()
        return out

    # -- the process ------------------------------------------------------------------------------

    def _on_start(self) -> None:
        """Takes the role that the durable state implies; a sole voter becomes candidate at once.

        Source: ``QuorumState.initialize``, ``KafkaRaftClient.initialize``.
        """
        self._clean_later()
        self._read_voters()
        self._take_up_role()
        if self.is_voter and not self._others and self.role is not Role.LEADER:
            self._become_prospective()

    def _take_up_role(self) -> None:
        state = self._durable
        if self.log.latest_epoch > state.epoch:
            self._become_unattached(self.log.latest_epoch)
            return
        self.epoch, self.voted_for = state.epoch, state.voted_for
        self.voted_directory = state.voted_directory
        was_candidate = state.voted_for == self.node and state.leader == NO_LEADER
        # This member led the epoch in which its log already ends, before its state was written.
        led = state.leader == self.node or (was_candidate and self.log.latest_epoch == state.epoch)
        may_have_led = self.is_voter or self.history is not None
        if may_have_led and led and state.epoch > 0:
            self._become_resigned(())
        elif self.is_voter and was_candidate:
            self._become(Role.CANDIDATE, state.epoch, NO_LEADER, self.node)
            self._send_vote_requests(pre_vote=False)
        elif state.leader in self._others:
            self._become_follower(state.epoch, state.leader)
        else:
            self._become_unattached(state.epoch, state.voted_for)

    def _on_resign(self) -> None:
        if self._leadership is not None:
            self._become_resigned(self._leadership.successors())

    def _on_append(self, event: AppendMetadata) -> None:
        leadership = self._leadership
        if leadership is None or event.epoch != self.epoch:
            return
        accumulator = leadership.accumulator
        end = self.log.log_end_offset + accumulator.record_count
        assert event.base_offset == end, f"{event} at {end}"
        change = leadership.change
        if change is not None and event.records == (VotersRecord(change.voters),):
            self._change_appended(change, event.base_offset)
            batches = accumulator.drain()
            batches.append(WaitingBatch(self._now, list(event.records)))
            self._write(batches)
            return
        accumulator.append(event.records, self.log.records_bytes(event.records), event.appended_us)
        self._drain()

    def _drain(self) -> None:
        """Writes batches whose linger has passed, or that are full.

        Source: ``KafkaRaftClient.maybeAppendBatches``.
        """
        assert self._leadership is not None
        accumulator = self._leadership.accumulator
        if accumulator.due_at > self._now:
            if accumulator.due_at < NEVER:
                self._out.append(SetTimer("drain", accumulator.due_at))
            return
        self._write(accumulator.drain())

    def _write(self, batches: list[WaitingBatch]) -> None:
        log = self.log
        for batch in batches:
            base = log.log_end_offset
            log.append_records(batch.records, self.epoch, timestamp_ms(batch.created_us))
            self._log_grew(base)
        self._advance_high_watermark()  # a sole voter commits at once, before the response
        self._answer_parked()
        self._out.append(Flush(METADATA_PARTITION))

    def _on_timer(self, name: str) -> None:
        if name == "fetch":
            self._fetch()
        elif name == "role":
            self._on_deadline()
        elif name == "begin":
            if self._leadership is not None:
                self._send_begin_quorum_epochs()
        elif name == "drain":
            if self._leadership is not None:
                self._drain()
        elif name == "parked":
            self._on_park_timer()
        elif name == "clean":
            self._clean_log()
        elif name == "change":
            self._on_change_timer()
        else:
            self._repeat_request(int(name.removeprefix("retry-")))

    def _on_deadline(self) -> None:
        if self._now < self._deadline:
            return
        match self.role:
            case Role.UNATTACHED | Role.FOLLOWER | Role.CANDIDATE:
                if self.is_voter:  # an observer may be a removed leader
                    self._become_prospective()
            case Role.PROSPECTIVE:
                self._end_pre_vote()
            case Role.RESIGNED:
                self._become_unattached(self.epoch + 1)
                self._move_deadline(self._election_timeout())
            case Role.LEADER:
                self._on_resign()
            case _:
                assert_never(self.role)

    # -- requests ---------------------------------------------------------------------------------

    def _on_request(self, event: RequestReceived) -> None:
        request = event.request
        match request:
            case QuorumFetchRequest():
                self._serve_fetch(event.token, request)
            case VoteRequest():
                self._serve_vote(event.token, request)
            case BeginQuorumEpochRequest():
                self._serve_begin(event.token, request)
            case EndQuorumEpochRequest():
                self._serve_end(event.token, request)
            case FetchSnapshotRequest():
                self._serve_snapshot(event.token, request)
            case AddRaftVoterRequest():
                self._serve_add(event.token, request)
            case RemoveRaftVoterRequest():
                self._serve_remove(event.token, request)
            case ApiVersionsRequest():
                self._out.append(Reply(event.token, ApiVersionsResponse(0, KRAFT_VERSION)))
            case _:
                message = f"not a request to the quorum: {request}"
                raise AssertionError(message)

    def _serve_vote(self, token: int, request: VoteRequest) -> None:
        error = ErrorCode.NONE
        granted = False
        last_epoch_max = request.epoch if request.pre_vote else request.epoch - 1
        if request.pre_vote and not self.config.pre_votes:
            error = ErrorCode.UNSUPPORTED_VERSION  # a release before KIP-996
        elif request.last_epoch > last_epoch_max:
            error = ErrorCode.INVALID_REQUEST
        elif request.epoch < self.epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        else:
            if request.epoch > self.epoch:
                self._become_unattached(request.epoch)
            if request.voter_directory not in {"", self.directory}:
                error = ErrorCode.INVALID_VOTER_KEY
            else:
                granted = self._grants(request)
            if granted and not request.pre_vote:
                self._note_vote(request.candidate, request.directory)
        response = VoteResponse(error, granted, self.leader, self.epoch)
        self._out.append(Reply(token, response))

    def _grants(self, request: VoteRequest) -> bool:
        log = self.log
        fresh = up_to_date(
            request.last_epoch, request.last_offset, log.latest_epoch, log.log_end_offset
        )
        if request.pre_vote:
            return grants_pre_vote(self.role, is_up_to_date=fresh, has_fetched=self._hears_leader)
        if self.voted_for == request.candidate and self.voted_directory not in {
            "",
            request.directory,
        }:
            return False
        return grants_vote(
            self.role,
            is_up_to_date=fresh,
            candidate=request.candidate,
            voted_for=self.voted_for,
            leader=self.leader,
        )

    def _note_vote(self, candidate: NodeId, directory: str) -> None:
        if self.voted_for == candidate:
            return
        self.voted_for = candidate
        self.voted_directory = directory
        self._persist()
        self._emit()
        if self.role is Role.UNATTACHED:
            # The candidate has at least as good a chance as this voter, so the voter's timeout
            # restarts.
            self._move_deadline(self._election_timeout())

    def _serve_begin(self, token: int, request: BeginQuorumEpochRequest) -> None:
        error = ErrorCode.NONE
        if request.epoch < self.epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        else:
            self._maybe_transition(request.leader, request.epoch)
            if request.voter_directory not in {"", self.directory}:
                error = ErrorCode.INVALID_VOTER_KEY
        self._out.append(Reply(token, QuorumEpochResponse(error, self.leader, self.epoch)))

    def _serve_end(self, token: int, request: EndQuorumEpochRequest) -> None:
        error = ErrorCode.NONE
        if request.epoch < self.epoch:
            error = ErrorCode.FENCED_LEADER_EPOCH
        else:
            self._maybe_transition(request.leader, request.epoch)
            if self.role is Role.FOLLOWER and self.leader == request.leader:
                backoff_max = self.config.election_backoff_max_us
                wait = end_quorum_backoff_us(self.node, request.preferred, backoff_max)
                self._move_deadline(self._now + wait)
        self._out.append(Reply(token, QuorumEpochResponse(error, self.leader, self.epoch)))

    def _serve_fetch(self, token: int, request: QuorumFetchRequest) -> None:
        error = self._refusal(request.epoch)
        if error is not ErrorCode.NONE:
            self._refuse_fetch(token, error)
            return
        leadership = self._leadership
        assert leadership is not None
        self._note_contact(request.replica, request.directory)
        snapshot = self._snapshot_due(request)
        if snapshot is not None:
            self._point_to_snapshot(token, snapshot)
            return
        diverging = self._divergence(request)
        if diverging != NO_EPOCH_END:
            response = QuorumFetchResponse(
                ErrorCode.NONE,
                self.node,
                self.epoch,
                leadership.high_watermark,
                diverging=diverging,
            )
            self._out.append(Reply(token, response))
            return
        if self._votes(request.replica, request.directory):
            leadership.acknowledged[request.replica] = None
            leadership.end_offsets[request.replica] = request.fetch_offset
            self._advance_high_watermark()
        elif self.history is not None:
            observer = Voter(request.replica, request.directory)
            observed = leadership.observers.setdefault(observer, ObserverState())
            observed.note_fetch(request.fetch_offset, self.log.log_end_offset, self._now)
        has_news = request.fetch_offset < self.log.log_end_offset or (
            self.config.wakes_on_commit and request.high_watermark < leadership.high_watermark
        )
        if has_news or request.max_wait_us <= 0:
            self._answer_fetch(token, request, leadership.high_watermark)
        else:
            self._park(token, request)

    def _divergence(self, request: QuorumFetchRequest) -> EpochEnd:
        """Divergence of the follower's log from this one; NO_EPOCH_END if it is a prefix."""
        if request.fetch_offset == 0:
            return NO_EPOCH_END
        end = self._end_of(request.last_fetched_epoch)
        if end.epoch == request.last_fetched_epoch and end.offset >= request.fetch_offset:
            return NO_EPOCH_END
        return end

    def _end_of(self, epoch: LeaderEpoch) -> EpochEnd:
        """Largest epoch not above the given one, and its end here; the log's end if unknown.

        Source: ``KafkaRaftLog.endOffsetForEpoch``.
        """
        log = self.log
        end = log.end_offset_for_epoch(epoch)
        return EpochEnd(log.latest_epoch, log.log_end_offset) if end == NO_EPOCH_END else end

    def _park(self, token: int, request: QuorumFetchRequest) -> None:
        leadership = self._leadership
        assert leadership is not None
        deadline = self._now + request.max_wait_us
        leadership.parked.append(ParkedFetch(token, request, deadline, leadership.high_watermark))
        if deadline < leadership.park_timer_at:
            leadership.park_timer_at = deadline
            self._out.append(SetTimer("parked", deadline))

    def _on_park_timer(self) -> None:
        leadership = self._leadership
        if leadership is None:
            return
        leadership.park_timer_at = NEVER
        self._answer_parked()
        if leadership.parked:
            leadership.park_timer_at = min(fetch.deadline for fetch in leadership.parked)
            self._out.append(SetTimer("parked", leadership.park_timer_at))

    # -- responses ---------------------------------------------------------------------------------

    def _on_response(self, event: ResponseReceived) -> None:
        opened = self._open.pop(event.correlation, None)
        if opened is None:
            return
        response = event.response
        request = opened[1]
        if self._fetch_open == event.correlation:
            self._fetch_open = None
        match response:
            case QuorumFetchResponse():
                self._on_fetched(event.sender, response)
                self._fetch_later()
            case FetchSnapshotResponse():
                self._on_snapshot_part(event.sender, response)
                self._fetch_later()
            case ApiVersionsResponse():
                self._on_versions(event.sender, response)
            case VoteResponse():
                assert isinstance(request, VoteRequest)
                self._on_voted(event.sender, request, response)
            case QuorumEpochResponse():
                if self._handle_common_response(response.error, response.leader, response.epoch):
                    return
                if self._leadership is not None and response.error is ErrorCode.NONE:
                    self._leadership.acknowledged[event.sender] = None
            case _:
                self._on_join_answered(response)

    def _on_voted(self, voter: NodeId, request: VoteRequest, response: VoteResponse) -> None:
        if self._handle_common_response(response.error, response.leader, response.epoch):
            return
        if self._election is None or request.pre_vote is not (self.role is Role.PROSPECTIVE):
            return
        if response.error is ErrorCode.UNSUPPORTED_VERSION:
            self._become_candidate()  # a voter of an older release knows no pre-votes (KIP-996)
            return
        if response.error is not ErrorCode.NONE:  # it has the voter's id, and another's disk
            self._retry_later(voter)
            return
        self._election.record(voter, granted=response.granted)
        self._settle_election()

    def _on_fetched(self, sender: NodeId, response: QuorumFetchResponse) -> None:
        if self._handle_common_response(response.error, response.leader, response.epoch):
            return
        if (
            response.error is not ErrorCode.NONE
            or self.role is not Role.FOLLOWER
            or sender != self.leader
            or self._fetch_open is not None
        ):
            return
        self._has_fetched = True
        self._leader_failed = False
        self._move_deadline(self._now + self.config.fetch_timeout_us)
        if response.snapshot is not None:
            self._begin_download(response.snapshot)
        elif response.diverging != NO_EPOCH_END:
            if not self._truncate(response.diverging):
                return
        else:
            if response.batches:
                base = self.log.log_end_offset
                self.log.append_batches(response.batches)
                self._log_grew(base)
                if self.is_voter or self._always_flushes:
                    self._out.append(Flush(METADATA_PARTITION))
            self._commit(min(response.high_watermark, self.log.log_end_offset))
        self._fetch()

    def _truncate(self, diverging: EpochEnd) -> bool:
        """Truncates to the divergence. False if that was committed: the process halts."""
        log = self.log
        own = self._end_of(diverging.epoch)
        end = min(own.offset, diverging.offset) if own.epoch == diverging.epoch else own.offset
        end = min(max(end, 0), log.log_end_offset)
        if end < self.high_watermark:
            self._out.append(
                Halt(f"truncation to {end} below the high watermark {self.high_watermark}")
            )
            return False
        log.truncate_to(end)
        self._log_was_cut(end)
        return True

    def _on_failure(self, event: RequestFailed) -> None:
        opened = self._open.pop(event.correlation, None)
        if opened is None:
            return
        if self._fetch_open == event.correlation:
            self._fetch_open = None
            self._leader_failed = True
            self._fetch_later()
        elif isinstance(opened[1], ApiVersionsRequest):
            self._on_versions_failed(event.sender)
        elif self.role in {Role.PROSPECTIVE, Role.CANDIDATE, Role.RESIGNED}:
            self._retry_later(event.sender)

    def _repeat_request(self, voter: NodeId) -> None:
        """Repeats a failed request to a voter, if its response still counts."""
        if any(to == voter for to, _ in self._open.values()):
            return
        if self._election is not None:
            if voter in self._election.unanswered():
                self._send_vote_request(voter, pre_vote=self.role is Role.PROSPECTIVE)
        elif self.role is Role.RESIGNED:
            self._send(voter, EndQuorumEpochRequest(self.node, self.epoch, ()))
