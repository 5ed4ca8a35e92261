"""A real Kafka boots on the disks of a simulated upgrade: at its end, and before its features."""

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
claim: Three brokers that are controllers, too, go over two releases.
cluster:
  kafka: "4.1"
  brokers: 3
  combined: 3
  config:
    offsets.topic.num.partitions: 1
    transaction.state.log.num.partitions: 1
    broker.session.timeout.ms: 3000
    broker.heartbeat.interval.ms: 500
topics: {{orders: {{partitions: 2, replication.factor: 3, config: {{min.insync.replicas: 2}}}}}}
producers:
  - name: shop
    topic: orders
    rate: 100/s
    record.size: 100B
    transaction: {{records: 20, abort: 20%}}
    config: {{transactional.id: shop}}
consumers:
  - {{group: billing, topics: [orders], config: {{auto.offset.reset: earliest}}}}
faults:
{faults}
run: {{for: 36s, then: heal and drain, seed: 5}}
expect: {{lost_acked: 0}}
"""
UP = (
    '  - {{at: {at}, do: rolling-restart, target: all brokers, to: "{to}", finalize: {finalize}}}\n'
)


def ran_with(out, *upgrades):
    faults = "".join(UP.format(at=at, to=to, finalize=end) for at, to, end in upgrades)
    run(load_text(TEXT.format(faults=faults), "upgrade.yaml"), out=out)
    return Ran(out)


def levels(kafka, files, release):
    """Finalized levels in a metadata log, as the release's own tool prints it."""
    printed = kafka.Dumped(files, "--cluster-metadata-decoder", release=release)
    assert printed.complaints == []
    found = {}
    for line in printed.lines:
        for name, level in re.findall(r'"name":"([\w.]+)","featureLevel":(\d+)', line):
            found[name] = int(level)
    return found


def boots(kafka, ran, release, work):
    """Checks that real brokers serve every record and the group's offsets."""
    copies = copied(ran, work / "real")
    [home] = copies[1]
    with kafka.Cluster(copies, work, release=release) as cluster:
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


def metadata_logs(ran):
    return sorted((ran.directory / "disks" / "broker-1").glob("*/__cluster_metadata-0/*.log"))


def test_a_real_4_3_boots_on_disks_that_went_from_4_1_to_4_3(kafka, tmp_path):
    release = RELEASES["4.3"]
    kafka.bring(release)
    ran = ran_with(tmp_path / "run", ("1s", "4.2", "true"), ("2s", "4.3", "true"))
    assert ran.faults[1]["effect"].endswith("with 4.3; features of 4.3: committed")
    found = levels(kafka, metadata_logs(ran), release)
    new = features_of("4.3")
    assert found == {name: level for name, level in new.items() if name != "kraft.version"}
    assert found["metadata.version"] == 30
    boots(kafka, ran, release, tmp_path)


@pytest.mark.slow
def test_a_real_4_1_boots_on_what_4_2_wrote_before_its_features(kafka, tmp_path):
    release = RELEASES["4.1"]
    kafka.bring(release)
    ran = ran_with(tmp_path / "run", ("1s", "4.2", "false"))
    assert ran.faults[0]["effect"].endswith("with 4.2")
    assert levels(kafka, metadata_logs(ran), release)["metadata.version"] == 27
    boots(kafka, ran, release, tmp_path)
