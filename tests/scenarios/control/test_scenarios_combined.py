"""Processes that are broker and controller in one, beside processes of their own."""

import pytest

from sim.inspect.doctor import examine
from tests.scenarios.run_kit import S, go

COMBINED = {"brokers": 3, "combined": 3, "controllers": None}
QUIET = {"rate": "20/s"}


def combined(directory, fault=None, lasts="20s", **cluster):
    parts = {"cluster": {**COMBINED, **cluster}, "producer": QUIET, "lasts": lasts}
    return go(directory, faults=[fault] if fault else [], **parts)


def leaders(ran):
    """(instant, node) of every election of a controller."""
    return [(row["t_us"], row["node"]) for row in ran.rows("quorum", role="leader")]


def test_a_combined_process_that_dies_costs_an_election_and_then_a_session(shared):
    together, apart = shared.ran("combined-roles-crash"), shared.ran("separate-roles-crash")
    died = 5 * S
    assert together.verdict["expectations"][1]["held"]
    (elected,) = [at for at, _ in leaders(together) if died < at < 20 * S]
    assert not [at for at, _ in leaders(apart) if died < at < 20 * S]
    gone = [node for at, node in leaders(together) if at < died][-1]
    led = [p for p in range(3) if together.leader_at(died, p) == gone]
    assert led
    for partition in led:
        assert together.changed_leader(died, partition) >= elected + 9 * S
    moved = [apart.changed_leader(died, 0)]
    assert all(at <= died + 9 * S + 2 * S for at in moved)


def test_one_process_has_one_metadata_log_and_one_vote(tmp_path):
    ran = combined(tmp_path, lasts="2s")
    assert sorted(path.name for path in (ran.directory / "disks").iterdir()) == [
        "broker-1", "broker-2", "broker-3",
    ]  # fmt: skip
    for path in ran.log_dirs():
        assert (path / "__cluster_metadata-0" / "quorum-state").exists()
        assert not examine(path)
    assert {row["role"] for row in ran.rows("quorum") if row["t_us"] > 0} <= {"leader", "follower"}


@pytest.mark.parametrize(
    "fault",
    [
        {"at": "2s", "do": "controlled-shutdown", "target": "controller leader", "for": "5s"},
        {"at": "2s", "do": "power-loss", "target": "controller leader", "for": "5s"},
        {"at": "2s", "do": "pause", "target": "controller leader", "for": "6s"},
    ],
    ids=lambda fault: fault["do"],
)
def test_whatever_ends_the_process_ends_both_roles_and_both_come_back(tmp_path, fault):
    ran = combined(tmp_path, fault, lasts="12s")
    (former,) = {node for at, node in leaders(ran) if at < 2 * S}
    after = {node for at, node in leaders(ran) if at > 2 * S}
    assert after
    assert former not in after
    assert ran.records["lost_acked"] == 0
    last = ran.rows("quorum", node=former)[-1]
    assert last["role"] == "follower"


def test_a_controlled_shutdown_hands_over_partitions_and_then_the_quorum(tmp_path):
    fault = {"at": "2s", "do": "controlled-shutdown", "target": "controller leader", "for": "5s"}
    ran = combined(tmp_path, fault, lasts="10s")
    (former,) = {node for at, node in leaders(ran) if at < 2 * S}
    resigned = ran.times("quorum", node=former, role="resigned")[0]
    moved = [ran.changed_leader(2 * S, p) for p in range(3) if ran.leader_at(2 * S, p) == former]
    assert moved
    assert max(moved) < resigned < 5 * S  # the grant comes with a heartbeat, every 2 s
