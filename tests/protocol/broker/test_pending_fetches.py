"""Followers whose fetches a leader with a slow disk has not answered: KIP-501, a proposal."""

import pytest

from sim.protocol.broker.replication.events import FollowerRead
from sim.protocol.effects import Reply, Send
from sim.protocol.events import RequestReceived, TimerFired
from sim.protocol.messages.cluster import AlterPartitionRequest
from sim.protocol.messages.data import FetchPartition, FetchRequest
from sim.units import MIB
from tests.protocol.broker.replica_kit import Bench, P, state
from tests.protocol.controller.controller_kit import SECOND


def fetch(bench, broker, offset, session=0, epoch=0):
    """One fetch of a follower at the leader; the session of its answer, if it has one by now."""
    token = 7_000 + broker
    listed = (FetchPartition(P, offset, 0),)
    request = FetchRequest(broker, 100 + broker, 0, 1, MIB, session, epoch, listed)
    bench.tell(1, RequestReceived(token, f"broker-{broker}", request))
    (reply,) = [r for r in bench.take(1, Reply) if r.token == token]
    return reply.response.session_id


def shrinks(bench):
    """Members of the ISR that the leader asks for at its next check; ``None`` if it keeps all."""
    bench.tell(1, TimerFired("isr-shrink"))
    asked = [s for s in bench.take(1, Send) if isinstance(s.request, AlterPartitionRequest)]
    return [m.broker for m in asked[0].request.items[0].in_sync] if asked else None


def waiting(*, offset=0, keeps=True):
    """A leader that reads for broker 2 since 1 s and has records; broker 3 has fetched nothing."""
    bench = Bench(lag_time_max_us=10 * SECOND, keeps_pending=keeps)
    bench.take(1, Send)
    bench.now = SECOND
    bench.produce(acks=1)
    session = fetch(bench, 2, offset)
    bench.tell(1, FollowerRead(session, begins=True))
    return bench, session


@pytest.mark.parametrize(("keeps", "asked"), [(True, [1, 2]), (False, [1])])
def test_a_follower_whose_fetch_is_being_read_stays_in_sync_only_with_kip501(keeps, asked):
    bench, _ = waiting(keeps=keeps)
    bench.now = 20 * SECOND
    assert shrinks(bench) == asked


def test_it_lags_when_its_answer_is_sent_and_it_does_not_ask_again():
    bench, session = waiting()
    bench.now = 20 * SECOND
    bench.tell(1, FollowerRead(session, begins=False))
    assert shrinks(bench) == [1]


def test_a_fetch_from_below_the_log_end_that_the_follower_could_know_does_not_count():
    """It had been told of two records and asks for the first of them again: it is slow itself."""
    bench = Bench(lag_time_max_us=10 * SECOND, keeps_pending=True)
    bench.take(1, Send)
    bench.produce(acks=1)
    bench.produce(acks=1)
    bench.now = SECOND
    session = fetch(bench, 2, 0)
    bench.tell(1, FollowerRead(fetch(bench, 2, 1, session, 1), begins=True))
    bench.now = 20 * SECOND
    assert shrinks(bench) == [1]


def test_a_fetch_counts_until_it_is_read_whatever_becomes_of_its_session():
    bench, session = waiting()
    bench.managers[1].delayed_fetches.close(session)
    bench.now = 20 * SECOND
    assert shrinks(bench) == [1, 2]
    bench, session = waiting()
    bench.managers[1].delayed_fetches.close(session)
    bench.tell(1, FollowerRead(session, begins=False))
    bench.now = 20 * SECOND
    assert shrinks(bench) == [1]


def test_a_new_leader_epoch_forgets_the_fetches_of_the_former_one():
    bench, _ = waiting()
    bench.apply(state(leader=2, epoch=1, partition_epoch=1), brokers=(1,))
    bench.apply(state(leader=1, epoch=2, partition_epoch=2), brokers=(1,))
    bench.take(1, Send)
    bench.now = 20 * SECOND
    assert shrinks(bench) == [1]


def test_an_answer_of_an_unknown_session_is_nobodys():
    bench, _ = waiting()
    bench.tell(1, FollowerRead(4_711, begins=True))
    bench.tell(1, FollowerRead(4_711, begins=False))
    bench.now = 20 * SECOND
    assert shrinks(bench) == [1, 2]
