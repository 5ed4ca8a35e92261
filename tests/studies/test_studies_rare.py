"""Rare coincidences are as likely as closed forms say, with intervals that hold the truth."""

import itertools
import math
import statistics

import numpy as np
import pytest

from sim.errors import ScenarioError
from sim.rng import Stream
from sim.scenario.loader import load_text
from sim.studies.rare import Coincidence, Component, ProbabilityEstimate
from sim.studies.year import year

YEAR_H = 8_766


def disks(count, failures, repairs):
    return [Component(f"disk {n}", failures, repairs, (n,)) for n in range(count)]


def all_of(count, failures, repairs, span, samples, seed=1):
    """Every disk of one set out at once."""
    model = Coincidence(disks(count, failures, repairs), [tuple(range(count))], span)
    return model.estimate(Stream(seed, "rare"), samples)


def absorbed(generator, span):
    """Chance that a Markov chain from its first state is in its last by the end; uniformisation."""
    rate = float(max(-generator.diagonal()))
    step = np.eye(len(generator)) + generator / rate
    state, found, told, weight = np.eye(len(generator))[0], 0.0, 0.0, -rate * span
    for jumps in range(1, int(rate * span + 12 * math.sqrt(rate * span)) + 60):
        found += math.exp(weight) * state[-1]
        told += math.exp(weight)
        state = state @ step
        weight += math.log(rate * span) - math.log(jumps)
    return found + max(0.0, 1 - told) * state[-1]


def birth_and_death(count, failures, repairs, span):
    """So many disks, each with its own repair; out when none is left."""
    generator = np.zeros((count + 1, count + 1))
    for down in range(count):
        generator[down, down + 1] = (count - down) * failures
        if down:
            generator[down, down - 1] = down * repairs
        generator[down, down] = -generator[down].sum()
    return absorbed(generator, span)


@pytest.mark.parametrize(("failures", "count"), [(1e-3, 3), (1e-5, 3), (1e-6, 4)])
def test_independent_disks_without_repair_are_all_gone_with_the_product_of_their_chances(
    failures, count
):
    found = all_of(count, failures, 0.0, YEAR_H, 2_000)
    assert found.value == pytest.approx((1 - math.exp(-failures * YEAR_H)) ** count, rel=0.15)
    assert found.error < 0.05 * found.value


@pytest.mark.parametrize(
    ("count", "failures", "repairs", "span", "order"),
    [
        (3, 3.8e-5, 0.1, YEAR_H, -7),
        (3, 2.28e-6, 1.0, YEAR_H, -13),
        (2, 3.8e-5, 0.01, YEAR_H, -3),
        (3, 0.01, 0.1, 1_000, -1),
    ],
)
def test_disks_with_repair_are_all_gone_as_often_as_their_markov_chain_says(
    count, failures, repairs, span, order
):
    exact = birth_and_death(count, failures, repairs, span)
    assert math.floor(math.log10(exact)) == order
    found = all_of(count, failures, repairs, span, 1_500)
    assert abs(found.value - exact) < 4 * found.error
    assert found.error < 0.1 * exact


def test_intervals_hold_the_closed_form_in_at_least_90_of_100_repetitions():
    exact = birth_and_death(2, 1e-5, 0.1, YEAR_H)
    found = [all_of(2, 1e-5, 0.1, YEAR_H, 200, seed=seed) for seed in range(100)]
    assert exact < 2e-5
    assert sum(one.low <= exact <= one.high for one in found) >= 90


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "failures", "repairs"),
    [
        (2, 1e-5, 0.1),
        (3, 3.8e-5, 0.1),
        (4, 1e-4, 0.5),
        (2, 1e-5, 0.0),
        (3, 1e-5, 0.0),
        (4, 1e-6, 0.0),
    ],
)
def test_95_percent_means_95_percent_with_repair_and_without(count, failures, repairs):
    """A Markov chain, or a product; of 500 intervals 475 hold the truth, give or take 5."""
    exact = birth_and_death(count, failures, repairs, YEAR_H)
    if not repairs:
        product = (-math.expm1(-failures * YEAR_H)) ** count
        assert product == pytest.approx(exact, rel=1e-6)
        exact = product
    found = [all_of(count, failures, repairs, YEAR_H, 200, seed=seed) for seed in range(500)]
    assert 0.92 <= statistics.fmean(one.low <= exact <= one.high for one in found) <= 0.98
    spread = statistics.stdev(one.value for one in found)
    assert statistics.fmean(one.error for one in found) == pytest.approx(spread, rel=0.15)
    assert statistics.fmean(one.value for one in found) == pytest.approx(exact, abs=0.2 * spread)


def test_intervals_that_are_stated_too_narrow_are_caught(monkeypatch):
    estimate = Coincidence.estimate

    def bold(*arguments):
        told = estimate(*arguments)
        return ProbabilityEstimate(told.value, told.error / 2, told.samples)

    monkeypatch.setattr(Coincidence, "estimate", bold)
    exact = birth_and_death(2, 1e-5, 0.1, YEAR_H)
    found = [all_of(2, 1e-5, 0.1, YEAR_H, 200, seed=seed) for seed in range(100)]
    assert sum(one.low <= exact <= one.high for one in found) < 90


def test_a_branch_that_forgets_its_likelihood_ratio_is_caught(monkeypatch):
    likely = Coincidence._likely
    monkeypatch.setattr(Coincidence, "_likely", lambda *a: (likely(*a)[0], 1.0))
    exact = birth_and_death(3, 3.8e-5, 0.1, YEAR_H)
    assert all_of(3, 3.8e-5, 0.1, YEAR_H, 300).low > 100 * exact


def test_what_fails_together_is_likelier_than_what_fails_alone_by_as_much_as_its_chain_says():
    """Two hosts in one rack: their own failures, or the rack's, with a chain of eight states."""
    own, rack, repair, span = 1e-5, 1e-6, 0.1, YEAR_H
    generator = np.zeros((3, 3))  # both up, one down, both out (by the second one or by the rack)
    generator[0, 1], generator[0, 2] = 2 * own, rack
    generator[1, 0], generator[1, 2] = repair, own + rack
    for state in (0, 1):
        generator[state, state] = -generator[state].sum()
    exact = absorbed(generator, span)
    hosts = [*disks(2, own, repair), Component("rack", rack, repair, (0, 1))]
    found = Coincidence(hosts, [(0, 1)], span).estimate(Stream(1, "rare"), 1_000)
    assert abs(found.value - exact) < 4 * found.error
    assert found.value > 100 * all_of(2, own, repair, span, 1_000).value


def test_of_several_sets_one_is_enough():
    """Two pairs that share a disk: three disks, lost if the middle one and another are out."""
    rate, repair, span = 1e-5, 0.1, YEAR_H
    states = list(itertools.product((0, 1), repeat=3))
    safe = [s for s in states if not (s[1] and (s[0] or s[2]))]
    generator = np.zeros((len(safe) + 1, len(safe) + 1))
    for row, state in enumerate(safe):
        for disk in range(3):
            other = tuple(1 - bit if n == disk else bit for n, bit in enumerate(state))
            column = safe.index(other) if other in safe else len(safe)
            generator[row, column] += repair if state[disk] else rate
        generator[row, row] = -generator[row].sum()
    exact = absorbed(generator, span)
    model = Coincidence(disks(3, rate, repair), [(0, 1), (1, 2)], span)
    found = model.estimate(Stream(1, "rare"), 1_500)
    assert abs(found.value - exact) < 4 * found.error < 0.4 * exact


def test_the_same_stream_finds_the_same_and_nothing_that_fails_finds_nothing():
    assert all_of(3, 1e-4, 0.1, 100, 50) == all_of(3, 1e-4, 0.1, 100, 50)
    assert all_of(3, 1e-4, 0.1, 100, 50) != all_of(3, 1e-4, 0.1, 100, 50, seed=2)
    assert Coincidence([], [(0,)], 100).estimate(Stream(1, "rare"), 10).value == 0.0


# -- a scenario's year -----------------------------------------------------------------------------

TEXT = """
claim: A year of three racks.
cluster: {racks: {a: 1, b: 1, c: 1}, controllers: 3}
topics: {orders: {partitions: 4, replication.factor: 3, config: {min.insync.replicas: 2}}}
faults:
  - {do: failed-disk, target: each broker, mtbf: 100d, mttr: 10h}
  - {do: crash, target: each broker, mtbf: 50d, mttr: 1h}
run: {for: 60s}
"""


def test_a_scenarios_year_is_that_of_its_disks_and_brokers():
    loss, outage, short = year(load_text(TEXT), samples=600)
    exact = birth_and_death(3, 1 / 2_400, 1 / 10, YEAR_H)
    assert (loss.name, outage.name, short.name) == ("loss", "outage", "below_min_isr")
    assert abs(loss.chance.value - exact) < 4 * loss.chance.error
    assert loss.chance.value < outage.chance.value < short.chance.value


def test_replicas_in_one_rack_are_lost_with_it_and_over_racks_are_not():
    power = TEXT.replace("failed-disk, target: each broker", "power-loss, target: each rack")
    spread = year(load_text(power), samples=300)[0].chance
    one = power.replace("{a: 1, b: 1, c: 1}", "{a: 3}").replace("each rack", "rack a")
    together = year(load_text(one), samples=300)[0].chance
    assert together.low > 20 * spread.high


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (", mtbf: 100d, mttr: 10h", ", mtbf: 100d, mttr: 10h, directory: 0", ""),
        ("failed-disk, target: each broker", "failed-disk, target: random broker", "in a run only"),
        ("failed-disk, target", "slow-disk, factor: 5, target", "takes no broker out"),
        ("controllers: 3", "controllers: 3, disk: {directories: 2}", "directories: 1"),
    ],
)
def test_what_such_a_study_cannot_count_on_is_refused(old, new, says):
    scenario = load_text(TEXT.replace(old, new))
    if not says:
        assert year(scenario, samples=2)
        return
    with pytest.raises(ScenarioError, match=says):
        year(scenario, samples=2)


def test_a_scenario_without_failing_components_is_refused():
    lines = [line for line in TEXT.splitlines() if "mtbf" not in line and line != "faults:"]
    with pytest.raises(ScenarioError, match="no fault has mtbf"):
        year(load_text("\n".join(lines)), samples=2)
