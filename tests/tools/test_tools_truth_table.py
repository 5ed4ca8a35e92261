"""The truth table: simulated runs beside rehearsals on a real Kafka, in ``docs/real-cluster``."""

import json
import re
from dataclasses import replace

import pytest
import yaml

from sim.errors import SimulationError
from sim.rehearsal import limits
from sim.rehearsal.loads import clients_of
from sim.scenario.loader import load
from sim.suite.comparison.groups import rows_of
from sim.suite.comparison.tolerance import Tolerance
from tools import truth_table
from tools.kept_runs import as_plain, from_plain

NAMES = truth_table.names()
README = truth_table.README.read_text(encoding="utf-8")
LISTED = truth_table.listed(README)
PRIVATE = re.compile(r"(?:^|[\s\"'(`=:])/\w+/|\bhost ?name", re.MULTILINE)
"""A path from the root, or a host's name."""
LEAST_REPETITIONS = 3


@pytest.fixture(params=NAMES)
def name(request):
    return request.param


@pytest.mark.night
@pytest.mark.minutes(3)
@pytest.mark.parametrize("name", NAMES)
def test_the_simulator_differs_from_a_real_kafka_in_the_listed_rows_alone(
    name, tmp_path, monkeypatch
):
    monkeypatch.setenv("LOGQUAKE_PURE", "0")
    simulated = truth_table.simulate(name, tmp_path)
    found = sorted(r.name for r in truth_table.outside(simulated, truth_table.kept(name).runs))
    listed = sorted(each.row for each in LISTED if each.scenario == name)
    assert found == listed, "see docs/real-cluster/README.md: find the cause of what is new"


def test_there_are_twelve_scenarios_and_four_loads():
    loads = [name for name in NAMES if name.startswith("load-")]
    assert (len(NAMES), len(loads)) == (16, 4)
    assert all(load(truth_table.PLACE / f"{n}.yaml").faults for n in NAMES if n not in loads)
    assert {path.stem for path in truth_table.PLACE.glob("*.json")} == set(NAMES)


def test_every_scenario_has_the_preset_of_the_machine(name):
    cluster = load(truth_table.PLACE / f"{name}.yaml").cluster
    preset = yaml.safe_load((truth_table.CALIBRATED / "hardware.yaml").read_text())
    assert f"{cluster.network.client.p50_us}us" == preset["network"]["client"]["p50"]


def test_the_data_is_of_the_scenario_that_is_there(name):
    found = truth_table.kept(name)
    assert found.scenario == truth_table.scenario_leaves(truth_table.PLACE / f"{name}.yaml")
    assert len(found.runs) >= LEAST_REPETITIONS
    assert all(run.is_real and run.kafka.startswith("4.") for run in found.runs)


def test_each_scenario_can_be_rehearsed_by_a_user_without_root(name, monkeypatch):
    monkeypatch.setattr(limits, "available_bytes", lambda: None)
    scenario = load(truth_table.PLACE / f"{name}.yaml")
    limits.check(scenario, clients_of(scenario), 1.0)


def test_the_data_names_no_machine():
    assert PRIVATE.search('"log": "/var/kafka/0"')
    calibrated = [*truth_table.CALIBRATED.iterdir()]
    assert len(calibrated) == 2
    for path in [*truth_table.PLACE.glob("*.json"), *calibrated, truth_table.README]:
        assert not PRIVATE.search(path.read_text(encoding="utf-8")), path.name


def test_every_listed_difference_has_an_explained_cause_and_every_cause_a_difference():
    explained = truth_table.causes(README)
    assert explained
    assert {each.cause for each in LISTED} == explained
    assert {each.scenario for each in LISTED} <= set(NAMES)


def test_repetitions_of_a_real_cluster_are_inside_their_own_range(name):
    runs = truth_table.kept(name).runs
    assert truth_table.outside(runs, runs) == []


def test_a_planted_difference_of_each_kind_is_outside():
    runs = truth_table.kept("leader-killed-acks-1").runs
    rows = rows_of(runs, runs, Tolerance())
    held = next(
        row.name
        for row in rows
        if row.name.startswith("expectation missed")
        and not any(run.numbers[row.name].value for run in runs)
    )
    kinds = {}
    for row in rows:
        is_step = row.kind == "sequence" or row.name.startswith("step")
        if not is_step and all(run.numbers[row.name].value for run in runs):
            kinds.setdefault(row.kind, row.name)
    assert set(kinds) == {"time", "latency", "records", "events"}
    for row in kinds.values():
        changed = [
            replace(run, numbers=run.numbers | {row: number._replace(value=number.value * 3)})
            for run in runs
            for number in [run.numbers[row]]
        ]
        assert [each.name for each in truth_table.outside(changed, runs)] == [row]
    late = [
        replace(
            run,
            steps={
                name: [s._replace(since_us=s.since_us * 3) for s in steps]
                for name, steps in run.steps.items()
            },
        )
        for run in runs
    ]
    assert [each.name[:6] for each in truth_table.outside(late, runs)] == ["step 1", "step 2"]
    short = [replace(run, steps={n: s[:-1] for n, s in run.steps.items()}) for run in runs]
    assert [e.name for e in truth_table.outside(short, runs)] == ["sequence of orders-0"]
    missed = [
        replace(run, numbers=run.numbers | {held: run.numbers[held]._replace(value=1)})
        for run in runs
    ]
    assert [e.name for e in truth_table.outside(missed, runs)] == [held]


def test_a_measured_run_is_the_same_after_it_was_kept():
    run = truth_table.kept("coordinator-killed").runs[0]
    again = from_plain(json.loads(json.dumps(as_plain(run))), run.directory)
    assert again == run


def test_damaged_data_says_what_to_do(tmp_path):
    plain = as_plain(truth_table.kept("load-small").runs[0])
    del plain["partitions"]
    with pytest.raises(SimulationError, match=r"x\.json: damaged: partitions: missing; .*rehearse"):
        from_plain(plain, tmp_path / "x.json")


def test_a_renewed_table_keeps_causes_and_gives_none_to_what_is_new():
    old, *_ = LISTED
    new = truth_table.Difference(old.scenario, "a new row", "1", "2", truth_table.NO_CAUSE)
    moved = replace(old, simulated="3", cause=truth_table.NO_CAUSE)
    text = truth_table.renewed(README, [moved, new])
    assert truth_table.listed(text) == [replace(old, simulated="3"), new]
    assert new.cause not in truth_table.causes(text)
    assert truth_table.renewed(text, truth_table.listed(text)) == text


def test_unknown_scenarios_are_refused(capsys):
    with pytest.raises(SystemExit):
        truth_table.main(["measure", "nothing-of-the-kind"])
    assert "found nothing-of-the-kind; allowed: clients-cut, " in capsys.readouterr().err
