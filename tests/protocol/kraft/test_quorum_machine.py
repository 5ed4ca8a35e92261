"""Votes, elections and restarts of the quorum machine: KIP-595, KIP-996 (pre-vote)."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.protocol.effects import Reply, Send
from sim.protocol.events import RequestFailed
from sim.protocol.kraft.types import (
    Committed,
    LeadershipChanged,
    PersistQuorumState,
    QuorumState,
    Role,
)
from sim.protocol.kraft.votes import Election
from sim.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    QuorumFetchRequest,
    QuorumFetchResponse,
    VoteRequest,
    VoteResponse,
)
from sim.protocol.metadata.records import LeaderChangeMessage
from tests.protocol.kraft.quorum_kit import (
    ME,
    MS,
    SECOND,
    VOTERS,
    B,
    C,
    Member,
    candidate,
    follower,
    leader,
    vote,
)

# -- votes ----------------------------------------------------------------------------------------


def test_a_vote_is_durable_before_it_is_spoken_of():
    member = Member(1, 4)
    assert member.ask(vote()).granted
    kinds = [type(e) for e in member.out]
    last_persisted = len(kinds) - 1 - kinds[::-1].index(PersistQuorumState)
    assert last_persisted < kinds.index(Reply)
    assert member.of(PersistQuorumState)[-1].state == QuorumState(5, -1, B)


def test_a_voter_votes_once_per_epoch_and_again_for_the_same_candidate():
    member = Member()
    assert member.ask(vote(B)).granted
    assert not member.ask(vote(C)).granted
    assert member.ask(vote(B)).granted
    assert member.ask(vote(C, epoch=6)).granted


def test_a_vote_is_remembered_across_a_restart():
    member = Member(state=QuorumState(5, -1, B))
    assert not member.ask(vote(C)).granted
    assert member.ask(vote(B)).granted


def test_a_candidate_with_a_shorter_log_gets_no_vote():
    member = Member(4, 4)
    assert not member.ask(vote(last=(4, 1))).granted
    assert not member.ask(vote(last=(3, 9))).granted
    assert member.ask(vote(last=(4, 2))).granted


def test_a_follower_grants_no_vote_in_its_leaders_epoch_but_in_a_later_one():
    member = follower()
    assert not member.ask(vote(C)).granted
    assert member.ask(vote(C, epoch=6)).granted
    assert member.role is Role.UNATTACHED


def test_a_follower_that_fetches_grants_no_pre_vote_and_keeps_its_leader():
    member = follower()
    assert member.ask(vote(C, pre_vote=True)).granted
    member.answer(B, QuorumFetchResponse(E.NONE, B, 5, 0), QuorumFetchRequest)
    assert not member.ask(vote(C, pre_vote=True)).granted
    assert (member.role, member.quorum.epoch) == (Role.FOLLOWER, 5)


def test_where_only_logs_are_compared_a_follower_that_fetches_grants_a_pre_vote():
    member = Member(state=QuorumState(5, B, -1), refuses_while_fetching=False)
    member.answer(B, QuorumFetchResponse(E.NONE, B, 5, 0), QuorumFetchRequest)
    assert member.ask(vote(C, pre_vote=True)).granted
    assert not member.ask(vote(C, last=(-1, 0), pre_vote=True)).granted


def test_a_voter_cut_off_comes_back_with_a_later_epoch_only_without_pre_votes():
    for pre_votes, role, epoch in ((True, Role.PROSPECTIVE, 5), (False, Role.CANDIDATE, 6)):
        member = Member(state=QuorumState(5, B, -1), pre_votes=pre_votes)
        member.fire()  # it has heard nothing for a fetch timeout
        assert (member.role, member.quorum.epoch) == (role, epoch)
        asked = [s.request for s in member.sent if isinstance(s.request, VoteRequest)]
        assert {request.pre_vote for request in asked} == {pre_votes}
        if not pre_votes:  # and again, as long as nobody elects it
            member.fire()
            assert (member.role, member.quorum.epoch) == (Role.CANDIDATE, 7)


def test_a_voter_of_a_release_without_pre_votes_says_so_and_keeps_its_epoch():
    member = Member(state=QuorumState(5, B, -1), pre_votes=False)
    response = member.ask(vote(C, pre_vote=True))
    assert (response.error, response.granted) == (E.UNSUPPORTED_VERSION, False)
    assert member.quorum.epoch == 5


def test_a_prospective_member_is_a_candidate_once_a_voter_knows_no_pre_votes():
    member = Member(state=QuorumState(5, B, -1))
    member.fire()
    assert member.role is Role.PROSPECTIVE
    member.answer(C, VoteResponse(E.UNSUPPORTED_VERSION, False, -1, 5), VoteRequest)
    assert (member.role, member.quorum.epoch) == (Role.CANDIDATE, 6)


def test_a_leader_grants_nothing_in_its_epoch():
    member = leader()
    assert not member.ask(vote(epoch=1, last=(0, 9), pre_vote=True)).granted
    assert not member.ask(vote(epoch=1, last=(0, 9))).granted


@pytest.mark.parametrize(
    ("last_epoch", "pre_vote", "error"),
    [
        (5, False, E.INVALID_REQUEST),
        (4, False, E.NONE),
        (5, True, E.NONE),
        (6, True, E.INVALID_REQUEST),
    ],
)
def test_impossible_votes_are_refused(last_epoch, pre_vote, error):
    assert Member().ask(vote(last=(last_epoch, 1), pre_vote=pre_vote)).error is error


def test_an_old_epoch_is_fenced_and_told_the_present_one():
    response = follower().ask(vote(C, epoch=4, last=(1, 1)))
    assert (response.error, response.leader, response.epoch) == (E.FENCED_LEADER_EPOCH, B, 5)


# -- elections ------------------------------------------------------------------------------------


def test_a_prospective_member_does_not_raise_the_epoch():
    member = Member(state=QuorumState(7))
    member.fire()
    assert (member.role, member.quorum.epoch) == (Role.PROSPECTIVE, 7)
    assert {s.request.pre_vote for s in member.sent if isinstance(s.request, VoteRequest)} == {True}


def test_a_candidate_persists_its_own_vote_before_it_asks_for_others():
    member = candidate()
    kinds = [type(e) for e in member.out]
    assert kinds.index(PersistQuorumState) < kinds.index(Send)
    assert member.of(PersistQuorumState)[0].state == QuorumState(1, -1, ME)


def test_a_new_leader_is_durable_before_it_introduces_itself():
    member = leader()
    kinds = [type(e) for e in member.out]
    assert kinds.index(PersistQuorumState) < kinds.index(Send)
    assert {s.request for s in member.of(Send)} == {BeginQuorumEpochRequest(ME, 1)}
    assert member.log.entries[-1] == (1, LeaderChangeMessage(ME, VOTERS, (ME, B)))


def test_a_lost_pre_vote_returns_to_the_known_leader():
    member = follower()
    member.fire()
    for voter in (B, C):
        member.answer(voter, VoteResponse(E.NONE, False, B, 5), VoteRequest)
    assert (member.role, member.quorum.leader) == (Role.FOLLOWER, B)


def test_a_lost_candidate_waits_for_the_rest_of_its_timeout():
    member = candidate()
    for voter in (B, C):
        member.answer(voter, VoteResponse(E.NONE, False, -1, 1), VoteRequest)
    assert member.role is Role.CANDIDATE
    member.fire()
    assert (member.role, member.quorum.epoch) == (Role.PROSPECTIVE, 1)


def test_a_vote_request_without_an_answer_is_repeated_after_the_backoff():
    member = candidate()
    sent = member.sent[-1]
    member.feed(RequestFailed(sent.to, sent.correlation, E.NETWORK_EXCEPTION))
    assert member.timers[f"retry-{sent.to}"] == member.now + 20 * MS
    member.fire(f"retry-{sent.to}")
    assert member.of(Send)[0].request == sent.request


@pytest.mark.parametrize(
    ("epochs", "state", "epoch"),
    [
        ((), QuorumState(), 1),
        ((1, 4), QuorumState(4, ME, ME), 5),
        ((1, 4), QuorumState(3, ME, ME), 5),
        ((1, 4), QuorumState(5, -1, ME), 5),  # it stood already in that epoch
    ],
)
def test_an_only_voter_elects_itself_as_soon_as_it_starts_and_commits_alone(epochs, state, epoch):
    member = Member(*epochs, state=state, voters=(ME,))
    assert (member.role, member.quorum.epoch) == (Role.LEADER, epoch)
    assert member.of(Committed)[-1].end_offset == len(epochs) + 1
    assert member.of(LeadershipChanged)[-1].is_leader


def test_election_timeouts_are_drawn_from_one_to_two():
    assert Member(unit=lambda: 0.0).timers["role"] == SECOND
    assert Member(unit=lambda: 0.999999).timers["role"] == pytest.approx(2 * SECOND, abs=2)


def test_votes_are_counted():
    election = Election(VOTERS)
    election.record(ME, granted=True)
    assert not election.won
    assert not election.lost
    election.record(9, granted=True)
    assert not election.won
    election.record(B, granted=False)
    election.record(C, granted=False)
    assert election.lost
    election.record(C, granted=True)
    assert election.won


# -- restarts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("state", "epochs", "role", "epoch"),
    [
        (QuorumState(), (), Role.UNATTACHED, 0),
        (QuorumState(5, ME, ME), (5,), Role.RESIGNED, 5),
        (QuorumState(5, -1, ME), (), Role.CANDIDATE, 5),
        (QuorumState(5, -1, ME), (5,), Role.RESIGNED, 5),
        (QuorumState(5, B, -1), (5,), Role.FOLLOWER, 5),
        (QuorumState(5, -1, B), (), Role.UNATTACHED, 5),
        (QuorumState(2, B, -1), (5,), Role.UNATTACHED, 5),
    ],
)
def test_a_restarted_voter_takes_up_the_role_its_file_implies(state, epochs, role, epoch):
    member = Member(*epochs, state=state)
    assert (member.role, member.quorum.epoch) == (role, epoch)
