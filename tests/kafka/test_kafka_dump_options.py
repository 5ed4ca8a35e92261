"""Options and complaints of ``kafka-dump-log``, beside ours, on sound and on damaged files."""

import shutil

import pytest

from sim.errors import SimulationError
from sim.ids import TopicPartition, uuid_text
from sim.inspect.dump import DumpOptions, shown
from sim.inspect.dump_checks import Complaints
from sim.log.config import LogConfig
from sim.log.directory.manager import LogManager
from sim.log.store.files import FileStore
from sim.units import EPOCH_MS
from sim.wire.record_batch import NewRecord, build_batch

pytestmark = pytest.mark.kafka


@pytest.fixture(scope="module")
def partition(tmp_path_factory):
    """Twelve records with keys, headers left out, in six batches, with both indexes."""
    root = tmp_path_factory.mktemp("dump")
    config = LogConfig(index_interval_bytes=100)
    made = LogManager((FileStore(root),), 1, uuid_text("c"), (uuid_text("d"),), lambda _: config)
    log = made.create(TopicPartition("t", 0), uuid_text("t"))
    for i in range(6):
        records = [NewRecord(EPOCH_MS + i, b"key-%d" % i, b"v" * 60)] * 2
        batch = build_batch(records, producer_id=7, producer_epoch=0, base_sequence=i * 2)
        log.append_as_leader(batch, 0, EPOCH_MS)
    made.shutdown(5)
    made.finish()
    return root / "t-0"


def ours(paths, **options):
    complaints = Complaints()
    lines = [
        each.text for path in paths for each in shown(path, DumpOptions(**options), complaints)
    ]
    return lines, complaints.lines


def of(directory, suffix):
    return [path for path in sorted(directory.iterdir()) if path.suffix == suffix]


OPTIONS = [
    (".log", {"deep": True}, ["--deep-iteration"]),
    (".log", {"print_data": True}, ["--print-data-log"]),
    (
        ".log",
        {"print_data": True, "skip_record_metadata": True},
        ["--print-data-log", "--skip-record-metadata"],
    ),
    (".log", {"max_bytes": 500, "deep": True}, ["--max-bytes", "500", "--deep-iteration"]),
    (".index", {}, []),
    (".index", {"verify_index_only": True}, ["--verify-index-only"]),
    (".index", {"index_sanity_only": True}, ["--index-sanity-check"]),
    (".index", {"max_message_bytes": 1_000}, ["--max-message-size", "1000"]),
    (".timeindex", {}, []),
    (".timeindex", {"verify_index_only": True}, ["--verify-index-only"]),
    (".timeindex", {"index_sanity_only": True}, ["--index-sanity-check"]),
    (".snapshot", {}, []),
]


@pytest.mark.parametrize(("suffix", "ours_are", "theirs_are"), OPTIONS)
def test_each_option_prints_what_kafkas_prints(kafka, partition, suffix, ours_are, theirs_are):
    paths = of(partition, suffix)
    theirs = kafka.Dumped(paths, *theirs_are)
    assert ours(paths, **ours_are) == (theirs.lines, theirs.complaints)


DAMAGE = [
    pytest.param(".index", lambda d: d[:3] + b"\x02" + d[4:], id="another offset"),
    pytest.param(".timeindex", lambda d: d[:7] + bytes([d[7] ^ 1]) + d[8:], id="another time"),
    pytest.param(".timeindex", lambda d: d[:11] + bytes([d[11] - 1]) + d[12:], id="no batch's end"),
    pytest.param(".timeindex", lambda d: d[:11] + b"\x63" + d[12:], id="beyond the log"),
    pytest.param(".timeindex", lambda d: d[12:24] + d[:12], id="out of order"),
    pytest.param(".index", lambda d: d + bytes(80), id="zeros of a preallocated index"),
]


@pytest.mark.parametrize(("suffix", "damage"), DAMAGE)
def test_complaints_are_kafkas_own(kafka, partition, tmp_path, suffix, damage):
    copy = shutil.copytree(partition, tmp_path / "t-0")
    [path] = of(copy, suffix)
    path.write_bytes(damage(path.read_bytes()))
    theirs = kafka.Dumped([path])
    assert ours([path]) == (theirs.lines, theirs.complaints)


def test_a_gap_in_the_offsets_is_complained_of_alike(kafka, partition, tmp_path):
    copy = shutil.copytree(partition, tmp_path / "t-0")
    [path] = of(copy, ".log")
    more = build_batch([NewRecord(EPOCH_MS, b"k", b"v")], base_offset=20, leader_epoch=0)
    path.write_bytes(path.read_bytes() + more.data)
    theirs = kafka.Dumped([path], "--deep-iteration")
    assert ours([path], deep=True) == (theirs.lines, theirs.complaints)
    assert theirs.complaints[-1] == "  11 is followed by 20"


@pytest.mark.parametrize(
    ("suffix", "damage", "options", "ours_are"),
    [
        (".index", lambda d: d + b"!", ["--index-sanity-check"], {"index_sanity_only": True}),
        (".timeindex", lambda d: d + b"!", ["--index-sanity-check"], {"index_sanity_only": True}),
        (".index", lambda d: d[:7] + bytes([d[7] ^ 1]) + d[8:], [], {}),
    ],
)
def test_where_kafkas_tool_gives_up_ours_does(
    kafka, partition, tmp_path, suffix, damage, options, ours_are
):
    copy = shutil.copytree(partition, tmp_path / "t-0")
    [path] = of(copy, suffix)
    path.write_bytes(damage(path.read_bytes()))
    # First ours: when Kafka's tool closes an index, it cuts it to whole entries.
    with pytest.raises(SimulationError):
        ours([path], **ours_are)
    assert "exit code 1" in kafka.Dumped([path], *options).complaints
