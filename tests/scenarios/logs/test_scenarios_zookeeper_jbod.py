"""ZooKeeper mode: one of several log directories fails, and the broker goes on (KIP-112)."""

import pytest

from sim.errors import InvariantBroken, ScenarioError
from sim.protocol.zk_mode.controller import ZkController
from sim.protocol.zk_mode.log_dirs import OfflineReplicas
from sim.protocol.zk_mode.roles import BrokerRoles
from tests.scenarios.run_kit import S, go

SIX = {"partitions": 6}


def under(directory, faults, *, kafka="3.9", **parts):
    cluster = {
        "zookeeper": {"servers": 3}, "kafka": kafka, "disk": {"directories": 3},
        "config": {"zookeeper.session.timeout.ms": 6_000},
    }  # fmt: skip
    parts = {"topic": SIX, "lasts": "8s", "then": "stop"} | parts
    return go(directory, cluster=cluster, faults=faults, **parts)


def failing(at="3s", directory=1, **more):
    return {"at": at, "do": "failed-disk", "target": "broker-1", "directory": directory, **more}


def in_directory(ran, number):
    root = ran.directory / f"disks/broker-1/data-{number}"
    return sorted(path.name for path in root.iterdir() if path.name.startswith("orders-"))


def offline(ran, broker=1):
    rows = ran.rows("leadership", broker=broker, role="offline", topic="orders")
    return sorted({row["partition"] for row in rows if row["leader"] >= 0 and row["t_us"] > 2 * S})


def last(ran):
    return {row["partition"]: row for row in ran.rows("partition_changes", topic="orders")}


@pytest.mark.parametrize(("kafka", "directory"), [("1.0", 1), ("2.6", 2), ("3.9", 0)])
def test_only_the_failed_directory_goes_offline_and_its_leaders_move_at_once(
    tmp_path, kafka, directory
):
    """Also the first one: there is no metadata log in it."""
    ran = under(tmp_path, [failing(directory=directory)], kafka=kafka)
    lost = offline(ran)
    assert len(lost) == 2
    assert [f"orders-{number}" for number in lost] == in_directory(ran, directory)
    states = [row["state"] for row in ran.rows("node_states", node="broker-1")]
    assert states == ["started", "running"]
    for number, row in last(ran).items():
        assert row["in_sync"] == ("2,3" if number in lost else "1,2,3")
        assert row["leader"] != (1 if number in lost else -1)
    led = [n for n in lost if ran.leader_at(3 * S - 1, n) == 1]
    assert all(ran.changed_leader(3 * S, n) < 3.5 * S for n in led)
    assert ran.records["lost_acked"] == ran.records["divergent"] == 0


def test_a_new_controller_learns_of_it_from_the_brokers_first_answer(tmp_path):
    faults = [failing(), {"at": "5s", "do": "crash", "target": "controller leader"}]
    ran = under(tmp_path, faults, lasts="16s")
    assert len(ran.rows("controllers", state="elected")) == 2
    lost = offline(ran)
    assert len(lost) == 2
    for number in lost:
        assert last(ran)[number]["leader"] != 1
        assert "1" not in last(ran)[number]["in_sync"].split(",")
    assert ran.records["lost_acked"] == 0


def test_a_broker_that_starts_without_the_directory_makes_no_new_logs_for_its_replicas(tmp_path):
    restart = {"at": "5s", "do": "restart", "target": "broker-1"}
    ran = under(tmp_path, [failing(), restart], lasts="20s")
    states = [row["state"] for row in ran.rows("node_states", node="broker-1")]
    assert states[-1] == "running"
    lost = offline(ran)
    for number, row in last(ran).items():
        assert ("1" in row["in_sync"].split(",")) is (number not in lost)
    assert len(in_directory(ran, 0)) == len(in_directory(ran, 2)) == 2
    assert ran.records["lost_acked"] == 0


def test_a_replaced_disk_is_taken_in_at_the_next_start(tmp_path):
    faults = [
        failing(**{"for": "2s"}),
        {"at": "7s", "do": "controlled-shutdown", "target": "broker-1", "for": "2s"},
    ]
    ran = under(tmp_path, faults, lasts="18s", then="heal and drain")
    assert len(in_directory(ran, 1)) == 2, "its replicas were made anew"
    assert all(row["in_sync"] == "1,2,3" for row in last(ran).values())
    assert ran.records["lost_acked"] == 0


def test_without_any_directory_left_the_broker_ends(tmp_path):
    ran = under(tmp_path, [failing(f"{3 + n}s", n) for n in range(3)])
    assert [row["state"] for row in ran.rows("node_states", node="broker-1")][-1] == "crashed"


# -- replicas that move between directories (KIP-113) ----------------------------------------------


def moving(**more):
    keys = {"partition": "orders-0", "broker": "broker-1", "to": 1}
    return {"at": "2s", "do": "alter-replica-log-dirs", **keys, **more}


def phases(ran):
    rows = ran.rows("log_dir_moves", topic="orders", partition=0)
    return list(dict.fromkeys(row["phase"] for row in rows))


@pytest.mark.parametrize("kafka", ["1.1", "3.9"])
def test_a_replica_moves_without_the_controller_when_its_copy_has_caught_up(tmp_path, kafka):
    ran = under(tmp_path, [moving()], kafka=kafka, topic={"partitions": 1}, lasts="5s")
    assert ran.faults[0]["took_effect"]
    assert phases(ran) == ["began", "caught_up", "swapped"]
    assert in_directory(ran, 1) == ["orders-0"]
    (former,) = in_directory(ran, 0)
    assert former.endswith("-delete")
    assert not ran.rows("requests", kind="AssignReplicasToDirs")
    assert last(ran)[0]["in_sync"] == "1,2,3"
    assert ran.records["lost_acked"] == ran.records["divergent"] == 0


def test_before_1_1_no_replica_moves_between_directories(tmp_path):
    with pytest.raises(ScenarioError, match=r"alter-replica-log-dirs with cluster\.kafka 1\.0"):
        under(tmp_path, [moving()], kafka="1.0")


# -- damage ----------------------------------------------------------------------------------------


def test_a_misdirected_write_into_a_dead_broker_s_log_is_found_by_its_recovery(tmp_path):
    where = {"target": "broker-1", "partition": "orders-0"}
    faults = [
        {"at": "2s", "do": "crash", "target": "broker-1", "for": "2s"},
        {"at": "3s", "do": "misdirected-write", **where},
    ]
    ran = under(
        tmp_path, faults, topic={"partitions": 1}, lasts="14s", then="heal and drain",
        producer={"record.size": "2000B"},
    )  # fmt: skip
    assert ran.faults[1]["took_effect"]
    (recovered,) = ran.rows("recoveries", broker=1, topic="orders")
    assert recovered["truncated_bytes"] > 0
    assert last(ran)[0]["in_sync"] == "1,2,3"
    assert ran.records["lost_acked"] == ran.records["divergent"] == 0


# -- planted defects ------------------------------------------------------------------------------


def test_a_controller_that_does_not_hear_of_it_leaves_the_partitions_without_a_leader(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(OfflineReplicas, "announced", lambda _self: iter(()))
    ran = under(tmp_path, [failing()])
    assert any(last(ran)[number]["leader"] == 1 for number in offline(ran))


def test_a_controller_that_takes_offline_replicas_for_live_elects_them_again(tmp_path, monkeypatch):
    monkeypatch.setattr(ZkController, "is_online", lambda self, broker, _: broker in self.brokers)
    ran = under(tmp_path, [failing()])
    assert any(last(ran)[number]["leader"] in {-1, 1} for number in offline(ran))


def test_a_broker_that_makes_lost_logs_anew_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(BrokerRoles, "_offline_of", lambda *_: {})
    restart = {"at": "5s", "do": "restart", "target": "broker-1"}
    with pytest.raises(InvariantBroken, match="offsets-contiguous"):
        under(tmp_path, [failing(), restart], lasts="14s")
