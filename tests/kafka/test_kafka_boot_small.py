"""Real brokers boot on disks of smaller histories: a single node, several log directories."""

import pytest

from sim.scenario.loader import load, load_text
from sim.scenario.run.runner import run
from tests.kafka.recovery import copied, values
from tests.scenarios.run_kit import SHIPPED, Ran

pytestmark = pytest.mark.kafka


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
    run(load_text(ALONE, "alone.yaml"), out=tmp_path / "run")
    alone = Ran(tmp_path / "run")
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
