"""Machines of 4.1, 4.2 and 4.3: each gets the positions and defaults of its release."""

import pytest

from sim.errors import ScenarioError
from sim.protocol.coordinator.group.context import ShareStatesConfig
from sim.protocol.kraft.types import QuorumConfig
from sim.scenario.build import client_configs, translate
from sim.scenario.loader import load_text
from sim.scenario.rules import share_groups
from sim.units import MIB, MS, SECOND
from tests.scenarios.run_kit import text_of

SHARE = {"group": "work", "topics": ["orders"], "group.type": "share"}


def scenario(kafka="4.1", behaviours=None, config=None, **member):
    more = {} if behaviours is None else {"behaviours": behaviours}
    consumers = [SHARE | {"config": member}]
    text = text_of(consumers=consumers, config=config or {}, **more)
    return load_text(text.replace("cluster:", f"cluster:\n  kafka: '{kafka}'", 1), "test.yaml")


def groups(*args, **more):
    found = scenario(*args, **more)
    return translate.group_config(found.cluster.config, found.behaviours)


def refused(*args, **more):
    with pytest.raises(ScenarioError) as caught:
        scenario(*args, **more)
    return str(caught.value)


@pytest.mark.parametrize(("kafka", "linger"), [("4.1", 5 * MS), ("4.2", -MS), ("4.3", -MS)])
def test_coordinators_linger_adapts_since_4_2_unless_it_is_given(kafka, linger):
    assert groups(kafka).append_linger_us == linger
    share = share_groups.share_coordinator_config(scenario(kafka).cluster.config)
    assert share.append_linger_us == linger
    given = {"group.coordinator.append.linger.ms": 5}
    assert groups(kafka, config=given).append_linger_us == 5 * MS


def test_an_adaptive_linger_is_refused_before_4_2():
    given = {"group.coordinator.append.linger.ms": -1}
    assert "milliseconds from 0 to" in refused("4.1", config=given)
    assert groups("4.2", config=given).append_linger_us < 0


@pytest.mark.parametrize(("kafka", "interval"), [("4.1", 0), ("4.2", 0), ("4.3", 1 * SECOND)])
def test_targets_are_an_interval_apart_since_4_3(kafka, interval):
    found = groups(kafka)
    assert found.consumer.assignment_interval_us == interval
    assert found.share.assignment_interval_us == interval
    assert found.fences_by_assignment is (kafka == "4.3")
    assert found.has_topic_ids is (kafka != "4.1")


def test_the_interval_has_a_least_and_a_largest_value():
    name = "group.consumer.assignment.interval.ms"
    assert groups("4.3", config={name: 0}).consumer.assignment_interval_us == 0
    assert "0 to 15000" in refused("4.3", config={name: 20_000})
    bounds = {name: 20_000, "group.consumer.max.assignment.interval.ms": 20_000}
    assert groups("4.3", config=bounds).consumer.assignment_interval_us == 20 * SECOND


@pytest.mark.parametrize(
    ("name", "value", "since"),
    [
        ("group.consumer.assignment.interval.ms", 5, "4.3"),
        ("group.share.assignment.interval.ms", 5, "4.3"),
        ("group.share.max.delivery.count.limit", 12, "4.3"),
        ("controller.quorum.fetch.max.bytes", 5, "4.3"),
        ("controller.quorum.fetch.snapshot.max.bytes", 5, "4.3"),
    ],
)
def test_a_setting_that_the_release_does_not_have_is_refused(name, value, since):
    assert f"came with {since}; this cluster runs Kafka 4.1" in refused("4.1", config={name: value})
    scenario(since, config={name: value})


def test_an_interval_is_refused_where_each_epoch_has_its_target_at_once():
    given = {"group.consumer.assignment.interval.ms": 5}
    at_once = {"group.assignment": "each_epoch"}
    assert "at once" in refused("4.3", behaviours=at_once, config=given)


def quorum(kafka, **config):
    found = scenario(kafka, config=config)
    return translate.quorum_config(found.cluster.config, found.behaviours)


def test_members_of_the_quorum_ask_for_a_mebibyte_since_4_3():
    assert (quorum("4.2").fetch_max_bytes, quorum("4.2").snapshot_max_bytes) == (8 * MIB, 8 * MIB)
    assert quorum("4.1") == QuorumConfig()
    assert (quorum("4.3").fetch_max_bytes, quorum("4.3").snapshot_max_bytes) == (MIB, MIB)
    given = quorum("4.3", **{"controller.quorum.fetch.snapshot.max.bytes": 700})
    assert (given.fetch_max_bytes, given.snapshot_max_bytes) == (MIB, 700)


@pytest.mark.parametrize(("kafka", "version"), [("4.1", 0), ("4.2", 2), ("4.3", 2)])
def test_markers_say_the_version_of_their_transaction_since_4_2(kafka, version):
    found = scenario(kafka)
    made = translate.transaction_config(found.cluster.config, found.behaviours)
    assert made.marker_version == version
    old = scenario(kafka, behaviours={"transactions": "kip98"})
    assert translate.transaction_config(old.cluster.config, old.behaviours).marker_version == 0


@pytest.mark.parametrize("kafka", ["4.1", "4.2", "4.3"])
def test_share_partitions_isolate_bad_records_and_count_completed_ones_since_4_2(kafka):
    found = scenario(kafka)
    limits = share_groups.share_config(found.cluster.config, (), found.behaviours).limits
    assert limits.isolates is limits.counts is (kafka != "4.1")


def test_a_share_consumer_may_limit_its_records_since_4_2():
    given = {"share.acquire.mode": "record_limit"}
    found = scenario("4.2", **given)
    assert client_configs.consumer_config(
        found.consumers[0], "", found.behaviours
    ).share_record_limit
    assert "came with 4.2" in refused("4.1", **given)
    usual = scenario("4.2")
    member = client_configs.consumer_config(usual.consumers[0], "", usual.behaviours)
    assert not member.share_record_limit


def test_limits_of_share_groups_have_bounds_since_4_3():
    locks = {"group.share.partition.max.record.locks": 5_000}
    scenario("4.2", config=locks)
    assert "100 to 4000" in refused("4.3", config=locks)
    scenario("4.3", config=locks | {"group.share.max.partition.max.record.locks": 5_000})


def test_states_of_share_partitions_are_tried_again_by_a_setting_since_4_2():
    name = "group.share.initialize.retry.interval.ms"
    assert groups("4.3").share_states == ShareStatesConfig()
    assert groups("4.3", config={name: 7_000}).share_states.retry_us == 7 * SECOND
    assert groups("4.2").share_states == ShareStatesConfig(waits_for_target=False)
    commits = {"offsets.commit.timeout.ms": 6_000}
    before = ShareStatesConfig(12 * SECOND, of_subscribed=False, waits_for_target=False)
    assert groups("4.1", config=commits).share_states == before
    assert "came with 4.2; this cluster runs Kafka 4.1" in refused("4.1", config={name: 7_000})
    assert "milliseconds from 1 to" in refused("4.3", config={name: 0})
