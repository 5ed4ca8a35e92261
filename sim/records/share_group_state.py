"""Codec of ``__share_group_state``: from a share coordinator's records to a batch, and back.

Source: ``ShareCoordinatorRecordHelpers``, ``ShareCoordinatorRecordSerde``.
"""

from collections.abc import Iterable, Mapping, Sequence

from sim.protocol.coordinator.share.records import (
    ShareSnapshotRecord,
    ShareStateRecord,
    ShareUpdateRecord,
)
from sim.protocol.messages.share_records import RecordState, ShareKey, StateBatch
from sim.wire.fields import Value
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import NewRecord, RecordBatch, build_batch
from sim.wire.schemas import decode_share_state, encode


def batch_for(records: Sequence[ShareStateRecord], now_ms: int) -> RecordBatch:
    """One uncompressed batch without a producer id, all records with the given timestamp.

    Args:
        records: At least one.
        now_ms: Milliseconds since 1970, as Kafka stamps records.
    """
    return build_batch([NewRecord(now_ms, _key(record), _value(record)) for record in records])


def records_in(batches: Iterable[RecordBatch]) -> tuple[ShareStateRecord, ...]:
    """All records of the batches in order; control batches hold none.

    Raises:
        MalformedBytes: If a record cannot be decoded.
    """
    return tuple(
        decoded
        for batch in batches
        if not batch.is_control
        for record in batch.records()
        if (decoded := _decode(record.key or b"", record.value)) is not None
    )


def _name(record: ShareStateRecord) -> str:
    return "ShareSnapshot" if isinstance(record, ShareSnapshotRecord) else "ShareUpdate"


def _key(record: ShareStateRecord) -> bytes:
    group, topic_id, partition = record.key
    fields: dict[str, Value] = {"groupId": group, "topicId": topic_id, "partition": partition}
    return encode(f"{_name(record)}Key", 0, fields)


def _value(record: ShareStateRecord) -> bytes:
    fields: dict[str, Value] = {
        "snapshotEpoch": record.snapshot_epoch,
        "leaderEpoch": record.leader_epoch,
        "startOffset": record.start_offset,
        "deliveryCompleteCount": record.complete_count,
        "stateBatches": [
            {
                "firstOffset": batch.first,
                "lastOffset": batch.last,
                "deliveryState": int(batch.state),
                "deliveryCount": batch.delivery_count,
            }
            for batch in record.batches
        ],
    }
    if isinstance(record, ShareSnapshotRecord):
        fields |= {
            "stateEpoch": record.state_epoch,
            "createTimestamp": record.timestamp_ms,
            "writeTimestamp": record.timestamp_ms,
        }
    return encode(f"{_name(record)}Value", 0, fields)


def _decode(key: bytes, value: bytes | None) -> ShareStateRecord | None:
    named, decoded = decode_share_state(key, value)
    if decoded is None:
        return None  # a deleted share partition, which this simulator never writes
    group, topic_id = named.values["groupId"], named.values["topicId"]
    assert isinstance(group, str), "the schema says so"
    assert isinstance(topic_id, str), "the schema says so"
    where = ShareKey(group, topic_id, _number(named.values, "partition"))
    fields = decoded.values
    snapshot_epoch = _number(fields, "snapshotEpoch")
    leader_epoch = _number(fields, "leaderEpoch")
    start = _number(fields, "startOffset")
    batches = _batches(fields["stateBatches"])
    complete = _number(fields, "deliveryCompleteCount")
    if decoded.name == "ShareUpdateValue":
        return ShareUpdateRecord(where, snapshot_epoch, leader_epoch, start, batches, complete)
    state_epoch, written = _number(fields, "stateEpoch"), _number(fields, "writeTimestamp")
    return ShareSnapshotRecord(
        where, snapshot_epoch, state_epoch, leader_epoch, start, batches, written, complete
    )


def _batches(value: Value) -> tuple[StateBatch, ...]:
    assert isinstance(value, Sequence), "the schema says so"
    found: list[StateBatch] = []
    for entry in value:
        assert isinstance(entry, Mapping), "the schema says so"
        first, last = _number(entry, "firstOffset"), _number(entry, "lastOffset")
        number = _number(entry, "deliveryState")
        try:
            state = RecordState(number)
        except ValueError as error:
            raise MalformedBytes(f"unknown delivery state {number}") from error
        found.append(StateBatch(first, last, state, _number(entry, "deliveryCount")))
    return tuple(found)


def _number(fields: Mapping[str, Value], name: str) -> int:
    value = fields[name]
    assert isinstance(value, int), "the schema says so"
    return value
