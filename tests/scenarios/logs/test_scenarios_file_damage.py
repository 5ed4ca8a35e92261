"""Files that end too early, bits that rot on the platter, reads that miss memory and are slow."""

import pytest

from sim.errors import ScenarioError
from sim.inspect.doctor import examine
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import S, go, text_of

ONE = {"partitions": 1, "config": {"min.insync.replicas": 2, "flush.messages": 1}}
"""One log, whose records are on the platter when they are acknowledged."""


def at(instant, do, **keys):
    return {"at": instant, "do": do, **keys}


def nothing_differs(ran):
    return (
        ran.records["lost_acked"] == ran.records["divergent"] == 0
        and not any(examine(directory) for directory in ran.log_dirs())
        and ran.rows("partition_changes", topic="orders")[-1]["in_sync"] == "1,2,3"
    )


def test_a_log_that_ends_too_early_is_cut_at_its_last_whole_batch_and_fetched_again(tmp_path):
    cut = at("2s", "cut-file", target="leader of orders-0", bytes=150)
    ran = go(tmp_path, faults=[cut], topic=ONE, lasts="5s")
    assert ran.faults[0]["took_effect"]
    assert ran.faults[0]["effect"].startswith("150 bytes of orders-0/00000000000000000000.log cut")
    broker = int(ran.faults[0]["resolved"].removeprefix("broker-"))
    (found,) = ran.rows("recoveries", broker=broker, topic="orders")[-1:]
    assert found["truncated_bytes"] > 0
    assert nothing_differs(ran)
    assert ran.verdict["held"]


ROLLS = {"partitions": 1, "config": ONE["config"] | {
    "segment.ms": 500, "index.interval.bytes": 200}}  # fmt: skip


@pytest.mark.parametrize("file", ["index", "timeindex", "snapshot"])
def test_an_index_or_a_snapshot_that_ends_too_early_is_made_again(file, tmp_path):
    cut = at("3s", "cut-file", target="leader of orders-0", file=file, bytes=5)
    ran = go(tmp_path, faults=[cut], topic=ROLLS, lasts="6s")
    assert ran.faults[0]["took_effect"], ran.faults[0]["effect"]
    assert "5 bytes of " in ran.faults[0]["effect"]
    assert nothing_differs(ran)


def test_a_checkpoint_that_ends_too_early_takes_its_log_directory_and_so_its_broker(tmp_path):
    """``CheckpointFileWithFailureHandler``: somebody has to remove the file first."""
    config = {"log.flush.offset.checkpoint.interval.ms": 500}
    cut = at("3s", "cut-file", target="leader of orders-0", file="recovery-points", bytes=12)
    ran = go(tmp_path, faults=[cut], topic=ROLLS, config=config, lasts="16s", then="stop")
    assert ran.faults[0]["took_effect"], ran.faults[0]["effect"]
    (halt,) = ran.rows("halts", node=ran.faults[0]["resolved"])
    assert "recovery-point-offset-checkpoint" in halt["reason"]
    assert ran.records["lost_acked"] == 0


def test_a_file_that_is_not_there_cannot_be_cut(tmp_path):
    cut = at("1s", "cut-file", target="broker-1", partition="orders-0", file="snapshot", bytes=5)
    ran = go(tmp_path, faults=[cut], topic=ONE, lasts="3s")
    assert not ran.faults[0]["took_effect"]
    assert ran.faults[0]["effect"] == "no snapshot of orders-0 on broker-1 to cut"


ROT = at("2s", "bit-rot", target="leader of orders-0", segment="newest", bits=8)


def test_bits_that_rot_are_noticed_by_nobody_who_does_not_read_them(tmp_path):
    """Followers and consumers read the end of the log, which is in memory."""
    ran = go(tmp_path, faults=[ROT], topic=ONE, lasts="5s", then="stop")
    assert not ran.faults[0]["took_effect"]
    assert ran.faults[0]["effect"].endswith("nobody has read them")


def test_recovery_finds_rotten_bits_and_a_follower_has_them_whole(tmp_path):
    crash = at("3s", "crash", target="broker-1", **{"for": "1s"})
    rot = {**ROT, "target": "broker-1", "partition": "orders-0"}
    ran = go(tmp_path, faults=[rot, crash], topic=ONE, lasts="16s")
    assert ran.faults[0]["took_effect"], ran.faults[0]["effect"]
    cuts = ran.rows("truncations", broker=1, topic="orders", reason="recovery")
    assert len(cuts) == 1
    assert cuts[0]["to_offset"] < cuts[0]["from_offset"]
    assert nothing_differs(ran)


def test_bits_that_are_in_memory_only_do_not_rot(tmp_path):
    """Without a flush nothing of the log is on the platter yet."""
    topic = {"partitions": 1, "config": {"min.insync.replicas": 2}}
    ran = go(tmp_path, faults=[ROT], topic=topic, lasts="3s")
    assert not ran.faults[0]["took_effect"]
    assert "on the platter" in ran.faults[0]["effect"]


SMALL = {"cache": "4MiB", "dirty.background": "1MiB", "dirty.limit": "4MiB"}
LATE = {
    "name": "late", "group": "none", "topics": ["orders"], "start": "3s",
    "config": {"auto.offset.reset": "earliest"},
}  # fmt: skip


def delivered(directory, faults):
    """Records that a reader of the past has got two seconds after it began, from cold disks."""
    directory.mkdir()
    ran = go(
        directory, faults=faults, topic={"partitions": 1}, lasts="6s", consumers=[LATE],
        then="stop", cluster={"disk": SMALL},
        producer={"rate": "150/s", "record.size": "40KB"},
    )  # fmt: skip
    rows = ran.rows("reads", consumer="late")
    return ran, sum(row["record_count"] for row in rows if row["t_us"] < 5 * S)


def test_slow_reads_make_a_reader_of_old_records_late_until_they_heal(tmp_path):
    slow = at("2s", "slow-reads", target="all brokers", access={"p50": "300ms"}, **{"for": "3s"})
    _, usual = delivered(tmp_path / "usual", [])
    ran, late = delivered(tmp_path / "slow", [slow])
    assert ran.faults[0]["took_effect"], ran.faults[0]["effect"]
    assert late < usual / 2
    assert sum(row["record_count"] for row in ran.rows("reads", consumer="late")) > 2 * late


def test_reads_that_memory_answers_are_not_slow(tmp_path):
    slow = at("2s", "slow-reads", target="all brokers", factor=50, **{"for": "2s"})
    ran = go(tmp_path, faults=[slow], topic=ONE, lasts="5s")
    assert not ran.faults[0]["took_effect"]
    assert ran.faults[0]["effect"] == "0 disk operations took longer"


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ({"do": "cut-file", "target": "broker-1", "partition": "orders-0", "bytes": 0}, "bytes"),
        ({"do": "cut-file", "target": "broker-1", "bytes": 5}, "names no partition"),
        ({"do": "cut-file", "target": "leader of orders-0", "file": "bytes", "bytes": 5}, "file"),
        ({"do": "bit-rot", "target": "leader of orders-0", "segment": "third"}, "segment"),
        ({"do": "slow-reads", "target": "broker-1"}, "factor"),
        ({"do": "slow-reads", "target": "broker-1", "factor": 2, "access": {"p50": "1ms"}},
         "one of the two"),
    ],
)  # fmt: skip
def test_what_says_nothing_is_refused(fault, found):
    with pytest.raises(ScenarioError, match=found):
        load_text(text_of(faults=[{"at": "1s", **fault}]))


def read_after_rot(directory, **config):
    """A reader of the past, whose leader's only old segment has rotten on the platter."""
    directory.mkdir()
    rot = at("2s", "bit-rot", target="leader of orders-0", segment="oldest", bits=40)
    late = LATE | {"config": LATE["config"] | config}
    return go(
        directory, faults=[rot], topic={"partitions": 1}, lasts="6s", consumers=[late],
        then="stop", cluster={"disk": SMALL},
        producer={"rate": "150/s", "record.size": "40KB"},
    )  # fmt: skip


def test_a_consumer_that_checks_crcs_ends_at_a_rotten_batch_and_another_reads_on(tmp_path):
    """Kafka's poll raises a KafkaException, which an application without a handler ends by."""
    checks = read_after_rot(tmp_path / "checks")
    assert checks.faults[0]["took_effect"], checks.faults[0]["effect"]
    states = [row["state"] for row in checks.rows("node_states", node="late")]
    assert states[-1] == "stopped"
    ignores = read_after_rot(tmp_path / "ignores", **{"check.crcs": False})
    count = [
        sum(row["record_count"] for row in ran.rows("reads", consumer="late"))
        for ran in (checks, ignores)
    ]
    assert count[0] < count[1]
