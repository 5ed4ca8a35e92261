"""Several log directories on a broker: one fails alone, the broker goes on (KIP-112, KIP-858)."""

import pytest

from sim.log.store import checkpoints
from sim.nodes.broker.control_plane import LogDirFailureHandler
from sim.protocol.broker.replication.directories.replica_directories import ReplicaDirectories
from sim.protocol.controller import brokers as controller_brokers
from tests.scenarios.run_kit import S, go

THREE = {"disk": {"directories": 3}}
SIX = {"partitions": 6}


def failing(at="3s", directory=1, kind="failed-disk", **more):
    return {"at": at, "do": kind, "target": "broker-1", "directory": directory, **more}


def directory_names(ran, number):
    """Partitions of the topic in one of broker-1's log directories, after the run."""
    root = ran.directory / f"disks/broker-1/data-{number}"
    return sorted(path.name for path in root.iterdir() if path.name.startswith("orders-"))


def offline(ran, broker=1):
    rows = ran.rows("leadership", broker=broker, role="offline", topic="orders")
    return sorted({row["partition"] for row in rows if row["t_us"] > 2 * S})


def moves(ran):
    """How long after its failure each partition that was led from the directory was led again."""
    found = []
    for row in ran.rows("leadership", broker=1, role="offline", topic="orders"):
        changes = ran.leader_changes(row["partition"])
        if row["leader"] == 1 and row["t_us"] > 2 * S:
            later = [t for t, who in changes if t >= row["t_us"] and who > 1]
            found.append(later[0] - row["t_us"] if later else 3_600 * S)
    return found


def test_replicas_are_spread_evenly_and_every_directory_has_its_own_identity(tmp_path):
    ran = go(tmp_path, cluster=THREE, topic=SIX, lasts="7s")
    assert [len(directory_names(ran, number)) for number in range(3)] == [2, 2, 2]
    ids = []
    for path in ran.log_dirs("broker"):
        identity = checkpoints.decode_identity((path / "meta.properties").read_bytes(), "x")
        ids.append(identity.directory_id)
        offsets = (path / "replication-offset-checkpoint").read_bytes()
        held = {str(tp) for tp in checkpoints.decode_offsets(offsets, "x")}
        assert held
        assert held <= {each.name for each in path.iterdir()}
    assert len(set(ids)) == 9


def test_only_the_failed_directory_goes_offline_and_its_leaders_move_without_a_session(tmp_path):
    ran = go(tmp_path, cluster=THREE, topic=SIX, faults=[failing()], lasts="10s", then="stop")
    gone = offline(ran)
    assert [f"orders-{number}" for number in gone] == directory_names(ran, 1)
    assert len(gone) == 2
    assert [row["state"] for row in ran.rows("node_states", node="broker-1")] == [
        "started", "running",
    ]  # fmt: skip
    assert ran.rows("broker_states", state="fenced") == []
    last = {row["partition"]: row for row in ran.rows("partition_changes", topic="orders")}
    for number in range(6):
        in_sync = last[number]["in_sync"]
        assert in_sync == ("2,3" if number in gone else "1,2,3")
        assert (last[number]["leader"] == 1) <= (number not in gone)
    assert moves(ran)
    assert max(moves(ran)) < S // 10
    assert ran.records["lost_acked"] == 0
    assert ran.verdict["held"]


@pytest.mark.parametrize("kind", ["failed-disk", "full-disk"])
def test_the_failure_of_the_metadata_directory_halts_the_broker(kind, tmp_path):
    """The twin: directory 0 holds the metadata log."""
    ran = go(
        tmp_path, cluster=THREE, topic=SIX, faults=[failing(directory=0, kind=kind)], lasts="6s",
        then="stop",
    )  # fmt: skip
    assert [row["state"] for row in ran.rows("node_states", node="broker-1")][-1] == "crashed"


def test_a_slow_disk_slows_only_its_own_directory(tmp_path):
    flushed = SIX | {"config": {"min.insync.replicas": 1, "flush.messages": 1}}
    slow = failing(kind="stalled-disk", **{"for": "2s"})
    ran = go(tmp_path, cluster=THREE, topic=flushed, faults=[slow], lasts="7s", acks="1")
    stalled = ran.rows("disk_io", node="broker-1", directory=1, operation="flush")
    others = ran.rows("disk_io", node="broker-1", directory=2, operation="flush")
    begun = [row["started_us"] for row in stalled]
    assert not any(3 * S < at < 5 * S for at in begun)
    assert sum(3 * S < row["started_us"] < 5 * S for row in others) > 10


def test_a_replaced_disk_is_taken_in_at_the_next_start_under_a_new_identity(tmp_path):
    ran = go(
        tmp_path,
        cluster=THREE,
        topic=SIX,
        faults=[
            failing(**{"for": "2s"}),
            {"at": "7s", "do": "controlled-shutdown", "target": "broker-1", "for": "2s"},
        ],
        lasts="22s",
    )
    assert directory_names(ran, 1), "its replicas were made anew"
    last = {row["partition"]: row for row in ran.rows("partition_changes", topic="orders")}
    assert all(row["in_sync"] == "1,2,3" for row in last.values())
    wiped = ran.rows("truncations", broker=1, reason="wiped")
    ends = {
        row["partition"]: row["log_end_offset"]
        for row in ran.rows("leadership", broker=1, role="offline", topic="orders")
    }
    assert {row["partition"]: row["from_offset"] for row in wiped} == {
        number: end for number, end in ends.items() if end
    }
    assert wiped
    assert ran.records["lost_acked"] == ran.records["divergent"] == 0


def test_a_broker_that_starts_with_a_failed_directory_serves_the_others(tmp_path):
    """What lies in the offline directory is not made anew elsewhere: it would be empty."""
    ran = go(
        tmp_path,
        cluster=THREE,
        topic=SIX,
        faults=[
            failing(),
            {"at": "5s", "do": "controlled-shutdown", "target": "broker-1", "for": "2s"},
        ],
        lasts="20s",
        then="stop",
    )
    gone = offline(ran)
    last = {row["partition"]: row for row in ran.rows("partition_changes", topic="orders")}
    for number in range(6):
        assert ("1" in last[number]["in_sync"].split(",")) == (number not in gone)
    held = directory_names(ran, 0) + directory_names(ran, 2)
    assert not {f"orders-{number}" for number in gone} & set(held)
    assert ran.records["lost_acked"] == 0


def test_a_failure_that_the_controller_never_hears_of_ends_the_broker(tmp_path):
    ran = go(
        tmp_path,
        cluster=THREE,
        topic=SIX,
        config={"log.dir.failure.timeout.ms": 2_000},
        faults=[
            {"at": "2900ms", "do": "partition", "between": ["broker-1"], "and": [
                "controller-1", "controller-2", "controller-3"]},
            failing(),
        ],
        lasts="8s",
        then="stop",
    )  # fmt: skip
    (crashed,) = ran.times("node_states", node="broker-1", state="crashed")
    assert 5 * S <= crashed <= 6 * S


@pytest.mark.parametrize(("lag", "stalls"), [(2_000, False), (30_000, True)])
def test_the_high_watermark_waits_for_the_lost_replica_of_a_live_broker(lag, stalls, tmp_path):
    """It was caught up and its broker is eligible: Kafka takes it for one about to join the ISR."""
    ran = go(
        tmp_path,
        cluster=THREE,
        topic=SIX,
        config={"replica.lag.time.max.ms": lag},
        producer={"config": {"acks": "all", "request.timeout.ms": 3_000}},
        faults=[failing()],
        lasts="14s",
        then="stop",
    )
    lost = [
        row
        for row in ran.rows("leadership", broker=1, role="offline", topic="orders")
        if row["leader"] > 1 and row["t_us"] > 2 * S
    ]
    assert lost
    for row in lost:
        appended = ran.times("appends", broker=row["leader"], partition=row["partition"])
        assert any(row["t_us"] < at < 9 * S for at in appended), "there was something to commit"
        moved = [
            at
            for at in ran.times("high_watermarks", partition=row["partition"])
            if at > row["t_us"]
        ]
        assert (not moved or moved[0] > 13 * S) is stalls
    assert ran.records["lost_acked"] == 0


# -- planted defects ------------------------------------------------------------------------------


def test_a_controller_that_ignores_offline_directories_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(controller_brokers, "directories_offline", lambda *_: [])
    ran = go(tmp_path, cluster=THREE, topic=SIX, faults=[failing()], lasts="10s", then="stop")
    assert max(moves(ran)) > 5 * S


def test_a_broker_that_never_tells_its_placement_is_noticed(tmp_path, monkeypatch):
    """Without AssignReplicasToDirs the controller cannot know which replicas a failure concerns."""
    monkeypatch.setattr(ReplicaDirectories, "send", lambda *_: None)
    ran = go(tmp_path, cluster=THREE, topic=SIX, faults=[failing()], lasts="10s", then="stop")
    assert max(moves(ran)) > 5 * S


def test_a_broker_that_halts_for_any_directory_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(
        LogDirFailureHandler,
        "directory_failed",
        lambda self, number, reason: self._server.halt(reason),
    )
    ran = go(tmp_path, cluster=THREE, topic=SIX, faults=[failing()], lasts="6s", then="stop")
    assert ran.rows("node_states", node="broker-1", state="crashed")


def test_a_broker_that_has_not_noticed_its_replaced_disk_when_the_run_is_healed_is_restarted(
    tmp_path,
):
    """It would halt a moment later, when nothing is started any more."""
    ran = go(tmp_path, topic=SIX, faults=[failing("5999ms", 0, **{"for": "1ms"})], lasts="6s")
    assert not ran.faults[0]["took_effect"]
    states = [row["state"] for row in ran.rows("node_states", node="broker-1")]
    assert states[-2:] == ["crashed", "started"]
    assert ran.rows("partition_changes", topic="orders", partition=0)[-1]["in_sync"] == "1,2,3"


def test_a_log_directory_whose_disk_was_replaced_is_mounted_when_the_run_is_healed(tmp_path):
    ran = go(tmp_path, cluster=THREE, topic=SIX, faults=[failing()], lasts="6s")
    assert offline(ran)
    last = {
        row["partition"]: row["in_sync"] for row in ran.rows("partition_changes", topic="orders")
    }
    assert set(last.values()) == {"1,2,3"}
    assert directory_names(ran, 1)
