"""Members that never ask for their assignment, and how long their group waits for them."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.protocol.assignors.subscription import Subscription
from sim.protocol.clients.consumer.config import ConsumerConfig
from sim.protocol.coordinator.group.classic_state import GroupState
from sim.protocol.coordinator.group.context import GroupConfig
from sim.protocol.coordinator.group.coordinator import GroupCoordinator
from sim.protocol.coordinator.group.missing_sync import MissingSync
from sim.protocol.coordinator.log import AppendRecords, PartitionElected, RecordsAppended
from sim.protocol.effects import CancelTimer, Reply, SetTimer
from sim.protocol.events import RequestReceived, TimerFired
from sim.protocol.messages.group import (
    HeartbeatRequest,
    JoinGroupRequest,
    JoinGroupResponse,
    SyncGroupRequest,
    SyncGroupResponse,
)
from sim.units import SECOND

SESSION, REBALANCE = 10 * SECOND, 60 * SECOND
ALL = tuple(MissingSync)
FOR_EVER = 3_600 * SECOND


class Desk:
    """A coordinator of one group: its log takes everything, its timers fire on time."""

    def __init__(self, rule):
        self.machine = GroupCoordinator(1, 1, GroupConfig(append_linger_us=0, missing_sync=rule))
        self.now, self.token = 0, 0
        self.timers, self.replies = {}, {}
        self.beats = {}
        self.tell(PartitionElected(3, 0, ()))

    @property
    def group(self):
        return self.machine.group("g")

    def tell(self, event):
        for effect in self.machine.handle(event, self.now):
            match effect:
                case SetTimer(name, at):
                    self.timers[name] = at
                case CancelTimer(name):
                    self.timers.pop(name, None)
                case Reply(token, response):
                    self.replies[token] = response
                case AppendRecords():
                    self.tell(RecordsAppended(effect.token, E.NONE))
                case _:
                    pass

    def ask(self, request):
        self.token += 1
        self.tell(RequestReceived(self.token, "c", request))
        return self.token

    def join(self, member_id="", generation=-1):
        said = Subscription(("orders",), generation=generation)
        return self.ask(JoinGroupRequest("g", member_id, "c", said, ("range",), SESSION, REBALANCE))

    def newcomer(self):
        member_id = self.replies[self.join()].member_id
        self.join(member_id)
        return member_id

    def run(self, until):
        """Time passes; who has a heart sends a heartbeat every 3 s."""
        while True:
            alarms = [(at, name) for name, at in self.timers.items() if at <= until]
            beats = [(at, member) for member, at in self.beats.items() if at <= until]
            if not alarms and not beats:
                break
            if not beats or (alarms and min(alarms) < min(beats)):
                self.now, name = min(alarms)
                del self.timers[name]
                self.tell(TimerFired(name))
            else:
                self.now, member = min(beats)
                self.beats[member] = self.now + 3 * SECOND
                self.ask(HeartbeatRequest("g", member, self.group.generation))
        self.now = until

    def sync(self, member_id):
        return self.ask(SyncGroupRequest("g", member_id, self.group.generation))


def told_of_a_generation(rule, *, beats):
    """A leader that is told of its generation, and a follower that asks for its assignment."""
    desk = Desk(rule)
    leader, follower = desk.newcomer(), desk.newcomer()
    while desk.group.state is not GroupState.COMPLETING:
        desk.run(min(desk.timers.values()))
    desk.sync(follower)
    if beats:
        desk.beats[leader] = desk.now + 3 * SECOND
    return desk, leader, follower, desk.now


def left_after(rule, *, beats):
    """How long the leader that never asks stays a member; ``None`` for an hour at least."""
    desk, leader, _, began = told_of_a_generation(rule, beats=beats)
    while leader in desk.group.members and desk.now < FOR_EVER:
        desk.run(desk.now + SECOND)
    return None if leader in desk.group.members else desk.now - began


@pytest.mark.parametrize(
    ("rule", "silent", "heard"),
    [
        (MissingSync.REBALANCE_TIMEOUT, SESSION, REBALANCE),
        (MissingSync.HEARTBEATS, SESSION, None),
        (MissingSync.SESSION, SESSION, SESSION),
        (MissingSync.NEW_MEMBERS_STAY, None, None),
    ],
)
def test_how_long_a_group_waits_for_a_leader_that_never_asks(rule, silent, heard):
    """Catalogue: group-stuck-completing-rebalance; an hour stands for ever."""
    assert left_after(rule, beats=False) == silent
    assert left_after(rule, beats=True) == heard


@pytest.mark.parametrize("rule", ALL)
def test_whoever_has_asked_for_an_assignment_waits_without_a_session(rule):
    desk, leader, follower, began = told_of_a_generation(rule, beats=False)
    desk.run(began + SESSION - 1)
    assert set(desk.group.members) == {leader, follower}
    assert desk.group.members[follower].sync_token is not None
    if rule is MissingSync.NEW_MEMBERS_STAY:
        desk.run(FOR_EVER)
        assert (desk.group.state, desk.group.generation) == (GroupState.COMPLETING, 1)


@pytest.mark.parametrize("rule", ALL)
def test_the_others_are_told_to_join_again_when_the_wait_ends(rule):
    desk, leader, _, began = told_of_a_generation(rule, beats=False)
    if rule is MissingSync.NEW_MEMBERS_STAY:
        desk.newcomer()  # another member ends it, and the silent one with it
    asked = [token for token, said in desk.replies.items() if isinstance(said, SyncGroupResponse)]
    assert len(asked) == (rule is MissingSync.NEW_MEMBERS_STAY)
    desk.run(began + SESSION)
    told = [said.error for said in desk.replies.values() if isinstance(said, SyncGroupResponse)]
    assert told == [E.REBALANCE_IN_PROGRESS]
    desk.run(began + SESSION + REBALANCE)
    assert leader not in desk.group.members


@pytest.mark.parametrize("rule", ALL)
def test_a_member_of_before_has_its_session_whatever_the_rule(rule):
    """Only new members are forgotten, and only in their first generation."""
    desk, leader, follower, _ = told_of_a_generation(rule, beats=False)
    desk.sync(leader)
    assert desk.group.state is GroupState.STABLE
    newcomer = desk.newcomer()
    desk.join(leader, 1)
    desk.join(follower, 1)
    assert (desk.group.state, desk.group.generation) == (GroupState.COMPLETING, 2)
    desk.run(desk.now + SESSION)
    assert {leader, follower}.isdisjoint(desk.group.members)
    assert (newcomer in desk.group.members) is (rule is MissingSync.NEW_MEMBERS_STAY)


@pytest.mark.parametrize("rule", ALL)
def test_a_heartbeat_is_taken_while_the_group_waits_only_since_2_7(rule):
    desk, leader, _, _ = told_of_a_generation(rule, beats=False)
    said = desk.replies[desk.ask(HeartbeatRequest("g", leader, 1))]
    assert said.error is (E.NONE if rule.takes_heartbeats else E.REBALANCE_IN_PROGRESS)


@pytest.mark.parametrize(("generation", "settled"), [(-1, True), (1, False)])
def test_a_retry_that_names_its_generation_is_another_request_than_the_first(generation, settled):
    """Without KIP-792 a follower whose wait has timed out at its client is only told again."""
    desk, _, follower, _ = told_of_a_generation(MissingSync.NEW_MEMBERS_STAY, beats=False)
    said = desk.replies.get(desk.join(follower, generation))
    assert (isinstance(said, JoinGroupResponse) and said.generation == 1) is settled
    assert (desk.group.state is GroupState.COMPLETING) is settled


def test_a_consumer_names_the_generation_that_it_is_in_since_kip_792():
    assert ConsumerConfig(("orders",)).sends_generation
