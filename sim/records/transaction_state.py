"""Codec of ``__transaction_state``: from a coordinator's records to a batch, and back.

Values have version 1 when the cluster's transaction version is above 0, as Kafka writes them, else
version 0, which has neither previous nor next producer ids. Both are read.

Source: ``TransactionLog``, ``TransactionLogValue.json``.
"""

from collections.abc import Iterable, Mapping, Sequence

from sim.ids import TopicPartition
from sim.protocol.coordinator.transaction.records import (
    STATUS,
    TransactionLogRecord,
    TransactionRecord,
    TransactionState,
    TransactionTombstone,
)
from sim.units import MS
from sim.wire.fields import Value
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import NewRecord, RecordBatch, build_batch
from sim.wire.schemas import decode_transaction, encode

_STATES = {number: state for state, number in STATUS.items()}


def batch_for(records: Sequence[TransactionLogRecord], now_ms: int) -> RecordBatch:
    """One uncompressed batch without a producer id, all records with the given timestamp.

    Args:
        records: At least one.
        now_ms: Milliseconds since 1970, as Kafka stamps records.
    """
    return build_batch([NewRecord(now_ms, _key(record), _value(record)) for record in records])


def records_in(batches: Iterable[RecordBatch]) -> tuple[TransactionLogRecord, ...]:
    """All records of the batches in order; control batches hold none.

    Raises:
        MalformedBytes: If a record cannot be decoded.
    """
    return tuple(
        _decode(record.key or b"", record.value)
        for batch in batches
        if not batch.is_control
        for record in batch.records()
    )


def _key(record: TransactionLogRecord) -> bytes:
    return encode("TransactionLogKey", 0, {"transactionalId": record.transactional_id})


def _value(record: TransactionLogRecord) -> bytes | None:
    if isinstance(record, TransactionTombstone):
        return None
    assert STATUS[record.state] <= STATUS[TransactionState.COMPLETE_ABORT], "never written"
    partitions: list[Value] | None = None
    if record.state is not TransactionState.EMPTY:
        by_topic: dict[str, list[Value]] = {}
        for place in record.partitions:
            by_topic.setdefault(place.topic, []).append(place.partition)
        partitions = [{"topic": t, "partitionIds": ids} for t, ids in by_topic.items()]
    fields: dict[str, Value] = {
        "producerId": record.producer_id,
        "producerEpoch": record.producer_epoch,
        "transactionTimeoutMs": record.timeout_us // MS,
        "transactionStatus": STATUS[record.state],
        "transactionPartitions": partitions,
        "transactionLastUpdateTimestampMs": record.last_update_ms,
        "transactionStartTimestampMs": record.start_ms,
    }
    if not record.version:
        return encode("TransactionLogValue", 0, fields)
    fields |= {
        "previousProducerId": record.previous_producer_id,
        "nextProducerId": record.next_producer_id,
        "clientTransactionVersion": record.version,
    }
    return encode("TransactionLogValue", 1, fields)


def _decode(key: bytes, value: bytes | None) -> TransactionLogRecord:
    named, decoded = decode_transaction(key, value)
    name = named.values["transactionalId"]
    assert isinstance(name, str), "the schema says so"
    if decoded is None:
        return TransactionTombstone(name)
    fields = decoded.values
    return TransactionRecord(
        name,
        _number(fields, "producerId"),
        _number(fields, "producerEpoch"),
        _number(fields, "transactionTimeoutMs") * MS,
        _state(_number(fields, "transactionStatus")),
        _partitions(fields["transactionPartitions"]),
        _number(fields, "transactionLastUpdateTimestampMs"),
        _number(fields, "transactionStartTimestampMs"),
        int(fields.get("previousProducerId", -1)),  # type: ignore[arg-type] # by the schema
        int(fields.get("nextProducerId", -1)),  # type: ignore[arg-type] # by the schema
        int(fields.get("clientTransactionVersion", 0)),  # type: ignore[arg-type] # by the schema
    )


def _state(status: int) -> TransactionState:
    state = _STATES.get(status)
    if state is None:
        raise MalformedBytes(f"unknown transaction state {status}")
    return state


def _partitions(value: Value) -> tuple[TopicPartition, ...]:
    if value is None:
        return ()
    assert isinstance(value, Sequence), "the schema says so"
    found: list[TopicPartition] = []
    for entry in value:
        assert isinstance(entry, Mapping), "the schema says so"
        topic, numbers = entry["topic"], entry["partitionIds"]
        assert isinstance(topic, str), "the schema says so"
        assert isinstance(numbers, Sequence), "the schema says so"
        found += [TopicPartition(topic, number) for number in numbers if isinstance(number, int)]
    return tuple(found)


def _number(fields: Mapping[str, Value], name: str) -> int:
    value = fields[name]
    assert isinstance(value, int), "the schema says so"
    return value
