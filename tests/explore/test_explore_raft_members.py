"""Every interleaving of a Raft group whose members change, within bounds; old mistakes found.

A record below 0 is a membership: its digits are voters, old voters and learners, parted by 0.
"""

import pytest

from sim.protocol.broker.raft_storage import Membership
from sim.protocol.raft_groups.types import RaftRules
from tests.explore.raft_world import PROPERTIES, Bounds, RaftWorld
from tests.explore.search import search
from tests.explore.test_explore_raft import after, searched, told

SHRINKS = {"terms": 2, "records": 0, "target": (3,)}
GROWS = {"terms": 2, "records": 0, "founders": (1, 2), "target": (1, 2, 3)}
REPLACES = {"terms": 2, "records": 0, "founders": (1, 2), "target": (2, 3)}


class IgnoresTheOld(RaftRules):
    """Without joint consensus: those that stay decide alone that the others go."""

    def electorates(self, membership):
        return (membership.voters,)


WITHOUT_THE_OLD = (
    "3 stands in term 1",
    "1 is asked by 3: vote in term 1 (has 0 to -1)",
    "1 is asked by 3: append [(1, 0)] at 0 in term 1",
    "1 stands in term 2",
    "2 is asked by 1: vote in term 2 (has 1 to 1)",
)
"""3 calls committed what it alone has, for it alone shall stay; 1 and 2 have not heard of that."""


def test_voters_that_go_without_a_majority_of_the_old_ones_lose_a_committed_record_raft_6():
    found = searched(IgnoresTheOld(), **SHRINKS)
    assert told(found) == WITHOUT_THE_OLD
    assert found.broken == (
        "leader completeness: leader 1 has ((1, 0), (2, 0)), "
        "committed ((1, 0), (1, -301230), (1, -300))"
    )


class DoesNotWait(RaftRules):
    """Changes again before the last change is committed."""

    def may_change(self, *, is_settled):
        return True


HASTE = (
    "3 stands in term 1",
    "1 is asked by 3: vote in term 1 (has 0 to -1)",
    "1 stands in term 2",
    "2 is asked by 1: vote in term 2 (has 0 to -1)",
)


def test_a_change_on_top_of_one_that_is_not_committed_loses_a_committed_record():
    found = searched(DoesNotWait(), **SHRINKS)
    assert told(found) == HASTE
    assert found.broken.startswith("leader completeness: leader 1 has ((2, 0), ")


class LearnersCount(RaftRules):
    """A learner counts like a voter."""

    def electorates(self, membership):
        return ((*membership.voters, *membership.learners),)


FIVE = {
    "terms": 2, "records": 0, "nodes": (1, 2, 3, 4, 5), "target": (1, 2, 3, 4, 5),
}  # fmt: skip

LEARNERS_CATCH_UP = (
    "1 stands in term 1",
    "2 is asked by 1: vote in term 1 (has 0 to -1)",
    "3 is asked by 1: append [(1, 0)] at 0 in term 1",
    "4 is asked by 1: append [] at 2 in term 1",
    "5 is asked by 1: append [] at 2 in term 1",
    "4 is asked by 1: append [(1, 0)] at 0 in term 1",
    "5 is asked by 1: append [(1, 0)] at 0 in term 1",
    "4 is asked by 1: append [(1, -1230045)] at 1 in term 1",
)
"""1 leads three voters, and has begun to teach 4 and 5."""

LEARNERS = (
    "3 stands in term 2",
    "2 is asked by 3: vote in term 2 (has 1 to 1)",
    "5 is asked by 1: append [(1, -1230045)] at 1 in term 1",
)
"""1 has a majority of five, 2 and 3 have one of three."""


def test_a_learner_that_counts_for_a_majority_loses_a_committed_record():
    found = searched(LearnersCount(), LEARNERS_CATCH_UP, **FIVE)
    assert told(found) == LEARNERS
    assert found.broken == (
        "leader completeness: leader 3 has ((1, 0), (2, 0)), committed ((1, 0), (1, -1230045))"
    )


def test_the_same_steps_commit_nothing_of_the_learners_when_only_voters_count():
    world = RaftWorld(Bounds(**FIVE))
    state = after(world, (*LEARNERS_CATCH_UP, *LEARNERS))
    assert state.members[3].disk.records == state.members[4].disk.records == ((1, 0), (1, -1230045))
    assert state.committed == ((1, 0),)
    assert dict(state.leaders)[2] == 3


def test_members_that_are_added_are_safe_with_3_nodes_and_2_terms():
    found = searched(**GROWS)
    assert (found.trace, found.complete) == ((), True), found
    assert found.states == 1_501


def test_members_that_are_added_are_safe_with_3_nodes_1_term_and_1_kill():
    found = searched(kills=1, **(GROWS | {"terms": 1}))
    assert (found.trace, found.complete) == ((), True), found


@pytest.mark.slow
def test_members_that_are_replaced_are_safe_with_3_nodes_and_2_terms():
    found = searched(**REPLACES)
    assert (found.trace, found.complete) == ((), True), found


@pytest.mark.slow
def test_members_that_go_are_safe_with_3_nodes_1_term_and_1_kill():
    found = searched(kills=1, **(SHRINKS | {"terms": 1}))
    assert (found.trace, found.complete) == ((), True), found


def test_the_search_sees_every_membership_on_the_way_settled():
    world = RaftWorld(Bounds(**(REPLACES | {"terms": 1})))
    assert search(world, PROPERTIES).complete
    seen = {settled.membership for *_, settled, _ in (m.key for m in world.machines)}
    assert seen == {
        Membership(),
        Membership((1, 2)),
        Membership((1, 2), learners=(3,)),
        Membership((1, 2, 3)),
        Membership((2, 3), old=(1, 2, 3)),
        Membership((2, 3)),
    }
