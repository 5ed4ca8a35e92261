"""Fork: the same past, many futures; the curve has its step where the story says."""

import json
import multiprocessing
import re
from dataclasses import replace

import pytest
import yaml
from typer.testing import CliRunner

from sim.cli import app
from sim.errors import SimulationError
from sim.hunting import sought
from sim.hunting.forking.curve import PointOfCurve, curve, drawn, sentence, table
from sim.hunting.forking.future import CAN_FORK, Change, Future, Task, branches, check
from sim.rng import Streams
from sim.scenario.loader import load_data, load_text
from sim.scenario.run.runner import run
from sim.suite.pool import pool
from tests.hunting.losing import CRASH, LATE, SHOP, losing

LOSS = sought.parse("lost_acked")
SMALL = losing(
    [LATE, CRASH | {"for": "2s"}],
    producers=[SHOP | {"rate": "100/s", "stop": "4s"}],
    run={"for": "5s", "seed": 1, "drain.timeout": "5s"},
)
WITHOUT = Change(without=(1,))
BEFORE, AFTER = 2_150_000, 2_900_000
"""The leader dies at 2.2 s; by then a follower has not what was acknowledged 50 ms before."""


def task_of(instants=(BEFORE, AFTER), seeds=(11, 12), change=WITHOUT, **parts):
    return Task(SMALL, 1, instants, seeds, change, LOSS, **parts)


def forked(*tasks):
    with pool(1, apart=True) as some:
        return [found for _, found in some.results(branches, tasks, lambda: False)]


@pytest.fixture(scope="module")
def both():
    """The same futures, forked and replayed."""
    return forked(task_of(forks=True), task_of(forks=False))


needs_forks = pytest.mark.skipif(not CAN_FORK, reason="processes are forked on Linux alone")


@needs_forks
def test_a_forked_future_is_the_one_that_is_replayed_to_the_microsecond(both):
    ways, replayed = both
    assert ways.error == ""
    assert ways.futures == replayed.futures
    assert len(ways.futures) == 4
    forked = multiprocessing.get_context("fork").Process
    assert not [each for each in multiprocessing.active_children() if isinstance(each, forked)]


@needs_forks
def test_without_its_crash_the_data_is_safe_until_the_crash_and_lost_after_it(both):
    (before, after) = curve(both[0].futures, "lost_acked")
    assert (before.at_us, before.hits, before.futures) == (BEFORE, 0, 2)
    assert (after.at_us, after.hits, after.futures) == (AFTER, 2, 2)


@needs_forks
def test_the_past_itself_is_not_touched_by_its_futures(both, tmp_path):
    alone = run(load_text(yaml.safe_dump(SMALL)), 1, tmp_path / "run", level="facts")
    assert both[0].digest == alone.card["trace_digest"]


def test_other_chance_is_another_future_and_the_same_chance_the_same():
    streams, same = Streams(1), Streams(1)
    first = [streams.named("a").unit(), streams.vector("v").units(2).tolist()]
    assert first == [same.named("a").unit(), same.vector("v").units(2).tolist()]
    kept = streams.named("a").unit
    streams.reseed(7)
    same.reseed(7)
    fresh = Streams(7)
    assert kept() == same.named("a").unit() == fresh.named("a").unit()
    assert streams.named("later").unit() == fresh.named("later").unit()
    assert streams.named("a").unit() != Streams(1).named("a").unit()


def test_settings_are_changed_as_an_administrator_changes_them():
    config = {"do": "alter-config", "topic": "orders", "config": {"retention.ms": 60_000}}
    task = task_of(instants=(1_000_000,), seeds=(1,), change=Change(configs=(config,)))
    check(task)
    wrong = {"do": "alter-config", "topic": "orders", "config": {"retention.ms": "soon"}}
    with pytest.raises(SimulationError, match=r"faults\[2\]\.config"):
        check(replace(task, change=Change(configs=(wrong,))))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"instants": (5_000_000,)}, "--at: 5s is not in the workload; allowed: 0s to 5s"),
        ({"change": Change(without=(2,))}, r"--without: found 2; allowed: 0 to 1"),
    ],
)
def test_what_cannot_be_forked_is_refused(parts, message):
    with pytest.raises(SimulationError, match=message):
        check(task_of(**parts))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--at", "soon"], "--at: "),
        (["--at", "2s", "--set", "producers.0.config.acks=all"], "no cluster changes while it"),
        (["--at", "2s", "--set", "nothing"], "allowed: KEY=VALUE"),
    ],
)
def test_the_command_refuses_what_means_nothing(tmp_path, words, message):
    calm = losing([], producers=[SHOP | {"rate": "1/s", "stop": "1s"}], run={"for": "1s"})
    run(load_data(calm), 1, tmp_path / "run", level="facts")
    done = CliRunner().invoke(app, ["fork", str(tmp_path / "run"), *words])
    assert done.exit_code == 2
    assert message in done.output


@pytest.mark.slow
@needs_forks
def test_the_command_draws_the_curve_with_its_step_at_the_crash(tmp_path):
    run(load_data(SMALL), 1, tmp_path / "run", level="facts")
    out = tmp_path / "fork"
    words = ["--at", "2150ms,2300ms", "--seeds", "6", "--without", "1"]
    more = ["--looking-for", "lost_acked", "--out", str(out), "--jobs", "1", "--json"]
    done = CliRunner().invoke(app, ["fork", str(tmp_path / "run"), *words, *more])
    assert done.exit_code == 1, done.output
    told = json.loads(done.stdout)
    hits = [point["hits"] for point in told["curves"]["lost_acked"]]
    assert hits == [0, 6]
    (said,) = told["sentences"]
    assert said.startswith(
        "lost_acked: could no longer be saved from 2.3 s on (100% of the futures"
    )
    assert said.endswith("at 2.15 s still 0%)")
    assert "| 2.3 s | 6 | 6 | 100.0% (54.1% to 100.0%) |" in (out / "fork.md").read_text()
    picture = (out / "lost_acked.svg").read_text()
    assert picture.startswith("<svg")
    assert ">crash</text>" in picture


# -- the curve -------------------------------------------------------------------------------------


def points(*hits):
    futures = [Future(at, seed, ("x",) if seed < n else (), 0, 0)
               for at, n in enumerate(hits) for seed in range(20)]  # fmt: skip
    return curve(futures, "x")


@pytest.mark.parametrize(
    ("hits", "said"),
    [
        ((0, 0, 20, 20), "could no longer be saved from 2e-06 s on (100% of the futures"),
        ((20, 20), "more likely than not from the first instant on"),
        ((0, 20, 3), "more likely than not from 1e-06 s on, but not at every later one"),
        ((0, 5, 8), "at no instant more likely than not (95 % confidence); at most 40%"),
    ],
)
def test_the_moment_is_where_the_interval_leaves_one_half(hits, said):
    assert said in sentence(points(*hits), "x")


def test_the_curve_is_drawn_with_its_intervals_and_its_faults():
    some = points(0, 8, 20)
    assert some[1] == PointOfCurve(1, 8, 20, some[1].low, some[1].high)
    assert (some[1].low, some[1].high) == pytest.approx((0.19119, 0.63946), abs=1e-5)
    picture = drawn(some, "x", [(1, "crash"), (99, "pause")])
    assert picture.count("<circle") == 3
    assert "crash" in picture
    assert "pause" not in picture
    assert list(table(some))[-1] == "| 2e-06 s | 20 | 20 | 100.0% (83.2% to 100.0%) |"


def test_the_axis_has_the_instants_of_all_points_whose_labels_fit():
    def labels(*instants):
        some = [PointOfCurve(at * 1_000_000, 0, 20, 0, 0.1) for at in instants]
        return re.findall(r">([\d.]+ s)</text>", drawn(some, "x", []))

    assert labels(7, 8, 9, 10, 11) == ["7 s", "8 s", "9 s", "10 s", "11 s"]
    few = labels(*range(100))
    assert few[0] == "0 s"
    assert few[-1] == "99 s"
    assert 5 < len(few) < 12
    assert labels(3) == ["3 s"]
