"""What a leader demands of records and changes in them: keys, timestamps, codecs, sizes."""

from dataclasses import replace

import pytest

from sim.error_codes import ErrorCode
from sim.log.config import NO_LIMIT, LogConfig, RecordRules
from sim.log.partition import validator
from sim.log.partition.validator import validated
from sim.nodes.storage.log_settings import log_config, record_rules
from sim.wire import rewrite
from sim.wire.compression import CODECS
from sim.wire.control_batch import Marker, end_transaction_marker
from sim.wire.record_batch import LOG_APPEND_TIME, NewRecord, RecordBatch, build_batch
from sim.wire.rewrite import recompressed, with_append_time
from tests.log.log_kit import NOW, batch, contents, new_log

PLAIN = RecordRules()
KEYED = [NewRecord(NOW + n, b"k%d" % n, b"v" * 50) for n in range(20)]


def leader(tmp_path, **config):
    return new_log(tmp_path, log_config(config))


def append(log, made, now=NOW):
    return log.append_as_leader(made, 0, now)


def records(log):
    return [record for found in log.batches() for record in found.records()]


# -- keys ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS)
def test_a_compacted_topic_refuses_a_batch_in_which_one_record_has_no_key(tmp_path, codec):
    log = leader(tmp_path, **{"cleanup.policy": "compact"})
    spoiled = [*KEYED[:9], NewRecord(NOW, None, b"v"), *KEYED[10:]]
    assert append(log, build_batch(spoiled, codec=codec)).error is ErrorCode.INVALID_RECORD
    assert log.log_end_offset == 0
    assert append(log, build_batch(KEYED, codec=codec)).error is ErrorCode.NONE
    assert log.log_end_offset == 20


def test_tombstones_and_empty_keys_are_taken_by_compacted_topics(tmp_path):
    log = leader(tmp_path, **{"cleanup.policy": "compact,delete"})
    made = build_batch([NewRecord(NOW, b"k", None), NewRecord(NOW, b"", b"")])
    assert append(log, made).error is ErrorCode.NONE


def test_a_topic_that_is_not_compacted_takes_records_without_keys(tmp_path):
    log = leader(tmp_path, **{"cleanup.policy": "delete"})
    assert append(log, batch(0, 3)).error is ErrorCode.NONE


# -- timestamps ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("late_ms", "taken"), [(1_000, True), (1_001, False)])
def test_a_record_may_be_as_late_as_before_max_ms_and_no_later(tmp_path, late_ms, taken):
    log = leader(tmp_path, **{"message.timestamp.before.max.ms": "1000"})
    stamps = [NewRecord(NOW, b"k", b"v"), NewRecord(NOW - late_ms, b"k", b"v")]
    error = append(log, build_batch(stamps)).error
    assert error is (ErrorCode.NONE if taken else ErrorCode.INVALID_TIMESTAMP)


@pytest.mark.parametrize(("early_ms", "taken"), [(500, True), (501, False)])
def test_a_record_may_be_as_early_as_after_max_ms_and_no_earlier(tmp_path, early_ms, taken):
    log = leader(tmp_path, **{"message.timestamp.after.max.ms": "500"})
    error = append(log, batch(0, 2, at_ms=early_ms)).error
    assert error is (ErrorCode.NONE if taken else ErrorCode.INVALID_TIMESTAMP)


def test_a_bad_timestamp_is_named_before_a_missing_key():
    rules = RecordRules(compacted=True, before_max_ms=10)
    spoiled = build_batch([NewRecord(NOW, None, b"v"), NewRecord(NOW - 50, b"k", b"v")])
    assert validated(spoiled, rules, NOW) is ErrorCode.INVALID_TIMESTAMP


@pytest.mark.parametrize("codec", CODECS)
def test_with_log_append_time_the_leader_stamps_the_batch_and_leaves_its_records(tmp_path, codec):
    log = leader(
        tmp_path,
        **{
            "message.timestamp.type": "LogAppendTime",
            "message.timestamp.before.max.ms": "5",
            "message.timestamp.after.max.ms": "5",
        },
    )
    made = build_batch(KEYED, codec=codec)
    now = NOW + 10**9
    appended = append(log, made, now)
    assert appended.error is ErrorCode.NONE
    (found,) = log.batches()
    assert found.valid()
    assert found.attributes & LOG_APPEND_TIME
    assert found.max_timestamp_ms == now
    assert found.base_timestamp_ms == made.base_timestamp_ms
    assert found.data[61:] == made.data[61:]
    assert {record.timestamp_ms for record in found.records()} == {now}
    assert found.crc != made.crc


def test_append_time_without_a_new_checksum_would_be_seen(tmp_path):
    """The twin: bytes changed under the old checksum are no valid batch."""
    made = build_batch(KEYED)
    right = with_append_time(made, NOW + 7)
    forged = right.data[:17] + made.data[17:21] + right.data[21:]
    assert right.valid()
    assert not RecordBatch.parse(forged).valid()


# -- codecs ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("source", CODECS)
@pytest.mark.parametrize("target", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
def test_a_topic_with_a_codec_of_its_own_holds_nothing_else(tmp_path, source, target):
    log = leader(tmp_path, **{"compression.type": target})
    made = build_batch(KEYED, codec=source, producer_id=8, producer_epoch=1, base_sequence=0)
    assert append(log, made).error is ErrorCode.NONE
    (found,) = log.batches()
    wanted = "none" if target == "uncompressed" else target
    assert found.codec == wanted
    assert found.valid()
    assert [r[1:] for r in found.records()] == [r[1:] for r in made.records()]
    assert (found.producer_id, found.producer_epoch, found.base_sequence) == (8, 1, 0)
    if source == wanted:
        assert found.crc == made.crc


@pytest.mark.parametrize("source", CODECS)
def test_by_default_a_topic_keeps_the_producers_codec_and_bytes(tmp_path, source):
    log = leader(tmp_path, **{"compression.type": "producer"})
    made = build_batch(KEYED, codec=source)
    append(log, made)
    assert contents(log)[0][16:] == made.data[16:]


def test_the_level_is_the_topics(tmp_path):
    text = b"".join(b"order %d of shop %d; " % (n * n, n % 17) for n in range(3_000))
    made = build_batch([NewRecord(NOW, b"k", text)])
    sizes = []
    for name, level in (("quick", "1"), ("dense", "9")):
        configs = {"compression.type": "gzip", "compression.gzip.level": level}
        log = new_log(tmp_path / name, log_config(configs))
        append(log, made)
        sizes.append(log.size_bytes)
    assert sizes[0] > sizes[1]


def test_a_retry_is_known_although_the_log_holds_other_bytes(tmp_path):
    log = leader(tmp_path, **{"compression.type": "zstd"})
    made = batch(0, 5, pid=4)
    first = append(log, made)
    again = append(log, made)
    assert again.duplicate
    assert (again.base_offset, again.last_offset) == (first.base_offset, first.last_offset)
    assert len(records(log)) == 5


def test_markers_are_not_compressed(tmp_path):
    log = leader(tmp_path, **{"compression.type": "gzip"})
    marker = end_transaction_marker(Marker(True, 4, 0, 0), NOW)
    append(log, marker)
    assert contents(log)[0][16:] == marker.data[16:]


def test_size_is_looked_at_before_and_after_recompression(tmp_path):
    """Small enough on the wire is not enough if the topic wants it uncompressed."""
    made = build_batch(KEYED, codec="gzip")
    plain = recompressed(made, "none")
    assert made.size_bytes < 400 < plain.size_bytes
    taken = log_config({"compression.type": "uncompressed"})
    for limit, error in ((400, ErrorCode.MESSAGE_TOO_LARGE), (plain.size_bytes, ErrorCode.NONE)):
        log = new_log(tmp_path / str(limit), replace(taken, max_message_bytes=limit))
        assert append(log, made).error is error
    small = new_log(tmp_path / "segment", replace(taken, segment_bytes=400))
    assert append(small, made).error is ErrorCode.RECORD_LIST_TOO_LARGE
    kept = new_log(tmp_path / "kept", LogConfig(max_message_bytes=400))
    assert append(kept, made).error is ErrorCode.NONE


def test_records_that_cannot_be_decompressed_are_corrupt(tmp_path):
    log = leader(tmp_path, **{"compression.type": "zstd"})
    good = build_batch(KEYED, codec="gzip")
    broken = rewrite._with(good, b"no gzip at all", good.attributes, good.max_timestamp_ms)
    assert broken.valid()
    assert append(log, broken).error is ErrorCode.CORRUPT_MESSAGE


def test_a_recompression_that_loses_a_record_is_caught(tmp_path, monkeypatch):
    """Planted: the leader writes one record less than it says."""

    def lossy(made, rules, now_ms):
        kept = build_batch(KEYED[:-1], codec=rules.codec)
        attributes = made.attributes & ~7 | CODECS.index(rules.codec)
        return rewrite._with(made, kept.data[61:], attributes, made.max_timestamp_ms)

    monkeypatch.setattr(validator, "validated", lossy)
    log = leader(tmp_path, **{"compression.type": "zstd"})
    append(log, build_batch(KEYED))
    with pytest.raises(ValueError, match="ends within"):
        records(log)


# -- which topics have rules -----------------------------------------------------------------------


def test_a_topic_at_kafkas_defaults_has_no_rules():
    assert record_rules({}) is None
    defaults = {
        "cleanup.policy": "delete",
        "compression.type": "producer",
        "message.timestamp.type": "CreateTime",
        "message.timestamp.before.max.ms": str(NO_LIMIT),
        "compression.gzip.level": "4",
    }
    assert record_rules(defaults) is None
    assert validated(batch(0, 2), PLAIN, NOW).data == batch(0, 2).data


@pytest.mark.parametrize(
    "changed",
    [
        {"cleanup.policy": "compact"},
        {"compression.type": "uncompressed"},
        {"message.timestamp.type": "LogAppendTime"},
        {"message.timestamp.before.max.ms": "9"},
    ],
)
def test_each_setting_alone_makes_rules(changed):
    assert record_rules(changed) is not None
