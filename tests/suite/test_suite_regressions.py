"""The command `logquake check --baseline`, with real runs: what got worse is named, and no more.

A baseline of two small scenarios is written once. A setting that decides, a longer time-out and a
planted defect turn the check red, each with the number that it made worse; twenty checks of
unchanged scenarios with seeds of their own stay green.
"""

import os
import shutil
import subprocess
import sys

import pytest
from typer.testing import CliRunner

from sim.cli import app
from tests.scenarios import planted
from tests.scenarios.compiled import COMPILED
from tests.scenarios.run_kit import ROOT, text_of

pytestmark = pytest.mark.slow

SEEDS = 9
"""So few that two scenarios can be compared: fewer are refused."""

ONE = {"partitions": 1}
LEADER = "leader of orders-0"
QUICK = {"broker.session.timeout.ms": 2_000, "broker.heartbeat.interval.ms": 500}


def alone(minimum):
    """The leader is cut from its followers, the ISR shrinks to it, and it dies.

    An unclean election then gives the partition to who lacks what the leader acknowledged alone.
    """
    faults = [
        {"at": "1s", "do": "partition", "between": LEADER, "and": "all brokers", "for": "4s"},
        {"at": "4s", "do": "crash", "target": LEADER},
    ]
    lag = {"replica.lag.time.max.ms": 1_000, "unclean.leader.election.enable": True}
    topic = ONE | {"config": {"min.insync.replicas": minimum}}
    return text_of(
        faults=faults, lasts="7s", topic=topic, config=QUICK | lag, producer={"rate": "100/s"},
        expect={"sent": 700},
    )  # fmt: skip


def failover(session_ms):
    """The leader dies; another one leads when its session is over."""
    crash = {"at": "2s", "do": "crash", "target": LEADER}
    return text_of(
        faults=[crash], lasts="7s", topic=ONE, producer={"rate": "100/s"},
        config=QUICK | {"broker.session.timeout.ms": session_ms}, expect={"lost_acked": 0},
    )  # fmt: skip


def words(first, baseline, *more):
    seeds = f"{first}..{first + SEEDS - 1}"
    return [
        "check",
        "scenarios",
        "--seeds",
        seeds,
        "--baseline",
        str(baseline),
        *more,
        "--no-cache",
    ]


def check(cwd, *arguments):
    outside = {name: value for name, value in os.environ.items() if not name.startswith("GITHUB_")}
    return subprocess.run(
        [sys.executable, "-m", "sim", *arguments], cwd=cwd, capture_output=True, text=True,
        env=outside | COMPILED | {"PYTHONPATH": str(ROOT)}, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A directory of scenarios, and the baseline that was written there."""
    place = tmp_path_factory.mktemp("baseline")
    (place / "scenarios").mkdir()
    (place / "scenarios" / "alone.yaml").write_text(alone(2))
    (place / "scenarios" / "failover.yaml").write_text(failover(2_000))
    done = check(place, *words(1, "base.json", "--update"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr.endswith(f"base.json: written, {2 * SEEDS} runs\n")
    return place


@pytest.fixture
def place(written, tmp_path):
    """A copy whose scenarios may be changed."""
    shutil.copytree(written / "scenarios", tmp_path / "scenarios")
    shutil.copy(written / "base.json", tmp_path)
    return tmp_path


def regressed(text):
    """What was called worse: scenario and number."""
    lines = [line for line in text.splitlines() if line.startswith("regressed: ")]
    return [tuple(line.removeprefix("regressed: ").split(": ")[:2]) for line in lines]


def test_min_insync_replicas_turned_off_is_named_by_what_it_loses(place):
    (place / "scenarios" / "alone.yaml").write_text(alone(1))
    done = check(place, *words(101, "base.json"))
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{2 * SEEDS} of {2 * SEEDS} runs held" in done.stdout, "no expectation speaks of it"
    found = regressed(done.stdout)
    assert ("scenarios/alone.yaml", "lost_acked") in found
    assert {path for path, _ in found} == {"scenarios/alone.yaml"}
    assert f"lost_acked: 0 [0 to 0] over {SEEDS} seeds then" in done.stdout
    assert "scenarios/alone.yaml: the scenario was changed" in done.stdout


def test_a_longer_session_is_named_by_the_longer_outage(place):
    (place / "scenarios" / "failover.yaml").write_text(failover(4_000))
    done = check(place, *words(201, "base.json"))
    assert done.returncode == 1, done.stdout + done.stderr
    found = regressed(done.stdout)
    assert ("scenarios/failover.yaml", "unavailable.produce.max") in found
    assert {path for path, _ in found} == {"scenarios/failover.yaml"}


def test_a_planted_defect_is_named_by_the_latency_it_costs(place, monkeypatch):
    """Nothing is lost and every expectation holds: only the baseline knows."""
    monkeypatch.chdir(place)
    for variable in ("GITHUB_STEP_SUMMARY", "GITHUB_ACTIONS"):
        monkeypatch.delenv(variable, raising=False)
    planted.followers_are_not_woken(monkeypatch)
    done = CliRunner().invoke(app, words(301, "base.json", "--jobs", "1"))
    assert done.exit_code == 1, done.output
    assert f"{2 * SEEDS} of {2 * SEEDS} runs held" in done.output
    found = regressed(done.output)
    assert {path for path, name in found if name == "produce.p50"} == {
        "scenarios/alone.yaml",
        "scenarios/failover.yaml",
    }
    assert not {name for _, name in found} & {"lost_acked", "duplicated", "reordered"}


def test_the_planted_defect_gone_the_same_seeds_are_green(place):
    """The twin of the three above, with their seeds."""
    for first in (101, 201, 301):
        done = check(place, *words(first, "base.json"))
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("again", range(20))
def test_an_unchanged_check_with_other_seeds_stays_green(written, again):
    done = check(written, *words(1_000 + 100 * again, "base.json"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert regressed(done.stdout) == []
    assert "12 numbers compared" in done.stdout
