"""The invariant of Raft groups sees a correct history, and breaks on a planted one."""

import pytest

from sim.checking.invariants import Watch
from sim.checking.raft_invariants import RAFT_INVARIANTS
from sim.errors import InvariantBroken
from sim.trace.writer import Trace

P = ("orders", 0)


@pytest.fixture
def trace():
    found = Trace(None)
    found.watch = Watch(found, more=RAFT_INVARIANTS)
    add(found, "partition_changes", 3001, *P, 1, 1, 1, "1,2,3", "", "1,2,3", False)
    add(found, "leadership", 1, *P, "leader", 1, 1, 1, "1,2,3", 0, 0)
    return found


def add(trace, table, *row):
    trace.table(table).add((0, *row))


def append(trace, broker):
    add(trace, "appends", broker, *P, 0, 0, 1, broker == 1, 100, 7, -1, -1, 1, -1, -1, -1)


def commit(trace):
    add(trace, "high_watermarks", 1, *P, 1, 1, 1, 3, 2, 1)


def report(trace):
    return next(r for r in trace.watch.reports() if r.name == "raft-commit-needs-majority")


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
