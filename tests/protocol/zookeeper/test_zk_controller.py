"""ZooKeeper mode: one broker decides, writes to ZooKeeper, and tells the others."""

import random

import pytest

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.events import RequestReceived
from sim.protocol.messages.cluster import AlterPartitionItem, AlterPartitionRequest, IsrMember
from sim.protocol.zk_mode.controller_types import ControllerMoved
from sim.protocol.zk_mode.elections import ZkElection, elect, initial, without
from sim.protocol.zk_mode.znodes import (
    CONTROLLER,
    LeaderAndIsrRequest,
    LeaderIsr,
    PartitionEntry,
    StopReplicaRequest,
    TopicAssignment,
    topic_path,
)
from sim.protocol.zookeeper.session import ZkOperation
from sim.protocol.zookeeper.tree import Create
from tests.protocol.zookeeper.zk_kit import ORDERS, SECOND, Cluster

OLD = LeaderIsr(1, 5, (1, 2), 1)
REPLICAS = (1, 2, 3)


# -- the rules ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "live", "stopping", "unclean", "elected"),
    [
        (ZkElection.OFFLINE, (2, 3), (), False, (2, (2,))),
        (ZkElection.OFFLINE, (3,), (), False, None),
        (ZkElection.OFFLINE, (3,), (), True, (3, (3,))),
        (ZkElection.OFFLINE, (), (), True, None),
        (ZkElection.SHUTDOWN, (1, 2, 3), (1,), False, (2, (2,))),
        (ZkElection.SHUTDOWN, (1, 3), (1,), True, None),
        (ZkElection.PREFERRED, (1, 2), (), False, (1, (1, 2))),
        (ZkElection.PREFERRED, (2,), (), True, None),
    ],
)
def test_an_election_takes_the_first_live_member_of_the_isr_in_the_assignments_order(
    kind, live, stopping, unclean, elected
):
    assert elect(kind, OLD, REPLICAS, live, stopping=stopping, unclean=unclean) == elected


def test_the_last_member_of_an_isr_stays_in_it_without_leading():
    assert without(OLD, 2, 7) == LeaderIsr(1, 6, (1,), 7)
    assert without(LeaderIsr(1, 5, (1,), 1), 1, 7) == LeaderIsr(-1, 6, (1,), 7)
    assert without(OLD, 3, 7) is None


def test_a_new_partition_starts_with_its_live_replicas():
    assert initial((3, 1, 2), (1, 2), 4) == LeaderIsr(1, 0, (1, 2), 4)
    assert initial((3,), (1, 2), 4) is None


# -- the life of a controller ---------------------------------------------------------------------


def test_one_broker_becomes_controller_and_tells_everybody_everything():
    c = Cluster()
    assert [b.is_controller for b in c.brokers.values()].count(True) == 1
    controller = c.controller().node
    assert all(b.controller.controller == controller for b in c.brokers.values())
    for number in range(3):
        assert c.views(number) == [(number + 1, number + 1)] * 3
    assert c.controller().controller.loaded_partitions == 3


def test_a_dead_broker_loses_its_partitions_when_its_session_ends_and_not_before():
    c = Cluster()
    dead = c.others(c.controller().node)[0]
    c.run(2)
    c.kill(dead)
    c.run(3.5)
    assert c.of(dead - 1)[0] == dead, "its session still has time"
    c.run(6)
    following = dead % 3 + 1
    assert c.of(dead - 1) == (following, 1, tuple(b for b in c.state("orders", dead - 1).in_sync))
    for number in range(3):
        leader, _, in_sync = c.of(number)
        assert dead not in (leader, *in_sync)
        assert c.views(number) == [(leader, leader)] * 2


def test_a_dead_controller_is_followed_by_one_that_finds_out_who_else_is_gone():
    c = Cluster()
    old = c.controller()
    c.kill(old.node)
    c.run(12)
    new = c.controller()
    assert new is not None
    assert new.controller.epoch == old.controller.epoch + 1
    assert c.of(old.node - 1)[0] == old.node % 3 + 1
    assert new.controller.loaded_partitions == 3
    assert c.views(old.node - 1) == [(old.node % 3 + 1,) * 2] * 2


def test_partitions_of_a_lost_isr_wait_for_it_unless_unclean_elections_are_allowed():
    lonely = {"orders": ((1, 2, 3),)}
    for unclean in (False, True):
        c = Cluster(lonely, unclean=unclean)
        c.wish(1, (1,))
        c.run(10)
        assert c.of() == (1, 0, (1,))
        c.kill(1)
        c.run(12)
        assert c.of()[0] == (2 if unclean else -1)
        assert c.of()[2] == ((2,) if unclean else (1,))
        c.start(1)
        c.run(12)
        assert c.of()[0] == (2 if unclean else 1)


def test_a_controlled_shutdown_moves_leaders_at_once_and_ends_the_session():
    c = Cluster()
    leaving = c.others(c.controller().node)[0]
    before = c.loop.now
    c.stop(leaving)
    c.run(1)
    assert c.granted[leaving] - before < SECOND
    for number in range(3):
        leader, _, in_sync = c.of(number)
        assert leaving not in (leader, *in_sync)
    assert str(leaving) not in next(iter(c.ensemble.stores.values())).tree.children["/brokers/ids"]


def test_a_broker_that_is_back_is_told_what_it_follows_and_may_lead_again():
    c = Cluster()
    leaving = c.others(c.controller().node)[0]
    c.stop(leaving)
    c.run(1)
    c.kill(leaving)
    c.start(leaving)
    c.run(2)
    number = leaving - 1
    leader = c.of(number)[0]
    assert leader != leaving
    assert c.views(number) == [(leader, leader)] * 3
    everybody = (*c.of(number)[2], leaving)
    c.wish(leader, everybody, TopicPartition("orders", number))
    c.run(320)
    assert c.of(number)[0] == leaving, "the preferred leader"


def test_preferred_leaders_stay_away_when_the_rebalance_is_off():
    c = Cluster(auto_leader_rebalance=False)
    leaving = c.others(c.controller().node)[0]
    c.stop(leaving)
    c.run(1)
    c.kill(leaving)
    c.start(leaving)
    c.run(2)
    leader = c.of(leaving - 1)[0]
    c.wish(leader, (*c.of(leaving - 1)[2], leaving), TopicPartition("orders", leaving - 1))
    c.run(700)
    assert c.of(leaving - 1)[0] == leader


def test_a_new_topic_gets_leaders():
    c = Cluster()
    broker = c.brokers[1]
    out = []
    assignment = TopicAssignment(((1, 2), (3, 1)))
    broker.session.submit(0, [ZkOperation(Create(topic_path("new"), assignment))], c.loop.now, out)
    c.loop.processes[1].perform("broker", out)
    c.run(1)
    assert (c.state("new", 0).leader, c.state("new", 1).leader) == (1, 3)
    assert TopicPartition("new", 0) in c.brokers[2].replicas
    assert TopicPartition("new", 0) in c.brokers[3].metadata
    assert TopicPartition("new", 0) not in c.brokers[3].replicas


def test_without_a_majority_of_zookeeper_nobody_is_moved_and_leaders_go_on():
    c = Cluster()
    for member in c.ensemble.members[1:]:
        c.loop.kill(member)
    c.run(10)
    dead = c.others(c.controller().node)[0] if c.controller() else 1
    c.kill(dead)
    c.run(60)
    assert c.of(dead - 1)[0] == dead
    for member in c.ensemble.members[1:]:
        c.ensemble.start(member)
    c.run(20)
    assert c.of(dead - 1)[0] != dead
    assert c.controller() is not None


# -- fencing --------------------------------------------------------------------------------------


def stale(c, request, broker):
    return next(
        e.response.error
        for e in c.brokers[broker].handle(RequestReceived(1, "x", request), c.loop.now)
        if hasattr(e, "response")
    )


def test_brokers_refuse_a_controller_that_was_deposed():
    c = Cluster()
    epoch = c.controller().controller.epoch
    entry = PartitionEntry(ORDERS, LeaderIsr(2, 9, (2,), epoch), 4, (1, 2, 3))
    before = c.brokers[1].replicas[ORDERS]
    request = LeaderAndIsrRequest(3, epoch - 1, -1, (entry,))
    assert stale(c, request, 1) is ErrorCode.STALE_CONTROLLER_EPOCH
    assert c.brokers[1].replicas[ORDERS] is before
    assert stale(c, LeaderAndIsrRequest(3, epoch, -1, (entry,)), 1) is ErrorCode.NONE
    assert c.brokers[1].replicas[ORDERS] is entry


@pytest.mark.parametrize("broker_epochs", [True, False])
def test_a_request_meant_for_a_former_process_stops_replicas_only_before_kip_380(broker_epochs):
    c = Cluster(broker_epochs=broker_epochs)
    controller = c.controller()
    back = c.others(controller.node)[0]
    former = c.brokers[back].broker_epoch if broker_epochs else -1
    c.stop(back)
    c.run(1)
    c.kill(back)
    c.start(back)
    c.run(2)
    assert ORDERS in c.brokers[back].replicas
    held = StopReplicaRequest(controller.node, controller.controller.epoch, former, (ORDERS,))
    error = stale(c, held, back)
    assert error is (ErrorCode.STALE_BROKER_EPOCH if broker_epochs else ErrorCode.NONE)
    assert (ORDERS in c.brokers[back].replicas) is broker_epochs


@pytest.mark.parametrize("fencing", [True, False])
def test_a_controller_paused_before_its_write_overwrites_its_successors_only_without_fencing(
    fencing,
):
    """Catalogue: stale-controller-writes-zk (KAFKA-6082)."""
    c = Cluster.with_spare_controller(fencing=fencing)
    old = c.controller()
    leaving, third = c.others(old.node)
    partition = ORDERS
    # The old controller has begun to move a partition, and stands before its first read.
    old.controller.stopping[leaving] = None
    decided = old.controller.elect([partition], ZkElection.SHUTDOWN)
    asks = next(decided)
    c.isolate(old.node)
    c.run(14)
    new = next(c.brokers[n] for n in (leaving, third) if c.brokers[n].is_controller)
    assert new.controller.epoch == old.controller.epoch + 1
    before = c.state("orders", 0)
    # Awake again, it goes on with what it was doing, before it hears that its session is over.
    tree = c.ensemble.leader().store.tree
    asks = decided.send([tree.read(ask.op) for ask in asks])
    session = new.session.session  # any open one: a deposed controller reconnects and has one
    outcomes = [tree.apply(tree.zxid + 1, session, ask.op)[0] for ask in asks]
    with pytest.raises(ControllerMoved if fencing else StopIteration):
        decided.send(outcomes)
    after = c.state("orders", 0)
    if fencing:
        assert after is before
    else:
        assert after.controller_epoch == old.controller.epoch
        known = [c.brokers[n].replicas[partition].state for n in (leaving, third)]
        assert after.leader_epoch not in {s.leader_epoch for s in known}


def test_a_controller_that_lost_its_session_resigns_and_joins_again():
    c = Cluster()
    old = c.controller()
    epoch = old.broker_epoch
    c.isolate(old.node)
    c.run(14)
    assert old.is_controller, "nobody has told it"
    c.loop.heal()
    c.run(8)
    assert not old.is_controller
    assert c.controller().controller.epoch == 2
    assert old.broker_epoch > epoch
    assert old.node in c.controller().controller.brokers
    owner = next(iter(c.ensemble.stores.values())).tree.nodes[CONTROLLER].data
    assert owner == c.controller().node


# -- ISR changes ----------------------------------------------------------------------------------


def test_a_leader_writes_its_isr_and_the_controller_tells_clients_after_a_while():
    c = Cluster()
    c.run(10)
    c.wish(1, (1, 2))
    c.run(1)
    assert c.of() == (1, 0, (1, 2))
    assert c.brokers[3].metadata[ORDERS].state.in_sync == (1, 2, 3)
    c.run(10)
    assert c.brokers[3].metadata[ORDERS].state.in_sync == (1, 2)
    c.wish(1, (1, 2, 3))
    c.run(10)
    assert c.of() == (1, 0, (1, 2, 3)), "the cached version was counted on"


def test_a_leader_with_an_old_version_cannot_change_its_isr_until_it_is_told_the_new_one():
    """Catalogue: zk-cached-version-zombie (KAFKA-2729)."""
    c = Cluster()
    leader = c.brokers[1]
    stale_entry = leader.replicas[ORDERS]._replace(version=-7)
    leader.replicas[ORDERS] = stale_entry
    for _ in range(3):
        c.wish(1, (1, 2))
        c.run(10)
    assert c.of()[2] == (1, 2, 3)
    assert leader.skipped_isr_updates == 3
    dead = 3 if c.controller().node != 3 else 2
    c.kill(dead)
    c.run(12)
    assert leader.replicas[ORDERS].version >= 1, "a LeaderAndIsr with a new epoch brings it"
    c.wish(1, (1,))
    c.run(5)
    assert c.of()[2] == (1,)


def item(in_sync, *, epoch=0, version=0):
    return AlterPartitionItem(ORDERS, epoch, version, tuple(IsrMember(b, -1) for b in in_sync))


def alter(c, items, sender=1, broker_epoch=None):
    """ZkOperation the controller; its answer comes after its write."""
    controller = c.controller()
    replies = []
    process = c.loop.processes[controller.node]
    perform = process.perform
    process.perform = lambda machine, effects, lane=0: (
        replies.extend(e.response for e in effects if getattr(e, "token", None) == 77),
        perform(machine, effects, lane),
    )
    epoch = c.brokers[sender].broker_epoch if broker_epoch is None else broker_epoch
    request = AlterPartitionRequest(sender, epoch, tuple(items))
    process.deliver("broker", RequestReceived(77, "x", request))
    c.run(1)
    return replies[0]


def test_the_controller_writes_isr_changes_that_leaders_ask_for():
    c = Cluster()
    answer = alter(c, [item((1, 2))])
    (result,) = answer.results
    assert (result.error, result.in_sync, result.partition_epoch) == (ErrorCode.NONE, (1, 2), 1)
    assert c.of() == (1, 0, (1, 2))
    assert c.brokers[3].metadata[ORDERS].state.in_sync == (1, 2)


@pytest.mark.parametrize(
    ("wish", "sender", "error"),
    [
        (item((1, 2), version=4), 1, ErrorCode.INVALID_UPDATE_VERSION),
        (item((1, 2), epoch=-1), 1, ErrorCode.FENCED_LEADER_EPOCH),
        (item((1, 2), epoch=3), 1, ErrorCode.NOT_CONTROLLER),
        (item((1, 2)), 2, ErrorCode.FENCED_LEADER_EPOCH),
        (item((1, 9)), 1, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_the_controller_refuses_a_wish(wish, sender, error):
    c = Cluster()
    assert alter(c, [wish], sender).results[0].error is error
    assert c.of() == (1, 0, (1, 2, 3))


def test_a_former_process_may_wish_for_nothing():
    c = Cluster()
    assert alter(c, [item((1, 2))], broker_epoch=0).error is ErrorCode.STALE_BROKER_EPOCH


# -- anything, in any order -----------------------------------------------------------------------


def swarm(seed, plant=lambda c: c):
    """Deaths, restarts, cuts and stops at random; whether all agree in the end."""
    chance = random.Random(seed)
    c = plant(Cluster())
    changes = 0
    for _ in range(20):
        running = c.running()
        match chance.randrange(5):
            case 0 if len(running) > 1:
                c.kill(chance.choice(running))
            case 1 if len(running) < 3:
                c.start(next(n for n in c.brokers if n not in running))
            case 2:
                c.isolate(chance.choice([*c.brokers, *c.ensemble.members]))
            case 3 if len(running) > 2:
                stopped = chance.choice(running)
                c.stop(stopped)
                c.run(1)
                c.kill(stopped)
            case _:
                c.loop.heal()
        controller = c.controller()
        c.run(chance.random() * 15)
        changes += c.controller() is not controller
    c.loop.heal()
    for node in c.others(*c.running()):
        c.start(node)
    c.run(60)
    wrong = []
    for number in range(3):
        leader, _, in_sync = c.of(number)
        if leader not in in_sync or c.views(number) != [(leader, leader)] * 3:
            wrong.append((number, leader, in_sync, c.views(number)))
    epochs = [b.controller.epoch for b in c.brokers.values() if b.is_controller]
    return wrong, len(epochs), changes


def test_after_any_deaths_cuts_and_stops_one_controller_and_one_view_are_left():
    outcomes = [swarm(seed) for seed in range(15)]
    assert [wrong for wrong, _, _ in outcomes] == [[]] * 15
    assert [controllers for _, controllers, _ in outcomes] == [1] * 15
    assert sum(changes for _, _, changes in outcomes) > 15


def test_a_controller_that_does_not_resign_is_found_by_the_same_swarm():
    outcomes = [swarm(seed, Cluster.forgetful) for seed in range(6)]
    assert any(wrong or controllers != 1 for wrong, controllers, _ in outcomes)


def test_a_broker_cut_from_the_controller_alone_leads_on_in_its_own_eyes():
    """Catalogue: broker-cut-from-controller-only. Its session lives, so nobody takes it out."""
    controller = Cluster().controller().node
    deaf, preferred = Cluster().others(controller)
    c = Cluster({"orders": ((preferred, deaf, controller),)})
    assert c.controller().node == controller
    c.stop(preferred)
    c.run(1)
    c.kill(preferred)
    c.start(preferred)
    c.run(2)
    c.wish(deaf, (preferred, deaf, controller))
    c.run(10)
    assert c.of()[0] == deaf
    c.loop.cut(deaf, controller)
    c.run(320)
    assert c.of()[0] == preferred
    assert c.brokers[preferred].replicas[ORDERS].state.leader == preferred
    assert c.brokers[deaf].replicas[ORDERS].state.leader == deaf, "two leaders"
    c.loop.heal()
    c.run(40)
    assert c.brokers[deaf].replicas[ORDERS].state.leader == preferred, "the request was kept"
