"""Groups of the consumer protocol in a whole cluster: members die, pause, lose their coordinator.

Source: KIP-848; a member is missed after ``group.consumer.session.timeout.ms``.
"""

from itertools import pairwise

import pytest

from sim.errors import InvariantBroken
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.coordinator.group import consumer_groups
from sim.protocol.coordinator.group.consumer_groups import ConsumerGroups
from sim.wire.record_batch import parse_batches
from sim.wire.schemas import decode_coordinator
from tests.scenarios.run_kit import S, go

SESSION_US = 6 * S
TWELVE = {"partitions": 12}
SLOWLY = {"rate": "50/s"}
BROKERS = {
    "group.consumer.session.timeout.ms": SESSION_US // 1_000,
    "group.consumer.min.session.timeout.ms": SESSION_US // 1_000,
    "group.consumer.heartbeat.interval.ms": 1_000,
    "group.consumer.min.heartbeat.interval.ms": 1_000,
}


def group(count, **config):
    settings = {
        "group.protocol": "consumer",
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 1_000,
    } | config
    return {"group": "billing", "topics": ["orders"], "count": count, "config": settings}


def unread(ran):
    """Acknowledged records that no member of the group was given."""
    read = {}
    for row in ran.rows("reads"):
        key = (row["producer_index"], row["partition"])
        first = row["first_record"]
        read.setdefault(key, set()).update(range(first, first + row["record_count"]))
    return [
        (row["partition"], number)
        for row in ran.rows("client_batches", outcome="ok")
        for number in range(row["first_record"], row["first_record"] + row["record_count"])
        if number not in read.get((row["producer_index"], row["partition"]), ())
    ]


def held(ran, at):
    """Partitions of each consumer as it has taken them over by an instant."""
    latest = {}
    for row in ran.rows("assignments"):
        if row["t_us"] <= at:
            latest[row["consumer"]] = row["partitions"].split(",") if row["partitions"] else []
    return latest


def read_twice(ran):
    got = sum(row["record_count"] for row in ran.rows("reads"))
    return got - ran.records["acked"]


@pytest.fixture(scope="module")
def dies(tmp_path_factory):
    """One of three members dies at 8 s and comes back at the end."""
    faults = [{"at": "4s", "do": "crash", "target": "billing-2"}]
    directory = tmp_path_factory.mktemp("dies")
    return go(
        directory, consumers=[group(3)], topic=TWELVE, faults=faults, config=BROKERS, lasts="13s",
        producer=SLOWLY,
    )  # fmt: skip


def test_when_one_of_three_dies_the_others_read_on_after_its_session(dies):
    shares = held(dies, 12 * S)
    assert sorted(map(len, held(dies, 4 * S).values())) == [4, 4, 4]
    assert {len(shares["billing-1"]), len(shares["billing-3"])} == {6}
    took = [t for t in dies.times("assignments") if 4 * S < t < 13 * S]
    assert SESSION_US - S <= min(took) - 4 * S <= SESSION_US + 2 * S
    assert unread(dies) == []


def test_its_checks_saw_their_subjects(dies):
    for name in (
        "partitions-have-one-owner",
        "member-epochs-advance",
        "commits-carry-the-member-epoch",
        "assignments-disjoint",
    ):
        assert dies.checked(name) > 3, name
    assert dies.checked("commits-are-current") == 0


def test_what_it_leaves_in_the_offsets_topic_has_kafkas_records(dies):
    number = partition_for_group("billing")
    home = next(iter(sorted(dies.directory.glob(f"disks/*/*/__consumer_offsets-{number}"))))
    kinds = []
    for batch in parse_batches((home / f"{0:020}.log").read_bytes()):
        for record in batch.records():
            key, value = decode_coordinator(record.key, record.value)
            kinds.append(key.name)
            if key.name == "ConsumerGroupCurrentMemberAssignmentKey" and value is not None:
                assert value.values["memberEpoch"] > 0
    assert {
        "ConsumerGroupMetadataKey",
        "ConsumerGroupMemberMetadataKey",
        "ConsumerGroupTargetAssignmentMetadataKey",
        "ConsumerGroupTargetAssignmentMemberKey",
        "ConsumerGroupCurrentMemberAssignmentKey",
        "OffsetCommitKey",
    } <= set(kinds)


@pytest.mark.slow
def test_without_a_death_every_record_is_read_once_although_members_come_and_go(tmp_path):
    late = group(1) | {"name": "late", "start": "5s", "stop": "9s"}
    ran = go(tmp_path, consumers=[group(2), late], topic=TWELVE, config=BROKERS, lasts="13s",
             producer=SLOWLY)  # fmt: skip
    assert {name: len(mine) for name, mine in held(ran, 8 * S).items()} == {
        "billing-1": 4, "billing-2": 4, "late": 4,
    }  # fmt: skip
    assert {len(mine) for mine in held(ran, 13 * S).values()} == {6, 0}
    assert unread(ran) == []
    assert read_twice(ran) == 0


@pytest.mark.slow
def test_a_group_goes_on_when_its_coordinator_dies_during_a_handover(tmp_path):
    """The newcomer joins at 6 s; the coordinator dies a moment after."""
    number = partition_for_group("billing")
    plain = go(tmp_path, consumers=[group(2)], topic=TWELVE, config=BROKERS, lasts="1s")
    coordinator = plain.leader_at(S, number, "__consumer_offsets")
    faults = [{"at": "6.1s", "do": "crash", "target": f"broker-{coordinator}", "for": "20s"}]
    late = group(1) | {"name": "late", "start": "6s"}
    ran = go(
        tmp_path, consumers=[group(2), late], topic=TWELVE, faults=faults, config=BROKERS,
        lasts="30s", producer=SLOWLY,
    )  # fmt: skip
    loaded = ran.rows("groups", reason="loaded")
    assert loaded[0]["broker"] != coordinator
    assert loaded[0]["members"] == 3
    then = [r["state"] for r in ran.rows("group_members", t_us=loaded[0]["t_us"])]
    assert sorted(then) != ["STABLE"] * 3, "the handover was not over"
    assert {len(mine) for mine in held(ran, 29 * S).values()} == {4}
    assert ran.checked("generations-are-kept") > 0
    assert unread(ran) == []


@pytest.mark.slow
def test_a_paused_member_that_comes_back_is_fenced_and_joins_again(tmp_path):
    faults = [{"at": "7s", "do": "pause", "target": "billing-1", "for": "9s"}]
    ran = go(
        tmp_path, consumers=[group(2)], topic=TWELVE, faults=faults, config=BROKERS, lasts="24s"
    )
    gone = ran.rows("group_members", state="GONE")
    assert SESSION_US <= gone[0]["t_us"] - 7 * S + S <= SESSION_US + 2 * S
    assert {len(mine) for mine in held(ran, 15 * S).values()} == {12, 6}, "it does not know yet"
    assert {len(mine) for mine in held(ran, 23 * S).values()} == {6}
    assert len(ran.rows("assignments", consumer="billing-1", partitions="")) > 0, "it lost all"
    assert unread(ran) == []


def test_planted_partitions_that_are_not_given_up_yet_are_found_out(tmp_path, monkeypatch):
    real = consumer_groups.reconcile
    monkeypatch.setattr(
        consumer_groups,
        "reconcile",
        lambda member, epoch, target, owners, owned: real(member, epoch, target, {}, owned),
    )
    with pytest.raises(InvariantBroken, match="partitions-have-one-owner"):
        go(tmp_path, consumers=[group(2)], config=BROKERS, lasts="4s")


@pytest.mark.slow
def test_planted_commits_of_any_epoch_are_found_out(tmp_path, monkeypatch):
    monkeypatch.setattr(ConsumerGroups, "commit_error", lambda *_: consumer_groups.ErrorCode.NONE)
    faults = [{"at": "5s", "do": "pause", "target": "billing-1", "for": "40s"}]
    members = group(2, **{"auto.commit.interval.ms": 100})
    with pytest.raises(InvariantBroken, match="commits-carry-the-member-epoch"):
        go(tmp_path, consumers=[members], faults=faults, config=BROKERS, lasts="48s")


def longest_silence(ran, name):
    """Seconds for which a group's members but the slow one got nothing, between 8 s and 23 s."""
    times = [
        row["t_us"]
        for row in ran.rows("reads", group=name)
        if row["consumer"] != f"{name}-c" and 8 * S < row["t_us"] < 23 * S
    ]
    return max(after - before for before, after in pairwise(times)) / S


@pytest.mark.slow
def test_a_slow_member_stops_a_classic_group_and_not_one_of_the_consumer_protocol(shared):
    ran = shared.ran("group-protocols")
    assert ran.records["lost_acked"] == 0
    assert longest_silence(ran, "eager") > 3
    assert longest_silence(ran, "modern") < 0.5
