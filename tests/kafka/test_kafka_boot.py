"""Real brokers boot on simulated disks, serve what our checker says survives, and recover alike."""

import shutil
from collections import defaultdict

import pytest

from sim.log.reading import file_batches
from sim.scenario.loader import load, load_text
from sim.scenario.run import run
from tests.kafka.recovery import recovered_ends
from tests.scenarios.run_kit import SHIPPED, Ran

pytestmark = [pytest.mark.kafka, pytest.mark.xdist_group("kafka")]

HISTORY = """
claim: A history for a real cluster to go on from.
cluster: {brokers: 3, controllers: 1}
topics:
  orders:
    partitions: 3
    replication.factor: 3
    config: {min.insync.replicas: 2, segment.bytes: 1048576}
  notes: {partitions: 2, replication.factor: 3}
producers:
  - {name: shop, topic: orders, count: 2, rate: 4000/s, record.size: 200B, config: {acks: all}}
  - name: desk
    topic: notes
    rate: 500/s
    record.size: 60B
    keys: uniform
    config: {acks: 1, enable.idempotence: false}
consumers:
  - {group: billing, topics: [orders, notes], count: 2}
"""

CALM = (
    HISTORY
    + """
faults:
  - {at: 4s, do: crash, target: leader of orders-0, for: 12s}
run: {for: 20s, then: heal and drain, seed: 3}
expect: {lost_acked: 0}
"""
)
"""A leader changes, its broker comes back, everything is read and committed."""

DARK = (
    HISTORY
    + """
faults:
  - {at: 4s, do: crash, target: leader of orders-0, for: 8s}
  - {at: 19990ms, do: power-loss, target: all brokers}
run: {for: 20s, then: stop, seed: 3}
expect: {}
"""
)
"""All power is lost just before the end: the disks stay as the power loss left them."""


def simulated(text, out):
    run(load_text(text, "history.yaml"), out=out)
    return Ran(out)


def copied(ran, to, brokers=(1, 2, 3)):
    """The brokers' log directories, to be changed by real brokers."""
    copies = {}
    for node in brokers:
        copy = shutil.copytree(ran.directory / "disks" / f"broker-{node}", to / str(node))
        copies[node] = sorted(copy.iterdir())
    return copies


def values(directory):
    """Offset and value of every record of a partition directory."""
    return [
        (record.offset, record.value)
        for log in sorted(directory.glob("*.log"))
        for _, batch in file_batches(log)
        if not batch.is_control
        for record in batch.records()
    ]


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    return simulated(CALM, tmp_path_factory.mktemp("calm") / "run")


@pytest.fixture(scope="module")
def cluster(calm, kafka, tmp_path_factory):
    """A real cluster that goes on from there."""
    work = tmp_path_factory.mktemp("real")
    with kafka.Cluster(copied(calm, work), work) as started:
        yield started


PARTITIONS = [("orders", 0), ("orders", 1), ("orders", 2), ("notes", 0), ("notes", 1)]


@pytest.mark.parametrize(("topic", "partition"), PARTITIONS)
def test_a_consumer_reads_from_a_real_cluster_what_lies_on_the_simulated_disks(
    kafka, cluster, calm, topic, partition
):
    wanted = values(calm.directory / "disks" / "broker-1" / "data-0" / f"{topic}-{partition}")
    read = list(cluster.records(kafka.TopicPartition(topic, partition)))
    assert read == wanted
    assert len(read) > 1_000


def test_a_real_cluster_serves_as_many_records_as_the_checker_says_survive(kafka, cluster, calm):
    served = defaultdict(int)
    for topic, partition in PARTITIONS:
        records = cluster.records(kafka.TopicPartition(topic, partition))
        served[topic] += len({value for _, value in records})
    told = {name: topic["survived"] for name, topic in calm.verdict["topics"].items()}
    assert served == {topic: told[topic] for topic in served}
    assert sum(served.values()) == calm.records["survived"] == calm.records["acked"]


@pytest.mark.parametrize(("topic", "partition"), PARTITIONS)
def test_a_real_coordinator_knows_the_offsets_that_the_group_committed(
    kafka, cluster, calm, topic, partition
):
    commits = calm.rows("commits", group="billing", topic=topic, partition=partition, error="NONE")
    last = [commit["offset"] for commit in commits][-1]
    assert cluster.committed("billing", kafka.TopicPartition(topic, partition)) == last > 0


def test_after_a_power_loss_real_brokers_recover_the_log_ends_that_ours_recover(kafka, tmp_path):
    dark = simulated(DARK, tmp_path / "run")
    ours = {
        node: recovered_ends(copy, node) for node, [copy] in copied(dark, tmp_path / "ours").items()
    }
    theirs_at = tmp_path / "theirs"
    with kafka.Cluster(copied(dark, theirs_at), theirs_at) as cluster:
        theirs = {node: cluster.recovered(node) for node in ours}
    different = 0
    for node, ends in ours.items():
        assert {name: theirs[node].get(name) for name in ends} == ends
        different += ends != ours[1]
    assert different, "the power loss took the same from every replica: nothing was shown"


ALONE = """
claim: One broker, one replica.
cluster: {brokers: 1, controllers: 1}
topics: {orders: {partitions: 2, replication.factor: 1}}
producers:
  - {name: shop, topic: orders, rate: 2000/s, record.size: 100B}
run: {for: 5s, then: heal and drain, seed: 5}
expect: {lost_acked: 0}
"""


def test_a_single_real_node_boots_on_the_directory_of_a_single_simulated_broker(kafka, tmp_path):
    alone = simulated(ALONE, tmp_path / "run")
    with kafka.Cluster(copied(alone, tmp_path / "real", [1]), tmp_path) as cluster:
        served = 0
        for partition in (0, 1):
            directory = alone.directory / "disks" / "broker-1" / "data-0" / f"orders-{partition}"
            read = list(cluster.records(kafka.TopicPartition("orders", partition)))
            assert read == values(directory)
            served += len(read)
    assert served == alone.records["survived"] == alone.records["acked"] > 0


def test_real_brokers_boot_on_several_log_directories_after_one_failed(kafka, tmp_path):
    run(load(SHIPPED["jbod-disk-failure"]), out=tmp_path / "run")
    jbod = Ran(tmp_path / "run")
    with kafka.Cluster(copied(jbod, tmp_path / "real"), tmp_path) as cluster:
        served = 0
        for partition in range(6):
            [directory, *_] = (jbod.directory / "disks" / "broker-2").glob(f"*/orders-{partition}")
            read = list(cluster.records(kafka.TopicPartition("orders", partition)))
            assert read == values(directory)
            served += len(read)
    assert served == jbod.records["survived"] == jbod.records["acked"] > 0
