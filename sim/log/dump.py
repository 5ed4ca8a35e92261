"""Files of a log directory as lines of text, in the form of Kafka's ``kafka-dump-log``.

Simplified: bytes that are not printable are escaped, where Kafka prints them raw; indexes are
printed, not checked (see :mod:`sim.log.doctor`).

Source: ``DumpLogSegments``.
"""

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from sim.errors import SimulationError
from sim.log.producer_state import MalformedSnapshot, decode_snapshot
from sim.log.reading import (
    base_offset_of,
    file_batches,
    read_offset_index,
    read_time_index,
    read_transaction_index,
)
from sim.wire import schemas
from sim.wire.fields import Field, Schema, Value, default_of
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import DELETE_HORIZON, LOG_APPEND_TIME, Record, RecordBatch

Decoder: TypeAlias = Literal["cluster-metadata", "offsets", "transaction-log", "share-group-state"]
"""What records are decoded as; Kafka's ``--cluster-metadata-decoder`` and the like."""

_BOOTSTRAP = "bootstrap.checkpoint"
_SNAPSHOT = re.compile(r"(\d{20})-(\d{10})\.checkpoint")

Detail: TypeAlias = Literal["batches", "records", "contents"]
"""How much is printed of a file of batches."""

_CONTROL_TITLES = {
    "LeaderChangeMessage": "LeaderChange:",
    "SnapshotHeaderRecord": "SnapshotHeader",
    "SnapshotFooterRecord": "SnapshotFooter",
    "KRaftVersionRecord": "KRaftVersion",
    "VotersRecord": "KRaftVoters",
}

_CONSUMER = "consumer"
"""The protocol type of groups whose members' blobs are the consumer protocol's."""

_BLOBS = {
    "subscription": "ConsumerProtocolSubscription",
    "assignment": "ConsumerProtocolAssignment",
}


def dump(
    path: Path, *, print_data: bool = False, deep: bool = False, decoder: Decoder | None = None
) -> Iterator[str]:
    """The file's contents, line by line.

    Args:
        path: A ``.log``, ``.index``, ``.timeindex``, ``.txnindex`` or ``.snapshot`` file, a
            snapshot of the metadata log (``.checkpoint``), or a text file of a log directory
            (checkpoints, ``meta.properties``, ``partition.metadata``).
        print_data: Whether to print records, keys and values too.
        deep: Whether to print a line for each record, without its contents.
        decoder: Print records decoded; implies ``print_data``.

    Raises:
        SimulationError: If there is no such file, or its name is none of these.
    """
    if not path.is_file():
        raise SimulationError(f"{path}: no such file")
    detail: Detail = "batches"
    if print_data or decoder is not None:
        detail = "contents"
    elif deep:
        detail = "records"
    yield f"Dumping {path}"
    if path.suffix == ".log":
        yield f"Log starting offset: {base_offset_of(path)}"
        yield from _dump_batches(path, detail, decoder)
    elif path.suffix == ".checkpoint":
        yield _snapshot_title(path)
        yield from _dump_batches(path, detail, decoder)
    elif path.suffix in _PRINTERS:
        yield from _PRINTERS[path.suffix](path)
    else:
        raise SimulationError(f"{path}: not a file of a log directory")


def _dump_index(path: Path) -> Iterator[str]:
    places = read_offset_index(path)
    if not places:
        yield f"{path} is empty."
    for place in places:
        yield f"offset: {place.offset} position: {place.position}"


def _dump_time_index(path: Path) -> Iterator[str]:
    for reached in read_time_index(path):
        yield f"timestamp: {reached.timestamp_ms} offset: {reached.offset}"


def _dump_transaction_index(path: Path) -> Iterator[str]:
    for aborted in read_transaction_index(path):
        yield (
            f"version: 0 producerId: {aborted.producer_id} firstOffset: {aborted.first_offset} "
            f"lastOffset: {aborted.last_offset} lastStableOffset: {aborted.last_stable_offset}"
        )


def _dump_text(path: Path) -> Iterator[str]:
    yield from path.read_text(encoding="utf-8", errors="replace").splitlines()


def _snapshot_title(path: Path) -> str:
    if path.name == _BOOTSTRAP:
        return "KRaft bootstrap snapshot"
    found = _SNAPSHOT.fullmatch(path.name)
    if found is None:
        raise SimulationError(
            f"{path}: a snapshot of the metadata log is named by end offset and epoch, "
            f"as 00000000000000000040-0000000003.checkpoint, or {_BOOTSTRAP}"
        )
    return f"Snapshot end offset: {int(found[1])}, epoch: {int(found[2])}"


def _dump_batches(path: Path, detail: Detail, decoder: Decoder | None) -> Iterator[str]:
    end = 0
    try:
        for position, batch in file_batches(path):
            yield batch_line(position, batch)
            end = position + batch.size_bytes
            if detail != "batches":
                for record in batch.records():
                    yield record_line(batch, record, detail, decoder)
    except MalformedBytes as error:
        yield f"Error at position {end}: {error}"
    left = path.stat().st_size - end
    if left:
        yield f"Found {left} invalid bytes at the end of {path.name}"


def batch_line(position: int, batch: RecordBatch) -> str:
    """One line about a batch."""
    last_sequence = -1
    if batch.base_sequence >= 0:
        last_sequence = (batch.base_sequence + batch.last_offset_delta) % (1 << 31)
    horizon = "OptionalLong.empty"
    if batch.attributes & DELETE_HORIZON:
        horizon = f"OptionalLong[{batch.base_timestamp_ms}]"
    return (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} "
        f"count: {batch.record_count} baseSequence: {batch.base_sequence} "
        f"lastSequence: {last_sequence} producerId: {batch.producer_id} "
        f"producerEpoch: {batch.producer_epoch} partitionLeaderEpoch: {batch.leader_epoch} "
        f"isTransactional: {_java(batch.is_transactional)} isControl: {_java(batch.is_control)} "
        f"deleteHorizonMs: {horizon} position: {position} "
        f"{_time_type(batch)}: {batch.max_timestamp_ms} size: {batch.size_bytes} magic: 2 "
        f"compresscodec: {batch.codec} crc: {batch.crc} isvalid: {_java(batch.valid())}"
    )


def record_line(batch: RecordBatch, record: Record, detail: Detail, decoder: Decoder | None) -> str:
    """One line about a record."""
    sequence = -1
    if batch.base_sequence >= 0:
        sequence = (batch.base_sequence + record.offset - batch.base_offset) % (1 << 31)
    key_size = -1 if record.key is None else len(record.key)
    value_size = -1 if record.value is None else len(record.value)
    keys = ",".join(header.key for header in record.headers)
    return (
        f"| offset: {record.offset} {_time_type(batch)}: {record.timestamp_ms} "
        f"keySize: {key_size} valueSize: {value_size} sequence: {sequence} headerKeys: [{keys}]"
        + _shown(batch, record, detail, decoder)
    )


def _shown(batch: RecordBatch, record: Record, detail: Detail, decoder: Decoder | None) -> str:
    if batch.is_control:
        return _control(record)
    return _contents(record, decoder) if detail == "contents" else ""


def to_json(values: Mapping[str, Value], *, blobs: bool = False) -> dict[str, object]:
    """Decoded values as Kafka's JSON converters name them: the first letter is small.

    Args:
        values: A message's fields.
        blobs: Whether fields of the consumer protocol's names are blobs of it, to be decoded.
    """
    return {
        name[:1].lower() + name[1:]: _json_value(name, value, blobs=blobs)
        for name, value in values.items()
    }


def _json_value(name: str, value: Value, *, blobs: bool) -> object:
    if isinstance(value, bytes):
        return _blob(name, value) if blobs else base64.b64encode(value).decode()
    if isinstance(value, Mapping):
        return to_json(value, blobs=blobs)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_json_value(name, item, blobs=blobs) for item in value]
    return value


def _blob(name: str, value: bytes) -> object:
    """A consumer protocol's blob decoded, other bytes in base64."""
    if name in _BLOBS and value:
        try:
            return to_json(schemas.decode_as(_BLOBS[name], value).values)
        except MalformedBytes:
            return base64.b64encode(value).decode()
    return base64.b64encode(value).decode()


def _contents(record: Record, decoder: Decoder | None) -> str:
    try:
        if decoder == "cluster-metadata":
            return f" payload: {_metadata(record)}"
        if decoder == "offsets" and record.key is not None:
            return _coordinator(*schemas.decode_coordinator(record.key, record.value))
        if decoder == "transaction-log" and record.key is not None:
            return _coordinator(*schemas.decode_transaction(record.key, record.value))
        if decoder == "share-group-state" and record.key is not None:
            return _coordinator(*schemas.decode_share_state(record.key, record.value))
    except MalformedBytes as error:
        return f" Error at offset {record.offset}, skipping. {error}"
    text = "" if record.key is None else f" key: {_printable(record.key)}"
    return text if record.value is None else f"{text} payload: {_printable(record.value)}"


def _metadata(record: Record) -> str:
    decoded = schemas.decode(record.value or b"")
    kind = re.sub(r"(?<!^)(?=[A-Z])", "_", decoded.name).upper()
    return _compact({"type": kind, "version": decoded.version, "data": _data(decoded)})


def _data(decoded: schemas.Decoded) -> dict[str, object]:
    """The fields as Kafka's converters show them: without tagged ones at their default."""
    schema = schemas.schema_of(decoded.name)
    blobs = decoded.values.get("protocolType") == _CONSUMER
    return to_json(_without_defaults(schema, schema.fields, decoded.values), blobs=blobs)


def _without_defaults(
    schema: Schema, fields: Sequence[Field], values: Mapping[str, Value]
) -> dict[str, Value]:
    """Values without tagged fields at their default, in structures inside them, too."""
    shown: dict[str, Value] = {}
    for field in fields:
        if field.name not in values:
            continue
        value = values[field.name]
        if field.tag is not None and value == default_of(field):
            continue
        inner = schema.structures.get(field.type)
        if inner is not None and isinstance(value, Mapping):
            value = _without_defaults(schema, inner, value)
        elif inner is not None and isinstance(value, Sequence):
            value = [
                _without_defaults(schema, inner, item)
                for item in value
                if isinstance(item, Mapping)
            ]
        shown[field.name] = value
    return shown


def _coordinator(key: schemas.Decoded, value: schemas.Decoded | None) -> str:
    kind = str(schemas.number_of(key.name))
    shown = _compact({"type": kind, "data": _data(key)})
    if value is None:
        return f" key: {shown} payload: <DELETE>"
    payload = {"version": str(value.version), "data": _data(value)}
    return f" key: {shown} payload: {_compact(payload)}"


def _control(record: Record) -> str:
    try:
        decoded = schemas.decode_control(record.key or b"", record.value or b"")
    except MalformedBytes as error:
        return f" Error at offset {record.offset}, skipping. {error}"
    if decoded.name == "EndTxnMarker":
        kind = "COMMIT" if (record.key or b"")[3] else "ABORT"
        return f" endTxnMarker: {kind} coordinatorEpoch: {decoded.values['CoordinatorEpoch']!r}"
    shown = _compact({"version": decoded.version, **to_json(decoded.values)})
    return f" {_CONTROL_TITLES[decoded.name]} {shown}"


def _dump_snapshot(path: Path) -> Iterator[str]:
    try:
        entries = decode_snapshot(path.read_bytes())
    except MalformedSnapshot as error:
        yield f"Error: {error}"
        return
    for producer, entry in entries:
        start = "OptionalLong.empty"
        if entry.transaction_start >= 0:
            start = f"OptionalLong[{entry.transaction_start}]"
        line = (
            f"producerId: {producer} producerEpoch: {entry.epoch} "
            f"coordinatorEpoch: {entry.coordinator_epoch} currentTxnFirstOffset: {start} "
            f"lastTimestamp: {entry.timestamp_ms}"
        )
        for seen in list(entry.batches)[-1:]:
            line += (
                f" firstSequence: {seen.first_sequence} lastSequence: {seen.last_sequence} "
                f"lastOffset: {seen.last_offset} offsetDelta: {seen.offset_delta} "
                f"timestamp: {seen.timestamp_ms}"
            )
        yield line


_PRINTERS: Mapping[str, Callable[[Path], Iterator[str]]] = {
    ".index": _dump_index,
    ".timeindex": _dump_time_index,
    ".txnindex": _dump_transaction_index,
    ".snapshot": _dump_snapshot,
    "": _dump_text,
    ".properties": _dump_text,
    ".metadata": _dump_text,
}


def _printable(data: bytes) -> str:
    text = data.decode("utf-8", errors="backslashreplace")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _compact(tree: Mapping[str, object]) -> str:
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False)


def _java(flag: object) -> str:
    return str(flag).lower()


def _time_type(batch: RecordBatch) -> str:
    return "LogAppendTime" if batch.attributes & LOG_APPEND_TIME else "CreateTime"
