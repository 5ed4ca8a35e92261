"""Scenario files are tests of pytest: collected, with seeds, and told as people read them."""

import os
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from tests.scenarios.run_kit import ROOT, text_of

SHORT = {"lasts": "1s", "producer": {"rate": "100/s"}, "topic": {"partitions": 1}}


def in_pytest(cwd, *words):
    """Pytest in a process of its own; the plugin by its entry point if it is installed."""
    known = [entry.name for entry in entry_points(group="pytest11")]
    plugin = [] if "logquake" in known else ["-p", "sim.suite.pytest_plugin"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *plugin, *words], cwd=cwd,
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False,
    )  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    directory = tmp_path_factory.mktemp("plugin")
    (directory / "pytest.ini").write_text("[pytest]\n")
    (directory / "good.yaml").write_text(text_of(**SHORT, expect={"lost_acked": 0}))
    (directory / "bad.yaml").write_text(text_of(**SHORT, expect={"sent": "at least 999"}))
    (directory / "compose.yaml").write_text("services: {}\n")
    left = directory / "runs" / "good-s1"
    left.mkdir(parents=True)
    (left / "run.json").write_text("{}")
    (left / "scenario.yaml").write_text(text_of(**SHORT))
    return directory


def test_every_scenario_is_collected_with_every_seed_and_nothing_else(place):
    done = in_pytest(place, "--collect-only", "-q", "--logquake-seeds", "3,5..6")
    found = [line for line in done.stdout.splitlines() if "::" in line]
    assert found == [
        f"{name}.yaml::seed-{seed}" for name in ("bad", "good") for seed in (3, 5, 6)
    ], done.stdout + done.stderr
    assert "6 tests collected" in done.stdout


@pytest.mark.slow
def test_what_holds_passes_and_what_does_not_says_asked_and_found(place):
    done = in_pytest(place, "-q", ".")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "1 failed, 1 passed" in done.stdout
    assert "bad.yaml, seed-1" in done.stdout
    assert "sent: asked at least 999, found 100" in done.stdout
    assert "Traceback" not in done.stdout
    assert "runs/check/bad-s1" in done.stdout
    assert (place / "runs" / "check" / "bad-s1" / "verdict.json").exists()
    assert not (place / "runs" / "check" / "good-s1").exists()


@pytest.mark.slow
def test_a_file_that_cannot_be_run_is_an_error_with_its_line(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\nlogquake_seeds = 1..2\n")
    (tmp_path / "typo.yaml").write_text(text_of(**SHORT).replace("acks", "acsk"))
    done = in_pytest(tmp_path, "-q")
    assert done.returncode == 2
    assert "typo.yaml:" in done.stdout
    assert "did you mean acks?" in done.stdout


@pytest.mark.slow
def test_pytest_scenarios_runs_them_in_this_checkout_too():
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only",
         "scenarios/", "--logquake-seeds", "1..2"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "scenarios/quickstart.yaml::seed-2" in done.stdout, done.stdout + done.stderr
