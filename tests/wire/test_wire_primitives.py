"""Variable-length numbers and sized fields: Kafka's bytes, and what is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.wire.primitives import (
    MalformedBytes,
    compact_bytes,
    decode_uvarint,
    decode_varint,
    encode_uvarint,
    encode_varint,
    record_field,
    take_compact_bytes,
    take_record_field,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001"), (300, "d804"),
        (2**31 - 1, "feffffff0f"), (-(2**31), "ffffffff0f"),
    ],
)  # fmt: skip
def test_zigzag_numbers_have_kafkas_bytes(value: int, expected: str) -> None:
    assert encode_varint(value).hex() == expected
    assert decode_varint(bytes.fromhex(expected), 0) == (value, len(expected) // 2)


@pytest.mark.parametrize(
    ("value", "expected"), [(0, "00"), (127, "7f"), (128, "8001"), (300, "ac02")]
)
def test_unsigned_numbers_have_kafkas_bytes(value: int, expected: str) -> None:
    assert encode_uvarint(value).hex() == expected


@given(st.integers(-(2**63), 2**63 - 1))
def test_every_64_bit_number_comes_back(value: int) -> None:
    assert decode_varint(encode_varint(value), 0)[0] == value


@given(st.none() | st.binary(max_size=300))
def test_fields_come_back_with_null_distinct_from_empty(value: bytes | None) -> None:
    assert take_record_field(record_field(value), 0)[0] == value
    assert take_compact_bytes(compact_bytes(value), 0)[0] == value


def test_a_number_cut_short_is_refused() -> None:
    with pytest.raises(MalformedBytes, match="ends within"):
        decode_uvarint(b"\x80\x80", 0)


def test_a_number_of_more_than_64_bits_is_refused() -> None:
    with pytest.raises(MalformedBytes, match="too long"):
        decode_uvarint(b"\xff" * 11, 0)


def test_a_field_longer_than_the_data_is_refused() -> None:
    with pytest.raises(MalformedBytes, match="found"):
        take_record_field(encode_varint(5) + b"abc", 0)
