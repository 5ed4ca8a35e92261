"""A real cluster boots on one whole simulated history, and on what a power loss left of it.

Transactions, compaction, a group's commits and a change of leader lie behind it: it serves what our
checker says survives, and recovers as we do.
"""

from collections import Counter

import pytest

from sim.ids import TopicPartition
from sim.log.partition.reading import file_batches
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.coordinator.group.records import OffsetCommitRecord
from sim.records.consumer_offsets import records_in
from tests.kafka.apache import by_turns
from tests.kafka.recovery import copied, recovered_ends
from tests.kafka.survivors import named, on_disk, simulated

pytestmark = pytest.mark.kafka

HISTORY = """
claim: All that a cluster may have behind it, for a real one to go on from.
cluster:
  brokers: 3
  controllers: 1
  disk: {dirty.expire: 2s, dirty.writeback: 500ms}
  config:
    log.cleaner.backoff.ms: 500
    offsets.topic.num.partitions: 3
    transaction.state.log.num.partitions: 3
topics:
  orders:
    partitions: 2
    replication.factor: 3
    config: {min.insync.replicas: 2, segment.bytes: 1048576}
  accounts:
    partitions: 2
    replication.factor: 3
    config:
      min.insync.replicas: 2
      cleanup.policy: compact
      segment.ms: 1000
      min.cleanable.dirty.ratio: 0.1
      min.compaction.lag.ms: 4000
      file.delete.delay.ms: 0
  notes: {partitions: 2, replication.factor: 3}
producers:
  - name: till
    topic: orders
    count: 2
    rate: 400/s
    record.size: 200B
    transaction: {records: 40, abort: 20%}
    config: {transactional.id: till}
  - {name: shop, topic: orders, rate: 2000/s, record.size: 200B, config: {acks: all}}
  - name: desk
    topic: accounts
    rate: 600/s
    record.size: 100B
    keys: zipf
    key.count: 200
    tombstones: 5%
    config: {acks: all}
  - name: pen
    topic: notes
    rate: 300/s
    record.size: 60B
    keys: uniform
    config: {acks: 1, enable.idempotence: false}
consumers:
  - group: billing
    topics: [orders]
    count: 2
    config:
      isolation.level: read_committed
      auto.offset.reset: earliest
      auto.commit.interval.ms: 1000
  - group: books
    topics: [accounts, notes]
    config: {auto.offset.reset: earliest, auto.commit.interval.ms: 1000}
"""

CALM = (
    HISTORY
    + """
faults:
  - {at: 4s, do: crash, target: leader of orders-0, for: 6s}
run: {for: 20s, then: heal and drain, seed: 3}
expect: {lost_acked: 0, divergent: 0, early_tombstones: 0}
"""
)
"""A leader changes, its broker comes back, everything is decided, read and committed."""

DARK = (
    HISTORY
    + """
faults:
  - {at: 4s, do: crash, target: leader of orders-0, for: 6s}
  - {at: AT, do: power-loss, target: all brokers}
run: {for: 20s, then: stop, seed: SEED}
expect: {}
"""
)
"""All power is lost just before the end: the disks stay as the power loss left them."""

INSTANTS = [("19700ms", 3), ("18100ms", 4), ("19050ms", 5), ("19350ms", 6)]
"""When, and of which seed; segments roll at other times for each, and may be left with holes."""

COMPACTED = "accounts"
NO_CLEANING = "log.cleaner.enable=false\n"
"""Only simulated cleaners have cleaned: by a real clock the time of every tombstone is over."""


@pytest.fixture(scope="module")
def calm(tmp_path_factory):
    return simulated(CALM, tmp_path_factory.mktemp("calm") / "run")


@pytest.fixture(scope="module")
def cluster(calm, kafka, tmp_path_factory):
    """A real cluster that goes on from there."""
    work = tmp_path_factory.mktemp("real")
    with kafka.Cluster(copied(calm[0], work), work, NO_CLEANING) as started:
        yield started


PARTITIONS = [
    (topic, partition) for topic in ("orders", "accounts", "notes") for partition in (0, 1)
]


def served(kafka, cluster, topic, partition, isolation="read_uncommitted"):
    place = kafka.TopicPartition(topic, partition)
    return [named(r.offset, r.value, r.headers) for r in cluster.read(place, isolation)]


def test_all_of_it_is_in_the_history(calm):
    """Else the tests below would show less than they say."""
    ran, survivors = calm
    outcomes = Counter(row["outcome"] for row in ran.rows("transaction_outcomes"))
    assert outcomes["committed"] > 100
    assert outcomes["aborted"] > 50
    assert ran.verdict["topics"]["orders"]["aborted"] > 1_000
    assert ran.verdict["topics"]["accounts"]["removed"] > 1_000
    assert {row["broker"] for row in ran.rows("cleanings", topic=COMPACTED)} == {1, 2, 3}
    assert len(ran.leader_changes(0)) > 1
    assert set(survivors) == set(PARTITIONS)


@pytest.mark.parametrize(("topic", "partition"), PARTITIONS)
def test_a_consumer_reads_from_a_real_cluster_what_the_checker_says_survives(
    kafka, cluster, calm, topic, partition
):
    """Offset, producer and number of each record, in order; what was aborted is there for some."""
    ran, survivors = calm
    leader = cluster.leader(kafka.TopicPartition(topic, partition))
    told = survivors[topic, partition][leader].everything
    assert served(kafka, cluster, topic, partition) == told
    assert on_disk(ran.directory / f"disks/broker-{leader}/data-0/{topic}-{partition}") == told
    assert len(told) > 500


@pytest.mark.parametrize("partition", [0, 1])
def test_a_reader_of_committed_data_gets_what_the_checker_calls_committed(
    kafka, cluster, calm, partition
):
    leader = cluster.leader(kafka.TopicPartition("orders", partition))
    told = calm[1]["orders", partition][leader]
    assert served(kafka, cluster, "orders", partition, "read_committed") == told.committed
    assert len(told.everything) - len(told.committed) > 200


def test_the_verdict_counts_what_each_final_leader_has_left(calm):
    ran, survivors = calm
    told = {name: topic["survived"] for name, topic in ran.verdict["topics"].items()}
    counted = Counter()
    for (topic, partition), of in survivors.items():
        final = ran.leader_changes(partition, topic)[-1][1]
        counted[topic] += len(of[final].committed)
    assert counted == told
    assert ran.records["lost_acked"] == 0


@pytest.mark.parametrize(("topic", "partition"), PARTITIONS)
def test_a_real_coordinator_knows_the_offsets_that_the_group_committed(
    kafka, cluster, calm, topic, partition
):
    group = "billing" if topic == "orders" else "books"
    commits = calm[0].rows("commits", group=group, topic=topic, partition=partition, error="NONE")
    last = [commit["offset"] for commit in commits][-1]
    assert cluster.committed(group, kafka.TopicPartition(topic, partition)) == last > 0


@pytest.fixture(
    scope="module",
    params=by_turns(INSTANTS, INSTANTS[0]),
    ids=lambda given: f"{given[0]}-seed-{given[1]}",
)
def dark(request, tmp_path_factory):
    at, seed = request.param
    text = DARK.replace("AT", at).replace("SEED", str(seed))
    return simulated(text, tmp_path_factory.mktemp("dark") / "run")[0]


@pytest.fixture(scope="module")
def ours(dark, tmp_path_factory):
    """Directories after our own recovery, and the log ends that it found, by broker."""
    copies = copied(dark, tmp_path_factory.mktemp("ours"))
    ends = {
        node: recovered_ends(copy, node, compacted=(COMPACTED, "__consumer_offsets"))
        for node, [copy] in copies.items()
    }
    return {node: copy for node, [copy] in copies.items()}, ends


@pytest.fixture(scope="module")
def recovered(kafka, dark, cluster, tmp_path_factory):
    """A real cluster that has to recover; the other one has been stopped: one at a time."""
    cluster.stop()
    work = tmp_path_factory.mktemp("theirs")
    with kafka.Cluster(copied(dark, work), work, NO_CLEANING) as started:
        yield started


def test_after_a_power_loss_real_brokers_recover_the_log_ends_that_ours_recover(ours, recovered):
    _, ends = ours
    for node, found in ends.items():
        theirs = recovered.recovered(node)
        assert {name: theirs.get(name) for name in found} == found
    for topic, partition in PARTITIONS:
        different = {found[f"{topic}-{partition}"] for found in ends.values()}
        assert len(different) > 1, "the power loss took the same from every replica"


@pytest.mark.parametrize(("topic", "partition"), PARTITIONS)
def test_after_a_power_loss_a_real_cluster_serves_what_its_leader_s_disk_has_kept(
    kafka, ours, recovered, topic, partition
):
    directories, ends = ours
    leader = recovered.leader(kafka.TopicPartition(topic, partition))
    wanted = on_disk(directories[leader] / f"{topic}-{partition}")
    assert served(kafka, recovered, topic, partition) == wanted
    assert wanted[-1].offset < ends[leader][f"{topic}-{partition}"]
    assert len(wanted) > 500


@pytest.mark.parametrize(("topic", "partition"), PARTITIONS)
def test_after_a_power_loss_a_real_coordinator_knows_the_commits_that_its_log_has_kept(
    kafka, request, ours, recovered, topic, partition
):
    directories, _ = ours
    group = "billing" if topic == "orders" else "books"
    home = partition_for_group(group, 3)
    leader = recovered.leader(kafka.TopicPartition("__consumer_offsets", home))
    kept = [
        record.offset
        for log in sorted((directories[leader] / f"__consumer_offsets-{home}").glob("*.log"))
        for record in records_in(batch for _, batch in file_batches(log))
        if isinstance(record, OffsetCommitRecord)
        and record.group == group
        and record.partition == TopicPartition(topic, partition)
    ]
    # At the other instants all commits may have been in page caches only.
    assert kept or request.node.callspec.params["dark"] != INSTANTS[0]
    wanted = kept[-1] if kept else None
    assert recovered.committed(group, kafka.TopicPartition(topic, partition)) == wanted
