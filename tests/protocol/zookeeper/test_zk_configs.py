"""ZooKeeper mode: settings are written, announced, and read by every broker."""

import random

import pytest

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER
from sim.protocol.messages.admin import IncrementalAlterConfigsRequest
from sim.protocol.messages.cluster import CreateTopicsRequest, NewTopic
from sim.protocol.zk_mode.administration.configs import UNCLEAN, ConfigManager
from sim.protocol.zk_mode.broker_types import ConfigsRead
from tests.protocol.zookeeper.zk_kit import Cluster

LONELY = {"orders": ((1, 2, 3),)}


class Configured(Cluster):
    """Brokers whose processes note the settings that they have read."""

    def __init__(self, assignments=None, **switches):
        self.read = {}
        super().__init__(assignments, is_administered=True, **switches)

    def start(self, node):
        self.read[node] = {}
        self.loop.processes[node].performers[ConfigsRead] = self._read
        super().start(node)

    def _read(self, process, _machine, effect, _at):
        self.read[process.node][effect.topic, effect.broker] = dict(effect.configs)

    def alter(self, topic="orders", broker=NO_LEADER, **changes):
        named = tuple((name.replace("_", "."), value) for name, value in changes.items())
        return self.ask(IncrementalAlterConfigsRequest(topic, named, broker)).error

    def known(self, topic="orders", broker=NO_LEADER):
        return [self.read[n].get((topic, broker)) for n in self.running()]


def test_every_broker_reads_what_was_changed():
    c = Configured()
    assert c.alter(retention_ms="7") is ErrorCode.NONE
    assert c.known() == [{"retention.ms": "7"}] * 3
    c.alter(segment_ms="8")
    assert c.known() == [{"retention.ms": "7", "segment.ms": "8"}] * 3
    c.alter(retention_ms=None)
    assert c.known() == [{"segment.ms": "8"}] * 3


def test_a_topic_that_does_not_exist_has_no_settings():
    assert Configured().alter("absent", x="1") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_settings_of_one_broker_and_of_all_have_nodes_of_their_own():
    c = Configured()
    c.alter("", 2, num_io_threads="4")
    c.alter("", num_io_threads="6")
    assert c.known("", 2) == [{"num.io.threads": "4"}] * 3
    assert c.known("") == [{"num.io.threads": "6"}] * 3


def test_a_broker_that_was_away_reads_everything_when_it_starts():
    c = Configured()
    away = c.others(c.controller().node)[0]
    c.kill(away)
    c.alter(retention_ms="7")
    c.alter("", retention_ms="9")
    c.start(away)
    c.run(8)
    assert c.read[away] == {("orders", NO_LEADER): {"retention.ms": "7"},
                            ("", NO_LEADER): {"retention.ms": "9"}}  # fmt: skip


def test_a_broker_whose_session_has_ended_reads_what_it_missed():
    c = Configured()
    cut = c.others(c.controller().node)[0]
    c.isolate(cut)
    c.run(14)
    c.alter(retention_ms="7")
    assert c.read[cut] == {}
    c.loop.heal()
    c.run(8)
    assert c.known() == [{"retention.ms": "7"}] * 3


@pytest.mark.parametrize("topic", ["orders", ""])
def test_an_unclean_election_follows_the_setting_at_once(topic):
    c = Configured(LONELY)
    c.wish(1, (1,))
    c.run(10)
    c.kill(1)
    c.run(12)
    assert c.of()[0] == -1
    c.alter(topic, **{UNCLEAN.replace(".", "_"): "true"})
    c.run(1)
    assert c.of()[0] == 2


def test_a_topics_own_value_goes_before_its_brokers():
    c = Configured(LONELY)
    c.alter("orders", **{UNCLEAN.replace(".", "_"): "false"})
    c.alter("", **{UNCLEAN.replace(".", "_"): "true"})
    c.wish(1, (1,))
    c.run(10)
    c.kill(1)
    c.run(14)
    assert c.of()[0] == -1


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_topic_is_elected_by_the_setting_it_was_made_with(value):
    c = Cluster({"other": ((1, 2, 3),)}, unclean=value == "false")
    topic = NewTopic("orders", 1, 3, ((UNCLEAN, value),), ((1, 2, 3),))
    assert c.ask(CreateTopicsRequest((topic,))).errors[0][1] is ErrorCode.NONE
    c.wish(1, (1,))
    c.run(10)
    c.kill(1)
    c.run(14)
    assert c.of()[0] == (2 if value == "true" else -1)


def swarm(seed):
    """Changes under deaths, cuts and stops; whether every broker has the last value."""
    chance = random.Random(seed)
    c = Configured()
    changes = 0
    for step in range(15):
        running = c.running()
        match chance.randrange(6):
            case 0 if len(running) > 1:
                c.kill(chance.choice(running))
            case 1 if len(running) < 3:
                c.start(chance.choice(c.others(*running)))
            case 2:
                c.isolate(chance.choice([*c.brokers, *c.ensemble.members]))
            case 3 | 4 if c.controller() is not None:
                c.send(IncrementalAlterConfigsRequest("orders", (("x", str(step)),)))
                changes += 1
            case _:
                c.loop.heal()
        c.run(chance.random() * 15)
    c.loop.heal()
    for node in c.others(*c.running()):
        c.start(node)
    c.run(60)
    tree = max((s.tree for s in c.ensemble.stores.values()), key=lambda t: t.zxid)
    node = tree.nodes.get("/config/topics/orders")
    return c.known() == [None if node is None else dict(node.data)] * 3, changes


def test_after_any_deaths_and_cuts_every_broker_has_the_last_value():
    outcomes = [swarm(seed) for seed in range(15)]
    assert [good for good, _ in outcomes] == [True] * 15
    assert sum(changes for _, changes in outcomes) > 30


def test_a_broker_that_does_not_watch_again_is_found_by_the_same_swarm(monkeypatch):
    real = ConfigManager.announced
    seen = {}

    def announced(self):
        seen[id(self)] = seen.get(id(self), 0) + 1
        return real(self) if seen[id(self)] < 2 else None

    monkeypatch.setattr(ConfigManager, "announced", announced)
    assert not all(good for good, _ in (swarm(seed) for seed in range(8)))
