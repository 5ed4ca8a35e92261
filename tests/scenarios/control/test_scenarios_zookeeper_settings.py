"""ZooKeeper mode: settings of topics and of brokers that change while clients work."""

from sim.protocol.zk_mode.administration.configs import ConfigManager
from tests.scenarios.run_kit import S, go

CONFIG = {"zookeeper.session.timeout.ms": 6_000}
ONE = {"partitions": 1, "replication.factor": 3}
QUICK = {
    "log.retention.check.interval.ms": 500, "log.initial.task.delay.ms": 0, "log.roll.ms": 500,
}  # fmt: skip
LOWER = {"at": "14s", "do": "alter-config", "topic": "orders",
         "config": {"min.insync.replicas": 1}}  # fmt: skip


def at(when, do, **keys):
    return {"at": when, "do": do} | keys


def under(directory, faults, **parts):
    config = CONFIG | parts.pop("config", {})
    cluster = {"zookeeper": {"servers": 3}, "config": config}
    parts = {"topic": ONE, "lasts": "8s", "then": "stop"} | parts
    return go(directory, cluster=cluster, faults=faults, **parts)


def shut(directory):
    crashes = [
        at("2s", "crash", target="broker-2"),
        at("3s", "crash", target="broker-3"),
    ]
    topic = ONE | {"config": {"min.insync.replicas": 2}}
    return under(directory, [*crashes, LOWER], topic=topic, lasts="20s")


def test_a_lower_minimum_isr_opens_a_partition_that_was_shut(tmp_path):
    ran = shut(tmp_path)
    assert ran.faults[2]["took_effect"]
    moves = ran.times("high_watermarks", topic="orders")
    assert [t for t in moves if 13 * S < t < 14 * S] == []
    assert [t for t in moves if 14 * S < t < 15 * S]


def test_brokers_that_never_read_the_announcement_are_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(ConfigManager, "announced", lambda _self: None)
    ran = shut(tmp_path)
    assert [t for t in ran.times("high_watermarks", topic="orders") if t > 14 * S] == []


def test_a_change_that_changes_nothing_is_no_pass(tmp_path):
    same = at("3s", "alter-config", topic="orders", config={"min.insync.replicas": 2})
    topic = ONE | {"config": {"min.insync.replicas": 2}}
    ran = under(tmp_path, [same], topic=topic, lasts="5s")
    assert not ran.faults[0]["took_effect"]


def test_a_brokers_own_value_goes_before_every_brokers_and_comes_back_when_it_is_removed(tmp_path):
    def alter(when, value, **broker):
        return at(when, "alter-broker-config", config={"log.retention.ms": value}, **broker)

    changes = [
        alter("2s", 700_000, broker="broker-1"),
        alter("3s", 800_000),
        alter("4s", None, broker="broker-1"),
    ]
    ran = under(tmp_path, changes, config=QUICK, lasts="6s")
    assert [fault["effect"] for fault in ran.faults] == [
        "broker-1: log.retention.ms 604800000 -> 700000",
        "; ".join(
            [
                "broker-1: log.retention.ms 700000 -> 800000",
                "broker-2: log.retention.ms 604800000 -> 800000",
                "broker-3: log.retention.ms 604800000 -> 800000",
            ]
        ),
        "broker-1: log.retention.ms 700000 -> 800000",
    ]


def test_retention_of_one_broker_ends_its_segments(tmp_path):
    change = at("3s", "alter-broker-config", broker="broker-1", config={"log.retention.ms": 1_000})
    ran = under(tmp_path, [change], config=QUICK, lasts="6s")
    assert ran.faults[0]["took_effect"]
    starts = [row["t_us"] for row in ran.rows("log_starts", broker=1, topic="orders")]
    assert starts
    assert min(starts) > 3 * S


def test_a_changed_value_outlives_the_process(tmp_path):
    """It is in ZooKeeper, not in the file: a restarted broker has it again."""
    retention = {"log.retention.ms": 1_000}
    faults = [
        at("2s", "alter-broker-config", broker="broker-1", config=retention),
        at("3s", "restart", target="broker-1"),
    ]
    ran = under(tmp_path, faults, config=QUICK, lasts="14s")
    assert ran.faults[0]["took_effect"]
    starts = [row["t_us"] for row in ran.rows("log_starts", broker=1, topic="orders")]
    assert [t for t in starts if t > 8 * S]
