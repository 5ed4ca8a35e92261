"""An administrator at work while the cluster runs: what it costs, and what becomes of records."""

import pytest

from sim.errors import ScenarioError
from sim.log.directory.manager import partition_of
from sim.nodes.broker.logs import BrokerLogs
from sim.protocol.broker.replication import replica_manager
from sim.protocol.broker.replication.removal import ReplicaRemoval
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import S, go, text_of

FIVE = {"brokers": 5, "controllers": 1}
ONE = {"partitions": 1}
FRESH = {"metadata.max.age.ms": 1000}


def at(instant, do, **keys):
    return {"at": instant, "do": do} | {k.replace("_", "-"): v for k, v in keys.items()}


def directories(ran, broker):
    (log_dir,) = [d for d in ran.log_dirs("broker") if d.parent.name == broker]
    return sorted(path.name for path in log_dir.iterdir() if path.is_dir())


def held(ran, topic="orders", partition=0):
    """The brokers that hold a partition's log at the end."""
    name = f"{topic}-{partition}"
    brokers = sorted({d.parent.name for d in ran.log_dirs("broker")})
    return [b for b in brokers if name in directories(ran, b)]


def replicas(ran, partition=0):
    rows = ran.rows("partition_changes", topic="orders", partition=partition)
    return [row["replicas"] for row in rows]


# -- moving replicas -------------------------------------------------------------------------------


def test_a_moved_partition_loses_nothing_and_leaves_no_files_behind(tmp_path):
    move = at("2s", "reassign", partition="orders-0", replicas=["broker-4", "broker-5", "broker-3"])
    where = {"partitions": 1, "replication.factor": 3}
    ran = go(tmp_path, cluster=FIVE, topic=where, faults=[move], lasts="8s")
    assert ran.faults[0]["took_effect"]
    assert replicas(ran)[-1] == "4,5,3"
    assert ran.records["lost_acked"] == ran.records["failed"] == 0
    assert held(ran) == ["broker-3", "broker-4", "broker-5"]
    gone = [n for b in ("broker-1", "broker-2") for n in directories(ran, b) if "delete" in n]
    assert all(partition_of(name) is None for name in gone)


@pytest.mark.parametrize(("kafka", "knows"), [("2.8", False), ("3.0", True)])
def test_a_kraft_cluster_of_2_8_knows_no_requests_that_move_or_add_partitions(
    kafka, knows, tmp_path
):
    """Such a broker has none of the three on its listener: UnsupportedVersionException."""
    faults = [
        at("2s", "reassign", partition="orders-0", replicas=["broker-3", "broker-2"]),
        at("4s", "elect-leader", partition="orders-0", election="preferred"),
        at("5s", "create-partitions", topic="orders", count=2),
    ]
    where = {"partitions": 1, "replication.factor": 2, "replicas": [["broker-1", "broker-2"]]}
    cluster = {"brokers": 3, "controllers": 1, "kafka": kafka}
    ran = go(tmp_path, cluster=cluster, topic=where, faults=faults, lasts="8s")
    effects = [(fault["took_effect"], fault["effect"]) for fault in ran.faults]
    if not knows:
        assert all("UNSUPPORTED_VERSION" in effect for _, effect in effects)
        assert not any(took for took, _ in effects)
    else:
        assert not any("UNSUPPORTED_VERSION" in effect for _, effect in effects)
        assert [effects[0][0], effects[2][0]] == [True, True]
    assert (replicas(ran)[-1] == "3,2") is knows
    assert bool(replicas(ran, partition=1)) is knows
    assert ran.records["lost_acked"] == 0


def test_the_new_replicas_fetch_everything_from_the_first_record(tmp_path):
    move = at("3s", "reassign", partition="orders-0", replicas=["broker-4", "broker-5"])
    where = {"partitions": 1, "replication.factor": 2}
    ran = go(tmp_path, cluster=FIVE, topic=where, faults=[move], lasts="6s")
    for broker in (4, 5):
        appends = ran.rows("appends", topic="orders", partition=0, broker=broker)
        assert appends[0]["base_offset"] == 0
        assert appends[0]["t_us"] >= 3 * S


def test_replicas_that_were_let_go_stay_eligible_in_name_below_the_minimum(tmp_path):
    """As in Kafka, where nobody outside the replicas is elected, whatever the ELR says."""
    move = at("2s", "reassign", partition="orders-0", replicas=["broker-1"])
    crash = at("3s", "crash", target="broker-1") | {"for": "1s"}
    ran = go(tmp_path, faults=[move, crash], topic=ONE, lasts="5s")
    row = ran.rows("partition_changes", topic="orders")[1]
    assert (row["replicas"], row["in_sync"], row["eligible"]) == ("1", "1", "2,3")
    later = [leader for t, leader in ran.leader_changes() if t > 3 * S]
    assert later
    assert set(later) <= {-1, 1}
    assert ran.records["lost_acked"] == 0


def test_called_off_the_partition_stays_where_it_was(tmp_path):
    """The target's broker is down, so the move cannot end."""
    faults = [
        at("1s", "crash", target="broker-5"),
        at("2s", "reassign", partition="orders-0", replicas=["broker-4", "broker-5"]),
        at("5s", "cancel-reassignment", partition="orders-0"),
    ]
    where = {"partitions": 1, "replication.factor": 2}
    ran = go(tmp_path, cluster=FIVE, topic=where, faults=faults, lasts="7s", then="stop")
    seen = replicas(ran)
    assert len(seen[-1].split(",")) == 2
    assert seen[-1] == seen[0]
    assert any(row.startswith("4,5,") for row in seen)
    assert "broker-4" not in held(ran)


def test_a_broker_that_keeps_a_replica_it_should_let_go_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(ReplicaRemoval, "remove_unassigned", lambda *_: None)
    move = at("2s", "reassign", partition="orders-0", replicas=["broker-4", "broker-5"])
    where = {"partitions": 1, "replication.factor": 2}
    ran = go(tmp_path, cluster=FIVE, topic=where, faults=[move], lasts="6s")
    assert len(held(ran)) > 2


# -- topics ----------------------------------------------------------------------------------------


def test_a_deleted_topic_leaves_the_disks_after_the_delay_and_fails_its_producers(tmp_path):
    faults = [at("3s", "delete-topic", topic="orders")]
    producer = {"config": {"acks": "all", "max.block.ms": 2000, "delivery.timeout.ms": 31_000}}
    ran = go(tmp_path, topic=ONE, faults=faults, producer=producer, lasts="70s", then="stop")
    assert held(ran) == []
    assert not [n for b in ("broker-1", "broker-2") for n in directories(ran, b) if "orders" in n]
    acked = [r["t_us"] for r in ran.rows("client_batches", outcome="ok")]
    assert max(acked) < 4 * S
    assert ran.records["removed"] == ran.records["acked"] > 0
    assert ran.records["lost_acked"] == 0
    assert ran.records["failed"] > 0


def test_its_files_stay_for_the_delay(tmp_path):
    faults = [at("3s", "delete-topic", topic="orders")]
    ran = go(tmp_path, topic=ONE, faults=faults, lasts="5s", then="stop")
    names = [n for n in directories(ran, "broker-1") if n.startswith("orders-0.")]
    assert len(names) == 1
    assert names[0].endswith("-delete")


def test_a_topic_made_anew_begins_at_offset_zero_under_another_id(tmp_path):
    faults = [
        at("3s", "delete-topic", topic="orders"),
        at("4s", "create-topic", topic="orders"),
    ]
    producer = {"config": {"acks": "all"} | FRESH}
    ran = go(tmp_path, topic=ONE, faults=faults, producer=producer, lasts="8s", then="stop")
    assert all(fault["took_effect"] for fault in ran.faults)
    later = [r for r in ran.rows("appends", topic="orders", broker=1) if r["t_us"] > 4 * S]
    assert later[0]["base_offset"] == 0
    assert later[0]["leader_epoch"] == 0
    assert ran.records["lost_acked"] == 0
    assert 0 < ran.records["removed"] < ran.records["acked"]


def test_a_broker_that_slept_through_it_puts_the_old_log_aside(tmp_path):
    """The failure-catalogue's stale log of a topic made anew: it must not come back to life."""
    faults = [
        at("2s", "crash", target="broker-3") | {"for": "10s"},
        at("4s", "delete-topic", topic="orders"),
        at("6s", "create-topic", topic="orders"),
    ]
    producer = {"config": {"acks": "all"} | FRESH}
    ran = go(tmp_path, topic=ONE, faults=faults, producer=producer, lasts="30s", then="stop")
    assert ran.rows("partition_changes", topic="orders")[-1]["in_sync"] == "1,2,3"
    strays = [n for n in directories(ran, "broker-3") if n.endswith("-stray")]
    assert len(strays) == 1
    appends = [r for r in ran.rows("appends", topic="orders", broker=3) if r["t_us"] > 12 * S]
    assert appends[0]["base_offset"] == 0
    assert ran.records["divergent"] == ran.records["lost_acked"] == 0
    assert ran.records["removed"] > 0


def test_a_broker_that_takes_the_old_log_for_the_new_one_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(BrokerLogs, "put_strays_aside", lambda *_: ())
    faults = [
        at("2s", "crash", target="broker-3") | {"for": "10s"},
        at("4s", "delete-topic", topic="orders"),
        at("6s", "create-topic", topic="orders"),
    ]
    producer = {"config": {"acks": "all"} | FRESH}
    ran = go(tmp_path, topic=ONE, faults=faults, producer=producer, lasts="30s", then="stop")
    assert ran.rows("partition_changes", topic="orders")[-1]["in_sync"] == "1,2"


# -- settings and elections ------------------------------------------------------------------------


def test_a_lower_minimum_isr_opens_a_partition_that_was_shut(tmp_path):
    faults = [
        at("2s", "crash", target="broker-2"),
        at("2s", "crash", target="broker-3"),
        at("20s", "alter-config", topic="orders", config={"min.insync.replicas": 1}),
    ]
    ran = go(
        tmp_path, topic=ONE | {"config": {"min.insync.replicas": 2}}, faults=faults, lasts="24s",
        then="stop",
    )  # fmt: skip
    moves = ran.times("high_watermarks", topic="orders")
    gap = [t for t in moves if 13 * S < t < 20 * S]
    assert gap == []
    assert [t for t in moves if t > 20 * S]


def test_a_setting_that_never_arrives_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(replica_manager.ReplicaManager, "_reconfigure", lambda *_: None)
    faults = [
        at("2s", "crash", target="broker-2"),
        at("2s", "crash", target="broker-3"),
        at("20s", "alter-config", topic="orders", config={"min.insync.replicas": 1}),
    ]
    ran = go(tmp_path, topic=ONE, faults=faults, lasts="24s", then="stop")
    assert [t for t in ran.times("high_watermarks", topic="orders") if t > 20 * S] == []


def test_an_election_that_is_not_needed_is_no_pass(tmp_path):
    faults = [at("2s", "elect-leader", partition="orders-0", election="preferred")]
    ran = go(tmp_path, topic=ONE, faults=faults, lasts="4s")
    assert not ran.verdict["held"]
    assert "ELECTION_NOT_NEEDED" in ran.faults[0]["effect"]


# -- the scenario file -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        (at("1s", "delete-topic", topic="order"), "no topic 'order'"),
        (at("1s", "create-partitions", topic="orders", count=2), "has 3 from the start"),
        (at("1s", "reassign", partition="orders-9", replicas=["broker-1"]), "no partition"),
        (at("1s", "reassign", partition="orders-0", replicas=["broker-9"]), "no broker 'broker-9'"),
        (at("1s", "reassign", partition="orders-0", replicas=["broker-1", "broker-1"]), "twice"),
        (
            at("1s", "alter-config", topic="orders", config={"min.insync.replicas": 9}),
            "above replication.factor",
        ),
        (at("1s", "alter-config", topic="orders", config={"min.insync": 1}), "unknown topic"),
        (at("1s", "create-topic", topic="orders"), "it exists"),
    ],
)
def test_what_cannot_be_is_refused_before_the_run(fault, found):
    with pytest.raises(ScenarioError, match=found):
        load_text(text_of(faults=[fault]))


def test_every_operation_is_written_back_as_it_was_read():
    faults = [
        at("1s", "reassign", partition="orders-0", replicas=["broker-1", "broker-2"]),
        at("2s", "cancel-reassignment", partition="orders-0"),
        at("3s", "create-partitions", topic="orders", count=5),
        at("3s", "alter-config", topic="orders", config={"segment.bytes": 1_048_576}),
        at("4s", "elect-leader", partition="orders-1", election="unclean"),
        at("3500ms", "delete-topic", topic="orders"),
        at("5s", "create-topic", topic="orders"),
    ]
    scenario = load_text(text_of(faults=faults))
    again = load_text(scenario.as_yaml())
    assert again.faults == scenario.faults
    assert again.digest == scenario.digest
