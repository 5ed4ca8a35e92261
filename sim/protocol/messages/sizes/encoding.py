"""Bytes of texts, arrays and tagged fields in Kafka's protocol; partitions, as messages list them.

A null text or array takes as many bytes as an empty one. ``plain`` is what messages have that are
older than KIP-482.

Source: ``org.apache.kafka.common.protocol.types.Type``, ``ByteUtils``.
"""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from sim.ids import TopicPartition
from sim.units import Bytes

_Value = TypeVar("_Value")


def uvarint(number: int) -> Bytes:
    """An unsigned number of seven bits a byte."""
    if number < 0x80:
        return 1
    if number < 0x4000:
        return 2
    return 3 if number < 0x20_0000 else 4 if number < 0x1000_0000 else 5


def text(value: str | None) -> Bytes:
    """A text with its length."""
    if not value:
        return 1
    size = len(value) if value.isascii() else len(value.encode())
    return size + 1 if size < 0x7F else size + uvarint(size + 1)


def blob(size: Bytes) -> Bytes:
    """Bytes or records with their length."""
    return size + (1 if size < 0x7F else 2 if size < 0x3FFF else uvarint(size + 1))


def numbers(count: int, each: Bytes) -> Bytes:
    """An array of elements of the same size."""
    return count * each + (1 if count < 0x7F else uvarint(count + 1))


def tagged(size: Bytes) -> Bytes:
    """A tagged field with its tag and its length."""
    return 1 + uvarint(size) + size


def plain_text(value: str | None) -> Bytes:
    """A text with its length in two bytes."""
    return 2 + len((value or "").encode())


def grouped(pairs: Iterable[tuple[TopicPartition, _Value]]) -> dict[str, list[_Value]]:
    """Values of each topic's partitions: a message names a topic once."""
    found: dict[str, list[_Value]] = {}
    for place, value in pairs:
        found.setdefault(place.topic, []).append(value)
    return found


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, int]:
    """Number of each topic's partitions."""
    counts: dict[str, int] = {}
    for place in partitions:
        counts[place.topic] = counts.get(place.topic, 0) + 1
    return counts


def topic_counts(partitions: Sequence[TopicPartition]) -> list[int]:
    """As :func:`by_topic`, without the topics."""
    if len(partitions) < 2:
        return [1] if partitions else []
    return list(by_topic(partitions).values())


def topic_runs(partitions: Sequence[TopicPartition]) -> list[int]:
    """Number of partitions in each row of one topic's: a fetch has a topic again after another.

    Source: ``FetchRequest.Builder.build``, ``FetchResponse.toMessage``.
    """
    if len(partitions) < 2:
        return [1] if partitions else []
    counts: list[int] = []
    last, count = partitions[0].topic, 0
    for place in partitions:
        topic = place.topic
        if topic == last:
            count += 1
        else:
            counts.append(count)
            last, count = topic, 1
    counts.append(count)
    return counts
