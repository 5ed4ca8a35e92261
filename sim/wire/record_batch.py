"""RecordBatch v2: Kafka's unit of writing, replication and reading, as real bytes.

A batch is built once and then only passed on: stamping an offset and a leader epoch touches bytes
outside the checksum, so a leader needs one copy and the followers none. Older magics are absent,
and so is LogAppendTime on the writing side.

Source: ``DefaultRecordBatch``, ``DefaultRecord``, ``ControlRecordType``; KIP-98.
"""

import struct
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from crc32c import crc32c

from sim.ids import NO_EPOCH, LeaderEpoch, Offset, ProducerId
from sim.units import Bytes
from sim.wire.compression import CODECS, Codec, compress, decompress
from sim.wire.primitives import (
    MalformedBytes,
    decode_varint,
    encode_varint,
    record_field,
    take,
    take_record_field,
)

HEADER_BYTES: Bytes = 61
"""Bytes before the first record."""

LOG_OVERHEAD: Bytes = 12
"""Base offset and length: the bytes before the counted ones."""

MAGIC = 2
"""The only format that Kafka 4 writes."""

COMPRESSION = 0x07
"""Attribute bits that name the codec; 0 for none."""

TRANSACTIONAL = 0x10
"""Attribute bit of a transaction's batches and markers."""

CONTROL = 0x20
"""Attribute bit of batches that clients never see."""

LOG_APPEND_TIME = 0x08
"""Attribute bit: every record has the batch's largest timestamp."""

DELETE_HORIZON = 0x40
"""Attribute bit: the base timestamp is a delete horizon."""

HEADER = struct.Struct(">qiibIhiqqqhii")
"""The whole header: base offset, length, leader epoch, magic, crc, attributes, last offset delta,
base timestamp, max timestamp, producer id, producer epoch, base sequence, record count."""

CHECKED = struct.Struct(">hiqqqhii")
"""The header's part under the checksum."""

LEAD = struct.Struct(">qiibI")
"""The header's part outside the checksum."""

PAYLOAD = struct.Struct(">4siqq")
"""Head of a simulated producer's value: magic, producer index, record number, intended instant."""

PAYLOAD_MAGIC = b"LQR1"
"""First bytes of a simulated producer's value."""

IDENTITY_HEADER = "lq"
"""Key of the header in which a tombstone carries the payload that its value cannot."""

_IDENTITY_KEY = IDENTITY_HEADER.encode()
_OFFSET = struct.Struct(">q")
_EPOCH = struct.Struct(">i")
_UNKNOWN = -2


class Header(NamedTuple):
    """A record header; its value may be null."""

    key: str
    value: bytes | None


class Record(NamedTuple):
    """One decoded record."""

    offset: Offset
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...]


class NewRecord(NamedTuple):
    """A record to be built into a batch."""

    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()


class RecordBatch:
    """One encoded batch with its header decoded. Immutable by convention, shared by reference.

    ``data`` is the whole batch, ``last_offset`` is inclusive. Satisfies ``ports.Batch``.
    """

    __slots__ = (
        "_checked",
        "_first_record",
        "_producer_index",
        "_raw_bytes",
        "attributes",
        "base_offset",
        "base_sequence",
        "base_timestamp_ms",
        "crc",
        "data",
        "is_control",
        "last_offset",
        "last_offset_delta",
        "leader_epoch",
        "max_timestamp_ms",
        "producer_epoch",
        "producer_id",
        "record_count",
        "size_bytes",
    )

    base_offset: Offset
    leader_epoch: LeaderEpoch
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp_ms: int
    max_timestamp_ms: int
    producer_id: ProducerId
    producer_epoch: int
    base_sequence: int
    record_count: int

    def __init__(
        self,
        data: bytes,
        *,
        producer_index: int = _UNKNOWN,
        first_record: int = _UNKNOWN,
        checked: bool = False,
        raw_bytes: Bytes = _UNKNOWN,
    ) -> None:
        """Takes over a whole encoded batch.

        Args:
            data: Exactly one batch.
            producer_index: Its producer, if known; else read from the first record.
            first_record: With ``producer_index``.
            checked: Whether the checksum is known to be right.
            raw_bytes: Size of the records before compression, if known.
        """
        (
            self.base_offset,
            _,
            self.leader_epoch,
            _,
            self.crc,
            self.attributes,
            self.last_offset_delta,
            self.base_timestamp_ms,
            self.max_timestamp_ms,
            self.producer_id,
            self.producer_epoch,
            self.base_sequence,
            self.record_count,
        ) = HEADER.unpack_from(data)
        self.data = data
        self.size_bytes: Bytes = len(data)
        self.last_offset: Offset = self.base_offset + self.last_offset_delta
        self.is_control = self.attributes & CONTROL != 0
        self._producer_index = producer_index
        self._first_record = first_record
        self._checked = checked
        self._raw_bytes = raw_bytes

    @classmethod
    def parse(cls, buffer: bytes, position: int = 0) -> "RecordBatch":
        """The batch that starts at the position. Its checksum is not verified.

        Raises:
            MalformedBytes: If the header is impossible or the buffer ends within the batch.
        """
        end = position + batch_size_at(buffer, position)
        if end > len(buffer):
            raise MalformedBytes(f"the batch at {position} ends {end - len(buffer)} bytes too far")
        return cls(buffer if position == 0 and end == len(buffer) else buffer[position:end])

    def __repr__(self) -> str:
        return f"RecordBatch({self.base_offset}..{self.last_offset}, epoch {self.leader_epoch})"

    @property
    def producer_index(self) -> int:
        """Index of the simulated producer that made the batch; -1 if none did."""
        if self._producer_index == _UNKNOWN:
            self._identify()
        return self._producer_index

    @property
    def first_record(self) -> int:
        """That producer's number, in this partition, of the first record; -1 if none."""
        if self._producer_index == _UNKNOWN:
            self._identify()
        return self._first_record

    @property
    def codec(self) -> Codec:
        """Compression of the records.

        Raises:
            MalformedBytes: If the attributes name no codec.
        """
        number = self.attributes & 7
        if number >= len(CODECS):
            raise MalformedBytes(f"unknown codec {number} in the batch at {self.base_offset}")
        codec: Codec = CODECS[number]
        return codec

    @property
    def raw_bytes(self) -> Bytes:
        """Size of the records uncompressed.

        Raises:
            MalformedBytes: If they cannot be decompressed.
        """
        if self._raw_bytes == _UNKNOWN:
            self._raw_bytes = self.size_bytes - HEADER_BYTES
            if self.attributes & 7:
                self._raw_bytes = len(decompress(self.codec, self.data[HEADER_BYTES:]))
        return self._raw_bytes

    @property
    def is_transactional(self) -> bool:
        """True if the batch belongs to a transaction."""
        return self.attributes & TRANSACTIONAL != 0

    @property
    def is_abort_marker(self) -> bool:
        """True for the marker that aborts its producer's transaction.

        One whose record a cleaner removed is none: no data in the log depends on it.
        """
        if not self.is_control or not self.is_transactional:
            return False
        record = next(self.records(), None)
        return record is not None and record.key is not None and record.key[2:4] == b"\x00\x00"

    def stamped(self, base_offset: Offset, leader_epoch: LeaderEpoch) -> "RecordBatch":
        """The same batch at its place in a leader's log; the checksum stays true."""
        data = self.data
        stamped = b"".join(
            (
                _OFFSET.pack(base_offset),
                data[8:12],
                _EPOCH.pack(leader_epoch),
                memoryview(data)[16:],
            )
        )
        return RecordBatch(
            stamped,
            producer_index=self._producer_index,
            first_record=self._first_record,
            checked=self._checked,
            raw_bytes=self._raw_bytes,
        )

    def valid(self) -> bool:
        """True if magic, size and CRC-32C are right. Computed once: bytes do not change."""
        if not self._checked:
            data = self.data
            computed: int = crc32c(memoryview(data)[21:])
            self._checked = computed == self.crc and data[16] == MAGIC
        return self._checked

    def records(self) -> Iterator[Record]:
        """Every record, decompressed if need be.

        Raises:
            MalformedBytes: If a declared length is not consumed exactly, or records are missing.
        """
        body = decompress(self.codec, self.data[HEADER_BYTES:])
        append_time = self.attributes & LOG_APPEND_TIME
        position = 0
        for _ in range(self.record_count):
            size, start = decode_varint(body, position)
            position = start + size
            timestamp, delta, key, value, headers, end = _record_fields(body, start)
            if end != position:
                raise MalformedBytes(f"record at {start} declares {size} bytes, has {end - start}")
            when = self.max_timestamp_ms if append_time else self.base_timestamp_ms + timestamp
            yield Record(self.base_offset + delta, when, key, value, headers)
        if position != len(body):
            raise MalformedBytes(f"{len(body) - position} bytes follow the last record")

    def offset_runs(self) -> list[tuple[Offset, Offset]]:
        """First and last offsets of records without a gap: several after compaction.

        Raises:
            MalformedBytes: If a record cannot be read.
        """
        if self.record_count > self.last_offset_delta:
            return [(self.base_offset, self.last_offset)]
        runs: list[tuple[Offset, Offset]] = []
        for record in self.records():
            if runs and runs[-1][1] + 1 == record.offset:
                runs[-1] = runs[-1][0], record.offset
            else:
                runs.append((record.offset, record.offset))
        return runs

    def _identify(self) -> None:
        self._producer_index = self._first_record = -1
        if self.is_control or not self.record_count:
            return
        body, start = self.data, HEADER_BYTES
        try:
            if self.attributes & 7:
                body, start = decompress(self.codec, self.data[HEADER_BYTES:]), 0
            _, start = decode_varint(body, start)
            _, position = decode_varint(body, start + 1)
            delta, position = decode_varint(body, position)
            _, position = take_record_field(body, position)
            value, position = take_record_field(body, position)
            if value is None:
                value = _identity_of_tombstone(body, position)
        except MalformedBytes:
            return
        if value is not None and len(value) >= PAYLOAD.size and value[:4] == PAYLOAD_MAGIC:
            _, self._producer_index, number, _ = PAYLOAD.unpack_from(value)
            self._first_record = number - delta


def batch_size_at(buffer: bytes, position: int) -> Bytes:
    """Whole size of the batch whose header starts at the position.

    Raises:
        MalformedBytes: If not even the length is there, or it is too small for a batch.
    """
    if position + LOG_OVERHEAD > len(buffer):
        raise MalformedBytes(f"no batch header at {position}")
    size = LOG_OVERHEAD + int.from_bytes(buffer[position + 8 : position + 12], "big", signed=True)
    if size < HEADER_BYTES:
        raise MalformedBytes(f"the batch at {position} declares {size} bytes, less than a header")
    return size


def parse_batches(buffer: bytes) -> Iterator[RecordBatch]:
    """All whole batches of a buffer; a partial batch at the end is left out.

    Raises:
        MalformedBytes: If a header is impossible.
    """
    position = 0
    while position + LOG_OVERHEAD <= len(buffer):
        size = batch_size_at(buffer, position)
        if position + size > len(buffer):
            return
        yield RecordBatch(buffer[position : position + size])
        position += size


def encode_record(record: NewRecord, timestamp_delta: int, offset_delta: int) -> bytes:
    """One record inside a batch, with its length in front."""
    parts = [
        b"\x00",
        encode_varint(timestamp_delta),
        encode_varint(offset_delta),
        record_field(record.key),
        record_field(record.value),
        encode_varint(len(record.headers)),
    ]
    for header in record.headers:
        parts += (record_field(header.key.encode()), record_field(header.value))
    body = b"".join(parts)
    return encode_varint(len(body)) + body


def assemble(  # the order of the header's own fields
    body: Sequence[bytes],
    *,
    base_offset: Offset,
    leader_epoch: LeaderEpoch,
    attributes: int,
    last_offset_delta: int,
    base_timestamp_ms: int,
    max_timestamp_ms: int,
    producer_id: ProducerId,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
) -> bytes:
    """A batch from the parts of its body, which are copied once."""
    checked = CHECKED.pack(
        attributes,
        last_offset_delta,
        base_timestamp_ms,
        max_timestamp_ms,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    crc = crc32c(checked)
    size = HEADER_BYTES - LOG_OVERHEAD
    for part in body:
        crc = crc32c(part, crc)
        size += len(part)
    return b"".join((LEAD.pack(base_offset, size, leader_epoch, MAGIC, crc), checked, *body))


def build_batch(
    records: Sequence[NewRecord],
    *,
    base_offset: Offset = 0,
    leader_epoch: LeaderEpoch = NO_EPOCH,
    codec: Codec = "none",
    producer_id: ProducerId = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    transactional: bool = False,
    control: bool = False,
) -> RecordBatch:
    """Any batch of CreateTime records, at least one.

    The largest timestamp and the base timestamp follow from the records, as in Kafka's builder.
    """
    assert records, "a batch has records"
    base = records[0].timestamp_ms
    body = b"".join(
        encode_record(record, record.timestamp_ms - base, delta)
        for delta, record in enumerate(records)
    )
    attributes = CODECS.index(codec)
    attributes |= (TRANSACTIONAL if transactional else 0) | (CONTROL if control else 0)
    data = assemble(
        (compress(codec, body),),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        last_offset_delta=len(records) - 1,
        base_timestamp_ms=base,
        max_timestamp_ms=max(record.timestamp_ms for record in records),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return RecordBatch(data, checked=True)


def _identity_of_tombstone(body: bytes, position: int) -> bytes | None:
    """The value of the naming header if it is the first; ``position``: where headers begin."""
    count, position = decode_varint(body, position)
    if count < 1:
        return None
    key, position = take_record_field(body, position)
    return take_record_field(body, position)[0] if key == _IDENTITY_KEY else None


def _record_fields(
    body: bytes, start: int
) -> tuple[int, int, bytes | None, bytes | None, tuple[Header, ...], int]:
    timestamp, position = decode_varint(body, start + 1)
    delta, position = decode_varint(body, position)
    key, position = take_record_field(body, position)
    value, position = take_record_field(body, position)
    count, position = decode_varint(body, position)
    headers: list[Header] = []
    for _ in range(count):
        size, position = decode_varint(body, position)
        name, position = take(body, position, size)
        content, position = take_record_field(body, position)
        # A key that is not UTF-8 is read with U+FFFD in it, as Utils.utf8 reads it.
        headers.append(Header(name.decode(errors="replace"), content))
    return timestamp, delta, key, value, tuple(headers), position
