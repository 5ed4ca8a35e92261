"""Replicas moved between the log directories of a broker while the cluster runs (KIP-113)."""

import pytest

from sim.errors import InvariantBroken, ScenarioError
from sim.ids import TopicPartition
from sim.inspect.doctor import examine
from sim.log.store import checkpoints
from sim.nodes.broker.directory_moves import DirectoryMoves
from sim.protocol.broker.replication.directories.alter_log_dirs import AlterLogDirs
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import S, go, text_of

TWO = {"disk": {"directories": 2}}
ONE = {"partitions": 1}
CONTROLLERS = ["controller-1", "controller-2", "controller-3"]


def move(at="2s", to=1, broker="broker-1", partition="orders-0"):
    keys = {"partition": partition, "broker": broker, "to": to}
    return {"at": at, "do": "alter-replica-log-dirs", **keys}


def holding(message, at="1900ms", **more):
    """Broker-1 and the controllers do not hear of each other's directories."""
    way = {"from": ["broker-1"], "to": CONTROLLERS}
    if message.endswith("Response"):
        way = {"from": CONTROLLERS, "to": ["broker-1"]}
    return {"at": at, "do": "hold", "message": message, **way, **more}


def phases(ran, partition=0):
    rows = ran.rows("log_dir_moves", topic="orders", partition=partition)
    return [row["phase"] for row in rows]


def names(ran, number, broker="broker-1"):
    root = ran.directory / f"disks/{broker}/data-{number}"
    return sorted(path.name for path in root.iterdir() if path.name.startswith("orders-"))


def told(ran):
    return [str(finding) for finding in examine(ran.directory / "disks")]


def test_a_leader_s_log_moves_under_load_and_loses_nothing(tmp_path):
    small = {"segment.bytes": 1_048_576, "min.insync.replicas": 2}
    ran = go(
        tmp_path, cluster=TWO, topic=ONE | {"config": small}, faults=[move()], lasts="4s",
        producer={"record.size": "3000B"},
    )  # fmt: skip
    assert ran.faults[0]["took_effect"]
    assert ran.faults[0]["effect"] == "the replica has arrived"
    assert list(dict.fromkeys(phases(ran))) == ["began", "caught_up", "swapped"]
    assert names(ran, 1) == ["orders-0"]
    (gone,) = names(ran, 0)
    assert gone.endswith("-delete")
    assert ran.records["lost_acked"] == ran.records["failed"] == ran.records["divergent"] == 0
    assert told(ran) == []
    swapped = ran.rows("log_dir_moves", phase="swapped")[0]
    assert swapped["future_end"] == swapped["log_end_offset"] > 900
    assert swapped["t_us"] - 2 * S < S // 10
    logs = [sorted((ran.directory / f"disks/broker-{b}").glob("data-?/orders-0/*.log"))
            for b in (1, 2)]  # fmt: skip
    assert len(logs[0]) > 3
    assert [log.read_bytes() for log in logs[0]] == [log.read_bytes() for log in logs[1]]


def test_nothing_is_moved_to_where_it_lies_and_the_run_is_no_pass(tmp_path):
    """The twin."""
    ran = go(tmp_path, cluster=TWO, topic=ONE, faults=[move(to=0)], lasts="3s", then="stop")
    assert phases(ran) == []
    assert not ran.faults[0]["took_effect"]
    assert not ran.verdict["held"]


def test_replicas_of_one_partition_move_at_once_on_their_brokers(tmp_path):
    """A follower's log moves as a leader's does."""
    faults = [move(broker="broker-1"), move(broker="broker-2")]
    ran = go(tmp_path, cluster=TWO, topic=ONE, faults=faults, lasts="3s")
    assert [fault["resolved"] for fault in ran.faults] == [
        "orders-0 on broker-1", "orders-0 on broker-2",
    ]  # fmt: skip
    assert all(fault["took_effect"] for fault in ran.faults)
    assert [names(ran, 1, broker) for broker in ("broker-1", "broker-2")] == [["orders-0"]] * 2
    assert names(ran, 1, "broker-3") == []
    assert ran.records["lost_acked"] == ran.records["divergent"] == 0


def test_the_log_in_use_stays_until_the_controller_has_agreed(tmp_path):
    faults = [holding("AssignReplicasToDirsRequest", **{"for": "2s"}), move()]
    ran = go(tmp_path, cluster=TWO, topic=ONE, faults=faults, lasts="5s")
    (swapped,) = ran.times("log_dir_moves", phase="swapped")
    assert 3_900_000 < swapped < 4 * S
    assert ran.records["lost_acked"] == 0


def test_after_a_crash_the_copying_goes_on_where_it_was(tmp_path):
    # What is held would arrive although its sender is dead, and be heard.
    faults = [
        holding("AssignReplicasToDirsRequest", **{"for": "1500ms"}) | {"do": "drop"},
        move(broker="broker-1"),
        {"at": "2500ms", "do": "crash", "target": "broker-1", "for": "500ms"},
    ]
    ran = go(tmp_path, cluster=TWO, topic=ONE, faults=faults, lasts="14s")
    assert list(dict.fromkeys(phases(ran))) == ["began", "caught_up", "resumed", "swapped"]
    (resumed,) = ran.rows("log_dir_moves", phase="resumed")
    assert resumed["future_end"] > 900
    assert ran.faults[1]["took_effect"]
    assert names(ran, 1) == ["orders-0"]
    assert ran.records["lost_acked"] == ran.records["divergent"] == 0
    assert told(ran) == []


def test_a_crash_between_the_controllers_consent_and_the_change_is_made_good_at_the_start(
    tmp_path,
):
    faults = [
        holding("AssignReplicasToDirsResponse", **{"for": "1s"}),
        move(),
        {"at": "2500ms", "do": "crash", "target": "broker-1", "for": "500ms"},
    ]
    ran = go(tmp_path, cluster=TWO, topic=ONE, faults=faults, lasts="14s")
    assert "resumed" not in phases(ran)
    assert phases(ran)[-1] == "swapped"
    assert ran.rows("log_dir_moves", phase="swapped")[0]["t_us"] > 3 * S
    assert names(ran, 1) == ["orders-0"]
    assert ran.records["lost_acked"] == ran.records["divergent"] == 0


@pytest.mark.parametrize("directory", [0, 1])
def test_a_directory_fails_while_a_replica_moves(tmp_path, directory):
    """That of the future log: the other stays. That of the current: the replica is offline."""
    target = TopicPartition("orders", 1)
    faults = [
        holding("AssignReplicasToDirsRequest", **{"for": "2s"}),
        # orders-1 lies in the second directory, which may fail without the metadata log.
        move(to=0) if directory else move(to=1),
        {"at": "2500ms", "do": "failed-disk", "target": "broker-1", "directory": 1},
    ]
    partition = target if directory else TopicPartition("orders", 0)
    faults[1]["partition"] = str(partition)
    ran = go(tmp_path, cluster=TWO, topic={"partitions": 2}, faults=faults, lasts="6s", then="stop")
    number = partition.partition
    assert list(dict.fromkeys(phases(ran, number))) == ["began", "caught_up", "failed"]
    offline = ran.rows("leadership", broker=1, partition=number, role="offline", topic="orders")
    assert bool([row for row in offline if row["t_us"] > 2 * S]) is bool(directory)
    if not directory:
        assert "orders-0" in names(ran, 0)
    assert ran.records["lost_acked"] == 0


def test_a_topic_deleted_while_it_moves_leaves_neither_log(tmp_path):
    faults = [
        holding("AssignReplicasToDirsRequest", **{"for": "3s"}),
        move(),
        {"at": "3s", "do": "delete-topic", "topic": "orders"},
    ]
    producer = {"config": {"acks": "all", "max.block.ms": 1_000, "delivery.timeout.ms": 31_000}}
    ran = go(
        tmp_path, cluster=TWO, topic=ONE, faults=faults, producer=producer, lasts="5s", then="stop"
    )
    assert phases(ran)[-1] == "cancelled"
    left = names(ran, 0) + names(ran, 1)
    assert len(left) == 2
    assert all(name.endswith("-delete") for name in left)


def test_called_back_the_replica_stays_and_what_was_copied_goes(tmp_path):
    faults = [holding("AssignReplicasToDirsRequest", **{"for": "2s"}), move(), move("3s", to=0)]
    ran = go(tmp_path, cluster=TWO, topic=ONE, faults=faults, lasts="5s")
    assert phases(ran)[-1] == "cancelled"
    assert names(ran, 0) == ["orders-0"]
    assert [name.endswith("-delete") for name in names(ran, 1)] == [True]
    assert ran.records["lost_acked"] == 0


@pytest.mark.slow
def test_compacted_logs_with_transactions_move_as_they_are(tmp_path):
    compacted = {
        "cleanup.policy": "compact", "min.cleanable.dirty.ratio": 0.01, "segment.bytes": 1_048_576,
    }  # fmt: skip
    ran = go(
        tmp_path,
        cluster=TWO,
        topic=ONE | {"config": compacted},
        config={"log.cleaner.backoff.ms": 200, "log.segment.delete.delay.ms": 1_000,
                "transaction.state.log.num.partitions": 1},
        producer={"rate": "2000/s", "record.size": "1000B", "keys": "uniform", "key.count": 50,
                  "transaction": {"records": 100, "abort": "20%"},
                  "config": {"acks": "all", "transactional.id": "shop"}},
        faults=[move("3s"), move("5s", to=0)],
        lasts="8s",
    )  # fmt: skip
    assert all(fault["took_effect"] for fault in ran.faults)
    cleaned = ran.times("cleanings", broker=1, topic="orders")
    swapped = ran.times("log_dir_moves", phase="swapped")
    assert any(at < swapped[0] for at in cleaned)
    assert any(at > swapped[1] for at in cleaned)
    assert ran.records["lost_acked"] == ran.records["torn_transactions"] == 0
    assert ran.records["divergent"] == 0
    assert told(ran) == []
    offsets = (ran.directory / "disks/broker-1/data-1/cleaner-offset-checkpoint").read_bytes()
    assert TopicPartition("orders", 0) not in checkpoints.decode_offsets(offsets, "x")


# -- what a scenario may ask -----------------------------------------------------------------------


def test_a_move_that_cannot_be_is_refused_before_the_run():
    for fault, cluster, words in (
        (move(to=2), TWO, "no log directory 2"),
        (move(broker="broker-9"), TWO, "no broker 'broker-9'"),
        (move(partition="orders-7"), TWO, "no partition 'orders-7'"),
        (move(), {}, "each broker has one log directory"),
    ):
        with pytest.raises(ScenarioError, match=words):
            load_text(text_of(cluster=cluster, faults=[fault]))


# -- planted defects -------------------------------------------------------------------------------


def test_a_change_before_the_new_log_has_caught_up_is_noticed(tmp_path, monkeypatch):
    def at_once(moves, one, replica, now, out):
        if one.future.log.log_end_offset > 0:
            moves._swap(one, replica, now, out)

    monkeypatch.setattr(AlterLogDirs, "_promote", at_once)
    big = {"record.size": "10000B", "rate": "200/s"}
    with pytest.raises((InvariantBroken, AssertionError)):
        go(tmp_path, cluster=TWO, topic=ONE, faults=[move()], producer=big, lasts="4s")


def test_a_change_that_the_controller_is_not_asked_for_first_is_noticed(tmp_path, monkeypatch):
    """The twin of waiting for its consent."""

    def unasked(moves, one, replica, now, out):
        one.assignment = "accepted"
        honest(moves, one, replica, now, out)

    honest = AlterLogDirs._promote
    monkeypatch.setattr(AlterLogDirs, "_promote", unasked)
    with pytest.raises(AssertionError):
        test_the_log_in_use_stays_until_the_controller_has_agreed(tmp_path)


def test_a_start_that_forgets_what_was_agreed_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(DirectoryMoves, "finish_agreed", lambda *_: None)
    with pytest.raises(AssertionError):
        test_a_crash_between_the_controllers_consent_and_the_change_is_made_good_at_the_start(
            tmp_path
        )
