"""KIP-853: who votes in the metadata quorum is a record of its log, and can be changed.

A vote belongs to a disk, not to an id. One voter is added or removed at a time, and the change
holds from its record on, before it is committed.
"""

from dataclasses import replace

import pytest

from sim.error_codes import ErrorCode as E
from sim.ids import SnapshotId
from sim.protocol.effects import Reply
from sim.protocol.events import RequestFailed
from sim.protocol.kraft.raft import Quorum
from sim.protocol.kraft.types import (
    AppendMetadata,
    PersistQuorumState,
    QuorumConfig,
    QuorumStarted,
    QuorumState,
    Role,
    VotersProposed,
)
from sim.protocol.kraft.voter_set import DynamicMember
from sim.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    EndQuorumEpochRequest,
    VoteRequest,
    VoteResponse,
)
from sim.protocol.messages.voters import (
    AddRaftVoterRequest,
    ApiVersionsRequest,
    ApiVersionsResponse,
    RemoveRaftVoterRequest,
)
from sim.protocol.metadata.records import (
    KRaftVersionRecord,
    LeaderChangeMessage,
    NoOpRecord,
    Voter,
    VotersRecord,
)
from tests.protocol.kraft.quorum_kit import (
    ME,
    MS,
    SECOND,
    VOTERS,
    B,
    C,
    Member,
    OneRecordLog,
    fetch,
)
from tests.protocol.kraft.quorum_kit import leader as static_leader

D = 3004
FIRST = tuple(Voter(node, f"{node}/0") for node in VOTERS)
NEW = Voter(D, f"{D}/0")


class FormattedLog(OneRecordLog):
    """A log above the checkpoint that a new cluster's controllers are formatted with."""

    def __init__(self, *epochs, voters=FIRST):
        super().__init__(*epochs)
        self._voters = voters
        self.earliest_snapshot = self.latest_snapshot = SnapshotId(0, 0)

    def snapshot_voters(self, snapshot):
        return self._voters


class Process(Member):
    """One member of a dynamic quorum, on the disk that the voters' record names."""

    def __init__(self, *epochs, voters=FIRST, directory=f"{ME}/0", state=None, **config):
        self.log = FormattedLog(*epochs, voters=voters)
        self.quorum = Quorum(
            ME,
            (),
            self.log,
            lambda: 0.0,
            config=QuorumConfig(**config),
            state=state or QuorumState(),
            dynamic=DynamicMember(directory, (*VOTERS, D), always_flushes=True),
        )
        self.now, self.tokens, self.sent, self.timers = 0, 0, [], {}
        self.feed(QuorumStarted())

    def fetched(self, voter, hw=0):
        """The voter has everything that this leader has."""
        log = self.log
        request = fetch(voter.node, self.quorum.epoch, log.log_end_offset, log.latest_epoch, hw)
        return self.ask(replace(request, directory=voter.directory, max_wait_us=0))

    def append_proposal(self):
        """What the active controller does with the leader's wish."""
        (wish,) = self.of(VotersProposed)
        return self.feed(
            AppendMetadata(wish.epoch, self.log.log_end_offset, (wish.record,), self.now)
        )

    def said(self, token):
        """The answer to an administrator's request, if the last event brought it."""
        return next((e.response.error for e in self.of(Reply) if e.token == token), None)


def elected(**config):
    """A leader with votes of two disks, whose first batch is not committed."""
    member = Process(**config)
    member.fire()
    for _ in range(2):
        granted = VoteResponse(E.NONE, True, -1, member.quorum.epoch)
        member.answer(B, granted, VoteRequest)
    assert member.role is Role.LEADER
    return member


def active(**config):
    member = elected(**config)
    member.fetched(FIRST[1])
    assert member.quorum.high_watermark == 3
    return member


def adding(member):
    """The new one has caught up, is wanted, and is asked what it can do."""
    member.fetched(NEW)
    member.ask(AddRaftVoterRequest(*NEW))
    return member.tokens


# -- who votes ------------------------------------------------------------------------------------


def test_the_first_epoch_of_a_new_cluster_begins_with_its_voters():
    records = [record for _, record in elected().log.entries]
    assert records == [
        LeaderChangeMessage(ME, VOTERS, (ME, B)),
        KRaftVersionRecord(1),
        VotersRecord(FIRST),
    ]


def test_a_later_epoch_does_not_repeat_them():
    member = active()
    again = Process()
    again.log.entries = list(member.log.entries)
    again.quorum.handle(QuorumStarted(), 0)
    assert again.quorum.history.latest_offset == 2
    assert again.quorum.voters == VOTERS


def ask_for_vote(epoch=5, to=f"{ME}/0", of=B):
    return VoteRequest(of, epoch, 4, 10, False, f"{of}/0", to)


def test_a_vote_belongs_to_a_disk_not_to_an_id():
    assert Process().ask(ask_for_vote()).granted
    replaced = Process(voters=(), directory=f"{ME}/1")
    answer = replaced.ask(ask_for_vote())
    assert (answer.error, answer.granted) == (E.INVALID_VOTER_KEY, False)
    assert not replaced.of(PersistQuorumState)[-1:] or replaced.quorum.voted_for == -1


def test_a_vote_for_a_candidate_is_not_repeated_for_its_new_disk():
    member = Process()
    assert member.ask(ask_for_vote()).granted
    assert member.ask(ask_for_vote()).granted
    assert not member.ask(replace(ask_for_vote(), directory=f"{B}/1")).granted


def test_a_process_on_another_disk_than_its_vote_only_observes():
    replaced = Process(directory=f"{ME}/1")
    assert not replaced.quorum.is_voter
    assert "role" not in replaced.timers  # it never stands
    assert Process().timers["role"] == SECOND


def test_a_candidate_asks_a_voter_again_whose_disk_is_another():
    member = Process()
    member.fire()
    answer = VoteResponse(E.INVALID_VOTER_KEY, False, -1, 0)
    member.answer(B, answer, VoteRequest)
    assert member.timers[f"retry-{B}"] == member.now + 20 * MS
    asked = len(member.sent)
    member.fire(f"retry-{B}")
    assert [s.to for s in member.sent[asked:]] == [B]


def test_a_leader_introduces_itself_until_the_voters_own_disk_has_answered():
    member = elected()
    sent = [s.request for s in member.sent if isinstance(s.request, BeginQuorumEpochRequest)]
    assert sent == [
        BeginQuorumEpochRequest(ME, 1, f"{B}/0"),
        BeginQuorumEpochRequest(ME, 1, f"{C}/0"),
    ]


def test_what_a_new_disk_fetches_does_not_count_for_its_ids_vote():
    member = elected()
    member.fetched(Voter(B, f"{B}/1"))
    assert member.quorum.high_watermark == 0
    member.fetched(FIRST[1])
    assert member.quorum.high_watermark == 3


# -- adding ---------------------------------------------------------------------------------------


def test_a_controller_votes_from_the_record_on_and_is_told_of_at_the_commit_by_the_new_majority():
    member = active()
    token = adding(member)
    assert member.sent[-1].request == ApiVersionsRequest()
    member.answer(D, ApiVersionsResponse(0, 1), ApiVersionsRequest)
    assert member.quorum.voters == VOTERS
    member.append_proposal()
    assert member.quorum.voters == (*VOTERS, D)
    member.fetched(FIRST[1])  # two of four are no majority
    assert member.said(token) is None
    member.fetched(NEW)
    assert member.said(token) is E.NONE


def test_a_controller_that_lags_is_not_added():
    member = active()
    request = fetch(D, 1, 1, 1)
    member.ask(replace(request, directory=NEW.directory))
    member.ask(AddRaftVoterRequest(*NEW))
    token = member.tokens
    member.answer(D, ApiVersionsResponse(0, 1), ApiVersionsRequest)
    assert member.said(token) is E.REQUEST_TIMED_OUT
    assert not member.of(VotersProposed)


@pytest.mark.parametrize(
    ("versions", "error"), [((0, 0), E.INVALID_REQUEST), (None, E.REQUEST_TIMED_OUT)]
)
def test_a_controller_that_cannot_do_it_or_does_not_answer_is_not_added(versions, error):
    member = active()
    token = adding(member)
    sent = member.sent[-1]
    if versions is None:
        member.feed(RequestFailed(D, sent.correlation, E.NETWORK_EXCEPTION))
    else:
        member.answer(D, ApiVersionsResponse(*versions), ApiVersionsRequest)
    assert member.said(token) is error
    token = adding(member)  # and another attempt may begin
    assert member.said(token) is None


def test_an_id_votes_once():
    answer = active().ask(AddRaftVoterRequest(B, f"{B}/1"))
    assert answer.error is E.DUPLICATE_VOTER


# -- removing -------------------------------------------------------------------------------------


def test_a_voter_counts_no_more_from_the_record_on():
    member = active()
    member.ask(RemoveRaftVoterRequest(*FIRST[2]))
    token = member.tokens
    member.append_proposal()
    assert member.quorum.voters == (ME, B)
    member.fetched(FIRST[2])
    assert member.said(token) is None
    member.fetched(FIRST[1])
    assert member.said(token) is E.NONE


@pytest.mark.parametrize("wanted", [Voter(C, f"{C}/1"), NEW])
def test_a_vote_that_does_not_exist_cannot_be_taken_away(wanted):
    assert active().ask(RemoveRaftVoterRequest(*wanted)).error is E.VOTER_NOT_FOUND


def test_the_last_voter_stays():
    member = Process(voters=FIRST[:1])
    member.fire()
    assert member.role is Role.LEADER
    answer = member.ask(RemoveRaftVoterRequest(*FIRST[0]))
    assert answer.error is E.UNKNOWN_SERVER_ERROR


def removed_leader():
    member = active()
    member.ask(RemoveRaftVoterRequest(*FIRST[0]))
    member.append_proposal()
    return member


def test_a_leader_that_removes_itself_does_not_count_itself_and_resigns_at_the_commit():
    member = removed_leader()
    token = member.tokens
    member.fetched(FIRST[1])
    assert (member.role, member.said(token)) == (Role.LEADER, None)
    member.fetched(FIRST[2])
    assert (member.role, member.said(token)) == (Role.RESIGNED, E.NONE)
    ends = [s for s in member.sent if isinstance(s.request, EndQuorumEpochRequest)]
    assert {s.to for s in ends} == {B, C}
    member.fire()  # it stays an observer
    assert (member.role, member.quorum.epoch) == (Role.UNATTACHED, 2)
    assert not member.quorum.is_voter
    member.fire()
    assert member.role is Role.UNATTACHED


def test_a_removed_leader_that_starts_again_gives_no_second_vote_in_the_epoch_it_led():
    member = removed_leader()
    again = Process(voters=FIRST, state=QuorumState(1, ME, ME, f"{ME}/0"))
    again.log.entries = list(member.log.entries)
    again.quorum.handle(QuorumStarted(), 0)
    assert again.role is Role.RESIGNED
    assert not again.ask(replace(ask_for_vote(epoch=1), last_epoch=0)).granted


# -- one at a time --------------------------------------------------------------------------------


def test_a_change_of_voters_is_written_at_once_and_takes_along_what_waits():
    member = active()
    end = member.log.log_end_offset
    member.feed(AppendMetadata(1, end, (NoOpRecord(),), member.now))
    assert member.log.log_end_offset == end
    member.ask(RemoveRaftVoterRequest(*FIRST[2]))
    member.feed(AppendMetadata(1, end + 1, (VotersRecord(FIRST[:2]),), member.now))
    written = [logged.record for logged in member.log.records_between(end, end + 2)]
    assert written == [NoOpRecord(), VotersRecord(FIRST[:2])]


def test_a_change_waits_for_the_one_before():
    member = active()
    member.ask(RemoveRaftVoterRequest(*FIRST[2]))
    first = member.tokens
    assert member.ask(RemoveRaftVoterRequest(*FIRST[1])).error is E.REQUEST_TIMED_OUT
    member.feed(AppendMetadata(1, 3, (VotersRecord(FIRST[:2]),), member.now))
    member.now = 2 * SECOND
    member.fire("change")
    assert member.said(first) is E.REQUEST_TIMED_OUT
    # Nobody waits for it any more, and it is still uncommitted.
    assert member.ask(AddRaftVoterRequest(*NEW)).error is E.REQUEST_TIMED_OUT
    member.fetched(FIRST[1])
    assert adding(member)
    assert member.sent[-1].request == ApiVersionsRequest()


def test_no_change_before_the_leader_has_committed_in_its_epoch():
    assert elected().ask(RemoveRaftVoterRequest(*FIRST[2])).error is E.REQUEST_TIMED_OUT


def test_who_waits_for_a_change_is_told_that_the_leader_is_gone():
    member = active()
    token = adding(member)
    member.ask(ask_for_vote(epoch=9))
    assert member.said(token) is E.NOT_LEADER_OR_FOLLOWER


@pytest.mark.parametrize("request_", [AddRaftVoterRequest(*NEW), RemoveRaftVoterRequest(*FIRST[1])])
def test_only_a_leader_and_only_a_dynamic_quorum_can_change_voters(request_):
    assert Process().ask(request_).error is E.NOT_LEADER_OR_FOLLOWER
    static = static_leader()
    static.ask(fetch(B, 1, 1, 1))
    assert static.ask(request_).error is E.UNSUPPORTED_VERSION
