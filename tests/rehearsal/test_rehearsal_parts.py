"""Parts of a rehearsal that need no Kafka: settings, names, loads, disks, processes, the clock."""

import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from sim.ids import TopicPartition
from sim.log.partition.reading import file_batches
from sim.log.store.checkpoints import RECOVERY_POINTS, encode_offsets
from sim.rehearsal import properties
from sim.rehearsal.clock import Clock
from sim.rehearsal.disks import (
    META,
    lose_unflushed,
    random_id,
    remove_replica,
    trim_indexes,
    wipe,
)
from sim.rehearsal.links import Addresses
from sim.rehearsal.loads import Loads, clients_of, instants_of, processes
from sim.rehearsal.noise import Sleeper
from sim.rehearsal.servers import RealBroker, RealProcess
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from sim.scenario.settings.registry import resolve

SERVERS = "broker-1:9092,broker-2:9092"
SCENARIO = """
claim: Something.
cluster:
  racks: {a: 2, b: 1}
  controllers: 1
  config: {replica.lag.time.max.ms: 5000}
topics:
  orders: {partitions: 2, replication.factor: 2}
producers:
  - {name: shop, topic: orders, rate: 30/s, record.size: 100B, config: {acks: 1}}
  - {name: till, topic: orders, rate: 20/s, record.sizes: {values: {100B: 50%, 200B: 50%}},
     keys: uniform, arrivals: poisson, rack: a, transaction: {records: 5, abort: 10%},
     config: {transactional.id: till}}
consumers:
  - {group: billing, topics: [orders], count: 2, processing: 1ms, commits: sync,
     config: {group.instance.id: reader}}
faults:
  - {at: 1s, do: load-surge, target: shop, factor: 3, for: 1s}
run: {for: 5s, then: heal and drain, seed: 9}
"""


@pytest.fixture(scope="module")
def scenario():
    return load_text(SCENARIO, "parts.yaml")


@pytest.fixture
def addresses(scenario):
    return Addresses(
        [spec.name for spec in scenario.cluster.servers], processes(clients_of(scenario))
    )


def parsed(text):
    return dict(line.split("=", 1) for line in text.splitlines())


def test_a_brokers_settings_are_those_off_kafkas_defaults_and_names_for_addresses(
    scenario, addresses, tmp_path
):
    spec = scenario.cluster.brokers[1]
    found = parsed(properties.server(scenario, spec, addresses, [tmp_path / "data-0"]))
    first, second = addresses.ports
    assert found == {
        **properties.OURS,
        "replica.lag.time.max.ms": "5000",
        "process.roles": "broker",
        "node.id": "2",
        "broker.rack": "a",
        "controller.quorum.voters": f"3001@controller-1:{second}",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "PLAINTEXT",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listeners": f"PLAINTEXT://broker-2:{first}",
        "log.dirs": str(tmp_path / "data-0"),
    }


def test_a_controller_has_no_listener_of_brokers(scenario, addresses, tmp_path):
    (spec,) = scenario.cluster.controllers
    found = parsed(properties.server(scenario, spec, addresses, [tmp_path]))
    assert found["process.roles"] == "controller"
    assert found["listeners"] == f"CONTROLLER://controller-1:{addresses.ports[1]}"
    assert "inter.broker.listener.name" not in found


def test_a_combined_server_listens_for_both():
    text = SCENARIO.replace("racks: {a: 2, b: 1}\n  controllers: 1", "brokers: 3\n  combined: 3")
    combined = load_text(text.replace("rack: a, ", ""), "parts.yaml")
    servers = combined.cluster.servers
    found = Addresses([spec.name for spec in servers], [])
    text = parsed(properties.server(combined, servers[0], found, []))
    first, second = found.ports
    assert text["process.roles"] == "broker,controller"
    assert text["listeners"] == f"PLAINTEXT://broker-1:{first},CONTROLLER://broker-1:{second}"


def test_each_node_has_names_that_lead_to_its_own_proxies(addresses):
    own = dict(reversed(line.split()[:2]) for line in addresses.hosts("broker-1").splitlines())
    other = dict(reversed(line.split()[:2]) for line in addresses.hosts("broker-2").splitlines())
    true = dict(reversed(line.split()[:2]) for line in addresses.hosts(None).splitlines())
    assert own["broker-1"] == true["broker-1"]
    assert len({own["controller-1"], other["controller-1"], true["controller-1"]}) == 3
    proxied = {(p["source"], p["target"]): (p["host"], p["to"]) for p in addresses.pairs()}
    assert proxied["broker-1", "controller-1"] == (own["controller-1"], true["controller-1"])
    assert ("broker-1", "broker-1") not in proxied
    assert ("broker-1", "clients") not in proxied


def test_clients_have_the_scenarios_settings_and_a_surge_counts(scenario, addresses, tmp_path):
    clients = clients_of(scenario)
    loads = Loads(scenario, scenario.faults, 9, SERVERS, tmp_path)
    assert {each.name: each.process for each in clients} == {
        "shop": "shop", "till": "clients-a", "billing-1": "clients", "billing-2": "clients",
    }  # fmt: skip
    found = {name: parsed(loads.write(name, clients).read_text()) for name in processes(clients)}
    shop, till, readers = found["shop"], found["clients-a"], found["clients"]
    assert (shop["client.0.acks"], shop["client.0.config.acks"]) == ("1", "1")
    assert till["client.0.index"] == "1"
    assert till["client.0.config.transactional.id"] == "till"
    assert till["client.0.transaction.records"] == "5"
    assert till["client.0.transaction.abort"] == "100000"
    assert readers["clients"] == "2"
    assert readers["client.1.config.group.id"] == "billing"
    assert readers["client.1.config.group.instance.id"] == "reader-2"
    assert readers["client.0.config.enable.auto.commit"] == "false"
    assert (readers["client.0.commits"], readers["client.0.processing"]) == ("sync", "1000")
    during = instants_of(tmp_path, "shop")
    assert np.count_nonzero((during >= 1_000_000) & (during < 2_000_000)) == 90


def test_records_are_meant_for_the_instants_of_the_simulated_run(scenario, addresses, tmp_path):
    clients = clients_of(scenario)
    loads = Loads(scenario, scenario.faults, 9, SERVERS, tmp_path)
    for name in processes(clients):
        loads.write(name, clients)
    result = run(scenario, out=tmp_path / "run")
    rows = pq.read_table(result.directory / "trace" / "client_batches").to_pylist()
    for producer in ("shop", "till"):
        simulated = sorted(
            row["t_us"] - late
            for row in rows
            if row["producer"] == producer
            for late in row["latency_us"]
        )
        assert instants_of(tmp_path, producer).tolist() == simulated


def test_classes_have_their_whole_names_which_java_loads():
    """A scenario may say ``range``; Kafka's consumer of 4.3.1 ends with ClassNotFoundException."""
    consumer = resolve("consumer", {"partition.assignment.strategy": "cooperative-sticky, range"})
    classes = properties.given("consumer", consumer)["partition.assignment.strategy"].split(",")
    assert classes == [
        f"org.apache.kafka.clients.consumer.{name}Assignor"
        for name in ("CooperativeSticky", "Range")
    ]
    producer = resolve("producer", {"partitioner.class": "RoundRobinPartitioner"})
    assert properties.given("producer", producer) == {
        "partitioner.class": "org.apache.kafka.clients.producer.RoundRobinPartitioner"
    }
    remote = {"group.protocol": "consumer", "group.remote.assignor": "range"}
    assert properties.given("consumer", resolve("consumer", remote)) == remote, (
        "a name in Kafka, too"
    )


def test_values_are_escaped_as_java_reads_properties():
    text = properties.clients([{"config.x": " a\\b\nc", "name": "café"}])
    assert text == "clients=1\nclient.0.config.x=\\ a\\\\b\\nc\nclient.0.name=caf\\u00e9\n"


def test_ids_are_kafkas_and_never_begin_with_a_dash():
    ids = [random_id() for _ in range(500)]
    assert all(len(each) == 22 and not each.startswith("-") for each in ids)
    assert len(set(ids)) == len(ids)


def test_a_wiped_directory_is_empty_and_a_removed_replica_leaves_the_others(tmp_path):
    for name in ("orders-0", "orders-1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "00000000000000000000.log").write_bytes(b"x")
    (tmp_path / META).write_text("")
    assert remove_replica([tmp_path], TopicPartition("orders", 0))
    assert not remove_replica([tmp_path], TopicPartition("orders", 0))
    assert (tmp_path / "orders-1").is_dir()
    assert wipe(tmp_path) == 2
    assert not list(tmp_path.iterdir())


ROLLING = """
claim: Segments roll.
cluster: {brokers: 1, controllers: 1}
topics:
  orders: {partitions: 1, replication.factor: 1, config: {segment.bytes: 1048576}}
  bills: {partitions: 1, replication.factor: 1}
producers:
  - {name: shop, topic: orders, rate: 1000/s, record.size: 1000B}
  - {name: till, topic: bills, rate: 100/s, record.size: 100B}
run: {for: 2500ms, then: stop, seed: 1}
"""


def test_without_power_a_log_keeps_what_lies_below_its_recovery_point_and_older_segments(tmp_path):
    run(load_text(ROLLING, "rolling.yaml"), out=tmp_path / "run")
    directory = tmp_path / "run" / "disks" / "broker-1" / "data-0"
    before = {path: path.read_bytes() for path in directory.glob("*/*.log")}
    *older, newest = sorted(path for path in before if path.parent.name == "orders-0")
    assert len(older) >= 2
    offsets = [batch.base_offset for _, batch in file_batches(newest)]
    middle = len(offsets) // 2
    points = {TopicPartition("orders", 0): offsets[middle]}
    (directory / RECOVERY_POINTS).write_bytes(encode_offsets(points))

    lost = lose_unflushed(directory, frozenset({"bills"}))

    assert [batch.base_offset for _, batch in file_batches(newest)] == offsets[:middle]
    assert all(path.read_bytes() == before[path] for path in older)
    (bills,) = (path for path in before if path.parent.name == "bills-0")
    assert bills.read_bytes() == before[bills] != b""
    others = [path for path in before if path not in {*older, newest, bills}]
    assert others
    assert not any(path.read_bytes() for path in others)
    kept = sum(path.stat().st_size for path in before)
    assert lost == sum(map(len, before.values())) - kept > 0


@pytest.mark.parametrize(
    ("name", "content", "kept"),
    [
        ("0.index", b"\0\0\0\1\0\0\1\0", 8),  # its last byte is a zero of the entry's
        ("0.timeindex", b"\0" * 7 + b"\5\0\0\0\2", 12),
        ("0.index", b"", 0),
        ("0.timeindex", (b"\0" * 7 + b"\5\0\0\0\2") * 9_000, 108_000),
    ],
)
def test_the_space_that_a_broker_keeps_in_its_indexes_is_cut(tmp_path, name, content, kept):
    (tmp_path / "orders-0").mkdir()
    file = tmp_path / "orders-0" / name
    with file.open("wb") as out:
        out.write(content)
        out.truncate(10 << 20)
    (tmp_path / "orders-0" / "0.log").write_bytes(b"batch" + bytes(100))
    trim_indexes(tmp_path)
    assert file.read_bytes() == content.ljust(kept, b"\0")
    assert (tmp_path / "orders-0" / "0.log").stat().st_size == 105


@pytest.fixture
def process(tmp_path):
    notes = []
    code = "import time; print('runs', flush=True); time.sleep(600)"
    made = RealProcess(
        "broker-1",
        [sys.executable, "-c", code],
        tmp_path / "log",
        lambda *note: notes.append(note),
    )
    yield made, notes
    made.kill()


def wait(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]


def test_a_process_is_killed_and_started_again(process):
    made, notes = process
    made.start()
    first = made.pid
    made.crash()
    assert not made.running
    made.start()
    assert made.pid not in {-1, first}
    assert notes == [
        ("broker-1", s, n) for s, n in (("started", 1), ("crashed", 1), ("started", 2))
    ]
    assert made.exits == []


def test_a_process_is_paused_and_resumed(process):
    made, notes = process
    made.start()
    wait(lambda: "runs" in made.tail())
    made.pause()
    wait(lambda: state_of(made.pid) == "T")
    made.resume()
    wait(lambda: state_of(made.pid) != "T")
    assert [state for _, state, _ in notes] == ["started", "paused", "resumed"]


def test_a_paused_process_can_be_killed(process):
    made, _ = process
    made.start()
    made.pause()
    made.crash()
    assert (made.running, made.paused) == (False, False)


def test_an_end_in_order_is_told_from_one_that_nobody_ordered(process):
    made, notes = process
    made.start()
    wait(lambda: "runs" in made.tail())
    made.shut_down()
    wait(lambda: made.look() or not made.running)
    assert (notes[-1], made.exits) == (("broker-1", "stopped", 1), [])
    made.command = [sys.executable, "-c", "raise SystemExit(3)"]
    made.start()
    wait(lambda: made.look() or not made.running)
    assert notes[-1] == ("broker-1", "crashed", 2)
    assert made.exits == ["broker-1 ended on its own, code 3"]


def test_a_replica_is_removed_while_its_broker_is_down(tmp_path):
    (tmp_path / "orders-0").mkdir()
    notes = []
    broker = RealBroker(
        "broker-1", ["sleep", "600"], tmp_path / "log", lambda *note: notes.append(note[1]),
        node=1, directories=[tmp_path],
    )  # fmt: skip
    broker.start()
    try:
        assert broker.damage_replica("remove", TopicPartition("orders", 0), "")
        assert notes == ["started", "crashed", "started"]
        assert not (tmp_path / "orders-0").exists()
        with pytest.raises(AssertionError, match="refused"):
            broker.damage_replica("tear", TopicPartition("orders", 0), "")
    finally:
        broker.kill()


def test_calls_are_made_in_the_order_of_their_instants_and_none_too_early():
    clock = Clock()
    clock.begin_in(0)
    made = []
    for at in (60_000, 20_000, 40_000):
        clock.call_at(at, lambda at=at: made.append((at, clock.now())))
    clock.call_at(10**12, lambda: made.append("far"))
    clock.advance(80_000, lambda: False)
    assert [at for at, _ in made] == [20_000, 40_000, 60_000]
    assert all(now >= at for at, now in made)
    assert clock.now() >= 80_000


def test_a_wait_ends_when_it_is_to_end_early():
    clock = Clock()
    clock.begin_in(0)
    clock.advance(10**12, lambda: clock.now() > 50_000)
    assert clock.now() < 10**11


def test_a_sleeper_says_how_late_it_woke():
    begun = time.monotonic()
    sleeper = Sleeper()
    sleeper.start()
    time.sleep(0.2)
    found = sleeper.report()
    assert 0 < found["samples"] <= (time.monotonic() - begun) / 0.01
    assert 0 <= found["p50_us"] <= found["p99_us"] <= found["max_us"]
    assert Sleeper().report() == {"samples": 0}
