"""The curve of a day: where arrivals lie, and that the rate stays the mean."""

import numpy as np
import pytest

from sim.nodes.clients.curves import Curve
from sim.nodes.clients.workload import (
    Bursts,
    Poisson,
    Rate,
    Steady,
    UniformKeys,
    Workload,
    WorkloadSpec,
)
from sim.rng import Streams

S = 1_000_000


def arrivals(arrivals=None, *, curve, end=60 * S, start=0, **more):
    spec = WorkloadSpec("t", arrivals or Steady(Rate(1_000, S)), 100, start_us=start, end_us=end,
                        curve=curve, **more)  # fmt: skip
    source = Workload(spec, Streams(7), "p")
    blocks = []
    while (block := source.next_block()) is not None:
        blocks.append(block.instants_us)
    return np.concatenate(blocks)


def per_second(instants, lasts=60):
    return np.histogram(instants, bins=lasts, range=(0, lasts * S))[0]


TRIANGLE = Curve(20 * S, [(0, 1), (10 * S, 3)])
SINE = Curve.sine(20 * S, 500_000)


@pytest.mark.parametrize("curve", [TRIANGLE, SINE, Curve(20 * S, [(3 * S, 0), (12 * S, 7)])])
@pytest.mark.parametrize(
    "shape", [Steady(Rate(1_000, S)), Bursts(Rate(1_500, S), Rate(500, S), S, S)]
)
def test_over_whole_periods_the_rate_is_the_mean(curve, shape):
    instants = arrivals(shape, curve=curve)
    assert abs(len(instants) - 60_000) <= 60
    assert (np.diff(instants) >= 0).all()
    for start in (0, 20, 40):
        inside = ((instants >= start * S) & (instants < (start + 20) * S)).sum()
        assert abs(inside - 20_000) <= 40


def test_random_arrivals_follow_the_curve_too():
    instants = arrivals(Poisson(Rate(1_000, S)), curve=SINE)
    assert abs(len(instants) - 60_000) < 1_000
    seconds = per_second(instants)
    assert seconds[5] > 1.35 * 1_000 > 0.65 * 1_000 > seconds[15]


def test_a_triangle_of_one_and_three_is_half_and_one_and_a_half_times_the_mean():
    seconds = per_second(arrivals(curve=TRIANGLE))
    # In the middle of each second the line is at its mean over that second.
    expected = [1_000 * (0.5 + (0.5 + k if k < 10 else 19.5 - k) / 10) for k in range(20)] * 3
    assert np.abs(seconds - expected).max() <= 2


def test_a_level_of_zero_has_no_arrivals_and_hurts_nobody():
    curve = Curve(10 * S, [(0, 0), (4 * S, 0), (5 * S, 1), (9 * S, 1)])
    seconds = per_second(arrivals(curve=curve), 60)
    assert seconds[:4].sum() <= 2
    assert seconds[6] > 1_500


def test_own_time_and_true_time_are_inverse():
    for curve in (TRIANGLE, SINE):
        for at in range(0, 45 * S, 777_777):
            (back,) = curve.true([np.array([round(curve.own(at))])])
            assert abs(int(back[0]) - at) <= 3


def test_a_start_in_the_period_begins_there():
    instants = arrivals(curve=TRIANGLE, start=10 * S, end=30 * S)
    assert instants[0] >= 10 * S
    assert abs(len(instants) - 20_000) <= 20


def test_a_hot_key_has_its_share_of_the_records_whatever_the_distribution():
    spec = WorkloadSpec("t", Steady(Rate(10_000, S)), 100, UniformKeys(1_000), end_us=S,
                        hot_ppm=300_000)  # fmt: skip
    source = Workload(spec, Streams(7), "p")
    keys = np.concatenate([source.next_block().key_ids for _ in range(3)])
    assert 0.28 < (keys == 0).mean() < 0.32
    assert len(np.unique(keys)) > 900
