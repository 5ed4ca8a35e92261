"""Parts of the replica manager by themselves: what they need is what they are given."""

from collections import deque

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replica import Replica, ReplicaConfig
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.replication.events import HighWatermarkMoved
from sim.protocol.broker.replication.fetcher import FetcherConfig, FetchState
from sim.protocol.broker.replication.fetchers import Fetchers
from sim.protocol.broker.replication.follower.epoch_lookups import EpochLookups
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.replication.leader.delayed_fetches import DelayedFetches
from sim.protocol.broker.replication.leader.delayed_produces import DelayedProduces
from sim.protocol.broker.replication.leader.high_watermarks import HighWatermarks
from sim.protocol.broker.replication.leader.markers import MarkerRequests
from sim.protocol.broker.replication.log_locks import LogLocks
from sim.protocol.broker.truncation.registry import TRUNCATIONS
from sim.protocol.messages.data import FetchPartition, FetchRequest
from sim.protocol.messages.leader_epochs import OffsetForLeaderEpochResponse
from sim.units import MIB, SECOND
from tests.protocol.broker.replica_kit import P, ToyLog, image, state

Q = TopicPartition("orders", 1)


def hosting(registration, broker=1, end=0, **config):
    """A broker that hosts one replica, and the replica."""
    hosted = HostedPartitions(broker, ReplicaManagerConfig(**config))
    hosted.image = image(registration)
    log = ToyLog(epochs=[(0, 0)], end=end)
    replica = hosted.replicas[P] = Replica(P, broker, log, ReplicaConfig(), 0)
    if registration.leader == broker:
        replica.become_leader(registration, 0)
    else:
        replica.become_follower(registration)
    return hosted, replica


def fetching(fetches, replica_id):
    """A session in which a fetch of the partition waits."""
    asked = FetchPartition(P, 0, -1, -1, 0, MIB)
    request = FetchRequest(replica_id, -1, SECOND, 1, MIB, 0, 0, (asked,))
    session = fetches.open("c", request, 0)
    session.token = 7
    fetches.park(session, SECOND, [])
    session.hot.clear()
    return session


def test_the_end_of_a_flush_moves_the_high_watermark_before_its_holder_goes_on():
    hosted, replica = hosting(state(in_sync=(1,), replicas=(1,)), end=1)
    locks, fetches = LogLocks(), DelayedFetches()
    produces = DelayedProduces(hosted, MarkerRequests())
    watermarks = HighWatermarks(hosted, locks, fetches, produces, {})
    watermarks.watch(P)
    reader, out, seen = fetching(fetches, -1), [], []
    locks.flush(P, lambda _, effects: seen.append(list(effects)), out, by_handler=False)
    locks.wait(P, lambda now, _: seen.append(now))
    assert not watermarks.advance(replica, 0, out)
    assert [type(effect) for effect in out] == [fx.Flush]
    watermarks.flushed(out[0].token, 5, out)
    assert [type(effect) for effect in seen[0]] == [fx.Flush, fx.Emit, HighWatermarkMoved]
    assert seen[1:] == [5]
    assert replica.high_watermark == 1
    assert list(fetches.take_woken()) == [reader]
    assert not locks.is_held(P)


def test_a_lock_that_is_taken_again_keeps_those_that_waited_in_their_order():
    locks, out = LogLocks(), []
    locks.flush(P, print, out, by_handler=False)
    locks.wait(P, "first")
    locks.wait(P, "second")
    released = locks.release(out[0].token)
    assert not locks.pass_on(released)
    locks.flush(P, print, out, by_handler=False)
    assert locks.pass_on(released)
    assert locks.release(out[1].token).waiting == deque(["first", "second"])


def test_an_answer_about_an_epoch_says_where_to_cut_and_cuts_nothing():
    rule = TRUNCATIONS["kip101"]
    hosted, replica = hosting(state(leader=2), end=4, truncation=rule)
    fetchers, lookups, out = Fetchers(hosted), EpochLookups(hosted), []
    fetcher = fetchers.assigned(replica)
    fetchers.add(fetcher, P, FetchState(4, 0, 0))
    lookups.look_up(fetcher, replica, out)
    answer = OffsetForLeaderEpochResponse(P, ErrorCode.NONE, leader_epoch=0, end_offset=2)
    found = lookups.answered(out[0].correlation, answer, 0, out)
    assert (found.fetcher, found.replica, found.offset) == (fetcher, replica, 2)
    assert replica.log.log_end_offset == 4
    assert lookups.answered(out[0].correlation, answer, 0, out) is None


def test_a_fetcher_without_partitions_is_taken_out_and_another_one_takes_its_place():
    config = FetcherConfig(fetchers_per_leader=2)
    hosted, replica = hosting(state(leader=2), fetcher=config)
    fetchers = Fetchers(hosted)
    fetcher = fetchers.assigned(replica)
    assert fetchers.assigned(replica) is fetcher
    fetchers.add(fetcher, P, FetchState(0, 0, 0))
    assert fetchers.has(P)
    assert not fetchers.has(Q)
    assert fetchers.take_idle() == []
    fetchers.stop(P)
    assert fetchers.take_idle() == [fetcher]
    assert fetchers.get(2, fetcher.fetcher_id) is None
    assert fetchers.assigned(replica) is not fetcher


def test_a_log_that_starts_elsewhere_is_a_row_and_news_for_the_leader():
    hosted, replica = hosting(state(leader=2), end=4)
    fetchers, out = Fetchers(hosted), []
    fetcher = fetchers.assigned(replica)
    fetchers.add(fetcher, P, FetchState(4, 0, 0))
    fetchers.note_start(replica, 0, "moved", out)
    assert out == []
    replica.log.raise_log_start(3)
    fetchers.note_start(replica, 0, "moved", out)
    assert out == [fx.Emit("log_starts", (1, "orders", 0, 0, 3, "moved"))]
    assert fetcher.partitions[P].log_start == 3


def test_a_followers_high_watermark_wakes_readers_once_a_consumer_has_read_there():
    fetches = DelayedFetches()
    reader, follower = fetching(fetches, -1), fetching(fetches, 3)
    fetches.follower_watermark_moved(P)
    assert not fetches.woken
    fetches.serves_readers = True
    fetches.follower_watermark_moved(P)
    assert list(fetches.take_woken()) == [reader]
    fetches.appended(P)
    assert list(fetches.take_woken()) == [follower]
    assert fetches.expired(SECOND - 1) == []
    assert fetches.expired(SECOND) == [reader, follower]
    fetches.complete(reader)
    assert not fetches.waits(reader)
    assert fetches.expired(SECOND) == [follower]
