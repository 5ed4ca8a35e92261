"""Markers that end a transaction in a partition: COMMIT and ABORT as control batches.

A marker is a batch of one record, never compressed, without a sequence; its producer is that of
the transaction. The control records of KRaft are built where its log is.

Source: ``EndTransactionMarker``, ``MemoryRecords.withEndTransactionMarker``; KIP-98, KIP-890.
"""

import struct
from typing import Final, NamedTuple

from sim.ids import NO_EPOCH, LeaderEpoch, Offset, ProducerId
from sim.units import Bytes
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import CONTROL, TRANSACTIONAL, RecordBatch, assemble

MARKER_BYTES: Final[Bytes] = 78
"""Size of every end-of-transaction marker."""

_ABORT = 0
_COMMIT = 1
_VERSION = 0
_KEY = struct.Struct(">hh")
_VALUE = struct.Struct(">hi")
# One record whole: its length, attributes, both deltas 0, the key and the value with their
# lengths, and no headers. All lengths are zigzag.
_RECORD = struct.Struct(">5BhhBhiB")
_RECORD_LENGTH = _RECORD.size - 1


class Marker(NamedTuple):
    """Fields of a marker. ``producer_epoch`` is the data's, or one more under KIP-890."""

    commit: bool
    producer_id: ProducerId
    producer_epoch: int
    coordinator_epoch: int


def end_transaction_marker(
    marker: Marker,
    timestamp_ms: int,
    *,
    base_offset: Offset = 0,
    leader_epoch: LeaderEpoch = NO_EPOCH,
) -> RecordBatch:
    """The marker as a batch, to be appended by a partition's leader.

    Args:
        marker: Its fields.
        timestamp_ms: Kafka timestamp of the one record.
        base_offset: 0 where the leader's log assigns it.
        leader_epoch: -1 where the leader's log stamps it.
    """
    record = _RECORD.pack(
        _RECORD_LENGTH << 1, 0, 0, 0, _KEY.size << 1,
        _VERSION, _COMMIT if marker.commit else _ABORT,
        _VALUE.size << 1, _VERSION, marker.coordinator_epoch,
        0,
    )  # fmt: skip
    data = assemble(
        (record,),
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=TRANSACTIONAL | CONTROL,
        last_offset_delta=0,
        base_timestamp_ms=timestamp_ms,
        max_timestamp_ms=timestamp_ms,
        producer_id=marker.producer_id,
        producer_epoch=marker.producer_epoch,
        base_sequence=-1,
        record_count=1,
    )
    return RecordBatch(data, producer_index=-1, first_record=-1, checked=True)


def read_marker(batch: RecordBatch) -> Marker | None:
    """The batch's marker; ``None`` if the batch does not end a transaction.

    Raises:
        MalformedBytes: If it claims to be one and its record is cut short.
    """
    if not batch.is_control or not batch.is_transactional:
        return None
    record = next(batch.records(), None)
    if record is None or record.key is None or len(record.key) < _KEY.size:
        return None
    _, kind = _KEY.unpack_from(record.key)
    if kind not in (_ABORT, _COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise MalformedBytes(f"the marker at {batch.base_offset} has no coordinator epoch")
    _, epoch = _VALUE.unpack_from(record.value)
    return Marker(kind == _COMMIT, batch.producer_id, batch.producer_epoch, epoch)
