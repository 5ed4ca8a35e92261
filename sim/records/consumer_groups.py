"""Codec of consumer and share groups in ``__consumer_offsets`` (KIP-848, KIP-932).

Keys of types 3 and 5 to 8, of share groups 10 to 15, values of version 0. Written as Kafka 4.1
writes them: a hash over the metadata in place of the metadata themselves (type 4).

Source: ``GroupCoordinatorRecordHelpers`` of the group coordinator.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeAlias, assert_never

from sim.ids import TopicPartition
from sim.protocol.coordinator.group.consumer_group_records import (
    CURRENT_KEY,
    EPOCH_KEY,
    GROUP_KEYS,
    MEMBER_KEY,
    PARTITION_METADATA_KEY,
    SHARE_CURRENT_KEY,
    SHARE_MEMBER_KEY,
    SHARE_STATES_KEY,
    SHARE_TARGET_KEY,
    TARGET_EPOCH_KEY,
    TARGET_KEY,
    ClassicMember,
    ConsumerGroupEpochRecord,
    ConsumerGroupMemberRecord,
    ConsumerGroupRecord,
    CurrentMemberAssignmentRecord,
    GroupKeyTombstone,
    MemberState,
    MemberTombstone,
    SharedTopic,
    ShareStatePartitionsRecord,
    TargetAssignmentEpochRecord,
    TargetAssignmentMemberRecord,
    member_keys,
)
from sim.records.consumer_protocol import subscription_blob, subscription_in
from sim.units import MS
from sim.wire.fields import Value
from sim.wire.schemas import decode_as, encode

_SHARE_EPOCH_KEY: Final = 11
_SHARE_TARGET_EPOCH_KEY: Final = 12

_NAMES: Final[Mapping[int, str]] = {
    EPOCH_KEY: "ConsumerGroupMetadata",
    PARTITION_METADATA_KEY: "ConsumerGroupPartitionMetadata",
    MEMBER_KEY: "ConsumerGroupMemberMetadata",
    TARGET_EPOCH_KEY: "ConsumerGroupTargetAssignmentMetadata",
    TARGET_KEY: "ConsumerGroupTargetAssignmentMember",
    CURRENT_KEY: "ConsumerGroupCurrentMemberAssignment",
    SHARE_MEMBER_KEY: "ShareGroupMemberMetadata",
    _SHARE_EPOCH_KEY: "ShareGroupMetadata",
    _SHARE_TARGET_EPOCH_KEY: "ShareGroupTargetAssignmentMetadata",
    SHARE_TARGET_KEY: "ShareGroupTargetAssignmentMember",
    SHARE_CURRENT_KEY: "ShareGroupCurrentMemberAssignment",
    SHARE_STATES_KEY: "ShareGroupStatePartitionMetadata",
}

_Fields: TypeAlias = Mapping[str, Value]

_Written: TypeAlias = (
    ConsumerGroupEpochRecord
    | ConsumerGroupMemberRecord
    | TargetAssignmentEpochRecord
    | TargetAssignmentMemberRecord
    | CurrentMemberAssignmentRecord
)


def key_of(record: ConsumerGroupRecord) -> bytes:
    """The key, with its type in front."""
    number, member = _type_of(record), ""
    if not isinstance(
        record,
        ConsumerGroupEpochRecord
        | TargetAssignmentEpochRecord
        | ShareStatePartitionsRecord
        | GroupKeyTombstone,
    ):
        member = record.member_id
    fields: dict[str, Value] = {"groupId": record.group}
    if member:
        fields["memberId"] = member
    return encode(f"{_NAMES[number]}Key", 0, fields)


def value_of(record: ConsumerGroupRecord) -> bytes | None:
    """The value, with its version in front; ``None`` for a tombstone."""
    fields = _fields_of(record)
    return None if fields is None else encode(f"{_NAMES[_type_of(record)]}Value", 0, fields)


def has_type(kind: int) -> bool:
    """True for the key types of consumer-protocol groups."""
    return kind in _NAMES


def decode(kind: int, key: bytes, value: bytes | None) -> ConsumerGroupRecord | None:
    """The record; ``None`` for a tombstone of a share group's epochs.

    Args:
        kind: The key's type, one of :func:`has_type`.
        key: With its type.
        value: With its version; ``None`` for a tombstone.
    """
    named = decode_as(f"{_NAMES[kind]}Key", key).values
    group, member = _text(named["groupId"]), _text(named.get("memberId", ""))
    if value is None:
        if kind in GROUP_KEYS:
            return GroupKeyTombstone(group, kind)
        return MemberTombstone(group, member, kind) if member else None
    if kind == PARTITION_METADATA_KEY:
        return None  # until 4.0, in place of a hash
    fields = decode_as(f"{_NAMES[kind]}Value", value).values
    if kind == SHARE_STATES_KEY:
        return ShareStatePartitionsRecord(
            group,
            _read_shared(fields["initializingTopics"]),
            _read_shared(fields["initializedTopics"]),
        )
    if kind in _SHARE_READERS:
        return replace(_SHARE_READERS[kind](group, member, fields), share=True)
    return _READERS[kind](group, member, fields)


# -- writing --------------------------------------------------------------------------------------


def _type_of(record: ConsumerGroupRecord) -> int:
    current_key, target_key, member_key = member_keys(share=record.share)
    match record:
        case ConsumerGroupEpochRecord():
            return _SHARE_EPOCH_KEY if record.share else EPOCH_KEY
        case ConsumerGroupMemberRecord():
            return member_key
        case TargetAssignmentEpochRecord():
            return _SHARE_TARGET_EPOCH_KEY if record.share else TARGET_EPOCH_KEY
        case TargetAssignmentMemberRecord():
            return target_key
        case CurrentMemberAssignmentRecord():
            return current_key
        case ShareStatePartitionsRecord():
            return SHARE_STATES_KEY
        case MemberTombstone() | GroupKeyTombstone():
            return record.key_type
        case _:
            assert_never(record)


def _fields_of(record: ConsumerGroupRecord) -> _Fields | None:
    match record:
        case ConsumerGroupEpochRecord():
            return {"epoch": record.epoch, "metadataHash": record.metadata_hash}
        case ConsumerGroupMemberRecord():
            member: dict[str, Value] = {
                "rackId": record.rack_id or None,
                "clientId": record.client_id,
                "clientHost": record.client_host,
                "subscribedTopicNames": list(record.topics),
            }
            if record.share:
                return member
            return member | {
                "instanceId": record.instance_id or None,
                "subscribedTopicRegex": "",
                "rebalanceTimeoutMs": record.rebalance_timeout_us // MS,
                "serverAssignor": record.server_assignor or None,
                # Without it Kafka takes the member for one of the classic protocol.
                "classicMemberMetadata": _classic_fields(record.classic),
            }
        case TargetAssignmentEpochRecord():
            return {"assignmentEpoch": record.epoch, "assignmentTimestamp": record.timestamp_ms}
        case TargetAssignmentMemberRecord():
            return {"topicPartitions": _by_topic(record.partitions)}
        case CurrentMemberAssignmentRecord():
            current: dict[str, Value] = {
                "memberEpoch": record.epoch,
                "previousMemberEpoch": record.previous_epoch,
                "state": int(record.state),
            }
            if record.share:
                return current | {"assignedPartitions": _by_topic(record.assigned)}
            return current | {
                "assignedPartitions": _by_topic(record.assigned, record.assigned_epochs),
                "partitionsPendingRevocation": _by_topic(
                    record.pending_revocation, record.pending_epochs
                ),
            }
        case ShareStatePartitionsRecord():
            return {
                "initializingTopics": _shared(record.initializing),
                "initializedTopics": _shared(record.initialized),
                "deletingTopics": [],
            }
        case MemberTombstone() | GroupKeyTombstone():
            return None
        case _:
            assert_never(record)


def _classic_fields(classic: ClassicMember | None) -> _Fields | None:
    """Fields of a classic member's JoinGroup; its assignors share a subscription."""
    if classic is None:
        return None
    return {
        "sessionTimeoutMs": classic.session_timeout_us // MS,
        "supportedProtocols": [
            {"name": name, "metadata": subscription_blob(classic.subscription, name)}
            for name in classic.protocols
        ],
    }


def _by_topic(partitions: Sequence[TopicPartition], epochs: Sequence[int] = ()) -> list[Value]:
    """Structures of a topic each; with the epochs of all partitions, if those are given."""
    numbers: dict[str, list[int]] = {}
    since: dict[str, list[int]] = {}
    for at, place in enumerate(partitions):
        numbers.setdefault(place.topic, []).append(place.partition)
        if epochs:
            since.setdefault(place.topic, []).append(epochs[at])
    named = {topic: {"assignmentEpochs": theirs} for topic, theirs in since.items()}
    return [
        {"topicId": topic, "partitions": theirs, **named.get(topic, {})}
        for topic, theirs in numbers.items()
    ]


def _shared(topics: Sequence[SharedTopic]) -> list[Value]:
    return [
        {"topicId": each.topic_id, "topicName": each.topic, "partitions": list(each.partitions)}
        for each in topics
    ]


# -- reading --------------------------------------------------------------------------------------


def _read_epoch(group: str, _member: str, fields: _Fields) -> _Written:
    return ConsumerGroupEpochRecord(
        group, _number(fields["epoch"]), _number(fields.get("metadataHash", 0))
    )


def _read_member(group: str, member: str, fields: _Fields) -> _Written:
    topics, instance = fields["subscribedTopicNames"], _text(fields.get("instanceId") or "")
    assert isinstance(topics, Sequence)
    return ConsumerGroupMemberRecord(
        group,
        member,
        _text(fields["rackId"] or ""),
        _text(fields["clientId"]),
        _text(fields["clientHost"]),
        tuple(_text(topic) for topic in topics),
        _number(fields.get("rebalanceTimeoutMs", 0)) * MS,
        _text(fields.get("serverAssignor") or ""),
        instance_id=instance,
        classic=_classic(fields.get("classicMemberMetadata"), instance),
    )


def _classic(value: Value, instance_id: str) -> ClassicMember | None:
    """The member's JoinGroup; what only a sticky assignor remembers is of the first that does."""
    if value is None:
        return None
    assert isinstance(value, Mapping), f"a structure expected, not {value!r}"
    protocols = [
        (_text(entry["name"]), _bytes(entry["metadata"]))
        for entry in _structs(value["supportedProtocols"])
    ]
    said = [subscription_in(blob, name, instance_id) for name, blob in protocols]
    best = max(said, key=lambda each: (len(each.remembered), each.remembered_generation))
    timeout = _number(value["sessionTimeoutMs"]) * MS
    return ClassicMember(timeout, tuple(name for name, _ in protocols), best)


def _read_target_epoch(group: str, _member: str, fields: _Fields) -> _Written:
    stamp = _number(fields.get("assignmentTimestamp", 0))
    epoch = _number(fields["assignmentEpoch"])
    return TargetAssignmentEpochRecord(group, epoch, timestamp_ms=stamp)


def _read_target(group: str, member: str, fields: _Fields) -> _Written:
    return TargetAssignmentMemberRecord(group, member, _partitions(fields["topicPartitions"]))


def _read_current(group: str, member: str, fields: _Fields) -> _Written:
    assigned, pending = fields["assignedPartitions"], fields.get("partitionsPendingRevocation", ())
    return CurrentMemberAssignmentRecord(
        group,
        member,
        _number(fields["memberEpoch"]),
        _number(fields["previousMemberEpoch"]),
        MemberState(_number(fields["state"])),
        _partitions(assigned),
        _partitions(pending),
        assigned_epochs=_epochs(assigned),
        pending_epochs=_epochs(pending),
    )


_READERS: Final[Mapping[int, Callable[[str, str, _Fields], _Written]]] = {
    EPOCH_KEY: _read_epoch,
    MEMBER_KEY: _read_member,
    TARGET_EPOCH_KEY: _read_target_epoch,
    TARGET_KEY: _read_target,
    CURRENT_KEY: _read_current,
}

_SHARE_READERS: Final[Mapping[int, Callable[[str, str, _Fields], _Written]]] = {
    _SHARE_EPOCH_KEY: _read_epoch,
    SHARE_MEMBER_KEY: _read_member,
    _SHARE_TARGET_EPOCH_KEY: _read_target_epoch,
    SHARE_TARGET_KEY: _read_target,
    SHARE_CURRENT_KEY: _read_current,
}


def _partitions(value: Value) -> tuple[TopicPartition, ...]:
    found: list[TopicPartition] = []
    for entry in _structs(value):
        numbers = entry["partitions"]
        assert isinstance(numbers, Sequence)
        found += [TopicPartition(_text(entry["topicId"]), _number(n)) for n in numbers]
    return tuple(found)


def _read_shared(value: Value) -> tuple[SharedTopic, ...]:
    found: list[SharedTopic] = []
    for entry in _structs(value):
        numbers = entry["partitions"]
        assert isinstance(numbers, Sequence)
        places = tuple(_number(n) for n in numbers)
        found.append(SharedTopic(_text(entry["topicId"]), _text(entry["topicName"]), places))
    return tuple(found)


def _epochs(value: Value) -> tuple[int, ...]:
    found: list[int] = []
    for entry in _structs(value):
        numbers = entry.get("assignmentEpochs") or ()
        assert isinstance(numbers, Sequence)
        found += [_number(number) for number in numbers]
    return tuple(found)


def _text(value: Value) -> str:
    assert isinstance(value, str), f"text expected, not {value!r}"
    return value


def _bytes(value: Value) -> bytes:
    assert isinstance(value, bytes), f"bytes expected, not {value!r}"
    return value


def _number(value: Value) -> int:
    assert isinstance(value, int), f"a number expected, not {value!r}"
    return value


def _structs(value: Value) -> Iterable[_Fields]:
    assert isinstance(value, Sequence), f"structures expected, not {value!r}"
    for entry in value:
        assert isinstance(entry, Mapping), f"a structure expected, not {entry!r}"
        yield entry
