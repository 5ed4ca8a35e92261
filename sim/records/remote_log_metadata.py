"""Codec of ``__remote_log_metadata``: from events of remote segments to a batch, and back.

Source: ``RemoteLogMetadataSerde``, ``RemoteLogSegmentMetadataTransform``,
``RemoteLogSegmentMetadataUpdateTransform``.
"""

from collections.abc import Iterable, Mapping, Sequence

from sim.ids import Offset, TopicPartition
from sim.protocol.broker.tiered.segments import (
    RemoteEvent,
    RemoteSegment,
    SegmentState,
    SegmentUpdate,
)
from sim.wire.fields import Value
from sim.wire.record_batch import NewRecord, RecordBatch, build_batch
from sim.wire.schemas import decode_remote_log, encode

_SEGMENT = "RemoteLogSegmentMetadataRecord"
_UPDATE = "RemoteLogSegmentMetadataUpdateRecord"


def batch_for(event: RemoteEvent, now_ms: int) -> RecordBatch:
    """One batch with the event, without a key, stamped with milliseconds since 1970."""
    where: dict[str, Value] = {
        "topicIdPartition": {
            "name": event.partition.topic,
            "id": event.topic_id,
            "partition": event.partition.partition,
        },
        "id": event.segment_id,
    }
    fields: dict[str, Value] = {
        "remoteLogSegmentId": where,
        "brokerId": event.broker,
        "eventTimestampMs": event.event_ms,
        "remoteLogSegmentState": int(event.state),
    }
    if isinstance(event, SegmentUpdate):
        return build_batch([NewRecord(now_ms, None, encode(_UPDATE, 0, fields))])
    fields |= {
        "startOffset": event.start,
        "endOffset": event.end,
        "maxTimestampMs": event.max_timestamp_ms,
        "segmentLeaderEpochs": [
            {"leaderEpoch": epoch, "offset": start} for epoch, start in event.epochs
        ],
        "segmentSizeInBytes": event.size,
        "txnIndexEmpty": event.lacks_aborted,
    }
    return build_batch([NewRecord(now_ms, None, encode(_SEGMENT, 0, fields))])


def events_in(batches: Iterable[RecordBatch]) -> tuple[tuple[Offset, RemoteEvent], ...]:
    """All events of the batches in order, with their offsets.

    Raises:
        MalformedBytes: If a record cannot be decoded.
    """
    return tuple(
        (batch.base_offset + place, _event(*decode_remote_log(record.value or b"")))
        for batch in batches
        for place, record in enumerate(batch.records())
    )


def _event(name: str, _version: int, values: Mapping[str, Value]) -> RemoteEvent:
    where = _structure(values["remoteLogSegmentId"])
    partition = _structure(where["topicIdPartition"])
    segment_id, topic_id = str(where["id"]), str(partition["id"])
    named = TopicPartition(str(partition["name"]), _number(partition, "partition"))
    state = SegmentState(_number(values, "remoteLogSegmentState"))
    broker, event_ms = _number(values, "brokerId"), _number(values, "eventTimestampMs")
    if name == _UPDATE:
        return SegmentUpdate(segment_id, topic_id, named, broker, event_ms, state)
    entries = values["segmentLeaderEpochs"]
    assert isinstance(entries, Sequence), "the schema says so"
    epochs = [_structure(entry) for entry in entries]
    return RemoteSegment(
        segment_id,
        topic_id,
        named,
        _number(values, "startOffset"),
        _number(values, "endOffset"),
        _number(values, "maxTimestampMs"),
        broker,
        event_ms,
        _number(values, "segmentSizeInBytes"),
        tuple((_number(entry, "leaderEpoch"), _number(entry, "offset")) for entry in epochs),
        state,
        lacks_aborted=bool(values["txnIndexEmpty"]),
    )


def _structure(value: Value) -> Mapping[str, Value]:
    assert isinstance(value, Mapping), "the schema says so"
    return value


def _number(fields: Mapping[str, Value], name: str) -> int:
    value = fields[name]
    assert isinstance(value, int), "the schema says so"
    return value
