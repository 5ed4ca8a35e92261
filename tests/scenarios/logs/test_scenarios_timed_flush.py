"""``flush.ms``: how much of a log a power loss can take when logs are flushed by time."""

from itertools import pairwise

from sim.nodes.storage.log_dirs import Storage
from tests.scenarios.run_kit import S, go

LOOKED_AT_EVERY_500_MS = {"log.flush.scheduler.interval.ms": 500, "log.initial.task.delay.ms": 0}
EVERY_500_MS = LOOKED_AT_EVERY_500_MS | {"log.flush.interval.ms": 400}
POWER_LOSS = {"at": "5s", "do": "power-loss", "target": "leader of orders-0", "for": "200ms"}


def loaded(tmp_path, config, flush_ms=None, **more):
    topic = {"partitions": 1, "config": {} if flush_ms is None else {"flush.ms": flush_ms}}
    parts = {"lasts": "6s", "then": "stop", "topic": topic, "config": config, "acks": "1"} | more
    return go(tmp_path, **parts)


def flushes(ran, before=5 * S):
    """Instants at which the leader's log was fsynced."""
    node = f"broker-{ran.leader_at(4 * S)}"
    rows = ran.rows("disk_io", node=node, operation="flush", file="orders-0")
    return [row["started_us"] for row in rows if 0 <= row["started_us"] < before]


def recovery_points(ran):
    """Recovery point that the broker which had lost power took its scan up from, and log end."""
    rows = [row for row in ran.rows("recoveries", topic="orders") if row["t_us"] > 5 * S]
    return rows[0]["log_end_offset"], rows[0]["truncated_bytes"]


def test_logs_are_flushed_at_the_schedulers_interval(tmp_path):
    found = flushes(loaded(tmp_path, EVERY_500_MS))
    apart = [later - earlier for earlier, later in pairwise(found)]
    assert len(found) >= 8
    assert all(abs(gap - S // 2) < S // 10 for gap in apart)


def test_a_log_that_was_flushed_less_than_flush_ms_ago_is_left_alone(tmp_path):
    found = flushes(loaded(tmp_path, EVERY_500_MS, flush_ms=2_000))
    apart = [later - earlier for earlier, later in pairwise(found)]
    assert apart
    assert all(2 * S - S // 10 <= gap <= 2.6 * S for gap in apart)


def test_flush_ms_equal_to_the_schedulers_interval_flushes_at_every_second_look(tmp_path):
    """As in Kafka: the last flush ended a little after the look that began it."""
    found = flushes(loaded(tmp_path, LOOKED_AT_EVERY_500_MS))
    apart = [later - earlier for earlier, later in pairwise(found)]
    assert len(found) >= 4
    assert all(abs(gap - S) < S // 10 for gap in apart)


def test_without_the_schedulers_interval_flush_ms_flushes_nothing(tmp_path):
    """Kafka's trap: the flusher never runs, whatever the topic asks for."""
    assert flushes(loaded(tmp_path, {"log.initial.task.delay.ms": 0}, flush_ms=100)) == []


def test_the_brokers_log_flush_interval_ms_stands_in_for_the_topics(tmp_path):
    config = EVERY_500_MS | {"log.flush.interval.ms": 2_000}
    own = flushes(loaded(tmp_path, config, flush_ms=400))
    inherited = flushes(loaded(tmp_path, config))
    assert len(inherited) <= 3 < 8 <= len(own)


def written_at(ran, at):
    """The leader's log end at an instant."""
    leader = ran.leader_at(4 * S)
    rows = ran.rows("appends", broker=leader, topic="orders")
    return max(row["last_offset"] + 1 for row in rows if row["t_us"] <= at)


def test_flush_by_time_bounds_what_a_power_loss_takes(tmp_path):
    """What lay on the platter survives; the twin without flushes may lose all of it."""
    ran = loaded(tmp_path, EVERY_500_MS, faults=[POWER_LOSS])
    end, _ = recovery_points(ran)
    assert end >= written_at(ran, flushes(ran)[-2])
    seeds = range(1, 4)
    without = [loaded(tmp_path, {}, faults=[POWER_LOSS], seed=seed) for seed in seeds]
    assert any(recovery_points(bare)[0] < written_at(bare, 4 * S) for bare in without)


def test_a_flusher_that_moved_nothing_would_be_noticed(tmp_path, monkeypatch):
    """The planted defect: the disk is paid for, and the bytes stay where they are."""
    monkeypatch.setattr(Storage, "flush_up_to", lambda self, log, up_to: None)
    held = []
    for seed in range(1, 5):
        ran = loaded(tmp_path, EVERY_500_MS, faults=[POWER_LOSS], seed=seed)
        held.append(recovery_points(ran)[0] >= written_at(ran, flushes(ran)[-2]))
    assert not all(held)
