"""Share groups in a scenario: what is taken, and what is refused with the key's name (KIP-932)."""

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load_text
from tests.scenarios.run_kit import text_of

WORKERS = {"group": "workers", "group.type": "share", "topics": ["orders"], "count": 2}
EXPLICIT = {"share.acknowledgement.mode": "explicit"}


def loaded(*consumers, **parts):
    return load_text(text_of(consumers=consumers, **parts))


def test_a_share_group_is_taken_over_and_written_down_whole():
    entry = WORKERS | {"release": "5%", "reject": "1%", "config": EXPLICIT}
    scenario = loaded(entry)
    (consumer,) = scenario.consumers
    assert consumer.is_share
    assert (consumer.is_explicit, consumer.release_ppm) == (True, 50_000)
    assert load_text(scenario.as_yaml()).digest == scenario.digest


def test_other_consumers_know_nothing_of_it():
    scenario = loaded({"group": "billing", "topics": ["orders"]})
    assert not scenario.consumers[0].is_share
    assert "group.type" not in scenario.as_yaml()


@pytest.mark.parametrize(
    ("change", "parts", "error"),
    [
        ({"group": "none"}, {}, "share without a group"),
        ({"config": {"auto.offset.reset": "earliest"}}, {}, "share.auto.offset.reset"),
        ({"config": {"group.protocol": "consumer"}}, {}, "group.protocol: set in a share group"),
        ({"config": {"fetch.min.bytes": 2}}, {}, "fetch.min.bytes"),
        ({"release": "5%"}, {}, "share.acknowledgement.mode: implicit"),
        ({"release": "60%", "reject": "50%", "config": EXPLICIT}, {}, "above 100%"),
        ({}, {"cluster": {"kafka": "3.9"}}, "no share groups before 4.1"),
        (
            {},
            {"cluster": {"replication": "raft"}, "topic": {"config": {}}},
            "share with replication: raft",
        ),
        ({}, {"config": {"share.coordinator.state.topic.replication.factor": 5}}, "5 with 3"),
        ({}, {"config": {"share.coordinator.state.topic.min.isr": 4}}, "nothing could be ack"),
        ({}, {"config": {"group.share.record.lock.duration.ms": 5_000}}, "15000 to 60000"),
        ({}, {"config": {"group.share.heartbeat.interval.ms": 50_000}}, "less than group.share"),
    ],
)
def test_what_kafka_would_not_run_is_refused(change, parts, error):
    with pytest.raises(ScenarioError, match=error.replace("(", "\\(")):
        loaded(WORKERS | change, **parts)


def test_what_becomes_of_their_records_is_told_of_all_topics_together():
    loaded(WORKERS, expect={"accepted": "> 0", "unfinished": 0})
    with pytest.raises(ScenarioError, match="accepted is about all topics"):
        loaded(WORKERS, expect={"accepted": {"is": "> 0", "topic": "orders"}})


def test_outside_a_share_group_its_keys_have_no_meaning():
    plain = {"group": "billing", "topics": ["orders"]}
    with pytest.raises(ScenarioError, match="release in no share group"):
        loaded(plain | {"release": "5%"})
    with pytest.raises(ScenarioError, match="set outside a share group"):
        loaded(plain | {"config": EXPLICIT})


def test_all_members_of_a_group_are_of_one_type_and_begin_at_one_place():
    other = {"group": "workers", "name": "other", "topics": ["orders"]}
    with pytest.raises(ScenarioError, match="a group of another type"):
        loaded(WORKERS, other)
    late = other | {"group.type": "share", "config": {"share.auto.offset.reset": "earliest"}}
    with pytest.raises(ScenarioError, match="one value for the group"):
        loaded(WORKERS, late)
