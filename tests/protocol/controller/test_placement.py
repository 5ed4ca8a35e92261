"""Replica placement: the published vectors, and what holds for every draw."""

import random

import pytest

from sim.protocol.controller.placement import (
    PlacementImpossible,
    StripedReplicaPlacer,
    UsableBroker,
)


def zero():
    return 0.0


def brokers(*racks, fenced=()):
    return [
        UsableBroker(broker, f"r{index}", broker in fenced)
        for index, rack in enumerate(racks)
        for broker in rack
    ]


def test_three_racks_of_three_with_all_draws_zero():
    a, b, c = (10, 11, 12), (20, 21, 22), (30, 31, 32)
    placer = StripedReplicaPlacer(brokers(a, b, c), zero)
    assert [placer.place(3) for _ in range(3)] == [(10, 20, 30), (21, 31, 11), (32, 12, 22)]


def test_the_rack_that_gave_the_leader_is_skipped_once():
    assert StripedReplicaPlacer(brokers((1, 2), (3,)), zero).place(3) == (1, 3, 2)


@pytest.mark.parametrize("seed", range(20))
def test_replicas_are_distinct_spread_over_racks_and_led_evenly(seed):
    unit = random.Random(seed).random
    placer = StripedReplicaPlacer(brokers((1, 2), (3, 4), (5, 6)), unit)
    leaders = []
    for _ in range(12):
        replicas = placer.place(3)
        assert len({(broker + 1) // 2 for broker in replicas}) == 3
        leaders.append(replicas[0])
    assert sorted(leaders) == sorted([1, 2, 3, 4, 5, 6] * 2)


def test_fenced_brokers_follow_but_do_not_lead():
    placer = StripedReplicaPlacer(brokers((1,), (2,), (3,), fenced=(1,)), zero)
    for _ in range(6):
        replicas = placer.place(3)
        assert sorted(replicas) == [1, 2, 3]
        assert replicas[0] != 1


@pytest.mark.parametrize(
    ("usable", "factor"),
    [
        (brokers((1, 2)), 3),
        (brokers((1, 2)), 0),
        (brokers((1, 2), fenced=(1, 2)), 1),
        ([], 1),
    ],
)
def test_impossible_wishes_are_refused(usable, factor):
    with pytest.raises(PlacementImpossible):
        StripedReplicaPlacer(usable, zero).place(factor)
