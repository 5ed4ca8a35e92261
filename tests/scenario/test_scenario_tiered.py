"""Tiered storage: what a scenario needs for it, and what cannot stand beside it."""

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import text_of

ON = {"remote.log.storage.system.enable": True}
STORE = {"object-store": {}}
TOPIC = {"config": {"remote.storage.enable": True}}


def tiered(**parts):
    given = {"config": ON, "cluster": STORE, "topic": TOPIC} | parts
    return load_text(text_of(**given))


def topic(**config):
    return {"config": TOPIC["config"] | {k.replace("_", "."): v for k, v in config.items()}}


def test_a_tiered_topic_and_its_store_are_read_and_written_out_again():
    scenario = tiered()
    store = scenario.cluster.object_store
    assert store is not None
    assert store.latency.p50_us == 30_000
    assert load_text(scenario.as_yaml()).digest == scenario.digest


@pytest.mark.parametrize(
    ("found", "parts"),
    [
        ("none, with remote.log.storage", {"cluster": {}}),
        ("an object store without remote.log", {"config": {}, "topic": {}}),
        ("true without remote.log.storage", {"config": {}, "cluster": {}}),
        ("without remote.log.storage", {
            "config": {"remote.log.reader.threads": 3}, "cluster": {}, "topic": {},
        }),
        ("raft with remote.log", {"cluster": STORE | {"replication": "raft"}}),
        ("2 with remote.log", {"cluster": STORE | {"disk": {"directories": 2}}}),
        ("3.5 with remote.log", {"cluster": STORE | {"kafka": "3.5"}}),
        ("an ensemble with remote.log", {"cluster": STORE | {"zookeeper": {"servers": 3}}}),
        ("compact with remote.storage", {"topic": topic(cleanup_policy="compact")}),
        ("true with remote.storage", {"topic": topic(unclean_leader_election_enable=True)}),
        ("9 with retention.ms: 8", {"topic": topic(retention_ms=8, local_retention_ms=9)}),
        ("-1 with retention.bytes", {"topic": topic(retention_bytes=8, local_retention_bytes=-1)}),
        ("local.retention.ms without", {"topic": {"config": {"local.retention.ms": 5}}}),
        ("9 with 3 brokers", {"config": ON | {
            "rlmm.config.remote.log.metadata.topic.replication.factor": 9,
        }}),
        ("a change of remote.storage", {"faults": [
            {"at": "1s", "do": "alter-config", "topic": "orders",
             "config": {"remote.storage.enable": False}},
        ]}),
        ("lost-object without", {"config": {}, "cluster": {}, "topic": {}, "faults": [
            {"at": "1s", "do": "lost-object", "partition": "orders-0"},
        ]}),
    ],
)  # fmt: skip
def test_what_cannot_stand_beside_tiered_storage_is_refused(found, parts):
    with pytest.raises(ScenarioError, match=found):
        tiered(**parts)


def test_a_share_group_cannot_read_a_tiered_topic():
    member = {"name": "m", "group": "g", "config": {}, "group.type": "share", "topics": "orders"}
    with pytest.raises(ScenarioError, match="share"):
        tiered(consumers=[member])


@pytest.mark.parametrize("fault", [
    {"do": "reset-offsets", "group": "readers", "partitions": "orders-0", "datetime": "1s"},
    {"do": "reset-offsets", "group": "readers", "partitions": "orders-0", "duration": "1s"},
])  # fmt: skip
def test_nothing_is_sought_by_time_in_a_remote_log(fault):
    with pytest.raises(ScenarioError, match="no search by timestamp"):
        tiered(
            consumers=[{"group": "readers", "topics": ["orders"]}], faults=[{"at": "1s"} | fault]
        )
