"""A real cluster goes on from metadata snapshots that a simulated one took, its log's head gone."""

import re

import pytest

from sim.inspect.dump import dump
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from tests.kafka.recovery import copied, values
from tests.scenarios.run_kit import Ran

pytestmark = pytest.mark.kafka

SNAPSHOTS = """
claim: A history long enough for snapshots of the metadata log.
cluster:
  brokers: 3
  controllers: 1
  config:
    metadata.log.max.snapshot.interval.ms: 7000
    metadata.log.segment.ms: 4000
    metadata.max.retention.bytes: 2000
topics:
  orders:
    partitions: 3
    replication.factor: 3
    config: {min.insync.replicas: 2, segment.bytes: 1048576}
  notes: {partitions: 2, replication.factor: 3}
producers:
  - {name: shop, topic: orders, count: 2, rate: 100/s, record.size: 200B, config: {acks: all}}
  - name: desk
    topic: notes
    rate: 20/s
    record.size: 60B
    keys: uniform
    config: {acks: 1, enable.idempotence: false}
consumers:
  - {group: billing, topics: [orders, notes], count: 2}
faults:
  - {at: 30s, do: crash, target: leader of orders-0, for: 40s}
run: {for: 80s, then: heal and drain, seed: 3}
expect: {lost_acked: 0}
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    out = tmp_path_factory.mktemp("snapshots") / "run"
    run(load_text(SNAPSHOTS, "snapshots.yaml"), out=out)
    return Ran(out)


def checkpoints(ran):
    return sorted((ran.directory / "disks").rglob("*.checkpoint"))


def metadata_start(directory):
    return min(int(path.name[:20]) for path in directory.glob("*.log"))


def test_kafkas_tool_reads_every_snapshot_as_ours_does(kafka, ran):
    files = checkpoints(ran)
    assert len(files) > 12
    theirs = kafka.Dumped(files, "--cluster-metadata-decoder")
    assert theirs.complaints == []
    ours = [line for file in files for line in dump(file, decoder="cluster-metadata")]
    assert theirs.lines == ours
    assert sum("SnapshotFooter" in line for line in ours) == len(files)


def test_bootstrap_checkpoint_is_as_kafkas_own_formatting_writes_it(kafka, ran, tmp_path):
    """But for the times."""
    cluster = kafka.Cluster({1: [tmp_path / "data"]}, tmp_path)
    cluster.format(1)
    moving = re.compile(r"(CreateTime|crc): \d+|^Dumping .*")
    theirs, ours = (
        [moving.sub("", line) for line in dump(path, decoder="cluster-metadata")]
        for path in (tmp_path / "data" / "bootstrap.checkpoint", checkpoints(ran)[-1])
    )
    assert ours == theirs
    assert sum("FEATURE_LEVEL_RECORD" in line for line in ours) > 2


def test_a_real_cluster_boots_on_them_and_serves_everything(kafka, ran, tmp_path):
    directories = copied(ran, tmp_path)
    for [directory] in directories.values():
        assert metadata_start(directory / "__cluster_metadata-0") > 0
    wanted = values(ran.directory / "disks" / "broker-1" / "data-0" / "orders-0")
    with kafka.Cluster(directories, tmp_path) as cluster:
        assert list(cluster.records(kafka.TopicPartition("orders", 0))) == wanted
    assert len(wanted) > 1_000


def test_a_real_node_does_not_start_when_the_snapshot_is_missing(kafka, ran, tmp_path):
    """The limit: with the head of the log gone, the snapshot is all that it has to go on."""
    directories = copied(ran, tmp_path, brokers=(1,))
    for path in (directories[1][0] / "__cluster_metadata-0").glob("*.checkpoint"):
        path.unlink()
    cluster = kafka.Cluster(directories, tmp_path)
    with pytest.raises(AssertionError, match="Inconsistent snapshot state"):
        cluster.__enter__()
