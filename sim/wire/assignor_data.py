"""User data of the sticky assignors: the state that they keep in a member's subscription.

Big-endian, without versions: a generation, and before it, for ``sticky``, the last assignment as a
list of topics with their partitions.

Source: ``StickyAssignor.STICKY_ASSIGNOR_USER_DATA_V1``,
``CooperativeStickyAssignor.COOPERATIVE_STICKY_ASSIGNOR_USER_DATA_V0``.
"""

import struct
from collections.abc import Sequence

from sim.ids import TopicPartition

_INT32 = struct.Struct(">i")
_INT16 = struct.Struct(">h")


def cooperative_user_data(generation: int) -> bytes:
    """User data of ``cooperative-sticky``; -1 for a member that was never assigned anything."""
    return _INT32.pack(generation)


def sticky_user_data(partitions: Sequence[TopicPartition], generation: int) -> bytes:
    """User data of ``sticky``."""
    numbers: dict[str, list[int]] = {}
    for partition in partitions:
        numbers.setdefault(partition.topic, []).append(partition.partition)
    parts = [_INT32.pack(len(numbers))]
    for topic, theirs in numbers.items():
        name = topic.encode()
        parts += [_INT16.pack(len(name)), name, _INT32.pack(len(theirs))]
        parts += [_INT32.pack(number) for number in theirs]
    parts.append(_INT32.pack(generation))
    return b"".join(parts)


def user_data_in(protocol: str, blob: bytes | None) -> tuple[tuple[TopicPartition, ...], int]:
    """Last assignment and generation in an assignor's user data; nothing and -1 if it has none.

    Raises:
        struct.error: If it ends too early.
    """
    if blob is None or protocol not in {"sticky", "cooperative-sticky"}:
        return (), -1
    if protocol == "cooperative-sticky":
        return (), _int32(blob, 0)
    found: list[TopicPartition] = []
    at = _INT32.size
    for _ in range(_int32(blob, 0)):
        length: int = _INT16.unpack_from(blob, at)[0]
        begin = at + _INT16.size
        end = begin + length
        topic = blob[begin:end].decode()
        count = _int32(blob, end)
        at = end + _INT32.size
        found += [
            TopicPartition(topic, _int32(blob, at + place * _INT32.size)) for place in range(count)
        ]
        at += count * _INT32.size
    return tuple(found), _int32(blob, at)


def _int32(blob: bytes, at: int) -> int:
    number: int = _INT32.unpack_from(blob, at)[0]
    return number
