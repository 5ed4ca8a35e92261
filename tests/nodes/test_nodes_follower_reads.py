"""Which cold reads a broker's replica manager learns of: those for followers (KIP-501)."""

from sim.error_codes import ErrorCode
from sim.nodes.broker.replicas import FollowerReads
from sim.protocol.broker.replication.events import FollowerRead
from sim.protocol.messages.data import FetchRequest, FetchResponse
from sim.units import MIB


class Noted:
    """Replicas that keep what they are told."""

    def __init__(self):
        self.events = []

    def deliver(self, event):
        self.events.append(event)


def of(replica_id):
    return FetchRequest(replica_id, 100, 0, 1, MIB, 0, 0, ())


def test_a_followers_read_is_noted_when_it_begins_and_when_it_is_done():
    noted = Noted()
    reads = FollowerReads(noted)
    response = FetchResponse(ErrorCode.NONE, 17, ())
    reads.begun(of(2), response)
    reads.done(of(2), response)
    assert noted.events == [FollowerRead(17, begins=True), FollowerRead(17, begins=False)]


def test_a_consumers_read_is_not():
    noted = Noted()
    reads = FollowerReads(noted)
    response = FetchResponse(ErrorCode.NONE, 17, ())
    reads.begun(of(-1), response)
    reads.done(of(-1), response)
    assert noted.events == []
