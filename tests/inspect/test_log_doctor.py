"""The doctor: a sound server's directories, and one planted defect for each thing it looks at."""

import json
import shutil
import struct

import pytest

from sim.ids import METADATA_PARTITION, SnapshotId, TopicPartition
from sim.inspect.doctor import examine
from sim.log.config import LogConfig
from sim.log.partition.deletion import unlink
from sim.log.partition.retention import delete_old_segments
from sim.log.producers.snapshot import decode_snapshot, encode_snapshot
from sim.log.store.files import FileStore
from sim.nodes.storage.metadata_log import FileMetadataLog, MetadataLogConfig, format_directories
from sim.nodes.storage.snapshot_files import build_snapshot, file_name
from sim.protocol.metadata import records as mr
from sim.wire.record_batch import NewRecord, build_batch
from sim.wire.schemas import control_key, encode
from tests.log.log_kit import CLUSTER_ID, NOW, TOPIC_ID, TP, batch, manager

TOPIC = (
    mr.FeatureLevelRecord("metadata.version", 25),
    mr.TopicRecord("orders", TOPIC_ID),
    mr.PartitionRecord(0, TOPIC_ID, (1, 2), (1, 2), 1),
)
OTHER_ID = CLUSTER_ID
METADATA = str(METADATA_PARTITION)
SNAPSHOT = f"{METADATA}/{file_name(SnapshotId(3, 1))}"
LOG, TRANSACTIONS = (f"orders-0/{0:020d}.{kind}" for kind in ("log", "txnindex"))
PRODUCERS = f"orders-0/{16:020d}.snapshot"
ABORTED = struct.Struct(">hqqqq")


def transactional(offset, pid, count=1):
    return build_batch(
        [NewRecord(NOW, b"k", b"v")] * count, base_offset=offset, leader_epoch=0,
        producer_id=pid, producer_epoch=0, base_sequence=offset, transactional=True,
    )  # fmt: skip


def marker(offset, pid, *, commit=False):
    value = encode("EndTxnMarker", 0, {"coordinatorEpoch": 1})
    return build_batch(
        [NewRecord(NOW, control_key("EndTxnMarker", commit=commit), value)],
        base_offset=offset, leader_epoch=0, producer_id=pid, producer_epoch=0,
        transactional=True, control=True,
    )  # fmt: skip


def server(root):
    """The directories of node 1 after a clean stop: a topic, two transactions, and metadata."""
    store = FileStore(root)
    format_directories((store,), MetadataLogConfig(), NOW)
    made = manager(store, config=LogConfig(index_interval_bytes=100))
    log = made.create(TP, TOPIC_ID)
    for i in range(6):
        log.append_as_leader(batch(i * 2, 2, at_ms=i, pid=77, epoch=3), 0, NOW)
    # Producer 5 commits, producer 6 aborts while 5 is still open.
    log.append_as_follower(
        [transactional(12, 5), transactional(13, 6), marker(14, 6), marker(15, 5, commit=True)]
    )
    metadata = FileMetadataLog.open(made)
    metadata.append_records(TOPIC, 1, NOW)
    metadata.append_records((mr.NoOpRecord(),), 1, NOW)
    made.checkpoint_high_watermarks({TP: 16})
    made.shutdown(5)
    made.finish()
    (root / SNAPSHOT).write_bytes(build_snapshot(SnapshotId(3, 1), TOPIC, NOW, NOW))
    (root / TRANSACTIONS).write_bytes(ABORTED.pack(0, 6, 13, 14, 12))
    quorum = {"clusterId": "", "leaderId": 1, "leaderEpoch": 1, "votedId": -1, "data_version": 0}
    (root / METADATA / "quorum-state").write_text(json.dumps(quorum))
    return root


def repacked(data, number, value):
    """A producer snapshot whose first producer says something else."""
    entries = dict(decode_snapshot(data))
    setattr(entries[77], number, value)
    return encode_snapshot(entries)


def without(data, producer):
    entries = dict(decode_snapshot(data))
    del entries[producer]
    return encode_snapshot(entries)


def with_stranger(data):
    entries = dict(decode_snapshot(data))
    entries[99] = entries[77]
    return encode_snapshot(entries)


def state(*records):
    return lambda _: build_snapshot(SnapshotId(3, 1), records, NOW, NOW)


CORPUS = [
    # name, damage, severity, where it is found, what is said
    ("an index of aborts says another first offset", TRANSACTIONS,
     lambda _: ABORTED.pack(0, 6, 11, 14, 12), "error",
     "entry at position 0: first offset 11 found, 13 expected"),
    ("an index of aborts says another last stable offset", TRANSACTIONS,
     lambda _: ABORTED.pack(0, 6, 13, 14, 15), "error",
     "last stable offset 15 found, 12 expected"),
    ("an index of aborts names another producer", TRANSACTIONS,
     lambda _: ABORTED.pack(0, 5, 13, 14, 12), "error", "no marker at 14 aborts producer 5"),
    ("an abort has no entry", TRANSACTIONS, lambda _: b"", "error",
     "the abort of producer 6 at 14 has no entry"),
    ("an index of aborts is not in order", TRANSACTIONS, lambda d: d + d, "error",
     "entry at position 34: last offset 14 follows 14"),
    ("an index of aborts ends within an entry", TRANSACTIONS, lambda d: d + b"x", "warning",
     "ends within an entry"),
    ("a snapshot has a producer's epoch wrong", PRODUCERS, lambda d: repacked(d, "epoch", 4),
     "error", "producer 77: epoch 4, last sequence 11"),
    ("a snapshot says a transaction is open", PRODUCERS,
     lambda d: repacked(d, "transaction_start", 4), "error", "transaction open since 4"),
    ("a snapshot lacks a producer", PRODUCERS, lambda d: without(d, 6), "error",
     "producer 6: nothing found, epoch 0"),
    ("a snapshot knows a producer that never wrote", PRODUCERS, with_stranger, "error",
     "producer 99"),
    ("a snapshot is damaged", PRODUCERS, lambda d: d[:-1] + b"!", "warning", "checksum"),
    ("the metadata gives the topic another id", SNAPSHOT,
     state(mr.TopicRecord("orders", OTHER_ID), mr.PartitionRecord(0, OTHER_ID, (1,), (1,), 1)),
     "error", f"topic id {TOPIC_ID} found, the metadata says {OTHER_ID}"),
    ("the metadata knows no such topic", SNAPSHOT, state(), "warning", "the metadata knows no"),
    ("the metadata places the replica elsewhere", SNAPSHOT,
     state(TOPIC[1], mr.PartitionRecord(0, TOPIC_ID, (2, 3), (2, 3), 2)), "warning",
     "on node 1, the metadata places it on [2, 3]"),
    ("a metadata snapshot is damaged", SNAPSHOT, lambda d: d[:120] + b"!" + d[121:], "error",
     "batch at position 83: the checksum is wrong"),
    ("a metadata snapshot has no footer", SNAPSHOT, lambda d: d[:-75], "error",
     "no SnapshotFooterRecord found as its last control record"),
    ("a metadata snapshot has no header", SNAPSHOT, lambda d: d[83:], "error",
     "no SnapshotHeaderRecord found as its first control record"),
    ("a metadata snapshot ends within a batch", SNAPSHOT, lambda d: d[:-1], "error",
     "are no whole batch"),
    ("bootstrap.checkpoint is damaged", "bootstrap.checkpoint",
     lambda d: d[:160] + b"!" + d[161:], "error", "the checksum is wrong"),
    ("quorum-state is no JSON", f"{METADATA}/quorum-state", lambda _: b"{", "error",
     "not a quorum-state file"),
    ("quorum-state is too new", f"{METADATA}/quorum-state",
     lambda d: d.replace(b'"data_version": 0', b'"data_version": 2'), "error",
     "data_version 2 found, 0 or 1 expected"),
    ("quorum-state has no number", f"{METADATA}/quorum-state",
     lambda d: d.replace(b'"votedId": -1', b'"votedId": "x"'), "error", "numbers expected"),
    ("a clean stop without its epoch", ".kafka_cleanshutdown", lambda _: b"{}", "warning",
     "no brokerEpoch found"),
    ("half a batch at the end after a clean stop", LOG, lambda d: d[:-1], "error",
     "are no whole batch"),
    ("a high watermark below the log start", "replication-offset-checkpoint",
     lambda _: b"0\n1\norders 0 -3\n", "warning", "-3 is below the log start 0"),
    ("a recovery point beyond the log", "recovery-point-offset-checkpoint",
     lambda _: b"0\n1\norders 0 17\n", "warning", "17 is beyond the log end 16"),
    ("a log start beyond the log", "log-start-offset-checkpoint",
     lambda _: b"0\n1\norders 0 17\n", "warning", "17 is beyond the log end 16"),
    ("a checkpoint of a partition that is not there", "recovery-point-offset-checkpoint",
     lambda _: b"0\n1\ngone 3 0\n", "warning", "gone-3 found, but no directory of it"),
    ("a checkpoint of the metadata log", "replication-offset-checkpoint",
     lambda _: b"0\n1\n__cluster_metadata 0 3\n", "error", "it is never checkpointed"),
    ("cleaned further than the log goes", "cleaner-offset-checkpoint",
     lambda _: b"0\n1\norders 0 99\n", "warning", "99 is beyond the log end 16"),
]  # fmt: skip

ADDED = [
    ("orders-0/00000000000000000016.log.cleaned", "warning", "did not come to its end"),
    ("orders-0/00000000000000000000.log.swap", "warning", "the next start puts it in its place"),
    ("orders-0/00000000000000000000.log.deleted", "warning", "waits for its deletion"),
    ("recovery-point-offset-checkpoint.tmp", "warning", "not written to its end"),
    (f"{METADATA}/00000000000000000009-0000000001-7.checkpoint.part", "warning", "a snapshot"),
    ("orders-0/00000000000000000099.index", "warning", "an index without its log"),
    (f"orders-0/{99:020d}.snapshot", "warning", "a snapshot of offset 99 found, the log ends at"),
    (f"{METADATA}/{99:020d}-{1:010d}.checkpoint", "warning", "the log ends at 4"),
]
DIRECTORIES = [
    ("lost+found", "error", "not a partition's directory"),
    ("orders-1.xyz-delete", "error", "topic-partition.uniqueId-delete, -future or -stray expected"),
    ("or ders-1", "error", "no name of a topic"),
]


def told(root):
    return [(f.path, f.severity, f.message) for f in examine(root)]


def test_a_sound_server_has_no_findings(tmp_path):
    assert told(server(tmp_path)) == []


@pytest.mark.parametrize(
    ("name", "damage", "severity", "message"),
    [pytest.param(*case[1:], id=case[0]) for case in CORPUS],
)
def test_each_defect_is_found_in_its_file(tmp_path, name, damage, severity, message):
    path = server(tmp_path) / name
    path.write_bytes(damage(path.read_bytes() if path.is_file() else b""))
    found = [(s, m) for p, s, m in told(tmp_path) if message in m]
    assert found, told(tmp_path)
    assert found[0][0] == severity
    assert any(p == path or p in path.parents or path.name == SNAPSHOT.split("/")[1]
               for p, _, m in told(tmp_path) if message in m)  # fmt: skip


@pytest.mark.parametrize(("name", "severity", "message"), ADDED)
def test_what_an_interrupted_work_left_is_found(tmp_path, name, severity, message):
    path = server(tmp_path) / name
    path.write_bytes(encode_snapshot({}) if name.endswith(".snapshot") else b"")
    if name.endswith(".checkpoint"):
        path.write_bytes(build_snapshot(SnapshotId(99, 1), TOPIC, NOW, NOW))
    assert [(p, s) for p, s, m in told(tmp_path) if message in m] == [(path, severity)]


@pytest.mark.parametrize(("name", "severity", "message"), DIRECTORIES)
def test_a_directory_that_stops_a_broker_is_found(tmp_path, name, severity, message):
    (server(tmp_path) / name).mkdir()
    assert (tmp_path / name, severity) in [(p, s) for p, s, m in told(tmp_path) if message in m]


@pytest.mark.parametrize("kind", ["delete", "stray"])
def test_logs_put_aside_are_no_findings(tmp_path, kind):
    (server(tmp_path) / f"orders-1.{'0123456789abcdef' * 2}-{kind}").mkdir()
    assert told(tmp_path) == []


def test_half_a_batch_at_the_end_is_legal_after_an_unclean_stop(tmp_path):
    log = server(tmp_path) / LOG
    (tmp_path / ".kafka_cleanshutdown").unlink()
    log.write_bytes(log.read_bytes()[:-1])
    assert ("warning", "no whole batch") in [(s, m[-14:]) for p, s, m in told(tmp_path) if p == log]


def test_preallocated_indexes_are_legal_after_an_unclean_stop_alone(tmp_path):
    log = server(tmp_path) / LOG
    for suffix in (".index", ".timeindex"):
        path = log.with_suffix(suffix)
        path.write_bytes(path.read_bytes() + bytes(96 * 100_000))
    trims = "9600000 bytes of zeros at the end, which a clean shutdown trims"
    assert [m for _, _, m in told(tmp_path)] == [trims, trims]
    (tmp_path / ".kafka_cleanshutdown").unlink()
    assert [(p.suffix, m) for p, _, m in told(tmp_path) if "index" in p.suffix] == []


def test_an_entry_of_zeros_among_others_is_no_preallocation(tmp_path):
    path = (server(tmp_path) / LOG).with_suffix(".timeindex")
    (tmp_path / ".kafka_cleanshutdown").unlink()
    path.write_bytes(bytes(12) + path.read_bytes())
    assert any("has timestamp 0" in m for p, _, m in told(tmp_path) if p == path)


def test_metadata_that_has_lost_its_head_needs_a_snapshot(tmp_path):
    metadata = server(tmp_path) / METADATA
    for path in metadata.glob("0*.*"):
        if path.suffix != ".checkpoint":
            path.unlink()
    log = metadata / f"{3:020d}.log"
    noop = NewRecord(NOW, None, encode("NoOpRecord", 0, {}))
    log.write_bytes(build_batch([noop], base_offset=3, leader_epoch=1).data)
    for suffix in (".index", ".timeindex"):
        log.with_suffix(suffix).touch()
    (metadata / "leader-epoch-checkpoint").write_text("0\n1\n1 3\n")
    assert told(tmp_path) == []
    (tmp_path / SNAPSHOT).unlink()
    assert (log, "error") in [(p, s) for p, s, m in told(tmp_path) if "begins at 3" in m]


def test_an_empty_transaction_needs_no_entry(tmp_path):
    """An abort of a producer that wrote nothing here moves no last stable offset."""
    log = server(tmp_path) / LOG
    log.write_bytes(log.read_bytes() + marker(16, 8).data)
    assert [m for _, _, m in told(tmp_path) if "has no entry" in m] == []


def test_a_log_without_its_head_is_followed_from_its_first_snapshot_on(tmp_path):
    """What lay below is unknown: nothing is expected of it, but what comes later must agree."""
    store = FileStore(tmp_path)
    made = manager(store, config=LogConfig(segment_bytes=700, retention_ms=-1))
    log = made.create(TP, TOPIC_ID)
    for i in range(20):
        log.append_as_leader(batch(i * 2, 2, at_ms=i, pid=70 + i % 3, sequence=i // 3 * 2), 0, NOW)
    log.raise_log_start(20)
    unlink(log.store, delete_old_segments(log, 40, 0).doomed)
    made.shutdown(5)
    made.finish()
    assert int(min((tmp_path / "orders-0").glob("*.log")).stem) > 0
    assert told(tmp_path) == []
    last = max((tmp_path / "orders-0").glob("*.snapshot"))
    last.write_bytes(without(last.read_bytes(), 71))
    assert [p for p, _, _ in told(tmp_path)] == [last]


def test_the_disks_of_several_servers_are_examined_together(tmp_path):
    for name in ("broker-1/data-0", "broker-2/data-0"):
        (tmp_path / name).mkdir(parents=True)
        server(tmp_path / name)
    same = [m for _, _, m in told(tmp_path) if "directory.id" in m]
    assert len(same) == 1
    properties = tmp_path / "broker-2/data-0/meta.properties"
    text = properties.read_text().replace("node.id=1", "node.id=2")
    lines = [line for line in text.splitlines() if not line.startswith("directory.id")]
    properties.write_text("\n".join([*lines, f"directory.id={OTHER_ID}"]))
    assert told(tmp_path) == []


def test_replicas_are_looked_up_in_the_metadata_of_their_own_server(tmp_path):
    """With several log directories the metadata lies in one of them, for all."""
    server(tmp_path / "data-0")
    second = tmp_path / "data-1"
    made = manager(FileStore(tmp_path / "x"), FileStore(second))
    made.create(TopicPartition("orders", 5), TOPIC_ID, directory=1)
    made.shutdown(5)
    made.finish()
    shutil.rmtree(tmp_path / "x")
    assert [(p, s) for p, s, m in told(tmp_path) if "knows no orders-5" in m] == [
        (second / "orders-5", "warning")
    ]
