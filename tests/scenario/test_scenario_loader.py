"""A good scenario has every default filled in, and is written out so that it loads again."""

import re
from pathlib import Path

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load, load_text
from sim.scenario.scenario import Scenario, document
from sim.scenario.schema.json_schema import json_schema
from sim.scenario.settings.registry import SETTINGS, resolve
from sim.scenario.settings.types import Problem
from tests.scenario.scenario_text import GOOD, changed

STRATEGY = "partition.assignment.strategy"
SHIPPED = sorted((Path(__file__).parents[2] / "scenarios").rglob("*.yaml"))


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: path.stem)
def test_shipped_scenario_loads_and_survives_being_written_out(path):
    scenario = load(path)
    again = load_text(scenario.as_yaml(), path.name)
    assert again == scenario
    assert again.digest == scenario.digest


def test_the_main_job_is_among_the_shipped_scenarios():
    quickstart = load(next(path for path in SHIPPED if path.stem == "quickstart"))
    assert len(quickstart.cluster.brokers) == 6
    assert [s.rack for s in quickstart.cluster.controllers] == ["a", "b", "c"]
    assert len(quickstart.producer_names) == 4
    assert len(quickstart.partitions) == 12
    assert {f.kind for f in quickstart.faults} == {"crash", "power-loss", "partition", "slow-disk"}
    ends = [0, *(f.until_us for f in quickstart.faults)]
    assert all(f.at_us > end for f, end in zip(quickstart.faults, ends, strict=False))
    records = sum(p.count * p.rate_per_s * 60 for p in quickstart.producers)
    assert records >= 1_000_000


def test_every_default_is_filled_in():
    scenario = load_text(
        "claim: x\ncluster: {brokers: 3}\ntopics: {t: {replication.factor: 1}}\nrun: {for: 1s}\n"
    )
    assert scenario.run.drain is True
    assert scenario.run.drain_timeout_us == 120_000_000
    assert scenario.cluster.config.micros("replica.lag.time.max.ms") == 30_000_000
    assert scenario.cluster.network.client == scenario.cluster.network.same_rack
    assert scenario.topics[0].config.number("segment.bytes") == 1 << 30
    assert scenario.behaviours["recovery"] == "elr"
    assert scenario.off_default == ()


def test_figures_that_came_later_are_written_only_off_their_defaults():
    text = "claim: x\ncluster: {}\ntopics: {t: {replication.factor: 1}}\nrun: {for: 1s}\n"
    scenario = load_text(text)
    quiet = ("preempted", "wakeup", "teardown", "young.generation", "young.per.request")
    cluster, cpu = document(scenario)["cluster"], scenario.cluster.cpu
    assert not [key for key in (*quiet, "young.pause") if key in cluster["cpu"]]
    assert "capacity" not in cluster["disk"]
    assert [cpu.plain(whole=True)[key] for key in quiet] == [
        {"p50": "2ms", "p99": "20ms"}, {"p50": "30us", "p99": "121us"}, "60ms", "256MiB", "16KiB",
    ]  # fmt: skip
    other = load_text(text.replace("{}", "{cpu: {teardown: 61ms}, disk: {capacity: 1GiB}}"))
    written = document(other)["cluster"]
    assert list(written["cpu"].items())[-1] == ("teardown", "61ms")
    assert list(written["disk"].items())[-2:] == [("directories", 1), ("capacity", "1GiB")]
    assert [(o.path, o.value, o.default) for o in other.off_default] == [
        ("cluster.disk.capacity", "1GiB", "unbounded"),
        ("cluster.cpu.teardown", "61ms", "60ms"),
    ]


def test_json_schema_has_defaults_as_a_file_writes_them():
    known = json_schema()["$defs"]
    assert known["DiskModel"]["properties"]["dirty.expire"]["default"] == "30s"
    assert known["CpuModel"]["properties"]["wakeup"]["default"] == {"p50": "30us", "p99": "121us"}
    assert known["DiskModel"]["properties"]["directories"]["default"] == 1


def test_a_disk_too_small_for_any_log_is_refused():
    text = (
        "claim: x\ncluster: {disk: {capacity: 1000kB}}\n"
        "topics: {t: {replication.factor: 1}}\nrun: {for: 1s}\n"
    )
    with pytest.raises(ScenarioError, match=r"cluster\.disk\.capacity.*1000000 bytes.*1MiB"):
        load_text(text)
    assert load_text(text.replace("1000kB", "1MiB")).cluster.disk.capacity_bytes == 1 << 20


def test_off_default_names_what_was_changed_and_nothing_else():
    paths = [line.path for line in load_text(GOOD).off_default]
    assert "topics.orders.config.min.insync.replicas" in paths
    assert "cluster.network.same-rack.p50" in paths
    assert not any("linger.ms" in path for path in paths)


def test_brokers_are_numbered_rack_by_rack_and_controllers_go_round():
    cluster = load_text(GOOD).cluster
    assert [(s.name, s.rack) for s in cluster.brokers[1:3]] == [
        ("broker-2", "a"),
        ("broker-3", "b"),
    ]
    assert [(s.name, s.rack) for s in cluster.controllers] == [
        ("controller-1", "a"),
        ("controller-2", "b"),
        ("controller-3", "c"),
    ]


def test_topic_inherits_the_brokers_setting_unless_it_has_its_own():
    text = changed(
        "max.ms: 30000", "max.ms: 30000, min.insync.replicas: 1, log.segment.bytes: 2000000"
    )
    topic = load_text(text).topics[0]
    assert topic.config.number("min.insync.replicas") == 2
    assert topic.config.number("segment.bytes") == 2_000_000


def test_override_reaches_keys_that_have_dots():
    scenario = load_text(
        GOOD,
        overrides=(
            "topics.orders.config.min.insync.replicas=1",
            "producers.shop.record.size=1KiB",
            "cluster.network.cross-rack={p50: 1ms, p99: 3ms}",
            "faults.0.for=1s",
            "expect.produce.p99=< 1s",
            "run.drain.timeout=5s",
        ),
    )
    assert scenario.topics[0].config.number("min.insync.replicas") == 1
    assert scenario.producers[0].record_size == 1_024
    assert scenario.cluster.network.cross_rack.p99_us == 3_000
    assert scenario.faults[0].for_us == 1_000_000
    assert scenario.expect[1].high == 1_000_000
    assert scenario.run.drain_timeout_us == 5_000_000


def test_words_that_older_yaml_bends_stay_words():
    text = changed(
        "rate: 5000/s", "rate: 5000/s, arrivals: burst, burst: {on: 1s, off: 4s, peak: 20000/s}"
    )
    burst = load_text(text).producers[0].burst
    assert (burst.on_us, burst.off_us, burst.peak_per_s) == (1_000_000, 4_000_000, 20_000)


def test_anchors_and_merge_keys_work_and_own_keys_win():
    text = changed(
        "  - {name: shop, topic: orders, count: 4, rate: 5000/s, record.size: 512B, "
        "config: {linger.ms: 5}}",
        "  - &p {name: shop, topic: orders, rate: 5000/s, record.size: 512B}\n"
        "  - {<<: *p, name: till, rate: 10/s}",
    )
    shop, till = load_text(text).producers
    assert (till.name, till.rate_per_s, till.record_size) == ("till", 10, shop.record_size)


def test_digest_ignores_the_seed_and_comments_but_not_a_setting():
    digest = load_text(GOOD).digest
    assert load_text("# more\n" + changed("seed: 7", "seed: 8")).digest == digest
    assert load_text(changed("linger.ms: 5", "linger.ms: 6")).digest != digest


def test_clients_are_printed_with_numbers_when_there_are_several():
    scenario = load_text(GOOD)
    assert scenario.producer_names == ("shop-1", "shop-2", "shop-3", "shop-4")
    assert load_text(changed("count: 4, ", "")).producer_names == ("shop",)


def test_workload_as_a_target_means_all_its_clients():
    scenario = load_text(changed("do: power-loss, target: rack a", "do: pause, target: shop"))
    assert scenario.faults[0].targets[0].names == scenario.producer_names


def test_a_line_of_kafkas_own_configuration_can_be_pasted():
    scenario = load_text(changed("count: 3}", (
        "count: 3, config: {partition.assignment.strategy: "
        "org.apache.kafka.clients.consumer.RoundRobinAssignor}}"
    )))  # fmt: skip
    assert scenario.consumers[0].config.words(STRATEGY) == ("roundrobin",)
    assert load_text(GOOD).consumers[0].config.words(STRATEGY) == (
        "range",
        "cooperative-sticky",
    )


@pytest.mark.parametrize("kafka", ["3.0", "3.1", "4.1", "4.2"])
def test_an_assignor_that_is_named_twice_is_refused_from_3_1_to_4_1_and_counts_once_else(kafka):
    """KIP-1161: ``ConfigDef.ValidList`` removes what is there twice, with a warning."""
    text = changed(
        "count: 3}", f"count: 3, kafka: '{kafka}', config: {{{STRATEGY}: 'range, range'}}}}"
    )
    if kafka in {"3.1", "4.1"}:
        with pytest.raises(ScenarioError, match=f"range twice, with a client of Kafka {kafka}"):
            load_text(text)
    else:
        assert load_text(text).consumers[0].config.words(STRATEGY) == ("range",)


def test_json_schema_knows_every_top_key_and_refuses_others():
    schema = json_schema()
    assert list(schema["properties"])[:3] == ["claim", "cluster", "topics"]
    assert schema["additionalProperties"] is False


def test_every_setting_accepts_its_own_default():
    for scope, table in SETTINGS.items():
        for name, setting in table.items():
            if setting.default is not None and not setting.missing:
                resolve(scope, {name: setting.default})


def test_every_unmodelled_setting_refuses_another_value():
    tried = 0
    for scope, table in SETTINGS.items():
        for name, setting in table.items():
            if setting.is_modelled:
                continue
            other = {"boolean": not setting.default, "int": 12_345, "double": 0.25}
            given = {name: other.get(setting.type, "something")}
            with pytest.raises(Problem) as refused:
                resolve(scope, given)
            ended = re.search(r"ended with ([\d.]+);", str(refused.value))
            if ended is not None:
                with pytest.raises(Problem) as refused:
                    resolve(scope, given, version=ended[1])
            assert "not modelled" in str(refused.value)
            tried += 1
    assert tried > 100


def test_scenario_is_frozen():
    scenario = load_text(GOOD)
    assert isinstance(scenario, Scenario)
    with pytest.raises(AttributeError):
        scenario.claim = "other"


def test_a_power_loss_leaves_to_chance_what_it_spares_unless_told():
    kept = load_text(GOOD)
    lost = load_text(changed("do: power-loss,", "do: power-loss, unflushed: lost,"))
    assert [f.unflushed for f in kept.faults if f.kind == "power-loss"] == ["by chance"]
    assert [f.unflushed for f in lost.faults if f.kind == "power-loss"] == ["lost"]
    assert "by chance" in kept.as_yaml()
    assert load_text(lost.as_yaml()).faults == lost.faults
