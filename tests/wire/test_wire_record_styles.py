"""Headers, tombstones and noise in producer batches: the same bytes as one by one, and back."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.units import timestamp_ms
from sim.wire.compression import CODECS, Codec
from sim.wire.noise import Noise
from sim.wire.payload import (
    Payload,
    build_producer_batch,
    decode_payloads,
    encode_key,
    encode_value,
    payload_of,
    tombstone_headers,
)
from sim.wire.record_batch import NewRecord, RecordBatch, build_batch
from sim.wire.rows import PLAIN, Style, encoded_headers_bytes, headers_of

with warnings.catch_warnings():
    # The library reads its resources in a way that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.codec import has_gzip, has_lz4, has_snappy, has_zstd
    from kafka.record.default_records import DefaultRecordBatchBuilder
    from kafka.record.memory_records import MemoryRecords

NOW = timestamp_ms(0)
READABLE = ["none"] + [
    name
    for name, has in (
        ("gzip", has_gzip), ("snappy", has_snappy), ("lz4", has_lz4), ("zstd", has_zstd),
    )
    if has()
]  # fmt: skip
"""Codecs whose libraries kafka-python finds."""
POOL = np.random.default_rng(5).integers(0, 256, 4_096).astype(np.uint8)


def one_by_one(first, intended, size, stamps, keys, style, noise, dead, **header):
    records = []
    for i, stamp in enumerate(stamps):
        payload = Payload(3, first + i, int(intended[i]))
        key = None if keys is None else encode_key(int(keys[i]))
        if dead is not None and dead[i]:
            record = NewRecord(int(stamp), key, None, tombstone_headers(payload, style))
        else:
            hiss = b"" if noise is None else noise.rows(first + i, 1).tobytes()
            value = encode_value(payload, size, hiss)
            record = NewRecord(int(stamp), key, value, headers_of(style))
        records.append(record)
    return build_batch(records, **header)


def vectorised(first, intended, size, stamps, keys, style, noise, dead, **header):
    return build_producer_batch(
        producer_index=3, first_record=first, intended_us=intended, value_size=size,
        timestamps_ms=stamps, key_ids=keys, style=style, noise=noise, tombstones=dead, **header,
    )  # fmt: skip


CASES = {
    "count": st.integers(1, 150),
    "size": st.sampled_from([24, 25, 63, 100, 700]),
    "spread": st.sampled_from([0, 5, 63, 64, 300, 20_000]),
    "keyed": st.booleans(),
    "headers": st.sampled_from([(0, 0), (1, 0), (3, 16), (100, 70)]),
    "noisy": st.sampled_from([0.0, 0.3, 1.0]),
    "dead": st.sampled_from([None, 0.0, 0.1, 0.6, 1.0]),
    "codec": st.sampled_from(CODECS),
    "seed": st.integers(0, 2**31),
}


def a_case(count, size, spread, keyed, headers, noisy, dead, seed):
    draw = np.random.default_rng(seed)
    stamps = np.sort(NOW + draw.integers(0, spread + 1, count))
    intended = draw.integers(-(10**9), 10**12, count)
    keys = draw.integers(0, 10**8, count) if keyed else None
    hiss = int(noisy * (size - 24))
    noise = Noise(POOL, hiss) if hiss else None
    gone = None if dead is None else draw.random(count) < dead
    return 77, intended, size, stamps, keys, Style(*headers, hiss), noise, gone


@settings(max_examples=120, deadline=None)
@given(**CASES)
def test_batch_in_rows_is_byte_for_byte_the_one_built_record_by_record(codec, **case) -> None:
    args = a_case(**case)
    header = {"producer_id": 5, "producer_epoch": 1, "base_sequence": 9, "codec": codec}
    fast, slow = vectorised(*args, **header), one_by_one(*args, **header)
    assert fast.data == slow.data
    found = decode_payloads(fast.stamped(500, 2).data)
    assert found.producer_index == 3
    assert found.numbers.tolist() == list(range(77, 77 + case["count"]))
    assert found.intended_us.tolist() == args[1].tolist()
    again = RecordBatch.parse(fast.data)
    assert (again.producer_index, again.first_record) == (3, 77)


@settings(max_examples=40, deadline=None)
@given(**{**CASES, "codec": st.sampled_from(READABLE)})
def test_kafka_python_reads_every_record_and_its_builder_gives_the_same_bytes(
    codec: Codec, **case
) -> None:
    args = a_case(**case)
    batch = vectorised(*args, codec=codec)
    theirs = MemoryRecords(batch.data).next_batch()
    assert theirs.validate_crc()
    ours = list(batch.records())
    read = list(theirs)
    assert [(r.offset, r.timestamp, r.key, r.value, r.headers) for r in read] == [
        (r.offset, r.timestamp_ms, r.key, r.value, [tuple(h) for h in r.headers]) for r in ours
    ]
    if codec != "none":
        return  # theirs packs differently, if it packs at all
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=0, is_transactional=0, producer_id=-1, producer_epoch=-1,
        base_sequence=-1, batch_size=1 << 30,
    )  # fmt: skip
    for r in ours:
        headers = [tuple(h) for h in r.headers]
        builder.append(r.offset, r.timestamp_ms, r.key, r.value, headers=headers)
    built = bytearray(builder.build())
    built[12:16] = batch.data[12:16]  # they write leader epoch 0
    assert bytes(built) == batch.data


def test_tombstone_names_itself_in_its_first_header_and_has_no_value() -> None:
    batch = vectorised(
        9, np.array([1_000]), 100, np.array([NOW]), np.array([4]), Style(1, 2), None,
        np.array([True]),
    )  # fmt: skip
    (record,) = batch.records()
    assert record.value is None
    assert [header.key for header in record.headers] == ["lq", "h00"]
    assert payload_of(record) == Payload(3, 9, 1_000)


def test_null_value_without_the_naming_header_is_nobodys() -> None:
    for headers in ((), headers_of(Style(2, 24))):
        batch = build_batch([NewRecord(NOW, b"k", None, headers)])
        (record,) = batch.records()
        assert payload_of(record) is None
        assert RecordBatch.parse(batch.data).producer_index == -1


def test_a_name_that_is_not_in_the_first_header_is_not_looked_for() -> None:
    named = tombstone_headers(Payload(3, 1, 1))
    other = build_batch([NewRecord(NOW, b"k", None, (*headers_of(Style(1, 0)), *named))])
    assert RecordBatch.parse(other.data).producer_index == -1
    assert (
        RecordBatch.parse(build_batch([NewRecord(NOW, b"k", None, named)]).data).first_record == 1
    )


def test_noise_of_a_record_is_the_same_in_every_batch_that_holds_it() -> None:
    noise = Noise(POOL, 100)
    whole = noise.rows(30, 60)
    assert (noise.rows(40, 5) == whole[10:15]).all()
    assert (whole[0] != whole[1]).any()
    assert len(np.unique(noise.rows(0, 40), axis=0)) == 40


@pytest.mark.parametrize("codec", [codec for codec in CODECS if codec != "none"])
def test_noise_does_not_compress_and_dots_do(codec: Codec) -> None:
    count = 30
    intended, stamps = np.arange(count), np.full(count, NOW)

    def size(hiss):
        noise = Noise(POOL, hiss) if hiss else None
        args = (0, intended, 124, stamps, None, Style(0, 0, hiss), noise, None)
        return vectorised(*args, codec=codec).size_bytes

    assert size(100) > 100 * count
    assert 50 * count < size(50) < 100 * count
    assert size(0) < 50 * count


def test_headers_take_what_is_counted_for_them() -> None:
    for style in (PLAIN, Style(1, 0), Style(3, 16), Style(100, 200)):
        with_headers = build_batch([NewRecord(NOW, None, b"", headers_of(style))])
        (record,) = with_headers.records()
        assert len(record.headers) == style.header_count
        counted = sum(
            1 + len(h.key) + (1 if len(h.value or b"") < 64 else 2) + len(h.value or b"")
            for h in record.headers
        )
        assert encoded_headers_bytes(style) == counted
