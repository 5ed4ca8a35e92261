"""Defects of single parts, from the replica to the cleaner, for a hunt to find.

The checks' own tests do not plant these. Each breaks one rule until the test ends.
"""

from dataclasses import replace

from sim.log.cleaning.offset_map import OffsetMap
from sim.log.producers.transactions import Transactions
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.share import partition as share
from sim.protocol.coordinator.group import consumer_groups
from sim.protocol.coordinator.group.classic_state import Group
from sim.protocol.coordinator.transaction import markers
from sim.protocol.kraft import raft as quorum
from sim.protocol.kraft.votes import Election
from sim.protocol.majority import reached_by_majority


def a_majority_is_enough(monkeypatch):
    """Replica: the high watermark moves to where most of the ISR has been, as in Raft."""

    def advance(self, image, now):
        ends = [self.log.log_end_offset]
        ends += [self.remotes[b].log_end_offset for b in self.in_sync if b in self.remotes]
        reached = reached_by_majority(ends)
        if len(self.in_sync) < self.min_in_sync or reached <= self.high_watermark:
            return False
        self.high_watermark = reached
        return True

    monkeypatch.setattr(Replica, "advance_high_watermark", advance)


def one_vote_is_enough(monkeypatch):
    """Quorum: a candidate that has voted for itself has won."""
    monkeypatch.setattr(Election, "won", property(lambda self: bool(self.granted)))


def a_vote_is_forgotten(monkeypatch):
    """Quorum: a voter grants its vote to each candidate of an epoch that asks."""
    monkeypatch.setattr(
        quorum,
        "grants_vote",
        lambda role, *, is_up_to_date, candidate, voted_for, leader: is_up_to_date,
    )


def a_generation_stays(monkeypatch):
    """Group: a rebalance gives its members other partitions under the same generation."""
    real = Group.begin_generation

    def begin(self):
        former = self.generation
        real(self)
        self.generation = max(former, 1)

    monkeypatch.setattr(Group, "begin_generation", begin)


def a_partition_is_given_out_while_another_has_it(monkeypatch):
    """Group: a member of the consumer protocol does not wait for partitions to become free."""
    real = consumer_groups.reconcile
    monkeypatch.setattr(
        consumer_groups,
        "reconcile",
        lambda member, epoch, target, owners, owned: real(member, epoch, target, {}, owned),
    )


def readers_pass_open_transactions(monkeypatch):
    """Transaction: records of open transactions are stable."""
    monkeypatch.setattr(Transactions, "first_unstable", lambda self, high_watermark: None)


def an_abort_is_marked_as_a_commit(monkeypatch):
    """Transaction: every marker says that its transaction has been committed."""
    real = markers.WriteTxnMarkersRequest
    monkeypatch.setattr(
        markers, "WriteTxnMarkersRequest", lambda *said: replace(real(*said), committed=True)
    )


def a_lock_keeps_nobody_away(monkeypatch):
    """Share group: a record that a member has acquired is given to the next one that fetches."""
    free = (share.RecordState.AVAILABLE, share.RecordState.ACQUIRED)
    monkeypatch.setattr(share._Run, "is_free", lambda self: self.state in free and not self.token)


def the_next_leader_forgets_what_was_accepted(monkeypatch):
    """Share group: a leader begins with the start offset, and without the states behind it."""
    real = share.SharePartition.__init__
    monkeypatch.setattr(
        share.SharePartition,
        "__init__",
        lambda self, limits, start, batches: real(self, limits, start, ()),
    )


def the_last_value_goes(monkeypatch):
    """Cleaner: the latest record of a key counts as replaced."""
    real = OffsetMap.put
    monkeypatch.setattr(OffsetMap, "put", lambda self, key, offset: real(self, key, offset + 1))
