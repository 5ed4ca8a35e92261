"""Seek, pause and resume by the application; offsets and groups in the hands of the tool.

Source: ``KafkaConsumer.{seek,pause}``, ``ConsumerGroupCommand``; KIP-122, KIP-496.
"""

import pytest

from sim.errors import InvariantBroken
from sim.protocol.clients.consumer.positions import ConsumerPositions, Position
from sim.protocol.coordinator.group.administration import GroupAdministration
from tests.scenarios.run_kit import S, go

EARLIEST = {"auto.offset.reset": "earliest", "auto.commit.interval.ms": 500}
MODERN = {"group.protocol": "consumer"}


def reader(name, group="billing", **more):
    config = EARLIEST | more.pop("config", {})
    return {"name": name, "group": group, "topics": ["orders"], "config": config} | more


def seek(at, partitions, **where):
    return {"at": at, "do": "seek", "target": "alone", "partitions": partitions} | where


@pytest.fixture(scope="module")
def called(tmp_path_factory):
    """A consumer without a group: three seeks, a pause, and calls that find nothing to do."""
    faults = [
        seek("2s", "orders-0", to="beginning"),
        seek("2s", "orders-1", to="end"),
        seek("2s", "orders-2", to=7),
        {"at": "2500ms", "do": "pause-partitions", "target": "alone", "partitions": ["orders-0"],
         "for": "1s"},
        seek("3s", "orders-2", datetime="1s"),
        seek("3s", "orders-1", datetime="5900ms"),
        seek("100ms", "orders-1", to="beginning"),
    ]  # fmt: skip
    directory = tmp_path_factory.mktemp("called")
    return go(
        directory, consumers=[reader("alone", "none", start="200ms")], faults=faults, seed=3,
        producer={"keys": "uniform", "key.count": 1_000},
    )  # fmt: skip


def moves(ran, reason, **where):
    return {
        (row["t_us"] // S, row["partition"]): row["offset"]
        for row in ran.rows("positions", reason=reason, **where)
    }


def test_an_application_reads_on_where_it_seeks(called):
    sought = called.rows("positions", reason="seek")
    assert len(sought) == 5
    for row in sought:
        reads = called.rows("reads", partition=row["partition"])
        first = next(read for read in reads if read["t_us"] > row["t_us"])
        assert first["base_offset"] == row["offset"]
    found = moves(called, "seek")
    assert (found[2, 0], found[2, 2]) == (0, 7)


def test_a_seek_to_a_time_goes_to_the_first_record_of_that_time(called):
    """At 500 records a second over three partitions; a later time is the end."""
    found = moves(called, "seek")
    before = [row["last_offset"] for row in called.rows("reads", partition=2) if row["t_us"] < S]
    assert max(before) - 5 <= found[3, 2] <= max(before) + 5
    read = [row["last_offset"] for row in called.rows("reads", partition=1) if row["t_us"] < 3 * S]
    assert found[3, 1] >= max(read)


def test_nothing_of_a_paused_partition_is_returned_until_it_is_resumed(called):
    times = called.times("reads", partition=0)
    assert not [t for t in times if 2_500_000 < t < 3_500_000]
    assert [t for t in times if 2_400_000 < t < 2_500_000]
    assert [t for t in times if 3_500_000 <= t < 3_600_000]
    assert [t for t in called.times("reads", partition=1) if 2_600_000 < t < 3_400_000]


def test_each_call_says_whether_it_met_a_partition(called):
    *done, early = called.faults
    assert [fault["took_effect"] for fault in done] == [True] * 6
    assert not early["took_effect"]


def test_what_a_seek_jumps_over_is_skipped_and_not_undelivered(called):
    readers = called.verdict["readers"]
    assert (readers["undelivered"], readers["skipped_by_reset"] > 0) == (0, True)
    assert readers["delivered_twice"] > 0


@pytest.fixture(scope="module", params=["classic", "consumer"])
def administered(request, tmp_path_factory):
    """The first member leaves at 5 s, the next two come at 7 s and 14 s."""
    config = MODERN if request.param == "consumer" else {}
    consumers = [
        reader("first", config=config, stop="5s"),
        reader("second", config=config, start="7s", stop="11s"),
        reader("third", config=config, start="14s"),
    ]

    def tool(at, do, **keys):
        return {"at": at, "do": do, "group": "billing"} | keys

    faults = [
        tool("4500ms", "reset-offsets", partitions="orders", to="earliest"),
        tool("4500ms", "delete-offsets", partitions="orders-0"),
        tool("4500ms", "delete-group"),
        tool("6s", "reset-offsets", partitions=["orders-0", "orders-1"], to="latest"),
        tool("6s", "reset-offsets", partitions="orders-2", shift=-20),
        tool("12s", "delete-offsets", partitions="orders-0"),
        tool("13s", "delete-group"),
        tool("13500ms", "delete-group"),
    ]
    directory = tmp_path_factory.mktemp("administered")
    return go(directory, consumers=consumers, faults=faults, lasts="18s", seed=5)


def effects(ran):
    return [(fault["took_effect"], fault["effect"]) for fault in ran.faults]


def test_a_group_with_members_is_left_alone(administered):
    reset, offsets, group = effects(administered)[:3]
    assert reset == (False, "refused: billing is Stable, not inactive: NON_EMPTY_GROUP")
    assert offsets == (False, "refused: orders-0 GROUP_SUBSCRIBED_TO_TOPIC")
    assert group == (False, "refused: billing NON_EMPTY_GROUP")


def test_the_next_member_begins_where_the_tool_has_set_the_offsets(administered):
    assert effects(administered)[3:5] == [(True, "done")] * 2
    committed = {
        row["partition"]: row["offset"]
        for row in administered.rows("positions", group="billing", reason="altered")
    }
    began = {
        row["partition"]: row["offset"]
        for row in administered.rows("positions", consumer="second", reason="committed")
    }
    assert began == committed
    last = [
        r["offset"]
        for r in administered.rows("commits", consumer="first", partition=2, error="NONE")
    ]
    assert committed[2] == last[-1] - 20


def test_a_deleted_group_begins_again_by_its_policy(administered):
    assert effects(administered)[5:7] == [(True, "done")] * 2
    assert effects(administered)[7] == (False, "refused: billing GROUP_ID_NOT_FOUND")
    began = administered.rows("positions", consumer="third", reason="reset")
    assert {row["partition"]: row["offset"] for row in began} == {0: 0, 1: 0, 2: 0}
    rows = administered.rows("groups", group="billing")
    ended = next(place for place, row in enumerate(rows) if row["state"] == "Dead")
    assert {row["generation"] for row in rows[ended + 1 :]} <= {0, 1, 2, 3}


def test_what_the_tool_jumps_over_is_skipped_and_not_undelivered(administered):
    assert administered.verdict["readers"]["undelivered"] == 0
    assert administered.verdict["readers"]["skipped_by_reset"] == 0, "the third reads it all"


def test_planted_a_seek_without_its_row_breaks_reads_advance(tmp_path, monkeypatch):
    """A position that goes back by itself is what the invariant is there for."""

    def silently(self, partition, offset, timestamp):
        self._positions[partition] = Position(self._positions[partition].stage, 0)
        self.rearranged()
        return True

    monkeypatch.setattr(ConsumerPositions, "seek", silently)
    faults = [seek("2s", "orders-0", to="beginning")]
    with pytest.raises(InvariantBroken, match="reads-advance"):
        go(tmp_path, consumers=[reader("alone", "none")], faults=faults)


def test_planted_a_coordinator_that_deletes_a_group_with_members_is_noticed(tmp_path, monkeypatch):
    monkeypatch.setattr(GroupAdministration, "_state", lambda self, name: "Empty")
    faults = [{"at": "4500ms", "do": "delete-group", "group": "billing"}]
    ran = go(tmp_path, consumers=[reader("first")], faults=faults)
    assert effects(ran) == [(True, "done")]
    assert "NON_EMPTY_GROUP" not in str(effects(ran))
