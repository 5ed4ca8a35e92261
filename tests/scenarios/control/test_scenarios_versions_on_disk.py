"""What a run leaves on its disks has the record versions of its release."""

from collections import defaultdict

import pytest

from sim.inspect.doctor import examine
from sim.inspect.dump import dump
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
    "2.8": (0, 0, 3), "3.0": (0, 0, 3), "3.2": (0, 0, 3),
    "3.3": (1, 0, 3), "3.6": (2, 0, 3), "3.7": (3, 1, 3), "3.9": (3, 1, 3), "4.0": (3, 2, 3),
    "4.1": (3, 2, 4), "4.3": (4, 2, 4),
}  # fmt: skip


def is_early(release):
    return release in {"2.8", "3.0", "3.2"}


@pytest.fixture(scope="module", params=VERSIONS)
def ran(request, tmp_path_factory):
    out = tmp_path_factory.mktemp("release") / "run"
    run(load_text(TEXT.format(release=request.param), "release"), out=out)
    return request.param, Ran(out)


def batches_of(ran, server, partition):
    files = (ran.directory / "disks" / server / "data-0" / partition).glob("*.log")
    return [batch for path in sorted(files) for _, batch in file_batches(path)]


def printed(log):
    return dump(log, decoder="cluster-metadata")


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
    finalizes = not is_early(release)
    levels = features_of(release) if finalizes else {"metadata.version": 0}
    written = [values for _, values in records["FeatureLevelRecord"]]
    level = {"name": "metadata.version", "featureLevel": levels["metadata.version"]}
    assert written[:1] == ([level] if finalizes else [])
    registration, partition, _ = VERSIONS[release]
    assert {version for version, _ in records["RegisterBrokerRecord"]} == {registration}
    assert {version for version, _ in records["PartitionRecord"]} == {partition}
    assert {version for version, _ in records["PartitionChangeRecord"]} == {partition}
    for _, values in records["RegisterBrokerRecord"]:
        named = [tuple(feature.values()) for feature in values["features"]]
        assert named == (list(supported_features(release)) if finalizes else [])
    # Directories are known since 3.7 (KIP-858), transactions of the metadata since 3.6 (KIP-868).
    has_directories = any(values.get("directories") for _, values in records["PartitionRecord"])
    assert has_directories == (registration >= 3)
    assert bool(records["BeginTransactionRecord"]) == (levels["metadata.version"] >= 13)
    # Releases that can migrate from ZooKeeper write that this cluster did not (KIP-866).
    written = records["ZkMigrationStateRecord"]
    assert written == ([(0, {"zkMigrationState": 0})] if release in {"3.6", "3.7", "3.9"} else [])


def test_brokers_are_fenced_by_the_records_of_their_release(ran):
    """KIP-778: before 3.3 FenceBrokerRecord and UnfenceBrokerRecord, of broker-2's restart, too."""
    release, of = ran
    records = found(of)
    own = [values["id"] for name in ("UnfenceBrokerRecord", "FenceBrokerRecord")
           for _, values in records[name]]  # fmt: skip
    changes = [
        (values["brokerId"], values["fenced"])
        for _, values in records["BrokerRegistrationChangeRecord"]
        if values["fenced"]
    ]  # fmt: skip
    if is_early(release):
        assert (own, changes) == ([1, 2, 2, 2], [])
    else:
        assert own == []
        assert [broker for broker, state in changes if state == -1] == [1, 2, 2]


def test_nothing_is_written_while_nothing_happens_before_3_3(ran):
    """KIP-835: 3.3 brought NoOpRecord, each 500 ms."""
    release, of = ran
    assert bool(found(of)["NoOpRecord"]) is not is_early(release)


def test_2_8_writes_frames_that_no_later_release_reads(ran):
    """Kafka since 3.0 refuses frame version 0; all records of an unchanged 2.8 have it."""
    release, of = ran
    frames = {
        record.value[0]
        for batch in batches_of(of, "controller-1", "__cluster_metadata-0")
        for record in (() if batch.is_control else batch.records())
    }
    assert frames == {0 if release == "2.8" else 1}


def test_log_directories_are_formatted_with_a_bootstrap_file_since_3_3(ran):
    release, of = ran
    for server in ("controller-1", "broker-1"):
        file = of.directory / "disks" / server / "data-0" / "bootstrap.checkpoint"
        assert file.exists() is not is_early(release)


def test_the_doctor_and_the_dump_read_the_log_of_every_release(ran):
    _, of = ran
    for server in ("controller-1", "broker-1", "broker-2"):
        home = of.directory / "disks" / server / "data-0"
        assert examine(home) == []
        [log] = home.glob("__cluster_metadata-0/*.log")
        assert any('"type":"REGISTER_BROKER_RECORD"' in line for line in printed(log))


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


def test_a_later_releases_metadata_log_is_found_to_be_none_of_2_8(tmp_path):
    """Planted: 3.3's cluster under 2.8's name has a level, no-ops and other records."""
    planted = "behaviours: {kraft.metadata_version: finalized, kraft.unfencing: registration}\n"
    run(load_text(TEXT.format(release="2.8") + planted, "planted"), out=tmp_path / "run")
    records = found(Ran(tmp_path / "run"))
    assert records["FeatureLevelRecord"]
    assert not records["FenceBrokerRecord"]
    assert {version for version, _ in records["RegisterBrokerRecord"]} == {1}
