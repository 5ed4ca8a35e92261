"""Every kind of mistake is one line with its place, what was found and what to do."""

import re

import pytest

from sim.errors import ScenarioError
from sim.scenario.loader import load, load_text
from tests.scenario.scenario_text import GOOD, changed


def error_of(text: str, *overrides: str) -> str:
    with pytest.raises(ScenarioError) as caught:
        load_text(text, "bad.yaml", overrides)
    message = str(caught.value)
    assert "\n" not in message
    return message


P = "producers[0]."
MISTAKES = [
    # what is replaced, by what, line, key path, what the message must say
    ("racks:", "rakcs:", 3, "cluster.rakcs", "did you mean racks?"),
    ("at: 20s", "at: 20q", 13, "faults[0].at", "units: us, ms, s"),
    ("for: 15s", "for: 15", 13, "faults[0].for", "15 has no unit"),
    ("rate: 5000/s", "rate: 5000", 9, "producers[0].rate", "has no unit"),
    ("factor: 3", "factor: 9", 7, "topics.orders.replication.factor", "number of brokers, 6"),
    ("replicas: 2", "replicas: 4", 7, "topics.orders.config.min.insync.replicas", "1 to 3"),
    ("target: rack a", "target: rack z", 13, "faults[0].target", "rack a, rack b, rack c"),
    ("target: rack a", "target: broker-9", 13, "faults[0].target", "brokers are broker-1"),
    ("target: rack a", "target: shp", 13, "faults[0].target", "did you mean shop?"),
    ("of orders-0", "of orders-12", 15, "faults[2].target", "orders-0 to orders-11"),
    ("of orders-0", "of order-0", 15, "faults[2].target", "did you mean orders-0?"),
    ("at: 20s", "at: -20s", 13, "faults[0].at", "is negative"),
    ("at: 50s", "at: 70s", 15, "faults[2].at", "not before the end of the run"),
    ("for: 5s", "for: 50s", 15, "faults[2].for", "lasts until 100s"),
    ("time.max.ms", "time.max", 4, "cluster.config.replica.lag.time.max", "did you mean replica"),
    ("linger.ms: 5", "compression.type: lz5", 9, "producers[0].config.compression.type", "lz4?"),
    (
        "config: {min.insync.replicas: 2}",
        "config: {leader.replication.throttled.replicas: ['0:1', '0:7']}",
        7,
        "topics.orders.config.leader.replication.throttled.replicas",
        "'0:7'; allowed: * or partition:broker",
    ),
    ("linger.ms: 5", "client.id: me", 9, "producers[0].config.client.id", "not modelled"),
    (
        "linger.ms: 5",
        "compression.gzip.level: 0",
        9,
        P + "config.compression.gzip.level",
        "-1 (the codec's default)",
    ),
    (
        "linger.ms: 5",
        "compression.zstd.level: 23",
        9,
        P + "config.compression.zstd.level",
        "-131072 to 22",
    ),
    ("512B", "512B, tombstones: 5%", 9, "producers[0].tombstones", "keys: uniform or zipf"),
    ("512B", "512B, tombstones: 0.05", 9, "producers[0].tombstones", "such as 5%"),
    ("512B", "512B, tombstones: 101%", 9, "producers[0].tombstones", "at most 100%"),
    ("512B", "512B, record.headers: {count: 101}", 9, P + "record.headers.count", "100"),
    ("512B", "512B, record.headers: {size: 5B}", 9, P + "record.headers.count", "missing"),
    (
        "512B",
        "512B, record.headers: {count: 99, size: 20kB}",
        9,
        P + "record.headers",
        "does not fit",
    ),
    ("512B", "512B, record.compressibility: 1.5", 9, P + "record.compressibility", "1"),
    ("linger.ms: 5", "linger.ms: 5ms", 9, "producers[0].config.linger.ms", "plain numbers"),
    ("linger.ms: 5", "segment.ms: 5", 9, "producers[0].config.segment.ms", "a topic setting"),
    ("seed: 7", "seed: !!python/object:os.system 7", 16, "scenario", "!!python/object:os.system"),
    ("topic: orders", "topic: ordres", 9, "producers[0].topic", "did you mean orders?"),
    ("topics: [orders]", "topics: [order]", 11, "consumers[0].topics", "did you mean orders?"),
    ("recovery: elr", "recovry: elr", 18, "behaviours.recovry", "did you mean recovery?"),
    ("recovery: elr", "rebalance: lazy", 18, "behaviours.rebalance", "eager, cooperative"),
    (
        "count: 3}",
        "count: 3, config: {client.rack: d}}",
        11,
        "consumers[0].config.client.rack",
        "no rack 'd'; allowed: a, b, c",
    ),
    ("do: slow-disk", "do: slowdisk", 15, "faults[2].do", "did you mean slow-disk?"),
    ("factor: 50", "facter: 50", 15, "faults[2].facter", "did you mean factor?"),
    ("lost_acked", "lost_ack", 17, "expect.lost_ack", "did you mean lost_acked?"),
    ("512B", "12B", 9, "producers[0].record.size", "at least 24B"),
    ("for: 60s, ", "", 16, "run.for", "missing"),
    ("p50: 120us", "p50: 1s", 5, "cluster.network.same-rack", "p50 at most p99"),
    ("and: [rack c]", "and: [broker-3]", 14, "faults[1].and", "both sides"),
]


@pytest.mark.parametrize(("old", "new", "line", "path", "says"), MISTAKES)
def test_mistake_is_told_with_file_line_key_and_remedy(old, new, line, path, says):
    message = error_of(changed(old, new))
    assert message.startswith(f"bad.yaml:{line}: {path}: "), message
    assert says in message


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("", 1, "the file is empty"),
        ("# only a comment\n", 1, "the file is empty"),
        ("claim: x\nrun: {for: [}\n", 2, "not YAML"),
        ("claim: x\n--- \nclaim: y\n", 2, "not YAML"),
        ("- a\n- b\n", 1, "not a mapping"),
        ("just words\n", 1, "not a mapping"),
        ("claim: a\nclaim: b\n", 2, "stands twice"),
        ("claim: \x07\n", 1, "not YAML"),
        ("a: &x [*x]\n", 1, "an alias that holds itself"),
        ("a: *nowhere\n", 1, "not YAML"),
        ("a: &a {<<: *a}\n", 1, "an alias that holds itself"),
        ("a: &a {<<: [*a, *a], b: 1}\n", 1, "an alias that holds itself"),
        ('claim: "\\UFFFFFFFF"\n', 1, "not YAML"),
        ('claim: "\\ud800"\n', 1, "half of a surrogate pair"),
        ('"\\ud800": x\n', 1, "half of a surrogate pair"),
        (f"%YAML 1.{'1' * 5_000}\n---\na: b\n", 1, "not YAML"),
    ],
)
def test_what_is_no_scenario_is_told_in_one_line(text, line, says):
    message = error_of(text)
    assert message.startswith(f"bad.yaml:{line}: "), message
    assert says in message


def test_aliases_that_multiply_are_refused_before_they_are_written_out():
    levels = ["a0: &a0 [1,1,1,1,1,1,1,1,1,1]"]
    levels += [f"a{n}: &a{n} [{','.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    assert "too many values" in error_of("\n".join(levels))


@pytest.mark.parametrize("first", ["{k: 1}", "{}"])
def test_merge_keys_that_multiply_are_refused_before_they_are_written_out(first):
    """Empty mappings too: they leave nothing, and take as long."""
    levels = [f"m0: &m0 {first}"]
    levels += [f"m{n}: &m{n} {{<<: [*m{n - 1}, *m{n - 1}]}}" for n in range(1, 40)]
    assert "too many values" in error_of("\n".join(levels))


def test_more_values_than_a_scenario_has_are_refused_while_they_are_read():
    assert "too many values" in error_of("k: 1\n" * 500_000)


def test_deep_nesting_is_refused_without_a_traceback():
    assert "nested too deeply" in error_of("[" * 5_000)


def test_nesting_through_aliases_is_refused_without_a_traceback():
    chain = ["c0: &c0 x", *(f"c{n}: &c{n} [*c{n - 1}]" for n in range(1, 3_000))]
    assert "nested too deeply" in error_of("\n".join(chain))


def test_mistakes_come_in_the_order_of_the_file():
    text = changed("seed: 7", "seed: x").replace("count: 4", "count: many")
    with pytest.raises(ScenarioError) as caught:
        load_text(text, "bad.yaml")
    first, second = str(caught.value).splitlines()
    assert first.startswith("bad.yaml:9: producers[0].count")
    assert "run.seed" in second


def test_missing_file_and_directory_are_told(tmp_path):
    for path in (tmp_path / "none.yaml", tmp_path):
        with pytest.raises(ScenarioError, match=re.escape(f"{path}:1: scenario: ")):
            load(path)


def test_file_that_is_not_utf8_is_told_with_its_line(tmp_path):
    file = tmp_path / "latin.yaml"
    file.write_bytes(b"claim: x\nname: caf\xe9\n")
    with pytest.raises(ScenarioError, match=r"latin\.yaml:2: .*UTF-8"):
        load(file)


def overlap(first: str, second: str) -> str:
    return changed("  - {at: 20s, do: power-loss, target: rack a, for: 15s}", f"{first}\n{second}")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("at: 1s, do: crash, target: broker-1, for: 5s", "at: 5s, do: crash, target: broker-1"),
        ("at: 5s, do: crash, target: broker-1", "at: 20s, do: crash, target: broker-1, for: 1s"),
        ("at: 1s, do: power-loss, target: rack a, for: 9s",
         "at: 2s, do: power-loss, target: broker-2, for: 1s"),
        ("at: 1s, do: pause, target: leader of orders-0, for: 9s",
         "at: 2s, do: pause, target: leader of orders-0, for: 1s"),
        ("at: 1s, do: restart, target: broker-1", "at: 1s, do: restart, target: broker-1"),
        ("at: 1s, do: partition, between: rack a, and: rack b, for: 5s",
         "at: 2s, do: partition, between: rack b, and: rack a, for: 5s"),
    ],
)  # fmt: skip
def test_two_faults_of_a_kind_on_one_target_at_once_are_refused(first, second):
    message = error_of(overlap(f"  - {{{first}}}", f"  - {{{second}}}"))
    assert message.startswith("bad.yaml:14: faults[1].at: overlaps faults[0]")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("at: 1s, do: crash, target: broker-1, for: 5s", "at: 6s, do: crash, target: broker-1"),
        ("at: 1s, do: crash, target: broker-1, for: 5s", "at: 2s, do: crash, target: broker-2"),
        ("at: 1s, do: crash, target: broker-1",
         "at: 2s, do: slow-disk, target: broker-1, factor: 2"),
        ("at: 1s, do: restart, target: broker-1", "at: 2s, do: restart, target: broker-1"),
        ("at: 1s, do: partition, between: rack a, and: rack b, one-way: true, for: 5s",
         "at: 2s, do: partition, between: rack b, and: rack a, one-way: true, for: 5s"),
    ],
)  # fmt: skip
def test_faults_that_do_not_heal_each_other_may_overlap(first, second):
    scenario = load_text(overlap(f"  - {{{first}}}", f"  - {{{second}}}"))
    assert len(scenario.faults) == 4


def test_fault_of_disks_does_not_hit_a_client():
    message = error_of(changed("target: leader of orders-0", "target: shop-1"))
    assert "shop-1 is a client" in message


def test_replica_fault_needs_one_broker_and_one_partition():
    line = "{at: 50s, do: slow-disk, target: leader of orders-0, factor: 50, for: 5s}"
    assert "names no partition" in error_of(
        changed(line, "{at: 50s, do: lost-replica, target: broker-1}")
    )
    assert "not one broker" in error_of(
        changed(line, "{at: 50s, do: lost-replica, target: rack a, partition: orders-3}")
    )
    good = load_text(changed(line, "{at: 5s, do: lost-replica, target: follower of orders-3}"))
    assert str(good.faults[2].partition) == "orders-3"


def test_unmodelled_setting_at_its_default_is_accepted():
    load_text(changed("linger.ms: 5", "compression.type: none"))


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("linger.ms: 5", "acks: 1, enable.idempotence: true", "true with acks 1"),
        ("linger.ms: 5", "max.in.flight.requests.per.connection: 6", "1 to 5"),
        ("linger.ms: 5", "delivery.timeout.ms: 10", "at least 30005"),
        ("linger.ms: 5", "max.request.size: 512", "does not fit into max.request.size"),
        ("count: 3}", "count: 3, config: {session.timeout.ms: 100}}", "6000 to 1800000"),
        ("count: 3}", "count: 3, config: {heartbeat.interval.ms: 45000}}", "less than session"),
        ("count: 3}", "count: 3, name: shop-1}", "is a client already"),
        ("count: 3}", "count: 3, name: broker-1}", "is a server already"),
        ("max.ms: 30000", "max.ms: 400", "is above replica.lag.time.max.ms"),
        ("max.ms: 30000", "max.ms: 30000, broker.heartbeat.interval.ms: 5000", "at most half"),
        ("max.ms: 30000", "max.ms: 30000, offsets.topic.replication.factor: 7", "1 to 6"),
        ("racks: {a: 2, b: 2, c: 2}", "racks: {a: 2}\n  brokers: 6", "one of the two"),
    ],
)
def test_settings_that_exclude_each_other_are_refused(old, new, says):
    assert says in error_of(changed(old, new))


def test_idempotence_that_was_not_asked_for_is_silently_off():
    scenario = load_text(changed("linger.ms: 5", "acks: 1"))
    assert scenario.producers[0].config.flag("enable.idempotence") is False


def test_delivery_timeout_that_was_not_given_grows_with_the_request_timeout():
    scenario = load_text(changed("linger.ms: 5", "request.timeout.ms: 200000"))
    assert scenario.producers[0].config.number("delivery.timeout.ms") == 200_005


@pytest.mark.parametrize(
    ("override", "says"),
    [
        ("run.for=5", "has no unit"),
        ("run.forr=5s", "did you mean for?"),
        ("nonsense", "is not an assignment"),
        ("producers.7.rate=1/s", "no item '7'"),
        ("run.for.x=1", "has nothing below it"),
        ("run.seed=[", "not YAML"),
        ("run.seed=!!int 7", "YAML tag"),
    ],
)
def test_bad_override_is_told_as_such(override, says):
    message = error_of(GOOD, override)
    assert message.startswith(f"--set {override}")
    assert says in message
