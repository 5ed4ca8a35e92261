"""Consumer groups in a whole cluster: members die, are too many, lose their coordinator.

Source: Kafka's classic group protocol; a member is missed after ``session.timeout.ms``.
"""

import pytest

from sim.protocol.assignors.registry import partition_for_group
from tests.scenarios.run_kit import S, go

SESSION_US = 6 * S
TWELVE = {"partitions": 12}


def group(count, **config):
    settings = {
        "auto.offset.reset": "earliest",
        "session.timeout.ms": SESSION_US // 1_000,
        "heartbeat.interval.ms": 1000,
        "auto.commit.interval.ms": 1000,
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


def owned(ran, generation):
    """Partitions of each member in a generation."""
    return {
        row["consumer"]: row["partitions"].split(",") if row["partitions"] else []
        for row in ran.rows("assignments", generation=generation)
    }


def generations(ran):
    return sorted({row["generation"] for row in ran.rows("assignments")})


@pytest.mark.parametrize("assignor", ["range", "roundrobin"])
def test_when_one_of_three_dies_the_others_read_on_after_its_session(assignor, tmp_path):
    faults = [{"at": "10s", "do": "crash", "target": "billing-2"}]
    members = group(3, **{"partition.assignment.strategy": assignor})
    ran = go(tmp_path, consumers=[members], topic=TWELVE, faults=faults, lasts="24s")
    first, last, *_ = generations(ran)
    assert sorted(map(len, owned(ran, first).values())) == [4, 4, 4]
    assert {name: len(mine) for name, mine in owned(ran, last).items()} == {
        "billing-1": 6, "billing-3": 6,
    }  # fmt: skip
    assert len({p for mine in owned(ran, last).values() for p in mine}) == 12
    over = min(ran.times("assignments", generation=last)) - 10 * S
    assert SESSION_US - S <= over <= SESSION_US + 3 * S, "a session, and a heartbeat to be told"
    assert unread(ran) == []
    assert ran.checked("assignments-disjoint") > 0


def test_what_the_dead_member_had_read_but_not_committed_is_read_again(tmp_path):
    """At least once, not exactly once: the twin of reading everything."""
    faults = [{"at": "10s", "do": "crash", "target": "billing-1"}]
    members = group(2, **{"auto.commit.interval.ms": 3_600_000})
    ran = go(tmp_path, consumers=[members], faults=faults, lasts="22s")
    seen = [
        (row["producer_index"], row["partition"], row["first_record"] + i)
        for row in ran.rows("reads")
        for i in range(row["record_count"])
    ]
    assert unread(ran) == []
    assert len(seen) > len(set(seen)) == ran.records["acked"]


def test_without_a_death_every_record_is_read_once(tmp_path):
    ran = go(tmp_path, consumers=[group(3)], topic=TWELVE, lasts="12s")
    assert unread(ran) == []
    assert sum(row["record_count"] for row in ran.rows("reads")) == ran.records["acked"]


def test_of_five_members_for_three_partitions_two_are_idle(tmp_path):
    ran = go(tmp_path, consumers=[group(5)], lasts="12s")
    mine = owned(ran, generations(ran)[-1])
    assert sorted(map(len, mine.values())) == [0, 0, 1, 1, 1]
    readers = {row["consumer"] for row in ran.rows("reads")}
    assert readers == {name for name, partitions in mine.items() if partitions}
    assert unread(ran) == []


def test_an_idle_member_takes_over_from_a_dead_one(tmp_path):
    faults = [{"at": "10s", "do": "crash", "target": "billing-1"}]
    ran = go(tmp_path, consumers=[group(4)], faults=faults, lasts="24s")
    before, after, *_ = [owned(ran, generation) for generation in generations(ran)]
    (idle,) = [name for name, partitions in before.items() if not partitions]
    assert sorted(map(len, after.values())) == [1, 1, 1]
    assert after[idle]
    assert unread(ran) == []


def test_a_group_goes_on_when_its_coordinator_dies(tmp_path):
    """The partition of __consumer_offsets moves, the members find the new coordinator."""
    number = partition_for_group("billing")
    plain = go(tmp_path, consumers=[group(2)], lasts="1s")
    coordinator = plain.leader_at(S, number, "__consumer_offsets")
    faults = [{"at": "10s", "do": "crash", "target": f"broker-{coordinator}", "for": "20s"}]
    ran = go(tmp_path, consumers=[group(2)], faults=faults, lasts="36s")
    assert ran.leader_at(10 * S - 1, number, "__consumer_offsets") == coordinator
    loaded = ran.rows("groups", reason="loaded")
    assert loaded, "another broker has read the group from the log"
    assert loaded[0]["broker"] != coordinator
    committed = [
        row for row in ran.rows("commits", error="NONE") if row["t_us"] > loaded[0]["t_us"]
    ]
    assert len({row["partition"] for row in committed}) == 3
    assert unread(ran) == []


def test_a_paused_member_that_comes_back_is_fenced_and_joins_again(tmp_path):
    faults = [{"at": "10s", "do": "pause", "target": "billing-1", "for": "12s"}]
    ran = go(tmp_path, consumers=[group(2)], faults=faults, lasts="34s")
    sizes = [sorted(map(len, owned(ran, generation).values())) for generation in generations(ran)]
    assert [3] in sizes, "alone in between"
    assert sizes[-1] == [1, 2]
    assert ran.checked("commits-are-current") > 0
    assert unread(ran) == []


def test_offsets_survive_a_rolling_restart_of_all_brokers(tmp_path):
    """What the group has committed lies in the log, not in the coordinator's memory."""
    faults = [
        {"at": f"{at}s", "do": "controlled-shutdown", "target": f"broker-{broker}", "for": "2s"}
        for broker, at in ((1, 8), (2, 26), (3, 44))
    ]
    ran = go(tmp_path, consumers=[group(2)], faults=faults, lasts="60s", producer={"rate": "100/s"})
    last = {}
    for row in ran.rows("commits", error="NONE"):
        assert row["offset"] >= last.get(row["partition"], 0), "a commit went back"
        last[row["partition"]] = row["offset"]
    ends = {row["partition"]: row["high_watermark"] for row in ran.rows("lag")}
    assert last == ends
    assert unread(ran) == []
