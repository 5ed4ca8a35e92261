"""How a Raft group's members change: one step at a time, and what a member does on the way."""

import pytest

from sim.ids import NO_LEADER
from sim.protocol.broker.raft_storage import Membership
from sim.protocol.messages.raft_groups import (
    RaftAnswer,
    RaftAppendRequest,
    RaftTimeoutNowRequest,
    RaftVoteRequest,
)
from sim.protocol.raft_groups.membership import electors, everyone, next_membership
from sim.protocol.raft_groups.types import Configured, PersistVote, ReplyToMember
from tests.protocol.raft_groups.raft_kit import ListRecords
from tests.protocol.raft_groups.test_raft_group import (
    TIMEOUT,
    append,
    elected,
    flushed,
    member,
    only,
    open_requests,
    records,
)

READY, LATE = (lambda _: True), (lambda _: False)


@pytest.mark.parametrize(
    ("now", "target", "is_ready", "then"),
    [
        (Membership((1, 2, 3)), (2, 3, 4), LATE, Membership((1, 2, 3), learners=(4,))),
        (Membership((1, 2, 3), (), (4,)), (2, 3, 4), LATE, None),
        (Membership((1, 2, 3), (), (4,)), (2, 3, 4), READY, Membership((1, 2, 3, 4))),
        (Membership((1, 2, 3), (), (4, 5)), (4, 5), READY, Membership((1, 2, 3, 4), (), (5,))),
        (Membership((1, 2, 3, 4)), (2, 3, 4), READY, Membership((2, 3, 4), (1, 2, 3, 4))),
        (Membership((2, 3, 4), (1, 2, 3, 4)), (2, 3, 4), READY, Membership((2, 3, 4))),
        (Membership((2, 3, 4)), (2, 3, 4), READY, None),
        (Membership((2, 3, 4)), (4, 2, 3), READY, Membership((4, 2, 3))),
        (Membership((1, 2), (), (3,)), (1, 2), LATE, Membership((1, 2))),
        (Membership((3,), (1, 2, 3)), (1, 2), READY, Membership((3,))),
    ],
)
def test_one_step_at_a_time_towards_the_target(now, target, is_ready, then):
    assert next_membership(now, target, is_ready) == then


def test_old_voters_vote_and_learners_only_listen():
    membership = Membership((2, 3), old=(1, 2), learners=(4,))
    assert electors(membership) == (2, 3, 1)
    assert everyone(membership) == (2, 3, 1, 4)


def told(group, membership, at=0, term=1, commit=0):
    """A leader's log says who the members are."""
    batch = ListRecords().configuration(membership, 0)
    (stamped,) = records(term, at=at)
    said = type(batch)(
        is_control=True, producer_index=batch.producer_index, base_offset=at, leader_epoch=term
    )
    assert stamped.base_offset == said.base_offset
    sent = append(term=term, prev_offset=at, prev_term=term if at else -1, batches=(said,))
    return group.on_append_request(7, 1, sent, now=0)


def test_a_learner_does_not_stand_and_a_voter_does():
    group = member(2)
    told(group, Membership((1, 3), learners=(2,)))
    assert group.due(group.deadline) == []
    assert group.timeout_now(1, 0) == []
    told(group, Membership((1, 2, 3)), at=1)
    group.on_append_request(8, 1, append(prev_offset=2, prev_term=1), now=0)
    group.due(group.deadline)
    assert open_requests(group.due(group.deadline), RaftVoteRequest)


def test_members_are_in_force_as_soon_as_the_log_says_so_and_a_cut_brings_back_the_former():
    group = member(2)
    told(group, Membership((1, 2, 3)))
    told(group, Membership((2, 3), old=(1, 2, 3)), at=1)
    assert group.membership == Membership((2, 3), old=(1, 2, 3))
    group.on_append_request(
        9, 3, append(term=2, prev_offset=1, prev_term=1, batches=records(2, at=1)), 0
    )
    assert group.membership == Membership((1, 2, 3))


def test_settled_members_are_written_down_when_they_are_others_than_before():
    group = member(2)
    told(group, Membership((1, 2, 3)))
    out = group.on_append_request(8, 1, append(prev_offset=1, prev_term=1, commit=1), now=0)
    assert only(out, PersistVote) == [], "the same as those that founded it"
    told(group, Membership((1, 2)), at=1)
    out = group.on_append_request(9, 1, append(prev_offset=2, prev_term=1, commit=2), now=0)
    assert only(out, PersistVote)
    assert group.settled.membership == Membership((1, 2))
    assert isinstance(out[-1], ReplyToMember), "it is said only after that"


def leader_of_three():
    group = member(1)
    flushed(group, elected(group))
    for follower in (2, 3):
        answered(group, follower, 1)
    return group


def answered(group, follower, end, now=0):
    sent = append(term=group.term, batches=records(group.term, at=end - 1))
    return group.answered(
        follower, sent, RaftAnswer(sent.partition, group.term, end, end), now, heartbeat=False
    )


def test_a_leader_begins_only_when_a_record_of_its_own_term_is_committed():
    group = member(1)
    flushed(group, elected(group))
    assert only(group.aim((1, 2, 3, 4), 0), Configured) == []
    (begun,) = only(answered(group, 2, 1), Configured)
    assert begun.membership == Membership((1, 2, 3), learners=(4,))


def test_a_leader_that_has_to_go_hands_over_after_its_last_change_is_committed():
    group = leader_of_three()
    flushed(group, group.aim((2, 3), 0))
    assert group.membership == Membership((2, 3), old=(1, 2, 3))
    out = answered(group, 2, 2) + answered(group, 3, 2)
    assert group.membership == Membership((2, 3))
    assert group.is_leader
    assert group.heir == NO_LEADER
    flushed(group, out)
    out = answered(group, 2, 3)
    assert open_requests(out, RaftTimeoutNowRequest) == [], (
        "two voters of two are needed, itself is none"
    )
    out = answered(group, 3, 3)
    assert group.heir in (2, 3)
    assert open_requests(out, RaftTimeoutNowRequest)
    assert not group.has_reached_target, "it is not one of them"


def test_a_leader_steps_down_without_a_majority_of_the_old_voters_too():
    group = leader_of_three()
    group.aim((1,), 0)
    assert group.membership == Membership((1,), old=(1, 2, 3))
    group.heartbeats(TIMEOUT)
    assert group.is_leader
    group.heartbeats(TIMEOUT + 1)
    assert not group.is_leader


def test_a_learner_is_sent_everything_from_the_start():
    group = leader_of_three()
    out = group.aim((1, 2, 3, 4), 0)
    (first,) = [r for e, r in ((e, e.request) for e in out if hasattr(e, "to")) if e.to == 4]
    nothing = RaftAnswer(first.append.partition, group.term)
    out = group.answered(4, first.append, nothing, 0, heartbeat=False)
    (again,) = open_requests(out, RaftAppendRequest)
    assert [b.base_offset for b in again.append.batches] == [0, 1]


def test_a_leader_that_has_to_go_and_is_called_back_gets_its_vote_again():
    group = leader_of_three()
    flushed(group, group.aim((2, 3), 0))
    out = answered(group, 2, 2) + answered(group, 3, 2)
    assert group.membership == Membership((2, 3))
    group.aim((1, 2, 3), 0)
    flushed(group, out)
    for end in (3, 4):
        answered(group, 2, end)
        answered(group, 3, end)
    assert group.membership == Membership((2, 3, 1))
