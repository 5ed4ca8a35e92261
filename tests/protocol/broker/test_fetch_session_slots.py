"""Slots of the fetch session cache: whose session is evicted, and what a client notices of it."""

import pytest

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.fetch_session_slots import (
    EVICTION_US,
    FetchSessionConfig,
    FetchSessionSlots,
)
from sim.protocol.broker.replication.fetcher import Fetcher, FetcherConfig, FetchState
from sim.protocol.events import RequestReceived, TimerFired
from sim.protocol.messages.data import FetchPartition, FetchRequest
from sim.units import MIB, MS
from tests.protocol.broker.replica_kit import Bench, P

OLD = EVICTION_US + 1


def slots(count, shards=1):
    return FetchSessionSlots(FetchSessionConfig(count, shards))


def taken(cache, session, size=1, now=0, privileged=False):
    return cache.take(session, size, now, privileged=privileged)


def test_a_full_cache_gives_a_consumer_no_slot_before_two_minutes_have_passed():
    cache = slots(1)
    assert taken(cache, 1) == (True, None)
    assert taken(cache, 2, size=100, now=EVICTION_US) == (False, None)


def test_a_session_that_was_not_used_for_two_minutes_is_evicted_whatever_its_size():
    cache = slots(1)
    taken(cache, 1, size=100, privileged=True)
    assert taken(cache, 2, now=OLD) == (True, 1)


def test_a_followers_session_evicts_a_consumers_at_once_and_never_the_other_way():
    cache = slots(1)
    taken(cache, 1, size=100)
    assert taken(cache, 2, privileged=True) == (True, 1)
    cache.touch(2, 1, OLD)
    assert taken(cache, 3, size=100, now=OLD) == (False, None)
    assert taken(cache, 4, size=2, now=OLD, privileged=True) == (True, 2)


def test_a_larger_session_evicts_a_smaller_one_that_is_older_than_two_minutes():
    cache = slots(2)
    taken(cache, 1, size=5)
    taken(cache, 2, size=3)
    for session, size in ((1, 5), (2, 3)):
        cache.touch(session, size, OLD)
    assert taken(cache, 3, size=3, now=OLD) == (False, None), "no larger than the smallest"
    assert taken(cache, 4, size=4, now=OLD) == (True, 2)


def test_age_counts_from_when_a_session_was_used_not_from_when_another_one_asks():
    """``FetchSessionCacheShard.touch`` puts a session among those that may be evicted."""
    cache = slots(1)
    taken(cache, 1, size=1)
    cache.touch(1, 1, EVICTION_US)
    assert taken(cache, 2, size=9, now=OLD) == (False, None)
    cache.touch(1, 1, OLD)
    assert taken(cache, 2, size=9, now=OLD) == (True, 1)


def test_sessions_go_to_eight_shards_in_turn_and_each_has_its_part_rounded_down():
    cache = slots(15, shards=8)
    assert [taken(cache, n)[0] for n in range(1, 10)] == [True] * 8 + [False]
    assert not taken(slots(7, shards=8), 1)[0]
    cache.free(2)
    assert taken(cache, 10)[0], "the turn comes to the second shard"


@pytest.fixture
def bench():
    return Bench(fetch_sessions=FetchSessionConfig(1, 1))


def fetch(bench, client, session=0, epoch=0, wait=0, replica=-1, **parts):
    listed = parts.get("listed", (FetchPartition(P, 0, 0, -1, 0, MIB),))
    request = FetchRequest(
        replica, 100 + replica, wait, 1, MIB, session, epoch, listed, parts.get("forgotten", ())
    )
    bench.tokens = getattr(bench, "tokens", 0) + 1
    bench.tell(1, RequestReceived(bench.tokens, client, request))
    return [reply.response for reply in bench.take(1, fx.Reply)]


def test_a_client_without_a_slot_fetches_without_a_session(bench):
    (first,) = fetch(bench, "billing")
    (second,) = fetch(bench, "audit")
    assert first.session_id > 0
    assert (second.error, second.session_id) == (ErrorCode.NONE, 0)
    assert [result.partition for result in second.results] == [P]


def test_a_consumer_whose_session_is_evicted_gets_its_open_fetch_and_then_begins_again(bench):
    (first,) = fetch(bench, "billing")
    assert fetch(bench, "billing", first.session_id, 1, wait=500 * MS, listed=()) == []
    (follower,) = fetch(bench, "broker-2", replica=2)
    assert follower.session_id > 0
    bench.now += 500 * MS
    bench.tell(1, TimerFired("fetch"))
    (parked,) = [reply.response for reply in bench.take(1, fx.Reply)]
    assert (parked.error, parked.session_id) == (ErrorCode.NONE, first.session_id)
    (refused,) = fetch(bench, "billing", first.session_id, 2, listed=())
    assert refused.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_that_loses_its_last_partition_ends_and_its_slot_is_free(bench):
    """Source: ``FetchManager.newContext``: the answer is that of a fetch without a session."""
    (first,) = fetch(bench, "billing")
    (last,) = fetch(bench, "billing", first.session_id, 1, listed=(), forgotten=(P,))
    assert (last.error, last.session_id, last.results) == (ErrorCode.NONE, 0, ())
    (refused,) = fetch(bench, "billing", first.session_id, 2, listed=())
    assert refused.error is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    (second,) = fetch(bench, "audit")
    assert second.session_id > 0


def test_a_consumer_that_died_leaves_its_slot_taken_for_two_minutes(bench):
    fetch(bench, "billing")
    assert fetch(bench, "billing")[0].session_id == 0, "the next process does not name it"
    bench.now = OLD
    assert fetch(bench, "billing")[0].session_id > 0


def test_a_full_fetch_that_names_its_session_frees_the_slot(bench):
    (first,) = fetch(bench, "billing")
    assert fetch(bench, "billing", first.session_id)[0].session_id > 0


def test_a_follower_without_a_session_lists_all_its_partitions_each_time():
    fetcher = Fetcher(1, 0, FetcherConfig())
    other = TopicPartition("orders", 1)
    for partition in (P, other):
        fetcher.add(partition, FetchState(5, 0, 0))
    for _ in range(2):
        request = fetcher.next_request(2, 102, 0)
        assert (request.session_id, request.session_epoch) == (0, 0)
        assert [listed.partition for listed in request.partitions] == [P, other]
        fetcher.answered(0)
