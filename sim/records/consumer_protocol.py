"""Codec of the consumer protocol's own blobs: subscriptions and assignments (KIP-429, KIP-792).

They lie in records of classic groups, and in those of the consumer groups' classic members.

Source: ``ConsumerProtocol``, ``ConsumerProtocolSubscription.json``,
``ConsumerProtocolAssignment.json``.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sim.ids import TopicPartition
from sim.protocol.assignors.subscription import NO_GENERATION, Subscription
from sim.wire.assignor_data import cooperative_user_data, sticky_user_data, user_data_in
from sim.wire.fields import Value
from sim.wire.schemas import decode_as, encode

_BLOB_VERSION: Final = 3


def subscription_blob(said: Subscription, protocol: str) -> bytes:
    """A member's subscription, with the user data of the assignor ``protocol``."""
    subscription = {
        "topics": list(said.topics),
        "userData": _user_data(said, protocol),
        "ownedPartitions": _by_topic(said.owned),
        "generationId": said.generation,
        "rackId": said.rack or None,
    }
    return encode("ConsumerProtocolSubscription", _BLOB_VERSION, subscription)


def subscription_in(blob: bytes, protocol: str, instance_id: str) -> Subscription:
    """The subscription of a member with that ``group.instance.id``, or with an empty one."""
    said = decode_as("ConsumerProtocolSubscription", blob).values
    topics, user_data, rack = said["topics"], said.get("userData"), said.get("rackId") or ""
    generation = said.get("generationId", NO_GENERATION)
    assert isinstance(topics, Sequence), f"a list expected, not {topics!r}"
    assert user_data is None or isinstance(user_data, bytes), f"bytes expected, not {user_data!r}"
    assert isinstance(rack, str), f"text expected, not {rack!r}"
    assert isinstance(generation, int), f"a number expected, not {generation!r}"
    remembered, remembered_generation = user_data_in(protocol, user_data)
    return Subscription(
        tuple(map(str, topics)),
        _places(said.get("ownedPartitions") or ()),
        generation,
        rack,
        instance_id,
        remembered,
        remembered_generation,
    )


def assignment_blob(partitions: Iterable[TopicPartition]) -> bytes:
    """A member's assignment."""
    fields: dict[str, Value] = {"assignedPartitions": _by_topic(partitions), "userData": None}
    return encode("ConsumerProtocolAssignment", _BLOB_VERSION, fields)


def assignment_in(blob: bytes) -> tuple[TopicPartition, ...]:
    """The partitions; none of an empty blob."""
    if not blob:
        return ()
    return _places(decode_as("ConsumerProtocolAssignment", blob).values["assignedPartitions"])


def _user_data(said: Subscription, protocol: str) -> bytes | None:
    """User data of the assignor of that name."""
    generation = said.remembered_generation
    if protocol == "cooperative-sticky":
        return cooperative_user_data(generation)
    if protocol == "sticky" and generation >= 0:
        return sticky_user_data(said.remembered, generation)
    return None


def _by_topic(partitions: Iterable[TopicPartition]) -> list[Value]:
    numbers: dict[str, list[int]] = {}
    for place in partitions:
        numbers.setdefault(place.topic, []).append(place.partition)
    return [{"topic": topic, "partitions": theirs} for topic, theirs in numbers.items()]


def _places(listed: Value) -> tuple[TopicPartition, ...]:
    assert isinstance(listed, Sequence), f"structures expected, not {listed!r}"
    found: list[TopicPartition] = []
    for entry in listed:
        assert isinstance(entry, Mapping), f"a structure expected, not {entry!r}"
        topic, numbers = entry["topic"], entry["partitions"]
        assert isinstance(topic, str), f"text expected, not {topic!r}"
        assert isinstance(numbers, Sequence), f"numbers expected, not {numbers!r}"
        for number in numbers:
            assert isinstance(number, int), f"a number expected, not {number!r}"
            found.append(TopicPartition(topic, number))
    return tuple(found)
