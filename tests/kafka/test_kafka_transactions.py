"""Apache Kafka reads our transactions: its tools the logs, its broker what lies in a directory."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sim.log.dump import dump
from sim.log.transaction_index import ABORTED_ENTRY

sys.path.insert(0, str(Path(__file__).parents[1] / "nodes"))
from transaction_cluster import (
    P0,
    P1,
    TransactionCluster,
    commit_offsets,
    raw_offsets,
)

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("kafka")]

ONE = (
    "transaction.state.log.replication.factor: 1, transaction.state.log.min.isr: 1, "
    "transaction.state.log.num.partitions: 3"
)


@pytest.fixture(scope="module", params=[2, 0], ids=["kip890", "kip98"])
def history(request, tmp_path_factory):
    """One broker with committed, aborted and open transactions behind it; stopped in good order."""
    root = tmp_path_factory.mktemp("history")
    cluster = TransactionCluster(root, brokers=1, version=request.param, config=ONE)
    cluster.version = request.param
    ids = cluster.init("done")
    for number, committed in enumerate((True, False, True)):
        values = [f"{number}{letter}".encode() for letter in "abc"]
        ids = transact(cluster, "done", ids, values, 3 * number, committed=committed)
    if request.param:
        assert commit_offsets(cluster, "done", "g", ids, [(P0, 5)]) == 0
        cluster.end("done", ids)
        cluster.settled("done")
        assert raw_offsets(cluster, "g", (P0,)).offsets[0][1] == 5
    # Five seconds from its start, by anyone's clock: whoever boots here aborts it.
    ids = cluster.init("open", timeout=5_000_000)
    if not request.param:
        cluster.add("open", ids, P1)
    assert cluster.produce("open", ids, 0, partition=P1, value=b"never").error == 0
    cluster.seen = {place: cluster.values(place) for place in (P0, P1)}
    assert [len(seen) for seen in cluster.seen.values()] == [6, 6]
    cluster.shut_down()
    cluster.directory = root / "broker-1" / "data-0"
    return cluster


def transact(cluster, name, ids, values, first, *, committed):
    if cluster.version == 0:
        cluster.add(name, ids, P0, P1)
    base = first if cluster.version == 0 else 0
    for place in (P0, P1):
        for number, value in enumerate(values):
            result = cluster.produce(name, ids, base + number, partition=place, value=value)
            assert result.error == 0, result
    answer = cluster.end(name, ids, committed=committed)
    cluster.settled(name)
    return (answer.producer_id, answer.producer_epoch) if cluster.version else ids


def test_the_dump_tool_prints_our_transactions_as_we_do(kafka, history):
    suffixes = (".log", ".index", ".timeindex", ".snapshot", ".txnindex")
    paths = [p for p in sorted(history.directory.glob("orders-*/*")) if p.suffix in suffixes]
    indexes = [p for p in paths if p.suffix == ".txnindex"]
    assert sum(p.stat().st_size // ABORTED_ENTRY.size for p in indexes) == 2
    dumped = kafka.Dumped(paths, "--print-data-log")
    assert dumped.complaints == []
    assert dumped.lines == [line for p in paths for line in dump(p, print_data=True)]
    assert sum("endTxnMarker: COMMIT" in line for line in dumped.lines) == 4
    assert sum("endTxnMarker: ABORT" in line for line in dumped.lines) == 2


def test_the_dump_tool_decodes_the_transaction_log(kafka, history):
    paths = [
        p for p in sorted(history.directory.glob("__transaction_state-*/*.log")) if p.stat().st_size
    ]
    dumped = kafka.Dumped(paths, "--transaction-log-decoder")
    assert dumped.complaints == []
    ours = [line for p in paths for line in dump(p, print_data=True, decoder="transaction-log")]
    assert dumped.lines == ours
    assert not [line for line in dumped.lines if "Error" in line]
    written = sum("transactionalId" in line for line in dumped.lines)
    assert written == len(history.rows["transactions"]) > 10


def test_a_real_broker_ends_what_is_open_and_serves_the_same_committed_records(
    kafka, history, tmp_path
):
    copy = Path(shutil.copytree(history.directory, tmp_path / "data"))
    with kafka.Cluster({1: [copy]}, tmp_path) as cluster:
        server = cluster.servers[0]
        done = described(kafka, server, "done")
        assert "CompleteCommit" in done, done
        for place, wanted in history.seen.items():
            assert committed_values(kafka, server, place) == wanted
        assert "CompleteAbort" in described(kafka, server, "open")


def described(kafka, server, name):
    command = kafka.java(
        "org.apache.kafka.tools.TransactionsCommand",
        "--bootstrap-server", server, "describe", "--transactional-id", name,
    )  # fmt: skip
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def committed_values(kafka, server, place):
    """All that a reader of committed data gets; waits until nothing is open."""
    consumer = kafka.KafkaConsumer(
        bootstrap_servers=[server],
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    partition = kafka.TopicPartition(*place)
    found = []
    try:
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        for _ in range(60):
            polled = consumer.poll(1_000, max_records=10_000).get(partition, [])
            found += [record.value for record in polled]
            if place == P0 and len(found) >= 6:
                break
            if place == P1 and len(found) >= 6 and consumer.position(partition) > 13:
                break
    finally:
        consumer.close()
    return found
