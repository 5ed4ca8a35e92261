"""The options of the dump, its complaints, and its answer in JSON."""

import json
import struct

import pytest

from sim.errors import SimulationError
from sim.inspect.dump import DumpOptions, shown
from sim.inspect.dump_checks import Complaints
from sim.log.config import LogConfig
from sim.log.store.files import FileStore
from sim.wire.record_batch import NewRecord, build_batch
from sim.wire.schemas import control_key, encode
from tests.log.log_kit import NOW, TOPIC_ID, TP, batch, manager

LOG, INDEX, TIMES = (f"{0:020d}.{kind}" for kind in ("log", "index", "timeindex"))


@pytest.fixture
def partition(tmp_path):
    made = manager(FileStore(tmp_path), config=LogConfig(index_interval_bytes=100))
    log = made.create(TP, TOPIC_ID)
    for i in range(6):
        log.append_as_leader(batch(i * 2, 2, at_ms=i), 0, NOW)
    made.shutdown(5)
    made.finish()
    return tmp_path / "orders-0"


def dumped(path, **options):
    complaints = Complaints()
    lines = [each.text for each in shown(path, DumpOptions(**options), complaints)]
    return lines[1:], complaints.lines


def test_a_sound_partition_brings_no_complaint(partition):
    for path in partition.iterdir():
        assert dumped(path, deep=True)[1] == []


@pytest.mark.parametrize(
    ("name", "change", "complaints"),
    [
        (INDEX, lambda d: d[:3] + b"\x02" + d[4:],
         ["Mismatches in :{path}", "  Index offset: 2, log offset: 3"]),
        (TIMES, lambda d: d[:7] + bytes([d[7] ^ 1]) + d[8:],
         ["Found timestamp mismatch in :{path}",
          f"  Index timestamp: {NOW ^ 1}, log timestamp: {NOW}"]),
        (TIMES, lambda d: d[12:24] + d[:12],
         ["Found out of order timestamp in :{path}",
          f"  Index timestamp: {NOW}, Previously indexed timestamp: {NOW + 1}"]),
        (TIMES, lambda d: d[:11] + b"\x02" + d[12:24],
         ["The following indexed offsets are not found in :{path}",
          "Indexed offset: 2, found log offset: 3"]),
        (TIMES, lambda d: d[:11] + b"\x63",
         ["The following indexed offsets are not found in :{path}",
          "Indexed offset: 99, found log offset: -1"]),
    ],
)  # fmt: skip
def test_an_index_that_does_not_fit_its_log_is_complained_of(partition, name, change, complaints):
    path = partition / name
    times = path.read_bytes()
    if name == TIMES:
        entry = struct.Struct(">qi")
        times = b"".join(entry.pack(NOW + i, i * 2 + 1) for i in range(3))
    path.write_bytes(change(times))
    wanted = [line.format(path=path) for line in complaints]
    found = dumped(path)[1]
    assert found[: len(wanted)] == wanted


def test_records_that_do_not_follow_each_other_are_complained_of(partition):
    path = partition / LOG
    more = build_batch([NewRecord(NOW, b"k", b"v")], base_offset=14, leader_epoch=0)
    path.write_bytes(path.read_bytes() + more.data)
    assert dumped(path)[1] == []
    assert dumped(path, deep=True)[1] == [
        f"Non-consecutive offsets in {path}",
        "  11 is followed by 14",
    ]


def test_an_index_walk_ends_at_the_zeros_of_a_preallocated_file(partition):
    path = partition / INDEX
    sound = dumped(path)
    path.write_bytes(path.read_bytes() + bytes(80))
    assert dumped(path) == sound


def test_an_entry_that_points_nowhere_and_an_index_without_its_log_are_refused(partition):
    path = partition / INDEX
    path.write_bytes(path.read_bytes()[:7] + b"\x01")
    with pytest.raises(SimulationError, match="no batch of at most 5242880 bytes at position"):
        dumped(path)
    (partition / LOG).unlink()
    for name in (INDEX, TIMES):
        with pytest.raises(SimulationError, match=rf"no {LOG} beside it"):
            dumped(partition / name)


def test_a_batch_larger_than_asked_is_not_found(partition):
    assert dumped(partition / INDEX, max_message_bytes=10_000)[1] == []
    with pytest.raises(SimulationError, match="at most 100 bytes"):
        dumped(partition / INDEX, max_message_bytes=100)


def test_verifying_prints_nothing_but_complaints(partition):
    path = partition / INDEX
    assert dumped(path, verify_index_only=True) == ([], [])
    path.write_bytes(path.read_bytes()[:3] + b"\x02" + path.read_bytes()[4:])
    lines, complaints = dumped(path, verify_index_only=True)
    assert lines == []
    assert complaints[0].startswith("Mismatches in")


@pytest.mark.parametrize("name", [INDEX, TIMES])
def test_the_sanity_check_is_a_brokers(partition, name):
    path = partition / name
    assert dumped(path, index_sanity_only=True)[0] == [f"{path} passed sanity check."]
    path.write_bytes(path.read_bytes() + b"!")
    with pytest.raises(SimulationError, match="a multiple of"):
        dumped(path, index_sanity_only=True)


@pytest.mark.parametrize(
    ("name", "entries", "message"),
    [
        (f"{9:020d}.index", struct.pack(">ii", -3, 0), "last offset 6 found, 9 or more expected"),
        (f"{9:020d}.timeindex", struct.pack(">qiqi", 9, 1, 8, 2), "last timestamp 8 found, 9 or"),
    ],
)
def test_what_fails_the_sanity_check_is_rebuilt_by_a_broker(tmp_path, name, entries, message):
    (tmp_path / name).write_bytes(entries)
    with pytest.raises(SimulationError, match=message):
        dumped(tmp_path / name, index_sanity_only=True)


def test_only_as_much_is_read_as_asked(partition):
    whole = dumped(partition / LOG)[0]
    size = int(whole[1].partition(" size: ")[2].split()[0])
    assert dumped(partition / LOG, max_bytes=2 * size)[0] == whole[:3]
    assert dumped(partition / LOG, max_bytes=2 * size - 1)[0] == whole[:2]


def test_without_metadata_a_record_is_its_contents_and_a_control_record_nothing(tmp_path):
    data = build_batch([NewRecord(NOW, b"k", b"v")], leader_epoch=0)
    value = encode("EndTxnMarker", 0, {"coordinatorEpoch": 3})
    marker = build_batch(
        [NewRecord(NOW, control_key("EndTxnMarker", commit=True), value)],
        base_offset=1, leader_epoch=0, control=True, transactional=True, producer_id=1,
        producer_epoch=0,
    )  # fmt: skip
    path = tmp_path / LOG
    path.write_bytes(data.data + marker.data)
    lines, _ = dumped(path, print_data=True, skip_record_metadata=True)
    records = [line for line in lines if not line.startswith("base")][1:]
    assert records == ["| key: k payload: v", ""]


def test_every_line_has_fields_for_programs(partition):
    for path in partition.iterdir():
        for each in shown(path, DumpOptions(print_data=True), Complaints()):
            again = json.loads(json.dumps(each.fields))
            assert again
            if each.kind in {"batch", "record"}:
                assert {"position", "crc", "isvalid"} <= set(again) or "keySize" in again
                for name, value in again.items():
                    if isinstance(value, int) and not isinstance(value, bool):
                        assert f"{name}: {value}" in each.text
