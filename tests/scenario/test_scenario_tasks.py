"""What a task may be told, and what it is told in return: Streams' own rules for its clients.

Source: ``StreamsConfig``.
"""

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import text_of

TOPIC = {"partitions": 1, "replication.factor": 3}
COPY = {"name": "copy", "topics": ["orders"], "output": "bills"}
STRATEGY = "consumer.partition.assignment.strategy"
ONCE = {"processing.guarantee": "exactly_once_v2"}


def loaded(config=(), topics=(), more=(), **keys):
    known = {"orders": TOPIC, "bills": TOPIC, **dict(topics)}
    task = {**COPY, "config": dict(config), **keys}
    return load_text(text_of(topics=known, processors=[task], **dict(more)))


def test_the_defaults_are_those_that_streams_gives_its_clients():
    (task,) = loaded().processors
    assert task.config.number("commit.interval.ms") == 30_000
    assert task.producer.number("linger.ms") == 100
    assert task.consumer.text("auto.offset.reset") == "earliest"
    assert not task.transactional_ids


def test_exactly_once_brings_defaults_of_its_own():
    (task,) = loaded(ONCE, count=2).processors
    assert task.config.number("commit.interval.ms") == 100
    assert task.producer.number("transaction.timeout.ms") == 10_000
    assert task.reads_committed
    assert task.transactional_ids == ("copy-1", "copy-2")


def test_what_is_written_out_is_the_same_scenario():
    scenario = loaded({**ONCE, "producer.linger.ms": 7}, outputs=3, processing="2ms")
    again = load_text(scenario.as_yaml())
    assert again.processors == scenario.processors
    assert again.digest == scenario.digest


def test_a_client_that_commits_by_itself_has_its_interval_and_the_task_has_none():
    scenario = loaded({"consumer.auto.commit.interval.ms": 700}, commits="auto")
    consumer = scenario.processors[0].consumer
    assert consumer.flag("enable.auto.commit")
    assert consumer.number("auto.commit.interval.ms") == 700
    again = load_text(scenario.as_yaml())
    assert again.digest == scenario.digest
    assert not loaded().processors[0].consumer.flag("enable.auto.commit")


@pytest.mark.parametrize(
    ("config", "keys", "says"),
    [
        ({"commit.interval.ms": 100}, {"commits": "auto"}, "consumer.auto.commit.interval.ms"),
        ({"consumer.enable.auto.commit": False}, {"commits": "auto"}, "enable.auto.commit"),
        (ONCE, {"commits": "auto"}, "auto with processing.guarantee"),
        ({"consumer.enable.auto.commit": True}, {}, "consumer.enable.auto.commit"),
        ({"producer.transactional.id": "mine"}, {}, "producer.transactional.id"),
        ({"consumer.group.protocol": "consumer"}, {}, "consumer.group.protocol"),
        (
            {"consumer.partition.assignment.strategy": "cooperative-sticky"},
            {},
            "give up everything",
        ),
        ({**ONCE, "consumer.isolation.level": "read_uncommitted"}, {}, "isolation.level"),
        ({**ONCE, "producer.acks": "1"}, {}, "producer.acks"),
        ({"producer.lingerms": 5}, {}, "linger.ms"),
        ({"commit.interval": 5}, {}, "commit.interval.ms"),
        (ONCE, {"commits": "before"}, "commits"),
        ({}, {"record.size": "47B"}, "at least 48B"),
        ({}, {"output": "orders"}, "another topic"),
        ({"producer.security.protocol": "SSL"}, {}, "the same for both clients"),
    ],
)
def test_what_streams_would_not_run_is_refused_with_the_key_s_name(config, keys, says):
    with pytest.raises(ScenarioError, match=says):
        loaded(config, **keys)


def test_a_compacted_output_is_refused_for_outputs_have_no_keys():
    compacted = {"bills": {**TOPIC, "config": {"cleanup.policy": "compact"}}}
    with pytest.raises(ScenarioError, match="compacted"):
        loaded(topics=compacted)


def test_quotas_beside_tasks_are_refused():
    quotas = [{"client.id": "shop", "producer_byte_rate": "1MB/s"}]
    with pytest.raises(ScenarioError, match="quotas of clients beside processors"):
        loaded(more={"quotas": quotas})
