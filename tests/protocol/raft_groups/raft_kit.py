"""Control records of Raft groups over ``ListLog``, where a batch is only its header."""

from sim.protocol.broker.raft_storage import Membership
from tests.log.list_log import ListBatch


def number_of(membership):
    """A membership as a number below -1: its nodes are digits, and 0 parts its three lists."""
    return -int("0".join("".join(map(str, nodes)) for nodes in membership))


def membership_at(number):
    """The membership of such a number; ``None`` for a number that is none."""
    if number >= -1:
        return None
    return Membership(*(tuple(map(int, digits)) for digits in str(-number).split("0")))


class ListRecords:
    """The header's producer index says which membership a batch holds; -1: it holds none."""

    def opening(self, leader, membership, now_ms):
        return self.configuration(membership, now_ms)

    def configuration(self, membership, now_ms):
        return ListBatch(is_control=True, producer_index=number_of(membership))

    def membership_of(self, batch):
        return membership_at(batch.producer_index)
