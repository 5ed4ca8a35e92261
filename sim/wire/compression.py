"""The five codecs of record batches, framed as Kafka frames them.

Equal input gives equal bytes: no times, no chance. Output differs from the Java client's in
compression ratio, never in framing.

Source: ``org.apache.kafka.common.compress``; KIP-110 for zstd, KIP-390 for levels.
"""

import struct
from collections.abc import Callable, Mapping
from typing import Final, Literal, TypeAlias

import cramjam

from sim.units import KIB, MIB
from sim.wire.primitives import MalformedBytes

Codec: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]
"""A value of ``compression.type`` that a batch can carry."""

CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
"""Codecs by their number in the batch's attributes."""

DEFAULT_LEVELS: Final[Mapping[Codec, int]] = {"gzip": -1, "lz4": 9, "zstd": 3}
"""Kafka's ``compression.gzip.level``, ``.lz4.level`` and ``.zstd.level``; snappy has none."""

INFLATED_BYTES_MAX: Final = 256 * MIB
"""Limit of one batch's records after decompression; Kafka has none."""

_FIRST_BUFFER: Final = 64 * KIB
_USUAL_RATIO: Final = 8
_GROWTH: Final = 4
_FULL: Final = "failed to write whole buffer"
"""The decoders' error for a buffer that is too small."""

_ZLIB_DEFAULT = 6
_LZ4_FAST = 9
_LZ4_HIGHEST = 12

_XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_SNAPPY_BLOCK = 32 * 1024
# Version 1, independent blocks, 64 KiB blocks, and the header checksum of just these two bytes.
_LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_BLOCK = 64 * 1024
_LZ4_STORED = 1 << 31


def codec_named(name: str) -> Codec:
    """The codec of that name.

    Raises:
        ValueError: If there is none.
    """
    for codec in CODECS:
        if codec == name:
            return codec
    raise ValueError(f"no codec {name!r}; there are {', '.join(CODECS)}")


def compress(codec: Codec, body: bytes, level: int | None = None) -> bytes:
    """The body as the codec's stream; unchanged for ``none``.

    Args:
        codec: Whose stream.
        body: The records, back to back.
        level: On Kafka's scale for the codec; ``None`` for Kafka's default. Ignored for
            ``none`` and ``snappy``.
    """
    if level is None:
        level = DEFAULT_LEVELS.get(codec, 0)
    match codec:
        case "none":
            return body
        case "gzip":
            # Neither time nor name in the header, as Java writes it.
            return bytes(cramjam.gzip.compress(body, level=_ZLIB_DEFAULT if level < 0 else level))
        case "snappy":
            return _snappy(body)
        case "lz4":
            return _lz4(body, level)
        case "zstd":
            return bytes(cramjam.zstd.compress(body, level=level))


def decompress(codec: Codec, stream: bytes) -> bytes:
    """The records of a compressed batch, never more than :data:`INFLATED_BYTES_MAX`.

    Raises:
        MalformedBytes: If the stream is not the codec's, or inflates to more.
    """
    try:
        match codec:
            case "none":
                return stream
            case "gzip":
                return _inflated(codec, cramjam.gzip.decompress_into, stream)
            case "snappy":
                return _unsnappy(stream)
            case "lz4":
                return _inflated(codec, cramjam.lz4.decompress_into, stream)
            case "zstd":
                return _inflated(codec, cramjam.zstd.decompress_into, stream)
    except (OSError, EOFError, struct.error, cramjam.DecompressionError) as error:
        raise MalformedBytes(f"not a {codec} stream: {error}") from error


def _inflated(codec: Codec, into: Callable[[bytes, bytearray], int], stream: bytes) -> bytes:
    """Inflates into a buffer that grows up to the limit: a stream's declared size is not trusted.

    Raises:
        MalformedBytes: If the limit does not suffice.
        cramjam.DecompressionError: If the stream is not the codec's.
    """
    capacity = min(max(len(stream) * _USUAL_RATIO, _FIRST_BUFFER), INFLATED_BYTES_MAX)
    while True:
        buffer = bytearray(capacity)
        try:
            size = into(stream, buffer)
        except cramjam.DecompressionError as error:
            if _FULL not in str(error):
                raise
        else:
            return bytes(memoryview(buffer)[:size])
        if capacity == INFLATED_BYTES_MAX:
            raise _too_large(codec, stream)
        capacity = min(capacity * _GROWTH, INFLATED_BYTES_MAX)


def _too_large(codec: Codec, stream: bytes) -> MalformedBytes:
    return MalformedBytes(
        f"{len(stream)} bytes of {codec} inflate to more than the {INFLATED_BYTES_MAX} that are "
        "allowed for the records of one batch: damaged, or made to exhaust memory; look at the "
        "batch without its records, or remove it"
    )


def _snappy(body: bytes) -> bytes:
    parts = [_XERIAL]
    for start in range(0, len(body), _SNAPPY_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(body[start : start + _SNAPPY_BLOCK]))
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _unsnappy(stream: bytes) -> bytes:
    if not stream.startswith(_XERIAL[:8]):
        return _unsnappy_block(stream, stream, 0)
    parts: list[bytes] = []
    total = 0
    position = len(_XERIAL)
    while position < len(stream):
        (size,) = struct.unpack_from(">i", stream, position)
        position += 4
        if size < 0 or position + size > len(stream):
            raise MalformedBytes(f"snappy block of {size} bytes at {position} is cut short")
        parts.append(_unsnappy_block(stream, stream[position : position + size], total))
        total += len(parts[-1])
        position += size
    return b"".join(parts)


def _unsnappy_block(stream: bytes, block: bytes, before: int) -> bytes:
    """Decompresses a block of exactly its declared size: the decoder rejects any other."""
    if before + cramjam.snappy.decompress_raw_len(block) > INFLATED_BYTES_MAX:
        raise _too_large("snappy", stream)
    return bytes(cramjam.snappy.decompress_raw(block))


def _lz4(body: bytes, level: int) -> bytes:
    parts = [_LZ4_HEADER]
    for start in range(0, len(body), _LZ4_BLOCK):
        block = body[start : start + _LZ4_BLOCK]
        packed = _lz4_block(block, level)
        if len(packed) < len(block):
            parts += (struct.pack("<I", len(packed)), packed)
        else:
            parts += (struct.pack("<I", len(block) | _LZ4_STORED), block)
    parts.append(b"\x00\x00\x00\x00")
    return b"".join(parts)


def _lz4_block(block: bytes, level: int) -> bytes:
    """Kafka's default level is the fast compressor; every other level the slow, dense one."""
    if level == _LZ4_FAST:
        return bytes(cramjam.lz4.compress_block(block, store_size=False))
    strength = min(level, _LZ4_HIGHEST)
    return bytes(
        cramjam.lz4.compress_block(
            block, mode="high_compression", compression=strength, store_size=False
        )
    )
