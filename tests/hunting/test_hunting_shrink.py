"""Shrinking: the same fingerprint, fewer and rounder things, minimal by one."""

import json

import pytest
import yaml
from typer.testing import CliRunner

from sim.cli import app
from sim.errors import SimulationError
from sim.hunting import capsule as capsules
from sim.hunting import sought
from sim.hunting.fingerprint import Finding
from sim.hunting.replay import Replay, replay
from sim.hunting.shrinking.lean import lean
from sim.hunting.shrinking.moves import STAGES, pinned, rounder_times, smaller_numbers
from sim.hunting.shrinking.numbers import halved, numbers, value_at
from sim.hunting.shrinking.shrink import Shrinker, Task, attempt, claimed
from sim.scenario.loader import load_data, load_text
from sim.scenario.run.runner import run
from sim.suite.pool import Pool
from tests.hunting.losing import CRASH, LATE, SHOP, losing, smaller_by_one

LOST = Finding("lost_acked", ("acks-1", "truncated"))
LOSS = sought.parse("lost_acked")
PAUSE = {"at": "4s", "do": "pause", "target": "broker-3", "for": "1234ms"}


class Rule(Pool):
    """Runs nothing: a scenario fails as long as a rule says so."""

    def __init__(self, fails):
        super().__init__(1, None)
        self.fails, self.seen = fails, []

    def results(self, work, tasks, should_stop):
        for number, task in enumerate(tasks):
            self.seen.append(task.data)
            hits = tuple((f["do"], "1500000", "") for f in task.data["faults"])
            yield number, Replay((LOST,) if self.fails(task.data) else (), hits)


def shrunk(rule, plain, **options):
    return Shrinker(LOST, LOSS, 1, Rule(rule), options.pop("processes", 1), **options).shrink(plain)


def at(data, kind):
    return next((f for f in data["faults"] if f["do"] == kind), None)


def needs_both(data):
    """Fails with a crash and a delay, for two brokers, at 40 records a second."""
    producers = data.get("producers") or [{}]
    rate = int(str(producers[0].get("rate", "0/s")).removesuffix("/s"))
    crash, late = at(data, "crash"), at(data, "delay")
    return bool(crash and late) and data["cluster"].get("brokers", 3) >= 2 and rate >= 40


def test_every_single_fault_is_needed_and_half_of_every_number_is_too_little():
    found = shrunk(needs_both, losing([LATE, CRASH, PAUSE]))
    assert found.is_minimal
    assert [f["do"] for f in found.data["faults"]] == ["delay", "crash"]
    assert found.data["cluster"]["brokers"] == 2
    assert found.data["producers"][0]["rate"] == "50/s"
    for stage in STAGES:
        for move in stage(found.data):
            try:
                load_data(move.data)
            except (SimulationError, KeyError):
                continue
            assert move.data == found.data or not needs_both(move.data), move.words


def test_the_result_is_the_same_however_many_moves_are_tried_at_once():
    one, four = (shrunk(needs_both, losing(), processes=n) for n in (1, 4))
    assert one.data == four.data
    assert one.steps == four.steps


def test_a_budget_ends_it_and_says_that_it_is_not_known_to_be_the_smallest():
    found = shrunk(needs_both, losing([LATE, CRASH, PAUSE]), runs_max=4)
    assert not found.is_minimal
    assert found.runs <= 4
    assert needs_both(found.data)


def test_a_failure_that_does_not_happen_is_not_shrunk():
    with pytest.raises(SimulationError, match="does not happen again: lost_acked: acks-1"):
        shrunk(lambda _data: False, losing())


def test_a_run_that_was_stopped_is_no_answer():
    class Stopped(Rule):
        def results(self, work, tasks, should_stop):
            for number, _ in enumerate(tasks):
                yield number, Replay((LOST,), complete=False)

    with pytest.raises(SimulationError, match="does not happen again"):
        Shrinker(LOST, LOSS, 1, Stopped(None), 1).shrink(losing())


# -- without runs ----------------------------------------------------------------------------------


def test_the_scenario_of_a_run_is_made_as_short_as_its_meaning_allows():
    scenario = load_data(losing())
    whole = yaml.safe_load(scenario.as_yaml())
    short = lean(whole)
    assert load_data(short).digest == scenario.digest
    assert len(str(whole)) > 10 * len(str(short))
    small = SHOP | {"config": {"acks": "1"}}
    assert short["producers"] == [small]


@pytest.mark.parametrize(
    ("place", "value", "half"),
    [
        (("run", "for"), "5s", "2500ms"),
        (("run", "for"), "1500ms", None),
        (("faults", 0, "by"), "50ms", "25ms"),
        (("faults", 0, "by"), "1ms", None),
        (("producers", 0, "rate"), "25/s", "12/s"),
        (("producers", 0, "rate"), "1/s", None),
        (("producers", 0, "record.size"), "1KiB", "512B"),
        (("cluster", "brokers"), 3, 1),
        (("cluster", "brokers"), 1, None),
        (("faults", 0, "ratio"), 0.5, 0.25),
        (("faults", 0, "one-way"), True, None),
        (("faults", 0, "from"), "broker-1", None),
    ],
)
def test_a_number_is_halved_in_its_own_notation_down_to_its_floor(place, value, half):
    assert halved(place, value) == half


def test_instants_become_rounder_and_never_another_order_of_magnitude():
    plain = losing([CRASH | {"at": "2347ms"}])
    found = [move.data["faults"][0]["at"] for move in rounder_times(plain)
             if move.words.startswith("faults.0.at")]  # fmt: skip
    near = "2s 3s 2s 2500ms 2300ms 2400ms 2300ms 2350ms 2340ms 2350ms 2345ms 2350ms"
    assert found == near.split()


def test_numbers_are_servers_replicas_clients_faults_and_time():
    found = {place: value_at(losing(), place) for place in numbers(losing())}
    assert found[("cluster", "brokers")] == 3
    assert found[("topics", "orders", "replication.factor")] == 3
    assert found[("producers", 0, "rate")] == "200/s"
    assert found[("faults", 0, "by")] == "50ms"
    assert found[("run", "for")] == "8s"
    assert not any("config" in place or "seed" in place for place in found)
    with pytest.raises(KeyError):
        value_at(losing(), ("faults", 7, "at"))


def test_replicas_go_with_their_brokers():
    first = next(move for move in smaller_numbers(losing()) if "1 brokers" in move.words)
    assert first.data["topics"]["orders"]["replication.factor"] == 1
    assert losing()["topics"]["orders"]["replication.factor"] == 3


def test_what_a_seed_has_drawn_is_written_out():
    window = CRASH | {"at": "2s..3s"}
    fixed = pinned(losing([LATE, window]), [("delay", "1000000", ""), ("crash", "2345000", "")])
    assert fixed["faults"] == [LATE, CRASH | {"at": "2345ms"}]
    choices = [{"do": kind, "target": "broker-1"} for kind in ("crash", "pause")]
    either = {"at": "2s..3s", "do": "one-of", "of": choices}
    fixed = pinned(losing([either]), [("pause", "2500000", "")])
    assert fixed["faults"] == [{"at": "2500ms", "do": "pause", "target": "broker-1"}]
    assert pinned(losing(), [("delay", "1", ""), ("crash", "2", "")]) is None
    assert pinned(losing(), [("delay", "1", "")]) is None


def test_the_result_claims_and_expects_that_it_does_not_fail():
    found = claimed(losing(), Finding("down", ()), sought.parse("down>60s"))
    assert next(iter(found)) == "claim"
    assert found["expect"] == {"unavailable.produce.max": "at most 60s"}
    assert claimed(losing(), LOST, LOSS)["expect"] == {"lost_acked": 0}
    for kind, text in (
        ("duplicated", "duplicated>3"),
        ("stuck", "stuck"),
        ("divergent", "divergent"),
    ):
        load_data(claimed(losing(), Finding(kind, ()), sought.parse(text)))


# -- with runs -------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_run_is_shrunk_to_what_a_person_reads_in_one_look(tmp_path):
    calm = {"at": "6s", "do": "slow-cpu", "target": "broker-2", "factor": 2, "for": "1s"}
    plain = losing([LATE, CRASH, calm])
    run(load_text(yaml.safe_dump(plain)), out=tmp_path / "run", level="facts")
    out = tmp_path / "small.yaml"
    words = ["shrink", str(tmp_path / "run"), "--jobs", "1", "--out", str(out), "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1, done.output
    told = json.loads(done.stdout)
    assert told["minimal"]
    assert told["fingerprint"] == {"kind": "lost_acked", "chain": ["acks-1", "truncated"]}
    assert told["other_seeds"]["tried"] == 5
    ended = capsules.opened(tmp_path / "small.capsule.yaml")
    assert sorted(f["do"] for f in ended.data["faults"]) == ["crash", "delay"]
    assert len(out.read_text().splitlines()) <= 20
    assert capsules.check(ended).happens
    for changed in smaller_by_one(ended.data):
        found = replay(load_data(changed), ended.seed, ended.sought)
        assert ended.finding not in found.findings, changed


def test_a_candidate_that_cannot_be_run_is_none():
    assert (
        attempt(Task(losing(producers=[SHOP | {"topic": "none"}]), 1, LOSS), lambda: False) is None
    )


def test_a_run_without_a_failure_is_refused(tmp_path):
    plain = losing([], producers=[SHOP | {"rate": "1/s", "stop": "1s"}], run={"for": "1s"})
    run(load_text(yaml.safe_dump(plain)), out=tmp_path / "run", level="facts")
    done = CliRunner().invoke(app, ["shrink", str(tmp_path / "run"), "--jobs", "1"])
    assert done.exit_code == 2
    assert "is in this run; allowed: a run with a failure" in done.output
