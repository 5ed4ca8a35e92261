"""Quotas as machines: rates over samples, and who is held back by a throttle of replication."""

import pytest

from sim.ids import TopicPartition
from sim.protocol.broker.replication.fetcher import Fetcher, FetcherConfig, FetchState
from sim.protocol.broker.replication_quotas import (
    FOLLOWER_REPLICAS,
    LEADER_REPLICAS,
    FollowerQuota,
    LeaderQuota,
    ReplicationQuotaConfig,
    quotas_of,
)
from sim.protocol.quotas.rate import SampledRate
from sim.units import SECOND
from tests.protocol.broker.replica_kit import Bench, P

OTHER = TopicPartition("orders", 1)
CONFIG = ReplicationQuotaConfig(1_000, 1_000)


# -- rates ----------------------------------------------------------------------------------------


def test_a_burst_counts_over_at_least_one_sample():
    rate = SampledRate(11, 1_000)
    rate.record(500, 10_000)
    assert rate.simple_rate(10_000) == 500
    assert rate.full_rate(10_000) == 50  # ten samples without anything stand before it


def test_what_was_measured_long_ago_is_forgotten():
    rate = SampledRate(3, 1_000)
    rate.record(600, 0)
    assert rate.simple_rate(2_000) == 300
    assert rate.simple_rate(2_999) == pytest.approx(200, rel=0.01)
    assert rate.simple_rate(3_000) == 0


def test_nothing_was_measured_before_the_first_value():
    assert SampledRate(11, 1_000).full_rate(5_000) == 0


def test_what_was_counted_can_be_taken_back():
    rate = SampledRate(11, 1_000)
    rate.record(500, 0)
    rate.record(-500, 10)
    assert rate.total(10) == 0


# -- who is throttled -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("listed", "covered"),
    [("*", True), ("0:2", True), ("1:2,0:2", True), ("0:1", False), ("1:2", False), ("", False)],
)
def test_partitions_are_listed_with_their_brokers(listed, covered):
    quota = LeaderQuota(2, LEADER_REPLICAS, 1_000, CONFIG)
    quota.configure(P, {LEADER_REPLICAS: listed})
    assert quota.covers(P) is covered
    quota.configure(P, {FOLLOWER_REPLICAS: "*"})
    assert not quota.covers(P)


def test_without_a_rate_there_is_no_throttle():
    assert quotas_of(1, ReplicationQuotaConfig()) == (None, None)
    leader, follower = quotas_of(1, CONFIG)
    assert isinstance(leader, LeaderQuota)
    assert isinstance(follower, FollowerQuota)


def throttled(bench, rate):
    """The leader's partitions throttled at so many bytes a second."""
    quota = LeaderQuota(1, LEADER_REPLICAS, rate, CONFIG)
    quota.configure(P, {LEADER_REPLICAS: "*"})
    bench.managers[1].fetch._quota = quota
    return quota


def written(bench, count):
    for _ in range(count):
        bench.produce(acks=1)
    bench.settle()
    return [bench.logs[b].log_end_offset for b in (2, 3)]


def test_a_leader_holds_back_only_who_is_out_of_sync():
    bench = Bench(in_sync=(1, 2))
    bench.managers[1].hosted.controller = -1  # nobody joins the ISR
    quota = throttled(bench, 0)
    assert written(bench, 3) == [3, 0]
    assert quota.is_exceeded(bench.now)
    quota._bound = 10**9
    assert written(bench, 1) == [4, 4]


def test_a_leader_lets_everybody_have_everything_within_the_rate():
    bench = Bench(in_sync=(1, 2))
    bench.managers[1].hosted.controller = -1
    throttled(bench, 10**6)
    assert written(bench, 3) == [3, 3]


# -- followers ------------------------------------------------------------------------------------


def fetching(*lags):
    """A fetcher of two partitions with these lags; the first is throttled."""
    fetcher = Fetcher(1, 0, FetcherConfig())
    for partition, lag in zip((P, OTHER), lags, strict=True):
        fetcher.add(partition, FetchState(0, 0, -1, lag=lag))
    quota = FollowerQuota(2, FOLLOWER_REPLICAS, 1_000, CONFIG)
    quota.configure(P, {FOLLOWER_REPLICAS: "*"})
    return fetcher, quota


def asked(fetcher, quota, now):
    quota.hold_back(fetcher, now)
    request = fetcher.next_request(2, 102, now)
    if request is None:
        return None, ()
    fetcher.answered(7)
    return [p.partition for p in request.partitions], request.forgotten


@pytest.mark.parametrize(("lag", "goes"), [(0, True), (5, False), (-1, False)])
def test_beyond_the_rate_a_follower_asks_only_for_what_it_has_caught_up_with(lag, goes):
    fetcher, quota = fetching(lag, 5)
    quota.record(10_000, 0)
    listed, _ = asked(fetcher, quota, 0)
    assert listed == ([P, OTHER] if goes else [OTHER])


def test_within_the_rate_it_asks_for_everything():
    fetcher, quota = fetching(5, 5)
    quota.record(900, 0)
    assert asked(fetcher, quota, 0)[0] == [P, OTHER]


def test_what_is_left_out_leaves_the_session_and_returns_when_the_rate_allows():
    fetcher, quota = fetching(5, 5)
    assert asked(fetcher, quota, 0)[0] == [P, OTHER]
    quota.record(10_000, SECOND)
    assert asked(fetcher, quota, SECOND) == ([], (P,))
    assert asked(fetcher, quota, 3 * SECOND) == ([], ())  # still, the back-off being over
    assert asked(fetcher, quota, 30 * SECOND) == ([P], ())


def test_with_everything_left_out_it_looks_again_after_the_back_off():
    fetcher, quota = fetching(5, 5)
    quota.configure(OTHER, {FOLLOWER_REPLICAS: "1:2"})
    quota.record(10_000, 0)
    assert asked(fetcher, quota, 0) == (None, ())
    assert fetcher.wake_up_at() == SECOND


def test_an_error_s_back_off_is_not_shortened_by_a_throttle():
    fetcher, quota = fetching(5, 5)
    quota.record(10_000, 0)
    quota.hold_back(fetcher, 0)
    fetcher.delay(P, 60 * SECOND)
    assert asked(fetcher, quota, 40 * SECOND)[0] == [OTHER]


def test_a_broker_with_a_rate_records_what_its_followers_get():
    bench = Bench()
    quota = FollowerQuota(3, FOLLOWER_REPLICAS, 10**6, CONFIG)
    quota.configure(P, {FOLLOWER_REPLICAS: "*"})
    bench.managers[3].follower._quota = quota
    written(bench, 4)
    assert quota._rate.total(0) == 400
