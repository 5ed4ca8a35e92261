"""A record's contents, as text in the form of Kafka's ``kafka-dump-log`` and as JSON.

Source: ``DumpLogSegments``' message parsers; Kafka's generated JSON converters.
"""

import base64
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

from sim.wire import schemas
from sim.wire.fields import Field, Schema, Value, default_of
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import Record

Decoder: TypeAlias = Literal["cluster-metadata", "offsets", "transaction-log", "share-group-state"]
"""Decoder of records; Kafka's ``--cluster-metadata-decoder`` and the like."""

DECODERS: tuple[Decoder, ...] = (
    "cluster-metadata",
    "offsets",
    "transaction-log",
    "share-group-state",
)
"""All of them."""

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


class Pair(NamedTuple):
    """One item of a line: its name, its text in the line, and its value in JSON."""

    name: str
    text: str
    value: Any

    @classmethod
    def of(cls, name: str, value: object) -> "Pair":
        """``name: value``; trees as JSON, flags as Java prints them."""
        text = str(value)
        if isinstance(value, bool):
            text = text.lower()
        elif isinstance(value, Mapping):
            text = _compact(value)
        return cls(name, f"{name}: {text}", value)


def to_json(values: Mapping[str, Value], *, blobs: bool = False) -> dict[str, object]:
    """Decoded values as Kafka's JSON converters show them.

    Args:
        values: A message's fields.
        blobs: Whether fields of the consumer protocol's names are blobs of it, to be decoded.
    """
    return {name: _json_value(name, value, blobs=blobs) for name, value in values.items()}


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


def contents(record: Record, decoder: Decoder | None) -> tuple[Pair, ...]:
    """A data record's key and value, decoded with a decoder; Kafka's words if they cannot be."""
    try:
        if decoder == "cluster-metadata":
            return (Pair.of("payload", _metadata(record)),)
        decode = _DECODERS.get(decoder) if decoder is not None else None
        if decode is not None and record.key is not None:
            return _coordinator(*decode(record.key, record.value))
    except MalformedBytes as error:
        return (Pair.of("key", f"Error at offset {record.offset}, skipping. {error}"),)
    shown = []
    if record.key is not None:
        shown.append(Pair.of("key", _printable(record.key)))
    if record.value is not None:
        shown.append(Pair.of("payload", _printable(record.value)))
    return tuple(shown)


def control(record: Record) -> tuple[Pair, ...]:
    """Contents of a control record."""
    try:
        decoded = schemas.decode_control(record.key or b"", record.value or b"")
    except MalformedBytes as error:
        return (Pair.of("key", f"Error at offset {record.offset}, skipping. {error}"),)
    if decoded.name == "EndTxnMarker":
        kind = "COMMIT" if (record.key or b"")[3] else "ABORT"
        epoch = decoded.values["coordinatorEpoch"]
        return (Pair.of("endTxnMarker", kind), Pair.of("coordinatorEpoch", epoch))
    shown = {"version": decoded.version, **to_json(decoded.values)}
    title = _CONTROL_TITLES[decoded.name]
    return (Pair(title.rstrip(":"), f"{title} {_compact(shown)}", shown),)


def _metadata(record: Record) -> dict[str, object]:
    value = record.value or b""
    decoded = schemas.decode(value)
    data = _data(decoded, is_preview=schemas.is_preview(value))
    kind = re.sub(r"(?<!^)(?=[A-Z])", "_", decoded.name).upper()
    return {"type": kind, "version": decoded.version, "data": data}


def _data(decoded: schemas.Decoded, *, is_preview: bool = False) -> dict[str, object]:
    """The fields as Kafka's converters show them: without tagged ones at their default."""
    schema = schemas.schema_of(decoded.name, is_preview=is_preview)
    blobs = decoded.values.get("protocolType") == _CONSUMER
    shown = _without_defaults(schema, schema.fields, decoded.values, decoded.version)
    return to_json(shown, blobs=blobs)


def _without_defaults(
    schema: Schema, fields: Sequence[Field], values: Mapping[str, Value], version: int
) -> dict[str, Value]:
    """Values without tagged fields at their default, in structures inside them, too."""
    shown: dict[str, Value] = {}
    for field in fields:
        if field.name not in values:
            continue
        value = values[field.name]
        if field.tag is not None and value == default_of(field, schema, version):
            continue
        inner = schema.structures.get(field.type)
        if inner is not None and isinstance(value, Mapping):
            value = _without_defaults(schema, inner, value, version)
        elif inner is not None and isinstance(value, Sequence):
            value = [
                _without_defaults(schema, inner, item, version)
                for item in value
                if isinstance(item, Mapping)
            ]
        shown[field.name] = value
    return shown


def _coordinator(key: schemas.Decoded, value: schemas.Decoded | None) -> tuple[Pair, ...]:
    shown = Pair.of("key", {"type": str(schemas.number_of(key.name)), "data": _data(key)})
    if value is None:
        return shown, Pair("payload", "payload: <DELETE>", None)
    return shown, Pair.of("payload", {"version": str(value.version), "data": _data(value)})


_DECODERS = {
    "offsets": schemas.decode_coordinator,
    "transaction-log": schemas.decode_transaction,
    "share-group-state": schemas.decode_share_state,
}


def _printable(data: bytes) -> str:
    text = data.decode("utf-8", errors="backslashreplace")
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _compact(tree: Mapping[str, object]) -> str:
    return json.dumps(tree, separators=(",", ":"), ensure_ascii=False)
