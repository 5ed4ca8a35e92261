"""Placement of ZooKeeper's time, against the examples in the documentation of KIP-36's code."""

import pytest

from sim.protocol.controller.placement import PlacementImpossible
from sim.protocol.zk_mode.placement import assign_replicas

RACKS = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def first_draws():
    return 0.0


def test_without_racks_leaders_go_round_and_followers_are_shifted_with_each_round():
    placed = assign_replicas(dict.fromkeys(range(5), ""), 10, 3, first_draws)
    leaders = [replicas[0] for replicas in placed]
    assert leaders == [0, 1, 2, 3, 4] * 2
    assert [replicas[1] for replicas in placed] == [1, 2, 3, 4, 0, 2, 3, 4, 0, 1]
    assert [replicas[2] for replicas in placed] == [2, 3, 4, 0, 1, 3, 4, 0, 1, 2]


def test_with_racks_no_rack_comes_twice_before_each_had_its_turn():
    placed = assign_replicas(RACKS, 12, 3, first_draws)
    assert placed[:6] == (
        (0, 3, 1), (3, 1, 5), (1, 5, 4), (5, 4, 2), (4, 2, 0), (2, 0, 3),
    )  # fmt: skip
    assert placed[6:] == (
        (0, 4, 2), (3, 2, 0), (1, 0, 3), (5, 3, 1), (4, 1, 5), (2, 5, 4),
    )  # fmt: skip
    for replicas in placed:
        assert len({RACKS[broker] for broker in replicas}) == 3


def test_one_broker_without_a_rack_and_nobodys_rack_is_looked_at():
    mixed = RACKS | {5: ""}
    placed = assign_replicas(mixed, 12, 3, first_draws)
    assert any(len({RACKS[broker] for broker in replicas}) < 3 for replicas in placed)


@pytest.mark.parametrize("factor", [0, 7])
def test_a_factor_above_the_number_of_brokers_is_refused(factor):
    with pytest.raises(PlacementImpossible):
        assign_replicas(RACKS, 1, factor, first_draws)
