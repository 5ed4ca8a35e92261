"""What a cluster of ``cluster.kafka: "4.3"`` leaves on its disks, read by Kafka 4.3."""

import re

import pytest

from sim.inspect.dump import dump
from sim.log.partition.reading import file_batches
from sim.protocol.coordinator.group.records import OffsetCommitRecord
from sim.records.consumer_offsets import records_in
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from tests.kafka.apache import by_turns
from tests.kafka.recovery import copied
from tests.scenarios.run_kit import Ran

pytestmark = pytest.mark.kafka

GROUPS = """
claim: A group of each kind on one broker.
cluster:
  kafka: "{kafka}"
  brokers: 1
  controllers: 1
  config:
    offsets.topic.num.partitions: 1
    offsets.topic.replication.factor: 1
    share.coordinator.state.topic.num.partitions: 1
    share.coordinator.state.topic.replication.factor: 1
    share.coordinator.state.topic.min.isr: 1
    transaction.state.log.num.partitions: 1
    transaction.state.log.replication.factor: 1
    transaction.state.log.min.isr: 1
topics: {{orders: {{partitions: 3, replication.factor: 1}}}}
producers:
  - name: shop
    topic: orders
    rate: 200/s
    record.size: 100B
    transaction: {{records: 20, abort: 20%}}
    config: {{transactional.id: shop}}
consumers:
  - {{group: old, topics: [orders], config: {{auto.offset.reset: earliest}}}}
  - name: a
    group: new
    topics: [orders]
    config: &new
      group.protocol: consumer
      auto.offset.reset: earliest
      auto.commit.interval.ms: 500
  - {{name: b, group: new, start: 2s, topics: [orders], config: *new}}
  - group: work
    topics: [orders]
    group.type: share
    release: 10%
    config: {{share.acknowledgement.mode: explicit, share.auto.offset.reset: earliest}}
run: {{for: 12s, then: heal and drain, seed: 5}}
expect: {{lost_acked: 0}}
"""


@pytest.fixture(scope="module", params=by_turns(["4.2", "4.3"], "4.3"))
def release(request):
    return request.param


@pytest.fixture(scope="module")
def ran(release, tmp_path_factory):
    out = tmp_path_factory.mktemp("recent") / "run"
    run(load_text(GROUPS.format(kafka=release), "recent.yaml"), out=out)
    return Ran(out)


@pytest.mark.parametrize(
    ("topic", "option", "decoder"),
    [
        ("__consumer_offsets", "--offsets-decoder", "offsets"),
        ("__share_group_state", "--share-group-state-decoder", "share-group-state"),
        ("__transaction_state", "--transaction-log-decoder", "transaction-log"),
        ("__cluster_metadata", "--cluster-metadata-decoder", "cluster-metadata"),
    ],
)
def test_internal_topics_are_decoded_alike(kafka, ran, topic, option, decoder):
    paths = [p for p in sorted(ran.directory.glob(f"disks/**/{topic}*/*.log")) if p.stat().st_size]
    dumped = kafka.Dumped(paths, option)
    assert dumped.complaints == []
    ours = [line for path in paths for line in dump(path, print_data=True, decoder=decoder)]
    assert dumped.lines == ours
    assert not [line for line in dumped.lines if "Error" in line]


FIELDS = {
    ("__consumer_offsets", "--offsets-decoder"): {
        "4.2": {
            "assignmentTimestamp": 0,
            "assignmentEpochs": 0,
            "topicId": 1,
            "initializedTopics": 1,
        },
        "4.3": {
            "assignmentTimestamp": 1,
            "assignmentEpochs": 1,
            "topicId": 1,
            "initializedTopics": 1,
        },
    },
    ("__share_group_state", "--share-group-state-decoder"): {
        "4.2": {"deliveryCompleteCount": 1},
        "4.3": {"deliveryCompleteCount": 1},
    },
}


@pytest.mark.parametrize("topic", FIELDS, ids=lambda topic: topic[0])
def test_kafka_reads_the_fields_that_the_release_has_added(kafka, ran, release, topic):
    paths = sorted(ran.directory.glob(f"disks/**/{topic[0]}*/*.log"))
    text = "\n".join(kafka.Dumped(paths, topic[1]).lines)
    for field, expected in FIELDS[topic][release].items():
        values = set(re.findall(rf'"{field}":(\[[^]]*\]|[^,}}]+)', text)) - {
            "0",
            "null",
            "-1",
            "[]",
        }
        assert bool(values) == bool(expected), field


def test_a_real_coordinator_knows_what_each_group_committed(kafka, ran, tmp_path):
    last = {}
    for path in sorted(ran.directory.glob("disks/**/__consumer_offsets-0/*.log")):
        for record in records_in(batch for _, batch in file_batches(path)):
            if isinstance(record, OffsetCommitRecord):
                last[record.group, record.partition] = record.offset
    assert {group for group, _ in last} == {"old", "new"}
    with kafka.Cluster(copied(ran, tmp_path / "real", [1]), tmp_path) as cluster:
        for (group, place), offset in last.items():
            there = kafka.TopicPartition(place.topic, place.partition)
            assert cluster.committed(group, there) == offset > 0
