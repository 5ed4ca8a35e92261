"""Rehearsals on a real Apache Kafka: what they leave, and that they leave nothing behind."""

import json
import os
import random
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from sim.rehearsal import apache
from sim.rehearsal.metadata import WARM_UP

pytestmark = pytest.mark.kafka

PATIENCE_S = 30
MARK = "LOGQUAKE_TEST_MARK"
SCENARIO = """
claim: A leader that dies takes no acknowledged record with it, and its group reads on.
cluster:
  kafka: "%s"
  brokers: 3
  combined: 3
  config: {broker.session.timeout.ms: 3000, broker.heartbeat.interval.ms: 500,
    offsets.topic.num.partitions: 2, group.initial.rebalance.delay.ms: 0}
topics:
  orders: {partitions: 2, replication.factor: 3, config: {min.insync.replicas: 2}}
producers:
  - {name: shop, topic: orders, rate: 50/s, record.size: 100B}
  - {name: hurry, topic: orders, rate: 400/s, record.size: 100B, stop: 1500ms,
     config: {linger.ms: 0}}
consumers:
  - {group: billing, topics: [orders], config: {auto.offset.reset: earliest}}
faults:
  - {at: 2s, do: delay, between: [leader of orders-0], by: 20ms, for: 1s}
  - {at: 4s, do: crash, target: leader of orders-0, for: 6s}
run: {for: 15s, then: heal and drain, drain.timeout: 60s, seed: 1}
expect: {lost_acked: 0, divergent: 0, unavailable.produce.max: "1s..25s"}
"""


@pytest.fixture(scope="module", autouse=True)
def programs():
    lacks = apache.missing("mvn", "java", "javac")
    if lacks:
        pytest.skip(f"a rehearsal needs {' and '.join(lacks)}")


def command(scenario, out, *options):
    return [sys.executable, "-m", "sim", "rehearse", str(scenario), "--out", str(out), *options]


def marked(mark):
    """Processes that inherited a mark, by their numbers; those that have ended are none."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
        except OSError:
            continue
        if f"{MARK}={mark}".encode() in environment:
            found.append(int(process.name))
    return found


def listening(addresses):
    """Those of the addresses at which something listens."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    bound = {row[1].partition(":")[0] for row in rows if row[3] == "0A"}

    def as_kernel(address):
        return "".join(f"{int(part):02X}" for part in reversed(address.split(".")))

    return [address for address in addresses if as_kernel(address) in bound]


def addresses_of(out):
    """Every address in the files of names of a rehearsal, but for 127.0.0.1."""
    lines = [line for file in out.glob("real/*.hosts") for line in file.read_text().splitlines()]
    return sorted({line.split()[0] for line in lines} - {"127.0.0.1"})


def wait_until_nothing_is_left(mark):
    end = time.monotonic() + PATIENCE_S
    while marked(mark):
        assert time.monotonic() < end, f"processes {marked(mark)} are still there"
        time.sleep(0.1)


def wait_until_nothing_listens(out):
    """Linux takes a killed process's environment before its sockets (``exit_mm`` comes before
    ``exit_files``), so that one that is no longer marked still listens for a moment."""
    end, addresses = time.monotonic() + PATIENCE_S, addresses_of(out)
    while listening(addresses):
        assert time.monotonic() < end, f"something listens at {listening(addresses)}"
        time.sleep(0.1)


def rehearsed(tmp_path, version):
    scenario, out, mark = tmp_path / "small.yaml", tmp_path / "out", uuid.uuid4().hex
    scenario.write_text(SCENARIO % version)
    done = subprocess.run(
        command(scenario, out, "--json"),
        capture_output=True,
        text=True,
        env={**os.environ, MARK: mark},
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3_000:] + done.stderr
    wait_until_nothing_is_left(mark)
    assert addresses_of(out)
    wait_until_nothing_listens(out)
    return out


def rows(out, table):
    return pq.read_table(out / "trace" / table).to_pylist()


def check(out, version):
    card = json.loads((out / "run.json").read_text())
    verdict = json.loads((out / "verdict.json").read_text())
    assert card["real"] is card["complete"] is True
    assert card["kafka"] == apache.RELEASES[version]
    assert card["noise"]["samples"] > 100
    assert card["unordered_exits"] == []
    records = verdict["records"]
    assert records["sent"] == 1_350 == records["acked"] == records["survived"]
    assert verdict["readers"]["delivered"] == 1_350
    assert verdict["readers"]["undelivered"] == verdict["readers"]["read_lost"] == 0
    assert verdict["unsent_present"] == 0
    assert "ok_unanswered" not in verdict  # nobody saw what the brokers answered
    assert [fault["took_effect"] for fault in verdict["faults"]] == [True, True]
    killed = verdict["faults"][1]["resolved"]
    changes = [row for row in rows(out, "partition_changes") if row["topic"] == "orders"]
    led = [row["leader"] for row in changes if row["partition"] == 0 and row["t_us"] < 4_000_000]
    assert killed == f"broker-{led[-1]}"
    later = [row for row in changes if row["partition"] == 0 and row["t_us"] > 4_000_000]
    assert {row["leader"] for row in later} - {led[-1], -1}
    states = [(row["node"], row["state"]) for row in rows(out, "node_states")]
    assert (killed, "crashed") in states
    assert states.count((killed, "started")) == 2
    assert {row["group"] for row in rows(out, "commits")} == {"billing"}
    check_latencies(out)
    check_warm_up(out, card)


def check_latencies(out):
    """No record has the instant of an outcome that came before it was sent."""
    batches = [row for row in rows(out, "client_batches") if row["producer"] == "hurry"]
    latencies = [latency for row in batches for latency in row["latency_us"]]
    assert len(latencies) == 600
    assert min(latencies) > 100, "a request passes a proxy and three processes"


def check_warm_up(out, card):
    """There was load before zero, and nothing of it in any row."""
    assert card["warm_up_us"] == 8_000_000
    logs = [*out.glob(f"disks/*/*/{WARM_UP}-*-delete/*.log")]
    assert sum(log.stat().st_size for log in logs) > 1_000 * 100
    assert not [*out.glob(f"disks/*/*/{WARM_UP}-?")]
    for table in ("partition_changes", "topic_deletions", "appends"):
        assert WARM_UP not in {row["topic"] for row in rows(out, table)}


def test_a_small_scenario_is_rehearsed_and_nothing_is_left_behind(tmp_path):
    out = rehearsed(tmp_path, "4.3")
    check(out, "4.3")
    explained = subprocess.run(
        [sys.executable, "-m", "sim", "explain", str(out)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "crash of leader of orders-0" in explained.stdout


@pytest.mark.slow
@pytest.mark.parametrize("version", ["3.9", "4.1"])
def test_older_releases_are_rehearsed_too(tmp_path, version):
    check(rehearsed(tmp_path, version), version)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_a_rehearsal_that_is_killed_leaves_no_process_and_no_port(tmp_path, number):
    scenario, out, mark = tmp_path / "small.yaml", tmp_path / "out", uuid.uuid4().hex
    scenario.write_text(SCENARIO % "4.3")
    instant = 55 * (number + random.Random(number).random()) / 20
    with subprocess.Popen(
        command(scenario, out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, MARK: mark},
    ) as process:
        time.sleep(instant)
        process.send_signal(signal.SIGKILL)
    wait_until_nothing_is_left(mark)
    wait_until_nothing_listens(out)
    if out.exists() and any(out.iterdir()):  # known for a run's, so that the next may replace it
        assert json.loads((out / "run.json").read_text())["complete"] in {False, True}


def test_a_rehearsal_that_is_interrupted_ends_readable(tmp_path):
    scenario, out, mark = tmp_path / "small.yaml", tmp_path / "out", uuid.uuid4().hex
    scenario.write_text(SCENARIO % "4.3")
    with subprocess.Popen(
        command(scenario, out),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, MARK: mark},
    ) as process:
        end = time.monotonic() + 4 * PATIENCE_S
        while not list(out.glob("real/broker-1.log")):
            assert time.monotonic() < end
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        assert process.wait(4 * PATIENCE_S) == 130
    wait_until_nothing_is_left(mark)
    card = json.loads((out / "run.json").read_text())
    assert (card["complete"], card["real"]) == (False, True)
    assert json.loads((out / "verdict.json").read_text())["complete"] is False
