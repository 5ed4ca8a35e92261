"""The active controller: registration, sessions, ISR changes, commits, and being deposed."""

from dataclasses import replace

import pytest

from sim.error_codes import ErrorCode as E
from sim.ids import NO_LEADER, TopicPartition
from sim.protocol.kraft.log import LoggedRecord
from sim.protocol.kraft.types import Committed, LeadershipChanged
from sim.protocol.messages.cluster import (
    AllocateProducerIdsRequest,
    AlterPartitionItem,
    AlterPartitionRequest,
    BrokerHeartbeatRequest,
    CreateTopicsRequest,
    IsrMember,
    NewTopic,
)
from sim.protocol.metadata.records import LeaderChangeMessage
from tests.protocol.controller.controller_kit import ORDERS, SECOND, Desk

# -- registration and sessions ---------------------------------------------------------------------


def test_a_new_broker_is_fenced_until_its_heartbeat_says_that_it_is_caught_up():
    desk = Desk(brokers=0)
    assert desk.register(1).error is E.NONE
    assert not desk.controller.image.is_active(1)
    behind = desk.beat(1, offset=0)
    assert (behind.is_caught_up, behind.is_fenced) == (False, True)
    assert desk.beat(1, want_fence=True).is_fenced
    assert not desk.beat(1).is_fenced
    assert desk.controller.image.is_active(1)


def test_another_incarnation_waits_for_the_session_of_the_one_before():
    desk = Desk()
    desk.now = 8 * SECOND
    assert desk.register(1, "b").error is E.DUPLICATE_BROKER_REGISTRATION
    desk.now = 9 * SECOND
    assert desk.register(1, "b").error is E.DUPLICATE_BROKER_REGISTRATION
    desk.now = 9 * SECOND + 1
    old = desk.epochs[1]
    assert desk.register(1, "b").error is E.NONE
    assert desk.epochs[1] > old


def test_the_same_incarnation_keeps_its_epoch():
    desk = Desk()
    old = desk.epochs[1]
    assert desk.register(1).broker_epoch == old


def test_even_a_clean_shutdown_leaves_the_session_open():
    desk = Desk()
    assert desk.beat(1, want_shut_down=True).should_shut_down
    assert desk.register(1, "b", desk.epochs[1]).error is E.DUPLICATE_BROKER_REGISTRATION


def test_a_silent_broker_is_fenced_between_nine_and_ten_and_an_eighth_seconds():
    desk = Desk()
    desk.create()
    desk.pass_time(9 * SECOND, alive=(2, 3))
    assert desk.controller.image.is_active(1)
    desk.pass_time(10_125_000 + 1, alive=(2, 3))
    assert not desk.controller.image.is_active(1)
    assert desk.controller.image.is_active(2)
    assert desk.state().leader == 2


def take_over(desk):
    """The controller loses the leadership, and is elected again at the same instant."""
    desk.feed(LeadershipChanged(2, -1, is_leader=False))
    end = desk.controller.committed.offset
    change = LoggedRecord(end, 3, LeaderChangeMessage(3001, (3001,), ()))
    desk.feed(Committed(end, end + 1, (change,)))
    desk.feed(LeadershipChanged(3, 3001, is_leader=True, log_end_offset=end + 1))


def test_a_new_controller_gives_every_unfenced_broker_a_fresh_session():
    desk = Desk()
    desk.now = 8 * SECOND
    take_over(desk)
    desk.pass_time(16 * SECOND)
    assert desk.controller.image.is_active(1)
    desk.pass_time(19 * SECOND)
    assert not desk.controller.image.is_active(1)


def test_after_a_fail_over_a_fenced_broker_registers_at_once_and_an_unfenced_one_waits():
    desk = Desk()
    desk.pass_time(12 * SECOND, alive=(1, 2))
    assert not desk.controller.image.is_active(3)
    take_over(desk)
    assert desk.register(3, "b").error is E.NONE
    assert desk.register(2, "b").error is E.DUPLICATE_BROKER_REGISTRATION


def test_brokers_that_die_together_are_fenced_one_per_batch():
    desk = Desk()
    desk.create()
    desk.pass_time(12 * SECOND, alive=(3,))
    assert not desk.controller.image.is_active(1)
    assert not desk.controller.image.is_active(2)
    leaders = [row.row[3] for row in desk.facts if row.table == "partition_changes"]
    assert leaders == [1, 2, 3]  # broker 2 is dead, but not yet known to be


def test_a_stale_or_unknown_broker_is_told_so():
    desk = Desk()
    assert desk.beat(1, epoch=desk.epochs[1] - 1).error is E.STALE_BROKER_EPOCH
    assert desk.beat(9, epoch=1).error is E.STALE_BROKER_EPOCH


def test_a_broker_back_without_clean_shutdown_leaves_the_elr():
    desk = Desk()
    desk.create(configs=(("min.insync.replicas", "3"),))
    desk.pass_time(11 * SECOND, alive=(2, 3))
    assert desk.state().eligible == (1,)
    desk.join(1, incarnation="b", previous=-1)
    assert desk.state().eligible == ()


def test_a_broker_back_after_a_clean_shutdown_stays_in_the_elr():
    desk = Desk()
    desk.create(configs=(("min.insync.replicas", "3"),))
    epoch = desk.epochs[1]
    desk.pass_time(11 * SECOND, alive=(2, 3))
    desk.join(1, incarnation="b", previous=epoch)
    assert desk.state().eligible == (1,)


def test_without_elr_nobody_is_eligible():
    desk = Desk(elr=False)
    desk.create(configs=(("min.insync.replicas", "3"),))
    desk.pass_time(11 * SECOND, alive=(2, 3))
    assert desk.state().eligible == ()
    assert "eligible.leader.replicas.version" not in desk.controller.image.features


@pytest.mark.parametrize(("version", "level"), [(2, 2), (0, None)])
def test_a_new_cluster_says_its_transaction_version_unless_it_is_the_oldest(version, level):
    desk = Desk(transaction_version=version)
    assert desk.controller.image.features.get("transaction.version") == level


# -- controlled shutdown --------------------------------------------------------------------------


def test_a_leader_moves_its_partitions_before_it_may_go():
    desk = Desk()
    desk.create()
    answer = desk.beat(1, want_shut_down=True)
    assert not answer.should_shut_down
    assert (desk.state().leader, desk.state().in_sync) == (2, (2, 3))
    needed = desk.controller.image.offset - 1
    assert not desk.beat(1, want_shut_down=True).should_shut_down
    desk.beat(2, offset=needed)
    desk.beat(3, offset=needed - 1)
    assert not desk.beat(1, want_shut_down=True).should_shut_down
    desk.beat(3, offset=needed)
    assert desk.beat(1, want_shut_down=True).should_shut_down
    assert not desk.controller.image.is_active(1)


def test_a_broker_that_leads_nothing_may_go_at_once():
    desk = Desk()
    desk.create()
    assert desk.beat(3, want_shut_down=True).should_shut_down


def test_a_partition_without_another_replica_does_not_block_the_shutdown():
    desk = Desk()
    desk.create("alone", ((1,),), ())
    desk.beat(1, want_shut_down=True)
    assert desk.state(TopicPartition("alone", 0)).leader == NO_LEADER


# -- ISR changes ----------------------------------------------------------------------------------


def alter(desk, sender, leader_epoch, partition_epoch, members, broker_epoch=None):
    item = AlterPartitionItem(
        ORDERS,
        leader_epoch,
        partition_epoch,
        tuple(IsrMember(b, desk.epochs.get(b, -1)) for b in members),
    )
    epoch = desk.epochs[sender] if broker_epoch is None else broker_epoch
    answer = desk.ask(AlterPartitionRequest(sender, epoch, (item,)))
    return answer.error if answer.error is not E.NONE else answer.results[0].error


@pytest.fixture
def aged():
    """A partition led by 1 at leader epoch 7, partition epoch 12."""
    desk = Desk()
    desk.create()
    partitions = desk.controller.image.partitions
    partitions[ORDERS] = replace(partitions[ORDERS], leader_epoch=7, partition_epoch=12)
    desk.controller.committed.partitions[ORDERS] = partitions[ORDERS]
    return desk


@pytest.mark.parametrize(
    ("sender", "epochs", "members", "error"),
    [
        (1, (7, 11), (1, 2), E.INVALID_UPDATE_VERSION),
        (1, (6, 12), (1, 2), E.FENCED_LEADER_EPOCH),
        (1, (8, 12), (1, 2), E.NOT_CONTROLLER),
        (1, (7, 13), (1, 2), E.NOT_CONTROLLER),
        (2, (7, 12), (1, 2), E.INVALID_REQUEST),
        (1, (7, 12), (2, 3), E.INVALID_REQUEST),
        (1, (7, 12), (1, 4), E.INVALID_REQUEST),
        (1, (7, 12), (1, 2), E.NONE),
    ],
)
def test_wishes_are_validated_in_kafkas_order(aged, sender, epochs, members, error):
    assert alter(aged, sender, *epochs, members) is error


def test_a_fenced_member_is_ineligible(aged):
    aged.beat(3, want_fence=True)
    state = aged.state()
    assert alter(aged, 1, state.leader_epoch, state.partition_epoch, (1, 3)) is E.INELIGIBLE_REPLICA


def test_a_member_of_an_older_process_is_ineligible_and_minus_one_skips_the_check(aged):
    aged.epochs[2] -= 1
    assert alter(aged, 1, 7, 12, (1, 2)) is E.INELIGIBLE_REPLICA
    aged.epochs[2] = -1
    assert alter(aged, 1, 7, 12, (1, 2)) is E.NONE


def test_a_sender_of_an_older_process_is_refused_as_a_whole(aged):
    assert alter(aged, 1, 7, 12, (1, 2), broker_epoch=0) is E.STALE_BROKER_EPOCH


def test_a_change_raises_the_partition_epoch_alone(aged):
    alter(aged, 1, 7, 12, (1, 2))
    state = aged.state()
    assert (state.in_sync, state.leader_epoch, state.partition_epoch) == ((1, 2), 7, 13)


# -- commits and leadership -----------------------------------------------------------------------


def test_an_answer_waits_for_its_commit():
    desk = Desk()
    desk.commits = False
    assert desk.create() is None
    desk.commit()
    assert desk.replies[desk.token].errors == (("orders", E.NONE),)


def test_a_decision_without_records_waits_for_what_it_may_have_seen():
    desk = Desk()
    desk.commits = False
    desk.create()
    assert desk.beat(1) is None
    desk.commit()
    assert desk.replies[desk.token].error is E.NONE


def test_a_deposed_controller_answers_not_controller_and_forgets_what_was_not_committed():
    desk = Desk()
    desk.commits = False
    desk.create()
    assert ORDERS in desk.controller.image.partitions
    desk.feed(LeadershipChanged(2, 3002, is_leader=False))
    assert desk.replies[desk.token].errors == (("orders", E.NOT_CONTROLLER),)
    assert ORDERS not in desk.controller.image.partitions
    assert desk.timers == {}
    assert desk.beat(1).error is E.NOT_CONTROLLER


def test_facts_are_told_when_committed_not_when_decided():
    desk = Desk()
    desk.facts.clear()
    desk.commits = False
    desk.create()
    assert desk.facts == []
    desk.commit()
    (row,) = desk.facts
    assert row.table == "partition_changes"
    assert row.row == (3001, "orders", 0, 1, 0, 0, "1,2,3", "", "1,2,3", False)


def test_broker_states_are_told_in_order():
    desk = Desk(brokers=1)
    desk.create("alone", ((1,),), ())
    desk.beat(1, want_shut_down=True)
    desk.beat(1, want_shut_down=True)
    states = [row.row[2] for row in desk.facts if row.table == "broker_states"]
    assert states == ["registered", "unfenced", "controlled_shutdown", "fenced"]


# -- topics, ids, sweeps --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("topic", "error"),
    [
        (NewTopic("ok", 3, 3), E.NONE),
        (NewTopic("many", 1, 4), E.INVALID_REPLICATION_FACTOR),
        (NewTopic("none", 0, 3), E.INVALID_PARTITIONS),
        (NewTopic("a b", 1, 1), E.INVALID_TOPIC_EXCEPTION),
        (NewTopic("twice", 0, 0, (), ((1, 1),)), E.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_new_topics_are_validated(topic, error):
    answer = Desk().ask(CreateTopicsRequest((topic,)))
    assert answer.errors == ((topic.name, error),)


def test_a_topic_exists_only_once():
    desk = Desk()
    desk.create()
    assert desk.create().errors == (("orders", E.TOPIC_ALREADY_EXISTS),)


def test_a_new_partition_has_only_brokers_in_service_in_its_isr():
    desk = Desk()
    desk.beat(1, want_fence=True)
    desk.create()
    assert (desk.state().in_sync, desk.state().leader) == ((2, 3), 2)
    assert desk.state().directories == ("dir-1", "dir-2", "dir-3")


def test_producer_ids_come_in_blocks_that_never_repeat():
    desk = Desk()
    blocks = [desk.ask(AllocateProducerIdsRequest(b, desk.epochs[b])) for b in (1, 2, 1)]
    assert [(b.first, b.count) for b in blocks] == [(0, 1000), (1000, 1000), (2000, 1000)]


def test_the_preferred_leader_comes_back_within_five_minutes():
    desk = Desk()
    desk.create()
    desk.beat(1, want_fence=True)
    desk.beat(1)
    state = desk.state()
    assert alter(desk, 2, state.leader_epoch, state.partition_epoch, (2, 3, 1)) is E.NONE
    desk.pass_time(299 * SECOND, alive=(1, 2, 3))
    assert desk.state().leader == 2
    desk.pass_time(301 * SECOND, alive=(1, 2, 3))
    assert desk.state().leader == 1


def test_where_allowed_an_unclean_leader_is_elected_as_soon_as_it_returns():
    for allowed, leader in (("true", 1), ("false", NO_LEADER)):
        desk = Desk(elr=False)
        desk.create(assignment=((1, 2),), configs=(("unclean.leader.election.enable", allowed),))
        desk.pass_time(11 * SECOND, alive=(2,))
        desk.beat(2, want_fence=True)
        assert desk.state().leader == NO_LEADER
        desk.join(1, incarnation="b")
        assert desk.state().leader == leader
        unclean = [row.row[-1] for row in desk.facts if row.table == "partition_changes"]
        assert unclean[-1] is (leader == 1)


def test_an_idle_controller_writes_twice_a_second():
    desk = Desk()
    before = desk.controller.committed.offset
    desk.pass_time(4 * SECOND, alive=(1, 2, 3))
    assert desk.controller.committed.offset - before == 8


def test_brokers_killed_all_at_once_end_with_the_last_known_leader():
    desk = Desk()
    desk.create()
    desk.pass_time(13 * SECOND)
    state = desk.state()
    assert (state.leader, state.in_sync, state.last_known_eligible) == (NO_LEADER, (), (3,))
    assert sorted(state.eligible) == [2, 3]
    desk.join(1, incarnation="b")
    desk.join(2, incarnation="b")
    assert desk.state().eligible == (3,)
    assert desk.state().leader == NO_LEADER
    desk.join(3, incarnation="b")
    state = desk.state()
    assert (state.leader, state.in_sync, state.recovering) == (3, (3,), True)
    assert desk.facts[-1].row[-1] is True
    assert alter(desk, 3, state.leader_epoch, state.partition_epoch, (3, 1)) is E.NONE
    assert not desk.state().recovering


def test_a_registration_that_empties_the_elr_can_itself_elect_the_last_known_leader():
    desk = Desk()
    desk.create()
    desk.pass_time(13 * SECOND)
    desk.join(3, incarnation="b")
    assert (desk.state().leader, desk.state().eligible) == (NO_LEADER, (2,))
    desk.register(2, "b")
    assert (desk.state().leader, desk.state().recovering) == (3, True)


def test_a_clean_return_needs_no_unclean_election():
    desk = Desk()
    desk.create()
    epochs = dict(desk.epochs)
    desk.pass_time(13 * SECOND)
    desk.join(3, incarnation="b", previous=epochs[3])
    state = desk.state()
    assert (state.leader, state.in_sync, state.recovering) == (3, (3,), False)
    assert state.eligible == (2,)


def test_a_failed_directory_takes_its_replicas_out_of_the_isr():
    desk = Desk()
    desk.create()
    request = BrokerHeartbeatRequest(
        1, desk.epochs[1], desk.controller.image.offset - 1, False, False, ("dir-1",)
    )
    assert desk.ask(request).error is E.NONE
    assert (desk.state().leader, desk.state().in_sync) == (2, (2, 3))
    assert desk.state(ORDERS).eligible == ()
