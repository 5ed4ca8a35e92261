"""ZooKeeper mode: partitions that are moved to other brokers (KIP-455)."""

import random

import pytest

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.messages.admin import (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    DeleteTopicsRequest,
)
from sim.protocol.zk_mode.administration.reassignment import Reassignment
from sim.protocol.zk_mode.broker_types import ReplicasStopped
from tests.protocol.zookeeper.zk_kit import ORDERS, Cluster

NODE = "/brokers/topics/orders"
FIVE = {"orders": ((1, 2), (2, 3))}


class Moving(Cluster):
    """Five brokers, whose processes note what they delete."""

    def __init__(self, **switches):
        self.deleted = []
        super().__init__(FIVE, brokers=5, is_administered=True, **switches)

    def start(self, node):
        self.loop.processes[node].performers[ReplicasStopped] = self._stopped
        super().start(node)

    def _stopped(self, process, _machine, effect, _at):
        self.deleted += [(process.node, p.partition) for p in effect.deleted]

    def move(self, *target, partition=ORDERS):
        request = AlterPartitionReassignmentsRequest(((partition, target or None),))
        return self.ask(request).errors[0][1]

    def node(self, path=NODE):
        nodes = max((s.tree for s in self.ensemble.stores.values()), key=lambda t: t.zxid).nodes
        return nodes[path].data

    def catch_up(self, number=0):
        """The leader takes every replica into its ISR, as if all had fetched."""
        partition = TopicPartition("orders", number)
        leader = self.of(number)[0]
        self.wish(leader, self.brokers[leader].replicas[partition].replicas, partition)
        self.run(1)


@pytest.fixture
def moving():
    return Moving(leaders_write_isr=True)


def test_new_replicas_join_first_and_the_former_ones_leave_when_all_are_in_sync(moving):
    c = moving
    assert c.move(4, 5) is ErrorCode.NONE
    data = c.node()
    assert data.replicas[0] == (4, 5, 1, 2)
    assert data.move_of(0) == ((4, 5), (1, 2))
    assert c.of() == (1, 1, (1, 2)), "the same leader in a new epoch"
    assert all(ORDERS in c.brokers[n].replicas for n in (1, 2, 4, 5))
    assert c.brokers[4].replicas[ORDERS].move.adding == (4, 5)
    c.run(30)
    assert c.deleted == []
    c.catch_up()
    assert c.node().replicas[0] == (4, 5)
    assert c.node().moves == ()
    leader, _, in_sync = c.of()
    assert (leader, in_sync) == (4, (4, 5))
    assert sorted(c.deleted) == [(1, 0), (2, 0)]
    assert [e.state.leader for e in (c.brokers[n].metadata[ORDERS] for n in c.brokers)] == [4] * 5
    assert c.node().replicas[1] == (2, 3)


def test_a_leader_that_stays_keeps_its_leadership_in_a_new_epoch(moving):
    c = moving
    c.move(3, 1)
    c.catch_up()
    leader, epoch, in_sync = c.of()
    assert (leader, sorted(in_sync)) == (1, [1, 3])
    assert epoch == 3, "with the new replicas, with the target alone, without the removed one"
    assert c.deleted == [(2, 0)]


def test_only_another_order_is_done_at_once(moving):
    assert moving.move(2, 1) is ErrorCode.NONE
    assert moving.node().replicas[0] == (2, 1)
    assert moving.of()[0] == 1
    assert moving.deleted == []


def test_called_off_the_new_replicas_are_deleted_and_the_former_ones_stay(moving):
    c = moving
    c.move(4, 5)
    assert c.move() is ErrorCode.NONE
    c.run(1)
    assert c.node().replicas[0] == (1, 2)
    assert c.node().moves == ()
    assert sorted(c.deleted) == [(4, 0), (5, 0)]
    assert c.of()[0] == 1
    assert c.of()[2] == (1, 2)
    assert c.move() is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS


def test_another_target_replaces_the_one_under_way(moving):
    c = moving
    c.move(4, 5)
    c.move(4, 3)
    assert c.node().replicas[0] == (4, 3, 1, 2)
    assert c.deleted == [(5, 0)]
    c.catch_up()
    assert c.node().replicas[0] == (4, 3)


def test_a_new_controller_goes_on_with_what_the_topics_node_says(moving):
    c = moving
    c.move(3, 5)
    old = c.controller().node
    c.kill(old)
    c.run(12)
    c.start(old)
    c.run(5)
    assert c.node().move_of(0) == ((3, 5), (1, 2))
    c.catch_up()
    c.run(5)
    assert c.node().replicas[0] == (3, 5)


def test_a_topic_is_deleted_when_its_reassignment_is_over(moving):
    c = moving
    c.move(4, 5)
    assert c.ask(DeleteTopicsRequest(("orders",))).errors[0][1] is ErrorCode.NONE
    c.run(20)
    assert c.deleted == []
    c.catch_up()
    c.run(2)
    with pytest.raises(KeyError):
        c.node()


@pytest.mark.parametrize(
    ("target", "error"),
    [
        ((4, 4), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((4, 9), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        ((), ErrorCode.NO_REASSIGNMENT_IN_PROGRESS),
    ],
)
def test_what_cannot_be_is_refused(moving, target, error):
    assert moving.move(*target) is error
    assert moving.node().replicas[0] == (1, 2)
    absent = TopicPartition("orders", 7)
    assert moving.move(4, 5, partition=absent) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_topic_under_reassignment_does_not_grow(moving):
    moving.move(4, 5)
    error = moving.ask(CreatePartitionsRequest("orders", 5)).error
    assert error is ErrorCode.REASSIGNMENT_IN_PROGRESS


def swarm(seed):
    """Reassignments under deaths and cuts; whether each partition ends where it shall be."""
    chance = random.Random(seed)
    c = Moving(leaders_write_isr=True)
    for _ in range(15):
        running = c.running()
        match chance.randrange(7):
            case 0 if len(running) > 2:
                c.kill(chance.choice(running))
            case 1 if len(running) < 5:
                c.start(chance.choice(c.others(*running)))
            case 2:
                c.isolate(chance.choice([*c.brokers, *c.ensemble.members]))
                c.run(8)
            case 3 | 4 if c.controller() is not None:
                target = tuple(chance.sample(range(1, 6), 2))
                items = ((ORDERS, chance.choice([target, target, None])),)
                c.send(AlterPartitionReassignmentsRequest(items))
            case 5 if c.of()[0] in running and ORDERS in c.brokers[c.of()[0]].replicas:
                c.catch_up()
            case _:
                c.loop.heal()
        c.run(chance.random() * 12)
    c.loop.heal()
    for node in c.others(*c.running()):
        c.start(node)
    c.run(60)
    for _ in range(3):
        c.catch_up()
        c.run(10)
    replicas, (leader, _, in_sync) = c.node().replicas[0], c.of()
    metadata = [b.metadata[ORDERS].state.leader for b in c.brokers.values()]
    good = c.node().moves == () and sorted(in_sync) == sorted(replicas) and leader in replicas
    return good and metadata == [leader] * 5, replicas


def test_after_any_deaths_and_cuts_every_move_ends_at_its_target():
    outcomes = [swarm(seed) for seed in range(12)]
    assert [good for good, _ in outcomes] == [True] * 12
    assert len(dict.fromkeys(replicas for _, replicas in outcomes)) > 3


def test_a_controller_that_does_not_resume_moves_is_found_by_the_same_swarm(monkeypatch):
    monkeypatch.setattr(Reassignment, "isr_changed", lambda _self, _partition: iter(()))
    assert not all(good for good, _ in (swarm(seed) for seed in range(6)))
