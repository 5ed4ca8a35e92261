"""The hunt: the same seed hunts the same, it is resumed, and it finds what is planted."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from sim.cli import app
from sim.errors import SimulationError
from sim.faults.process import Crash
from sim.hunting import sought
from sim.hunting.fingerprint import Finding
from sim.hunting.search import hunt as hunts
from sim.hunting.search import page
from sim.hunting.search.corpus import Corpus, unseen
from sim.hunting.search.execution import Scout, Task, execute, read_execution
from sim.hunting.search.hunt import Hunt, Plan
from sim.hunting.search.menu import Menu, micros
from sim.hunting.search.points import KEPT, Point, Points
from sim.hunting.search.schedule import Breeder, Parent, Schedule, data_of, from_json
from sim.rng import Stream
from sim.scenario.loader import load_data
from sim.scenario.overrides.vary import variation
from sim.scenario.run.runner import run
from sim.suite.pool import Pool
from sim.suite.statistics import never_above, proportion_interval
from tests.hunting.losing import CRASH, LATE, SHOP, TOPIC, losing, written

HERE = Pool(1, None)
PLAIN = losing(
    [],
    producers=[SHOP | {"rate": "20/s", "stop": "3s"}],
    consumers=[{"group": "audit", "topics": ["orders"]}],
    run={"for": "4s", "drain.timeout": "20s"},
)
NEVER = lambda: False  # noqa: E731 - a test for a request to stop


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(hunts, "GENERATION", 4)


def hunted(directory, runs, plain=PLAIN, **plan):
    plan = {"looking_for": "lost_acked", "faults": 2, "seed": 3} | plan
    found = Hunt(Plan("plain", plain, **plan), directory)
    found.go(HERE, runs_max=runs, should_stop=NEVER)
    return found


SENT = ("broker-1 FetchResponse broker-2", "shop ProduceRequest broker-1")


def menu(plain=PLAIN, kinds=(), messages=SENT):
    return Menu(load_data(plain), kinds, messages)


# -- the same seed hunts the same ------------------------------------------------------------------


def test_a_hunt_that_was_stopped_and_resumed_is_one_that_was_not(tmp_path):
    whole = hunted(tmp_path / "whole", 9)
    hunted(tmp_path / "parts", 3)
    journal = tmp_path / "parts" / hunts.JOURNAL
    # The rest of a line of a process that was killed.
    journal.write_text(journal.read_text() + '{"number": 3, "ori')
    parts = hunted(tmp_path / "parts", 9)
    assert [e.as_json() for e in parts.executions] == [e.as_json() for e in whole.executions]
    assert parts.corpus.counts == whole.corpus.counts
    assert whole.executions[0].origin == "calm"
    assert {"uniform", "guided"} <= {e.origin for e in whole.executions}
    other = hunted(tmp_path / "other", 5, seed=4)
    assert other.executions[1].schedule != whole.executions[1].schedule


def test_results_are_added_in_their_order_whichever_ends_first(tmp_path):
    class Backwards(Pool):
        def results(self, work, tasks, should_stop):
            found = list(super().results(work, tasks, should_stop))
            yield from reversed(found)

    whole = hunted(tmp_path / "whole", 6)
    other = Hunt(whole.plan, tmp_path / "other")
    other.go(Backwards(1, None), runs_max=6, should_stop=NEVER)
    assert [e.as_json() for e in other.executions] == [e.as_json() for e in whole.executions]


def test_a_directory_of_another_hunt_or_of_something_else_is_refused(tmp_path):
    hunted(tmp_path / "hunt", 1)
    with pytest.raises(SimulationError, match="another seed; a hunt is resumed"):
        hunted(tmp_path / "hunt", 1, seed=4)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").touch()
    with pytest.raises(SimulationError, match="holds something else"):
        hunted(tmp_path / "mine", 1)
    journal = tmp_path / "hunt" / hunts.JOURNAL
    journal.write_text("damaged\n" + journal.read_text())
    with pytest.raises(SimulationError, match=r"executions\.jsonl:1: damaged"):
        hunted(tmp_path / "hunt", 1)


def test_who_only_watches_a_run_changes_nothing_of_it(tmp_path):
    scenario = load_data(losing([CRASH | {"for": "3s"}], run={"for": "6s"}))
    scout = Scout(scenario, is_waiting=False, hears_messages=True)
    watched = run(scenario, 1, tmp_path / "watched", level="facts", hooks=scout)
    alone = run(scenario, 1, tmp_path / "alone", level="facts")
    for key in ("trace_digest", "disk_digest", "events", "simulated_us"):
        assert watched.card[key] == alone.card[key]
    assert len(scout.coverage.cells) > 50
    assert {"leader-elected", "unclean-start"} <= set(scout.coverage.landmarks)
    names = {point.name for point in scout.coverage.points.kept()}
    assert {"append", "acknowledgement", "partition-change", "node-crashed"} <= names


# -- it finds what is there ------------------------------------------------------------------------


def test_planted_a_leader_that_answers_alone_is_found_and_its_capsule_shows_it(tmp_path):
    weak = PLAIN | {
        "producers": [SHOP | {"rate": "60/s", "stop": "3s"}],
        "faults": [LATE],
        "run": {"for": "5s"},
    }
    found = hunted(tmp_path / "hunt", 1, weak | {"faults": []}, kinds=("crash", "delay"))
    late = data_of(weak, Schedule((LATE, CRASH | {"for": "2s"}), 1))
    task = Task(99, "uniform", Schedule((LATE,), 1), late, sought.parse("lost_acked"))
    shown = execute(task, NEVER)
    assert shown.findings == (Finding("lost_acked", ("acks-1", "truncated")),)
    assert shown.kinds == ("delay", "crash")
    assert read_execution(json.loads(json.dumps(shown.as_json()))) == shown
    assert found.kinds == ("crash", "delay")


def test_the_command_writes_a_page_and_capsules_and_fails_if_it_finds(tmp_path, monkeypatch):
    weak = PLAIN | {"topics": {"orders": TOPIC | {"replication.factor": 1}}}
    file = written(tmp_path / "weak.yaml", weak)
    words = ["hunt", str(file), "--runs", "7", "--jobs", "1", "--kinds", "power-loss",
             "--looking-for", "lost_acked", "--out", str(tmp_path / "hunt"),
             "--shrink", "0s", "--json"]  # fmt: skip
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1, done.output
    told = json.loads(done.stdout)
    (first, *_) = told["found"]
    assert (
        first["fingerprint"] == "lost_acked: acks-1, only-replica" or first["kind"] == "lost_acked"
    )
    assert (tmp_path / "hunt" / "found").is_dir()
    checked = CliRunner().invoke(app, ["check", first["capsule"]])
    assert checked.exit_code == 1
    assert "it still happens" in checked.output
    text = (tmp_path / "hunt" / "hunt.md").read_text()
    assert "| lost_acked: " in text
    assert "## Never reached" in text
    assert told["executions"]["all"] == 7
    again = CliRunner().invoke(app, words)
    assert json.loads(again.stdout)["found"] == told["found"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kinds", "crush"], "--kinds: found 'crush'; allowed: crash"),
        (["--kinds", "delete-topic"], "needs what no search can draw"),
        (["--looking-for", "love"], "--looking-for: found 'love'"),
        (["--for", "soon"], "--for: "),
    ],
)
def test_what_cannot_be_hunted_is_refused(tmp_path, words, message):
    file = written(tmp_path / "plain.yaml", PLAIN)
    out = ["--runs", "2", "--jobs", "1", "--out", str(tmp_path / "hunt")]
    done = CliRunner().invoke(app, ["hunt", str(file), *out, *words])
    assert done.exit_code == 2
    assert message in done.output


# -- schedules -------------------------------------------------------------------------------------


def test_every_kind_that_goes_wrong_is_drawn_and_can_be_run():
    every = menu()
    seen = {}
    for number in range(600):
        strike = every.draw(Stream(1, f"draw/{number}"))
        seen.setdefault(strike["do"], []).append(strike)
    assert set(seen) == set(every.kinds)
    assert {"crash", "partition", "power-loss", "slow-disk", "torn-write", "hold"} <= set(seen)
    assert not {"delete-topic", "alter-config", "one-of"} & set(seen)
    for kind, strikes in seen.items():
        runnable = 0
        for strike in strikes:
            try:
                load_data(PLAIN | {"faults": [strike]})
            except SimulationError:
                continue
            runnable += 1
        assert runnable * 5 >= len(strikes), (kind, strikes[0])


def test_no_aim_takes_the_disk_of_a_voter_which_kafka_promises_nothing_for():
    point = Point("quorum-candidate", 3_000_000, "controller-1")
    wiping = menu(kinds=("wiped-disk", "crash"))
    strikes = [wiping.aimed(point, Stream(1, f"aim/{n}")) for n in range(60)]
    hit = {(strike["do"], strike["target"] == "controller-1") for strike in strikes}
    assert ("crash", True) in hit
    assert ("wiped-disk", False) in hit
    assert ("wiped-disk", True) not in hit


def test_a_fault_is_aimed_at_a_step_that_a_machine_has_named():
    point = Point("append", 2_345_678, "broker-2")
    strikes = [menu().aimed(point, Stream(1, f"aim/{n}")) for n in range(60)]
    near = [micros(s["at"]) - point.at_us for s in strikes]
    assert {0, 1} <= set(near)
    assert max(near) <= 50_000
    hit = [s for s in strikes if "broker-2" in (s.get("target"), s.get("between"), s.get("from"))]
    assert len(hit) > 40


def test_a_child_has_faults_of_its_parents_and_no_more_than_allowed():
    breeder = Breeder(PLAIN, menu(), 2)
    first = Parent(Schedule((CRASH | {"for": "1s"},), 5), (Point("append", 1_000_000, "broker-1"),))
    second = Parent(Schedule(({"at": "1s", "do": "pause", "target": "broker-3", "for": "1s"},), 6))
    children = [breeder.child([first, second], Stream(2, f"{n}"))[0] for n in range(30)]
    assert all(1 <= len(child.faults) <= 2 for child in children)
    kept = sum(any(f["do"] == Crash.kind for f in child.faults) for child in children)
    assert kept > 8
    assert sum(child.seed == 5 for child in children) > 15
    assert from_json(json.loads(json.dumps(children[0].as_json()))) == replace(
        children[0], faults=tuple(dict(f) for f in children[0].faults)
    )


def test_settings_are_searched_if_they_are_varied():
    varied = (variation("acks=1,all"),)
    made = [Breeder(PLAIN, menu(), 1, varied).uniform(Stream(3, f"{n}"))[0] for n in range(12)]
    configs = {data_of(PLAIN, each)["producers"][0]["config"]["acks"] for each in made}
    assert configs == {1, "all"}


# -- rarity and estimates --------------------------------------------------------------------------


def test_what_few_runs_reach_is_continued():
    corpus = Corpus()
    common, rare = Parent(Schedule(seed=1)), Parent(Schedule(seed=2))
    assert corpus.add(common, [1, 2]) == 2
    assert corpus.add(rare, [1, 2, 3]) == 1
    for _ in range(20):
        assert corpus.add(common, [1, 2]) == 0
    assert corpus.energy(1) > 100 * corpus.energy(0)
    assert all(corpus.pick(Stream(1, f"{n}")) is rare for n in range(20))
    assert corpus.entries[1].chosen == 20


def test_points_are_the_first_one_and_some_that_are_spread_over_the_run():
    points = Points()
    for at in range(100):
        points.note("append", at, "broker-1")
    points.note("boot", -5, "broker-1")
    assert [p.at_us for p in points.kept()] == [0, 15, 31, 63]
    assert len(points.kept()) == KEPT


def test_states_that_were_seen_once_say_how_many_were_not_seen():
    found = unseen([[1, 2], [1, 3], [1, 4], [1, 2]])
    assert (found.seen, found.once) == (4, 2)
    assert found.estimated == pytest.approx(4 + 2 * 1 / (2 * 2))
    assert found.discovery == 0.5
    assert unseen([]).discovery == 1.0


def test_intervals_are_those_of_clopper_and_pearson_and_the_rule_of_three():
    # Of 8 in 20: R's binom.test(8, 20).
    assert proportion_interval(8, 20) == pytest.approx((0.1911901, 0.6394574), abs=1e-6)
    assert proportion_interval(0, 10) == pytest.approx((0.0, 0.3084971), abs=1e-6)
    assert proportion_interval(10, 10) == pytest.approx((0.6915029, 1.0), abs=1e-6)
    assert never_above(300) == pytest.approx(3 / 300, rel=0.01)
    assert never_above(0) == 1.0


def test_the_page_counts_uniform_draws_alone_for_what_is_never_there():
    looked = sought.parse("lost_acked")
    lost = Finding("lost_acked", ("acks-1",))
    base = execute(Task(0, "calm", Schedule(), data_of(PLAIN, Schedule()), looked), NEVER)
    made = [replace(base, number=n, origin="uniform" if n < 5 else "guided",
                    findings=(lost,) if n == 9 else ()) for n in range(1, 10)]  # fmt: skip
    some = SimpleNamespace(
        executions=[base, *made], sought=looked, kinds=("crash",), corpus=Corpus(), states=9,
        first_found={lost: made[-1]}, plan=Plan("plain", PLAIN, "lost_acked", 2, 1),
    )  # fmt: skip
    found = page.numbers(some, {lost: "lost.capsule.yaml"})
    assert found["sought"][0]["draws"] == 4
    assert found["sought"][0]["high"] == pytest.approx(never_above(4))
    assert (found["found"][0]["uniform"], found["found"][0]["guided"]) == (0, 1)
    assert "in none of 4 uniform draws" in page.markdown(found)
