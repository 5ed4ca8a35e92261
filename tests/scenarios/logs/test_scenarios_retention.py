"""Retention in whole runs: replicas let segments go, and readers that come too late hear of it."""

from itertools import pairwise

import pytest
import yaml

from sim.log.store import checkpoints
from tests.scenarios.run_kit import CATALOGUE, Ran, go, run_beside

ONE_MIB = {"segment.bytes": 1_048_576}
OFTEN = {"log.initial.task.delay.ms": 1_000, "log.retention.check.interval.ms": 500}
BIG = {"rate": "400/s", "record.size": "10000B"}


def filling(tmp_path, *, topic=(), config=(), **more):
    """About four segments in eight seconds."""
    return go(
        tmp_path,
        topic={"partitions": 1, "config": {"min.insync.replicas": 2, **ONE_MIB, **dict(topic)}},
        producer={**BIG, "rate": "50/s"} | dict(more.pop("producer", {})),
        config={**OFTEN, **dict(config)},
        lasts="10s",
        **more,
    )


def first_offsets(ran, broker):
    root = ran.directory / f"disks/broker-{broker}/data-0/orders-0"
    return sorted(int(path.stem) for path in root.glob("*.log"))


def test_old_segments_go_on_every_replica_and_the_trace_says_why(tmp_path):
    ran = filling(tmp_path, topic={"retention.ms": 3_000, "file.delete.delay.ms": 1_000})
    moves = ran.rows("log_starts", topic="orders")
    assert {row["broker"] for row in moves} == {1, 2, 3}
    assert {row["reason"] for row in moves} <= {"retention.ms", "leader"}
    for broker in (1, 2, 3):
        own = [row for row in moves if row["broker"] == broker]
        assert own[0]["from_offset"] == 0
        assert [row["to_offset"] for row in own[:-1]] == [row["from_offset"] for row in own[1:]]
        assert first_offsets(ran, broker)[0] >= own[-1]["to_offset"] - 110
        root = ran.directory / f"disks/broker-{broker}/data-0/orders-0"
        stems = {path.name.partition(".")[0] for path in root.glob("*.deleted")}
        assert len(stems) < len(own), "most were unlinked a second after they were renamed"


def test_retention_by_size_keeps_what_it_says(tmp_path):
    ran = filling(tmp_path, topic={"retention.bytes": 1_100_000})
    assert {row["reason"] for row in ran.rows("log_starts")} <= {"retention.bytes", "leader"}
    for broker in (1, 2, 3):
        root = ran.directory / f"disks/broker-{broker}/data-0/orders-0"
        size = sum(path.stat().st_size for path in root.glob("*.log"))
        assert 1_100_000 <= size < 1_100_000 + 2 * 1_048_576


def test_brokers_settings_stand_in_for_the_topics(tmp_path):
    ran = filling(tmp_path, config={"log.retention.ms": 3_000, "log.retention.hours": 5})
    assert ran.rows("log_starts", reason="retention.ms")


def test_without_short_limits_nothing_goes(tmp_path):
    assert filling(tmp_path).rows("log_starts") == []


def test_a_reader_below_the_log_start_is_reset_as_its_policy_says(tmp_path):
    late = {
        "group": "late", "topics": ["orders"], "count": 1, "processing": "400ms",
        "config": {
            "auto.offset.reset": "earliest", "max.poll.records": 1, "max.partition.fetch.bytes": 1,
        },
    }  # fmt: skip
    ran = filling(tmp_path, topic={"retention.ms": 3_000}, consumers=[late], then="stop")
    reads = ran.rows("reads", topic="orders")
    jumps = [
        (before["last_offset"] + 1, after["base_offset"])
        for before, after in pairwise(reads)
        if after["base_offset"] > before["last_offset"] + 1
    ]
    ends = {row["to_offset"] for row in ran.rows("log_starts")}
    assert jumps
    assert all(landed in ends for _, landed in jumps)


def test_a_follower_that_was_away_too_long_starts_over_at_its_leaders_log_start(tmp_path):
    """Its session ends four seconds before it returns: only then may the high watermark pass its
    log end, and only what lies below the high watermark may go.
    """
    ran = filling(
        tmp_path,
        topic={"retention.ms": 2_000},
        config={"broker.session.timeout.ms": 2_000, "broker.heartbeat.interval.ms": 500},
        faults=[{"at": "1s", "do": "crash", "target": "follower of orders-0", "for": "6s"}],
    )
    away = int(ran.faults[0]["resolved"].removeprefix("broker-"))
    cut = [row for row in ran.rows("log_starts", broker=away) if row["reason"] == "truncation"]
    assert cut
    assert ran.rows("truncations", broker=away, topic="orders", reason="out_of_range")
    assert first_offsets(ran, away)[0] >= cut[0]["to_offset"]


@pytest.mark.parametrize("target", ["all brokers", "leader of orders-0"])
def test_a_log_that_starts_beyond_its_watermark_is_taken_for_committed_after_a_power_loss(
    tmp_path, target
):
    """Catalogue D6: that others lack what nobody committed is no defect of the simulator."""
    plain = yaml.safe_load(CATALOGUE["d06-retention-past-high-watermark-historic"].read_text())
    plain["faults"].append({"at": "15s", "do": "power-loss", "target": target, "for": "4s"})
    plain["expect"] = {"lost_acked": "at least 1000"}
    run_beside(yaml.safe_dump(plain), tmp_path / "run")
    ran = Ran(tmp_path / "run")
    assert ran.verdict["held"]
    retention = ran.rows("log_starts", topic="orders", reason="retention.bytes")
    again = [row for row in ran.rows("leadership", topic="orders") if row["t_us"] > 19_000_000]
    led = next(row for row in again if row["broker"] == retention[-1]["broker"])
    assert led["high_watermark"] == retention[-1]["to_offset"] > 0


def test_log_starts_are_checkpointed_at_their_own_interval(tmp_path):
    ran = filling(
        tmp_path,
        topic={"retention.ms": 3_000},
        config={"log.flush.start.offset.checkpoint.interval.ms": 2_000},
        then="stop",
    )
    root = ran.directory / "disks/broker-1/data-0"
    found = checkpoints.decode_offsets((root / checkpoints.LOG_STARTS).read_bytes(), "x")
    assert found == {}, "every log starts at its first segment"
    assert not (root / checkpoints.RECOVERY_POINTS).exists()


def test_segments_roll_at_different_times_with_jitter(tmp_path):
    small = {"partitions": 1, "config": {"min.insync.replicas": 2, "segment.ms": 3_000}}
    rolled = [
        first_offsets(go(tmp_path, topic={**small, "config": {**small["config"], **jitter}}), 1)
        for jitter in ({}, {"segment.jitter.ms": 2_900})
    ]
    assert len(rolled[1]) > len(rolled[0]) > 1


def test_planted_a_follower_that_never_hears_keeps_its_log_start(tmp_path, monkeypatch):
    monkeypatch.setattr(
        "sim.protocol.broker.replication.leader.log_starts.LogStarts.learned", lambda *_: False
    )
    ran = filling(tmp_path, topic={"retention.ms": 3_000})
    assert {row["reason"] for row in ran.rows("log_starts")} == {"retention.ms"}
