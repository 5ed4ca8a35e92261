"""Codec of ``__consumer_offsets``: from a group coordinator's records to a batch, and back.

Offset commits as type 1 with value version 3, or 4 since 4.1, classic groups as type 2 with value
version 3, with the members' subscription and assignment as the consumer protocol's own blobs; older
releases write older versions. Groups of KIP-848 are in :mod:`sim.records.consumer_groups`. Keys of
other types are passed over on reading, as a real coordinator does with types it does not know.

Source: ``GroupCoordinatorRecordHelpers``, ``CoordinatorRecordSerde``, ``ConsumerProtocol``;
``MetadataVersion.{offsetCommitValueVersion,groupMetadataValueVersion}`` (3.9).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from sim.ids import ProducerId, TopicPartition
from sim.protocol.coordinator.group.consumer_group_records import CONSUMER_GROUP_RECORDS
from sim.protocol.coordinator.group.records import (
    GroupMetadataRecord,
    GroupRecord,
    GroupTombstone,
    MemberRecord,
    OffsetCommitRecord,
    OffsetsMarker,
    OffsetTombstone,
    PendingOffsetRecord,
)
from sim.records import consumer_groups as consumer_group_codec
from sim.records.consumer_protocol import (
    assignment_blob,
    assignment_in,
    subscription_blob,
    subscription_in,
)
from sim.units import MS
from sim.wire.control_batch import read_marker
from sim.wire.fields import ZERO_UUID, Value
from sim.wire.record_batch import NewRecord, RecordBatch, build_batch
from sim.wire.schemas import decode_as, encode

_OFFSET_COMMIT_KEY = b"\x00\x01"
_GROUP_METADATA_KEY = b"\x00\x02"
_VALUE_VERSION_SINCE_4_1 = 4
_PROTOCOL_TYPE = "consumer"

_Fields: TypeAlias = Mapping[str, Value]


class OffsetsForm(NamedTuple):
    """Versions in which a release writes values."""

    commit: int = 3
    """Of offset commits without the field of a topic's id."""
    group: int = 3
    """Of classic groups."""
    retention_ms: int = 0
    """``offsets.retention.minutes``: version 1 of a commit says when it expires."""


FORM = OffsetsForm()
"""That of 2.3 and newer."""


def batch_for(records: Sequence[GroupRecord], now_ms: int, form: OffsetsForm = FORM) -> RecordBatch:
    """One uncompressed batch without a producer id, all records with the given timestamp.

    Args:
        records: At least one.
        now_ms: Milliseconds since 1970, as Kafka stamps records.
        form: Versions of their values.
    """
    new = [NewRecord(now_ms, _key(record), _value(record, form)) for record in records]
    return build_batch(new)


def transactional_batch_for(
    records: Sequence[GroupRecord],
    now_ms: int,
    producer_id: ProducerId,
    producer_epoch: int,
    form: OffsetsForm = FORM,
) -> RecordBatch:
    """The same as a part of a producer's transaction; Kafka gives it sequence 0 each time."""
    return build_batch(
        [NewRecord(now_ms, _key(record), _value(record, form)) for record in records],
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=0,
        transactional=True,
    )


def records_in(batches: Iterable[RecordBatch]) -> tuple[GroupRecord, ...]:
    """All records of the batches in order, and the markers of transactions between them.

    Raises:
        MalformedBytes: If a record of a known type cannot be decoded.
    """
    found: list[GroupRecord] = []
    for batch in batches:
        if batch.is_control:
            marker = read_marker(batch)
            if marker is not None:
                found.append(OffsetsMarker(marker.producer_id, marker.commit))
            continue
        for record in batch.records():
            decoded = _decode(record.key, record.value)
            if isinstance(decoded, OffsetCommitRecord) and batch.is_transactional:
                found.append(PendingOffsetRecord(batch.producer_id, decoded))
            elif decoded is not None:
                found.append(decoded)
    return tuple(found)


# -- writing --------------------------------------------------------------------------------------


def _key(record: GroupRecord) -> bytes:
    assert not isinstance(record, OffsetsMarker), "markers are written by the leader"
    if isinstance(record, PendingOffsetRecord):
        record = record.commit
    if isinstance(record, CONSUMER_GROUP_RECORDS):
        return consumer_group_codec.key_of(record)
    if isinstance(record, OffsetCommitRecord | OffsetTombstone):
        place = record.partition
        fields: _Fields = {
            "group": record.group,
            "topic": place.topic,
            "partition": place.partition,
        }
        return encode("OffsetCommitKey", 0, fields)
    return encode("GroupMetadataKey", 0, {"group": record.group})


def _value(record: GroupRecord, form: OffsetsForm) -> bytes | None:
    if isinstance(record, PendingOffsetRecord):
        record = record.commit
    if isinstance(record, CONSUMER_GROUP_RECORDS):
        return consumer_group_codec.value_of(record)
    if isinstance(record, OffsetCommitRecord):
        committed: dict[str, Value] = {
            "offset": record.offset,
            "leaderEpoch": record.leader_epoch,
            "metadata": "",
            "commitTimestamp": record.timestamp_ms,
        }
        if record.topic_id is None:
            if form.commit == 1:
                committed["expireTimestamp"] = record.timestamp_ms + form.retention_ms
            return encode("OffsetCommitValue", form.commit, committed)
        if record.topic_id:
            committed["topicId"] = record.topic_id
        return encode("OffsetCommitValue", _VALUE_VERSION_SINCE_4_1, committed)
    if isinstance(record, GroupMetadataRecord):
        return encode(
            "GroupMetadataValue",
            form.group,
            {
                # A group that never had a member has no type yet.
                "protocolType": _PROTOCOL_TYPE if record.generation else "",
                "generation": record.generation,
                "protocol": record.protocol or None,
                "leader": record.leader or None,
                "currentStateTimestamp": record.timestamp_ms if form.group >= 2 else -1,
                "members": [
                    _member_fields(member, record.protocol, form) for member in record.members
                ],
            },
        )
    return None


def _member_fields(member: MemberRecord, protocol: str, form: OffsetsForm) -> dict[str, Value]:
    said = member.subscription
    return {
        "memberId": member.member_id,
        "groupInstanceId": (said.instance_id or None) if form.group >= FORM.group else None,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "rebalanceTimeout": member.rebalance_timeout_us // MS,
        "sessionTimeout": member.session_timeout_us // MS,
        "subscription": subscription_blob(said, protocol),
        "assignment": assignment_blob(member.assignment),
    }


# -- reading --------------------------------------------------------------------------------------


def _decode(key: bytes | None, value: bytes | None) -> GroupRecord | None:
    kind = key[:2] if key is not None else b""
    if key is not None and consumer_group_codec.has_type(int.from_bytes(kind, "big")):
        return consumer_group_codec.decode(int.from_bytes(kind, "big"), key, value)
    if key is None or kind not in {_OFFSET_COMMIT_KEY, _GROUP_METADATA_KEY}:
        return None
    if kind == _OFFSET_COMMIT_KEY:
        named = decode_as("OffsetCommitKey", key).values
        place = TopicPartition(_text(named["topic"]), _number(named["partition"]))
        return _offset(_text(named["group"]), place, value)
    group = _text(decode_as("GroupMetadataKey", key).values["group"])
    if value is None:
        return GroupTombstone(group)
    return _group(group, decode_as("GroupMetadataValue", value).values)


def _offset(group: str, place: TopicPartition, value: bytes | None) -> GroupRecord:
    if value is None:
        return OffsetTombstone(group, place)
    decoded = decode_as("OffsetCommitValue", value)
    fields = decoded.values
    topic_id = (
        _text(fields.get("topicId", "")) if decoded.version >= _VALUE_VERSION_SINCE_4_1 else None
    )
    return OffsetCommitRecord(
        group,
        place,
        _number(fields["offset"]),
        _number(fields.get("leaderEpoch", -1)),
        _number(fields["commitTimestamp"]),
        "" if topic_id == ZERO_UUID else topic_id,
    )


def _group(name: str, fields: _Fields) -> GroupMetadataRecord:
    return GroupMetadataRecord(
        name,
        _number(fields["generation"]),
        _text(fields["protocol"] or ""),
        _text(fields["leader"] or ""),
        _number(fields.get("currentStateTimestamp", -1)),
        tuple(
            _member(member, _text(fields["protocol"] or ""))
            for member in _structs(fields["members"])
        ),
    )


def _member(fields: _Fields, protocol: str) -> MemberRecord:
    return MemberRecord(
        _text(fields["memberId"]),
        _text(fields["clientId"]),
        _text(fields["clientHost"]),
        _number(fields["rebalanceTimeout"]) * MS,
        _number(fields["sessionTimeout"]) * MS,
        subscription_in(
            _bytes(fields["subscription"]), protocol, _text(fields.get("groupInstanceId") or "")
        ),
        assignment_in(_bytes(fields["assignment"])),
    )


def _text(value: Value) -> str:
    assert isinstance(value, str), f"text expected, not {value!r}"
    return value


def _number(value: Value) -> int:
    assert isinstance(value, int), f"a number expected, not {value!r}"
    return value


def _bytes(value: Value) -> bytes:
    assert isinstance(value, bytes), f"bytes expected, not {value!r}"
    return value


def _structs(value: Value) -> Iterable[_Fields]:
    assert isinstance(value, Sequence), f"structures expected, not {value!r}"
    for entry in value:
        assert isinstance(entry, Mapping), f"a structure expected, not {entry!r}"
        yield entry
