"""What a simulated producer writes into its records, many records at a time.

A value starts with ``LQR1``, the producer's index, the record's number and the intended instant of
sending; filler follows. Records of one batch have one size, so a batch's body is a few blocks of
equal rows: a template is kept per shape and only numbers are written into it. Batches that do not
fit that pattern take the general path of :mod:`sim.wire.record_batch`, with the same bytes.

Sources: the record layout of ``DefaultRecord``; the payload is our own.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sim.ids import NO_EPOCH, ProducerId
from sim.units import Bytes
from sim.wire.compression import CODECS, Codec, compress
from sim.wire.mould import STAMP_MAX, Mould
from sim.wire.primitives import encode_varint, record_field
from sim.wire.record_batch import (
    HEADER_BYTES,
    PAYLOAD,
    PAYLOAD_MAGIC,
    NewRecord,
    RecordBatch,
    assemble,
    encode_record,
)

Int64s: TypeAlias = NDArray[np.int64]
"""One whole number per record."""

Rows: TypeAlias = NDArray[np.void]

FILLER = b"\x2e"
"""What pads a value to its size."""

KEY_BYTES: Bytes = 12
"""Size of a key whose id has up to eight digits."""

MIN_VALUE_BYTES: Bytes = PAYLOAD.size
"""Smallest value that holds the payload: 24 bytes."""

_TEMPLATES = 64
_MOULD_ROWS = 1_024
_FEW_RECORDS = 2
_FEW_ROWS = 12
_LARGEST_SHORT_KEY = 99_999_999
_FOUR_DIGITS = np.frombuffer(b"".join(b"%04d" % i for i in range(10_000)), np.uint8).reshape(-1, 4)


class Payload(NamedTuple):
    """The head of a value. ``intended_us`` is an instant of the scenario's clock."""

    producer_index: int
    number: int
    intended_us: int


class Payloads(NamedTuple):
    """The payloads of a batch, one element per record; arrays are int64 of equal length."""

    producer_index: int
    """-1 if the batch is not a simulated producer's; then the arrays are empty."""
    numbers: Int64s
    intended_us: Int64s
    offsets: Int64s


class _Shape(NamedTuple):
    """All rows with one shape have the same size and their numbers in the same columns."""

    value_size: Bytes
    keyed: bool
    timestamp_width: int
    offset_width: int


_templates: dict[_Shape, Rows] = {}
_moulds: dict[tuple[Bytes, bool], Mould] = {}


def encode_key(key_id: int) -> bytes:
    """The key of a record: ``key-00000042``."""
    return b"key-%08d" % key_id


def encode_value(payload: Payload, value_size: Bytes) -> bytes:
    """The value of one record; ``value_size`` is at least :data:`MIN_VALUE_BYTES`."""
    assert value_size >= MIN_VALUE_BYTES, f"a value has {MIN_VALUE_BYTES} bytes or more"
    return PAYLOAD.pack(PAYLOAD_MAGIC, *payload) + FILLER * (value_size - PAYLOAD.size)


def decode_value(value: bytes | None) -> Payload | None:
    """The payload of a value, ``None`` if no simulated producer wrote it."""
    if value is None or len(value) < PAYLOAD.size or not value.startswith(PAYLOAD_MAGIC):
        return None
    return Payload(*PAYLOAD.unpack_from(value)[1:])


def build_producer_batch(
    *,
    producer_index: int,
    first_record: int,
    intended_us: Int64s,
    value_size: Bytes,
    timestamps_ms: Int64s,
    key_ids: Int64s | None = None,
    producer_id: ProducerId = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    codec: Codec = "none",
) -> RecordBatch:
    """A producer's batch as its client encodes it: base offset 0, leader epoch unknown.

    Args:
        producer_index: Number of the simulated producer.
        first_record: Its number, in this partition, of the first record; the rest count on.
        intended_us: Intended instant of sending, one per record, at least one.
        value_size: Bytes of every value, at least :data:`MIN_VALUE_BYTES`.
        timestamps_ms: Kafka timestamp of each record.
        key_ids: Key of each record, not negative; ``None`` for null keys.
        producer_id: Idempotent producer's id; -1 for none.
        producer_epoch: With the id.
        base_sequence: With the id.
        codec: Compression of the body.
    """
    assert value_size >= MIN_VALUE_BYTES, f"a value has {MIN_VALUE_BYTES} bytes or more"
    count = len(intended_us)
    base = int(timestamps_ms[0])
    deltas = timestamps_ms - base
    last = int(deltas[-1]) if count == 1 else int(np.maximum.reduce(deltas))
    long_keys = key_ids is not None and int(np.maximum.reduce(key_ids)) > _LARGEST_SHORT_KEY
    even = last <= STAMP_MAX and int(np.minimum.reduce(deltas)) >= 0
    if codec == "none" and even and _FEW_RECORDS < count <= _MOULD_ROWS and not long_keys:
        mould = _mould(value_size, count, keyed=key_ids is not None)
        digits = None if key_ids is None else _digits(key_ids)
        end = mould.cast(producer_index, first_record, intended_us, deltas, digits)
        return RecordBatch(
            mould.batch(end, count, base, base + last, producer_id, producer_epoch, base_sequence),
            producer_index=producer_index,
            first_record=first_record,
            checked=True,
        )
    if count <= _FEW_RECORDS or long_keys:
        body = _slow_body(producer_index, first_record, intended_us, value_size, deltas, key_ids)
    else:
        digits = None if key_ids is None else _digits(key_ids)
        body = [
            _fill(shape, start, end, producer_index, first_record, intended_us, deltas, digits)
            for shape, start, end in _runs(value_size, deltas, last, keyed=key_ids is not None)
        ]
    if codec != "none":
        body = [compress(codec, b"".join(body))]
    data = assemble(
        body,
        base_offset=0,
        leader_epoch=NO_EPOCH,
        attributes=CODECS.index(codec),
        last_offset_delta=count - 1,
        base_timestamp_ms=base,
        max_timestamp_ms=base + last,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=count,
    )
    return RecordBatch(data, producer_index=producer_index, first_record=first_record, checked=True)


def _mould(value_size: Bytes, count: int, *, keyed: bool) -> Mould:
    found = _moulds.get((value_size, keyed))
    if found is not None and found.capacity >= count:
        return found
    if len(_moulds) >= _TEMPLATES and found is None:
        _moulds.pop(next(iter(_moulds)))
    rows, start, blocks = min(_MOULD_ROWS, max(128, 2 * count)), 0, []
    while start < rows:
        shape = _Shape(value_size, keyed, 1, _width(start))
        end = min(rows, _class_end(shape.offset_width))
        blocks.append(_template(shape, end)[: end - start])
        start = end
    made = _moulds[value_size, keyed] = Mould(blocks)
    return made


def batch_size_bound(value_size: Bytes, records: int, *, keyed: bool) -> Bytes:
    """Most bytes that an uncompressed batch of so many records takes; a client's estimate.

    Offsets below 8,192 and timestamp deltas below 8,192 ms are assumed, as one batch has them.
    """
    row = 1 + 2 + 2 + (1 + KEY_BYTES if keyed else 1)
    row += len(encode_varint(value_size)) + value_size + 1
    return HEADER_BYTES + records * (row + len(encode_varint(row)))


def decode_payloads(batch_bytes: bytes) -> Payloads:
    """The payloads of a whole encoded batch; the checksum is not looked at.

    Uncompressed batches of our own shape are read as arrays, after every fixed byte of every row
    was compared; all others are decoded record by record.

    Raises:
        MalformedBytes: If the records cannot be decoded.
    """
    batch = RecordBatch.parse(batch_bytes)
    index = batch.producer_index
    if index < 0:
        empty = np.empty(0, dtype=np.int64)
        return Payloads(-1, empty, empty, empty)
    if batch.attributes & 7 == 0 and batch.record_count > _FEW_ROWS:
        fast = _decode_rows(batch, index)
        if fast is not None:
            return fast
    return _decode_records(batch, index)


def _decode_records(batch: RecordBatch, index: int) -> Payloads:
    rows: list[tuple[int, int, int]] = []
    for record in batch.records():
        payload = decode_value(record.value)
        if payload is None or payload.producer_index != index:
            empty = np.empty(0, dtype=np.int64)
            return Payloads(-1, empty, empty, empty)
        rows.append((payload.number, payload.intended_us, record.offset))
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return Payloads(index, table[:, 0], table[:, 1], table[:, 2])


def _decode_rows(batch: RecordBatch, index: int) -> Payloads | None:
    """Read runs of equal rows against their templates; ``None`` if any row differs."""
    first = next(iter(batch.records()))
    assert first.value is not None, "the caller found a payload"
    keyed = first.key is not None
    if keyed and (len(first.key or b"") != KEY_BYTES):
        return None
    value_size = len(first.value)
    numbers = np.empty(batch.record_count, dtype=np.int64)
    intended = np.empty(batch.record_count, dtype=np.int64)
    row, position = 0, HEADER_BYTES
    while row < batch.record_count:
        matched = 0
        for width in (1, 2, 3):
            shape = _Shape(value_size, keyed, width, _width(row))
            block = _matching_rows(batch, shape, row, position, index)
            if block is not None and len(block):
                matched = len(block)
                numbers[row : row + matched] = block["number"]
                intended[row : row + matched] = block["intended"]
                position += matched * block.dtype.itemsize
                row += matched
                break
        if not matched:
            return None
    if position != batch.size_bytes:
        return None
    offsets = np.arange(batch.base_offset, batch.base_offset + batch.record_count, dtype=np.int64)
    return Payloads(index, numbers, intended, offsets)


def _matching_rows(
    batch: RecordBatch, shape: _Shape, row: int, position: int, index: int
) -> Rows | None:
    """The longest prefix of rows from ``row`` on whose fixed bytes are the template's."""
    limit = min(batch.record_count, _class_end(shape.offset_width))
    template = _template(shape, limit)
    size = template.dtype.itemsize
    limit = min(limit, row + (batch.size_bytes - position) // size)
    if limit <= row:
        return None
    block: Rows = np.frombuffer(batch.data, template.dtype, limit - row, position)
    start = _class_start(shape.offset_width)
    model = template[row - start : limit - start]
    same = block["producer"] == index
    for fixed in ("front", "beforekey", "middle", "back"):
        same &= block[fixed] == model[fixed]
    stamp = block["timestamp"]
    for column in range(shape.timestamp_width):
        more = stamp[:, column] >= 0x80
        same &= more if column < shape.timestamp_width - 1 else ~more
    if shape.keyed:
        same &= ((block["key"] >= 0x30) & (block["key"] <= 0x39)).all(axis=1)
    differs = np.flatnonzero(~same)
    return block[: differs[0]] if len(differs) else block


def _slow_body(
    producer_index: int,
    first_record: int,
    intended_us: Int64s,
    value_size: Bytes,
    deltas: Int64s,
    key_ids: Int64s | None,
) -> list[bytes]:
    keys = [encode_key(key) for key in key_ids.tolist()] if key_ids is not None else None
    body = []
    for i, (intended, delta) in enumerate(zip(intended_us.tolist(), deltas.tolist(), strict=True)):
        value = encode_value(Payload(producer_index, first_record + i, intended), value_size)
        body.append(encode_record(NewRecord(0, keys[i] if keys else None, value), delta, i))
    return body


def _runs(
    value_size: Bytes, deltas: Int64s, last: int, *, keyed: bool
) -> Iterator[tuple[_Shape, int, int]]:
    """Stretches of rows with one shape: (shape, first row, row after the last)."""
    count = len(deltas)
    if last < 64 and int(deltas.min()) >= -64:
        bounds = [(0, count, 1)]
    else:
        widths = np.searchsorted(_WIDTH_STEPS, _zigzag(deltas), side="right") + 1
        starts = [0, *(np.flatnonzero(np.diff(widths)) + 1).tolist(), count]
        bounds = [(start, end, int(widths[start])) for start, end in pairwise(starts)]
    for start, end, width in bounds:
        row = start
        while row < end:
            offset_width = _width(row)
            stop = min(end, _class_end(offset_width))
            yield _Shape(value_size, keyed, width, offset_width), row, stop
            row = stop


def _fill(
    shape: _Shape,
    start: int,
    end: int,
    producer_index: int,
    first_record: int,
    intended_us: Int64s,
    deltas: Int64s,
    digits: NDArray[np.uint8] | None,
) -> bytes:
    """The rows [start, end) as bytes: numbers written into the template, which is reused."""
    base = _class_start(shape.offset_width)
    rows = _template(shape, end)[start - base : end - base]
    rows["producer"] = producer_index
    rows["number"] = np.arange(first_record + start, first_record + end)
    rows["intended"] = intended_us[start:end]
    if digits is not None:
        rows["key"] = digits[start:end]
    zigzag = _zigzag(deltas[start:end])
    stamp = rows["timestamp"]
    if shape.timestamp_width == 1:
        stamp[:, 0] = zigzag
    else:
        final = shape.timestamp_width - 1
        for column in range(final):
            stamp[:, column] = zigzag >> (7 * column) & 0x7F | 0x80
        stamp[:, final] = zigzag >> (7 * final)
    return rows.tobytes()


def _template(shape: _Shape, rows: int) -> Rows:
    """Rows of the shape's offset class up to row number ``rows``, all fixed bytes in place."""
    start = _class_start(shape.offset_width)
    found = _templates.get(shape)
    if found is not None and len(found) >= rows - start:
        return found
    if len(_templates) >= _TEMPLATES and found is None:
        _templates.pop(next(iter(_templates)))
    end = min(_class_end(shape.offset_width), max(64, 2 * rows))
    front = encode_varint(_body_size(shape)) + bytes(1 + shape.timestamp_width)
    key = record_field(encode_key(0) if shape.keyed else None)
    back = key + record_field(encode_value(Payload(0, 0, 0), shape.value_size)) + b"\x00"
    parts: list[bytes] = []
    for row in range(start, end):
        parts += (front, encode_varint(row), back)
    made: Rows = np.frombuffer(bytearray(b"".join(parts)), dtype=_row_type(shape))
    _templates[shape] = made
    return made


def _body_size(shape: _Shape) -> Bytes:
    """Bytes of a record after its length."""
    key = 1 + KEY_BYTES if shape.keyed else 1
    value = len(encode_varint(shape.value_size)) + shape.value_size
    return 1 + shape.timestamp_width + shape.offset_width + key + value + 1


def _row_type(shape: _Shape) -> np.dtype[np.void]:
    """Columns of a row: fixed bytes under ``front``, ``middle`` and ``back``, numbers between."""
    length = len(encode_varint(_body_size(shape)))
    value_length = len(encode_varint(shape.value_size))
    before_key = shape.offset_width + (1 + 4 if shape.keyed else 1)
    fields: list[tuple[str, str] | tuple[str, str, tuple[int, ...]]] = [
        ("front", f"V{length + 1}"),
        ("timestamp", "u1", (shape.timestamp_width,)),
        ("beforekey", f"V{before_key}"),
    ]
    if shape.keyed:
        fields.append(("key", "u1", (8,)))
    fields += [
        ("middle", f"V{value_length + 4}"),
        ("producer", ">i4"),
        ("number", ">i8"),
        ("intended", ">i8"),
        ("back", f"V{shape.value_size - PAYLOAD.size + 1}"),
    ]
    return np.dtype(fields)


def _digits(key_ids: Int64s) -> NDArray[np.uint8]:
    """The eight decimal digits of each id as text, shape (ids, 8)."""
    high, low = np.divmod(key_ids, 10_000)
    return np.concatenate((_FOUR_DIGITS[high], _FOUR_DIGITS[low]), axis=1)


def _zigzag(deltas: Int64s) -> Int64s:
    return (deltas << 1) ^ (deltas >> 63)


_WIDTH_STEPS = np.array([1 << (7 * width) for width in range(1, 9)], dtype=np.int64)


def _width(row: int) -> int:
    """Bytes of an offset delta."""
    return len(encode_varint(row))


def _class_start(offset_width: int) -> int:
    """First row whose offset delta has that width."""
    return 0 if offset_width == 1 else 1 << (7 * (offset_width - 1) - 1)


def _class_end(offset_width: int) -> int:
    """Row after the last whose offset delta has that width."""
    return 1 << (7 * offset_width - 1)
