"""The invariants of Raft groups see a correct history, and break on planted ones."""

import pytest

from sim.checking.invariants.raft import RAFT_INVARIANTS
from sim.checking.invariants.registry import Watch
from sim.errors import InvariantBroken
from sim.trace.writer import Trace

P = ("orders", 0)


@pytest.fixture
def trace():
    found = Trace(None)
    found.watch = Watch(found, more=RAFT_INVARIANTS)
    add(found, "partition_changes", 3001, *P, 1, 1, 1, "1,2,3", "", "1,2,3", False)
    add(found, "leadership", 1, *P, "leader", 1, 1, 1, "1,2,3", 0, 0)
    members(found, 0, "1,2,3")
    return found


def add(trace, table, *row):
    trace.table(table).add((0, *row))


def members(trace, offset, voters, old="", learners=""):
    add(trace, "raft_configurations", 1, *P, 1, offset, voters, old, learners)


def append(trace, broker, at=0):
    add(trace, "appends", broker, *P, at, at, 1, broker == 1, 100, 7, -1, -1, 1, -1, -1, -1)


def commit(trace):
    add(trace, "high_watermarks", 1, *P, 1, 1, 1, 3, 2, 1)


def report(trace, name="raft-commit-needs-majority"):
    return next(r for r in trace.watch.reports() if r.name == name)


def test_two_logs_of_three_carry_a_commit(trace):
    append(trace, 1)
    append(trace, 2)
    commit(trace)
    assert (report(trace).checked, report(trace).outcome) == (1, "held")


def test_one_log_of_three_carries_none(trace):
    append(trace, 1)
    with pytest.raises(InvariantBroken, match="raft-commit-needs-majority broken"):
        commit(trace)


def test_after_a_lossy_crash_nobody_can_tell(trace):
    append(trace, 1)
    append(trace, 2)
    commit(trace)
    add(trace, "truncations", 2, *P, 1, 0, -1, -1, "recovery")
    add(trace, "high_watermarks", 1, *P, 1, 2, 2, 3, 2, 2)
    assert report(trace).checked == 1
    assert report(trace).suspended


def committed_to(trace, *brokers):
    for broker in brokers:
        append(trace, broker)
    commit(trace)


def test_while_members_change_the_old_voters_must_have_it_too(trace):
    committed_to(trace, 1, 2)
    members(trace, 1, "1,4", old="1,2,3")
    append(trace, 1, at=1)
    append(trace, 4)
    append(trace, 4, at=1)
    with pytest.raises(InvariantBroken, match="raft-commit-needs-majority broken"):
        add(trace, "high_watermarks", 1, *P, 1, 2, 2, 3, 2, 2)


def test_a_learner_carries_nothing(trace):
    committed_to(trace, 1, 2)
    members(trace, 1, "1,2,3", learners="4,5")
    append(trace, 1, at=1)
    for learner in (4, 5):
        append(trace, learner)
        append(trace, learner, at=1)
    with pytest.raises(InvariantBroken, match=r"the logs of \[1, 2, 3\] end at \[2, 1, 0\]"):
        add(trace, "high_watermarks", 1, *P, 1, 2, 2, 3, 2, 2)


def test_one_member_more_or_old_voters_beside_the_new_are_one_change(trace):
    committed_to(trace, 1, 2)
    members(trace, 1, "1,2,3,4")
    assert report(trace, "raft-one-change-at-a-time").checked == 1


def test_two_majorities_that_need_not_meet_are_caught(trace):
    committed_to(trace, 1, 2)
    with pytest.raises(InvariantBroken, match="their majorities need not meet"):
        members(trace, 1, "1,4,5")


def test_a_change_before_the_last_one_is_committed_is_caught(trace):
    append(trace, 1)
    with pytest.raises(InvariantBroken, match="the change at 0 is not committed"):
        members(trace, 1, "1,2,3,4")


def test_a_broker_that_leaves_with_a_replica_is_caught(trace):
    add(trace, "partition_changes", 3001, *P, 1, 1, 2, "1,2", "", "1,2,4", False)
    add(trace, "broker_states", 3001, 3, "unregistered", 9)
    assert report(trace, "raft-drained-before-removed").checked == 1
    with pytest.raises(
        InvariantBroken, match=r"leaves with a replica of orders-0, one of \[1, 2, 4\]"
    ):
        add(trace, "broker_states", 3001, 4, "unregistered", 9)


def test_replicas_of_a_deleted_topic_keep_nobody(trace):
    add(trace, "topic_deletions", 3001, "orders", "id")
    add(trace, "broker_states", 3001, 1, "unregistered", 9)
    assert report(trace, "raft-drained-before-removed").checked == 1
