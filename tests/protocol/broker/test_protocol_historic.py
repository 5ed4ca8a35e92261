"""Replication and control plane as they were: before KIP-841, without the check of the quorum."""

from dataclasses import replace

import pytest

from sim.error_codes import ErrorCode as E
from sim.ids import TopicPartition
from sim.protocol.broker.replica import ReplicaConfig
from sim.protocol.broker.replication.events import ShutdownBegun
from sim.protocol.controller.placement import StripedReplicaPlacer, UsableBroker
from sim.protocol.effects import CancelTimer
from sim.protocol.kraft.types import Role
from sim.protocol.messages.admin import CreatePartitionsRequest
from sim.protocol.messages.cluster import (
    AlterPartitionItem,
    AlterPartitionRequest,
    CreateTopicsRequest,
    IsrMember,
    NewTopic,
)
from tests.protocol.broker.replica_kit import Bench, P, ToyLog, image, state
from tests.protocol.controller.controller_kit import ORDERS, SECOND, Desk
from tests.protocol.kraft.quorum_kit import B, fetch, leader

# -- fenced brokers in the ISR (KIP-841) ----------------------------------------------------------


def wish(desk, members):
    """The leader's wish for an ISR, and what the controller says."""
    state = desk.state()
    item = AlterPartitionItem(
        ORDERS,
        state.leader_epoch,
        state.partition_epoch,
        tuple(IsrMember(broker, -1) for broker in members),
    )
    answer = desk.ask(AlterPartitionRequest(state.leader, desk.epochs[state.leader], (item,)))
    return answer.results[0].error


@pytest.mark.parametrize("checked", [True, False])
def test_a_leader_adds_a_fenced_follower_only_where_nobody_checks(checked):
    bench = Bench(in_sync=(1, 2))
    bench.apply(state(in_sync=(1, 2), partition_epoch=1), fenced=(3,))
    replica = bench.managers[1].replicas[P]
    replica.config = replace(replica.config, checks_eligibility=checked)
    bench.settle()
    assert replica.maximal_in_sync == ((1, 2) if checked else (1, 2, 3))


@pytest.mark.parametrize(("checked", "error"), [(True, E.INELIGIBLE_REPLICA), (False, E.NONE)])
def test_the_controller_takes_a_fenced_member_only_where_nobody_checks(checked, error):
    desk = Desk(checks_eligibility=checked)
    desk.create()
    desk.pass_time(13 * SECOND, alive=(1, 2))
    assert desk.state().in_sync == (1, 2)
    assert wish(desk, (1, 2, 3)) is error
    assert (3 in desk.state().in_sync) is not checked


@pytest.mark.parametrize(("checked", "then"), [(True, 2), (False, 3)])
def test_a_broker_that_shuts_down_may_lead_only_where_the_metadata_do_not_say_so(checked, then):
    """The chain of catalogue C8: it leaves the ISR, is added again, and is chosen."""
    desk = Desk(checks_eligibility=checked)
    desk.create(assignment=((1, 3, 2),))
    desk.create("other", ((3, 1, 2),))
    assert not desk.beat(3, want_shut_down=True).should_shut_down
    assert desk.state().in_sync == (1, 2)
    assert (wish(desk, (1, 3, 2)) is E.NONE) is not checked
    desk.beat(1, want_fence=True)
    assert desk.state().leader == then


def test_where_nobody_checks_the_high_watermark_waits_for_fenced_followers_that_keep_up():
    waits = ReplicaConfig(1, checks_eligibility=False)
    for config, moved in ((waits, False), (ReplicaConfig(1), True)):
        bench = Bench(in_sync=(1, 2))
        replica = bench.managers[1].replicas[P]
        replica.config = config
        bench.logs[1].batches = ToyLog([(0, 0)], 10).batches
        now = image(state(in_sync=(1, 2)), fenced=(3,))
        replica.remotes[2].fetched(10, 10, 1, 102)
        replica.remotes[3].fetched(0, 0, 1, 103)
        assert replica.advance_high_watermark(now, 1) is moved


@pytest.mark.parametrize(("hears", "leads"), [(True, False), (False, True)])
def test_a_leader_that_shuts_down_goes_on_to_lead_only_where_it_does_not_listen(hears, leads):
    """KAFKA-13858: until its process ends it answers clients as if it led."""
    bench = Bench()
    manager = bench.managers[1]
    manager.config = replace(manager.config, applies_metadata_during_shutdown=hears)
    bench.tell(1, ShutdownBegun())
    bench.apply(state(leader=2, epoch=1, partition_epoch=1, in_sync=(2, 3)))
    assert manager.replicas[P].is_leader is leads
    assert bench.managers[2].replicas[P].is_leader
    bench.produce(acks=1)
    (answer,) = bench.replies()
    expected = E.NONE if leads else E.NOT_LEADER_OR_FOLLOWER
    assert [result.error for result in answer.response.results] == [expected]


# -- idle partitions (KAFKA-7152) -----------------------------------------------------------------


@pytest.mark.parametrize("same_end", [True, False])
def test_a_follower_that_lacks_nothing_leaves_the_isr_only_where_its_last_fetch_counts(same_end):
    bench = Bench()
    replica = bench.managers[1].replicas[P]
    replica.config = replace(replica.config, in_sync_at_same_end=same_end)
    bench.settle()
    lag = replica.config.lag_time_max_us
    now = image(state())
    assert replica.shrink_isr(now, lag) is None
    late = replica.shrink_isr(now, lag + 1)
    assert (late is None) is same_end
    if late is not None:
        assert [member.broker for member in late.in_sync] == [1]


def test_a_fetch_that_brings_nothing_keeps_an_idle_follower_in_the_isr_by_either_rule():
    for same_end in (True, False):
        bench = Bench()
        replica = bench.managers[1].replicas[P]
        replica.config = replace(replica.config, in_sync_at_same_end=same_end)
        bench.settle()
        lag = replica.config.lag_time_max_us
        for remote in replica.remotes.values():
            remote.clock.last_fetch_us = lag
        assert replica.shrink_isr(image(state()), 2 * lag) is None


# -- the check of the quorum (KAFKA-15489) --------------------------------------------------------


@pytest.mark.parametrize(("checks", "role"), [(True, Role.RESIGNED), (False, Role.LEADER)])
def test_a_leader_without_its_majority_resigns_only_if_it_checks(checks, role):
    member = leader(checks_quorum=checks)
    assert any(isinstance(e, CancelTimer) and e.name == "role" for e in member.out) is not checks
    if checks:
        member.fire()
    assert member.role is role


def test_without_the_check_fetches_of_a_majority_set_no_deadline_either():
    member = leader(checks_quorum=False)
    del member.timers["role"]
    member.ask(fetch(B, 1, 1, 1))
    assert member.quorum.high_watermark == 1
    assert "role" not in member.timers


# -- placement without racks (before KIP-36) ------------------------------------------------------

ZONES = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c", 6: "c"}


def assigned(desk, name, partitions):
    desk.ask(CreateTopicsRequest((NewTopic(name, partitions, 3),)))
    return [desk.state(TopicPartition(name, number)).replicas for number in range(partitions)]


def zoned(**config):
    desk = Desk(brokers=6, **config)
    for held in (desk.controller.image, desk.controller.committed):
        for broker, zone in ZONES.items():
            held.brokers[broker] = replace(held.brokers[broker], rack=zone)
    return desk


def doubled(assignments):
    """How many partitions have two replicas in one zone."""
    return sum(len({ZONES[b] for b in replicas}) < 3 for replicas in assignments)


def test_racks_are_looked_at_unless_placement_is_plain():
    aware, plain = zoned(), zoned(rack_aware=False)
    assert doubled(assigned(aware, "t", 60)) == 0
    assert doubled(assigned(plain, "t", 60)) > 30
    for desk in (aware, plain):
        desk.ask(CreatePartitionsRequest("t", 120))
    more = [
        [desk.state(TopicPartition("t", number)).replicas for number in range(60, 120)]
        for desk in (aware, plain)
    ]
    assert doubled(more[0]) == 0
    assert doubled(more[1]) > 30


def test_plain_placement_over_sorted_zones_loses_two_replicas_of_two_in_six_with_a_zone():
    """Catalogue D1, exactly: the first round takes each run of three brokers in order."""
    placer = StripedReplicaPlacer(
        (UsableBroker(broker, "", fenced=False) for broker in ZONES), lambda: 0.0
    )
    first = [placer.place(3) for _ in range(6)]
    assert first[:2] == [(1, 2, 3), (2, 3, 4)]
    for zone in "abc":
        assert sum([ZONES[b] for b in r].count(zone) == 2 for r in first) == 2
    assert doubled(first) == 6
