"""A baseline says regressed only when it is: unchanged runs stay green, a worse one is named."""

from random import Random

import pytest

from sim.errors import SimulationError
from sim.suite import baseline as base
from sim.suite.outcome import METRICS, Outcome

PATH = "scenarios/shop.yaml"


def run(seed, digest="d", trace="t", **worse):
    chance = Random(seed)
    metrics = {
        "lost_acked": 0, "duplicated": 0, "reordered": 0,
        "unavailable.produce.max": chance.randint(9_000_000, 11_000_000),
        "unavailable.fetch.max": chance.randint(9_000_000, 11_000_000),
        "produce.p50": chance.randint(2_000, 2_100), "produce.p99": chance.randint(8_000, 30_000),
        "end_to_end.p99": chance.randint(10_000, 40_000),
    }  # fmt: skip
    for name, change in worse.items():
        metrics[name.replace("__", ".")] += change
    assert set(metrics) == set(METRICS)
    return Outcome(
        PATH, seed, "held", metrics=metrics, scenario_digest=digest, trace_digest=f"{trace}{seed}",
        rows={"appends": 5}, table_digests={"reads": "0", "appends": trace},
    )  # fmt: skip


@pytest.fixture
def written(tmp_path):
    file = tmp_path / "base.json"
    base.write_baseline(file, [run(seed) for seed in range(20)], "code")
    return base.read_baseline(file)


def test_twenty_unchanged_reruns_with_other_seeds_stay_green(written):
    for again in range(1, 21):
        runs = [run(seed) for seed in range(100 * again, 100 * again + 20)]
        assert base.compare(written, runs, "code").regressed == ()


@pytest.mark.parametrize(
    ("metric", "by"),
    [
        ("lost_acked", 40), ("duplicated", 3), ("unavailable__produce__max", 2_000_000),
        ("produce__p50", 200), ("produce__p99", 25_000), ("end_to_end__p99", 40_000),
    ],
)  # fmt: skip
def test_a_worse_number_is_named_and_no_other(written, metric, by):
    found = base.compare(written, [run(seed, **{metric: by}) for seed in range(50, 70)], "other")
    (change,) = found.regressed
    assert change.metric == metric.replace("__", ".")
    assert str(change).startswith(f"{PATH}: {change.metric}: ")
    assert "over 20 seeds then" in str(change)
    better = base.compare(written, [run(seed) for seed in range(50, 70)], "other")
    assert better.regressed == better.improved == ()


def test_what_got_better_is_no_regression(written):
    runs = [run(seed, unavailable__fetch__max=-5_000_000) for seed in range(50, 70)]
    found = base.compare(written, runs, "other")
    assert found.regressed == ()
    assert [change.metric for change in found.improved] == ["unavailable.fetch.max"]


def test_a_shift_that_is_sure_but_small_does_not_matter(written):
    """Two percent in every seed: more than chance, and less than anybody cares for."""
    runs = [run(seed, produce__p50=45) for seed in range(50, 70)]
    assert base.compare(written, runs, "other").regressed == ()
    runs = [run(seed, produce__p50=130) for seed in range(50, 70)]
    assert len(base.compare(written, runs, "other").regressed) == 1


def test_losses_in_some_seeds_are_seen_though_the_median_stays(written):
    runs = [run(seed, lost_acked=500 * (seed % 5 < 3)) for seed in range(20)]
    assert [c.metric for c in base.compare(written, runs, "x").regressed] == ["lost_acked"]


def test_too_few_seeds_are_refused_before_anything_runs(written):
    base.check_power(written, [PATH], 20)
    with pytest.raises(SimulationError, match=r"3 seeds cannot tell .* --seeds 1\.\.8"):
        base.check_power(written, [PATH], 3)
    with pytest.raises(SimulationError, match="knows none of these scenarios"):
        base.check_power(written, ["other.yaml"], 20)


def test_a_moved_trace_is_told_with_its_first_table(written):
    found = base.compare(written, [run(seed, trace="u") for seed in range(20)], "other")
    assert len(found.moved) == 20
    assert found.moved[0].startswith(f"{PATH}, seed 0: the trace moved, first in table appends: 5")
    assert found.not_deterministic == ()
    same = base.compare(written, [run(seed) for seed in range(20)], "other")
    assert same.moved == ()


def test_another_trace_of_the_same_code_and_scenario_is_not_deterministic(written):
    found = base.compare(written, [run(seed, trace="u") for seed in range(20)], "code")
    assert len(found.not_deterministic) == 20
    assert found.moved == ()
    changed = base.compare(written, [run(s, digest="e", trace="u") for s in range(20)], "code")
    assert changed.not_deterministic == ()
    assert "the scenario was changed" in changed.notes[0]


def test_an_update_keeps_what_was_not_run(tmp_path):
    file = tmp_path / "base.json"
    base.write_baseline(file, [run(1)], "code")
    other = Outcome("b.yaml", 1, "held", scenario_digest="d")
    base.write_baseline(file, [other], "code")
    assert list(base.read_baseline(file)["scenarios"]) == ["b.yaml", PATH]


@pytest.mark.parametrize("text", ["", "[]", '{"format": 9}'])
def test_what_is_no_baseline_is_refused(tmp_path, text):
    file = tmp_path / "base.json"
    file.write_text(text)
    with pytest.raises(SimulationError, match="not a baseline"):
        base.read_baseline(file)
    with pytest.raises(SimulationError, match="--update writes it"):
        base.read_baseline(tmp_path / "none.json")
