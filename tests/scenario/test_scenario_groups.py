"""What may stand beside ``group.protocol: consumer``, and what is refused as Kafka refuses it."""

import pytest

from sim.errors import ScenarioError
from sim.protocol.coordinator.group.context import GroupConfig, ShareStatesConfig
from sim.scenario.build import client_configs, translate
from sim.scenario.loader import load_text
from sim.units import SECOND
from tests.scenarios.run_kit import text_of

CONSUMER = {"group.protocol": "consumer"}


def group(config=CONSUMER, **more):
    return {"group": "billing", "topics": ["orders"], "config": config} | more


def scenario(*consumers, **more):
    return load_text(text_of(consumers=consumers or [group()], **more), "test.yaml")


def refused(*consumers, **more):
    with pytest.raises(ScenarioError) as caught:
        scenario(*consumers, **more)
    return str(caught.value)


def test_a_member_and_its_brokers_get_what_the_scenario_says():
    config = {"group.consumer.session.timeout.ms": 50_000, "group.consumer.assignors": "range"}
    found = scenario(group(CONSUMER | {"group.remote.assignor": "range"}), config=config)
    member = client_configs.consumer_config(found.consumers[0], "", found.behaviours)
    assert (member.group_protocol, member.group_remote_assignor) == ("consumer", "range")
    brokers = translate.group_config(found.cluster.config, found.behaviours)
    assert brokers.consumer.session_timeout_us == 50_000_000
    assert brokers.consumer_assignors == ("range",)


def test_without_a_word_a_group_is_classic_and_brokers_have_the_defaults_of_4_1():
    found = scenario(group({}), cluster={"kafka": "4.1"})
    assert (
        client_configs.consumer_config(found.consumers[0], "", found.behaviours).group_protocol
        == "classic"
    )
    made = translate.group_config(found.cluster.config, found.behaviours)
    # 4.1 retries the states of share partitions after twice offsets.commit.timeout.ms.
    states = ShareStatesConfig(retry_us=10 * SECOND, of_subscribed=False, waits_for_target=False)
    assert made == GroupConfig(has_id_field=True, share_states=states)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("session.timeout.ms", 10_000),
        ("heartbeat.interval.ms", 1_000),
        ("partition.assignment.strategy", "roundrobin"),
    ],
)
def test_what_the_coordinator_decides_is_refused_of_a_member(setting, value):
    assert f"config.{setting}" in refused(group(CONSUMER | {setting: value}))
    scenario(group({setting: value}))


def test_what_is_written_down_loads_again_as_the_same():
    first = scenario()
    again = load_text(first.as_yaml(), "again.yaml", ())
    assert again.consumers == first.consumers


def test_the_assignor_of_the_coordinator_is_refused_of_a_classic_member():
    assert "group.remote.assignor" in refused(group({"group.remote.assignor": "uniform"}))
    few = {"group.consumer.assignors": "range"}
    asked = group(CONSUMER | {"group.remote.assignor": "uniform"})
    assert "group.consumer.assignors" in refused(asked, config=few)


def test_the_protocol_is_refused_where_kafka_did_not_have_it():
    assert "classic before 4.0" in refused(cluster={"kafka": "3.9"})
    scenario(cluster={"kafka": "4.0"})


def test_it_is_refused_without_a_group():
    assert "without a group" in refused(group(group="none", name="reader"))


@pytest.mark.parametrize("policy", ["bidirectional", "upgrade", "downgrade", "disabled"])
def test_members_of_both_protocols_may_be_in_a_group_and_the_policy_reaches_the_brokers(policy):
    given = {"group.consumer.migration.policy": policy}
    found = scenario(group(), group({}, name="late"), config=given)
    made = translate.group_config(found.cluster.config, found.behaviours)
    assert made.migration.value == policy


def test_the_policy_is_bidirectional_since_4_0_and_was_disabled_before():
    for version, policy in (("3.9", "disabled"), ("4.0", "bidirectional")):
        found = scenario(group({}), cluster={"kafka": version})
        made = translate.group_config(found.cluster.config, found.behaviours)
        assert made.migration.value == policy
    text = refused(config={"group.consumer.migration.policy": "both"})
    assert "bidirectional" in text


def test_a_group_with_one_member_of_the_consumer_protocol_has_settings_of_its_own():
    own = {"groups": {"billing": {"config": {"consumer.session.timeout.ms": 50_000}}}}
    found = scenario(group({}), group(name="late"), **own)
    assert found.groups[0].own == (("consumer.session.timeout.ms", "50000"),)


def test_a_member_of_the_consumer_protocol_is_refused_in_a_group_of_tasks():
    tasks = {"name": "billing", "topics": ["orders"], "output": "sums"}
    topics = {name: {"partitions": 3, "replication.factor": 3} for name in ("orders", "sums")}
    text = refused(group(name="late"), topics=topics, processors=[tasks])
    assert "a group of tasks" in text


@pytest.mark.parametrize(
    "config",
    [
        {"group.consumer.session.timeout.ms": 44_999},
        {"group.consumer.session.timeout.ms": 60_001},
        {"group.consumer.heartbeat.interval.ms": 4_999},
        {
            "group.consumer.heartbeat.interval.ms": 10_000,
            "group.consumer.session.timeout.ms": 10_000,
            "group.consumer.min.session.timeout.ms": 10_000,
        },
    ],
)
def test_brokers_do_not_start_with_timeouts_outside_their_own_bounds(config):
    assert "cluster.config.group.consumer" in refused(config=config)


CLASSIC = {"group.coordinator": "classic"}


def test_the_version_says_which_coordinator_a_broker_has():
    for version, new in (("3.9", False), ("4.0", True)):
        found = scenario(group({}), cluster={"kafka": version})
        made = translate.group_config(found.cluster.config, found.behaviours)
        assert (made.follows_watermark, made.append_linger_us) == (new, 5_000 if new else 0)


def test_the_classic_coordinator_is_refused_what_only_the_new_one_can_do():
    assert "group.protocol: consumer" in refused(group(), behaviours=CLASSIC)
    assert "a share group" in refused(group({}, **{"group.type": "share"}), behaviours=CLASSIC)
    assert "group.unload: late" in refused(group({}), behaviours=CLASSIC | {"group.unload": "late"})
    lingers = {"group.coordinator.append.linger.ms": 10}
    assert "does not wait" in refused(group({}), config=lingers, behaviours=CLASSIC)
    scenario(group({}), config={"group.coordinator.append.linger.ms": -1}, behaviours=CLASSIC)
