"""What a run leaves on its disks has the record versions of its release."""

from collections import defaultdict

import pytest

from sim.log.partition.reading import file_batches
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run
from sim.scenario.settings.facts import features_of, supported_features
from sim.wire.schemas import decode, decode_as
from tests.scenarios.run_kit import Ran

TEXT = """
claim: A small cluster of one release.
cluster:
  kafka: "{release}"
  brokers: 2
  controllers: 1
  config: {{offsets.topic.num.partitions: 1, offsets.topic.replication.factor: 2}}
topics: {{orders: {{partitions: 1, replication.factor: 2}}}}
producers: [{{name: shop, topic: orders, rate: 50/s}}]
consumers: [{{group: billing, topics: orders}}]
faults: [{{at: 3s, do: restart, target: broker-2}}]
run: {{for: 7s, seed: 3}}
"""
VERSIONS = {  # RegisterBroker, Partition, OffsetCommit
    "3.3": (1, 0, 3), "3.6": (2, 0, 3), "3.7": (3, 1, 3), "3.9": (3, 1, 3), "4.0": (3, 2, 3),
    "4.1": (3, 2, 4), "4.3": (4, 2, 4),
}  # fmt: skip


@pytest.fixture(scope="module", params=VERSIONS)
def ran(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("release") / "run"
    run(load_text(TEXT.format(release=request.param), "release"), out=out)
    return request.param, Ran(out)


def batches_of(ran, server, partition):
    files = (ran.directory / "disks" / server / "data-0" / partition).glob("*.log")
    return [batch for path in sorted(files) for _, batch in file_batches(path)]


def found(ran):
    records = defaultdict(list)
    for batch in batches_of(ran, "controller-1", "__cluster_metadata-0"):
        for record in () if batch.is_control else batch.records():
            name, version, values = decode(record.value)
            records[name].append((version, values))
    return records


def test_the_metadata_log_has_the_records_of_its_release(ran):
    release, of = ran
    records = found(of)
    levels = features_of(release)
    [(_, first), *_] = records["FeatureLevelRecord"]
    assert first == {"name": "metadata.version", "featureLevel": levels["metadata.version"]}
    registration, partition, _ = VERSIONS[release]
    assert {version for version, _ in records["RegisterBrokerRecord"]} == {registration}
    assert {version for version, _ in records["PartitionRecord"]} == {partition}
    assert {version for version, _ in records["PartitionChangeRecord"]} == {partition}
    for _, values in records["RegisterBrokerRecord"]:
        named = [tuple(feature.values()) for feature in values["features"]]
        assert named == list(supported_features(release))
    # Directories are known since 3.7 (KIP-858), transactions of the metadata since 3.6 (KIP-868).
    has_directories = any(values.get("directories") for _, values in records["PartitionRecord"])
    assert has_directories == (registration >= 3)
    assert bool(records["BeginTransactionRecord"]) == (levels["metadata.version"] >= 13)


def test_committed_offsets_have_the_version_of_its_release(ran):
    release, of = ran
    commits = [
        decode_as("OffsetCommitValue", record.value)
        for batch in batches_of(of, "broker-1", "__consumer_offsets-0")
        if not batch.is_control
        for record in batch.records()
        if record.key[:2] == b"\x00\x01"
    ]  # fmt: skip
    assert {commit.version for commit in commits} == {VERSIONS[release][2]}


@pytest.mark.parametrize(("interval", "has_no_ops"), [(500, True), (0, False)])
def test_without_an_idle_interval_the_controller_writes_no_no_ops(interval, has_no_ops, tmp_path):
    text = TEXT.format(release="4.3").replace(
        "config: {", f"config: {{metadata.max.idle.interval.ms: {interval}, ", 1
    )
    run(load_text(text, "idle"), out=tmp_path / "run")
    ran = Ran(tmp_path / "run")
    assert bool(found(ran)["NoOpRecord"]) == has_no_ops
    assert ran.records["acked"] == ran.records["sent"] > 200
