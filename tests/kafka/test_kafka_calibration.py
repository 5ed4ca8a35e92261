"""Calibrations of a real Apache Kafka: one that is started for it, and one that runs already."""

import json
import os
import subprocess
import sys
import uuid

import pytest
import yaml

from sim.rehearsal import apache
from tests.kafka import apache as kafka
from tests.kafka.test_kafka_rehearsal import MARK, wait_until_nothing_is_left

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

TOPIC = "calibration"


@pytest.fixture(scope="module", autouse=True)
def programs():
    lacks = apache.missing("mvn", "java", "javac")
    if lacks:
        pytest.skip(f"a calibration needs {' and '.join(lacks)}")


def calibrated(out, *options):
    """Runs the command; returns what it prints in JSON, when no process of it is left."""
    mark = uuid.uuid4().hex
    done = subprocess.run(
        [sys.executable, "-m", "sim", "calibrate", "--out", str(out), "--json", *options],
        capture_output=True, text=True, env={**os.environ, MARK: mark}, check=False,
    )  # fmt: skip
    wait_until_nothing_is_left(mark)
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr
    return json.loads(done.stdout)


def check(found, out):
    """What holds on any machine: everything was measured, and the fit is nearer than before."""
    assert yaml.safe_load((out / "hardware.yaml").read_text())["measured"]["kafka"] == "4.3.1"
    fitted = found["error"]["fitted"]
    assert fitted["after"]["median_factor"] < fitted["before"]["median_factor"]
    assert all(line["real_us"] > 100 for line in found["loads"])


def test_a_cluster_is_started_measured_and_fitted_and_nothing_is_left_behind(tmp_path):
    out = tmp_path / "out"
    found = calibrated(out, "--seconds", "2")
    check(found, out)
    assert found["not_fitted"] == []
    assert {line["load"] for line in found["loads"]} == {
        "single", "busy", "replicated", "large", "flushed", "moved",
        "brisk", "batched", "medium", "read",
    }  # fmt: skip
    assert json.loads((out / "measured" / "run.json").read_text())["complete"]


def test_a_cluster_that_runs_already_is_written_to_in_one_topic_only(tmp_path):
    kafka.bring()
    directory = tmp_path / "data"
    directory.mkdir()
    cluster = kafka.Cluster({1: [directory]}, tmp_path)
    cluster.format(1)
    with cluster:
        [servers] = cluster.servers
        release = apache.found("4.3", None)
        make = release.java("Topics", servers, classes=release.classes())
        line = f"{TOPIC}\t1\t1\t\n"
        subprocess.run(make, input=line, text=True, check=True, capture_output=True)
        options = ["--bootstrap-servers", servers, "--topic", TOPIC, "--yes-produce"]
        out = tmp_path / "out"
        found = calibrated(out, "--seconds", "2", *options)
        again = subprocess.run(
            [sys.executable, "-m", "sim", "calibrate", "--out", str(tmp_path / "x"), *options],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
    check(found, out)
    assert found["measured"]["cluster"] == servers
    assert set(found["not_fitted"]) == {
        "network.same-rack.p50", "network.same-rack.p99/p50",  # one replica alone
        "disk.flush.p50", "disk.flush.p99/p50", "cpu.metadata",
    }  # fmt: skip
    topics = {path.name.rpartition("-")[0] for path in directory.glob("*-[0-9]*")}
    assert topics == {TOPIC, "__cluster_metadata"}, "not even the groups' own topic"
    assert again.returncode == 2
    assert "a calibration writes only to a topic of its own" in again.stderr
