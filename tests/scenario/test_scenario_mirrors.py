"""Other clusters and mirrors in a scenario: what they may be told, and what they are made into.

Source: ``connect.mirror.{MirrorConnectorConfig,DefaultReplicationPolicy}``.
"""

import pytest
import yaml

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import text_of

MIRROR = {"name": "mm2", "topic": "orders", "to": "dr"}
BILLING = {"group": "billing", "topics": ["orders"]}


def text(config=(), clusters=None, more=(), **keys):
    known = {"dr": {"cluster": {"brokers": 3}}} if clusters is None else clusters
    mirror = {**MIRROR, "config": dict(config), **keys}
    parts = {"consumers": [BILLING], "clusters": known, "mirrors": [mirror], **dict(more)}
    return text_of(**parts)


def loaded(*given, **keys):
    return load_text(text(*given, **keys))


def topics_of(scenario):
    return {topic.name: topic for topic in scenario.clusters[0].scenario.topics}


def test_defaults_are_those_of_mirror_maker_and_of_connect():
    (mirror,) = loaded().mirrors
    assert mirror.config.number("offset.lag.max") == 100
    assert mirror.config.number("emit.checkpoints.interval.seconds") == 60
    assert mirror.config.flag("sync.group.offsets.enabled") is False
    assert mirror.producer.number("max.in.flight.requests.per.connection") == 1
    assert mirror.producer.flag("enable.idempotence") is False
    assert mirror.consumer.text("auto.offset.reset") == "earliest"


def test_a_mirrored_topic_has_the_alias_before_its_name_and_its_own_replicas():
    made = topics_of(loaded({"source.cluster.alias": "us", "replication.policy.separator": "_"}))
    assert list(made) == ["us_orders"]
    assert made["us_orders"].partitions == 3
    assert made["us_orders"].replication_factor == 2


def test_with_the_identity_policy_the_name_stays():
    name = "org.apache.kafka.connect.mirror.IdentityReplicationPolicy"
    assert list(topics_of(loaded({"replication.policy.class": name}))) == ["orders"]


def test_settings_of_the_topic_are_copied_but_for_those_that_kafka_leaves_out():
    config = {"min.insync.replicas": 2, "retention.ms": 5_000}
    topic = {"partitions": 1, "replication.factor": 3, "config": config}
    made = topics_of(loaded(more={"topics": {"orders": topic}}))["source.orders"]
    assert made.config.number("retention.ms") == 5_000
    assert made.config.number("min.insync.replicas") == 1


def test_what_is_written_out_is_the_same_scenario():
    clusters = {
        "dr": {
            "cluster": {"brokers": 3},
            "distance": {"p50": "70ms", "p99": "80ms"},
            "topics": {"own": {"partitions": 2, "replication.factor": 3}},
            "consumers": [{"group": "billing", "topics": ["source.orders"], "start": "2s"}],
            "faults": [{"at": "3s", "do": "crash", "target": "broker-1"}],
            "expect": {"lost_acked": 0},
        }
    }
    made = loaded({"offset.lag.max": 7}, clusters, groups=["billing"])
    again = load_text(made.as_yaml())
    assert again.as_yaml() == made.as_yaml()
    assert again.digest == made.digest
    assert again.mirrors == made.mirrors
    assert again.clusters[0].scenario.topics == made.clusters[0].scenario.topics


def test_a_scenario_of_one_cluster_says_nothing_of_mirrors():
    written = yaml.safe_load(load_text(text_of()).as_yaml())
    assert not {"clusters", "mirrors"} & set(written)
    assert not [name for name in written["behaviours"] if name.startswith("mirror")]


def test_what_is_off_default_in_another_cluster_is_on_the_card():
    found = {option.path: option.value for option in loaded({"offset.lag.max": 7}).off_default}
    assert found["mirrors.mm2.config.offset.lag.max"] == "7"
    clusters = {"dr": {"cluster": {"brokers": 3, "config": {"num.io.threads": 4}}}}
    found = {option.path for option in loaded((), clusters).off_default}
    assert "clusters.dr.cluster.config.num.io.threads" in found


@pytest.mark.parametrize(
    ("config", "keys", "says"),
    [
        ({"offset.lag.mx": 5}, {}, "offset.lag.max"),
        ({"tasks.max": 4}, {}, "known and not modelled"),
        ({"exactly.once.source.support": "enabled"}, {}, "known and not modelled"),
        ({"refresh.topics.interval.seconds": 5}, {}, "known and not modelled"),
        ({"consumer.group.protocol": "consumer"}, {}, "the mirror's own"),
        ({"producer.transactional.id": "mm2"}, {}, "the mirror's own"),
        ({"producer.acks": "1"}, {}, "the mirror's own"),
        ({}, {"topic": "ordres"}, "orders"),
        ({}, {"to": "eu"}, "no cluster 'eu'"),
        ({}, {"groups": ["biling"]}, "billing"),
        ({}, {"start": "1h"}, "less than run.for"),
        ({}, {"more": {"producer": {"record.size": "47B"}}}, "at least 48B"),
        ({}, {"more": {"producers": []}}, "nobody writes"),
        ({}, {"more": {"topic": {"config": {"cleanup.policy": "compact"}}}}, "compacted"),
        (
            {},
            {"more": {"quotas": [{"client.id": "shop", "producer_byte_rate": "1MB/s"}]}},
            "mirrors beside quotas",
        ),
        (
            {},
            {"more": {"faults": [{"at": "2s", "do": "create-partitions", "topic": "orders",
                                  "count": 5}]}},
            "beside create-partitions",
        ),
    ],
)  # fmt: skip
def test_what_a_mirror_would_not_run_with_is_refused(config, keys, says):
    with pytest.raises(ScenarioError, match=says):
        loaded(config, **keys)


def test_a_mistake_in_another_cluster_is_told_with_its_alias():
    clusters = {"dr": {"cluster": {"brokers": 3, "config": {"num.io.thread": 4}}}}
    with pytest.raises(ScenarioError, match=r"clusters\.dr\.cluster\.config"):
        loaded((), clusters)


def test_a_cluster_in_which_the_copies_have_no_room_is_refused():
    clusters = {"dr": {"cluster": {"brokers": 1}}}
    with pytest.raises(ScenarioError, match=r"source\.orders"):
        loaded((), clusters)


def test_a_mirror_may_not_have_the_name_of_a_client():
    own = {"cluster": {"brokers": 3}, "topics": {"own": {"replication.factor": 3}}}
    client = {"name": "mm2", "topic": "own", "rate": "1/s"}
    with pytest.raises(ScenarioError, match="another name"):
        loaded((), {"dr": {**own, "producers": [client]}})
    with pytest.raises(ScenarioError, match="name of its own"):
        loaded((), name="shop")


@pytest.mark.parametrize("alias", ["..", "a/b"])
def test_an_alias_is_part_of_a_path_and_is_a_name(alias):
    with pytest.raises(ScenarioError, match="the name"):
        loaded((), {alias: {"cluster": {"brokers": 3}}}, to=alias)
