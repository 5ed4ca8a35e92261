"""ZooKeeper mode: what becomes of the controller's work when its session ends under way."""

import pytest
from zk_kit import Cluster

from sim.ids import TopicPartition
from sim.protocol.zk_state import state_path


def cut_in_the_middle(**switches):
    """The controller hears of a death, is cut off before its first write, and heals 14 s later.

    The dead broker is back before the controller's successor looks.
    """
    c = Cluster(**switches)
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
    """The partition's leader wants everybody in its ISR; returns the ISR."""
    c.wish(leader, (1, 2, 3), TopicPartition("orders", number))
    c.run(10)
    return sorted(c.of(number)[2])


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
            assert bounced not in wish_for_all(c, number, leader), time
            assert c.brokers[leader].skipped_isr_updates == before + 1


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
        assert wish_for_all(c, number, leader) == [1, 2, 3]


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
