"""``kafka-dump-log`` reads every file of the shipped scenarios, and prints what ours prints."""

import shutil
from collections import deque

import pyarrow.parquet as pq
import pytest

from sim.inspect.dump import DumpOptions, dump, shown
from sim.inspect.dump_checks import Complaints
from sim.log.partition.reading import file_batches
from sim.scenario.loader import load
from sim.scenario.run.runner import run
from tests.scenarios.run_kit import SHIPPED

pytestmark = pytest.mark.kafka

COMPACTED = ("accounts-0", "accounts-1")
"""Partitions that the shipped scenarios compact."""

KINDS = (".log", ".index", ".timeindex", ".snapshot")


LARGE = ("quickstart", "acks-all-leader-crash", "acks1-leader-crash", "raft-leader-crash")
"""Kafka's tool needs minutes for each."""

PARAMETERS = [
    pytest.param(name, marks=[pytest.mark.slow] if name in LARGE else []) for name in SHIPPED
]


@pytest.fixture(scope="module", params=PARAMETERS)
def disks(request, tmp_path_factory, kafka):
    """The simulated disks after a shipped scenario."""
    out = tmp_path_factory.mktemp("dump") / request.param
    run(load(SHIPPED[request.param]), out=out)
    yield out / "disks"
    shutil.rmtree(out)


def files(disks, *kinds, topic=""):
    return [
        file
        for file in sorted(disks.rglob("*"))
        if file.suffix in kinds and file.parent.name.startswith(topic)
    ]


def ours(paths, **options):
    return [line for path in paths for line in dump(path, **options)]


def test_every_file_is_printed_alike_and_without_a_complaint(kafka, disks):
    paths = files(disks, *KINDS, ".txnindex")
    kinds = set(KINDS)
    restarts = pq.read_table(disks.parent / "trace" / "node_states").to_pylist()
    if not load(SHIPPED[disks.parent.name]).run.drain or not any(
        row["incarnation"] > 1 and row["node"].startswith("broker-") for row in restarts
    ):
        kinds.remove(".snapshot")  # no broker was stopped cleanly, or recovered its logs
    assert {path.suffix for path in paths} - {".txnindex"} == kinds
    dumped = kafka.Dumped(paths)
    assert dumped.complaints == []
    assert dumped.lines == ours(paths, print_data=False)


@pytest.mark.parametrize(
    ("topic", "option", "decoder"),
    [
        ("__cluster_metadata", "--cluster-metadata-decoder", "cluster-metadata"),
        ("__consumer_offsets", "--offsets-decoder", "offsets"),
        ("__transaction_state", "--transaction-log-decoder", "transaction-log"),
    ],
)
def test_internal_topics_are_decoded_alike(kafka, disks, topic, option, decoder):
    paths = [path for path in files(disks, ".log", topic=topic) if path.stat().st_size]
    if not paths:
        pytest.skip(f"this scenario leaves nothing in {topic}")
    dumped = kafka.Dumped(paths, option)
    assert dumped.complaints == []
    assert dumped.lines == ours(paths, print_data=True, decoder=decoder)
    assert not [line for line in dumped.lines if "Error" in line]


def test_every_record_is_reached_by_deep_iteration(kafka, disks):
    paths = files(disks, ".log")
    dumped = kafka.Dumped(paths, "--deep-iteration")
    complaints = Complaints()
    for path in paths:
        deque(shown(path, DumpOptions(deep=True), complaints), maxlen=0)
    # The tool complains of every gap, and gaps are what compaction leaves; of others none.
    # That a log does not begin at offset 0 is a gap to 4.3 and was none to 4.1.
    assert set(complaints.lines) <= set(dumped.complaints)
    headings = {line for line in dumped.complaints if not line.startswith(" ")}
    gaps = {f"Non-consecutive offsets in {path}" for path in paths if path.parent.name in COMPACTED}
    assert headings <= gaps
    records = sum(batch.record_count for path in paths for _, batch in file_batches(path))
    assert sum(line.startswith("| offset:") for line in dumped.lines) == records > 0


# -- what the judge says of a defect ---------------------------------------------------------------


@pytest.fixture(scope="module")
def partition(tmp_path_factory, kafka):
    """A partition of an idempotent producer, with every kind of file."""
    out = tmp_path_factory.mktemp("planted") / "run"
    run(load(SHIPPED["acks-all-leader-crash"]), out=out)
    [directory] = (out / "disks" / "broker-1").glob("*/orders-0")
    return directory


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


@pytest.mark.parametrize(
    ("suffix", "position", "complaint"),
    [
        (".log", -1, "isvalid: false"),
        (".index", 3, "Mismatches in"),
        (".index", 4, "NoSuchElementException"),  # beyond the end, whatever bytes lie there
        pytest.param(".timeindex", 7, "Found timestamp mismatch", marks=pytest.mark.slow),
        (".timeindex", 11, "indexed offsets are not found"),
        (".snapshot", -1, "corrupt"),
    ],
)
def test_planted_a_changed_byte_is_complained_of(
    kafka, partition, tmp_path, suffix, position, complaint
):
    copy = shutil.copytree(partition, tmp_path / "orders-0")
    paths = [path for path in sorted(copy.iterdir()) if path.suffix == suffix]
    assert kafka.Dumped(paths).complaints == []
    flip(paths[-1], position)
    complaints = kafka.Dumped(paths).complaints
    assert any(complaint in line for line in complaints), complaints
