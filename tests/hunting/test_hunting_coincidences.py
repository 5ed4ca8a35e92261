"""Coincidences of single faults: how often they are to be expected, and ways to lose data."""

import json
from types import SimpleNamespace

import pytest
import yaml
from typer.testing import CliRunner

from sim.cli import app
from sim.cli.hunting.ways import Ways
from sim.errors import SimulationError
from sim.hunting.coincidences import (
    DAY,
    YEAR,
    Rate,
    coincidences,
    data_of,
    frequency,
    is_known,
    rates_of,
)
from sim.hunting.fingerprint import Finding
from sim.hunting.replay import Replay
from sim.suite.fault_outcomes import answer
from sim.suite.outcome import Outcome
from sim.suite.pool import Pool
from sim.suite.single_faults import SingleFault
from tests.hunting.losing import losing, written

LOST = Finding("lost_acked", ("isr-of-one", "truncated"))


def fault(kind, number):
    entry = {"do": kind, "target": f"broker-{number}", "for": "15s"}
    return SingleFault(f"{kind}-{number}", f"A {kind} of broker-{number}", entry)


CRASHES = [fault("crash", number) for number in (1, 2)]
PAUSE, POWER = fault("pause", 3), fault("power-loss", 1)


def test_two_faults_overlap_by_their_rates_and_durations():
    rates = {"crash": Rate(YEAR // 4, 2 * DAY), "pause": Rate(YEAR // 10, DAY)}
    (both,) = coincidences([CRASHES[0], PAUSE], 2, rates)
    assert both.per_year == pytest.approx(4 * 10 * 3 / 365, rel=1e-9)
    (alone,) = coincidences([PAUSE], 1, rates)
    assert alone.per_year == pytest.approx(10)
    (three,) = coincidences([*CRASHES, PAUSE], 3, rates)
    overlap = (2 * 1 + 2 * 1 + 2 * 2) / 365**2
    assert three.per_year == pytest.approx(4 * 4 * 10 * overlap, rel=1e-9)
    assert three.words == "A crash of broker-1 and a crash of broker-2 and a pause of broker-3"


def test_the_most_frequent_comes_first():
    found = coincidences([POWER, *CRASHES, PAUSE], 2, rates_of(()))
    assert [each.per_year for each in found] == sorted((e.per_year for e in found), reverse=True)
    assert "power-loss-1" in found[-1].name
    rare = coincidences([*CRASHES, PAUSE], 2, rates_of(["crash=3650d/1min"]))
    assert rare[0].per_year < coincidences([*CRASHES, PAUSE], 2, rates_of(()))[0].per_year


@pytest.mark.parametrize("word", ["crush=1d", "crash=often", "crash=1d/soon", "crash=0s", "crash"])
def test_rates_that_cannot_be_read_are_refused(word):
    with pytest.raises(SimulationError, match="--mtbf "):
        rates_of([word])


@pytest.mark.parametrize(
    ("per_year", "words"),
    [(4.06, "4 times a year"), (1.0, "once a year"), (0.01, "once in 100 years")],
)
def test_a_rate_is_said_as_people_say_it(per_year, words):
    assert frequency(per_year) == words


def test_the_same_servers_with_the_same_faults_are_one_way():
    first = [("crash", "1", "2", "broker-1"), ("pause", "3", "4", "broker-2")]
    again = [("pause", "9", "9", "broker-2"), ("crash", "8", "8", "broker-1")]
    other = [("crash", "1", "2", "broker-2"), ("pause", "3", "4", "broker-2")]
    assert is_known(again, [first])
    assert not is_known(other, [first])


# -- the search ------------------------------------------------------------------------------------


class Rule(Pool):
    """Runs nothing: two crashes at one time lose data, and so does a pause alone."""

    def __init__(self):
        super().__init__(1, None)
        self.tried = []

    def results(self, work, tasks, should_stop):
        for number, task in enumerate(tasks):
            kinds = sorted(f["do"] for f in task.data["faults"])
            self.tried.append(kinds)
            hits = tuple((f["do"], "8000000", "", f["target"]) for f in task.data["faults"])
            loses = kinds in (["crash", "crash"], ["pause"])
            yield number, Replay((LOST,) if loses else (), hits)


def survey_of(tmp_path, faults):
    base = losing([{"at": "2s", **faults[0].entry, "for": "1s"}])
    files = [(None, "none.yaml")]
    for each in faults:
        file = written(tmp_path / f"{each.name}.yaml", base)
        files.append((each, str(file)))
    jobs = (SimpleNamespace(seed=1),)
    return SimpleNamespace(faults=files, directory=tmp_path, jobs=jobs, name="weak", run_us=1)


def answers_of(faults):
    return [
        answer(each, "x.yaml", 1, [Outcome("x.yaml", 1, "held", records={"lost_acked": 0})])
        for each in faults
    ]


def short(each):
    """A fault that fits into the small scenario."""
    return SingleFault(each.name, each.words, each.entry | {"for": "1s"})


def test_pairs_are_tried_after_single_faults_and_each_way_has_its_capsule(tmp_path):
    faults = [short(each) for each in (*CRASHES, PAUSE, POWER)]
    found = answers_of(faults)
    object.__setattr__(found[2], "lost", 3)
    rule = Rule()
    ways = Ways(survey_of(tmp_path, faults), found, rates_of(()), rule, 1, lambda: False)
    (single, pair) = ways.search(2)
    assert [f.name for f in single.coincidence.faults] == ["pause-3"]
    assert [f.name for f in pair.coincidence.faults] == ["crash-1", "crash-2"]
    # What loses alone is not tried with others.
    assert ["crash", "pause"] not in rule.tried
    assert ["crash", "power-loss"] in rule.tried
    assert pair.capsule.endswith("2-crash-1+crash-2.capsule.yaml")
    plain = yaml.safe_load((tmp_path / "ways" / "2-crash-1+crash-2.yaml").read_text())
    assert sorted(f["target"] for f in plain["faults"]) == ["broker-1", "broker-2"]
    assert next(pair.lines()).startswith("A crash of broker-1 and a crash of broker-2: loses")


def test_what_does_not_fit_into_the_budget_is_counted(tmp_path):
    faults = [short(each) for each in (*CRASHES, POWER)]
    ways = Ways(survey_of(tmp_path, faults), answers_of(faults), rates_of(()), Rule(), 1,
                lambda: True)  # fmt: skip
    assert ways.search(2) == []
    assert ways.untried == 3


def test_both_faults_strike_in_the_window_of_the_single_one():
    (pair,) = coincidences(CRASHES, 2, rates_of(()))
    base = losing([{"at": "8s..10s", "do": "crash", "target": "broker-1", "for": "15s"}])
    made = data_of(base, pair)
    assert [f["at"] for f in made["faults"]] == ["8s..10s", "8s..10s"]
    assert "expect" not in made


def test_the_rates_are_refused_where_they_mean_nothing(tmp_path):
    file = written(tmp_path / "plain.yaml", losing())
    done = CliRunner().invoke(app, ["verdict", str(file), "--mtbf", "crash=1d"])
    assert done.exit_code == 2
    assert "--mtbf without --faults 2" in done.output


@pytest.mark.slow
def test_a_pair_that_loses_is_found_on_a_cluster_that_stands_single_faults(tmp_path):
    config = {"broker.session.timeout.ms": 3000, "broker.heartbeat.interval.ms": 500}
    plain = losing(
        [],
        cluster={"racks": {"a": 1, "b": 1}, "controllers": 1, "config": config},
        topics={"orders": {"partitions": 1, "replication.factor": 2,
                           "config": {"min.insync.replicas": 2}}},
        producers=[{"name": "shop", "topic": "orders", "rate": "5/s", "config": {"acks": "all"}}],
        run={"for": "20s"},
    )  # fmt: skip
    file = written(tmp_path / "two.yaml", plain)
    words = ["--seeds", "1", "--budget", "30m", "--faults", "2", "--jobs", "1", "--no-cache"]
    done = CliRunner().invoke(
        app, ["verdict", str(file), *words, "--out", str(tmp_path / "out"), "--json"]
    )
    told = json.loads(done.stdout)
    assert done.exit_code == 1
    found = [way["faults"] for way in told["ways"]]
    assert ["power-loss-rack-a", "power-loss-rack-b"] in [sorted(each) for each in found]
    assert all(len(each) == 2 for each in found)
