"""ZooKeeper mode: topics that get more partitions."""

import random

import pytest

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.messages.admin import CreatePartitionsRequest, DeleteTopicsRequest
from sim.protocol.zk_mode.controller import ZkController
from sim.protocol.zk_mode.placement import assign_replicas
from sim.protocol.zk_mode.znodes import TopicAssignment
from sim.protocol.zookeeper.session import ZkOperation
from sim.protocol.zookeeper.tree import SetData
from tests.protocol.zookeeper.zk_kit import ROUND, Cluster

NODE = "/brokers/topics/orders"


def never():
    raise AssertionError("nothing is drawn")


def grow(c, count, assignment=()):
    return c.ask(CreatePartitionsRequest("orders", count, assignment)).error


def nodes(c):
    return max((s.tree for s in c.ensemble.stores.values()), key=lambda t: t.zxid).nodes


def test_new_partitions_are_placed_behind_the_first_ones_first_replica():
    """As ``AdminUtils.assignReplicasToBrokers`` computes it with start index 1, partition 2."""
    racks = dict.fromkeys((1, 2, 3, 4), "")
    assert assign_replicas(racks, 3, 3, never, ((2, 3, 4), (3, 4, 1))) == (
        (4, 2, 3), (1, 3, 4), (2, 1, 3),
    )  # fmt: skip
    assert assign_replicas(racks, 1, 1, never, ((9,),)) == ((2,),), "no broker is at or above it"


def test_new_partitions_get_leaders_and_every_broker_learns_of_them():
    c = Cluster(is_administered=True)
    assert grow(c, 5) is ErrorCode.NONE
    c.run(1)
    for number in (3, 4):
        leader, epoch, in_sync = c.of(number)
        assert (epoch, len(in_sync)) == (0, 3)
        assert c.views(number) == [(leader, leader)] * 3
    assert c.of(2)[1] == 0, "the others are as they were"


def test_new_partitions_may_be_given_their_replicas():
    c = Cluster(is_administered=True)
    assert grow(c, 4, ((3, 1, 2),)) is ErrorCode.NONE
    c.run(1)
    assert c.of(3) == (3, 0, (3, 1, 2))


@pytest.mark.parametrize(
    ("count", "assignment", "error"),
    [
        (3, (), ErrorCode.INVALID_PARTITIONS),
        (2, (), ErrorCode.INVALID_PARTITIONS),
        (4, ((1, 2),), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (4, ((1, 2, 2),), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (4, ((1, 2, 9),), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
        (5, ((1, 2, 3),), ErrorCode.INVALID_REPLICA_ASSIGNMENT),
    ],
)
def test_what_cannot_be_is_refused(count, assignment, error):
    c = Cluster(is_administered=True)
    assert grow(c, count, assignment) is error
    assert len(nodes(c)[NODE].data.replicas) == 3


def test_a_topic_that_is_to_be_deleted_does_not_grow():
    c = Cluster(is_administered=True)
    dead = c.others(c.controller().node)[0]
    c.kill(dead)
    c.run(12)
    c.ask(DeleteTopicsRequest(("orders",)))
    assert grow(c, 4) is ErrorCode.INVALID_TOPIC_EXCEPTION
    controller = c.controller()
    out = []
    more = TopicAssignment((*ROUND["orders"], (1, 2, 3)))
    controller.session.submit(0, [ZkOperation(SetData(NODE, more))], c.loop.now, out)
    c.loop.processes[controller.node].perform("broker", out)
    c.run(1)
    assert len(nodes(c)[NODE].data.replicas) == 3, "the controller takes them back"
    c.start(dead)
    c.run(5)
    assert not [path for path in nodes(c) if path.startswith(NODE)]


def swarm(seed):
    """A topic that grows under deaths and cuts; whether every partition has one leader."""
    chance = random.Random(seed)
    c = Cluster(is_administered=True)
    for count in range(4, 16):
        running = c.running()
        match chance.randrange(5):
            case 0 if len(running) > 1:
                c.kill(chance.choice(running))
            case 1 if len(running) < 3:
                c.start(chance.choice(c.others(*running)))
            case 2:
                c.isolate(chance.choice([*c.brokers, *c.ensemble.members]))
                c.run(8)  # a request that is lost is noticed by silence alone
            case _:
                c.loop.heal()
        if c.controller() is not None:
            c.send(CreatePartitionsRequest("orders", count))
        c.run(chance.random() * 12)
    c.loop.heal()
    for node in c.others(*c.running()):
        c.start(node)
    c.run(60)
    wrong = [
        number
        for number in range(len(nodes(c)[NODE].data.replicas))
        if not _is_led(c, TopicPartition("orders", number))
    ]
    return wrong, len(nodes(c)[NODE].data.replicas)


def _is_led(c, partition):
    leader = c.state(*partition).leader
    known = [c.brokers[n].metadata.get(partition) for n in c.brokers]
    return leader > 0 and [e and e.state.leader for e in known] == [leader] * 3


def test_after_any_deaths_and_cuts_every_partition_is_led_and_known():
    outcomes = [swarm(seed) for seed in range(10)]
    assert [wrong for wrong, _ in outcomes] == [[]] * 10
    assert sum(count for _, count in outcomes) > 60


def test_a_controller_that_does_not_look_at_changed_topics_is_found(monkeypatch):
    monkeypatch.setattr(ZkController, "topic_modified", lambda _self, _topic: iter(()))
    with pytest.raises(KeyError):
        test_new_partitions_get_leaders_and_every_broker_learns_of_them()
