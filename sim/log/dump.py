"""Files of a log directory as lines of text, in the form of Kafka's ``kafka-dump-log``.

Simplified: bytes that are not printable are escaped, where Kafka prints them raw; indexes are
printed, not checked (see :mod:`sim.log.doctor`). Aborted transaction indexes and metadata snapshots
are absent.

Source: ``DumpLogSegments``.
"""

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from sim.errors import SimulationError
from sim.log.producer_state import MalformedSnapshot, decode_snapshot
from sim.log.reading import base_offset_of, file_batches, read_offset_index, read_time_index
from sim.wire import schemas
from sim.wire.fields import Value, default_of
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import DELETE_HORIZON, LOG_APPEND_TIME, Record, RecordBatch

Decoder: TypeAlias = Literal["cluster-metadata", "offsets"]
"""What records are decoded as; Kafka's ``--cluster-metadata-decoder``, ``--offsets-decoder``."""

_CONTROL_TITLES = {
    "LeaderChangeMessage": "LeaderChange:",
    "SnapshotHeaderRecord": "SnapshotHeader",
    "SnapshotFooterRecord": "SnapshotFooter",
    "KRaftVersionRecord": "KRaftVersion",
    "VotersRecord": "KRaftVoters",
}

_BLOBS = {
    "subscription": "ConsumerProtocolSubscription",
    "assignment": "ConsumerProtocolAssignment",
}


def dump(path: Path, *, print_data: bool, decoder: Decoder | None = None) -> Iterator[str]:
    """The file's contents, line by line.

    Args:
        path: A ``.log``, ``.index``, ``.timeindex`` or ``.snapshot`` file, or a text file of a log
            directory (checkpoints, ``meta.properties``, ``partition.metadata``).
        print_data: Whether to print records, keys and values too.
        decoder: Print records decoded; implies ``print_data``.

    Raises:
        SimulationError: If there is no such file, or its name is none of these.
    """
    if not path.is_file():
        raise SimulationError(f"{path}: no such file")
    yield f"Dumping {path}"
    match path.suffix:
        case ".log":
            yield from _dump_log(path, records=print_data or decoder is not None, decoder=decoder)
        case ".index":
            places = read_offset_index(path)
            if not places:
                yield f"{path} is empty."
            for place in places:
                yield f"offset: {place.offset} position: {place.position}"
        case ".timeindex":
            for reached in read_time_index(path):
                yield f"timestamp: {reached.timestamp_ms} offset: {reached.offset}"
        case ".snapshot":
            yield from _dump_snapshot(path)
        case "" | ".properties" | ".metadata":
            yield from path.read_text(encoding="utf-8", errors="replace").splitlines()
        case _:
            raise SimulationError(f"{path}: not a file of a log directory")


def _dump_log(path: Path, *, records: bool, decoder: Decoder | None) -> Iterator[str]:
    yield f"Log starting offset: {base_offset_of(path)}"
    end = 0
    try:
        for position, batch in file_batches(path):
            yield batch_line(position, batch)
            end = position + batch.size_bytes
            if records:
                for record in batch.records():
                    yield record_line(batch, record, decoder)
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


def record_line(batch: RecordBatch, record: Record, decoder: Decoder | None) -> str:
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
        + (_control(record) if batch.is_control else _contents(record, decoder))
    )


def to_json(values: Mapping[str, Value]) -> dict[str, object]:
    """Decoded values as Kafka's JSON converters name them: the first letter is small."""
    return {name[:1].lower() + name[1:]: _json_value(name, value) for name, value in values.items()}


def _json_value(name: str, value: Value) -> object:
    if isinstance(value, bytes):
        return _blob(name, value)
    if isinstance(value, Mapping):
        return to_json(value)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_json_value(name, item) for item in value]
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
            return _coordinator(record.key, record.value)
    except MalformedBytes as error:
        return f" Error at offset {record.offset}, skipping. {error}"
    text = "" if record.key is None else f" key: {_printable(record.key)}"
    return text if record.value is None else f"{text} payload: {_printable(record.value)}"


def _metadata(record: Record) -> str:
    decoded = schemas.decode(record.value or b"")
    shown = dict(decoded.values)
    for field in schemas.fields_of(decoded.name):
        if field.tag is not None and shown.get(field.name) == default_of(field):
            shown.pop(field.name, None)
    kind = re.sub(r"(?<!^)(?=[A-Z])", "_", decoded.name).upper()
    return _compact({"type": kind, "version": decoded.version, "data": to_json(shown)})


def _coordinator(key: bytes, value: bytes | None) -> str:
    decoded_key, decoded_value = schemas.decode_coordinator(key, value)
    kind = str(int.from_bytes(key[:2], "big"))
    shown = _compact({"type": kind, "data": to_json(decoded_key.values)})
    if decoded_value is None:
        return f" key: {shown} payload: <DELETE>"
    payload = {"version": str(decoded_value.version), "data": to_json(decoded_value.values)}
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


def _printable(data: bytes) -> str:
    text = data.decode("utf-8", errors="backslashreplace")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _compact(tree: Mapping[str, object]) -> str:
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False)


def _java(flag: object) -> str:
    return str(flag).lower()


def _time_type(batch: RecordBatch) -> str:
    return "LogAppendTime" if batch.attributes & LOG_APPEND_TIME else "CreateTime"
