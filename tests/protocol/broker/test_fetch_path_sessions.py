"""Fetches that wait at a leader, and clients that come back with another session meanwhile."""

from sim.protocol import effects as fx
from sim.protocol.events import RequestReceived, TimerFired
from sim.protocol.messages import FetchPartition, FetchRequest
from sim.units import MIB, MS
from tests.protocol.broker.replica_kit import Bench, P


def fetch(bench, token, session_id, session_epoch):
    asked = (FetchPartition(P, 0, 0, -1, 0, MIB),)
    request = FetchRequest(2, 102, 500 * MS, 1, MIB, session_id, session_epoch, asked)
    bench.tell(1, RequestReceived(token, "broker-2", request))


def replies_after(bench, wait_us):
    bench.now += wait_us
    bench.tell(1, TimerFired("fetch"))
    return bench.take(1, fx.Reply)


def test_a_fetch_whose_client_has_opened_another_session_is_never_answered():
    bench = Bench()
    fetch(bench, 2_001, 0, 0)
    (first,) = replies_after(bench, 500 * MS)
    assert first.token == 2_001
    fetch(bench, 2_002, first.response.session_id, 1)
    # The connection breaks, and the follower gives its session up.
    fetch(bench, 2_003, first.response.session_id, 0)
    assert [reply.token for reply in replies_after(bench, 500 * MS)] == [2_003]


def test_a_fetch_of_a_session_that_goes_on_is_answered_when_its_time_is_over():
    bench = Bench()
    fetch(bench, 2_001, 0, 0)
    (first,) = replies_after(bench, 500 * MS)
    fetch(bench, 2_002, first.response.session_id, 1)
    assert replies_after(bench, 400 * MS) == []
    assert [reply.token for reply in replies_after(bench, 100 * MS)] == [2_002]
