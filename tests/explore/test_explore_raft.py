"""Every interleaving of a partition's Raft group within stated bounds, and old mistakes found."""

import sys

import pytest

from sim.protocol.raft_groups.types import RaftRules
from tests.explore.raft_world import NODES, PROPERTIES, Bounds, RaftWorld
from tests.explore.search import search


def told(found):
    """The trace, for whoever reads the log of the tests."""
    sys.stdout.write(f"{found}\n")
    return found.trace


def searched(rules=None, start=(), states_max=5_000_000, **bounds):
    world = RaftWorld(Bounds(**bounds), *([rules] if rules else []))
    return search(world, PROPERTIES, start=after(world, start), states_max=states_max)


def after(world, steps):
    """The state that these steps lead to."""
    state = world.initial()
    for step in steps:
        choices = dict(world.successors(state))
        assert step in choices, f"{step!r} is none of {sorted(choices)}"
        state = choices[step]
    return state


class VotesForAnybody(RaftRules):
    """Without section 5.4.1 of Raft: logs are not compared."""

    def is_up_to_date(self, last_term, last_offset, own_term, own_end):
        return True


ANYBODY = (
    "1 stands in term 1",
    "2 is asked by 1: vote in term 1 (has 0 to -1)",
    "2 stands in term 2",
    "3 is asked by 1: append [(1, 0)] at 0 in term 1",
    "1 is asked by 2: vote in term 2 (has 0 to -1)",
)


def test_votes_without_a_look_at_logs_lose_a_committed_record_raft_5_4_1():
    found = searched(VotesForAnybody(), terms=2, records=0)
    assert told(found) == ANYBODY
    assert found.broken == "leader completeness: leader 2 has ((2, 0),), committed ((1, 0),)"


class CountsOldTerms(RaftRules):
    """Without section 5.4.2 of Raft: what a majority has is committed, of whatever term."""

    def may_commit(self, offset, term_start):
        return offset > 0


FIGURE_8_A_AND_B = (
    "1 stands in term 1",
    "3 is asked by 1: vote in term 1 (has 0 to -1)",
    "2 is asked by 1: vote in term 1 (has 0 to -1)",
    "2 stands in term 2",
    "3 is asked by 2: vote in term 2 (has 0 to -1)",
    "1 is asked by 2: vote in term 2 (has 0 to -1)",
)
"""(a) 1 leads term 1 and writes its first record; (b) 2 leads term 2 and writes another there."""

FIGURE_8 = (
    "1 stands in term 3",
    "1 is asked by 2: append [(2, 0)] at 0 in term 2",
    "2 stands in term 4",
    "3 is asked by 1: vote in term 3 (has 1 to 1)",
    "3 is asked by 1: append [(3, 0)] at 1 in term 3",
    "3 is asked by 1: append [(1, 0)] at 0 in term 3",
    "3 is asked by 2: vote in term 4 (has 1 to 2)",
)
"""(c) 1 leads again and brings its old record to a majority; (d) 2 leads with its own instead."""


def test_counting_replicas_of_an_older_term_loses_what_it_commits_raft_figure_8():
    found = searched(CountsOldTerms(), FIGURE_8_A_AND_B, terms=4, records=0)
    assert told(found) == FIGURE_8
    assert found.broken == "leader completeness: leader 2 has ((2, 0), (4, 0)), committed ((1, 0),)"


def test_the_same_steps_lose_nothing_when_only_the_own_term_commits():
    world = RaftWorld(Bounds(terms=4, records=0))
    state = after(world, (*FIGURE_8_A_AND_B, *FIGURE_8[:-1]))
    assert state.members[2].disk.records == ((1, 0),), "a majority has the record of term 1"
    assert state.committed == ()
    state = after(world, (*FIGURE_8_A_AND_B, *FIGURE_8))
    assert dict(state.leaders)[4] == 2
    assert [holds(world, state) for holds in PROPERTIES.values()] == [""] * len(PROPERTIES)


class OneIsEnough(RaftRules):
    """A leader that takes its own log for a majority."""

    def reached(self, ends):
        return max(ends)


def test_a_commit_at_a_minority_is_found():
    found = searched(OneIsEnough(), terms=2, records=0, states_max=400_000)
    assert told(found)
    assert found.broken.startswith(("leader completeness", "committed records stay"))


class CountsMemory(RaftRules):
    """Acknowledges before the flush: what lies in memory counts."""

    def durable_end(self, end, flushed):
        return end


POWER = {"terms": 2, "records": 0, "losses": 1, "instant": False}

ONE_LEADS = (
    "1 stands in term 1",
    "2 is asked by 1: vote in term 1 (has 0 to -1)",
    "1 has the answer of 2",
    "3 is asked by 1: append [(1, 0)] at 0 in term 1",
    "3 has flushed",
)
"""And 3 has its first record on disk, 1 itself only in memory."""


MEMORY = (
    "2 stands in term 2",
    "1 has the answer of 3",
    "1 loses power",
    "1 starts",
    "1 is asked by 2: vote in term 2 (has 0 to -1)",
    "2 has the answer of 1",
)


def test_an_acknowledgement_before_the_flush_is_lost_with_one_members_power():
    found = searched(CountsMemory(), ONE_LEADS, **POWER)
    assert told(found) == MEMORY
    assert found.broken == "leader completeness: leader 2 has ((2, 0),), committed ((1, 0),)"


def test_flushed_records_survive_the_power_of_one_member_within_20_000_states():
    found = searched(None, ONE_LEADS, states_max=20_000, **POWER)
    assert found.trace == (), found
    assert found.depth > len(MEMORY), "the search has gone further than the defect's trace"


def test_raft_is_safe_with_3_members_1_term_1_record_and_1_kill():
    found = searched(terms=1, records=1, kills=1)
    assert (found.trace, found.complete) == ((), True), found
    assert found.states == 10_699


@pytest.mark.slow
def test_raft_is_safe_with_3_members_2_terms_and_1_record():
    found = searched(terms=2, records=1)
    assert (found.trace, found.complete) == ((), True), found
    assert found.states == 390_711


@pytest.mark.slow
def test_raft_is_safe_with_3_members_1_term_1_record_and_1_loss_of_power():
    found = searched(terms=1, records=1, losses=1, instant=False)
    assert (found.trace, found.complete) == ((), True), found


def test_a_search_sees_every_role_and_every_members_commit():
    world = RaftWorld(Bounds(terms=1, records=1))
    found = search(world, PROPERTIES)
    assert found.complete
    assert {m.role.value for m in world.machines} == {"follower", "candidate", "leader"}
    assert {m.key[0] for m in world.machines if m.commit == 2} == set(NODES)
