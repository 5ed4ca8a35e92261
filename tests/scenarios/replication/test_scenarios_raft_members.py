"""Raft groups whose members change while traffic goes on: `reassign` with `replication: raft`."""

import pytest

from sim.errors import InvariantBroken
from sim.protocol.raft_groups.types import RaftRules
from tests.scenarios.run_kit import S, go

TOPICS = {"orders": {"partitions": 1, "replication.factor": 3}}
RAFT = {"replication": "raft", "brokers": 6, "controllers": 1}
FIRST = [f"broker-{n}" for n in (1, 2, 3)]
OTHERS = [f"broker-{n}" for n in (4, 5, 6)]
NEIGHBOURS = ["broker-2", "broker-3", "broker-4"]


def move(at, replicas):
    return {"at": at, "do": "reassign", "partition": "orders-0", "replicas": replicas}


def moved(directory, faults, lasts="3s", **parts):
    cluster = RAFT | parts.pop("cluster", {})
    producer = {"rate": "100/s"} | parts.pop("producer", {})
    return go(
        directory,
        cluster=cluster,
        topics=TOPICS,
        faults=faults,
        lasts=lasts,
        producer=producer,
        **parts,
    )


def members(ran):
    """The voters, old voters and learners that the logs of leaders said, one after the other."""
    rows = ran.rows("raft_configurations", topic="orders")
    said = [(row["voters"], row["old"], row["learners"]) for row in rows]
    return [now for before, now in zip([None, *said], said, strict=False) if now != before]


def last_change(ran):
    return ran.rows("partition_changes", topic="orders")[-1]


@pytest.fixture(scope="module")
def replaced(tmp_path_factory):
    """All three replicas move to others, the leader among them, while a producer writes.

    Less than half a second of it without a leader leaves 250 of its 300 records a batch each.
    """
    directory = tmp_path_factory.mktemp("raft-moved")
    return moved(directory, [move("100ms", FIRST), move("1s", OTHERS)])


def test_new_members_learn_first_then_vote_one_by_one_and_the_old_ones_go_by_joint_consensus(
    replaced,
):
    said = members(replaced)
    begin = said.index(("1,2,3", "", "4,5,6"))
    voters = [now[0] for now in said[begin:]]
    assert [len(v.split(",")) for v in voters] == [3, 4, 5, 6, 3, 3]
    assert said[-2:] == [("4,5,6", voters[3], ""), ("4,5,6", "", "")]


def test_traffic_goes_on_while_replicas_move_and_nothing_is_lost(replaced):
    assert replaced.verdict["availability"]["produce_max_us"] < S // 2
    assert replaced.records["acked"] == replaced.records["sent"] == replaced.records["survived"]
    assert replaced.records["duplicated"] == replaced.records["divergent"] == 0


def test_the_controller_lets_go_of_the_old_replicas_once_the_group_has_moved(replaced):
    changes = replaced.rows("partition_changes", topic="orders")
    assert [row["replicas"] for row in changes][-3:] == ["4,5,6,1,2,3"] * 2 + ["4,5,6"]
    assert changes[-1]["leader"] in (4, 5, 6)
    assert changes[-1]["in_sync"] == "4,5,6"
    (settled,) = [
        row["t_us"]
        for row in replaced.rows("raft_configurations", topic="orders", voters="4,5,6", old="")
        if row["broker"] in (1, 2, 3)
    ]
    removed = replaced.rows("leadership", topic="orders", role="removed")
    gone = [row for row in removed if row["t_us"] > S]
    assert sorted(row["broker"] for row in gone) == [1, 2, 3]
    assert all(row["t_us"] > settled for row in gone)


def test_the_checks_held_every_change_and_every_commit_against_the_members_of_the_moment(replaced):
    assert replaced.checked("raft-one-change-at-a-time") >= 8
    commits = replaced.times("high_watermarks", topic="orders")
    assert replaced.checked("raft-commit-needs-majority") == len(commits) > 200


def test_a_leader_that_crashes_in_the_middle_of_a_move_leaves_it_to_the_next(tmp_path):
    crash = {"at": "1003ms", "do": "crash", "target": "leader of orders-0", "for": "2500ms"}
    ran = moved(tmp_path, [move("100ms", FIRST), move("1s", OTHERS), crash], lasts="4s")
    assert len({row["broker"] for row in ran.rows("raft_configurations", topic="orders")}) > 2
    assert members(ran)[-1] == ("4,5,6", "", "")
    assert last_change(ran)["replicas"] == "4,5,6"
    assert ran.records["lost_acked"] == ran.records["divergent"] == 0


def test_a_move_that_is_called_off_goes_back_through_the_group(tmp_path):
    cancel = {"at": "1005ms", "do": "cancel-reassignment", "partition": "orders-0"}
    ran = moved(tmp_path, [move("100ms", FIRST), move("1s", OTHERS), cancel], lasts="2s")
    said = members(ran)
    assert ("1,2,3", "", "4,5,6") in said
    assert said[-1] == ("1,2,3", "", "")
    assert last_change(ran)["replicas"] == "1,2,3"
    assert ran.records["lost_acked"] == 0


def test_a_change_on_top_of_one_that_is_not_committed_is_caught_while_it_runs(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(RaftRules, "may_change", lambda _self, **_: True)
    with pytest.raises(InvariantBroken, match="raft-one-change-at-a-time"):
        moved(tmp_path, [move("100ms", NEIGHBOURS), move("300ms", OTHERS)], lasts="1s")


@pytest.mark.parametrize("rate", [20_000, 104_857_600])
def test_learners_are_brought_up_to_date_no_faster_than_the_rate_of_their_leaders_broker(
    tmp_path, rate
):
    config = {"raft_learner_recovery_rate": rate, "raft_recovery_default_read_size": 5_000}
    big = {"rate": "100/s", "record.size": "1kB"}
    ran = moved(
        tmp_path,
        [move("1s", OTHERS)],
        cluster={"config": config},
        producer=big,
        lasts="2s",
        then="stop",
    )
    learned = sum(
        row["size_bytes"]
        for row in ran.rows("appends", topic="orders")
        if row["broker"] in (5, 6) and row["base_offset"] < 90 and row["t_us"] < 2 * S
    )
    if rate == 20_000:
        # A second's worth at once, another within the second, and one read too much.
        assert 35_000 <= learned <= 46_000
        assert members(ran)[-1] == ("2,3,4", "", "5,6")
    else:
        assert learned > 180_000
        assert members(ran)[-1] == ("4,5,6", "", "")
