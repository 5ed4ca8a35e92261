"""Contents of a ``.log`` file: producers' records, offsets, and CRCs.

A second reader beside :mod:`sim.wire`, made for millions of batches: batches are found one after
the other by their length, but their headers, and the n-th records of all of them, are read at once
with numpy. It judges bytes alone, independently of the logs that wrote them.

Only batches that cannot be read that way (compressed, or with records that are not numbered without
gaps) go through :class:`sim.wire.record_batch.RecordBatch` one record at a time. Left out: keys,
headers and timestamps of records, which no verdict needs.

Source: ``DefaultRecordBatch``, ``DefaultRecord`` (magic 2); record values: ``LQR1``, int32 producer
index, int64 number, all big-endian. A tombstone has these in its first header, ``lq``.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
from crc32c import crc32c
from numpy.typing import NDArray

from sim.units import MIB
from sim.wire.record_batch import Record, RecordBatch

WINDOW_BYTES: Final = 32 * MIB
"""Bytes of a file held and decoded at once; a larger batch is held whole."""

HEADER: Final = np.dtype(
    [
        ("base_offset", ">i8"),
        ("batch_length", ">i4"),
        ("leader_epoch", ">i4"),
        ("magic", "i1"),
        ("crc", ">u4"),
        ("attributes", ">i2"),
        ("last_offset_delta", ">i4"),
        ("base_timestamp", ">i8"),
        ("max_timestamp", ">i8"),
        ("producer_id", ">i8"),
        ("producer_epoch", ">i2"),
        ("base_sequence", ">i4"),
        ("record_count", ">i4"),
    ]
)
"""The 61 bytes before the records."""

OK: Final = "ok"
BAD_CRC: Final = "bad_crc"
TORN: Final = "torn"
MALFORMED: Final = "malformed"

PLAIN: Final = 0
TRANSACTIONAL: Final = 1
COMMIT: Final = 2
ABORT: Final = 3

_VALUE: Final = np.dtype([("magic", "S4"), ("producer_index", ">i4"), ("number", ">i8")])
_VALUE_BYTES: Final = 24
_CONTROL_KEY: Final = np.dtype([("version", ">i2"), ("type", ">i2")])
_NAMED: Final = np.dtype([("key_length", "u1"), ("key", "S2"), ("value_length", "u1")])
"""Bytes between the number of a tombstone's headers and its payload; lengths are zigzag."""
_AT_ONCE: Final = 1 << 16
_OVERHEAD: Final = 12
_CRC_FROM: Final = 21
_PADDING: Final = bytes(64)
_CODEC: Final = 0x07
_CONTROL: Final = 0x20
_TRANSACTIONAL: Final = 0x10

_SHORT: Final = np.array([low >> 1 ^ -(low & 1) for low in range(128)] * 2, np.int64)
"""Zigzag values of varints of one byte; of a longer one's first byte it has no meaning."""

Integers = NDArray[np.int64]
Buffer = NDArray[np.uint8]


class SequenceRun(NamedTuple):
    """Records of one producer whose numbers and offsets both grow by one, within one batch.

    ``status``: ``ok``; ``bad_crc``: the checksum is not that of the bytes; ``malformed``: a right
    checksum over records that do not parse; ``torn``: the bytes from ``position`` on are no batch,
    ``size_bytes`` is how many. ``producer_index`` is -1 for records that no producer of ours made,
    and wherever the records could not be read.
    ``kind``: of a transaction or not, or the marker that commits or aborts the one that is open of
    ``producer_id``.
    """

    position: int
    size_bytes: int
    base_offset: int
    last_offset: int
    leader_epoch: int
    crc: int
    producer_index: int
    first_record: int
    record_count: int
    status: str
    producer_id: int = -1
    kind: int = PLAIN


COLUMNS: Final = pa.schema(
    [
        ("position", pa.int64()),
        ("size_bytes", pa.int64()),
        ("base_offset", pa.int64()),
        ("last_offset", pa.int64()),
        ("leader_epoch", pa.int32()),
        ("crc", pa.int64()),
        ("producer_index", pa.int32()),
        ("first_record", pa.int64()),
        ("record_count", pa.int32()),
        ("status", pa.string()),
        ("producer_id", pa.int64()),
        ("kind", pa.int8()),
    ]
)
"""The fields of :class:`Run` as columns."""


def runs(path: Path, window_bytes: int = WINDOW_BYTES) -> Iterator[pa.RecordBatch]:
    """All runs of a segment as rows of :data:`COLUMNS`.

    They come in order of position, but within a window those of batches that had to be read
    slowly come last.
    """
    start = 0
    rest = b""
    with path.open("rb") as file:
        while True:
            fresh = file.read(window_bytes)
            data = rest + fresh
            positions, end = _walk(data)
            if positions:
                yield from _window(data, positions, end, start)
            rest = data[end:]
            start += end
            stuck = len(rest) >= 17 and not _may_be_batch(rest)
            if not fresh or stuck:
                break
        left = len(rest) + len(file.read()) if stuck else len(rest)
    if left:
        yield _packed([SequenceRun(start, left, -1, -1, -1, 0, -1, -1, 0, TORN)])


def _packed(found: Sequence[SequenceRun]) -> pa.RecordBatch:
    columns = zip(*found, strict=True)
    arrays = [pa.array(column, f.type) for column, f in zip(columns, COLUMNS, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)


def _may_be_batch(data: bytes) -> bool:
    length = int.from_bytes(data[8:12], "big", signed=True)
    return data[16] == 2 and length >= HEADER.itemsize - _OVERHEAD


def _walk(data: bytes) -> tuple[list[int], int]:
    """Positions of the whole batches at the start of the data, and the end of the last one."""
    positions: list[int] = []
    at = 0
    whole = len(data)
    from_bytes = int.from_bytes
    while at + HEADER.itemsize <= whole:
        length = from_bytes(data[at + 8 : at + 12], "big", signed=True)
        if data[at + 16] != 2 or length < 49 or at + _OVERHEAD + length > whole:
            break
        positions.append(at)
        at += _OVERHEAD + length
    return positions, at


def _window(data: bytes, positions: list[int], end: int, start: int) -> Iterator[pa.RecordBatch]:
    """Runs of the batches at the positions; ``start`` is the window's position in the file."""
    buffer = np.frombuffer(data[:end] + _PADDING, dtype=np.uint8)
    at = np.array(positions, dtype=np.int64)
    headers = _gather(buffer, at, HEADER)
    ends = at + _OVERHEAD + headers["batch_length"]
    view = memoryview(data)
    computed = [
        crc32c(view[position + _CRC_FROM : stop])
        for position, stop in zip(positions, ends.tolist(), strict=True)
    ]
    sound = np.array(computed, dtype=np.int64) == headers["crc"]
    records = _number(buffer, at, ends, headers, sound)
    base = headers["base_offset"].astype(np.int64)
    columns = (
        at + start,
        ends - at,
        base,
        base + headers["last_offset_delta"],
        headers["leader_epoch"],
        headers["crc"],
        records.producer,
        records.first,
        headers["record_count"],
        np.where(sound, OK, BAD_CRC),
        headers["producer_id"],
        _kinds(buffer, at, headers, sound),
    )
    arrays = [
        pa.array(values.astype(object) if pa.types.is_string(f.type) else values.astype("=i8"))
        .cast(f.type)
        for values, f in zip(columns, COLUMNS, strict=True)
    ]  # fmt: skip
    whole = pa.RecordBatch.from_arrays(arrays, schema=COLUMNS)
    slow = records.state != 0
    if not slow.any():
        yield whole
        return
    yield whole.filter(pa.array(~slow))
    found: list[SequenceRun] = []
    for row in whole.filter(pa.array(slow)).to_pylist():
        place = row["position"] - start
        found.extend(_slowly(data[place : place + row["size_bytes"]], SequenceRun(**row)))
    yield _packed(found)


def _kinds(
    buffer: Buffer, at: Integers, headers: NDArray[np.void], sound: NDArray[np.bool]
) -> Integers:
    """Kind of each batch: of a transaction or not, or the marker that ends one."""
    attributes = headers["attributes"]
    kinds = np.where((attributes & _TRANSACTIONAL) != 0, TRANSACTIONAL, PLAIN).astype(np.int64)
    control = np.nonzero((attributes & _CONTROL) != 0)[0]
    if control.size:
        kinds[control] = PLAIN
        whole = control[sound[control] & (headers["record_count"][control] == 1)]
        _, body = _varint(buffer, at[whole] + HEADER.itemsize)
        _, after_time = _varint(buffer, body + 1)
        _, after_offset = _varint(buffer, after_time)
        size, key = _varint(buffer, after_offset)
        said = _gather(buffer, key, _CONTROL_KEY)["type"]
        marks = np.where(said == 1, COMMIT, np.where(said == 0, ABORT, PLAIN))
        kinds[whole] = np.where(size == _CONTROL_KEY.itemsize, marks, PLAIN)
    return kinds


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Numbers of each batch; ``state`` 0: one run; 1: to be read record by record."""

    producer: Integers
    first: Integers
    state: NDArray[np.int8]


def _number(
    buffer: Buffer, at: Integers, ends: Integers, headers: NDArray[np.void], sound: NDArray[np.bool]
) -> _Numbers:
    """Reads every record of every sound plain batch."""
    attributes = headers["attributes"]
    counts = headers["record_count"].astype(np.int64)
    producer = np.full(len(at), -1, dtype=np.int64)
    first = np.full(len(at), -1, dtype=np.int64)
    state = np.zeros(len(at), dtype=np.int8)
    data = sound & ((attributes & _CONTROL) == 0) & (counts > 0)
    state[data & ((attributes & _CODEC) != 0)] = 1
    state[data & (headers["last_offset_delta"] + 1 != counts)] = 1
    batches = np.nonzero(data & (state == 0))[0]
    record = _record(buffer, at[batches] + HEADER.itemsize, ends[batches])
    producer[batches] = np.where(record.ours, record.producer, -1)
    first[batches] = np.where(record.ours, record.number, -1)
    is_last = counts[batches] == 1
    straight = record.ours & (record.offset_delta == 0) & (~is_last | (record.end == ends[batches]))
    state[batches[(record.ours | ~record.parsed) & ~straight]] = 1
    is_more = straight & ~is_last
    rest = batches[is_more]
    chain = _chained(buffer, record.end[is_more], ends[rest], counts[rest])
    state[rest[~chain.is_whole]] = 1
    # A few at a time, one behind the other: what is read of a record stays in a core's cache.
    for start in range(0, len(chain.at), _AT_ONCE):
        some = slice(start, start + _AT_ONCE)
        own = rest[chain.batch[some]]
        record = _record(buffer, chain.at[some], ends[own])
        straight = (
            record.ours
            & (record.offset_delta == chain.nth[some])
            & (record.producer == producer[own])
            & (record.number == first[own] + chain.nth[some])
        )
        state[own[~straight]] = 1
    return _Numbers(producer, first, state)


@dataclass(frozen=True, slots=True)
class _Chain:
    """Records behind the first ones of many batches, in the order of the bytes.

    Attributes:
        at: Position of each record.
        batch: Place of its batch among them.
        nth: Its place within its batch.
        is_whole: Of each batch, whether as many records as it says end where it ends.
    """

    at: Integers
    batch: Integers
    nth: Integers
    is_whole: NDArray[np.bool]


def _chained(buffer: Buffer, at: Integers, ends: Integers, counts: Integers) -> _Chain:
    """Follows the lengths of records from the second ones on, the n-th of all batches at a time."""
    cursor, seen = at.copy(), np.zeros(len(at), np.int64)
    is_whole = np.ones(len(at), np.bool)
    steps: list[tuple[Integers, Integers]] = []
    batches = np.arange(len(at))
    while batches.size:
        start = cursor[batches]
        steps.append((batches, start))
        seen[batches] += 1
        length, body = _varint(buffer, start)
        cursor[batches] = end = body + length
        is_last = counts[batches] == len(steps) + 1
        # A record of ours has its 24 bytes, as a value or a tombstone's header.
        good = length >= _VALUE_BYTES
        good &= np.where(is_last, end == ends[batches], end < ends[batches])
        is_whole[batches[~good]] = False
        batches = batches[good & ~is_last]
    begin = np.cumsum(seen) - seen
    found = np.empty(int(seen.sum()), np.int64)
    for number, (batches, start) in enumerate(steps):
        found[begin[batches] + number] = start
    batch = np.repeat(np.arange(len(at)), seen)
    return _Chain(found, batch, np.arange(len(found)) - begin[batch] + 1, is_whole)


@dataclass(frozen=True, slots=True)
class _Records:
    """One record of each of many batches."""

    parsed: NDArray[np.bool]
    ours: NDArray[np.bool]
    end: Integers
    offset_delta: Integers
    producer: Integers
    number: Integers


def _record(buffer: Buffer, at: Integers, limit: Integers) -> _Records:
    """The records at the positions; one that reaches over its limit is not parsed."""
    length, body = _varint(buffer, at)
    end = body + length
    _, after_time = _varint(buffer, body + 1)
    offset_delta, after_offset = _varint(buffer, after_time)
    key_length, key = _varint(buffer, after_offset)
    value_length, value = _varint(buffer, key + np.maximum(key_length, 0))
    parsed = (length > 0) & (end <= limit) & (value + np.maximum(value_length, 0) <= end)
    named = value_length >= _VALUE_BYTES
    dead = np.nonzero(parsed & (value_length == -1))[0]
    if dead.size:
        # A tombstone's value takes no bytes, so its headers begin where the value would.
        count, header = _varint(buffer, value[dead])
        lead = _gather(buffer, header, _NAMED)
        named[dead] = (
            (count > 0)
            & (lead["key_length"] == 2 << 1)
            & (lead["key"] == b"lq")
            & (lead["value_length"] == _VALUE_BYTES << 1)
            & (header + _NAMED.itemsize + _VALUE_BYTES <= end[dead])
        )
        value[dead] = header + _NAMED.itemsize
    head = _gather(buffer, np.where(parsed, value, 0), _VALUE)
    ours = parsed & named & (head["magic"] == b"LQR1")
    return _Records(
        parsed,
        ours,
        np.where(parsed, end, limit),
        offset_delta,
        head["producer_index"].astype(np.int64),
        head["number"].astype(np.int64),
    )


def _varint(buffer: Buffer, at: Integers) -> tuple[Integers, Integers]:
    """Zigzag varints at the positions, and their ends; outside the buffer reads zeros."""
    byte = buffer.take(at, mode="clip")
    value, after = _SHORT[byte], at + 1
    more = np.flatnonzero(byte & 0x80)
    if more.size:
        value[more], after[more] = _longer(buffer, after[more], byte[more])
    return value, after


def _longer(buffer: Buffer, after: Integers, first: Buffer) -> tuple[Integers, Integers]:
    """Varints of more than one byte: their values and ends, from their first bytes."""
    raw = (first & 0x7F).astype(np.uint64)
    more = np.arange(len(after))
    shift = 7
    while more.size and shift < 70:
        byte = buffer.take(after[more], mode="clip")
        raw[more] |= (byte & 0x7F).astype(np.uint64) << np.uint64(shift)
        after[more] += 1
        more = more[(byte & 0x80) != 0]
        shift += 7
    return (raw >> np.uint64(1)).astype(np.int64) ^ -(raw & np.uint64(1)).astype(np.int64), after


def _gather(buffer: Buffer, at: Integers, dtype: np.dtype[np.void]) -> NDArray[np.void]:
    """The structures at the positions; one that would reach over the end is read from the end."""
    last = len(buffer) - dtype.itemsize
    # Every position of the buffer as the first byte of a structure: a view, no copy.
    every = np.ndarray((last + 1,), dtype, buffer, strides=(1,))
    return every[np.minimum(np.maximum(at, 0), last)]


def _slowly(data: bytes, whole: SequenceRun) -> list[SequenceRun]:
    """A batch read record by record, cut into runs."""
    found: list[SequenceRun] = []
    try:
        for record in RecordBatch.parse(data).records():
            producer, number = _owner(record)
            run = whole._replace(
                base_offset=record.offset,
                last_offset=record.offset,
                producer_index=producer,
                first_record=number,
                record_count=1,
            )
            if found and _continues(found[-1], run):
                run = found.pop()
                run = run._replace(
                    last_offset=run.last_offset + 1, record_count=run.record_count + 1
                )
            found.append(run)
    except ValueError:
        return [whole._replace(producer_index=-1, first_record=-1, status=MALFORMED)]
    return found


def _owner(record: Record) -> tuple[int, int]:
    """Producer index and number of a record; -1 and -1 if it is not a producer's of ours."""
    value = record.value
    if value is None and record.headers and record.headers[0].key == "lq":
        value = record.headers[0].value
    if value is None or len(value) < _VALUE_BYTES or not value.startswith(b"LQR1"):
        return -1, -1
    producer = int.from_bytes(value[4:8], "big", signed=True)
    return producer, int.from_bytes(value[8:16], "big", signed=True)


def _continues(before: SequenceRun, run: SequenceRun) -> bool:
    """True if a single record continues a run; records that are not ours count together."""
    if run.producer_index != before.producer_index or run.base_offset != before.last_offset + 1:
        return False
    return run.producer_index < 0 or run.first_record == before.first_record + before.record_count
