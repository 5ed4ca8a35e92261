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
MODERN = {"consumer.group.protocol": "consumer"}
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


def off_default(scenario):
    return [each.path for each in scenario.off_default if each.path.startswith("processors.")]


@pytest.mark.parametrize("kafka", ["1.1", "2.3", "2.8", "4.3"])
@pytest.mark.parametrize("once", [False, True])
def test_what_streams_itself_gives_its_clients_is_not_off_default(kafka, once):
    names = {"2.8": "exactly_once_beta", "4.3": "exactly_once_v2"}
    config = {"processing.guarantee": names.get(kafka, "exactly_once")} if once else {}
    cluster = {"cluster": {"kafka": kafka}}
    expected = ["processors.copy.config.processing.guarantee"] if once else []
    assert off_default(loaded(config, more=cluster)) == expected


def test_what_the_file_gives_them_is_off_default_and_kafkas_own_values_are_too():
    """An application that takes Kafka's linger.ms has another than Streams gives."""
    found = loaded({"producer.linger.ms": 5, "consumer.max.poll.records": 7})
    assert off_default(found) == [
        "processors.copy.config.consumer.max.poll.records",
        "processors.copy.config.producer.linger.ms",
    ]
    assert [each.default for each in found.off_default if "linger" in each.path] == ["100"]
    assert off_default(loaded(commits="auto")) == []


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
        ({**MODERN, "consumer.session.timeout.ms": 5_000}, {}, "group.consumer.session.timeout.ms"),
        ({**MODERN, STRATEGY: "range"}, {}, "group.consumer.assignors"),
        (MODERN, {"kafka": "3.9"}, "4.0 or newer"),
        ({"consumer.group.remote.assignor": "range"}, {}, "set group.protocol: consumer"),
        ({**ONCE, "consumer.isolation.level": "read_uncommitted"}, {}, "isolation.level"),
        ({**ONCE, "producer.acks": "1"}, {}, "producer.acks"),
        ({"producer.lingerms": 5}, {}, "linger.ms"),
        ({"commit.interval": 5}, {}, "commit.interval.ms"),
        ({"num.standby.replicas": 1}, {}, "tasks have no state"),
        ({"max.warmup.replicas": 1}, {}, "max.warmup.replicas"),
        ({"upgrade.from": "2.3"}, {}, "strategy: range is eager"),
        (ONCE, {"commits": "before"}, "commits"),
        ({}, {"record.size": "47B"}, "at least 48B"),
        ({}, {"output": "orders"}, "another topic"),
        ({"producer.security.protocol": "SSL"}, {}, "the same for both clients"),
    ],
)
def test_what_streams_would_not_run_is_refused_with_the_key_s_name(config, keys, says):
    with pytest.raises(ScenarioError, match=says):
        loaded(config, **keys)


@pytest.mark.parametrize(
    ("cluster", "task", "assignors"),
    [
        ("2.4", None, ("cooperative-sticky",)),
        ("4.3", None, ("cooperative-sticky",)),
        ("2.8", "2.3", ("range",)),
        ("2.3", None, ("range",)),
    ],
)
@pytest.mark.parametrize("rebalance", [None, "eager"])
def test_tasks_of_streams_cooperate_by_default_from_their_release_2_4_on(
    cluster, task, assignors, rebalance
):
    """KIP-429; ``AssignorConfiguration.rebalanceProtocol`` without ``upgrade.from``."""
    more = {"cluster": {"kafka": cluster}}
    more |= {"behaviours": {"rebalance": rebalance}} if rebalance else {}
    keys = {"kafka": task} if task else {}
    (found,) = loaded(more=more, **keys).processors
    assert found.consumer.words("partition.assignment.strategy") == assignors


@pytest.mark.parametrize("commits", ["before", "auto"])
def test_tasks_that_are_no_applications_of_streams_have_the_consumers_own_assignors(commits):
    (task,) = loaded(commits=commits).processors
    assert task.consumer.words("partition.assignment.strategy") == ("range", "cooperative-sticky")


def test_tasks_cooperate_where_their_setting_or_the_behaviour_says_so():
    (task,) = loaded({STRATEGY: "cooperative-sticky"}, commits="before").processors
    assert task.consumer.words("partition.assignment.strategy") == ("cooperative-sticky",)
    eager = loaded({STRATEGY: "range"}).processors[0].consumer
    assert eager.words("partition.assignment.strategy") == ("range",)
    behaviour = {"behaviours": {"rebalance": "cooperative"}}
    assert loaded(more=behaviour, commits="before").processors[0].consumer == task.consumer
    own = loaded({STRATEGY: "roundrobin"}, more=behaviour).processors[0].consumer
    assert own.words("partition.assignment.strategy") == ("roundrobin",)
    assert loaded(more={"behaviours": {"rebalance": "static"}}, count=2).processors[
        0
    ].instance_ids == ("copy-1", "copy-2")


def test_tasks_may_be_members_of_a_consumer_protocol_group_whose_settings_are_the_group_s():
    groups = {"groups": {"copy": {"config": {"consumer.heartbeat.interval.ms": 5_000}}}}
    scenario = loaded({**ONCE, **MODERN}, more={**groups, "cluster": {"kafka": "4.1"}})
    assert scenario.processors[0].membership == "consumer"
    again = load_text(scenario.as_yaml())
    assert again.processors == scenario.processors
    assert again.digest == scenario.digest


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"behaviours": {"group.coordinator": "classic"}}, "copy has group.protocol: consumer"),
        ({"behaviours": {"transaction.offsets": "unfenced"}}, "kip447"),
        ({"cluster": {"kafka": "3.9"}}, "cluster.kafka 3.9"),
    ],
)
def test_a_consumer_protocol_group_of_tasks_needs_a_coordinator_and_members_that_know_it(
    more, says
):
    with pytest.raises(ScenarioError, match=says):
        loaded({**ONCE, **MODERN}, more=more)


def test_a_consumer_joins_tasks_of_the_consumer_protocol_and_no_others_by_it():
    audit = {"group": "copy", "name": "audit", "topics": ["orders"]}
    more = {"consumers": [{**audit, "config": {"group.protocol": "consumer"}}]}
    assert loaded(MODERN, more=more).consumers[0].membership == "consumer"
    with pytest.raises(ScenarioError, match="a group of tasks"):
        loaded(more=more)


def test_a_compacted_output_is_refused_for_outputs_have_no_keys():
    compacted = {"bills": {**TOPIC, "config": {"cleanup.policy": "compact"}}}
    with pytest.raises(ScenarioError, match="compacted"):
        loaded(topics=compacted)
