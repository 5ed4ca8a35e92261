"""A cluster's version decides which settings there are, their defaults, and what goes without."""

from pathlib import Path

import pytest

from sim.errors import ScenarioError
from sim.kernel import Kernel
from sim.rng import Streams
from sim.scenario.build.cluster import Builder
from sim.scenario.loader import load_text
from sim.scenario.settings.facts import features_of, settings_of, versions
from sim.scenario.settings.kafka import UNSAID, defined, difference, names
from sim.scenario.settings.mirrors import MIRROR_PRODUCER, producers_of_workers
from sim.scenario.settings.overlay import DEFINITIONS, known, parsed
from sim.scenario.settings.registry import (
    BEFORE_KRAFT,
    KRAFT_SINCE,
    SETTINGS,
    overlays,
    resolve,
    settings_at,
)
from sim.scenario.settings.streams import producer_defaults
from sim.scenario.settings.types import INT_MAX, LONG_MAX
from sim.scenario.settings.zookeeper import OF_KRAFT
from sim.scenario.text.problems import Problem
from sim.trace.writer import Trace

TEXT = """
claim: settings of a version
cluster: {{kafka: "{version}"}}
topics: {{orders: {{partitions: 1, replication.factor: 3}}}}
producers: [{{name: shop, topic: orders, rate: 10/s, config: {{{config}}}{more}}}]
run: {{for: 2s}}
"""


def scenario(version, config="", more=""):
    return load_text(TEXT.format(version=version, config=config, more=more), "test")


def producer(version, config="", more=""):
    return scenario(version, config, more).producers[0].config


def refusal(scope, name, value, version):
    """Reason why a value is refused; empty if it is taken."""
    try:
        resolve(scope, {name: value}, version=version)
    except Problem as problem:
        return problem.found
    return ""


def theirs(scope, overlay, version):
    found = (
        settings_of(overlay.of)[overlay.name] if overlay.of else known(scope, overlay.name, version)
    )
    before = scope == "broker" and overlay.name in OF_KRAFT
    old = versions().index(version) < versions().index(KRAFT_SINCE)
    return found.at(BEFORE_KRAFT if before and old else version)


@pytest.mark.parametrize("version", versions())
def test_defaults_are_those_of_the_released_jars(version):
    for scope in DEFINITIONS:
        resolved = resolve(scope, {}, version=version)
        for overlay in overlays(scope):
            facts = theirs(scope, overlay, version)
            setting = settings_at(version)[scope][overlay.name]
            assert bool(setting.missing) == (facts is None), (scope, overlay.name)
            if facts is None or overlay.default is not None:
                continue
            assert setting.default == parsed(facts), (scope, overlay.name)
            if setting.is_modelled:
                assert resolved[overlay.name] == parsed(facts)
                assert resolved.has(overlay.name)


@pytest.mark.parametrize("version", versions())
def test_nothing_that_a_version_knows_is_called_unknown_and_nothing_else_is_taken(version):
    known_here = 0
    for scope in DEFINITIONS:
        for name in names(scope):
            setting = settings_at(version)[scope].get(name)
            facts = defined(scope, name, version).at(version)
            if facts is None and name in OF_KRAFT:
                continue
            given = "no such value" if setting is None else setting.default
            found = refusal(scope, name, given, version)
            assert "unknown" not in found
            assert ("this cluster runs" in found) == (facts is None), name
            assert found or setting is not None, name
            known_here += not found
    assert known_here > 150


def test_every_setting_that_kafka_ever_had_is_known_or_has_its_difference_in_words():
    unsaid = [
        name
        for scope in DEFINITIONS
        for name in names(scope)
        if name not in SETTINGS[scope] and difference(scope, name) == UNSAID
    ]
    assert unsaid == []


@pytest.mark.parametrize(
    ("version", "scope", "name", "value", "why"),
    [
        ("2.0", "producer", "delivery.timeout.ms", 60_000, "came with 2.1"),
        ("2.0", "topic", "max.compaction.lag.ms", 60_000, "came with 2.3"),
        ("3.9", "broker", "group.share.max.share.sessions", 10, "came with 4.1"),
        ("4.0", "broker", "zookeeper.session.timeout.ms", 6_000, "ended with 3.9"),
        ("4.0", "broker", "log.message.format.version", "3.0", "ended with 3.9"),
        ("2.8", "broker", "cordoned.log.dirs", "x", "came with 4.3"),
    ],
)
def test_a_setting_that_the_version_lacks_is_refused_with_its_versions(
    version, scope, name, value, why
):
    with pytest.raises(Problem) as caught:
        resolve(scope, {name: value}, version=version)
    assert caught.value.found == f"{name} {why}; this cluster runs Kafka {version}"


def test_a_setting_of_old_releases_alone_is_known_and_says_what_it_changes():
    with pytest.raises(Problem) as caught:
        resolve("broker", {"log.message.format.version": "0.10.2"}, version="2.0")
    assert "default 2.0-IV1; in Kafka up to 3.9" in caught.value.found
    assert "cluster.kafka says" in caught.value.found


@pytest.mark.parametrize(
    ("version", "scope", "name", "value"),
    [
        ("2.0", "producer", "delivery.timeout.ms", LONG_MAX),
        ("0.10", "producer", "enable.idempotence", False),
        ("3.2", "producer", "partitioner.adaptive.partitioning.enable", False),
        ("2.4", "broker", "fetch.max.bytes", INT_MAX),
        ("0.10", "broker", "group.initial.rebalance.delay.ms", 0),
        ("3.8", "broker", "unclean.leader.election.interval.ms", 300_000),
        ("3.2", "broker", "metadata.max.idle.interval.ms", 0),
        ("2.8", "broker", "metadata.max.idle.interval.ms", 0),
        ("2.8", "broker", "metadata.log.max.record.bytes.between.snapshots", LONG_MAX),
        ("3.2", "broker", "metadata.log.max.snapshot.interval.ms", 0),
        ("3.3", "broker", "metadata.log.max.snapshot.interval.ms", 0),
    ],
)
def test_releases_before_a_setting_do_what_they_did(version, scope, name, value):
    config = resolve(scope, {}, version=version)
    if name == "unclean.leader.election.interval.ms":
        value = LONG_MAX
    assert config[name] == value
    assert not config.has(name)
    assert name not in dict(config)


def test_producers_of_old_releases_expire_with_transactional_ids_and_back_off_evenly():
    given = {"transactional.id.expiration.ms": 5_000}
    assert resolve("broker", given, version="3.3")["producer.id.expiration.ms"] == 5_000
    assert resolve("broker", given, version="3.4")["producer.id.expiration.ms"] == 86_400_000
    given = {"retry.backoff.ms": 40}
    assert resolve("producer", given, version="3.6")["retry.backoff.max.ms"] == 40
    assert resolve("producer", given, version="3.7")["retry.backoff.max.ms"] == 1_000


def test_a_topic_has_the_version_of_its_brokers():
    broker = resolve("broker", {}, version="0.10")
    assert resolve("topic", {}, broker)["unclean.leader.election.enable"] is True
    assert resolve("topic", {}, broker).version == "0.10"
    with pytest.raises(Problem, match=r"came with 2\.3"):
        resolve("topic", {"max.compaction.lag.ms": 5}, broker)


@pytest.mark.parametrize(
    ("version", "scope", "name", "value"),
    [
        ("2.0", "producer", "compression.type", "zstd"),
        ("2.3", "consumer", "partition.assignment.strategy", "cooperative-sticky"),
        ("2.5", "streams", "processing.guarantee", "exactly_once_v2"),
        ("3.0", "streams", "processing.guarantee", "exactly_once"),
        ("4.0", "streams", "processing.guarantee", "exactly_once_beta"),
    ],
)
def test_a_value_that_the_version_does_not_know_is_refused(version, scope, name, value):
    with pytest.raises(Problem):
        resolve(scope, {name: value}, version=version)
    near = {"2.0": "2.1", "2.3": "2.4", "2.5": "3.0", "3.0": "2.5", "4.0": "3.9"}[version]
    assert resolve(scope, {name: value}, version=near)[name] == value


# -- idempotence ----------------------------------------------------------------------------------


def test_idempotence_that_is_asked_for_before_3_0_brings_acks_and_retries():
    plain = producer("2.0")
    assert (plain["acks"], plain["retries"], plain["enable.idempotence"]) == ("1", 0, False)
    asked = producer("2.0", "enable.idempotence: true")
    assert (asked["acks"], asked["retries"], asked["enable.idempotence"]) == ("all", INT_MAX, True)
    assert asked["max.in.flight.requests.per.connection"] == 5
    first = producer("0.11", "enable.idempotence: true")
    assert first["max.in.flight.requests.per.connection"] == 1


def test_a_transactional_id_brings_idempotence_before_3_0():
    config = producer("2.8", "transactional.id: a", ", transaction: {records: 5}")
    assert config["enable.idempotence"] is True
    assert config["acks"] == "all"


@pytest.mark.parametrize(
    ("version", "config"),
    [
        ("2.8", "enable.idempotence: true, acks: 1"),
        ("2.8", "enable.idempotence: true, retries: 0"),
        ("0.11", "enable.idempotence: true, max.in.flight.requests.per.connection: 2"),
        ("2.8", "enable.idempotence: true, max.in.flight.requests.per.connection: 6"),
        ("3.9", "enable.idempotence: true, max.in.flight.requests.per.connection: 6"),
        ("4.0", "max.in.flight.requests.per.connection: 6"),
        ("0.10", "enable.idempotence: true"),
    ],
)
def test_what_idempotence_does_not_go_with_is_refused(version, config):
    with pytest.raises(ScenarioError):
        producer(version, config)


def test_3_0_to_3_9_give_up_idempotence_that_was_not_asked_for():
    config = producer("3.9", "max.in.flight.requests.per.connection: 6")
    assert config["enable.idempotence"] is False


def test_streams_and_connect_give_their_producers_what_the_version_gave():
    assert producer_defaults("2.0", exactly_once=False) == {"linger.ms": 100, "retries": 10}
    exact = producer_defaults("1.1", exactly_once=True)
    assert exact["retries"] == INT_MAX
    assert exact["max.in.flight.requests.per.connection"] == 1
    assert "delivery.timeout.ms" not in exact
    assert producer_defaults("4.1", exactly_once=True) == {
        "linger.ms": 100,
        "delivery.timeout.ms": INT_MAX,
        "transaction.timeout.ms": 10_000,
    }
    assert producers_of_workers("4.1") == MIRROR_PRODUCER
    assert producers_of_workers("2.0")["retries"] == INT_MAX
    assert producers_of_workers("2.8")["request.timeout.ms"] == INT_MAX
    assert "enable.idempotence" not in producers_of_workers("0.10")


# -- what is built of them ------------------------------------------------------------------------


def test_a_scenario_shows_its_versions_settings_alone_and_can_be_loaded_again():
    first = scenario("2.0")
    text = first.as_yaml()
    assert "delivery.timeout.ms" not in text
    assert "retries: 0" in text
    again = load_text(text, "test")
    assert again.digest == first.digest
    assert not [each for each in first.off_default if "config" in each.path]


def test_a_new_clusters_features_are_those_of_its_version():
    assert features_of("3.3") == {"metadata.version": 7}
    assert features_of("2.0") == features_of("3.3")
    assert features_of("4.1")["metadata.version"] == 27
    assert features_of("4.2")["share.version"] == 1


SINCE_4_1 = {"group.version": 1, "transaction.version": 2, "eligible.leader.replicas.version": 1}


@pytest.mark.parametrize(
    ("version", "features"),
    [
        ("2.3", {"metadata.version": 7}),
        ("2.8", {"metadata.version": 0}),  # below 3.3-IV0, a level is implied and never written
        ("3.0", {"metadata.version": 1}),
        ("3.1", {"metadata.version": 2}),
        ("3.2", {"metadata.version": 3}),
        ("3.3", {"metadata.version": 7}),
        ("3.9", {"metadata.version": 21}),
        ("4.0", {"metadata.version": 25, "group.version": 1, "transaction.version": 2}),
        ("4.1", {"metadata.version": 27, **SINCE_4_1}),
        ("4.2", {"metadata.version": 29, **SINCE_4_1, "share.version": 1, "streams.version": 1}),
        ("4.3", {"metadata.version": 30, **SINCE_4_1, "share.version": 1, "streams.version": 1}),
    ],
)
def test_the_controller_writes_the_features_of_the_version(version, features):
    builder = Builder(scenario(version), Kernel(0), Streams(1), Trace(None), Path("disks"))
    assert builder.settings.controller().controller.features == features


@pytest.mark.parametrize(("version", "names_features"), [("3.2", False), ("3.3", True)])
def test_before_3_3_servers_register_without_features(version, names_features):
    builder = Builder(scenario(version), Kernel(0), Streams(1), Trace(None), Path("disks"))
    logs = builder.settings.broker().metadata_log
    assert bool(builder.settings.controller().controller.supported) is names_features
    assert bool(logs.supported) is bool(logs.snapshots.supported) is names_features


def test_a_share_group_of_4_1_has_its_feature_enabled():
    more = "\nconsumers: [{group: jobs, topics: orders, group.type: share}]"
    built = Builder(
        load_text(TEXT.format(version="4.1", config="", more="").rstrip() + more, "test"),
        Kernel(0), Streams(1), Trace(None), Path("disks"),
    )  # fmt: skip
    assert built.settings.controller().controller.features["share.version"] == 1


def test_several_log_directories_came_to_kraft_with_3_7():
    text = TEXT.replace('"{version}"', '"{version}", disk: {{directories: 2}}')
    with pytest.raises(ScenarioError, match=r"directories.*2 with Kafka 3\.6"):
        load_text(text.format(version="3.6", config="", more=""), "test")
    assert load_text(text.format(version="3.7", config="", more=""), "test").cluster.disk
