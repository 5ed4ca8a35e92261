"""Settings are Kafka's own: as its released jars define them, but for differences with a reason."""

import json
import subprocess
import sys

import pytest

from sim.scenario.behaviours.versions import DEFAULT, VERSIONS
from sim.scenario.settings.facts import TABLE, VersionedSetting, settings_of, versions
from sim.scenario.settings.kafka import defined, summary
from sim.scenario.settings.overlay import (
    DEFINITIONS,
    Overlay,
    bounds,
    choices,
    declared,
    known,
    narrowed,
    other_defaults,
    parsed,
)
from sim.scenario.settings.registry import SETTINGS, overlays, resolve
from sim.scenario.settings.topic import broker_settings
from sim.scenario.text.problems import Problem
from tools.kafka_facts import merged, text
from tools.kafka_jars import RELEASES

MODELLED = [
    (scope, overlay) for scope in DEFINITIONS for overlay in overlays(scope) if not overlay.absent
]
LINGERS = {
    ("broker", "group.coordinator.append.linger.ms"),
    ("broker", "share.coordinator.append.linger.ms"),
}
OTHER_DEFAULTS = {
    "3.9": {
        ("broker", "group.consumer.migration.policy"),
        ("broker", "group.coordinator.append.linger.ms"),
        ("broker", "group.share.partition.max.record.locks"),
        ("broker", "log.message.timestamp.after.max.ms"),
        ("broker", "num.recovery.threads.per.data.dir"),
        ("broker", "remote.log.manager.copier.thread.pool.size"),
        ("broker", "remote.log.manager.expiration.thread.pool.size"),
        ("producer", "linger.ms"),
        ("topic", "message.timestamp.after.max.ms"),
    },
    "4.0": {("broker", "group.share.partition.max.record.locks"), *LINGERS},
    "4.1": LINGERS,
    "4.2": set(),
}
"""Settings whose defaults beside 4.3 are others, which a diff of the facts should show."""


def facts_of(scope, overlay, version=DEFAULT):
    found = settings_of(overlay.of).get(overlay.name) if overlay.of else known(scope, overlay.name)
    return found.near(version)


def differences(scope, overlay, version=DEFAULT):
    """In what the setting is not what Kafka's own facts say."""
    setting, facts = declared(scope, overlay, version), facts_of(scope, overlay, version)
    low, high = bounds(facts)
    found = []
    if setting.default != parsed(facts):
        found.append("default")
    if (setting.low, setting.high) != (low, high):
        found.append("bounds")
    if setting.choices != choices(facts):
        found.append("choices")
    return found


@pytest.mark.parametrize("scope", DEFINITIONS)
def test_every_modelled_setting_is_kafkas_unless_a_reason_says_why_not(scope):
    unsaid = [
        each.name
        for s, each in MODELLED
        if s == scope and differences(s, each) and not each.because
    ]
    assert unsaid == []
    idle = [
        each.name
        for s, each in MODELLED
        if s == scope and each.because and not any(differences(s, each, v) for v in VERSIONS)
    ]
    assert idle == []


def test_a_difference_without_a_reason_is_found():
    assert differences("broker", Overlay("num.io.threads", low=2)) == ["bounds"]
    assert differences("broker", Overlay("num.io.threads", default=9)) == ["default"]
    assert differences("producer", Overlay("acks", choices=("all",))) == ["choices"]
    (stale,) = narrowed("a bound that is Kafka's own", "num.io.threads", low=1)
    assert differences("broker", stale) == []


def test_no_setting_takes_what_kafka_refuses():
    wider = []
    for scope, overlay in MODELLED:
        setting, facts = declared(scope, overlay), facts_of(scope, overlay)
        low, high = bounds(facts)
        words = choices(facts)
        if (low is not None and (setting.low is None or setting.low < low)) or (
            high is not None and (setting.high is None or setting.high > high)
        ):
            wider.append(setting.name)
        if words and not set(setting.choices) <= set(words):
            wider.append(setting.name)
    assert wider == []


@pytest.mark.parametrize("version", OTHER_DEFAULTS)
def test_settings_whose_default_was_another_are_known_by_name(version):
    found = set()
    for scope, overlay in MODELLED:
        setting = (
            settings_of(overlay.of)[overlay.name] if overlay.of else known(scope, overlay.name)
        )
        then = setting.at(version)
        if then is not None and parsed(then) != parsed(setting.near()):
            found.add((scope, overlay.name))
    assert found == OTHER_DEFAULTS[version]


def test_defaults_are_those_of_the_newest_version_that_is_simulated():
    assert VERSIONS[-1] == DEFAULT
    assert versions() == tuple(RELEASES)
    assert SETTINGS["producer"]["linger.ms"].default == 5
    assert known("producer", "linger.ms").at("3.9").default == "0"


def test_a_default_that_was_another_is_in_the_documents():
    assert other_defaults("producer", "linger.ms") == "0 up to 3.9"
    wanted = "since 3.8, 10 up to 3.9, 5 up to 4.1"
    assert other_defaults("broker", "group.coordinator.append.linger.ms") == wanted
    assert other_defaults("producer", "acks") == "1 up to 2.8"
    assert other_defaults("producer", "max.request.size") == ""
    assert other_defaults("broker", "raft_heartbeat_interval_ms") == ""


def test_an_overlay_of_what_kafka_does_not_have_is_a_defect():
    with pytest.raises(LookupError, match=r"Kafka has no broker setting num\.io\.thread$"):
        declared("broker", Overlay("num.io.thread"))


def test_broker_settings_that_stand_in_for_a_topics_are_kafkas():
    hours = 3_600_000
    assert broker_settings("retention.ms") == (
        ("log.retention.ms", 1), ("log.retention.minutes", 60_000), ("log.retention.hours", hours),
    )  # fmt: skip
    assert broker_settings("max.message.bytes") == (("message.max.bytes", 1),)
    config = resolve("topic", {}, resolve("broker", {"log.roll.hours": 2}))
    assert config["segment.ms"] == 2 * hours
    config = resolve("topic", {}, resolve("broker", {"log.roll.hours": 2, "log.roll.ms": 7}))
    assert config["segment.ms"] == 7


def test_what_is_not_simulated_is_refused_with_kafkas_default_and_versions():
    with pytest.raises(Problem) as caught:
        resolve("broker", {"zookeeper.set.acl": True}, version="3.9")
    assert (
        "Kafka's and not simulated here (default false; in Kafka up to 3.9):" in caught.value.found
    )
    assert summary(defined("broker", "ssl.protocol")) == "default TLSv1.3"
    assert summary(defined("broker", "cordoned.log.dirs")) == "default empty; in Kafka since 4.3"
    assert summary(defined("connect", "offset.storage.topic")) == "no default"


# -- the data file --------------------------------------------------------------------------------


def test_the_data_file_has_one_setting_a_line_in_order_and_no_documentation():
    head, *lines = TABLE.read_text().splitlines()
    assert json.loads(head)["releases"] == RELEASES
    rows = [json.loads(line) for line in lines]
    assert [row["name"] for row in rows] == sorted(row["name"] for row in rows)
    assert len({(row["name"], scope) for row in rows for scope in row["of"]}) > 1_500
    known_keys = {
        *("name", "of", "since", "last", "type", "default", "valid", "importance", "internal"),
        *("broker", "then"),
    }
    assert {key for row in rows for key in row} <= known_keys
    assert not any(
        "." in row.get("valid", "").split(" ")[-1] and " the " in row["valid"] for row in rows
    )


def test_the_data_file_is_what_the_program_makes_of_its_own_rows():
    lines = TABLE.read_text().splitlines()[1:]
    rows = {version: [] for version in versions()}
    for line in lines:
        row = json.loads(line)
        held = {row["since"]: row, **row.get("then", {})}
        last = row.get("last", versions()[-1])
        plain = {}
        for version in versions():
            plain = held.get(version, plain)
            if plain and versions().index(version) <= versions().index(last):
                facts = {
                    k: v
                    for k, v in plain.items()
                    if k not in ("name", "of", "since", "last", "then")
                }
                rows[version] += [{"of": of, "name": row["name"], **facts} for of in row["of"]]
    head = json.loads(TABLE.read_text().splitlines()[0])
    assert text(rows, head["features"], head["supported"]) == TABLE.read_text()


def fact(name, default, scope="broker"):
    return {"of": scope, "name": name, "type": "int", "default": default, "importance": "low"}


def test_versions_stand_side_by_side_and_what_changed_is_seen():
    rows = {
        "3.9": [fact("a", "1"), fact("b", "1"), fact("b", "1", "topic")],
        "4.0": [fact("a", "2"), fact("b", "1"), fact("b", "1", "topic")],
        "4.1": [fact("a", "2"), fact("c", "1")],
    }
    plain = {"type": "int", "importance": "low"}
    assert merged(rows) == [
        {"name": "a", "of": ["broker"], "since": "3.9", **plain, "default": "1",
         "then": {"4.0": {**plain, "default": "2"}}},
        {"name": "b", "of": ["broker", "topic"], "since": "3.9", "last": "4.0", **plain,
         "default": "1"},
        {"name": "c", "of": ["broker"], "since": "4.1", **plain, "default": "1"},
    ]  # fmt: skip
    del rows["4.0"][0]
    with pytest.raises(ValueError, match=r"^a is in 3\.9, 4\.1$"):
        merged(rows)


@pytest.mark.parametrize(
    ("kind", "valid", "wanted"),
    [
        ("int", "[1,...]", (1, 2**31 - 1)),
        ("int", "[-1,...,9]", (-1, 9)),
        ("short", "[1,...]", (1, 32_767)),
        ("long", "[0,...]", (0, None)),
        ("double", "[0,...,1]", (0, 1)),
        ("long", "[...,5]", (None, 5)),
        ("int", "code", (None, 2**31 - 1)),
    ],
)
def test_bounds_are_read_from_what_validators_print(kind, valid, wanted):
    assert bounds(VersionedSetting(kind, "0", False, valid, "low", False)) == wanted


def test_nothing_is_read_before_a_setting_is_asked_for():
    code = (
        "import sim.scenario.loader\n"
        "from sim.scenario.settings import facts\n"
        "assert facts._lines.cache_info().currsize == 0\n"
        "from sim.scenario.settings.registry import resolve\n"
        "resolve('producer', {})\n"
        "assert facts.settings_of.cache_info().currsize == 1\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
