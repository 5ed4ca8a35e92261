"""The five codecs of record batches, framed as Kafka frames them.

Equal input gives equal bytes: no times, no chance. Output differs from the Java client's in how
well it is packed, never in its framing.

Source: ``org.apache.kafka.common.compress``; KIP-110 for zstd.
"""

import gzip
import struct
from typing import Literal, TypeAlias

import cramjam

from sim.wire.primitives import MalformedBytes

Codec: TypeAlias = Literal["none", "gzip", "snappy", "lz4", "zstd"]
"""A value of ``compression.type`` that a batch can carry."""

CODECS: tuple[Codec, ...] = ("none", "gzip", "snappy", "lz4", "zstd")
"""Codecs by their number in the batch's attributes."""

_XERIAL = b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
_SNAPPY_BLOCK = 32 * 1024
# Version 1, independent blocks, 64 KiB blocks, and the header checksum of just these two bytes.
_LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_BLOCK = 64 * 1024
_LZ4_STORED = 1 << 31


def compress(codec: Codec, body: bytes) -> bytes:
    """The body as the codec's stream; unchanged for ``none``."""
    match codec:
        case "none":
            return body
        case "gzip":
            return gzip.compress(body, mtime=0)
        case "snappy":
            return _snappy(body)
        case "lz4":
            return _lz4(body)
        case "zstd":
            return bytes(cramjam.zstd.compress(body, level=3))


def decompress(codec: Codec, stream: bytes) -> bytes:
    """The records of a compressed batch.

    Raises:
        MalformedBytes: If the stream is not the codec's.
    """
    try:
        match codec:
            case "none":
                return stream
            case "gzip":
                return gzip.decompress(stream)
            case "snappy":
                return _unsnappy(stream)
            case "lz4":
                return bytes(cramjam.lz4.decompress(stream))
            case "zstd":
                return bytes(cramjam.zstd.decompress(stream))
    except (OSError, EOFError, struct.error, cramjam.DecompressionError) as error:
        raise MalformedBytes(f"not a {codec} stream: {error}") from error


def _snappy(body: bytes) -> bytes:
    parts = [_XERIAL]
    for start in range(0, len(body), _SNAPPY_BLOCK):
        block = bytes(cramjam.snappy.compress_raw(body[start : start + _SNAPPY_BLOCK]))
        parts += (struct.pack(">i", len(block)), block)
    return b"".join(parts)


def _unsnappy(stream: bytes) -> bytes:
    if not stream.startswith(_XERIAL[:8]):
        return bytes(cramjam.snappy.decompress_raw(stream))
    parts = []
    position = len(_XERIAL)
    while position < len(stream):
        (size,) = struct.unpack_from(">i", stream, position)
        position += 4
        if size < 0 or position + size > len(stream):
            raise MalformedBytes(f"snappy block of {size} bytes at {position} is cut short")
        parts.append(bytes(cramjam.snappy.decompress_raw(stream[position : position + size])))
        position += size
    return b"".join(parts)


def _lz4(body: bytes) -> bytes:
    parts = [_LZ4_HEADER]
    for start in range(0, len(body), _LZ4_BLOCK):
        block = body[start : start + _LZ4_BLOCK]
        packed = bytes(cramjam.lz4.compress_block(block, store_size=False))
        if len(packed) < len(block):
            parts += (struct.pack("<I", len(packed)), packed)
        else:
            parts += (struct.pack("<I", len(block) | _LZ4_STORED), block)
    parts.append(b"\x00\x00\x00\x00")
    return b"".join(parts)
