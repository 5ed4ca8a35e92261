"""What a cluster of a release leaves on its disks, read by that release, which boots on it."""

import re

import pytest

from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from sim.scenario.settings.facts import features_of
from tests.kafka.recovery import copied, values
from tests.scenarios.run_kit import Ran
from tools.kafka_jars import RELEASES

pytestmark = pytest.mark.kafka

TEXT = """
claim: One broker of a release, restarted; a group, and transactions.
cluster:
  kafka: "{version}"
  brokers: 1
  controllers: 1
  config:
    offsets.topic.num.partitions: 1
    offsets.topic.replication.factor: 1
    transaction.state.log.num.partitions: 1
    transaction.state.log.replication.factor: 1
    transaction.state.log.min.isr: 1
topics: {{orders: {{partitions: 2, replication.factor: 1}}}}
producers:
  - name: shop
    topic: orders
    rate: 200/s
    record.size: 100B
    transaction: {{records: 20, abort: 20%}}
    config: {{transactional.id: shop}}
consumers:
  - {{group: billing, topics: [orders], config: {{auto.offset.reset: earliest{protocol}}}}}
faults: [{{at: 4s, do: restart, target: broker-1}}]
run: {{for: 22s, then: heal and drain, seed: 5}}
expect: {{lost_acked: 0}}
"""
PROTOCOL = {"3.9": "", "4.1": "", "4.3": ", group.protocol: consumer"}


@pytest.fixture(scope="module", params=PROTOCOL)
def version(request):
    return request.param


@pytest.fixture(scope="module")
def release(kafka, version):
    kafka.bring(RELEASES[version])
    return RELEASES[version]


@pytest.fixture(scope="module")
def ran(version, tmp_path_factory):
    out = tmp_path_factory.mktemp("release") / "run"
    text = TEXT.format(version=version, protocol=PROTOCOL[version])
    run(load_text(text, "release.yaml"), out=out)
    return Ran(out)


DECODERS = [
    ("__consumer_offsets", "--offsets-decoder"),
    ("__transaction_state", "--transaction-log-decoder"),
    ("__cluster_metadata", "--cluster-metadata-decoder"),
    ("orders", "--deep-iteration"),
]


@pytest.fixture(scope="module")
def dumped(kafka, release, ran):
    """What the release's own tool prints of each topic."""
    disks = ran.directory / "disks" / "broker-1" / "data-0"
    return {
        topic: kafka.Dumped(sorted(disks.glob(f"{topic}-*/*.log")), option, release=release)
        for topic, option in DECODERS
    }


def test_the_release_s_own_tool_reads_every_log(dumped):
    for topic, printed in dumped.items():
        assert printed.complaints == [], topic
        assert len(printed.lines) > 10, topic
        assert not any("could not be decoded" in line.lower() for line in printed.lines), topic


def test_the_metadata_log_says_the_level_of_the_release(version, dumped):
    lines = dumped["__cluster_metadata"].lines
    level = features_of(version)["metadata.version"]
    found = [line for line in lines if '"name":"metadata.version","featureLevel"' in line]
    assert re.findall(r'"featureLevel":(\d+)', found[0]) == [str(level)]


def test_the_release_boots_on_it_and_serves_records_and_offsets(
    kafka, version, release, ran, tmp_path
):
    copies = copied(ran, tmp_path / "real", (1,))
    [home] = copies[1]
    with kafka.Cluster(copies, tmp_path, release=release) as cluster:
        for partition in range(2):
            place = kafka.TopicPartition("orders", partition)
            commits = ran.rows("commits", group="billing", partition=partition, error="NONE")
            assert cluster.committed("billing", place) == commits[-1]["offset"] > 0
            read = list(cluster.records(place))
            assert read == values(home / f"orders-{partition}")
            assert len(read) > 100
        said = cluster.said(1)
    assert f"kafka version: {release}" in said.lower()
    assert not re.search(r"\b(FATAL|Encountered fatal fault)\b", said)
