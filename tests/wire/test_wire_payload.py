"""Producer batches, many records at a time: the same bytes as one by one, and their way back."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.units import timestamp_ms
from sim.wire.payload import (
    Payload,
    batch_size_bound,
    build_producer_batch,
    decode_payloads,
    decode_value,
    encode_key,
    encode_value,
)
from sim.wire.record_batch import NewRecord, RecordBatch, build_batch

NOW = timestamp_ms(0)


def one_by_one(first, intended, size, stamps, keys, **header):
    records = [
        NewRecord(
            int(stamp),
            None if keys is None else encode_key(int(keys[i])),
            encode_value(Payload(3, first + i, int(intended[i])), size),
        )
        for i, stamp in enumerate(stamps)
    ]
    return build_batch(records, **header)


def vectorised(first, intended, size, stamps, keys, **header):
    return build_producer_batch(
        producer_index=3, first_record=first, intended_us=np.asarray(intended, dtype=np.int64),
        value_size=size, timestamps_ms=np.asarray(stamps, dtype=np.int64),
        key_ids=None if keys is None else np.asarray(keys, dtype=np.int64), **header,
    )  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(
    count=st.integers(1, 200),
    size=st.sampled_from([24, 25, 63, 64, 100, 1000, 9000]),
    spread=st.sampled_from([0, 5, 63, 64, 300, 20_000, 10**7]),
    keyed=st.booleans(),
    disorder=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_vectorised_batch_is_byte_for_byte_the_general_one(
    count: int, size: int, spread: int, keyed: bool, disorder: bool, seed: int
) -> None:
    draw = np.random.default_rng(seed)
    stamps = NOW + draw.integers(0, spread + 1, count)
    if not disorder:
        stamps.sort()
    intended = draw.integers(-(10**9), 10**12, count)
    keys = draw.integers(0, 10**8, count) if keyed else None
    args = (77, intended, size, stamps, keys)
    header = {"producer_id": 5, "producer_epoch": 1, "base_sequence": 9}
    fast, slow = vectorised(*args, **header), one_by_one(*args, **header)
    assert fast.data == slow.data
    found = decode_payloads(fast.stamped(500, 2).data)
    assert found.producer_index == 3
    assert found.numbers.tolist() == list(range(77, 77 + count))
    assert found.intended_us.tolist() == intended.tolist()
    assert found.offsets.tolist() == list(range(500, 500 + count))


def test_large_batches_cross_every_width_of_the_offset() -> None:
    count = 8_200
    args = (0, np.arange(count), 24, np.full(count, NOW), None)
    fast = vectorised(*args)
    assert fast.data == one_by_one(*args).data
    assert decode_payloads(fast.data).numbers.tolist() == list(range(count))


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_compressed_batches_decode_to_the_same_payloads(codec: str) -> None:
    batch = vectorised(40, np.arange(30), 100, NOW + np.arange(30), None, codec=codec)
    assert batch.size_bytes < 30 * 100
    assert decode_payloads(batch.data).numbers.tolist() == list(range(40, 70))
    parsed = RecordBatch.parse(batch.data)
    assert (parsed.producer_index, parsed.first_record) == (3, 40)


def test_keys_of_nine_digits_take_the_general_path() -> None:
    args = (0, np.arange(20), 50, np.full(20, NOW), np.arange(20) + 10**8)
    batch = vectorised(*args)
    assert batch.data == one_by_one(*args).data
    assert decode_payloads(batch.data).numbers.tolist() == list(range(20))


def test_a_reused_template_does_not_leak_into_the_next_batch() -> None:
    first = vectorised(0, np.arange(50), 100, NOW + np.arange(50), np.arange(50))
    kept = bytes(first.data)
    vectorised(999, np.arange(50) * 7, 100, NOW + np.arange(50)[::-1], np.arange(50) + 5)
    assert first.data == kept


def test_a_row_that_differs_in_one_byte_is_not_taken_for_ours() -> None:
    batch = vectorised(0, np.arange(50), 100, np.full(50, NOW), None)
    broken = bytearray(batch.data)
    at = bytes(broken).rindex(b"LQR1")
    broken[at : at + 4] = b"XXXX"
    assert decode_payloads(bytes(broken)).producer_index == -1
    assert decode_payloads(batch.data).producer_index == 3


def test_a_filler_that_differs_is_read_by_the_general_path() -> None:
    batch = vectorised(0, np.arange(50), 100, np.full(50, NOW), None)
    broken = batch.data[:-2] + b"!" + batch.data[-1:]
    assert decode_payloads(broken).numbers.tolist() == list(range(50))


def test_batches_of_others_have_no_producer() -> None:
    batch = build_batch([NewRecord(NOW, b"k", b"somebody else's value, long enough")])
    assert (batch.producer_index, batch.first_record) == (-1, -1)
    assert len(decode_payloads(batch.data).numbers) == 0
    assert decode_value(b"LQR1") is None


def test_the_bound_of_a_batchs_size_holds_and_is_close() -> None:
    for keyed in (False, True):
        keys = np.arange(300) if keyed else None
        batch = vectorised(0, np.arange(300), 100, NOW + np.arange(300), keys)
        bound = batch_size_bound(100, 300, keyed=keyed)
        assert batch.size_bytes <= bound <= 1.02 * batch.size_bytes


@pytest.mark.parametrize("count", [1, 20, 2_000])
def test_a_transaction_s_batch_differs_by_one_bit_of_its_attributes(count: int) -> None:
    intended = list(range(count))
    stamps = [NOW + i // 1_000 for i in range(count)]
    header = {"producer_id": 9, "producer_epoch": 1, "base_sequence": 0}
    plain = vectorised(0, intended, 100, stamps, None, **header)
    marked = vectorised(0, intended, 100, stamps, None, transactional=True, **header)
    general = one_by_one(0, intended, 100, stamps, None, transactional=True, **header)
    assert marked.data == general.data
    assert marked.is_transactional
    assert not plain.is_transactional
    assert marked.data[23:] == plain.data[23:]
