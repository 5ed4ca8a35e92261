"""Since 4.3 a group's target assignments are an interval apart, and lingers adapt since 4.2."""

import pytest

from sim.protocol.coordinator.group.consumer_group_records import TargetAssignmentEpochRecord
from sim.protocol.coordinator.group.context import GroupConfig, ModernGroupConfig
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.log import AppendRecords, PartitionElected, PartitionResigned
from sim.protocol.effects import SetTimer
from sim.protocol.events import RequestReceived, TimerFired
from sim.protocol.messages.group import OffsetCommitRequest
from sim.records import consumer_offsets
from sim.units import MS, SECOND, timestamp_ms
from tests.kips.table import HOME, Table, places

SECOND_APART = ModernGroupConfig(assignment_interval_us=1 * SECOND)


def epochs(table):
    return [r.epoch for r in table.log if isinstance(r, TargetAssignmentEpochRecord)]


def test_the_first_target_is_computed_at_once_and_the_next_an_interval_later():
    table = Table(consumer=SECOND_APART, fences_by_assignment=True)
    assert table.join("a", now=0).assignment == places(0, 1, 2)
    early = table.join("b", now=1 * SECOND - 1 * MS)
    assert (early.member_epoch, early.assignment) == (1, ())
    assert table.group.state.value == "Assigning"
    assert epochs(table) == [1]
    told = table.beat("a", 1, places(0, 1, 2), now=1 * SECOND)
    assert epochs(table) == [1, 2]
    assert told.assignment == places(0, 1)


def test_members_that_join_within_the_interval_share_one_new_target():
    batched, single = Table(consumer=SECOND_APART), Table()
    for table in (batched, single):
        table.join("a", now=0)
        for number in range(10):
            table.join(f"b{number}", now=(number + 1) * 50 * MS)
        table.beat("a", 1, places(0, 1, 2), now=5 * SECOND)
    assert len(epochs(batched)) == 2
    assert len(epochs(single)) == 11


def test_an_interval_of_nothing_computes_each_epochs_target_as_before():
    table = Table(consumer=ModernGroupConfig(assignment_interval_us=0), fences_by_assignment=True)
    table.join("a")
    table.join("b")
    assert epochs(table) == [1, 2]


def test_the_log_has_the_time_of_a_target_and_the_next_coordinator_keeps_to_it():
    table = Table(consumer=SECOND_APART)
    table.join("a", now=7 * MS)
    batch = consumer_offsets.batch_for(table.log, 0)
    (found,) = (
        record
        for record in consumer_offsets.records_in((batch,))
        if isinstance(record, TargetAssignmentEpochRecord)
    )
    assert found.timestamp_ms == timestamp_ms(7 * MS)
    other = Table(consumer=SECOND_APART)
    other.give(PartitionResigned(HOME), 0)
    other.give(PartitionElected(HOME, 1, tuple(table.log)), 10 * MS)
    other.join("b", now=20 * MS)
    assert epochs(other) == []
    other.beat("a", 1, places(0, 1, 2), now=1 * SECOND + 7 * MS)
    assert epochs(other) == [2]


def test_a_member_that_drops_a_topic_gives_it_up_before_the_next_target():
    table = Table(consumer=SECOND_APART)
    table.join("a", now=0)
    told = table.beat("a", 1, places(0, 1, 2), now=1 * MS, topics=("u",))
    assert (told.member_epoch, told.assignment) == (1, ())
    assert epochs(table) == [1]


@pytest.mark.parametrize(("linger", "wait"), [(-1, 0), (5 * MS, 5 * MS)])
def test_an_adaptive_linger_is_over_when_all_of_that_instant_has_arrived(linger, wait):
    machine = GroupCoordinator(1, 1, GroupConfig(append_linger_us=linger))
    machine.handle(PartitionElected(HOME, 0, ()), 0)
    now = 3 * SECOND
    commit = OffsetCommitRequest("g", "", -1, ((places(0)[0], 5, 0),))
    found = machine.handle(RequestReceived(91, "c", commit), now)
    found += machine.handle(RequestReceived(92, "c", commit), now)
    (timer,) = (effect for effect in found if isinstance(effect, SetTimer))
    assert timer.at == now + wait
    assert not any(isinstance(effect, AppendRecords) for effect in found)
    (append,) = machine.handle(TimerFired(timer.name), timer.at)
    assert len(append.records) == 2
