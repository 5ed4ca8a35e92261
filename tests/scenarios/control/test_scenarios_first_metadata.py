"""When a broker that starts first applies metadata: before it is registered, since 3.5.

Its former session keeps a new process from registering (DUPLICATE_BROKER_REGISTRATION). Until then
the controller takes it for the process before, and since 3.5 it leads and follows in its own view.

Source: ``BrokerServer.startup`` (3.4, 4.3), ``AssignmentsManager`` (3.8, 3.9).
"""

import pytest

from sim.protocol.broker.replication.directories.replica_directories import ReplicaDirectories
from tests.scenarios.run_kit import JOIN_US, S, go

SESSION_US = 4 * S
CONFIG = {"broker.session.timeout.ms": 4000, "broker.heartbeat.interval.ms": 500}
QUICK = {"cpu": {"start": "1s"}}
"""Quicker than a session ends."""
WIPED = {"at": "3s", "do": "wiped-disk", "target": "leader of orders-0"}


def empty_disk(directory, **positions):
    return go(
        directory, faults=[WIPED], lasts="14s", topic={"partitions": 1}, cluster=QUICK,
        config=CONFIG, producer={"rate": "100/s"}, behaviours=positions,
    )  # fmt: skip


def story(ran):
    """(leader, ISR) after each change since the fault, with the fencing at its place."""
    name = int(ran.faults[0]["resolved"].removeprefix("broker-"))
    (fenced,) = ran.times("broker_states", broker=name, state="fenced")
    found, state = [], (name, 3)
    for row in ran.rows("partition_changes", topic="orders"):
        if row["t_us"] < 3 * S:
            continue
        if row["t_us"] >= fenced and "fenced" not in found:
            found.append("fenced")
        now = (row["leader"], len(row["in_sync"].split(",")))
        if now != state:
            found.append("moved" if now[0] != state[0] else now[1])
            state = now
    return found


def test_an_empty_directory_moves_its_leaderships_before_the_session_ends(tmp_path):
    """As three rehearsals on a real 4.3.1 showed it: docs/real-cluster, ``disk-replaced``."""
    ran = empty_disk(tmp_path)
    assert story(ran) == ["moved", 3, "fenced", 2, 3]
    assert ran.changed_leader(3 * S) - 3 * S < S + S // 2, "the start, and a pass of the loader"
    assert ran.records["lost_acked"] == 0
    assert ran.verdict["held"]


@pytest.mark.parametrize(
    "older",
    [{"metadata.first_publish": "registered"}, {"directories.broker_epoch": "registration"}],
    ids=["until_3.4", "3.5_to_3.8"],
)
def test_before_3_9_an_empty_directory_waits_for_the_end_of_the_session(older, tmp_path):
    ran = empty_disk(tmp_path, **older)
    assert story(ran) == ["fenced", "moved", 3]
    assert ran.changed_leader(3 * S) - 3 * S > SESSION_US - S // 2 - JOIN_US
    assert ran.verdict["held"]


def fetched(ran):
    """Fetches of the restarted follower that a leader answered before its new registration."""
    name = ran.faults[0]["resolved"]
    number = int(name.removeprefix("broker-"))
    registered = ran.times("broker_states", broker=number, state="registered")[-1]
    (_, again) = ran.times("node_states", node=name, state="started")
    assert again + S < registered, "the session kept it out"
    asked = [row["decided_us"] for row in ran.rows("requests", client=name, kind="FetchFollower")]
    return [at for at in asked if again < at < registered]


@pytest.mark.parametrize(("position", "early"), [("high_watermark", True), ("registered", False)])
def test_a_follower_fetches_before_it_is_registered_since_3_5(position, early, tmp_path):
    ran = go(
        tmp_path, lasts="12s", topic={"partitions": 1}, cluster=QUICK, config=CONFIG,
        faults=[{"at": "3s", "do": "restart", "target": "follower of orders-0"}],
        producer={"rate": "100/s"}, behaviours={"metadata.first_publish": position},
    )  # fmt: skip
    assert bool(fetched(ran)) is early
    assert ran.records["lost_acked"] == 0
    assert ran.verdict["held"]


def test_it_is_the_epoch_of_the_former_process_that_the_controller_takes(tmp_path, monkeypatch):
    """Planted: the process speaks for itself, and has no epoch yet."""
    monkeypatch.setenv("LOGQUAKE_PURE", "1")
    monkeypatch.setattr(ReplicaDirectories, "_broker_epoch", lambda self: -1)
    assert story(empty_disk(tmp_path)) == ["fenced", "moved", 3]
