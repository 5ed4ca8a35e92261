"""Whole runs in which servers take snapshots of the metadata and drop its log's head (KIP-630)."""

import pytest

from sim.log.partition.reading import file_batches
from sim.nodes.storage.metadata_log import FileMetadataLog
from sim.nodes.storage.snapshot_files import snapshot_id, snapshot_records
from sim.protocol.metadata import records as mr
from sim.protocol.metadata.image import MetadataImage
from sim.records.metadata import records_of
from sim.scenario.behaviours.versions import DEFAULT
from sim.scenario.settings.facts import features_of
from sim.wire.schemas import decode
from tests.scenarios.run_kit import go

OFTEN = {
    "metadata.log.max.snapshot.interval.ms": 5_000,
    "metadata.log.segment.ms": 4_000,
    "metadata.max.retention.bytes": 3_000,
}
LEVEL = features_of(DEFAULT)["metadata.version"]
SLOW = {"rate": "20/s"}
BEHIND = [
    # Down while the others drop what it has not fetched; and one comes back with an empty disk.
    {"at": "20s", "do": "crash", "target": "broker-3", "for": "50s"},
    {"at": "65s", "do": "failed-disk", "target": "broker-2", "directory": 0, "for": "2s"},
    {"at": "70s", "do": "restart", "target": "broker-2"},
    {"at": "76s", "do": "crash", "target": "controller leader", "for": "2s"},
    {"at": "80s", "do": "power-loss", "target": "broker-1", "for": "2s"},
]


def metadata_of(ran, server):
    return ran.directory / "disks" / server / "data-0" / "__cluster_metadata-0"


def snapshots_of(ran, server):
    names = [path.name for path in metadata_of(ran, server).iterdir()]
    return sorted(filter(None, map(snapshot_id, names)))


def log_start_of(ran, server):
    return min(int(path.name[:20]) for path in metadata_of(ran, server).glob("*.log"))


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    return go(
        tmp_path_factory.mktemp("snapshots"),
        config=OFTEN,
        producer=SLOW,
        faults=BEHIND,
        lasts="90s",
        expect={"lost_acked": 0},
    )


def test_nothing_acknowledged_is_lost_when_metadata_comes_from_snapshots(ran):
    assert ran.records["lost_acked"] == 0
    assert ran.records["acked"] == ran.records["sent"] > 1_500
    assert all(row["state"] != "crashed" for row in ran.rows("node_states", node="broker-1"))


def test_heads_of_logs_are_dropped_and_those_behind_fetch_a_snapshot(ran):
    fetched = ran.rows("requests", kind="FetchSnapshot")
    assert {row["client"] for row in fetched} >= {"broker-2", "broker-3"}
    for server in ("broker-2", "broker-3"):
        assert log_start_of(ran, server) > 0
        # Its log begins exactly where a snapshot ends: it was started anew there.
        assert log_start_of(ran, server) in {s.offset for s in snapshots_of(ran, server)}


@pytest.mark.parametrize("server", ["broker-1", "broker-2", "broker-3", "controller-1"])
def test_snapshot_and_log_together_give_the_state_that_every_other_server_has(ran, server):
    """Decoded from the files alone, every server comes to the same topics and partitions."""
    assert state_on(ran, server) == state_on(ran, "controller-2")


def state_on(ran, server):
    newest = snapshots_of(ran, server)[-1]
    name = f"{newest.offset:020d}-{newest.epoch:010d}.checkpoint"
    image = MetadataImage()
    data = (metadata_of(ran, server) / name).read_bytes()
    image.load(newest.offset, newest.epoch, snapshot_records(data))
    for path in sorted(metadata_of(ran, server).glob("*.log")):
        for _, batch in file_batches(path):
            for offset, record in enumerate(records_of(batch), batch.base_offset):
                if offset >= image.offset:
                    image.replay(offset, batch.leader_epoch, record)
    return image.partitions, image.topic_configs, image.features, image.next_producer_id


def test_a_snapshot_not_loaded_is_noticed(monkeypatch, tmp_path):
    """A planted defect: whoever restarts begins with the log alone, which has lost its head."""
    monkeypatch.setattr(
        FileMetadataLog, "snapshot_records", lambda self, snapshot: (mr.NoOpRecord(),)
    )
    with pytest.raises(KeyError):  # a change of a topic that it never heard of
        go(tmp_path, config=OFTEN, producer=SLOW, faults=BEHIND, lasts="90s")


def test_with_the_defaults_no_snapshot_is_taken_in_a_minute(tmp_path):
    ran = go(tmp_path, lasts="62s", producer=SLOW)
    for server in ("broker-1", "controller-1"):
        assert snapshots_of(ran, server) == []
        assert log_start_of(ran, server) == 0


def test_every_directory_is_formatted_and_locked(ran):
    for directory in ran.log_dirs():
        assert (directory / ".lock").read_bytes() == b""
        records = [
            decode(record.value).values
            for _, batch in file_batches(directory / "bootstrap.checkpoint")
            if not batch.is_control
            for record in batch.records()
        ]
        assert records[0] == {"name": "metadata.version", "featureLevel": LEVEL}
        assert [r["name"] for r in records[1:]] == sorted(r["name"] for r in records[1:])
