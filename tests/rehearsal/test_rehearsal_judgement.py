"""The verdict from files: those of a simulated run, judged as a rehearsal, give its own verdict."""

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest

from sim.errors import SimulationError
from sim.ids import TopicPartition
from sim.protocol.metadata import records as mr
from sim.rehearsal import client_log
from sim.rehearsal.judgement import Facts, Judgement
from sim.rehearsal.metadata import WARM_UP, Cluster, read
from sim.scenario.loader import load_text
from sim.scenario.run.directory import RunDirectory
from sim.scenario.run.runner import run
from sim.trace.emit import Emit
from sim.trace.schema import BY_NAME
from sim.units import EPOCH_MS, SECOND

ZERO_US = EPOCH_MS * 1_000
FROM_CLIENTS = (
    "client_batches", "reads", "positions", "commits", "assignments", "revocations",
    "committed_readers", "transaction_outcomes", "transaction_records",
)  # fmt: skip
UNKNOWN = ("producer_id", "producer_epoch")
"""Columns of transaction_outcomes that the interface of a client does not say."""
COMMIT_US = 50_000
"""25 ms of linger and a round trip of the quorum, with room for its scheduling."""
INSTANTS = ("t_us", "created_us", "begun_us")

SCENARIO = """
claim: A small run with a crash, whose acknowledged tail is lost, and transactions.
cluster:
  brokers: 3
  controllers: 3
  config: {broker.session.timeout.ms: 3000, broker.heartbeat.interval.ms: 1000}
topics:
  orders: {partitions: 1, replication.factor: 3, config: {min.insync.replicas: 1}}
  sales: {partitions: 2, replication.factor: 3, config: {min.insync.replicas: 2}}
producers:
  - {name: shop, topic: orders, rate: 400/s, record.size: 100B, config: {acks: 1}}
  - name: till
    topic: sales
    rate: 100/s
    record.size: 100B
    keys: uniform
    transaction: {records: 20, abort: 20%}
    config: {transactional.id: till}
consumers:
  - {group: billing, topics: [sales], config: {isolation.level: read_committed,
     auto.offset.reset: earliest}}
faults:
  - {at: 2s, do: delay, between: [leader of orders-0], and: [all brokers], one-way: true,
     by: 50ms, for: 4s}
  - {at: 3s, do: crash, target: leader of orders-0, for: 4s}
run: {for: 12s, then: heal and drain, seed: 3}
expect: {lost_acked: at least 1}
"""


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    """The simulated run, and its scenario."""
    scenario = load_text(SCENARIO, "small.yaml")
    out = tmp_path_factory.mktemp("simulated") / "run"
    return scenario, run(scenario, out=out)


def table(result, name):
    return pq.read_table(result.directory / "trace" / name).to_pylist()


def as_text(column, value):
    if column in UNKNOWN:
        return "-1"
    if isinstance(value, list):
        return ",".join(map(str, value))
    return str(value + ZERO_US if column in INSTANTS and value >= 0 else value)


def as_clients_write(result, file):
    """The rows that clients know, as our Java program writes them."""
    with file.open("w") as out:
        for name in FROM_CLIENTS:
            for row in table(result, name):
                texts = [name]
                texts += [as_text(column, value) for column, value in row.items()]
                out.write("\t".join(texts) + "\n")
    return file


def directories(scenario, servers, root):
    return {spec.node: (root / "disks" / spec.name / "data-0",) for spec in servers}


def judged(simulated, tmp_path, disks):
    """The verdict from the files of a simulated run; node states and faults as it had them."""
    scenario, result = simulated
    controllers = [
        paths[0] for paths in directories(scenario, scenario.cluster.controllers, disks).values()
    ]
    rows = [
        (row["t_us"], Emit(name, tuple(list(row.values())[1:])))
        for name in ("node_states", "faults")
        for row in table(result, name)
    ]
    facts = Facts(
        zero_us=ZERO_US,
        end_us=result.verdict["end_us"],
        complete=True,
        cluster=read(controllers, ZERO_US),
        brokers=directories(scenario, scenario.cluster.brokers, disks),
        logs=[as_clients_write(result, tmp_path / "clients.tsv")],
        rows=rows,
        reports=(),
        instants=frozenset(),
    )
    directory = RunDirectory(tmp_path / "judged", force=False)
    try:
        return Judgement(scenario, 3, directory, facts, {"real": True}).conclude()
    finally:
        directory.release()


def test_the_files_of_a_simulated_run_give_its_own_verdict(simulated, tmp_path):
    _, result = simulated
    found = judged(simulated, tmp_path, result.directory)
    assert result.verdict["records"]["lost_acked"] > 0
    assert result.verdict["records"]["aborted"] > 0
    for name in ("records", "topics", "partitions", "failed_by_error", "latency_us", "readers"):
        assert found.verdict[name] == result.verdict[name], name
    assert found.held is result.held is True
    assert found.verdict["answer"]["lost"]["size"] == result.verdict["answer"]["lost"]["size"]


def test_availability_and_fault_windows_are_those_of_the_simulated_run(simulated, tmp_path):
    """But for the time between a metadata record's stamp and its commit (append.linger.ms)."""
    _, result = simulated
    found = judged(simulated, tmp_path, result.directory)
    theirs, ours = result.verdict["availability"], found.verdict["availability"]
    assert ours["produce_max_us"] == theirs["produce_max_us"] > SECOND
    assert ours["partitions"].keys() == theirs["partitions"].keys()
    assert abs(ours["offline_max_us"] - theirs["offline_max_us"]) <= COMMIT_US
    for mine, other in zip(
        found.verdict["windows"]["faults"], result.verdict["windows"]["faults"], strict=True
    ):
        assert mine["from_us"] == other["from_us"]
        assert abs(mine["to_us"] - other["to_us"]) <= COMMIT_US


def test_a_batch_that_is_missing_on_the_disk_of_the_leader_is_found_lost(simulated, tmp_path):
    _, result = simulated
    disks = tmp_path / "copy"
    shutil.copytree(result.directory / "disks", disks / "disks")
    last = table(result, "partition_changes")
    leader = [row["leader"] for row in last if row["topic"] == "sales" and row["partition"] == 0][
        -1
    ]
    (log,) = sorted((disks / f"disks/broker-{leader}/data-0/sales-0").glob("*.log"))
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    found = judged(simulated, tmp_path, disks)
    lost = found.verdict["topics"]["sales"]["lost_acked"]
    assert lost > result.verdict["topics"]["sales"]["lost_acked"] == 0
    assert not found.verdict["damaged_batches"]


def test_a_batch_whose_bytes_are_damaged_is_named_and_not_counted(simulated, tmp_path):
    _, result = simulated
    disks = tmp_path / "copy"
    shutil.copytree(result.directory / "disks", disks / "disks")
    (log,) = sorted((disks / "disks/broker-1/data-0/orders-0").glob("*.log"))
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)
    found = judged(simulated, tmp_path, disks)
    assert found.verdict["damaged_batches"] == ["broker-1/orders-0@0"]


def test_the_metadata_log_tells_every_committed_change_of_a_partition(simulated):
    scenario, result = simulated
    paths = directories(scenario, scenario.cluster.controllers, result.directory)
    cluster = read([path[0] for path in paths.values()], ZERO_US)
    columns = BY_NAME["partition_changes"].column_names[1:]
    ours = [
        dict(zip(columns, emit.row, strict=True))
        for _, emit in cluster.rows
        if emit.table == "partition_changes"
    ]
    theirs = [dict(row) for row in table(result, "partition_changes")]
    for row in theirs:
        del row["t_us"]
    assert ours == theirs
    assert any(row["leader_epoch"] > 0 for row in ours)


def test_the_metadata_log_tells_registrations_and_who_led_in_each_epoch(simulated):
    scenario, result = simulated
    paths = directories(scenario, scenario.cluster.controllers, result.directory)
    cluster = read([path[0] for path in paths.values()], ZERO_US)
    ours = [emit.row[1:] for _, emit in cluster.rows if emit.table == "broker_states"]
    theirs = [(r["broker"], r["state"], r["broker_epoch"]) for r in table(result, "broker_states")]
    assert ours == theirs
    assert set(cluster.serving.values()) == {True}
    orders = TopicPartition("orders", 0)
    assert cluster.leaders[orders, 0] != cluster.leaders[orders, 1]
    assert cluster.controller in {spec.node for spec in scenario.cluster.controllers}


def test_what_a_minority_of_the_controllers_has_is_not_settled(simulated, tmp_path):
    scenario, result = simulated
    shutil.copytree(result.directory / "disks", tmp_path / "disks")
    paths = [p[0] for p in directories(scenario, scenario.cluster.controllers, tmp_path).values()]
    whole = read(paths, ZERO_US)
    for path in paths[:2]:
        (log,) = (path / "__cluster_metadata-0").glob("*.log")
        log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])
    half = read(paths, ZERO_US)
    assert 0 < len(half.rows) < len(whole.rows)
    assert half.rows == whole.rows[: len(half.rows)]


def test_a_line_that_is_no_row_of_a_table_is_refused_with_its_place(tmp_path):
    file = tmp_path / "clients.tsv"
    file.write_text("committed_readers\t5000000\treader\tbilling\nnonsense\t1\n")
    with pytest.raises(SimulationError, match=r"clients\.tsv: line 2 is no row"):
        list(client_log.rows(file, 0))
    file.write_text("committed_readers\tsoon\treader\tbilling\n")
    with pytest.raises(SimulationError, match="line 1"):
        list(client_log.rows(file, 0))


def test_instants_of_a_client_are_counted_from_the_zero_of_the_scenario(tmp_path):
    file = tmp_path / "clients.tsv"
    values = ["shop", 0, "orders", 0, 7, 2, 300, -1, 1_000_500, -1, -1, 0, "ok", "NONE", 9, -1, -1]
    file.write_text("\t".join(map(str, ["client_batches", 1_002_000, *values, "1500,1400"])) + "\n")
    [(at, emit)] = client_log.rows(file, 1_000_000)
    row = dict(zip(BY_NAME["client_batches"].column_names[1:], emit.row, strict=True))
    assert (at, row["created_us"], row["first_sent_us"]) == (2_000, 500, -1)
    assert row["latency_us"].dtype == np.int32
    assert row["latency_us"].tolist() == [1_500, 1_400]


def test_a_judged_directory_is_one_of_a_run(simulated, tmp_path):
    _, result = simulated
    judged(simulated, tmp_path, result.directory)
    card = json.loads((tmp_path / "judged/run.json").read_text())
    assert card["real"] is card["complete"] is True
    assert card["rows"]["client_batches"] == len(table(result, "client_batches"))
    assert (tmp_path / "judged/trace/appends").is_dir()


def test_there_are_no_rows_of_the_topic_that_the_warm_up_has():
    found = Cluster()
    for name in (WARM_UP, "orders"):
        found.apply(mr.TopicRecord(name, f"id of {name}"), -9)
        found.apply(mr.PartitionRecord(0, f"id of {name}", (1,), (1,), 1), -8)
        found.apply(mr.PartitionChangeRecord(0, f"id of {name}", leader=1), -7)
        found.apply(mr.RemoveTopicRecord(f"id of {name}"), -6)
    assert [at for at, _ in found.rows] == [-8, -7, -6]
    assert found.partitions == {}
