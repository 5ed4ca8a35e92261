"""Fail-over by what its parts cost: one set of costs for every row, published times within 1.5."""

from dataclasses import replace
from functools import cache

import pytest

from sim.studies.failover import (
    PUBLISHED,
    ClusterShape,
    ControlPlane,
    Event,
    measure,
    shape_of,
)

ZOOKEEPER, KRAFT = ControlPlane
CONTROLLED, UNCONTROLLED = Event
WITHIN = 1.5

row = cache(lambda size, plane, event: measure(shape_of(size), plane, event))


def is_near(found, published):
    return published / WITHIN <= found <= published * WITHIN


def test_zookeepers_fail_over_is_detection_and_load_and_elections():
    found = row(10_000, ZOOKEEPER, UNCONTROLLED)
    # A session of 18 s began at most 6 s before the death, and ends at a tick of 2 s.
    assert 12 <= found.detection_seconds <= 20
    assert 1.4 <= found.load_seconds <= 1.6, "0.14 ms a partition"
    assert found.seconds > found.detection_seconds + found.load_seconds


def test_load_and_elections_grow_with_partitions_and_detection_does_not():
    small, large = row(2_000, ZOOKEEPER, UNCONTROLLED), row(10_000, ZOOKEEPER, UNCONTROLLED)
    assert large.load_seconds / small.load_seconds == pytest.approx(5, rel=0.1)
    assert abs(large.detection_seconds - small.detection_seconds) < 6
    moved = [r.seconds - r.detection_seconds - r.load_seconds for r in (small, large)]
    assert moved[1] / moved[0] == pytest.approx(5, rel=0.25)


def test_krafts_fail_over_is_a_new_leader_and_a_brokers_session_whatever_the_size():
    small, large = row(2_000, KRAFT, UNCONTROLLED), row(10_000, KRAFT, UNCONTROLLED)
    # Fetch timeout and election, then 9 s from the new leader on, then the task that looks.
    for found in (small, large):
        assert 11 <= found.detection_seconds <= 15.2
        assert found.load_seconds == 0
    assert large.seconds - small.seconds < 1


def test_a_controlled_shutdown_needs_no_detection():
    for plane in ControlPlane:
        found = row(10_000, plane, CONTROLLED)
        assert found.detection_seconds == 0
        assert found.seconds < 3 < row(10_000, plane, UNCONTROLLED).seconds


def test_the_same_study_gives_the_same_row():
    again = measure(shape_of(2_000), ZOOKEEPER, UNCONTROLLED)
    assert again == row(2_000, ZOOKEEPER, UNCONTROLLED)


def test_reading_one_after_the_other_takes_twice_as_long():
    """Published for 100,000 partitions: 28 s with Kafka 1.0, 14 s with 1.1."""
    serial = measure(ClusterShape(2_000, in_flight=1), ZOOKEEPER, UNCONTROLLED)
    overlapping = row(2_000, ZOOKEEPER, UNCONTROLLED)
    assert is_near(serial.load_seconds * 50, 28)
    assert is_near(overlapping.load_seconds * 50, 14)
    assert serial.load_seconds / overlapping.load_seconds == pytest.approx(2, rel=0.1)


def test_ten_thousand_replicas_leave_a_broker_of_kafka_1_1_in_about_three_seconds():
    """Published: 3 s; 5 brokers, 5 servers, topics of one partition with two replicas each."""
    shape = ClusterShape(2_500, brokers=5, replication=2, partitions_per_topic=1, zookeepers=5)
    found = measure(shape, ZOOKEEPER, CONTROLLED)
    assert found.replicas_moved == 1_000
    assert is_near(found.seconds * 10, 3)


def test_other_costs_give_other_times():
    """The twin: what is asserted of the published costs is not true of any costs."""
    shape = ClusterShape(2_500, brokers=5, replication=2, partitions_per_topic=1, zookeepers=5)
    dear = replace(PUBLISHED, zk_answer_us=280)
    assert not is_near(measure(shape, ZOOKEEPER, CONTROLLED, dear).seconds * 10, 3)


@pytest.mark.parametrize("name", ["one_way_us", "apply_us", "metadata_us", "fsync_us"])
def test_a_working_value_twice_as_large_makes_no_time_longer_by_a_fifth(name):
    costs = replace(PUBLISHED, **{name: 2 * getattr(PUBLISHED, name)})
    for event in Event:
        before = row(2_000, ZOOKEEPER, event)
        after = measure(shape_of(2_000), ZOOKEEPER, event, costs)
        work = [r.seconds - r.detection_seconds for r in (before, after)]
        assert work[1] / work[0] < 1.2


def test_recovery_counts_from_the_death_and_not_what_was_under_way_before_it():
    """A broker's session of 9 s ends first; what is left of the start is no recovery."""
    found = measure(shape_of(20_000), KRAFT, UNCONTROLLED)
    assert 9 < found.detection_seconds < found.seconds


def test_a_start_that_takes_longer_than_a_brokers_registration_may_is_waited_for():
    """Brokers give up after 60 s: a change costs a hundred times as much, for there are few."""
    dear = replace(PUBLISHED, kraft_record_us=100 * PUBLISHED.kraft_record_us)
    found = measure(shape_of(10_000), KRAFT, CONTROLLED, dear)
    assert found.replicas_moved == 2_500


@pytest.mark.slow
def test_a_record_without_a_cost_does_not_overtake_a_batch_that_the_controller_is_still_at():
    """A NoOp comes every half second, and the changes of the start take three."""
    assert measure(shape_of(60_000), KRAFT, CONTROLLED).seconds > 2


@pytest.mark.slow
@pytest.mark.minutes(9)
def test_two_million_partitions_take_what_was_published_within_a_factor_of_one_and_a_half():
    """Published: controlled shutdown 135 s and 32 s, recovery 503 s and 37 s."""
    seconds = {
        (plane, event): measure(shape_of(2_000_000), plane, event).seconds
        for plane in ControlPlane
        for event in Event
    }
    for (plane, event), published in {
        (ZOOKEEPER, CONTROLLED): 135,
        (KRAFT, CONTROLLED): 32,
        (ZOOKEEPER, UNCONTROLLED): 503,
        (KRAFT, UNCONTROLLED): 37,
    }.items():
        assert is_near(seconds[plane, event], published), (plane, event, seconds)
    for event, published in {CONTROLLED: 135 / 32, UNCONTROLLED: 503 / 37}.items():
        assert is_near(seconds[ZOOKEEPER, event] / seconds[KRAFT, event], published), seconds


@pytest.mark.slow
def test_two_hundred_thousand_partitions_fail_over_in_kraft_in_less_than_a_third_of_the_time():
    assert (
        row(200_000, ZOOKEEPER, UNCONTROLLED).seconds
        > 3 * row(200_000, KRAFT, UNCONTROLLED).seconds
    )
