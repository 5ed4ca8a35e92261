"""Record batches: Kafka's bytes, an independent decoder, checksums and codecs."""

import struct
import warnings

import pytest
from crc32c import crc32c
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.protocol.ports import Batch
from sim.wire.compression import CODECS, Codec, compress, decompress
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import (
    Header,
    NewRecord,
    RecordBatch,
    assemble,
    build_batch,
    encode_record,
    parse_batches,
)
from sim.wire.schemas import control_key, encode

with warnings.catch_warnings():
    # The library reads its resources in a way that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.memory_records import MemoryRecords

T = 1_700_000_000_000
WORKED = [
    NewRecord(T, b"k1", b"v1", (Header("h", b"x"),)),
    NewRecord(T + 5, b"k2", None),
    NewRecord(T + 5, None, b""),
]
RECORDS = st.lists(
    st.builds(
        NewRecord,
        st.integers(0, 10**13),
        st.none() | st.binary(max_size=40),
        st.none() | st.binary(max_size=300),
        st.lists(
            st.builds(Header, st.text(max_size=5), st.none() | st.binary(max_size=9)), max_size=2
        ).map(tuple),
    ),
    min_size=1,
    max_size=20,
)


def test_crc_is_castagnoli() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_worked_batch_has_kafkas_bytes() -> None:
    batch = build_batch(WORKED, leader_epoch=0)
    expected = (
        "0000000000000000 00000050 00000000 02 dffa90ad 0000 00000002 0000018bcfe56800"
        "0000018bcfe56805 ffffffffffffffff ffff ffffffff 00000003"
        "1c000000046b310476310202680278 10000a02046b320100 0c000a04010000"
    )
    assert batch.data.hex() == expected.replace(" ", "")


def test_stamping_offset_and_epoch_leaves_the_checksum_valid() -> None:
    client = build_batch(WORKED, leader_epoch=0)
    stamped = client.stamped(1000, 7)
    again = RecordBatch.parse(stamped.data)
    assert again.valid()
    assert (again.base_offset, again.last_offset, again.leader_epoch) == (1000, 1002, 7)
    assert again.crc == client.crc == 0xDFFA90AD
    assert client.base_offset == 0


def test_changing_any_byte_under_the_checksum_is_noticed() -> None:
    data = build_batch(WORKED).data
    for position in range(21, len(data)):
        broken = bytearray(data)
        broken[position] ^= 1
        assert not RecordBatch.parse(bytes(broken)).valid()


def test_commit_marker_has_kafkas_bytes() -> None:
    marker = build_batch(
        [
            NewRecord(
                T + 9,
                control_key("EndTxnMarker", commit=True),
                encode("EndTxnMarker", 0, {"coordinatorEpoch": 3}),
            )
        ],
        base_offset=2, leader_epoch=0, producer_id=4000, producer_epoch=2,
        transactional=True, control=True,
    )  # fmt: skip
    assert marker.data.hex() == (
        "000000000000000200000042000000000269c199240030000000000000018bcf"
        "e56809" "0000018bcfe568090000000000000fa00002ffffffff0000000120000000080000"
        "00010c000000000003" "00"
    )  # fmt: skip
    assert marker.is_control
    assert marker.producer_index == -1


@settings(max_examples=60, deadline=None)
@given(RECORDS, st.sampled_from(CODECS), st.integers(0, 2**40))
def test_every_batch_comes_back_record_by_record(
    records: list[NewRecord], codec: Codec, base: int
) -> None:
    batch = RecordBatch.parse(build_batch(records, codec=codec, base_offset=base).data)
    assert batch.valid()
    found = list(batch.records())
    assert [(r.timestamp_ms, r.key, r.value, r.headers) for r in found] == records
    assert [r.offset for r in found] == list(range(base, base + len(records)))
    assert batch.max_timestamp_ms == max(r.timestamp_ms for r in records)


@pytest.mark.parametrize("codec", ["none", "gzip"])
def test_kafka_python_decodes_what_we_write(codec: Codec) -> None:
    first = build_batch(WORKED, codec=codec, producer_id=9, producer_epoch=1, base_sequence=4)
    data = first.stamped(10, 2).data + first.stamped(13, 2).data
    records = MemoryRecords(data)
    offsets = []
    while records.has_next():
        batch = records.next_batch()
        assert batch.validate_crc()
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (9, 1, 4)
        for mine, theirs in zip(WORKED, batch, strict=True):
            assert (theirs.timestamp, theirs.key, theirs.value) == mine[:3]
            assert theirs.headers == [tuple(header) for header in mine.headers]
            offsets.append(theirs.offset)
    assert offsets == list(range(10, 16))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [1, 40_000, 200_000])
def test_every_codec_gives_back_bodies_of_many_blocks(codec: Codec, size: int) -> None:
    body = (b"abcdefgh" * size)[:size]
    packed = compress(codec, body)
    assert decompress(codec, packed) == body
    assert packed == compress(codec, body)


def test_lz4_frames_have_independent_blocks_and_an_end_mark() -> None:
    stream = compress("lz4", bytes(100_000))
    assert stream.startswith(bytes.fromhex("04224d18604082"))
    assert stream.endswith(bytes(4))
    assert struct.unpack_from("<I", stream, 7)[0] < 64 * 1024


def test_garbage_under_a_codec_is_refused() -> None:
    for codec in CODECS[1:]:
        with pytest.raises(MalformedBytes):
            decompress(codec, b"no stream of any codec, surely")


def test_partial_batch_at_the_end_is_left_out_but_an_impossible_header_is_refused() -> None:
    data = build_batch(WORKED).data
    assert len(list(parse_batches(data + data[:-1]))) == 1
    with pytest.raises(MalformedBytes, match="less than a header"):
        list(parse_batches(data[:8] + bytes(4) + data[12:]))


def test_records_that_do_not_fill_their_declared_length_are_refused() -> None:
    data = bytearray(build_batch([NewRecord(T, None, b"abc")]).data)
    data[61] += 2
    with pytest.raises(MalformedBytes):
        list(RecordBatch.parse(bytes(data)).records())


def test_a_batch_is_what_the_ports_ask_for() -> None:
    batch: Batch = build_batch(WORKED)
    names = [name for name, value in vars(Batch).items() if isinstance(value, property)]
    assert len(names) == 15
    assert all(isinstance(getattr(batch, name), int) for name in names)


def test_offsets_that_have_records_are_told_in_runs_without_gaps() -> None:
    whole = build_batch([NewRecord(T, b"k", b"v")] * 4, base_offset=10)
    assert whole.offset_runs() == [(10, 13)]
    body = b"".join(encode_record(NewRecord(T, b"k", b"v"), 0, delta) for delta in (0, 2, 3, 6))
    left = RecordBatch(
        assemble(
            (body,), base_offset=10, leader_epoch=0, attributes=0, last_offset_delta=8,
            base_timestamp_ms=T, max_timestamp_ms=T, producer_id=-1, producer_epoch=-1,
            base_sequence=-1, record_count=4,
        )
    )  # fmt: skip
    assert left.offset_runs() == [(10, 10), (12, 13), (16, 16)]
