"""A trial tells the numbers of a run and leaves nothing; chance happens in the cluster."""

import pytest

from sim.errors import SimulationError
from sim.scenario.loader import load, load_text
from sim.scenario.run.runner import run
from sim.scenario.run.trial import COUNTS, trial
from tests.scenarios.run_kit import ROOT, SHIPPED, Ran, S, go, text_of

ONE_OF = {
    "at": "1s..2s",
    "do": "one-of",
    "of": [
        {"do": "crash", "target": "random broker", "for": "1s"},
        {"do": "pause", "target": "random broker", "for": "1s"},
    ],
}
SHORT = {"lasts": "4s", "producer": {"rate": "200/s"}}


def test_a_trial_is_the_run_in_every_number_and_leaves_nothing(tmp_path):
    scenario = load_text(text_of(faults=[ONE_OF], **SHORT))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    found = trial(scenario, 5, scratch)
    assert list(scratch.iterdir()) == []
    ran = Ran(run(scenario, 5, tmp_path / "run", level="facts").directory)
    assert found.records == {name: ran.records[name] for name in COUNTS}
    assert found.records["acked"] == 800
    produce = ran.verdict["latency_us"]["produce"]
    assert all(found.times_us[f"produce.{rank}"] == produce[rank] for rank in ("p50", "p99", "max"))
    assert found.trace_digest == ran.card["trace_digest"]
    assert found.held is ran.verdict["held"] is True
    values, counts = found.latency_us
    assert sum(counts) == produce["records"] == 800
    assert values == sorted(values)
    assert values[-1] == produce["max"]
    segments = (tmp_path / "run" / "disks").glob("broker-*/*/orders-*/*.log")
    assert sum(file.stat().st_size for file in segments) <= found.disk_bytes
    assert found.replicas == 9


def test_bytes_between_racks_are_counted_and_those_within_are_not():
    three = {"racks": {"a": 1, "b": 1, "c": 1}}
    spread = trial(load_text(text_of(cluster={**three, "brokers": None}, **SHORT)), 1)
    one = trial(load_text(text_of(cluster={"racks": {"a": 3}, "brokers": None}, **SHORT)), 1)
    assert one.cross_rack_bytes == 0
    # Every record goes to two more racks, with its batch and the requests around it.
    assert spread.cross_rack_bytes > 2 * 800 * 100


def test_the_seed_draws_kind_instant_and_target(tmp_path):
    drawn = [go(tmp_path, faults=[ONE_OF], seed=seed, **SHORT).faults[0] for seed in (4, 5)]
    assert {fault["kind"] for fault in drawn} == {"crash", "pause"}
    assert len({fault["began_us"] for fault in drawn}) == len(drawn)
    assert all(S <= fault["began_us"] <= 2 * S and fault["took_effect"] for fault in drawn)
    assert drawn[0]["resolved"] != drawn[1]["resolved"]


def test_components_fail_on_their_own_and_are_told_beside_the_lines(tmp_path):
    faults = [
        {"do": "pause", "target": "each broker", "mtbf": "2s", "mttr": "200ms"},
        {"at": "1s", "do": "clock-jump", "target": "controller-1", "by": "5ms", "for": "1s"},
    ]
    ran = go(tmp_path, faults=faults, seed=3, **SHORT)
    assert ran.faults[0]["kind"] == "clock-jump"
    failures = ran.faults[1:]
    assert len(failures) >= 2
    assert {fault["target"] for fault in failures} <= {"broker-1", "broker-2", "broker-3"}
    assert [fault["fault"] for fault in failures] == list(range(2, 2 + len(failures)))
    assert ran.records["lost_acked"] == 0
    assert ran.verdict["held"]


def test_a_random_rack_means_one_rack_and_everyone_in_it(tmp_path):
    cluster = {"racks": {"a": 1, "b": 1, "c": 1}, "brokers": None}
    fault = {"at": "1s", "do": "power-loss", "target": "random rack", "for": "1s"}
    ran = go(tmp_path, faults=[fault], cluster=cluster, seed=2, **SHORT)
    assert len(ran.faults[0]["resolved"].split(", ")) == 2  # a broker and a controller
    assert ran.faults[0]["took_effect"]


def test_a_trial_that_cannot_come_up_says_so_and_leaves_nothing(tmp_path, monkeypatch):
    def refuse(*_):
        raise SimulationError("no")

    monkeypatch.setattr("sim.scenario.run.runner.Work._boot", refuse)
    with pytest.raises(SimulationError):
        trial(load_text(text_of(**SHORT)), 1, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_single_faults_lose_with_acks_1_and_not_with_acks_all_and_two_in_sync():
    """The order of the trade-off on three seeds; the whole one is a sweep's test."""
    assert SHIPPED["tradeoff"] == ROOT / "scenarios" / "tradeoff.yaml"
    lost, out = {}, {}
    for acks in ("all", "1", "0"):
        scenario = load(SHIPPED["tradeoff"], [f"acks={acks}", "run.for=9s"])
        found = [trial(scenario, seed) for seed in (2, 4, 6)]
        lost[acks] = sum(one.records["lost_acked"] > 0 for one in found)
        out[acks] = sum(one.times_us["unavailable.produce.max"] for one in found)
    assert lost["all"] == 0 < lost["1"] <= lost["0"]
    assert out["all"] > out["1"] > out["0"]
