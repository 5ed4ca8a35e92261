"""KIP-1186: a controller that observes a dynamic quorum asks the leader to let it vote.

Its id may still vote with the disk that it lost: that vote is removed first, and then it is added.
"""

import pytest

from sim.error_codes import ErrorCode as E
from sim.protocol.effects import Reply, Send
from sim.protocol.kraft.types import Role
from sim.protocol.messages.quorum import (
    BeginQuorumEpochRequest,
    QuorumFetchRequest,
    QuorumFetchResponse,
)
from sim.protocol.messages.voters import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    RemoveRaftVoterRequest,
)
from sim.protocol.metadata.records import Voter
from tests.kips.test_kip_853 import FIRST, NEW, Process, active
from tests.protocol.kraft.quorum_kit import ME, SECOND, B

OTHERS = tuple(voter for voter in FIRST if voter.node != ME)


def observer(voters=OTHERS, **config):
    """A controller without a vote that has found the leader, and fetches."""
    member = Process(voters=voters, directory=f"{ME}/1", auto_joins=True, **config)
    member.ask(BeginQuorumEpochRequest(B, 5))
    assert member.role is Role.FOLLOWER
    return member


def asked(member, kind):
    return [effect.request for effect in member.of(Send) if isinstance(effect.request, kind)]


def answer_fetch(member, at):
    member.now = at
    member.answer(B, QuorumFetchResponse(E.NONE, B, member.quorum.epoch), QuorumFetchRequest)


@pytest.mark.parametrize(
    ("voters", "request_"),
    [
        (OTHERS, AddRaftVoterRequest(ME, f"{ME}/1", when_committed=False)),
        (FIRST, RemoveRaftVoterRequest(ME, f"{ME}/0")),
    ],
)
def test_a_fetch_timeout_after_it_has_found_the_leader_it_asks_for_its_vote(voters, request_):
    member = observer(voters)
    answer_fetch(member, 1 * SECOND)
    assert asked(member, type(request_)) == []
    answer_fetch(member, 2 * SECOND)
    assert asked(member, type(request_)) == [request_]
    assert asked(member, QuorumFetchRequest) == [], "its connection is taken until the answer"


def test_after_the_answer_it_fetches_and_asks_again_later_if_it_has_no_vote():
    member = observer()
    answer_fetch(member, 2 * SECOND)
    member.answer(B, AddRaftVoterResponse(E.REQUEST_TIMED_OUT), AddRaftVoterRequest)
    assert asked(member, AddRaftVoterRequest) == []
    assert len(asked(member, QuorumFetchRequest)) == 1
    answer_fetch(member, 4 * SECOND)
    assert len(asked(member, AddRaftVoterRequest)) == 1


@pytest.mark.parametrize("joins", [False, True])
def test_only_a_controller_that_is_told_to_asks_and_no_voter_does(joins):
    member = Process(auto_joins=True) if joins else Process(voters=OTHERS, directory=f"{ME}/1")
    member.ask(BeginQuorumEpochRequest(B, 5))
    answer_fetch(member, 9 * SECOND)
    assert asked(member, AddRaftVoterRequest) == []


@pytest.mark.parametrize(("when_committed", "early"), [(False, [E.NONE]), (True, [])])
def test_the_leader_answers_it_when_the_record_is_appended(when_committed, early):
    member = active()
    member.fetched(NEW)
    member.ask(AddRaftVoterRequest(*NEW, when_committed=when_committed))
    token = member.tokens
    member.answer(NEW.node, ApiVersionsResponse(0, 1), ApiVersionsRequest)
    member.append_proposal()
    found = [e.response.error for e in member.of(Reply) if e.token == token]
    assert found == early
    assert Voter(*NEW) in member.quorum.history.latest
