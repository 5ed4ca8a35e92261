"""A real broker boots on a simulated directory with a replica on its way, and ends the move."""

import time

import pytest

from sim.inspect.dump import dump
from sim.log.directory.names import future_partition_of
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from tests.kafka.recovery import copied, values
from tests.scenarios.run_kit import Ran

pytestmark = pytest.mark.kafka

MOVING = """
claim: A broker whose replica is being moved when everything stops.
cluster: {brokers: 1, controllers: 1, disk: {directories: 2}}
topics: {orders: {partitions: 2, replication.factor: 1, config: {segment.bytes: 1048576}}}
producers:
  - {name: shop, topic: orders, rate: 2000/s, record.size: 500B}
faults:
  - {at: 3s, do: hold, message: AssignReplicasToDirsRequest, from: broker-1, to: controller-1}
  - {at: 4s, do: alter-replica-log-dirs, partition: orders-0, broker: broker-1, to: 1}
run: {for: 6s, then: stop, seed: 5}
"""

PATIENCE_S = 60


@pytest.fixture(scope="module")
def moving(tmp_path_factory):
    out = tmp_path_factory.mktemp("moving") / "run"
    run(load_text(MOVING, "moving.yaml"), out=out)
    return Ran(out)


def test_kafkas_tool_reads_the_files_of_a_future_log_as_ours_does(kafka, moving):
    (future,) = (moving.directory / "disks/broker-1/data-1").glob("orders-0.*-future")
    assert str(future_partition_of(future.name)) == "orders-0"
    files = sorted(path for path in future.iterdir() if path.suffix in {".log", ".index"})
    assert len(files) > 4
    dumped = kafka.Dumped(files)
    assert dumped.complaints == []
    assert dumped.lines == [line for file in files for line in dump(file, print_data=False)]


def test_a_real_broker_finds_the_future_log_and_ends_the_move(kafka, moving, tmp_path):
    assert moving.rows("log_dir_moves")[-1]["phase"] == "caught_up"
    wanted = values(moving.directory / "disks/broker-1/data-0/orders-0")
    own = copied(moving, tmp_path, [1])
    first, second = own[1]
    with kafka.Cluster(own, tmp_path) as cluster:
        end = time.monotonic() + PATIENCE_S
        while not (second / "orders-0").is_dir() or (first / "orders-0").is_dir():
            assert time.monotonic() < end, "the move does not end"
            time.sleep(0.5)
        read = list(cluster.records(kafka.TopicPartition("orders", 0)))
    assert read == wanted
    assert len(read) > 3_000
    assert not list(second.glob("*-future"))
    assert values(second / "orders-0") == wanted
