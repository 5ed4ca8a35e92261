"""What a Raft group's member reads back of itself: its vote, and who the members are."""

import pytest

from sim.nodes.broker.raft_group_records import GroupRecords, read_persisted, write_persisted
from sim.protocol.broker.raft_storage import CommittedMembership, Membership, RaftVote
from sim.protocol.raft_groups.types import PersistedState
from sim.wire.control_batch import Marker, end_transaction_marker
from tests.log.log_kit import new_log

FOUNDERS = Membership((1, 2, 3))
LEARNS = Membership((1, 2, 3), learners=(4,))
JOINT = Membership((2, 3, 4), old=(1, 2, 3, 4))
MEMBERSHIPS = [FOUNDERS, LEARNS, JOINT, Membership((4,))]


@pytest.fixture
def log(tmp_path):
    return new_log(tmp_path)


def say(log, term, batch):
    return log.append_as_leader(batch, term, 0).base_offset


def open_term(log, term, membership):
    return say(log, term, GroupRecords().opening(1, membership, 0))


def change(log, term, membership):
    return say(log, term, GroupRecords().configuration(membership, 0))


@pytest.mark.parametrize("membership", MEMBERSHIPS)
def test_control_records_say_who_is_a_member(membership):
    records = GroupRecords()
    assert records.membership_of(records.opening(1, membership, 0)) == membership
    assert records.membership_of(records.configuration(membership, 0)) == membership


def test_the_marker_of_a_transaction_says_nothing_of_members():
    marker = end_transaction_marker(Marker(True, 7, 0, 0), 0)
    assert GroupRecords().membership_of(marker) is None


def test_a_member_that_never_voted_remembers_what_its_log_says(log):
    assert read_persisted(log.store, log) == PersistedState()
    first = open_term(log, 1, FOUNDERS)
    second = change(log, 1, LEARNS)
    later = (CommittedMembership(first, FOUNDERS), CommittedMembership(second, LEARNS))
    assert read_persisted(log.store, log) == PersistedState(later=later)


@pytest.mark.parametrize("membership", MEMBERSHIPS)
def test_the_vote_file_keeps_the_settled_members_and_what_the_log_says_later_comes_after(
    log, membership
):
    open_term(log, 1, FOUNDERS)
    settled = CommittedMembership(change(log, 1, membership), membership)
    vote = RaftVote(5, 2)
    write_persisted(log.store, log.partition, vote, settled)
    assert read_persisted(log.store, log) == PersistedState(vote, settled)
    last = CommittedMembership(change(log, 1, LEARNS), LEARNS)
    assert read_persisted(log.store, log) == PersistedState(vote, settled, (last,))


def test_the_members_outlive_the_records_that_named_them(log):
    settled = CommittedMembership(open_term(log, 1, JOINT), JOINT)
    write_persisted(log.store, log.partition, RaftVote(1, 1), settled)
    log.raise_log_start(log.log_end_offset)
    assert read_persisted(log.store, log).settled == settled


def test_the_last_term_alone_is_read_for_it_begins_with_the_members(log):
    open_term(log, 1, FOUNDERS)
    change(log, 1, LEARNS)
    at = open_term(log, 2, LEARNS)
    assert read_persisted(log.store, log).later == (CommittedMembership(at, LEARNS),)
