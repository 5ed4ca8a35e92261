"""Expectations of producers, groups, throughput, changes and keys, each with a planted defect."""

from types import SimpleNamespace

import numpy as np
import pytest

from sim.checking.interval_set import IntervalSet
from sim.checking.outcomes.compaction import Keys
from sim.checking.outcomes.policy import Held
from sim.checking.outcomes.scoped.changes import Changes
from sim.checking.outcomes.scoped.key_states import key_states
from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from tests.scenarios.run_kit import Ran, S, text_of

SHOP = {"name": "shop", "topic": "orders", "rate": "300/s", "count": 2, "record.size": "100B"}
SLOW = {"name": "slow", "topic": "orders", "rate": "100/s", "config": {"linger.ms": 400}}
KEYED = {"name": "keyed", "topic": "keys", "rate": "200/s", "keys": "uniform", "key.count": 40,
         "tombstones": "20%"}  # fmt: skip
TOPICS = {
    "orders": {"partitions": 3, "replication.factor": 3, "config": {"min.insync.replicas": 2}},
    "keys": {"partitions": 2, "replication.factor": 3, "config": {"cleanup.policy": "compact"}},
}
EXPECT = {
    "produce.p50": [{"is": "< 100ms", "producer": "shop"}, {"is": "< 100ms", "producer": "slow"},
                    {"is": "< 100ms", "producer": "shop-2", "during": "1s..2s"}],
    "acked": [{"is": 1800, "producer": "shop-1"}, {"is": 3600, "producer": "shop"},
              {"is": 600, "producer": "slow"}, {"is": 0, "producer": "slow"}],
    "lost_acked": {"is": 0, "producer": "shop"},
    "throughput.records": [{"is": "550..610", "producer": "shop"},
                           {"is": "550..610", "producer": "shop", "during": "1s..3s"},
                           {"is": "at least 10000", "topic": "orders"}],
    "throughput.bytes": [{"is": "> 60000", "producer": "shop"},
                         {"is": "< 60000", "producer": "shop"}],
    "controller.changes": [1, 0, {"is": 0, "during": "0s..1s"}],
    "quorum.epochs": ["at least 1", 0, {"is": 0, "during": "0s..1s"}],
    "leader.epochs": ["at least 1", 0, {"is": 0, "topic": "orders", "during": "0s..2s"}],
    "isr.min": [2, 3, {"is": 3, "during": "0s..2s"}],
    "keys.live": ["at least 20", {"is": "> 40", "topic": "keys"}],
    "keys.stale": [{"is": 0, "topic": "keys"}, {"is": "> 0", "partition": "keys-1"}],
    "undelivered": [{"is": 0, "group": "billing"}, {"is": "> 0", "group": "billing"}],
}  # fmt: skip


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    faults = [
        {"at": "2s", "do": "crash", "target": "controller leader", "for": "2s"},
        {"at": "3s", "do": "crash", "target": "leader of orders-0", "for": "1s"},
    ]
    readers = [{"group": "billing", "topics": "orders",
                "config": {"auto.offset.reset": "earliest"}}]  # fmt: skip
    # A follower that asks a leader before that one knows it waits for this long.
    config = {"broker.session.timeout.ms": 1000, "broker.heartbeat.interval.ms": 300,
              "replica.fetch.backoff.ms": 100}  # fmt: skip
    text = text_of(topics=TOPICS, producers=[SHOP, SLOW, KEYED], consumers=readers, config=config,
                   faults=faults, lasts="6s", expect=EXPECT)  # fmt: skip
    out = tmp_path_factory.mktemp("more") / "run"
    return Ran(run(load_text(text), out=out).directory)


def lines(ran, name):
    return [each for each in ran.verdict["expectations"] if each["name"] == name]


def test_each_that_is_true_holds_and_each_planted_one_does_not(ran):
    found = {name: [line["held"] for line in lines(ran, name)] for name in EXPECT}
    assert found == {
        "produce.p50": [True, False, True],
        "acked": [True, True, True, False],
        "lost_acked": [True],
        "throughput.records": [True, True, False],
        "throughput.bytes": [True, False],
        "controller.changes": [True, False, True],
        "quorum.epochs": [True, False, True],
        "leader.epochs": [True, False, True],
        "isr.min": [True, False, True],
        "keys.live": [True, False],
        "keys.stale": [True, False],
        "undelivered": [True, False],
    }


def test_a_producers_numbers_are_those_of_its_rows(ran):
    (mine, *_) = lines(ran, "acked")
    rows = ran.rows("client_batches", producer="shop-1", outcome="ok")
    assert mine["found"] == sum(row["record_count"] for row in rows)
    assert mine["where"] == "producer shop-1"


def test_throughput_is_what_was_acknowledged_in_the_window(ran):
    window = lines(ran, "throughput.records")[1]
    rows = [row for row in ran.rows("client_batches", outcome="ok")
            if row["producer"].startswith("shop") and S <= row["t_us"] < 3 * S]  # fmt: skip
    assert window["found"] == sum(row["record_count"] for row in rows) // 2


def test_one_that_did_not_hold_says_what_came_first_and_which_fault_was_near(ran):
    for name, words in (
        ("controller.changes", "became the controller at"),
        ("quorum.epochs", "of the metadata quorum at"),
        ("leader.epochs", "leader epoch"),
        ("isr.min", "in sync at"),
    ):
        story = lines(ran, name)[1]["story"]
        assert words in story
        assert "crash of" in story
    assert "slowest: record" in lines(ran, "produce.p50")[1]["story"]
    assert "of slow in" in lines(ran, "produce.p50")[1]["story"]


def change(at, epoch, members, partition=0):
    return (at, 7, "orders", partition, 1, epoch, epoch, members, "", "1,2,3", False)


def test_a_window_begins_with_the_state_that_it_finds():
    changes = Changes(10, 20)
    changes.change(change(1, 0, "1,2,3"))
    changes.change(change(5, 3, "1,2"))
    assert changes.report()["isr_min"] == 2
    changes.change(change(12, 5, "1,2,3"))
    changes.change(change(25, 9, "1"))
    report = changes.report()
    assert (report["leader_epochs"], report["isr_min"]) == (2, 2)


def test_the_same_controller_again_is_no_change():
    changes = Changes(0, 100)
    for at, node, epoch in ((-5, 3000, 1), (10, 3000, 2), (20, 3001, 3)):
        changes.quorum((at, node, "leader", epoch, node, node, 0, 0))
    report = changes.report()
    assert (report["quorum_epochs"], report["controller_changes"]) == (2, 1)


def test_in_zookeeper_mode_brokers_become_the_controller_and_there_is_no_quorum():
    changes = Changes(0, 100)
    for at, broker, state in ((-5, 1, "elected"), (10, 1, "resigned"), (11, 2, "elected")):
        changes.controller((at, broker, state, 1, 0))
    report = changes.report()
    assert report["controller_changes"] == 1
    assert "quorum_epochs" not in report


class Log:
    def batches(self):
        return iter(self.held)

    def __init__(self, held):
        self.held = held


def test_a_key_whose_last_acknowledged_record_is_gone_is_stale_unless_a_later_one_is_there():
    known = Keys()
    # Records 0 to 3 of one producer: keys 5, 6, 5, 6; the last two are lost; 5 has a later one.
    known.add((0, 1, "keys", 0, 0, 5, np.array([5, 6, 5, 6, 5], np.int32), np.zeros(0, np.int32)))
    history = SimpleNamespace(
        topic="keys", number=0, is_deleted=False, transactions=None, final_leader=1,
        compaction=SimpleNamespace(keys=known), logs={1: Log([Held(0, 2, 1, 0), Held(4, 1, 1, 4)])},
        offset_of=lambda producer, record: record,
    )  # fmt: skip
    lost = {("keys", 0, 1): IntervalSet([(2, 4)])}
    assert key_states([history], lost) == {"live": 2, "stale": 1}
    assert key_states([history], {}) == {"live": 2, "stale": 0}


@pytest.mark.parametrize(
    ("expect", "words"),
    [
        ({"acked": {"is": 1, "producer": "shopp"}}, "did you mean shop"),
        ({"divergent": {"is": 0, "producer": "shop"}}, "divergent is not about a producer"),
        ({"quorum.epochs": {"is": 0, "topic": "orders"}}, "is about all topics"),
        ({"keys.live": 5}, "without compaction"),
        ({"keys.live": {"is": 5, "topic": "orders"}}, "keys.live of orders without compaction"),
        ({"isr.min": {"is": 2, "group": "billing"}}, "isr.min is not about a group"),
    ],
)
def test_an_expectation_that_cannot_be_is_refused(expect, words):
    with pytest.raises(ScenarioError) as caught:
        load_text(text_of(producers=[SHOP], expect=expect,
                          consumers=[{"group": "billing", "topics": "orders"}]))  # fmt: skip
    assert words in str(caught.value)


def test_they_are_written_out_as_they_were_given():
    expect = {"acked": {"is": 5, "producer": "shop"}, "throughput.records": "> 5"}
    scenario = load_text(text_of(producers=[SHOP], expect=expect))
    assert load_text(scenario.as_yaml()).expect == scenario.expect
