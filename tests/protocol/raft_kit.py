"""Control records of Raft groups over ``ListLog``, where a batch is only its header."""

from sim.protocol.raft_membership import Membership
from tests.log.list_log import ListBatch

_KNOWN: list[Membership] = []
"""Memberships by number: -2 - the batch's producer index."""


class ListRecords:
    """The header's producer index says which membership a batch holds; -1: it holds none."""

    def opening(self, leader, membership, now_ms):
        return self.configuration(membership, now_ms)

    def configuration(self, membership, now_ms):
        return ListBatch(is_control=True, producer_index=self.number_of(membership))

    def membership_of(self, batch):
        return self.membership_at(batch.producer_index)

    def membership_at(self, number):
        return None if number == -1 else _KNOWN[-2 - number]

    def number_of(self, membership):
        if membership not in _KNOWN:
            _KNOWN.append(membership)
        return -2 - _KNOWN.index(membership)
