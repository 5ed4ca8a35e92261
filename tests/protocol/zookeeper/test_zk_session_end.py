"""ZooKeeper mode: what becomes of the controller's work when its session ends under way."""

from itertools import permutations

import pytest

from sim.ids import TopicPartition
from sim.protocol.events import RequestReceived
from sim.protocol.zk_mode.znodes import (
    CONTROLLER,
    CONTROLLER_EPOCH,
    ControlledShutdownRequest,
    state_path,
)
from tests.protocol.zookeeper.zk_kit import Cluster


def cut_in_the_middle(**switches):
    """The controller hears of a death, is cut off before its first write, and heals 14 s later.

    The dead broker is back before the controller's successor looks, which has nothing to write.
    """
    c = Cluster.with_spare_controller(**switches)
    old = c.controller()
    bounced = c.others(old.node)[0]
    before = {n: c.state("orders", n) for n in range(3)}
    c.kill(bounced)
    c.run_until(lambda: bounced not in old.controller.brokers)
    assert {n: c.state("orders", n) for n in range(3)} == before, "nothing is written yet"
    c.isolate(old.node)
    c.start(bounced)
    c.run(14)
    seen = {n: c.state("orders", n) for n in range(3)}
    assert c.controller() is not old
    c.loop.heal()
    c.run(8)
    return c, old, bounced, seen


def versions(c, number, leader):
    """Of a partition's node: as ZooKeeper has it, and as the broker has it cached."""
    partition = TopicPartition("orders", number)
    in_zookeeper = c.ensemble.leader().store.tree.nodes[state_path(partition)].version
    return in_zookeeper, c.brokers[leader].replicas[partition].version


def wish_for_all(c, number, leader):
    """The partition's leader wants every replica in its ISR; whether all are there then."""
    replicas = c.brokers[leader].replicas[TopicPartition("orders", number)].replicas
    c.wish(leader, replicas, TopicPartition("orders", number))
    c.run(10)
    return sorted(c.of(number)[2]) == sorted(replicas)


def test_an_event_that_outlives_its_session_leaves_leaders_with_old_versions():
    """Catalogue: zk-cached-version-zombie (KAFKA-2729, KAFKA-3083)."""
    c, old, bounced, seen = cut_in_the_middle(resumes=True, fencing=False)
    assert not old.is_controller, "it has stepped down when it was done"
    changed = [n for n in range(3) if c.state("orders", n) is not seen[n]]
    assert changed, "it wrote what it had decided to do in the session before"
    for number in changed:
        leader = seen[number].leader
        in_zookeeper, cached = versions(c, number, leader)
        assert in_zookeeper > cached
        assert bounced not in c.state("orders", number).in_sync, "dead to it, and alive"
        for time in (1, 2, 3):
            before = c.brokers[leader].skipped_isr_updates
            assert not wish_for_all(c, number, leader), time
            assert bounced not in c.state("orders", number).in_sync
            assert c.brokers[leader].skipped_isr_updates == before + 1


@pytest.mark.parametrize("switches", [{"fencing": True}, {"fencing": False}])
def test_what_a_later_controller_has_written_is_left_to_that_one(switches):
    """Without a spare controller its successor takes it out of every ISR."""
    c = Cluster(resumes=True, **switches)
    old = c.controller()
    bounced = c.others(old.node)[0]
    c.kill(bounced)
    c.run_until(lambda: bounced not in old.controller.brokers)
    c.isolate(old.node)
    c.start(bounced)
    c.run(14)
    seen = {n: c.state("orders", n) for n in range(3)}
    assert {state.controller_epoch for state in seen.values()} == {2}
    c.loop.heal()
    c.run(8)
    assert not old.is_controller
    assert all(c.state("orders", n) is seen[n] for n in range(3))


@pytest.mark.parametrize("switches", [{"fencing": False}, {"resumes": True}])
def test_an_event_that_is_given_up_or_fenced_changes_nothing(switches):
    """Since 1.1 it ends with the session; since 2.1 (KAFKA-6082) ZooKeeper refuses it besides."""
    c, old, _, seen = cut_in_the_middle(**switches)
    assert not old.is_controller
    assert old.node in c.controller().controller.brokers, "it has registered again"
    assert old.controller.controller == c.controller().node
    for number in range(3):
        assert c.state("orders", number) is seen[number]
        leader = seen[number].leader
        in_zookeeper, cached = versions(c, number, leader)
        assert in_zookeeper == cached
        assert wish_for_all(c, number, leader)


@pytest.mark.parametrize("resumes", [True, False])
def test_a_session_that_ends_with_nothing_under_way_ends_the_controller(resumes):
    c = Cluster(resumes=resumes, fencing=False)
    old = c.controller()
    c.isolate(old.node)
    c.run(14)
    c.loop.heal()
    c.run(8)
    assert not old.is_controller
    assert c.controller().controller.epoch == 2
    assert old.node in c.controller().controller.brokers


# -- who becomes the controller while its session ends ---------------------------------------------


PAIRS = tuple(permutations(range(1, 6), 2))


def elected_away(**switches):
    """A broker takes the controller's node and is cut from ZooKeeper before it hears so.

    Its session ends, another broker is elected, and it comes back; one that it cannot reach then
    hears nothing of it.
    """
    c = Cluster({"orders": PAIRS}, brokers=5, **switches)
    first = c.controller()
    c.kill(first.node)
    c.run_until(lambda: holder(c) not in {None, first.node})
    late = c.brokers[holder(c)]
    assert not late.is_controller, "it does not know yet"
    c.isolate(late.node, c.ensemble.members)
    c.run(14)
    successor = c.controller()
    assert successor is not late
    far = c.others(first.node, late.node, successor.node)[0]
    c.loop.heal()
    c.loop.cut(late.node, far)
    c.run(8)
    return c, late, successor, far


def holder(c):
    """Who has the controller's node."""
    node = c.ensemble.leader().store.tree.nodes.get(CONTROLLER)
    return None if node is None else node.data


def obedient(c, controller):
    """Running brokers that would take a request of the controller."""
    epoch = controller.controller.epoch
    return [n for n in c.running() if c.brokers[n].controller_epoch <= epoch]


def test_who_counts_its_epoch_in_its_next_session_is_obeyed_instead_of_its_successor():
    """Catalogue: honeycomb-2017-split-brain-controller."""
    c, late, successor, far = elected_away(resumes=True, fencing=False)
    assert not late.is_controller, "it has stepped down"
    assert c.controller() is successor
    assert holder(c) == successor.node
    counted = c.ensemble.leader().store.tree.nodes[CONTROLLER_EPOCH].data
    assert counted == successor.controller.epoch + 1
    assert sorted(obedient(c, successor)) == sorted([late.node, far])


@pytest.mark.parametrize("switches", [{"resumes": True}, {"fencing": False}])
def test_who_counts_its_epoch_with_its_node_or_gives_up_with_its_session_disturbs_nobody(switches):
    c, late, successor, _ = elected_away(**switches)
    assert not late.is_controller
    counted = c.ensemble.leader().store.tree.nodes[CONTROLLER_EPOCH].data
    assert counted == successor.controller.epoch
    assert obedient(c, successor) == c.running()


def test_a_leader_that_the_refused_controller_elects_is_one_of_two():
    c, late, successor, far = elected_away(resumes=True, fencing=False)
    (old,) = (n for n in c.running() if n not in {late.node, successor.node, far})
    number = PAIRS.index((old, far))
    partition = TopicPartition("orders", number)
    request = ControlledShutdownRequest(old, -1)
    c.loop.processes[successor.node].deliver("broker", RequestReceived(77, "x", request))
    c.run(2)
    assert c.of(number)[0] == far
    views = {n: c.brokers[n].replicas[partition].state.leader for n in (old, far)}
    assert views == {old: old, far: far}, "both take writes"


def test_a_leader_writes_its_isr_with_the_epoch_of_the_controller_that_decided_on_it():
    """``Partition.makeLeader``: not of the one that spoke to it last."""
    c = Cluster.with_spare_controller()
    c.kill(c.controller().node)
    c.run(14)
    assert c.controller().controller.epoch == 2
    before = c.state("orders", 0)
    c.wish(before.leader, (before.leader,))
    c.run(1)
    assert c.state("orders", 0).in_sync == (before.leader,)
    assert c.state("orders", 0).controller_epoch == before.controller_epoch < 2
