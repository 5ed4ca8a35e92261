"""Apache Kafka reads our transactions: its tools the logs, its broker what lies in a directory."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from sim.hunting import sought
from sim.hunting.replay import recorded
from sim.inspect.dump import dump
from sim.log.producers.transaction_index import ABORTED_ENTRY
from sim.scenario.loader import load_data
from tests.hunting.losing import losing_a_coordinators_log
from tests.kafka.recovery import copied
from tests.scenarios.run_kit import Ran

pytestmark = pytest.mark.kafka

NODES = Path(__file__).parents[1] / "nodes"


class History(NamedTuple):
    """One broker with committed, aborted and open transactions behind it."""

    directory: Path
    seen: dict[tuple[str, int], list[bytes]]
    transactions: int


@pytest.fixture(scope="module", params=[2, 0], ids=["kip890", "kip98"])
def history(request, tmp_path_factory):
    """Made by a process of its own: a client of the tests' is no subclass of a compiled class."""
    root = tmp_path_factory.mktemp("history")
    made = subprocess.run(
        [sys.executable, str(NODES / "transaction_history.py"), str(root), str(request.param)],
        env={**os.environ, "LOGQUAKE_PURE": "1", "PYTHONPATH": str(NODES.parents[1])},
        capture_output=True,
        check=False,
        text=True,
    )
    assert made.returncode == 0, made.stderr
    told = json.loads(made.stdout)
    seen = {(topic, place): [v.encode() for v in values] for topic, place, values in told["seen"]}
    return History(root / "broker-1" / "data-0", seen, told["transactions"])


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
    assert written == history.transactions > 10


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


def test_kafka_s_tool_finds_the_transaction_that_hangs_after_a_power_loss_and_ends_it(
    kafka, tmp_path
):
    """What a hunt calls hanging (KIP-664), of a topic that nobody reads."""
    scenario = load_data(losing_a_coordinators_log())
    stuck = recorded(scenario, 1, sought.parse("stuck"), tmp_path / "run")
    assert [finding.fingerprint for finding in stuck] == ["stuck: hanging-transaction"]
    assert "orders-0 is held at its last stable offset 0" in stuck[0].words
    with kafka.Cluster(copied(Ran(tmp_path / "run"), tmp_path / "real"), tmp_path) as cluster:
        server = cluster.servers[0]
        (hanging,) = found_hanging(kafka, server)
        assert hanging[:2] == ["orders", "0"]
        first = hanging[HANGING.index("StartOffset")]
        assert first == "0"
        place = ("--topic", "orders", "--partition", "0")
        transactions(kafka, server, "abort", *place, "--start-offset", first)
        assert found_hanging(kafka, server) == []


HANGING = [
    "Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset",
    "LastTimestamp", "Duration(min)",
]  # fmt: skip


def found_hanging(kafka, server):
    """Rows of what the tool finds; a simulated transaction is years old for it."""
    printed = transactions(kafka, server, "find-hanging", "--topic", "orders")
    lines = [line.split() for line in printed.splitlines()]
    return [line for line in lines[lines.index(HANGING) + 1 :] if line[:1] == ["orders"]]


def described(kafka, server, name):
    return transactions(kafka, server, "describe", "--transactional-id", name)


def transactions(kafka, server, *words):
    """What ``kafka-transactions.sh`` prints."""
    main = "org.apache.kafka.tools.TransactionsCommand"
    command = kafka.java(main, "--bootstrap-server", server, *words)
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
            if place[1] == 0 and len(found) >= 6:
                break
            if place[1] == 1 and len(found) >= 6 and consumer.position(partition) > 13:
                break
    finally:
        consumer.close()
    return found
