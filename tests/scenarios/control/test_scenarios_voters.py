"""Controllers that get a vote on metadata, or lose it, while the cluster runs (KIP-853)."""

import json

import pytest

from sim.errors import InvariantBroken
from sim.inspect.doctor import examine
from sim.nodes.storage.snapshot_files import snapshot_voters
from tests.scenarios.run_kit import S, go

DYNAMIC = {"controllers": 4, "quorum": "dynamic", "initial.controllers": 3}
QUIET = {"rate": "10/s"}
REPLACED = [
    {"at": "1s", "do": "failed-disk", "target": "controller-3", "for": "500ms"},
    {"at": "2s", "do": "restart", "target": "controller-3"},
]


def change(do, target, at):
    return {"at": at, "do": f"{do}-controller", "target": target}


def outcomes(ran):
    return [fault["effect"] for fault in ran.faults if fault["kind"].endswith("-controller")]


def roles(ran, node, after=0):
    return [row["role"] for row in ran.rows("quorum", node=node) if row["t_us"] > after]


def vote_file(ran, number):
    (path,) = ran.directory.glob(f"disks/controller-{number}/*/*/quorum-state")
    return json.loads(path.read_text())


def test_a_controller_gets_a_vote_and_the_active_one_gives_its_own_up(tmp_path):
    faults = [
        change("add", "controller-4", "1s"),
        change("remove", "controller leader", "2s"),
        change("add", "controller-2", "4s"),
    ]
    ran = go(tmp_path, cluster=DYNAMIC, faults=faults, producer=QUIET, lasts="5s")
    (added, removed, twice) = outcomes(ran)
    assert (added, removed) == ("committed", "committed")
    assert twice == "refused: DUPLICATE_VOTER"
    assert roles(ran, 3004, after=-60 * S)[0] == "observer"
    assert "follower" in roles(ran, 3004, after=1 * S)
    former = roles(ran, 3001, after=2 * S)
    assert former[0] == "resigned"
    assert set(former[1:]) == {"observer"}
    leaders = {row["leader"] for row in ran.rows("quorum", node=3004) if row["t_us"] > 4 * S}
    assert leaders <= {3002, 3003}
    state = vote_file(ran, 2)
    assert (state["data_version"], state["leaderId"] in {3002, 3003}) == (1, True)
    assert all(not examine(path) for path in ran.log_dirs("controller"))


def test_a_replaced_disk_has_no_vote_before_it_is_given_one(tmp_path):
    faults = [
        *REPLACED,
        change("remove", "controller-3", "3s"),
        change("add", "controller-3", "4s"),
    ]
    dynamic = {"quorum": "dynamic"}
    ran = go(tmp_path, cluster=dynamic, faults=faults, producer=QUIET, lasts="5s")
    assert outcomes(ran) == ["committed", "committed"]
    assert roles(ran, 3003, after=2 * S - 1)[:2] == ["observer", "observer"]
    assert "follower" in roles(ran, 3003, after=4 * S)


def test_a_replaced_disk_of_a_static_quorum_forgets_what_it_voted(tmp_path):
    with pytest.raises(InvariantBroken, match=r"one-quorum-leader broken at 2.0.* controller-3"):
        go(tmp_path, faults=REPLACED, producer=QUIET, lasts="3s")


def test_the_voters_of_a_static_quorum_stay(tmp_path):
    faults = [change("remove", "controller-3", "1s")]
    ran = go(tmp_path, faults=faults, producer=QUIET, lasts="2s")
    assert outcomes(ran) == ["refused: UNSUPPORTED_VERSION"]


def test_a_snapshot_says_who_votes(tmp_path):
    config = {"metadata.log.max.record.bytes.between.snapshots": 300}
    faults = [change("add", "controller-4", "1s")]
    ran = go(tmp_path, cluster=DYNAMIC, faults=faults, producer=QUIET, lasts="3s", config=config)
    assert outcomes(ran) == ["committed"]
    (path,) = ran.directory.glob("disks/controller-4/*/__cluster_metadata-0")
    newest = max(path.glob("*.checkpoint"))
    assert [voter.node for voter in snapshot_voters(newest.read_bytes())] == [
        3001, 3002, 3003, 3004,
    ]  # fmt: skip


@pytest.mark.parametrize("joins", [False, True])
def test_a_controller_that_adds_itself_votes_again_with_a_replaced_disk(tmp_path, joins):
    dynamic = {"quorum": "dynamic", "kafka": "4.2"}
    config = {"controller.quorum.auto.join.enable": joins}
    ran = go(tmp_path, cluster=dynamic, config=config, faults=REPLACED, producer=QUIET, lasts="12s")
    assert ("follower" in roles(ran, 3003, after=2 * S)) is joins
    assert all(not examine(path) for path in ran.log_dirs("controller"))
