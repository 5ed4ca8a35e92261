"""Rows: the encoded records of a simulated producer as columns of fixed and of changing bytes.

All rows of one shape have the same size, and their numbers, keys and noise are in the same columns.
A template of each shape is kept with every fixed byte in place.

A tombstone has no value, so its first header, ``lq``, identifies the record.

Source: the record layout of ``DefaultRecord``; the payload is our own.
"""

from typing import Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sim.units import Bytes
from sim.wire.primitives import encode_varint, record_field
from sim.wire.record_batch import IDENTITY_HEADER, PAYLOAD, PAYLOAD_MAGIC, Header

Rows: TypeAlias = NDArray[np.void]
"""Encoded records of one shape, by column."""

FILLER = b"\x2e"
"""Padding of a value, or a header, to its size."""

KEY_BYTES: Bytes = 12
"""Size of a key whose id has up to eight digits."""

TEMPLATES = 64
"""Most templates that are kept."""

_NO_PAYLOAD = PAYLOAD.pack(PAYLOAD_MAGIC, 0, 0, 0)
_NUMBERS: Bytes = PAYLOAD.size - len(PAYLOAD_MAGIC)


class Style(NamedTuple):
    """Contents of a workload's records beside key, payload and filler."""

    header_count: int = 0
    """Record headers, named ``h00``, ``h01``, …; 0 to 100."""
    header_bytes: Bytes = 0
    """Size of each header's value."""
    noise_bytes: Bytes = 0
    """Incompressible part of a value's filler; at most value size less the payload."""


PLAIN: Final = Style()
"""No headers, and filler of one byte over and over."""


class Shape(NamedTuple):
    """All rows with one shape have the same size and their numbers in the same columns."""

    value_size: Bytes
    keyed: bool
    timestamp_width: int
    offset_width: int
    style: Style = PLAIN
    tombstone: bool = False


_templates: dict[Shape, Rows] = {}


def headers_of(style: Style) -> tuple[Header, ...]:
    """The headers that every record of the style has."""
    value = FILLER * style.header_bytes
    return tuple(Header(f"h{number:02d}", value) for number in range(style.header_count))


def encoded_headers_bytes(style: Style) -> Bytes:
    """Size of a record's headers, without their count."""
    return sum(
        len(record_field(header.key.encode()) + record_field(header.value))
        for header in headers_of(style)
    )


def template(shape: Shape, rows: int) -> Rows:
    """Rows of the shape's offset class up to row number ``rows``, all fixed bytes in place.

    The columns are ``front``, ``timestamp``, ``beforekey``, ``key`` (eight digits, if keyed),
    ``middle``, ``producer``, ``number``, ``intended``, ``noise`` (if there is any) and ``back``.
    """
    start = class_start(shape.offset_width)
    found = _templates.get(shape)
    if found is not None and len(found) >= rows - start:
        return found
    if len(_templates) >= TEMPLATES and found is None:
        _templates.pop(next(iter(_templates)))
    end = min(class_end(shape.offset_width), max(64, 2 * rows))
    front = encode_varint(_body_size(shape)) + bytes(1 + shape.timestamp_width)
    key = record_field(b"key-%08d" % 0 if shape.keyed else None)
    before, after = _around_numbers(shape)
    numbers = bytes(_NUMBERS + (0 if shape.tombstone else shape.style.noise_bytes))
    parts: list[bytes] = []
    for row in range(start, end):
        parts += (front, encode_varint(row), key, before, numbers, after)
    made: Rows = np.frombuffer(bytearray(b"".join(parts)), dtype=_row_type(shape))
    _templates[shape] = made
    return made


def _around_numbers(shape: Shape) -> tuple[bytes, bytes]:
    """Bytes between the key and the numbers, and bytes after the numbers and the noise."""
    style = shape.style
    others = b"".join(
        record_field(header.key.encode()) + record_field(header.value)
        for header in headers_of(style)
    )
    if shape.tombstone:
        before = record_field(None) + encode_varint(style.header_count + 1)
        before += record_field(IDENTITY_HEADER.encode()) + encode_varint(PAYLOAD.size)
        return before + PAYLOAD_MAGIC, others
    dots = FILLER * (shape.value_size - PAYLOAD.size - style.noise_bytes)
    before = encode_varint(shape.value_size) + PAYLOAD_MAGIC
    return before, dots + encode_varint(style.header_count) + others


def _body_size(shape: Shape) -> Bytes:
    """Bytes of a record after its length."""
    key = 1 + KEY_BYTES if shape.keyed else 1
    before, after = _around_numbers(shape)
    noise = 0 if shape.tombstone else shape.style.noise_bytes
    rest = len(before) + _NUMBERS + noise + len(after)
    return 1 + shape.timestamp_width + shape.offset_width + key + rest


def _row_type(shape: Shape) -> np.dtype[np.void]:
    """Columns of a row: fixed bytes under ``front``, ``middle`` and ``back``, numbers between."""
    length = len(encode_varint(_body_size(shape)))
    before, after = _around_numbers(shape)
    before_key = shape.offset_width + (1 + 4 if shape.keyed else 1)
    fields: list[tuple[str, str] | tuple[str, str, tuple[int, ...]]] = [
        ("front", f"V{length + 1}"),
        ("timestamp", "u1", (shape.timestamp_width,)),
        ("beforekey", f"V{before_key}"),
    ]
    if shape.keyed:
        fields.append(("key", "u1", (8,)))
    fields += [
        ("middle", f"V{len(before)}"),
        ("producer", ">i4"),
        ("number", ">i8"),
        ("intended", ">i8"),
    ]
    if shape.style.noise_bytes and not shape.tombstone:
        fields.append(("noise", "u1", (shape.style.noise_bytes,)))
    if after:
        fields.append(("back", f"V{len(after)}"))
    return np.dtype(fields)


def width_of(row: int) -> int:
    """Bytes of an offset delta."""
    return len(encode_varint(row))


def class_start(offset_width: int) -> int:
    """First row whose offset delta has that width."""
    return 0 if offset_width == 1 else 1 << (7 * (offset_width - 1) - 1)


def class_end(offset_width: int) -> int:
    """Row after the last whose offset delta has that width."""
    return 1 << (7 * offset_width - 1)
