"""What a connector may be told, and what it is told in return: Connect's own rules.

Source: Kafka 4.1 ``Worker``, ``SourceConnectorConfig``; KIP-618.
"""

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import text_of

TOPIC = {"partitions": 2, "replication.factor": 3}
COMPACT = {**TOPIC, "config": {"cleanup.policy": "compact"}}
SOURCE = {"name": "crm", "kind": "source", "topics": ["orders"], "rate": "100/s"}
UNRATED = {"name": "crm", "kind": "source", "topics": ["orders"]}
STRATEGY = "consumer.partition.assignment.strategy"
SINK = {"name": "lake", "kind": "sink", "topics": ["orders"]}
ONCE = {"exactly.once.source.support": "enabled"}


def loaded(base, config=(), more=(), **keys):
    known = {"orders": TOPIC, "bills": TOPIC, "table": COMPACT}
    connector = {**base, "config": dict(config), **keys}
    return load_text(text_of(topics=known, connectors=[connector], **dict(more)))


def test_the_defaults_are_those_that_connect_gives_a_source():
    (source,) = loaded(SOURCE).connectors
    assert source.config.number("offset.flush.interval.ms") == 60_000
    assert source.client.text("acks") == "all"
    assert not source.client.flag("enable.idempotence")
    assert source.client.number("max.in.flight.requests.per.connection") == 1
    assert source.group == "connect-crm"
    assert source.transactional_ids == ()


def test_exactly_once_brings_idempotence_and_a_transactional_id_for_each_task():
    (source,) = loaded(SOURCE, ONCE, tasks=2).connectors
    assert source.client.flag("enable.idempotence")
    assert source.transactional_ids == ("connect-cluster-crm-0", "connect-cluster-crm-1")


def test_the_defaults_are_those_that_connect_gives_a_sink():
    (sink,) = loaded(SINK, tasks=2).connectors
    assert sink.client.text("auto.offset.reset") == "earliest"
    assert not sink.client.flag("enable.auto.commit")
    assert sink.client_names == ("lake-1", "lake-2")


@pytest.mark.parametrize(
    ("base", "config", "keys"),
    [
        (SOURCE, {}, {"tasks": 2, "poll": "2s", "stop": "3s"}),
        (SOURCE, {**ONCE, "transaction.boundary": "interval", "producer.linger.ms": 7}, {}),
        (SINK, {"consumer.max.poll.records": 10}, {"buffer": 7, "delivery": "exactly-once"}),
    ],
)
def test_what_is_written_out_is_the_same_scenario(base, config, keys):
    scenario = loaded(base, config, **keys)
    again = load_text(scenario.as_yaml())
    assert again.connectors == scenario.connectors
    assert again.digest == scenario.digest


def test_a_scenario_without_connectors_says_nothing_of_them():
    assert "connectors" not in load_text(text_of()).as_yaml()


def test_settings_off_default_are_on_the_card():
    scenario = loaded(SOURCE, {"offset.flush.interval.ms": 100})
    paths = [option.path for option in scenario.off_default]
    assert "connectors.crm.config.offset.flush.interval.ms" in paths


REQUIRED = {"exactly.once.support": "required"}
QUOTA = {"quotas": [{"client.id": "shop", "producer_byte_rate": "1MB/s"}]}


@pytest.mark.parametrize(
    ("base", "config", "keys", "says"),
    [
        (SOURCE, REQUIRED, {}, "exactly.once.source.support: enabled"),
        (SOURCE, {"transaction.boundary": "interval"}, {}, "exactly.once.source.support: enabled"),
        (SOURCE, {"offset.storage.topic": "mine"}, {}, "offsets of a group"),
        (SOURCE, {"errors.tolerance": "all"}, {}, "no record is bad"),
        (SOURCE, {"offset.flush.interval": 1}, {}, "offset.flush.interval.ms"),
        (SOURCE, {"consumer.fetch.min.bytes": 1}, {}, "a consumer's setting of a source"),
        (SOURCE, {**ONCE, "producer.acks": 1}, {}, "the connector's own"),
        (SOURCE, {"producer.transactional.id": "mine"}, {}, "the connector's own"),
        (SOURCE, {}, {"tasks": 3}, "1 to 2"),
        (SOURCE, {}, {"topics": ["orders", "bills"]}, "2 topics for a source"),
        (SOURCE, {}, {"topics": ["order"]}, "did you mean orders?"),
        (SOURCE, {}, {"topics": ["table"]}, "compacted"),
        (SOURCE, {}, {"rate": "0/s"}, "is zero"),
        (UNRATED, {}, {}, "no record ever"),
        (SOURCE, {}, {"record.size": "30B"}, "at least 48B"),
        (SOURCE, {}, {"buffer": 3}, "leave it out"),
        (SOURCE, {}, {"name": "shop"}, "taken already"),
        (SOURCE, {}, {"rack": "a"}, "the cluster has none"),
        (SOURCE, {}, {"start": "1h"}, "less than run.for"),
        (SINK, ONCE, {}, "a source's"),
        (SINK, {"producer.acks": "all"}, {}, "a producer's setting of a sink"),
        (SINK, {"consumer.group.protocol": "consumer"}, {}, "the connector's own"),
        (SINK, {"consumer.enable.auto.commit": True}, {}, "the connector's own"),
        (SINK, {STRATEGY: "cooperative-sticky"}, {}, "give up everything"),
        (SINK, {}, {"rate": "5/s"}, "leave it out"),
        (SINK, {}, {"delivery": "at-most-once"}, "at-least-once"),
    ],
)
def test_what_a_connector_would_not_run_with_is_refused(base, config, keys, says):
    with pytest.raises(ScenarioError, match=says):
        loaded(base, config, **keys)


def test_connectors_beside_quotas_are_refused():
    with pytest.raises(ScenarioError, match="one of the two"):
        loaded(SOURCE, more=QUOTA)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"group": "none", "commits": "sync"}, "name a group"),
        ({"commits": "async", "config": {"enable.auto.commit": True}}, "leave enable.auto.commit"),
        ({"commits": "manual"}, "async"),
    ],
)
def test_commits_that_contradict_the_consumer_are_refused(keys, says):
    reader = {"group": "billing", "topics": ["orders"], **keys}
    with pytest.raises(ScenarioError, match=says):
        load_text(text_of(consumers=[reader]))


def test_an_application_that_commits_has_a_client_that_does_not():
    reader = {"group": "billing", "topics": ["orders"], "commits": "async"}
    scenario = load_text(text_of(consumers=[reader]))
    assert not scenario.consumers[0].config.flag("enable.auto.commit")
    assert load_text(scenario.as_yaml()).consumers == scenario.consumers
