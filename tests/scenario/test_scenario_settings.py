"""A setting that is accepted is used: nothing that a scenario says is ignored."""

from pathlib import Path

import pytest

from sim.protocol.broker.share.limits import ShareLimits
from sim.protocol.coordinator.group.context import ModernGroupConfig
from sim.scenario.settings import proposed
from sim.scenario.settings.registry import SETTINGS, resolve
from sim.scenario.settings.topic import broker_settings
from sim.scenario.text.problems import Problem

SCENARIO = Path(__file__).parents[2] / "sim" / "scenario"
READERS = (
    "build/client_configs.py", "build/cluster.py", "build/connectors.py", "build/partitioners.py",
    "build/servers.py", "build/tiered.py", "build/translate.py", "build/workloads.py",
    "build/zookeeper.py",
    "model/acls.py", "model/apps.py", "model/clients.py", "rules/connectors.py",
    "rules/groups.py", "rules/hardware.py", "rules/internal_topics.py", "rules/membership.py",
    "rules/mirrors.py", "rules/quotas.py", "rules/replication.py", "rules/share_groups.py",
    "model/tokens.py", "rules/topic_configs.py", "run/runner.py", "tiered.py",
)  # fmt: skip


def test_every_modelled_setting_is_read_where_the_cluster_is_built():
    inherited = {broker for name in SETTINGS["topic"] for broker, _ in broker_settings(name)}
    text = "".join((SCENARIO / name).read_text() for name in READERS)
    idle = [
        name
        for scope, table in SETTINGS.items()
        for name, setting in table.items()
        if scope != "group"  # brokers have them from the metadata: see below
        and setting.is_modelled
        and name not in inherited
        and f'"{name}"' not in text
        and name != proposed.TIMEOUT  # read by its constant: see below
    ]
    assert idle == []
    assert "config.micros(proposed.TIMEOUT)" in text


def test_every_modelled_setting_of_a_group_is_read_by_its_coordinator_or_its_leaders():
    def read(configs):
        modern = ModernGroupConfig()
        groups = [modern.of_group(configs, kind) for kind in ("consumer", "share")]
        return *groups, ShareLimits().of_group(configs)

    names = [name for name, setting in SETTINGS["group"].items() if setting.is_modelled]
    values = {
        name: "false" if SETTINGS["group"][name].type == "boolean" else "77" for name in names
    }
    assert len(names) == 10
    assert [name for name in names if read({name: values[name]}) == read({})] == []


def test_unknown_setting_is_refused_with_its_nearest_spelling():
    with pytest.raises(Problem) as caught:
        resolve("producer", {"linger.mss": 5})
    assert caught.value.remedy == "did you mean linger.ms?"


def test_unlike_any_setting_there_is_no_wrong_advice():
    with pytest.raises(Problem) as caught:
        resolve("producer", {"xyzzy": 5})
    assert caught.value.remedy == ""


@pytest.mark.parametrize(
    ("scope", "name", "value"),
    [
        ("producer", "acks", 2),
        ("producer", "acks", True),
        ("producer", "linger.ms", -1),
        ("producer", "linger.ms", 1.5),
        ("producer", "linger.ms", True),
        ("producer", "linger.ms", None),
        ("producer", "enable.idempotence", "yes"),
        ("broker", "log.segment.bytes", 1_000),
        ("broker", "num.io.threads", 0),
        ("broker", "num.io.threads", 1 << 40),
        ("consumer", "auto.offset.reset", "newest"),
        ("topic", "flush.messages", 0),
    ],
)
def test_value_out_of_range_or_type_is_refused(scope, name, value):
    with pytest.raises(Problem):
        resolve(scope, {name: value})


@pytest.mark.parametrize("acks", ["all", "-1", -1, 0, 1, "0", "1"])
def test_acks_is_read_as_kafka_reads_it(acks):
    assert resolve("producer", {"acks": acks}).text("acks") == str(acks)


def test_config_turns_kafkas_units_into_microseconds():
    config = resolve("broker", {"replica.lag.time.max.ms": 400})
    assert config.micros("replica.lag.time.max.ms") == 400_000
    assert config.micros("leader.imbalance.check.interval.seconds") == 300_000_000
    with pytest.raises(TypeError):
        config.micros("num.io.threads")
    with pytest.raises(KeyError):
        config.number("linger.ms")
