"""The dump's lines and the doctor's findings."""

import struct

import pytest

from sim.errors import SimulationError
from sim.ids import METADATA_PARTITION, TopicPartition
from sim.inspect.doctor import examine
from sim.inspect.dump import dump
from sim.log.config import LogConfig
from sim.log.store.files import FileStore
from sim.wire.record_batch import NewRecord, build_batch
from sim.wire.schemas import control_key, encode
from tests.log.log_kit import NOW, TOPIC_ID, TP, batch, manager


def shut_down(root, config=None):
    made = manager(FileStore(root), config=config or LogConfig(index_interval_bytes=100))
    log = made.create(TP, TOPIC_ID)
    for i in range(6):
        log.append_as_leader(batch(i * 2, 2, at_ms=i, pid=77, epoch=3), i // 4, NOW)
    made.checkpoint_high_watermarks({TP: 12})
    made.shutdown(5)
    made.finish()
    return root / "orders-0"


def lines(path, **how) -> list[str]:
    return list(dump(path, **{"print_data": False, **how}))


def test_dump_prints_batches_and_records_as_kafkas_tool_does(tmp_path) -> None:
    made = build_batch(
        [NewRecord(1_700_000_000_060, b"t", b"1"), NewRecord(1_700_000_000_060, b"u", None)],
        base_offset=17, leader_epoch=0, producer_id=77, producer_epoch=3, base_sequence=0,
        transactional=True,
    )  # fmt: skip
    path = tmp_path / f"{17:020d}.log"
    path.write_bytes(made.data)
    assert lines(path, print_data=True) == [
        f"Dumping {path}",
        "Log starting offset: 17",
        (
            "baseOffset: 17 lastOffset: 18 count: 2 baseSequence: 0 lastSequence: 1 producerId: 77 "
            "producerEpoch: 3 partitionLeaderEpoch: 0 isTransactional: true isControl: false "
            "deleteHorizonMs: OptionalLong.empty position: 0 CreateTime: 1700000000060 "
            f"size: {made.size_bytes} magic: 2 compresscodec: none crc: {made.crc} isvalid: true"
        ),
        (
            "| offset: 17 CreateTime: 1700000000060 keySize: 1 valueSize: 1 sequence: 0 "
            "headerKeys: [] key: t payload: 1"
        ),
        (
            "| offset: 18 CreateTime: 1700000000060 keySize: 1 valueSize: -1 sequence: 1 "
            "headerKeys: [] key: u"
        ),
    ]
    assert len(lines(path)) == 3


def test_dump_prints_damage_instead_of_hiding_it(tmp_path) -> None:
    data = batch(0, 2).data
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(data[:-1] + b"!" + data[:40])
    found = lines(path)
    assert found[2].endswith("isvalid: false")
    assert found[3] == f"Found 40 invalid bytes at the end of {path.name}"


def test_dump_prints_indexes_snapshots_and_checkpoints(tmp_path) -> None:
    directory = shut_down(tmp_path)
    log = [line for line in lines(directory / f"{0:020d}.log") if line.startswith("baseOffset")]
    second = int(log[1].split("position: ")[1].split()[0])
    assert lines(directory / f"{0:020d}.index")[1] == f"offset: 3 position: {second}"
    assert lines(directory / f"{0:020d}.timeindex")[-1] == f"timestamp: {NOW + 5} offset: 11"
    assert lines(directory / f"{12:020d}.snapshot")[1:] == [
        (
            "producerId: 77 producerEpoch: 3 coordinatorEpoch: -1 "
            f"currentTxnFirstOffset: OptionalLong.empty lastTimestamp: {NOW + 5} firstSequence: 10 "
            f"lastSequence: 11 lastOffset: 11 offsetDelta: 1 timestamp: {NOW + 5}"
        )
    ]
    assert lines(directory / "leader-epoch-checkpoint")[1:] == ["0", "2", "0 0", "1 8"]
    with pytest.raises(SimulationError, match="no such file"):
        lines(directory / "nothing.log")


def test_dump_decodes_metadata_and_control_records(tmp_path) -> None:
    made = manager(FileStore(tmp_path))
    log = made.create(METADATA_PARTITION, "AAAAAAAAAAAAAAAAAAAAAQ")
    change = {"leaderId": 1, "voters": [{"voterId": 1}], "grantingVoters": []}
    control = NewRecord(
        NOW, control_key("LeaderChangeMessage"), encode("LeaderChangeMessage", 0, change)
    )
    log.append_as_leader(build_batch([control], control=True), 1, NOW)
    record = {"partitionId": 0, "topicId": TOPIC_ID, "leader": 2}
    value = encode("PartitionChangeRecord", 1, record)
    log.append_as_leader(build_batch([NewRecord(NOW, None, value)]), 1, NOW)
    log.append_as_leader(build_batch([NewRecord(NOW, None, b"garbage")]), 1, NOW)
    made.finish()
    path = tmp_path / "__cluster_metadata-0" / f"{0:020d}.log"
    found = [line for line in lines(path, decoder="cluster-metadata") if line.startswith("|")]
    assert found[0].endswith(
        'LeaderChange: {"version":0,"leaderId":1,"voters":[{"voterId":1}],"grantingVoters":[]}'
    )
    assert found[1].endswith(
        'payload: {"type":"PARTITION_CHANGE_RECORD","version":1,"data":{"partitionId":0,'
        f'"topicId":"{TOPIC_ID}","leader":2}}}}'
    )
    assert "Error at offset 2, skipping." in found[2]


def test_dump_decodes_committed_offsets_and_deletions(tmp_path) -> None:
    key = encode("OffsetCommitKey", 0, {"group": "g1", "topic": "t1", "partition": 0})
    commit = {"offset": 20, "leaderEpoch": 0, "metadata": "", "commitTimestamp": 7}
    value = encode("OffsetCommitValue", 3, commit)
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(build_batch([NewRecord(NOW, key, value), NewRecord(NOW, key, None)]).data)
    found = lines(path, decoder="offsets")
    shown = 'key: {"type":"1","data":{"group":"g1","topic":"t1","partition":0}} payload: '
    assert found[3].endswith(
        shown + '{"version":"3","data":{"offset":20,"leaderEpoch":0,"metadata":"",'
        '"commitTimestamp":7}}'
    )
    assert found[4].endswith(shown + "<DELETE>")


def test_a_sound_directory_has_no_findings(tmp_path) -> None:
    shut_down(tmp_path, LogConfig(index_interval_bytes=100, segment_bytes=900))
    assert examine(tmp_path) == []


def damage(directory, name: str, how) -> None:
    path = directory / name
    path.write_bytes(how(path.read_bytes()))


LOG, INDEX, TIMES = (f"orders-0/{0:020d}.{kind}" for kind in ("log", "index", "timeindex"))


@pytest.mark.parametrize(
    ("name", "how", "severity", "message"),
    [
        (LOG, lambda d: d[:100] + b"!" + d[101:], "error", "checksum is wrong"),
        (LOG, lambda d: d[:-1], "error", "no whole batch"),
        (LOG, lambda d: d[len(d) // 2 :], "error", "is followed by"),
        (LOG, lambda d: d[:15] + b"\x07" + d[16:], "error", "leader epoch 0 follows 7"),
        (INDEX, lambda d: d[:-1] + b"\x01", "error", "no batch with last offset"),
        (INDEX, lambda d: d + d[:8], "error", "offset 3 follows 11"),
        (TIMES, lambda d: d[12:] + d[:12], "error", "timestamp"),
        (TIMES, lambda d: d[:-1], "warning", "ends within an entry"),
        ("meta.properties", lambda _: b"version=1\n", "error", "not a meta.properties"),
        ("recovery-point-offset-checkpoint", lambda _: b"0\n9\n", "error", "9 entries declared"),
        ("replication-offset-checkpoint", lambda d: d.replace(b"12", b"13"), "warning", "beyond"),
        ("orders-0/leader-epoch-checkpoint", lambda d: d.replace(b"1 8", b"1 9"), "error", "epoch"),
        ("orders-0/partition.metadata", lambda d: d[:-1], "error", "partition.metadata"),
        (f"orders-0/{12:020d}.snapshot", lambda d: d[:-1] + b"!", "warning", "checksum"),
    ],
)
def test_each_kind_of_damage_is_found(tmp_path, name, how, severity, message) -> None:
    shut_down(tmp_path)
    damage(tmp_path, name, how)
    findings = examine(tmp_path)
    assert any(
        found.severity == severity and message in found.message and found.path == tmp_path / name
        for found in findings
    ), findings


def test_missing_files_and_stray_directories_are_found(tmp_path) -> None:
    directory = shut_down(tmp_path)
    (tmp_path / "meta.properties").unlink()
    (directory / "partition.metadata").unlink()
    (tmp_path / "lost+found").mkdir()
    messages = [found.message for found in examine(tmp_path)]
    assert len(messages) == 3
    with pytest.raises(SimulationError, match="no such directory"):
        examine(tmp_path / "nowhere")


def test_a_gap_between_segments_is_found(tmp_path) -> None:
    made = manager(FileStore(tmp_path), config=LogConfig(segment_bytes=200))
    log = made.create(TopicPartition("t", 0), TOPIC_ID)
    for i in range(3):
        log.append_as_leader(batch(i), 0, NOW)
    made.finish()
    (tmp_path / "t-0" / f"{1:020d}.log").unlink()
    assert any("begins at 2" in found.message for found in examine(tmp_path))


ABORTED = struct.pack(">hqqqq", 0, 3, 0, 2, 3)
"""An entry as a real broker writes it: producer 3, offsets 0 to 1, marker at 2."""


def aborted(root):
    """A clean directory whose log holds one aborted transaction."""
    directory = shut_down(root)
    data = build_batch(
        [NewRecord(NOW, b"t", b"1"), NewRecord(NOW, b"u", b"2")],
        leader_epoch=0, producer_id=3, producer_epoch=0, base_sequence=0, transactional=True,
    )  # fmt: skip
    abort = encode("EndTxnMarker", 0, {"coordinatorEpoch": 1})
    marker = build_batch(
        [NewRecord(NOW, control_key("EndTxnMarker"), abort)],
        base_offset=2, leader_epoch=0, producer_id=3, producer_epoch=0,
        transactional=True, control=True,
    )  # fmt: skip
    for file in directory.glob("0*"):
        file.unlink()
    (directory / f"{0:020d}.log").write_bytes(data.data + marker.data)
    for suffix in ("index", "timeindex"):
        (directory / f"{0:020d}.{suffix}").touch()
    (directory / f"{0:020d}.txnindex").write_bytes(ABORTED)
    (directory / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    for checkpoint in root.glob("*-checkpoint"):
        checkpoint.write_text("0\n0\n")
    return directory


def test_dump_prints_aborted_transactions(tmp_path) -> None:
    path = aborted(tmp_path) / f"{0:020d}.txnindex"
    assert lines(path)[1:] == [
        "version: 0 producerId: 3 firstOffset: 0 lastOffset: 2 lastStableOffset: 3"
    ]


def test_the_doctor_finds_an_abort_and_its_entry_together(tmp_path) -> None:
    directory = aborted(tmp_path)
    assert examine(tmp_path) == []
    (directory / f"{0:020d}.txnindex").unlink()
    [finding] = examine(tmp_path)
    assert "the abort of producer 3 at 2 has no entry" in finding.message


def test_the_doctor_misses_the_abort_of_an_entry(tmp_path) -> None:
    directory = aborted(tmp_path)
    index = directory / f"{0:020d}.txnindex"
    index.write_bytes(ABORTED[:2] + (4).to_bytes(8, "big") + ABORTED[10:])
    assert [f.message for f in examine(tmp_path)] == ["no marker at 2 aborts producer 4"]


@pytest.mark.parametrize(("clean_below", "complaints"), [(7, 0), (6, 1)])
def test_offsets_may_be_missing_only_where_a_log_was_compacted(
    tmp_path, clean_below, complaints
) -> None:
    directory = aborted(tmp_path)
    log = directory / f"{0:020d}.log"
    later = build_batch([NewRecord(NOW, b"t", b"1")], base_offset=7, leader_epoch=0)
    log.write_bytes(log.read_bytes() + later.data)
    (tmp_path / "cleaner-offset-checkpoint").write_text(f"0\n1\norders 0 {clean_below}\n")
    assert len(examine(tmp_path)) == complaints


def test_dump_names_a_snapshot_of_the_metadata_log(tmp_path) -> None:
    value = encode("SnapshotHeaderRecord", 0, {"lastContainedLogTimestamp": 5})
    record = NewRecord(NOW, control_key("SnapshotHeaderRecord"), value)
    header = build_batch([record], leader_epoch=3, control=True)
    path = tmp_path / f"{40:020d}-{3:010d}.checkpoint"
    path.write_bytes(header.data)
    found = lines(path, deep=True)
    assert found[1] == "Snapshot end offset: 40, epoch: 3"
    assert found[3].endswith('SnapshotHeader {"version":0,"lastContainedLogTimestamp":5}')
    odd = tmp_path / "odd.checkpoint"
    odd.write_bytes(header.data)
    with pytest.raises(SimulationError, match="named by end offset and epoch"):
        lines(odd)
