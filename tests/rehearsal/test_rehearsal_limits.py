"""What cannot be had is refused before anything starts: which thing, and what is possible."""

import pytest

from sim.errors import SimulationError
from sim.faults.registry import KINDS
from sim.rehearsal import apache, limits
from sim.rehearsal.loads import clients_of
from sim.rehearsal.metadata import WARM_UP
from sim.scenario.loader import load, load_text
from tests.scenarios.run_kit import SHIPPED

PLAIN = """
claim: Something.
cluster: {brokers: 3, controllers: 3}
topics:
  orders: {partitions: 1, replication.factor: 3}
producers:
  - {name: shop, topic: orders, rate: 100/s, record.size: 100B}
consumers:
  - {name: reader, group: billing, topics: [orders]}
run: {for: 20s}
"""


def check(text, scale=1.0, sets=()):
    scenario = limits.scaled(load_text(text, "s.yaml", sets), scale)
    limits.check(scenario, clients_of(scenario), scale)


def refusal(text, scale=1.0, sets=()):
    with pytest.raises(SimulationError) as caught:
        check(text, scale, sets)
    return str(caught.value)


def with_fault(line):
    return f"{PLAIN}faults:\n  - {line}\n"


def test_an_ordinary_scenario_can_be_rehearsed():
    check(PLAIN)


def test_the_topic_of_the_warm_up_is_the_rehearsal_s_own():
    said = refusal(PLAIN.replace("orders", WARM_UP))
    assert f"topics.{WARM_UP}: the rehearsal's own topic; choose another name" in said


@pytest.mark.parametrize("name", ["acks1-leader-crash", "separate-roles-crash", "transactions"])
def test_shipped_scenarios_can_be_rehearsed_at_a_tenth_of_their_rates(name):
    scenario = limits.scaled(load(SHIPPED[name]), 0.1)
    limits.check(scenario, clients_of(scenario), 0.1)


@pytest.mark.parametrize(
    "line",
    [
        "{at: 1s, do: full-disk, target: broker-1, for: 5s}",
        "{at: 1s, do: slow-disk, target: broker-1, factor: 50, for: 5s}",
        "{at: 1s, do: clock-jump, target: broker-1, by: 5s}",
        "{at: 1s, do: loss, between: [broker-1], ratio: 0.05, for: 5s}",
    ],
)
def test_a_fault_that_needs_root_is_refused_by_its_name_with_what_is_possible(line):
    said = refusal(with_fault(line))
    kind = line.partition("do: ")[2].partition(",")[0]
    assert f"faults[0]: do: {kind} cannot be had without root" in said
    assert "crash" in said
    assert "partition" in said


def test_the_faults_that_are_had_are_kinds_of_scenarios_and_not_all_of_them():
    possible = {kind.kind for kind in limits.FAULTS}
    assert possible < set(KINDS)
    assert all(KINDS[kind.kind] is kind for kind in limits.FAULTS)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{at: 1s, do: crash, target: shop, for: 5s}", "shop is a client"),
        ("{at: 1s, do: restart, target: reader}", "reader is a client"),
        ("{at: 1s, do: rolling-restart, target: all brokers, to: '4.3'}", "upgrades"),
        (
            "{at: 1s, do: delay, between: [broker-1], message: [FetchRequest], by: 1s, for: 5s}",
            "delays all that passes",
        ),
    ],
)
def test_parts_of_a_fault_that_cannot_be_had_are_refused(line, words):
    sets = ("cluster.kafka=4.2",) if "to:" in line else ()
    said = refusal(with_fault(line), sets=sets)
    assert "faults[0]" in said
    assert words in said


def test_a_power_loss_takes_all_that_a_real_broker_is_known_not_to_have_flushed():
    line = "{at: 1s, do: power-loss, target: broker-1, unflushed: lost, for: 5s}"
    check(with_fault(line))
    check(with_fault(line), sets=("topics.orders.config.flush.messages=1",))
    by_chance = refusal(with_fault(line.replace(" unflushed: lost,", "")))
    assert "faults[0].unflushed: found 'by chance'" in by_chance
    for setting in (
        "topics.orders.config.flush.messages=10",
        "topics.orders.config.flush.ms=100",
        "cluster.config.log.flush.interval.messages=1",
    ):
        name, _, value = setting.partition("=")
        assert f"found {name}: {value};" in refusal(with_fault(line), sets=(setting,))
    assert "shop is a client" in refusal(with_fault(line.replace("broker-1", "shop")))


def test_a_rack_with_clients_in_it_cannot_be_killed_and_one_without_can():
    racks = PLAIN.replace("brokers: 3,", "racks: {a: 2, b: 1},")
    text = f"{racks}faults:\n  - {{at: 1s, do: crash, target: rack a, for: 5s}}\n"
    check(text)
    said = refusal(text.replace("name: shop,", "name: shop, rack: a,"))
    assert "shop is a client" in said
    check(text.replace("name: shop,", "name: shop, rack: b,"))


def test_a_client_may_be_paused_and_then_has_a_process_of_its_own():
    text = with_fault("{at: 1s, do: pause, target: shop, for: 5s}")
    check(text)
    by_name = {client.name: client.process for client in clients_of(load_text(text, "s.yaml"))}
    assert by_name == {"shop": "shop", "reader": "clients"}


def test_too_many_records_a_second_are_refused_with_a_scale_that_fits():
    text = PLAIN.replace("100/s", "40000/s")
    said = refusal(text)
    assert "40,000 records a second; at most 3,000 here" in said
    scale = float(said.partition("--scale ")[2].partition(",")[0])
    assert 0.06 < scale <= 0.075
    check(text, scale)


def test_a_scale_that_was_given_counts_in_the_one_that_is_advised():
    text = PLAIN.replace("100/s", "40000/s")
    scale = float(refusal(text, 0.5).partition("--scale ")[2].partition(",")[0])
    assert 0.06 < scale <= 0.075


def test_too_many_bytes_are_refused_with_a_scale_that_fits():
    text = PLAIN.replace("100B", "200000B")
    said = refusal(text)
    assert "in all replicas; at most" in said
    check(text, float(said.partition("--scale ")[2].partition(",")[0]))


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("{for: 20s}", "{for: 2h}", "run.for"),
        ("brokers: 3, controllers: 3", "brokers: 20, controllers: 3", "at most 16 processes"),
        ("brokers: 3, controllers: 3", "brokers: 3, zookeeper: {}", "cluster.zookeeper"),
        ("brokers: 3, controllers: 3", "brokers: 3, replication: raft", "cluster.replication"),
        ("factor: 3}", "factor: 3, config: {cleanup.policy: compact}}", "compaction"),
        ("factor: 3}", "factor: 3, config: {retention.ms: 5000}}", "retention.ms: 5000"),
        ("factor: 3}", "factor: 3, config: {retention.bytes: 5000}}", "retention.bytes"),
        ("rate: 100/s", "clients: 4", "closed loops"),
        ("topics: [orders]}", "topics: [orders], group.type: share}", "share groups"),
        (
            "run: {for: 20s}",
            "run: {for: 20s}\nexpect: {consumers.ended: 0}",
            "expect.consumers.ended: not rehearsed",
        ),
    ],
)
def test_a_part_of_a_scenario_that_is_not_rehearsed_is_refused(old, new, words):
    text = PLAIN.replace(old, new)
    assert text != PLAIN
    assert words in refusal(text)


def test_every_problem_is_told_at_once():
    said = refusal(PLAIN.replace("{for: 20s}", "{for: 2h}").replace("rate: 100/s", "clients: 4"))
    assert "run.for" in said
    assert "closed loops" in said


def test_a_behaviour_of_another_release_is_refused():
    said = refusal(PLAIN + "behaviours: {recovery: isr}\n")
    assert "behaviours.recovery: found 'isr'; a real Kafka has" in said
    assert "('elr'); leave it out" in said


@pytest.mark.parametrize("version", list(apache.RELEASES))
def test_every_release_has_the_behaviours_of_its_version(version):
    check(PLAIN.replace("brokers: 3,", f"kafka: '{version}', brokers: 3,"))


def test_another_system_than_linux_is_refused_with_what_to_do(monkeypatch):
    monkeypatch.setattr("sim.rehearsal.limits.sys.platform", "darwin")
    assert "found darwin; a rehearsal needs Linux" in refusal(PLAIN)


def test_a_machine_without_memory_is_refused(monkeypatch):
    monkeypatch.setattr(limits, "available_bytes", lambda: 1 << 30)
    assert "of memory, and this machine has" in refusal(PLAIN)


def test_scaling_scales_rates_and_bursts_and_leaves_at_least_one_record():
    text = PLAIN.replace(
        "rate: 100/s", "rate: 100/s, arrivals: burst, burst: {on: 1s, off: 1s, peak: 1000/s}"
    )
    (spec,) = limits.scaled(load_text(text, "s.yaml"), 0.5).producers
    assert (spec.rate_per_s, spec.burst.peak_per_s) == (50, 500)
    (spec,) = limits.scaled(load_text(PLAIN, "s.yaml"), 0.0001).producers
    assert spec.rate_per_s == 1


def test_missing_programs_are_named_with_what_to_install(monkeypatch):
    monkeypatch.setattr(apache.shutil, "which", lambda name: None if name == "mvn" else name)
    with pytest.raises(SimulationError, match=r"needs mvn, not found .*--kafka DIR"):
        apache.found("4.3", None)


def test_a_version_that_is_not_rehearsed_is_refused_with_those_that_are():
    with pytest.raises(SimulationError, match=r"found '2\.8'; .*3\.9, 4\.0, 4\.1, 4\.2, 4\.3"):
        apache.found("2.8", None)


def test_an_unpacked_kafka_of_another_version_is_refused(tmp_path):
    (tmp_path / "libs").mkdir()
    with pytest.raises(SimulationError, match="no unpacked Kafka"):
        apache.found("4.3", tmp_path)
    (tmp_path / "libs" / "kafka-clients-4.1.2.jar").write_text("")
    with pytest.raises(SimulationError, match=r"has Kafka 4\.1\.2, and cluster\.kafka is '4\.3'"):
        apache.found("4.3", tmp_path)
    assert apache.found("4.1", tmp_path).release == "4.1.2"
