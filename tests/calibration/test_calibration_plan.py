"""The plan of a calibration: windows one after the other, and what a rehearsal may have of it."""

from itertools import pairwise

import pytest

from sim.calibration import plan
from sim.rehearsal import limits
from sim.rehearsal.loads import clients_of
from sim.scenario.loader import load_data
from sim.units import SECOND

OUTSIDE = plan.Shape(brokers=5, topic="mine", partitions=3, replicas=2)


def windows(scenario):
    return [(each.start_us, each.stop_us, each.name) for each in scenario.producers]


@pytest.mark.parametrize("shape", [plan.Shape(), OUTSIDE], ids=["own", "outside"])
@pytest.mark.parametrize("seconds", [plan.SECONDS_MIN, plan.SECONDS_MAX])
def test_windows_follow_each_other_and_none_overlap(shape, seconds):
    scenario = load_data(plan.whole(shape, seconds))
    found = windows(scenario)
    assert all(one[1] == other[0] for one, other in pairwise(found))
    assert found[0] == (0, plan.WARM_UP_S * SECOND, "warm-up")
    assert found[-1][1] < scenario.run.for_us


def test_every_load_has_a_window_in_every_round_and_rounds_lie_apart():
    names = [name for _, _, name in windows(load_data(plan.whole(plan.Shape(), 4)))]
    for load in plan.LOADS:
        places = [names.index(f"{load.name}-round-{n}") for n in range(1, plan.ROUNDS + 1)]
        assert places[1] - places[0] == len(plan.LOADS)
    assert names[-1] == "moved-round-1"


@pytest.mark.parametrize("seconds", [plan.SECONDS_MIN, plan.SECONDS_MAX])
def test_the_plan_is_within_the_limits_of_a_rehearsal(seconds, monkeypatch):
    monkeypatch.setattr(limits, "available_bytes", lambda: 64 << 30)
    scenario = load_data(plan.whole(plan.Shape(), seconds))
    limits.check(scenario, clients_of(scenario), 1.0)


def test_a_cluster_that_runs_already_gets_records_in_one_topic_and_nothing_else():
    scenario = load_data(plan.whole(OUTSIDE, 4))
    assert [topic.name for topic in scenario.topics] == ["mine"]
    assert {producer.topic for producer in scenario.producers} == {"mine"}
    assert not scenario.consumers, "a group would write to the cluster's own topics"
    assert not scenario.faults
    names = {plan.by_name(each.name).name for each in scenario.producers[1:]}
    assert names == {"single", "busy", "replicated", "large", "brisk", "batched", "medium"}


def test_both_roles_are_in_every_plan():
    for outside in (False, True):
        assert {load.role for load in plan.loads(outside=outside)} == {"fitted", "held back"}


def test_a_load_alone_has_the_same_records_and_the_figures_of_the_parameters():
    load = plan.by_name("large-round-2")
    scenario = load_data(plan.alone(load, plan.Shape(), 4, {"disk": {"write": "5MB/s"}}))
    [producer] = scenario.producers
    assert (producer.name, producer.record_size) == ("large-round-1", 200_000)
    assert scenario.cluster.disk.write_bytes_per_s == 5_000_000
    assert plan.by_name("warm-up") is None
    assert plan.by_name("shop") is None
