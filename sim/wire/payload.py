"""Payload of a simulated producer's records, encoded many records at a time.

A value starts with ``LQR1``, the producer's index, the record's number and the intended instant of
sending; noise and filler follow. A tombstone has no value: its first header has the same four.
A batch's body is a few blocks of equal rows: a template is kept per shape and only numbers are
written into it. Batches that do not fit that pattern take the general path of
:mod:`sim.wire.record_batch`, with the same bytes.

Sources: the record layout of ``DefaultRecord``; the payload is our own.
"""

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sim.ids import NO_EPOCH, ProducerId
from sim.units import Bytes
from sim.wire.batch_template import STAMP_MAX, BatchTemplate
from sim.wire.compression import CODECS, Codec, compress
from sim.wire.noise import Noise
from sim.wire.primitives import encode_varint
from sim.wire.record_batch import (
    HEADER_BYTES,
    IDENTITY_HEADER,
    PAYLOAD,
    PAYLOAD_MAGIC,
    TRANSACTIONAL,
    Header,
    NewRecord,
    Record,
    RecordBatch,
    assemble,
    encode_record,
)
from sim.wire.rows import (
    FILLER,
    KEY_BYTES,
    PLAIN,
    TEMPLATES,
    Rows,
    Shape,
    Style,
    class_end,
    class_start,
    headers_of,
    template,
    width_of,
)

Int64s: TypeAlias = NDArray[np.int64]
"""One whole number per record."""

MIN_VALUE_BYTES: Bytes = PAYLOAD.size
"""Smallest value that holds the payload: 24 bytes."""

_TEMPLATE_ROWS = 1_024
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


_templates: dict[tuple[Bytes, bool, Style], BatchTemplate] = {}


def encode_key(key_id: int) -> bytes:
    """The key of a record: ``key-00000042``."""
    return b"key-%08d" % key_id


def encode_value(payload: Payload, value_size: Bytes, noise: bytes = b"") -> bytes:
    """The value of one record; ``value_size`` is at least :data:`MIN_VALUE_BYTES`."""
    assert value_size >= MIN_VALUE_BYTES, f"a value has {MIN_VALUE_BYTES} bytes or more"
    filler = FILLER * (value_size - PAYLOAD.size - len(noise))
    return PAYLOAD.pack(PAYLOAD_MAGIC, *payload) + noise + filler


def tombstone_headers(payload: Payload, style: Style = PLAIN) -> tuple[Header, ...]:
    """Headers of a tombstone; the first identifies the record."""
    named = Header(IDENTITY_HEADER, PAYLOAD.pack(PAYLOAD_MAGIC, *payload))
    return (named, *headers_of(style))


def decode_value(value: bytes | None) -> Payload | None:
    """The payload of a value, ``None`` if no simulated producer wrote it."""
    if value is None or len(value) < PAYLOAD.size or not value.startswith(PAYLOAD_MAGIC):
        return None
    return Payload(*PAYLOAD.unpack_from(value)[1:])


def payload_of(record: Record) -> Payload | None:
    """The payload of a record, tombstone or not; ``None`` if no simulated producer wrote it."""
    if record.value is not None:
        return decode_value(record.value)
    if not record.headers or record.headers[0].key != IDENTITY_HEADER:
        return None
    return decode_value(record.headers[0].value)


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
    level: int | None = None,
    style: Style = PLAIN,
    noise: Noise | None = None,
    tombstones: NDArray[np.bool_] | None = None,
    transactional: bool = False,
    value_sizes: Int64s | None = None,
) -> RecordBatch:
    """A producer's batch as its client encodes it: base offset 0, leader epoch unknown.

    Args:
        producer_index: Number of the simulated producer.
        first_record: Its number, in this partition, of the first record; the rest count on.
        intended_us: Intended instant of sending, one per record, at least one.
        value_size: Bytes of every value, at least :data:`MIN_VALUE_BYTES`; or of the largest.
        timestamps_ms: Kafka timestamp of each record.
        key_ids: Key of each record, not negative; ``None`` for null keys.
        producer_id: Idempotent producer's id; -1 for none.
        producer_epoch: With the id.
        base_sequence: With the id.
        codec: Compression of the body.
        level: Of the codec, on Kafka's scale; ``None`` for its default.
        style: What the records hold beside key, payload and filler.
        noise: Source of noise; required if the style has any.
        tombstones: Which records are tombstones; ``None`` for none.
        transactional: Whether the batch belongs to a transaction.
        value_sizes: Bytes of each value, with the same share of noise; ``None``: all alike.
    """
    assert value_size >= MIN_VALUE_BYTES, f"a value has {MIN_VALUE_BYTES} bytes or more"
    tombstones = None if tombstones is None or not tombstones.any() else tombstones
    count, base = len(intended_us), int(timestamps_ms[0])
    deltas = timestamps_ms - base
    last = int(deltas[-1]) if count == 1 else int(np.maximum.reduce(deltas))
    long_keys = key_ids is not None and int(np.maximum.reduce(key_ids)) > _LARGEST_SHORT_KEY
    even = last <= STAMP_MAX and int(np.minimum.reduce(deltas)) >= 0
    flags = TRANSACTIONAL if transactional else 0
    alike = tombstones is None and noise is None and value_sizes is None
    plain = codec == "none" and alike and not long_keys
    if plain and even and _FEW_RECORDS < count <= _TEMPLATE_ROWS:
        template_of_batch = _batch_template(value_size, count, style, keyed=key_ids is not None)
        digits = None if key_ids is None else _digits(key_ids)
        end = template_of_batch.fill(producer_index, first_record, intended_us, deltas, digits)
        data = template_of_batch.batch(
            end, count, base, base + last, producer_id, producer_epoch, base_sequence, flags
        )
        return RecordBatch(
            data, producer_index=producer_index, first_record=first_record, checked=True
        )
    batch = _Content(
        producer_index, first_record, intended_us, value_size, deltas, key_ids, style, noise,
        tombstones, value_sizes,
    )  # fmt: skip
    data, raw_bytes = batch.encode(
        base, last, producer_id, producer_epoch, base_sequence, codec, level, flags, slow=long_keys
    )
    return RecordBatch(
        data, producer_index=producer_index, first_record=first_record, checked=True,
        raw_bytes=raw_bytes,
    )  # fmt: skip


def _batch_template(value_size: Bytes, count: int, style: Style, *, keyed: bool) -> BatchTemplate:
    found = _templates.get((value_size, keyed, style))
    if found is not None and found.capacity >= count:
        return found
    if len(_templates) >= TEMPLATES and found is None:
        _templates.pop(next(iter(_templates)))
    rows, start, blocks = min(_TEMPLATE_ROWS, max(128, 2 * count)), 0, []
    while start < rows:
        shape = Shape(value_size, keyed, 1, width_of(start), style)
        end = min(rows, class_end(shape.offset_width))
        blocks.append(template(shape, end)[: end - start])
        start = end
    made = _templates[value_size, keyed, style] = BatchTemplate(blocks)
    return made


def batch_size_bound(value_size: Bytes, records: int, *, keyed: bool) -> Bytes:
    """Most bytes that an uncompressed batch of so many records takes; a client's estimate.

    Offsets below 8,192 and timestamp deltas below 8,192 ms are assumed, as one batch has them.
    """
    row = 1 + 2 + 2 + (1 + KEY_BYTES if keyed else 1)
    row += len(encode_varint(value_size)) + value_size + 1
    return HEADER_BYTES + records * (row + len(encode_varint(row)))


def decode_payloads(batch_bytes: bytes) -> Payloads:
    """The payloads of a whole encoded batch; the checksum is not verified.

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
        payload = payload_of(record)
        if payload is None or payload.producer_index != index:
            empty = np.empty(0, dtype=np.int64)
            return Payloads(-1, empty, empty, empty)
        rows.append((payload.number, payload.intended_us, record.offset))
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return Payloads(index, table[:, 0], table[:, 1], table[:, 2])


def _decode_rows(batch: RecordBatch, index: int) -> Payloads | None:
    """Reads runs of equal rows against their templates; ``None`` if any row differs."""
    first = next(iter(batch.records()))
    keyed = first.key is not None
    if first.value is None or first.headers or (keyed and len(first.key or b"") != KEY_BYTES):
        return None
    value_size = len(first.value)
    numbers = np.empty(batch.record_count, dtype=np.int64)
    intended = np.empty(batch.record_count, dtype=np.int64)
    row, position = 0, HEADER_BYTES
    while row < batch.record_count:
        matched = 0
        for width in (1, 2, 3):
            shape = Shape(value_size, keyed, width, width_of(row))
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
    batch: RecordBatch, shape: Shape, row: int, position: int, index: int
) -> Rows | None:
    """The longest prefix of rows from ``row`` on whose fixed bytes are the template's."""
    limit = min(batch.record_count, class_end(shape.offset_width))
    made = template(shape, limit)
    size = made.dtype.itemsize
    limit = min(limit, row + (batch.size_bytes - position) // size)
    if limit <= row:
        return None
    block: Rows = np.frombuffer(batch.data, made.dtype, limit - row, position)
    start = class_start(shape.offset_width)
    model = made[row - start : limit - start]
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


class _Content:
    """Contents of one batch's records, to be encoded."""

    def __init__(
        self,
        producer_index: int,
        first_record: int,
        intended_us: Int64s,
        value_size: Bytes,
        deltas: Int64s,
        key_ids: Int64s | None,
        style: Style,
        noise: Noise | None,
        tombstones: NDArray[np.bool_] | None,
        value_sizes: Int64s | None,
    ) -> None:
        self.producer_index = producer_index
        self.first_record = first_record
        self.intended_us = intended_us
        self.value_size = value_size
        self.deltas = deltas
        self.key_ids = key_ids
        self.style = style
        self.noise = noise
        self.tombstones = tombstones
        self.value_sizes = value_sizes

    def encode(
        self,
        base: int,
        last: int,
        producer_id: ProducerId,
        producer_epoch: int,
        base_sequence: int,
        codec: Codec,
        level: int | None,
        flags: int,
        *,
        slow: bool,
    ) -> tuple[bytes, Bytes]:
        """The whole batch, and the size of its records uncompressed.

        ``base`` is the first timestamp, ``last`` the largest delta to it; ``flags``: attributes
        beside the codec; ``slow``: not by rows.
        """
        count = len(self.intended_us)
        body = (
            self.slowly()
            if slow or self.value_sizes is not None or count <= _FEW_RECORDS
            else self.rows(last)
        )
        raw_bytes = sum([len(part) for part in body])
        if codec != "none":
            body = [compress(codec, b"".join(body), level)]
        data = assemble(
            body,
            base_offset=0,
            leader_epoch=NO_EPOCH,
            attributes=CODECS.index(codec) | flags,
            last_offset_delta=count - 1,
            base_timestamp_ms=base,
            max_timestamp_ms=base + last,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            record_count=count,
        )
        return data, raw_bytes

    def slowly(self) -> list[bytes]:
        """The records one by one."""
        count = len(self.intended_us)
        intended, deltas = self.intended_us.tolist(), self.deltas.tolist()
        keys = None if self.key_ids is None else self.key_ids.tolist()
        dead = None if self.tombstones is None else self.tombstones.tolist()
        sizes = [self.value_size] * count
        if self.value_sizes is not None:
            sizes = self.value_sizes.tolist()
        headers = headers_of(self.style)
        body = []
        for i in range(count):
            key = None if keys is None else encode_key(keys[i])
            payload = Payload(self.producer_index, self.first_record + i, intended[i])
            if dead is not None and dead[i]:
                record = NewRecord(0, key, None, tombstone_headers(payload, self.style))
            else:
                hiss = self._noise_of(i, sizes[i])
                record = NewRecord(0, key, encode_value(payload, sizes[i], hiss), headers)
            body.append(encode_record(record, deltas[i], i))
        return body

    def _noise_of(self, place: int, size: Bytes) -> bytes:
        """Noise of one record, the same share of its filler as of the largest value's."""
        noise = self.noise
        if noise is None:
            return b""
        most = max(1, self.value_size - PAYLOAD.size)
        share = noise.bytes_each * (size - PAYLOAD.size) // most
        return noise.of(self.first_record + place, share)

    def rows(self, last: int) -> list[bytes]:
        """The records in stretches of one shape; ``last`` is the largest timestamp delta."""
        digits = None if self.key_ids is None else _digits(self.key_ids)
        noise = None
        if self.noise is not None:
            noise = self.noise.rows(self.first_record, len(self.deltas))
        return [
            self._fill(shape, start, end, digits, noise) for shape, start, end in self._runs(last)
        ]

    def _runs(self, last: int) -> Iterator[tuple[Shape, int, int]]:
        """Stretches of rows with one shape: (shape, first row, row after the last)."""
        deltas, dead = self.deltas, self.tombstones
        count, keyed = len(deltas), self.key_ids is not None
        changes = np.zeros(count - 1, dtype=np.bool_)
        widths = None
        if last > STAMP_MAX or int(deltas.min()) < -STAMP_MAX - 1:
            widths = np.searchsorted(_WIDTH_STEPS, _zigzag(deltas), side="right") + 1
            changes |= widths[1:] != widths[:-1]
        if dead is not None:
            changes |= dead[1:] != dead[:-1]
        starts = [0, *(np.flatnonzero(changes) + 1).tolist(), count]
        for start, end in pairwise(starts):
            width = 1 if widths is None else int(widths[start])
            tombstone = dead is not None and bool(dead[start])
            row = start
            while row < end:
                offset_width = width_of(row)
                stop = min(end, class_end(offset_width))
                shape = Shape(self.value_size, keyed, width, offset_width, self.style, tombstone)
                yield shape, row, stop
                row = stop

    def _fill(
        self,
        shape: Shape,
        start: int,
        end: int,
        digits: NDArray[np.uint8] | None,
        noise: NDArray[np.uint8] | None,
    ) -> bytes:
        """The rows [start, end) as bytes: numbers written into the template, which is reused."""
        base = class_start(shape.offset_width)
        rows = template(shape, end)[start - base : end - base]
        rows["producer"] = self.producer_index
        rows["number"] = np.arange(self.first_record + start, self.first_record + end)
        rows["intended"] = self.intended_us[start:end]
        if digits is not None:
            rows["key"] = digits[start:end]
        if noise is not None and not shape.tombstone:
            rows["noise"] = noise[start:end]
        zigzag = _zigzag(self.deltas[start:end])
        stamp = rows["timestamp"]
        if shape.timestamp_width == 1:
            stamp[:, 0] = zigzag
        else:
            final = shape.timestamp_width - 1
            for column in range(final):
                stamp[:, column] = zigzag >> (7 * column) & 0x7F | 0x80
            stamp[:, final] = zigzag >> (7 * final)
        return rows.tobytes()


def _digits(key_ids: Int64s) -> NDArray[np.uint8]:
    """The eight decimal digits of each id as text, shape (ids, 8)."""
    high, low = np.divmod(key_ids, 10_000)
    return np.concatenate((_FOUR_DIGITS[high], _FOUR_DIGITS[low]), axis=1)


def _zigzag(deltas: Int64s) -> Int64s:
    return (deltas << 1) ^ (deltas >> 63)


_WIDTH_STEPS = np.array([1 << (7 * width) for width in range(1, 9)], dtype=np.int64)
