"""Variable-length integers and length-prefixed fields of Kafka's byte formats.

Kafka has two families: records inside a batch use zigzag lengths everywhere, the flexible message
encoding uses unsigned lengths plus one (0 is null). Both are here, as pure functions that
return bytes, or a value and the position after it. Fixed-width numbers are left to ``struct``.

Source: ``org.apache.kafka.common.utils.ByteUtils``; KIP-482 for the flexible encoding.
"""

_ONE_BYTE = tuple(bytes((value,)) for value in range(128))


class MalformedBytes(ValueError):  # noqa: N818 - it names what was found
    """Bytes do not follow the format. ``args``: the message, with the position in it."""


def encode_uvarint(value: int) -> bytes:
    """Unsigned LEB128: seven bits a byte, the lowest first. ``value`` is not negative."""
    if value < 128:
        return _ONE_BYTE[value]
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def encode_varint(value: int) -> bytes:
    """Zigzag LEB128 of a signed number of up to 64 bits."""
    return encode_uvarint(value << 1 if value >= 0 else ((-value) << 1) - 1)


def decode_uvarint(data: bytes, position: int) -> tuple[int, int]:
    """The number at the position, and the position after it.

    Raises:
        MalformedBytes: If the data ends within the number, or it is longer than ten bytes.
    """
    value = shift = 0
    try:
        while True:
            byte = data[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, position
            shift += 7
            if shift > 63:
                raise MalformedBytes(f"a variable-length number before {position} is too long")
    except IndexError:
        raise MalformedBytes(f"the data ends within a number at {position}") from None


def decode_varint(data: bytes, position: int) -> tuple[int, int]:
    """The zigzag number at the position, and the position after it."""
    value, position = decode_uvarint(data, position)
    return (value >> 1) ^ -(value & 1), position


def take(data: bytes, position: int, size: int) -> tuple[bytes, int]:
    """``size`` bytes from the position, and the position after them.

    Raises:
        MalformedBytes: If there are not so many.
    """
    end = position + size
    if size < 0 or end > len(data):
        raise MalformedBytes(f"{size} bytes expected at {position}, {len(data) - position} found")
    return data[position:end], end


def record_field(value: bytes | None) -> bytes:
    """A key or value inside a record: zigzag length, then the bytes; null is length -1."""
    return b"\x01" if value is None else encode_varint(len(value)) + value


def take_record_field(data: bytes, position: int) -> tuple[bytes | None, int]:
    """Reverse of :func:`record_field`."""
    size, position = decode_varint(data, position)
    if size == -1:
        return None, position
    return take(data, position, size)


def compact_bytes(value: bytes | None) -> bytes:
    """Flexible bytes or string: unsigned length plus one, then the bytes; null is 0."""
    return b"\x00" if value is None else encode_uvarint(len(value) + 1) + value


def take_compact_bytes(data: bytes, position: int) -> tuple[bytes | None, int]:
    """Reverse of :func:`compact_bytes`."""
    size, position = decode_uvarint(data, position)
    if size == 0:
        return None, position
    return take(data, position, size - 1)
