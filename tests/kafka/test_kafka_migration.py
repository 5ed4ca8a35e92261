"""A group changes its protocol on a real Apache Kafka as here, member by member (KIP-848)."""

import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from sim.rehearsal import apache
from sim.units import SECOND

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

SCENARIO = """
claim: A group goes over to the consumer protocol member by member, and reads everything.
cluster: {brokers: 3, controllers: 1}
topics:
  orders: {partitions: 6, replication.factor: 3, config: {min.insync.replicas: 2}}
producers:
  - {name: shop, topic: orders, rate: 60/s, record.size: 100B}
consumers:
  - &classic
    {name: first-a, group: billing, topics: [orders], stop: 14s, config: {
      auto.offset.reset: earliest, auto.commit.interval.ms: 1000, session.timeout.ms: 6000,
      heartbeat.interval.ms: 1000, partition.assignment.strategy: "cooperative-sticky,range"}}
  - {<<: *classic, name: first-b, stop: 22s}
  - &consumer
    {name: next-a, group: billing, topics: [orders], start: %s, config: {
      auto.offset.reset: earliest, auto.commit.interval.ms: 1000, group.protocol: consumer}}
  - {<<: *consumer, name: next-b, start: 18s}
run: {for: 30s, seed: 1}
expect: {lost_acked: 0}
"""


@pytest.fixture(scope="module", autouse=True)
def programs():
    lacks = apache.missing("mvn", "java", "javac")
    if lacks:
        pytest.skip(f"a rehearsal needs {' and '.join(lacks)}")


def both(tmp_path, next_a_starts):
    """Assignments that the clients got, rehearsed and simulated."""
    scenario = tmp_path / "migration.yaml"
    scenario.write_text(SCENARIO % next_a_starts)
    for name in ("rehearse", "run"):
        done = subprocess.run(
            [sys.executable, "-m", "sim", name, str(scenario), "--out", str(tmp_path / name)],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3_000:] + done.stderr
        table = pq.read_table(tmp_path / name / "trace" / "assignments").to_pylist()
        yield [row for row in table if row["t_us"] < 30 * SECOND]


def held(rows, at, left=()):
    """How many partitions each member has that has not left."""
    last = {row["consumer"]: row["partitions"] for row in rows if row["t_us"] <= at * SECOND}
    counts = {name: len([p for p in text.split(",") if p]) for name, text in last.items()}
    return {name: count for name, count in counts.items() if name not in left}


def test_each_member_has_as_many_partitions_after_each_step(tmp_path):
    for rows in both(tmp_path, "10s"):
        assert held(rows, 9) == {"first-a": 3, "first-b": 3}
        assert held(rows, 17.5, ["first-a"]) == {"first-b": 3, "next-a": 3}, "one of each protocol"
        assert held(rows, 29, ["first-a", "first-b"]) == {"next-a": 3, "next-b": 3}
        assert max(row["generation"] for row in rows) == 5


def test_who_upgrades_before_the_first_generation_fails_and_nobody_else_does(tmp_path):
    for rows in both(tmp_path, "1s"):
        assert held(rows, 9) == {"first-a": 3, "first-b": 3}
        assert held(rows, 17.5, ["first-a"]) == {"first-b": 6}
        assert held(rows, 29, ["first-a", "first-b"]) == {"next-b": 6}
    assert "UnknownServerException" in (tmp_path / "rehearse" / "real" / "clients.log").read_text()
