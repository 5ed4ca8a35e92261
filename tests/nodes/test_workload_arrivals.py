"""Arrivals and keys of a workload."""

import numpy as np
import pytest

from sim.errors import SimulationError
from sim.nodes.clients.workload import (
    Bursts,
    Poisson,
    Rate,
    Steady,
    UniformKeys,
    Workload,
    WorkloadSpec,
    ZipfKeys,
)
from sim.protocol.clients.producer.events import TOMBSTONE
from sim.rng import Streams
from sim.units import LONG_AGO, SECOND


def arrivals(shape, *, end=10 * SECOND, keys=None, seed=1, after=LONG_AGO, start=0):
    spec = WorkloadSpec("t", shape, 100, keys=keys, start_us=start, end_us=end)
    workload = Workload(spec, Streams(seed), "p", after)
    blocks = []
    while (block := workload.next_block()) is not None:
        assert len(block.instants_us) > 0
        blocks.append(block)
    instants = [b.instants_us for b in blocks] or [np.zeros(0, dtype=np.int64)]
    ids = None if keys is None else np.concatenate([b.key_ids for b in blocks])
    return np.concatenate(instants), ids


def test_steady_record_k_comes_k_over_rate_after_the_start_rounded_up():
    instants, _ = arrivals(Steady(Rate(3, SECOND)), start=5)
    assert instants[:5].tolist() == [5, 333_339, 666_672, 1_000_005, 1_333_339]
    assert len(instants) == 30


def tombstones(ppm, *, seed=1):
    spec = WorkloadSpec(
        "t", Steady(Rate(20_000, SECOND)), 100, UniformKeys(50), end_us=SECOND, tombstone_ppm=ppm
    )
    workload = Workload(spec, Streams(seed), "p")
    blocks = []
    while (block := workload.next_block()) is not None:
        blocks.append(block)
    keys = np.concatenate([b.key_ids for b in blocks])
    return keys, None if ppm == 0 else np.concatenate([b.value_sizes for b in blocks]) == TOMBSTONE


def test_tombstones_have_their_share_and_move_no_other_draw():
    keys, dead = tombstones(50_000)
    assert dead.mean() == pytest.approx(0.05, abs=0.01)
    without, none = tombstones(0)
    assert none is None
    assert (keys == without).all()
    assert (tombstones(50_000)[1] == dead).all()
    assert (tombstones(50_000, seed=2)[1] != dead).any()


def test_only_records_with_keys_can_be_tombstones():
    with pytest.raises(SimulationError, match="tombstones"):
        WorkloadSpec("t", Steady(Rate(1, SECOND)), 100, tombstone_ppm=1)


def test_a_value_holds_no_more_noise_than_filler():
    WorkloadSpec("t", Steady(Rate(1, SECOND)), 100, noise_bytes=76)
    with pytest.raises(SimulationError, match="compressibility"):
        WorkloadSpec("t", Steady(Rate(1, SECOND)), 100, noise_bytes=77)


def test_no_record_is_meant_for_the_end_or_later():
    for shape in (Steady(Rate(1_000, SECOND)), Poisson(Rate(1_000, SECOND))):
        instants, _ = arrivals(shape, end=SECOND)
        assert instants[-1] < SECOND
    assert len(arrivals(Steady(Rate(1_000, SECOND)), end=SECOND)[0]) == 1_000


def test_poisson_arrivals_have_the_rate_and_its_spread():
    instants, _ = arrivals(Poisson(Rate(10_000, SECOND)))
    gaps = np.diff(instants)
    assert gaps.min() >= 0
    assert len(instants) == pytest.approx(100_000, rel=0.02)
    assert gaps.std() == pytest.approx(100, rel=0.05)


def test_steady_arrivals_have_no_spread():
    assert np.diff(arrivals(Steady(Rate(10_000, SECOND)))[0]).std() == 0


def test_bursts_are_dense_then_sparse():
    shape = Bursts(Rate(1_000, SECOND), Rate(10, SECOND), SECOND, SECOND)
    instants, _ = arrivals(shape, end=4 * SECOND)
    counts = np.histogram(instants, bins=np.arange(5) * SECOND)[0].tolist()
    assert counts == [1_000, 10, 1_000, 10]


def test_the_same_seed_gives_the_same_arrivals_and_another_gives_others():
    shape, keys = Poisson(Rate(1_000, SECOND)), UniformKeys(50)
    first, again = arrivals(shape, keys=keys), arrivals(shape, keys=keys)
    assert first[0].tolist() == again[0].tolist()
    assert first[1].tolist() == again[1].tolist()
    assert first[0].tolist() != arrivals(shape, keys=keys, seed=2)[0].tolist()


def test_a_later_start_skips_but_does_not_shift():
    shape = Poisson(Rate(1_000, SECOND))
    whole, keys = arrivals(shape, keys=UniformKeys(9))
    rest, rest_keys = arrivals(shape, keys=UniformKeys(9), after=4 * SECOND)
    assert rest.tolist() == whole[whole >= 4 * SECOND].tolist()
    assert rest_keys.tolist() == keys[whole >= 4 * SECOND].tolist()


def test_uniform_keys_are_all_as_likely():
    _, keys = arrivals(Steady(Rate(10_000, SECOND)), keys=UniformKeys(10))
    counts = np.bincount(keys, minlength=10)
    assert counts.min() > 9_500
    assert counts.max() < 10_500


def test_zipf_keys_follow_their_law():
    _, keys = arrivals(Steady(Rate(10_000, SECOND)), keys=ZipfKeys(100, 1.0))
    counts = np.bincount(keys, minlength=100)
    assert counts[0] / counts[1] == pytest.approx(2, rel=0.05)
    assert counts[0] / counts[9] == pytest.approx(10, rel=0.1)
    assert keys.max() < 100


def test_nothing_is_sent_at_rate_zero():
    assert len(arrivals(Steady(Rate(0, SECOND)))[0]) == 0
    assert len(arrivals(Poisson(Rate(0, SECOND)))[0]) == 0


def test_impossible_workloads_are_refused():
    with pytest.raises(SimulationError, match=r"record\.size"):
        WorkloadSpec("t", Steady(Rate(1, 1)), 23)
    with pytest.raises(SimulationError, match="keys"):
        UniformKeys(0)
    with pytest.raises(SimulationError, match="rate"):
        Rate(-1, 1)
