"""Guessing a batch's compressed size: Kafka's steps, Java's floats, and what fits."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.protocol.clients.producer.compression_estimate import Packing, RatioEstimator

RATIOS = st.floats(0.01, 2.0).map(lambda number: float(np.float32(number)))


def guess(raw, ratio):
    """``estimatedBytesWritten`` in 32-bit floats."""
    return int(np.float32(raw) * np.float32(ratio) * np.float32(1.05))


@given(RATIOS, st.integers(0, 2_000_000))
def test_a_guess_is_javas_to_the_byte(ratio, raw):
    assert Packing(ratio, raw).guess == guess(raw, ratio)


@given(RATIOS, st.integers(0, 40_000), st.integers(1, 3_000), st.integers(-5, 40_000),
       st.integers(0, 400))  # fmt: skip
def test_as_many_records_fit_as_would_one_after_the_other(ratio, raw, size, room, most):
    packing = Packing(ratio, raw)
    limit, count, now = packing.guess + room, 0, raw
    while count < most and guess(now, ratio) + size <= limit:
        count += 1
        now += size
    assert packing.fitting(size, room, most) == count


@given(RATIOS, st.integers(0, 40_000), st.integers(1, 3_000), st.integers(1, 40_000),
       st.integers(0, 400))  # fmt: skip
def test_a_quota_is_reached_with_the_record_that_reaches_it(ratio, raw, size, quota, most):
    packing = Packing(ratio, raw)
    count, now = 0, raw
    while count < most and guess(now, ratio) - packing.guess < quota:
        count += 1
        now += size
    assert packing.reaching(size, quota, most) == count


def test_growing_tells_by_how_much_the_guess_grew():
    packing = Packing(0.5)
    assert packing.grow(1_000) == 525
    assert packing.copy().grow(1_000) == 525
    assert packing.raw == 1_000


def test_a_better_ratio_is_believed_slowly_and_a_worse_one_at_once():
    estimator = RatioEstimator()
    for _ in range(10):
        estimator.observe(10, 100)
    assert estimator.ratio == pytest.approx(0.95, abs=1e-6)
    estimator.observe(99, 100)
    assert estimator.ratio == pytest.approx(1.0, abs=1e-6)
    estimator.observe(130, 100)
    assert estimator.ratio == pytest.approx(1.3, abs=1e-6)


def test_the_ratio_does_not_pass_what_was_observed_on_its_way_down():
    estimator = RatioEstimator()
    for _ in range(500):
        observed = estimator.observe(40, 100)
    assert estimator.ratio == observed == float(np.float32(0.4))


def test_a_small_deterioration_is_a_whole_step():
    estimator = RatioEstimator()
    for _ in range(200):
        estimator.observe(40, 100)
    estimator.observe(401, 1_000)
    assert estimator.ratio == pytest.approx(0.45, abs=1e-6)


def test_after_a_batch_that_was_too_large_nothing_is_expected_of_compression():
    estimator = RatioEstimator()
    for _ in range(100):
        estimator.observe(10, 100)
    estimator.reset(0.4)
    assert estimator.ratio == 1.0
    estimator.reset(1.2)
    assert estimator.ratio == 1.2


@given(st.lists(st.tuples(st.integers(1, 300), st.integers(1, 200)), max_size=20))
def test_the_bound_holds_for_every_ratio_so_far(seen):
    estimator = RatioEstimator()
    ratios = [1.0]
    for compressed, raw in seen:
        estimator.observe(compressed, raw)
        ratios.append(estimator.ratio)
    assert all(guess(777, ratio) <= estimator.bound(777) for ratio in ratios)
