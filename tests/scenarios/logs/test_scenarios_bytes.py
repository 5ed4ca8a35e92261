"""What lies on the simulated disks is Kafka's: another reader decodes it, our own tools agree."""

import itertools
import re
import shutil
import struct
import warnings
from collections import Counter

import pytest

from sim.inspect.doctor import examine
from sim.inspect.dump import dump
from tests.scenarios.run_kit import SHIPPED

with warnings.catch_warnings():  # its import uses deprecated functions of the standard library
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.codec import has_lz4, has_snappy, has_zstd
    from kafka.record.memory_records import MemoryRecords

RUNS = [
    pytest.param(
        name,
        marks=[pytest.mark.slow] if name == "quickstart" else [],
    )
    for name in ("small", *SHIPPED)
]
pytestmark = pytest.mark.skipif(
    not (has_snappy() and has_lz4() and has_zstd()),
    reason="kafka-python finds no libraries for the codecs; make setup brings them",
)
ALONE = {"retry-storm", "retry-storm-patient"}
"""One broker: nobody follows."""

EMPTY = {("share-group-renewals", "jobs-0")}
"""Its 40 small records without keys are less than a batch, and go to one partition."""

LINE = re.compile(r"^baseOffset: (\d+) lastOffset: (\d+) count: (\d+) .* crc: (\d+) isvalid: true$")
VALUE = struct.Struct(">4siqq")


@pytest.fixture
def ran(shared, name):
    return shared.ran(name)


def decoded(path):
    """Batches of a segment as kafka-python reads them, checksums verified."""
    records = MemoryRecords(path.read_bytes())
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc(), f"{path}: batch at offset {batch.base_offset}"
        yield batch
    assert records.valid_bytes() == path.stat().st_size, f"{path}: bytes behind the last batch"


def named(record):
    """Where a record says who it is: its value, or a tombstone's first header."""
    if record.value is not None:
        return record.value
    key, value = record.headers[0]
    assert key == "lq"
    return value


def summary(batch):
    last = batch.base_offset + batch.last_offset_delta
    return (batch.base_offset, last, batch.records_count, batch.crc)


def segments(ran, kind=""):
    """Log files by partition directory, in the order of offsets."""
    logs = [log for directory in ran.log_dirs(kind) for log in sorted(directory.glob("*/*.log"))]
    return [list(group) for _, group in itertools.groupby(logs, key=lambda log: log.parent)]


def compacted(ran):
    """Names of the partitions that a cleaner has been at: there offsets may be missing."""
    return {f"{row['topic']}-{row['partition']}" for row in ran.rows("cleanings")}


@pytest.mark.parametrize("name", RUNS)
def test_kafka_python_decodes_every_segment_and_dump_prints_the_same_batches(ran, name):
    seen, cleaned = 0, compacted(ran)
    for logs in segments(ran):
        following = int(logs[0].stem)
        epoch = -1
        gaps = logs[0].parent.name in cleaned
        for log in logs:
            base = int(log.stem)
            assert base == following or (gaps and base > following), f"{log}: a gap before it"
            told = []
            for batch in decoded(log):
                assert batch.magic == 2
                base = batch.base_offset
                assert base == following or (gaps and base > following), log
                assert batch.leader_epoch >= epoch, log
                following = batch.base_offset + batch.last_offset_delta + 1
                epoch = batch.leader_epoch
                told.append(summary(batch))
            lines = [
                LINE.match(line) for line in itertools.islice(dump(log, print_data=False), 2, None)
            ]
            assert [tuple(map(int, line.groups())) for line in lines] == told, log
            seen += len(told)
    assert seen > 1_000


@pytest.mark.parametrize("name", RUNS)
def test_kafka_python_finds_each_record_where_the_trace_says_it_was_appended(ran, name):
    """Of every partition's final leader: producer, number and offset of each record."""
    rows, cleaned = {}, compacted(ran)
    for row in ran.rows("appends", as_leader=True):
        if row["producer_index"] >= 0:
            # A cleaner that takes records away gives the batch another checksum, and keeps offsets.
            crc = -1 if f"{row['topic']}-{row['partition']}" in cleaned else row["crc"]
            rows[row["topic"], row["partition"], row["base_offset"], crc] = row
    leaders = {(r["topic"], r["partition"]): r["leader"] for r in ran.rows("partition_changes")}
    found = Counter()
    for logs in segments(ran, "broker"):
        directory = logs[0].parent
        topic, _, number = directory.name.rpartition("-")
        broker = int(directory.parent.parent.name.removeprefix("broker-"))
        if topic.startswith("__") or number == "delete" or leaders[topic, int(number)] != broker:
            continue
        for log in logs:
            for batch in decoded(log):
                if batch.is_control_batch:
                    continue  # a transaction's marker is no producer's record
                crc = -1 if directory.name in cleaned else batch.crc
                row = rows[topic, int(number), batch.base_offset, crc]
                records = list(batch)
                assert [VALUE.unpack_from(named(record))[:3] for record in records] == [
                    (
                        b"LQR1",
                        row["producer_index"],
                        row["first_record"] + record.offset - row["base_offset"],
                    )
                    for record in records
                ]
                if crc >= 0:
                    assert len(records) == row["record_count"]
                found[topic] += len(records)
    topics = ran.verdict["topics"]
    assert sorted(found) == sorted(topics)
    for topic, counts in topics.items():
        # Aborted records lie in the log, too, unless the producer never got them there.
        there = counts["survived"] + counts["duplicated"]
        assert there <= found[topic] <= there + counts["aborted"]


@pytest.mark.parametrize("name", RUNS)
def test_the_doctor_finds_every_log_directory_sound(ran, name):
    findings = {str(path): examine(path) for path in ran.log_dirs()}
    assert len(findings) >= (2 if name in ALONE else 3), "every broker has one"
    assert {path: found for path, found in findings.items() if found} == {}


@pytest.mark.parametrize("name", RUNS)
def test_replicas_are_alike_byte_for_byte_below_the_smallest_end(ran, name):
    replicas, values, cleaned = {}, {}, compacted(ran)
    for logs in segments(ran, "broker"):
        partition = logs[0].parent.name
        if partition in cleaned:
            last = {record.key: record.value for log in logs for b in decoded(log) for record in b}
            values.setdefault(partition, []).append(last)
            continue
        data = b"".join(log.read_bytes() for log in logs)
        replicas.setdefault(partition, []).append(data)
    assert any(len(copies) >= (1 if name in ALONE else 3) for copies in replicas.values())
    # Cleaners of different replicas are at different points; of each key they keep the same value.
    for partition, copies in values.items():
        assert all(copy == copies[0] for copy in copies), partition
    for partition, copies in replicas.items():
        shortest = min(map(len, copies))
        assert len({copy[:shortest] for copy in copies}) == 1, partition
        assert shortest > 0 or partition.startswith("__") or (name, partition) in EMPTY


def test_one_flipped_byte_is_seen_by_both_readers(shared, tmp_path):
    """The twin: none of the tests above passes on any bytes whatever."""
    source = next(d for d in shared.ran("small").log_dirs("broker") if list(d.glob("orders-*")))
    directory = tmp_path / "data-0"
    shutil.copytree(source, directory)
    log = next(
        log for log in sorted(directory.glob("orders-*/*.log")) if log.stat().st_size > 9_000
    )
    data = bytearray(log.read_bytes())
    data[8_000] ^= 1
    log.write_bytes(data)
    assert any(finding.path == log for finding in examine(directory))
    with pytest.raises(AssertionError, match=r"batch at offset|bytes behind"):
        list(decoded(log))
