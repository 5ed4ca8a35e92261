"""Segment files as the second reader sees them, and where it stops believing."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.verify import segments
from sim.wire import rewrite
from sim.wire.compression import CODECS
from sim.wire.payload import Payload, build_producer_batch, encode_value, tombstone_headers
from sim.wire.record_batch import Header, NewRecord, build_batch
from sim.wire.rows import Style
from tests.analysis.synthetic import batch

SMALL = st.integers(0, 90)


def runs(path, data, window=segments.WINDOW_BYTES):
    path.write_bytes(data)
    return [row for found in segments.runs(path, window) for row in found.to_pylist()]


def of_numbers(numbers, offset=0, codec="none"):
    records = [NewRecord(1, None, encode_value(Payload(7, n, 0), 24)) for n in numbers]
    return build_batch(records, codec=codec).stamped(offset, 3)


def ranges(rows):
    return [
        (r["producer_index"], r["first_record"], r["record_count"], r["base_offset"]) for r in rows
    ]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "00000000000000000000.log"


def test_a_batch_is_one_range_with_its_header(path):
    rows = runs(path, batch(40, 300, producer=2, offset=1000, epoch=9).data)
    assert len(rows) == 1
    assert rows[0] | {"crc": 0} == {
        "position": 0, "size_bytes": path.stat().st_size, "base_offset": 1000, "last_offset": 1299,
        "leader_epoch": 9, "crc": 0, "producer_index": 2, "first_record": 40, "record_count": 300,
        "status": "ok", "kind": 0, "producer_id": -1,
    }  # fmt: skip


@pytest.mark.parametrize("window", [61, 100, 1_000, 1 << 20])
def test_windows_of_any_size_find_the_same(path, window):
    batches = [batch(n * 5, 1 + n % 5, producer=n % 3, offset=n * 5) for n in range(60)]
    rows = runs(path, b"".join(b.data for b in batches), window)
    assert ranges(rows) == [(n % 3, n * 5, 1 + n % 5, n * 5) for n in range(60)]


def test_every_record_is_read_not_only_the_first(path):
    rows = runs(path, of_numbers([5, 6, 9, 10, 11], offset=50).data)
    assert ranges(rows) == [(7, 5, 2, 50), (7, 9, 3, 52)]


RECORDS = st.one_of(
    st.builds(lambda owner, n: encode_value(Payload(owner, n, 0), 24), st.integers(6, 7), SMALL),
    st.sampled_from([None, b"", b"short", b"somebody else's value, long enough"]),
)


@given(st.lists(st.tuples(st.integers(1, 90), st.lists(RECORDS, max_size=5)), max_size=8))
def test_batches_of_anything_side_by_side_agree_with_the_record_by_record_reader(mixtures):
    """Each begins with a stretch of one producer's records, so that most of them get far."""
    batches, offset = [], 0
    for length, others in mixtures:
        values = [encode_value(Payload(7, n, 0), 24 + n % 70) for n in range(length)]
        records = [NewRecord(1000 * n, b"k" * n, v) for n, v in enumerate([*values, *others])]
        batches.append(build_batch(records).stamped(offset, 3))
        offset += len(records)
    with TemporaryDirectory() as place:
        found = runs(Path(place) / "0.log", b"".join(each.data for each in batches))
    expected = []
    for each in batches:
        plain = segments.SequenceRun(0, 0, 0, 0, 3, 0, -1, -1, 0, "ok")
        expected += [
            (run.producer_index, run.first_record, run.record_count, run.base_offset)
            for run in segments._slowly(each.data, plain)
        ]
    known = [run for run in sorted(ranges(found)) if run[0] >= 0]
    assert known == [run for run in sorted(expected) if run[0] >= 0]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_are_read_too(path, codec):
    rows = runs(path, of_numbers(range(20), codec=codec).data + batch(20, 4, offset=20).data)
    assert sorted(ranges(rows)) == [(0, 20, 4, 20), (7, 0, 20, 0)]


def test_batches_of_others_have_no_producer(path):
    foreign = build_batch([NewRecord(1, b"k", b"somebody else's value, long enough")]).stamped(0, 0)
    rows = runs(path, foreign.data)
    assert ranges(rows) == [(-1, -1, 1, 0)]
    assert rows[0]["status"] == "ok"


def test_a_flipped_bit_is_a_bad_crc_wherever_it_is(path):
    good = batch(0, 3).data
    after = batch(3, 3, offset=3).data
    for position in range(21, len(good)):
        data = bytearray(good + after)
        data[position] ^= 1
        rows = runs(path, bytes(data))
        assert [row["status"] for row in rows] == ["bad_crc", "ok"], position


def test_what_the_crc_does_not_cover_is_not_a_bad_crc(path):
    assert runs(path, batch(0, 3).stamped(99, 4).data)[0]["status"] == "ok"


def test_every_torn_tail_is_told_with_its_size(path):
    first, second = batch(0, 3).data, batch(3, 3, offset=3).data
    for kept in range(1, len(second)):
        rows = runs(path, first + second[:kept])
        assert [row["status"] for row in rows] == ["ok", "torn"]
        assert (rows[1]["position"], rows[1]["size_bytes"]) == (len(first), kept)


def test_a_whole_file_has_no_torn_tail(path):
    rows = runs(path, batch(0, 3).data + batch(3, 3, offset=3).data)
    assert [row["status"] for row in rows] == ["ok", "ok"]


def test_an_empty_file_has_no_runs(path):
    assert runs(path, b"") == []


def test_many_sizes_agree_with_the_record_by_record_reader(path):
    chance = np.random.default_rng(3)
    batches, first = [], 0
    for count in chance.integers(1, 200, 40).tolist():
        size = int(chance.integers(24, 300))
        batches.append(batch(first, count, producer=1, offset=first, value_size=size))
        first += count
    rows = runs(path, b"".join(b.data for b in batches))
    assert [(r["first_record"], r["record_count"], r["crc"]) for r in rows] == [
        (b.first_record, b.record_count, b.crc) for b in batches
    ]


def mixed(dead, *, codec="none", first=40, headers=(0, 0)):
    count = len(dead)
    return build_producer_batch(
        producer_index=6, first_record=first, intended_us=np.arange(count), value_size=60,
        timestamps_ms=np.full(count, 5), key_ids=np.arange(count), codec=codec,
        style=Style(*headers), tombstones=np.array(dead, dtype=np.bool_),
    )  # fmt: skip


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("headers", [(0, 0), (2, 90)])
def test_tombstones_count_as_the_records_they_are(path, codec, headers):
    cases = ([True], [True, False, False], [False, True, True, False], [True] * 70)
    first, batches = 0, []
    for dead in cases:
        batches.append(mixed(dead, codec=codec, first=first, headers=headers).stamped(first, 1))
        first += len(dead)
    rows = runs(path, b"".join(batch.data for batch in batches))
    assert sorted(ranges(rows)) == [(6, 0, 1, 0), (6, 1, 3, 1), (6, 4, 4, 4), (6, 8, 70, 8)]


def test_a_tombstone_of_somebody_else_is_not_ours(path):
    named = tombstone_headers(Payload(6, 1, 0))
    foreign = [
        (),
        (Header("lq", b"short"),),
        (Header("lx", named[0].value),),
        (Header("lq", b"XXXX" + named[0].value[4:]),),
    ]
    data = b"".join(
        build_batch([NewRecord(1, b"k", None, headers)]).stamped(n, 0).data
        for n, headers in enumerate(foreign)
    )
    ours = build_batch([NewRecord(1, b"k", None, named)]).stamped(4, 0)
    rows = runs(path, data + ours.data)
    assert [row["producer_index"] for row in rows] == [-1, -1, -1, -1, 6]
    assert {row["status"] for row in rows} == {"ok"}


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec != "none"])
def test_a_stream_that_lost_a_record_is_malformed_although_its_checksum_is_right(path, codec):
    """Planted: the header says one record more than the stream holds."""
    good, short = of_numbers(range(20), codec=codec), of_numbers(range(19), codec=codec)
    planted = rewrite._with(good, short.data[61:], good.attributes, good.max_timestamp_ms)
    assert planted.valid()
    (row,) = runs(path, planted.data)
    assert (row["status"], row["producer_index"]) == ("malformed", -1)
