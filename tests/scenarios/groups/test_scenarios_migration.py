"""A group that moves to the consumer protocol and back in a whole cluster, member by member.

Source: KIP-848, ``group.consumer.migration.policy``.
"""

import pytest

from sim.protocol.assignors.registry import partition_for_group
from sim.wire.record_batch import parse_batches
from sim.wire.schemas import decode_coordinator
from tests.scenarios.groups.test_scenarios_consumer_protocol import BROKERS, held, unread
from tests.scenarios.run_kit import S, go

SIX = {"partitions": 6}
SLOWLY = {"rate": "60/s"}
EARLIEST = {"auto.offset.reset": "earliest", "auto.commit.interval.ms": 1_000}
CLASSIC = EARLIEST | {"heartbeat.interval.ms": 1_000, "session.timeout.ms": 6_000}
CONSUMER = EARLIEST | {"group.protocol": "consumer"}
COOPERATIVE = CLASSIC | {"partition.assignment.strategy": "cooperative-sticky,range"}


def member(name, config, **more):
    return {"group": "billing", "name": name, "topics": ["orders"], "config": config} | more


def replaced(first, second):
    """Two members whose places are taken by two others, one after the other."""
    return [
        member("first-a", first, stop="10s"),
        member("first-b", first, stop="15s"),
        member("next-a", second, start="9s"),
        member("next-b", second, start="14s"),
    ]


def states(ran, until=22 * S):
    return [(row["reason"], row["state"]) for row in ran.rows("groups") if row["t_us"] < until]


def sizes(ran, at):
    """How many partitions each consumer has that is still there."""
    left = {row["node"] for row in ran.rows("node_states", state="stopped") if row["t_us"] <= at}
    return {name: len(mine) for name, mine in held(ran, at).items() if mine and name not in left}


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory):
    return go(tmp_path_factory.mktemp("upgraded"), consumers=replaced(COOPERATIVE, CONSUMER),
              topic=SIX, producer=SLOWLY, config=BROKERS, lasts="22s")  # fmt: skip


def test_a_group_is_upgraded_member_by_member_and_reads_everything_once(upgraded):
    assert ("upgraded", "Stable") in states(upgraded)
    assert sizes(upgraded, 8 * S) == {"first-a": 3, "first-b": 3}
    assert sizes(upgraded, 13 * S) == {"first-b": 3, "next-a": 3}, "one of each protocol"
    assert sizes(upgraded, 22 * S) == {"next-a": 3, "next-b": 3}
    assert unread(upgraded) == []
    got = sum(row["record_count"] for row in upgraded.rows("reads"))
    assert got == upgraded.records["acked"]


def test_a_generation_goes_over_into_the_member_epochs(upgraded):
    epochs = [row["generation"] for row in upgraded.rows("groups")]
    assert epochs == sorted(epochs)
    assert epochs[-1] > 4
    assert {row["consumer"] for row in upgraded.rows("group_members", member_epoch=1)} == {
        "first-a", "first-b",
    }  # fmt: skip
    for name in ("partitions-have-one-owner", "member-epochs-advance", "assignments-disjoint"):
        assert upgraded.checked(name) > 3, name
    assert upgraded.checked("commits-carry-the-member-epoch") > 3


def test_what_an_upgrade_leaves_in_the_offsets_topic_has_kafkas_records(upgraded):
    number = partition_for_group("billing")
    home = next(iter(sorted(upgraded.directory.glob(f"disks/*/*/__consumer_offsets-{number}"))))
    found, classic = [], []
    for batch in parse_batches((home / f"{0:020}.log").read_bytes()):
        for record in batch.records():
            key, value = decode_coordinator(record.key, record.value)
            found.append((key.name, value is None))
            if key.name == "ConsumerGroupMemberMetadataKey" and value is not None:
                said = value.values["classicMemberMetadata"]
                classic.append(None if said is None else said["sessionTimeoutMs"])
    assert ("GroupMetadataKey", True) in found, "the classic group is deleted"
    assert classic[:3] == [6_000, 6_000, None]


def test_a_group_is_downgraded_when_its_last_member_of_the_consumer_protocol_leaves(tmp_path):
    ran = go(tmp_path, consumers=replaced(CONSUMER, CLASSIC), topic=SIX, producer=SLOWLY,
             config=BROKERS, lasts="22s")  # fmt: skip
    (at,) = ran.times("groups", reason="downgraded")
    assert 15 * S < at < 16 * S
    assert sizes(ran, 14 * S) == {"first-b": 3, "next-a": 3}
    assert sizes(ran, 22 * S) == {"next-a": 3, "next-b": 3}
    assert states(ran)[-1] == ("assignment committed", "Stable")
    assert unread(ran) == []
    assert ran.checked("commits-are-current") > 3


def test_a_mixed_group_is_found_by_the_next_coordinator(tmp_path):
    members = [member("old", CLASSIC), member("new", CONSUMER, start="8s")]
    crash = {"at": "14s", "do": "crash", "target": "group coordinator of billing", "for": "10s"}
    ran = go(tmp_path, consumers=members, topic=SIX, producer=SLOWLY, config=BROKERS,
             faults=[crash], lasts="30s")  # fmt: skip
    assert ran.rows("groups", reason="loaded")[-1]["members"] == 2
    assert sizes(ran, 30 * S) == {"old": 3, "new": 3}
    assert unread(ran) == []


@pytest.mark.parametrize("policy", ["downgrade", "disabled"])
def test_without_upgrades_a_member_of_the_consumer_protocol_ends(tmp_path, policy):
    ran = go(tmp_path, consumers=[member("old", CLASSIC), member("new", CONSUMER, start="8s")],
             topic=SIX, producer=SLOWLY, lasts="14s",
             config=BROKERS | {"group.consumer.migration.policy": policy})  # fmt: skip
    assert sizes(ran, 14 * S) == {"old": 6}
    assert ran.times("node_states", node="new", state="stopped")[0] < 9 * S
    assert ran.rows("group_members") == []
    assert unread(ran) == []
