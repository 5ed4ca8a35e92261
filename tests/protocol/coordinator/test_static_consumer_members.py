"""Static members of the consumer protocol: KIP-345 in KIP-848.

A static member leaves its place, not its group: the next member of its instance id has its
partitions within the session, and no other member notices.
"""

from sim.error_codes import ErrorCode
from sim.ids import uuid_text
from sim.protocol.coordinator.group.context import GroupConfig
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.log import PartitionElected
from sim.protocol.events import TimerFired
from sim.protocol.messages.consumer_group import ConsumerGroupHeartbeatRequest
from sim.units import MS, SECOND
from tests.kips.table import HOME, Table, places
from tests.protocol.coordinator.group_bench import Bench


def static_pair():
    """a and b with instance ids, reconciled: a has 0 and 1, b has 2; group epoch 2."""
    table = Table()
    table.join("a", instance_id="i-a")
    table.beat("a", 1, places(0, 1, 2), instance_id="i-a")
    table.join("b", instance_id="i-b")
    table.beat("a", 1, instance_id="i-a")
    table.beat("a", 1, places(0, 1), instance_id="i-a")
    table.beat("b", 2, instance_id="i-b")
    return table


def test_a_static_member_comes_back_to_its_partitions_without_a_new_epoch():
    table = static_pair()
    left = table.beat("a", -2, instance_id="i-a")
    assert (left.error, left.member_epoch) == (ErrorCode.NONE, -2)
    assert table.group.owners()[places(0)[0]._replace(topic=uuid_text("t"))] == "a"
    assert table.beat("b", 2, instance_id="i-b").assignment is None, "nothing is given to others"
    back = table.join("a2", instance_id="i-a")
    assert (back.error, back.member_epoch, back.assignment) == (ErrorCode.NONE, 2, places(0, 1))
    assert table.group.epoch == 2
    assert [*table.group.members] == ["b", "a2"]


def test_what_replaces_a_static_member_is_written_in_kafkas_order():
    table = static_pair()
    table.beat("a", -2, instance_id="i-a")
    written = len(table.log)
    table.join("a2", instance_id="i-a")
    records = [(type(r).__name__, getattr(r, "member_id", "")) for r in table.log[written:]]
    assert records == [
        ("MemberTombstone", "a"),
        ("MemberTombstone", "a"),
        ("MemberTombstone", "a"),
        ("ConsumerGroupMemberRecord", "a2"),
        ("TargetAssignmentMemberRecord", "a2"),
        ("CurrentMemberAssignmentRecord", "a2"),
        ("ConsumerGroupMemberRecord", "a2"),  # its process has another name
        ("CurrentMemberAssignmentRecord", "a2"),
    ]


def test_an_instance_id_in_use_is_not_released_and_a_former_owner_is_fenced():
    table = static_pair()
    assert table.join("thief", instance_id="i-a").error is ErrorCode.UNRELEASED_INSTANCE_ID
    table.beat("a", -2, instance_id="i-a")
    table.join("a2", instance_id="i-a")
    assert table.beat("a", 2, instance_id="i-a").error is ErrorCode.FENCED_INSTANCE_ID
    assert table.beat("a", -2, instance_id="i-a").error is ErrorCode.FENCED_INSTANCE_ID
    assert table.beat("c", 2, instance_id="i-c").error is ErrorCode.UNKNOWN_MEMBER_ID


def test_who_does_not_come_back_within_its_session_is_missed():
    table = static_pair()
    table.beat("b", 2, now=40 * SECOND, instance_id="i-b")
    table.beat("a", -2, now=41 * SECOND, instance_id="i-a")
    table.give(TimerFired("session/g/a"), 45 * SECOND)
    assert [*table.group.members] == ["b"]
    assert table.join("a2", now=46 * SECOND, instance_id="i-a").error is ErrorCode.NONE
    assert table.group.epoch == 4


def test_another_coordinator_knows_static_members_and_who_of_them_has_left():
    table = static_pair()
    table.beat("a", -2, instance_id="i-a")
    records = tuple(table.log)
    other = Table()
    other.machine = GroupCoordinator(2, 1, GroupConfig(append_linger_us=0), lambda: table.image)
    other.give(PartitionElected(HOME, 1, records), 0)
    assert other.group.static_member("i-a").epoch == -2
    assert other.join("a2", instance_id="i-a").member_epoch == 2


def test_a_static_consumer_leaves_its_place_and_a_stranger_with_its_id_ends():
    bench = Bench({"t": 4})
    more = {"group_protocol": "consumer", "group_instance_id": "i-a"}
    bench.consumer("a", start_at=50 * MS, **more)
    bench.consumer("thief", start_at=2 * SECOND, **more)
    bench.elect(1)
    bench.run(4 * SECOND)
    assert bench.stopped == {"thief": ErrorCode.UNRELEASED_INSTANCE_ID}
    bench.close("a")
    bench.run(5 * SECOND)
    epochs = [
        r.member_epoch
        for _, who, r in bench.requests
        if isinstance(r, ConsumerGroupHeartbeatRequest) and who == "a"
    ]
    assert epochs[-1] == -2
    bench.consumer("heir", start_at=6 * SECOND, **more)
    bench.run(9 * SECOND)
    assert len(bench.consumers["heir"].machine.assignment()) == 4
