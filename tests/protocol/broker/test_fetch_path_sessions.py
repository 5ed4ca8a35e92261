"""Fetches that wait at a leader, and clients that come back with another session meanwhile."""

from sim.error_codes import ErrorCode
from sim.protocol import effects as fx
from sim.protocol.broker.fetch_session import FetchSessions
from sim.protocol.events import RequestReceived, TimerFired
from sim.protocol.messages.data import FetchPartition, FetchRequest
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


def test_a_full_fetch_of_the_final_epoch_opens_no_session():
    bench = Bench()
    fetch(bench, 2_001, 0, -1)
    (answer,) = replies_after(bench, 500 * MS)
    assert (answer.token, answer.response.session_id) == (2_001, 0)
    assert [result.partition for result in answer.response.results] == [P]
    for session_id in (0, 1):
        fetch(bench, 2_002, session_id, 1)
        (refused,) = bench.take(1, fx.Reply)
        assert refused.response.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_full_fetch_of_the_final_epoch_closes_the_session_that_it_names():
    """So a client says that it is about to leave."""
    bench = Bench()
    fetch(bench, 2_001, 0, 0)
    (first,) = replies_after(bench, 500 * MS)
    fetch(bench, 2_002, first.response.session_id, -1)
    (last,) = replies_after(bench, 500 * MS)
    assert (last.token, last.response.session_id) == (2_002, 0)
    fetch(bench, 2_003, first.response.session_id, 1)
    (refused,) = bench.take(1, fx.Reply)
    assert refused.response.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_nothing_of_a_fetch_without_a_session_is_left():
    asked = (FetchPartition(P, 0, 0, -1, 0, MIB),)
    sessions = FetchSessions()
    alone = sessions.open("audit", FetchRequest(-1, -1, 0, 1, MIB, 0, -1, asked), 5 * MS)
    assert not isinstance(alone, ErrorCode)
    assert not alone.is_kept
    assert sessions.of(P) == [alone], "until it is answered"
    sessions.close(alone.session_id)
    assert sessions.of(P) == []


def test_a_restarted_broker_does_not_find_the_session_of_another_client_under_an_old_id():
    """A consumer that had no fetch in flight goes on with the session of the former process."""
    asked = (FetchPartition(P, 0, 0, -1, 0, MIB),)
    opening = FetchRequest(2, 102, 500 * MS, 1, MIB, 0, 0, asked)
    before = FetchSessions().open("audit", opening, 7_000 * MS)
    restarted = FetchSessions()
    of_follower = restarted.open("broker-2", opening, 9_000 * MS)
    assert not isinstance(before, ErrorCode)
    assert not isinstance(of_follower, ErrorCode)
    assert of_follower.epoch == before.epoch, "the epoch alone would let it in"
    stale = FetchRequest(-1, -1, 500 * MS, 1, MIB, before.session_id, 1, ())
    found = restarted.open("audit", stale, 9_001 * MS)
    assert found is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_sessions_of_one_instant_have_ids_of_their_own():
    asked = (FetchPartition(P, 0, 0, -1, 0, MIB),)
    opening = FetchRequest(2, 102, 500 * MS, 1, MIB, 0, 0, asked)
    sessions = FetchSessions()
    opened = [sessions.open(f"broker-{n}", opening, 5 * MS) for n in range(3)]
    ids = [session.session_id for session in opened if not isinstance(session, ErrorCode)]
    assert len(set(ids)) == 3
    assert min(ids) > 0
    assert max(ids) < 1 << 31
