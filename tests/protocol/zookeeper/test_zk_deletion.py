"""ZooKeeper mode: topics that an administrator marks are deleted by every replica's broker."""

import random

import pytest

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.messages.admin import DeleteTopicsRequest, ElectLeadersRequest
from sim.protocol.messages.cluster import CreateTopicsRequest, NewTopic
from sim.protocol.zk_mode.administration.deletion import TopicDeletion
from sim.protocol.zk_mode.broker_types import ReplicasStopped
from sim.protocol.zk_mode.controller import ZkController
from tests.protocol.zookeeper.zk_kit import ORDERS, ROUND, Cluster

MARK = "/admin/delete_topics/orders"
NODE = "/brokers/topics/orders"


class Deleting(Cluster):
    """Brokers whose processes note what they delete; two topics."""

    def __init__(self, **switches):
        self.deleted = []
        super().__init__(ROUND | {"other": ROUND["orders"]}, is_administered=True, **switches)

    def start(self, node):
        self.loop.processes[node].performers[ReplicasStopped] = self._stopped
        super().start(node)

    def _stopped(self, process, _machine, effect, _at):
        self.deleted += [(process.node, p.partition) for p in effect.deleted]

    def nodes(self):
        return max((s.tree for s in self.ensemble.stores.values()), key=lambda t: t.zxid).nodes

    def traces(self):
        """Paths that still speak of the topic."""
        return [path for path in self.nodes() if path.startswith(NODE) or path == MARK]

    def delete(self, topic="orders"):
        return self.ask(DeleteTopicsRequest((topic,))).errors[0][1]


def others_know_nothing(c):
    return all(
        not [p for p in known if p.topic == "orders"]
        for n in c.running()
        for known in (c.brokers[n].replicas, c.brokers[n].metadata)
    )


def test_a_marked_topic_leaves_every_broker_and_its_nodes_are_deleted():
    c = Deleting()
    assert c.delete() is ErrorCode.NONE
    c.run(1)
    assert sorted(c.deleted) == [(b, p) for b in (1, 2, 3) for p in (0, 1, 2)]
    assert c.traces() == []
    assert others_know_nothing(c)
    assert TopicPartition("other", 0) in c.brokers[1].replicas
    assert c.controller().controller.to_delete == {}


def test_a_topic_is_held_up_by_one_dead_replica_and_deleted_when_it_is_back():
    c = Deleting()
    dead = c.others(c.controller().node)[0]
    c.kill(dead)
    c.run(12)
    c.delete()
    c.run(30)
    assert dead not in [broker for broker, _ in c.deleted]
    assert len(c.deleted) == 6, "the others have deleted theirs"
    assert MARK in c.nodes()
    assert NODE in c.nodes()
    c.start(dead)
    c.run(5)
    assert [p for broker, p in c.deleted if broker == dead] == [0, 1, 2]
    assert len(c.deleted) == 9, "none has deleted anything twice"
    assert c.traces() == []
    assert others_know_nothing(c)


def test_a_broker_that_dies_before_it_has_answered_is_asked_again():
    c = Deleting()
    dead = c.others(c.controller().node)[0]
    c.kill(dead)
    c.delete()
    c.run(1)
    assert MARK in c.nodes(), "its session lives: it was asked"
    c.run(12)
    assert MARK in c.nodes()
    c.start(dead)
    c.run(5)
    assert c.traces() == []


def test_a_new_controller_goes_on_where_the_former_one_was():
    c = Deleting()
    old = c.controller().node
    dead = c.others(old)[0]
    c.kill(dead)
    c.run(12)
    c.delete()
    c.run(1)
    c.kill(old)
    c.run(12)
    assert c.controller().node not in {old, dead}
    assert MARK in c.nodes()
    c.start(dead)
    c.run(5)
    assert MARK in c.nodes(), "the former controller had replicas, too"
    c.start(old)
    c.run(5)
    assert c.traces() == []
    assert others_know_nothing(c)


def test_partitions_that_wait_for_their_deletion_are_not_elected():
    c = Deleting()
    dead = c.others(c.controller().node)[0]
    c.kill(dead)
    c.run(12)
    c.delete()
    c.run(1)
    epochs = [c.of(number)[1] for number in range(3)]
    asked = c.ask(ElectLeadersRequest("preferred", (ORDERS,)))
    assert dict(asked.errors)[ORDERS] is ErrorCode.INVALID_TOPIC_EXCEPTION
    c.run(320)
    assert [c.of(number)[1] for number in range(3)] == epochs
    assert all(c.of(number)[0] == -1 for number in range(3))


def test_a_topic_is_made_again_when_its_nodes_are_deleted_and_not_before():
    c = Deleting()
    dead, other = c.others(c.controller().node)
    again = CreateTopicsRequest((NewTopic("orders", 1, 1, assignment=((other,),)),))
    c.kill(dead)
    c.run(12)
    c.delete()
    c.run(1)
    assert c.ask(again).errors == (("orders", ErrorCode.TOPIC_ALREADY_EXISTS),)
    c.start(dead)
    c.run(5)
    assert c.ask(again).errors == (("orders", ErrorCode.NONE),)
    c.run(2)
    assert c.of() == (other, 0, (other,))
    assert [c.brokers[n].metadata[ORDERS].state.leader for n in c.brokers] == [other] * 3
    assert [n for n in c.brokers if ORDERS in c.brokers[n].replicas] == [other]


@pytest.mark.parametrize(
    ("topic", "switches", "error"),
    [
        ("absent", {}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("orders", {"deletes_topics": False}, ErrorCode.REQUEST_TIMED_OUT),
    ],
)
def test_a_deletion_is_refused(topic, switches, error):
    c = Deleting(**switches)
    assert c.delete(topic) is error
    c.run(5)
    assert c.deleted == []
    assert NODE in c.nodes()


def swarm(seed):
    """Deletions and creations under deaths, cuts and stops; what is left of them."""
    chance = random.Random(seed)
    c = Deleting()
    finished = 0
    for _ in range(15):
        running = c.running()
        match chance.randrange(6):
            case 0 if len(running) > 1:
                c.kill(chance.choice(running))
            case 1 if len(running) < 3:
                c.start(chance.choice(c.others(*running)))
            case 2:
                c.isolate(chance.choice([*c.brokers, *c.ensemble.members]))
            case 3 | 4 if c.controller() is not None:
                exists = NODE in c.nodes()
                finished += not exists
                new = CreateTopicsRequest((NewTopic("orders", 3, 3, assignment=ROUND["orders"]),))
                c.send(DeleteTopicsRequest(("orders",)) if exists else new)
            case _:
                c.loop.heal()
        c.run(chance.random() * 15)
    c.loop.heal()
    for node in c.others(*c.running()):
        c.start(node)
    c.run(60)
    if NODE not in c.nodes():
        return c.traces() == [] and others_know_nothing(c), finished
    leaders = [c.of(number)[0] for number in range(3)]
    views = [c.views(number) == [(leader,) * 2] * 3 for number, leader in enumerate(leaders)]
    return all(views) and MARK not in c.nodes(), finished


def test_after_any_deaths_and_cuts_a_topic_exists_for_everybody_or_for_nobody():
    outcomes = [swarm(seed) for seed in range(15)]
    assert [good for good, _ in outcomes] == [True] * 15
    assert sum(finished for _, finished in outcomes) > 10


# -- planted defects ------------------------------------------------------------------------------


def test_a_controller_that_forgets_held_up_topics_never_deletes_them(monkeypatch):
    monkeypatch.setattr(TopicDeletion, "resume_on", lambda _self, _brokers: iter(()))
    with pytest.raises(AssertionError):
        test_a_topic_is_held_up_by_one_dead_replica_and_deleted_when_it_is_back()


def test_a_controller_that_elects_for_doomed_topics_is_found(monkeypatch):
    monkeypatch.setattr(ZkController, "kept", lambda self: list(self.entries.values()))
    with pytest.raises(AssertionError):
        test_partitions_that_wait_for_their_deletion_are_not_elected()


def test_a_controller_that_does_not_read_its_predecessors_marks_is_found_by_the_swarm(monkeypatch):
    monkeypatch.setattr(TopicDeletion, "load", lambda _self: iter(()))
    assert not all(good for good, _ in (swarm(seed) for seed in range(15)))
