"""Messages of Kafka's internal logs, encoded and decoded by the definitions of its newest release.

Records of the metadata log (framed), control records of a quorum, keys and values of
``__consumer_offsets``, ``__transaction_state`` and ``__share_group_state``, records of
``__remote_log_metadata``, and the consumer protocol's blobs inside.

Source: ``MetadataRecordSerde``, ``ControlRecordType``, ``CoordinatorRecordSerde``; fields are those
of :mod:`sim.wire.definitions`.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal, NamedTuple, TypeAlias

from sim.errors import SimulationError
from sim.wire.definitions import Definition, definition, keys, preview, preview_keys
from sim.wire.fields import Reader, Schema, Value, Writer
from sim.wire.primitives import MalformedBytes, decode_uvarint, encode_uvarint

Kind: TypeAlias = Literal[
    "metadata", "remote log", "control", "key", "transaction key", "share state key", "value"
]
"""Wrapping of a message: a frame, or two bytes of version or type in front."""

_CONTROLS: Final = {
    "EndTxnMarker": 0,
    "LeaderChangeMessage": 2,
    "SnapshotHeaderRecord": 3,
    "SnapshotFooterRecord": 4,
    "KRaftVersionRecord": 5,
    "VotersRecord": 6,
}
"""Control records and their types; type 1 is an ``EndTxnMarker`` that commits."""

_CONTROL_NAMES: Final = {**{n: name for name, n in _CONTROLS.items()}, 1: "EndTxnMarker"}
_BLOBS: Final = ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment")
_COORDINATORS: Final[Mapping[str, Kind]] = {
    "group": "key",
    "transaction": "transaction key",
    "share": "share state key",
}
_KEY_KINDS: Final = tuple(_COORDINATORS.values())

_FRAME_VERSION = 1
_PREVIEW_FRAME = 0
"""Frame of metadata records in 2.8, of KRaft's preview; releases since 3.0 refuse it."""

_CONTROL_KEY = struct.Struct(">hh")
_PREFIX = struct.Struct(">h")


class Decoded(NamedTuple):
    """A decoded message. ``values`` has every field of the version."""

    name: str
    version: int
    values: dict[str, Value]


@dataclass(frozen=True, slots=True)
class Message:
    """One message known to this module."""

    schema: Schema
    kind: Kind
    number: int
    """Api key of a metadata record, type of a control record or of a coordinator's key."""
    versions: range
    flexible_since: int


_messages: dict[str, Message] = {}
"""Messages that were used, by name."""

_previews: dict[str, Message] = {}
"""The same of 2.8's metadata records."""


def _message(name: str) -> Message:
    """A message by its name.

    Raises:
        SimulationError: If no internal log has it.
    """
    message = _messages.get(name)
    if message is None:
        message = _messages[name] = _defined(name)
    return message


def _defined(name: str) -> Message:
    found = definition(name) if name in _kinds() else None
    if found is None:
        raise SimulationError(f"unknown message {name}; known are {', '.join(sorted(_kinds()))}")
    kind, schema = _kinds()[name], found.schema
    if kind == "control" and schema.fields[0].name == "version":
        # The prefix says it.
        schema = Schema(name, schema.fields[1:], schema.structures)
    number = _CONTROLS.get(name, found.key)
    return Message(schema, kind, number, found.versions, found.flexible_since)


@cache
def _kinds() -> Mapping[str, Kind]:
    """Every message of an internal log."""
    found: dict[str, Kind] = dict.fromkeys(keys("metadata"), "metadata")
    found |= dict.fromkeys(_remote_names().values(), "remote log")
    found |= dict.fromkeys(_CONTROLS, "control")
    found |= dict.fromkeys(_BLOBS, "value")
    for of, kind in _COORDINATORS.items():
        for name in keys(of):
            found[name] = kind if name.endswith("Key") else "value"
    return found


@cache
def _metadata_names() -> Mapping[int, str]:
    return {number: name for name, number in keys("metadata").items()}


@cache
def _preview_names() -> Mapping[int, str]:
    return {number: name for name, number in preview_keys().items()}


def _preview(name: str) -> Message:
    """A metadata record as 2.8 has it.

    Raises:
        SimulationError: If it has none of the name.
    """
    message = _previews.get(name)
    if message is None:
        found: Definition | None = preview(name)
        if found is None:
            known = ", ".join(preview_keys())
            raise SimulationError(f"2.8 has no {name} in its metadata; it has {known}")
        message = _previews[name] = Message(
            found.schema, "metadata", found.key, found.versions, found.flexible_since
        )
    return message


@cache
def _remote_names() -> Mapping[int, str]:
    """Records of ``__remote_log_metadata``; the producers' snapshot is among the jar's others."""
    return {n: name for name, n in keys("remote log").items() if name.endswith("Record")}


@cache
def _pairs(of: str) -> Mapping[int, tuple[str, str]]:
    """Names of a coordinator's keys and values by the keys' types."""
    return {
        number: (name, name.removesuffix("Key") + "Value")
        for name, number in keys(of).items()
        if name.endswith("Key")
    }


def encode(name: str, version: int, values: Mapping[str, Value]) -> bytes:
    """A message with its frame or prefix, as a record holds it.

    Args:
        name: Kafka's name of the message, as ``PartitionRecord`` or ``OffsetCommitKey``.
        version: Of the message; 0 for keys.
        values: Fields by the names of Kafka's classes; uuids are text of 22 characters. Tagged
            fields, and those whose default is not the type's own, may be absent.

    Raises:
        SimulationError: If the message, a version or a field is unknown, missing or out of range.
    """
    message = _message(name)
    if version not in message.versions:
        low, high = message.versions[0], message.versions[-1]
        raise SimulationError(f"{name} has versions {low} to {high}, not {version}")
    body = _body(message, version, values)
    match message.kind:
        case "metadata" | "remote log":
            frame = (_FRAME_VERSION, message.number, version)
            return b"".join(map(encode_uvarint, frame)) + body
        case "key" | "transaction key" | "share state key":
            return _PREFIX.pack(message.number) + body
        case "control" | "value":
            return _PREFIX.pack(version) + body


def encode_preview(name: str, values: Mapping[str, Value]) -> bytes:
    """A metadata record as 2.8 writes it: in a frame of its own, and mostly inflexible.

    Args:
        name: 2.8's name of the record, as ``QuotaRecord``.
        values: As of :func:`encode`.

    Raises:
        SimulationError: If 2.8 has no such record, or it cannot say a value.

    Source: ``org.apache.kafka.raft.metadata.MetadataRecordSerde`` (2.8.2).
    """
    message = _preview(name)
    frame = (_PREVIEW_FRAME, message.number, 0)
    return b"".join(map(encode_uvarint, frame)) + _body(message, 0, values)


def _body(message: Message, version: int, values: Mapping[str, Value]) -> bytes:
    writer = Writer(message.schema, version, flexible=version >= message.flexible_since)
    return writer.structure(message.schema.fields, values)


def decode(data: bytes) -> Decoded:
    """A record of the metadata log, of 2.8 or of a later release.

    Raises:
        MalformedBytes: If the frame, the record's type or its bytes are not known.
    """
    if is_preview(data):
        number, position = decode_uvarint(data, 1)
        version, position = decode_uvarint(data, position)
        name = _preview_names().get(number)
        if name is None:
            raise MalformedBytes(f"2.8 has no metadata record of type {number}")
        return _decode_body(name, _preview(name), version, data, position)
    return _decode_framed(_metadata_names(), data)


def is_preview(data: bytes) -> bool:
    """True if a metadata record is framed as 2.8 does it."""
    return data[:1] == bytes((_PREVIEW_FRAME,))


def decode_remote_log(data: bytes) -> Decoded:
    """A record of ``__remote_log_metadata``, framed as those of the metadata log are.

    Raises:
        MalformedBytes: If the frame, the record's type or its bytes are not known.

    Source: ``RemoteLogMetadataSerde``.
    """
    return _decode_framed(_remote_names(), data)


def _decode_framed(names: Mapping[int, str], data: bytes) -> Decoded:
    frame, position = decode_uvarint(data, 0)
    number, position = decode_uvarint(data, position)
    version, position = decode_uvarint(data, position)
    name = names.get(number)
    if frame != _FRAME_VERSION or name is None:
        raise MalformedBytes(f"frame version {frame} with record type {number} is not known")
    return _decode_body(name, _message(name), version, data, position)


def decode_as(name: str, data: bytes) -> Decoded:
    """A control value, a coordinator's key or value, or a blob, whose name is known.

    Raises:
        MalformedBytes: If the bytes do not follow the schema.
    """
    message = _message(name)
    if message.kind == "metadata":
        return decode(data)
    if message.kind == "remote log":
        return decode_remote_log(data)
    if len(data) < _PREFIX.size:
        raise MalformedBytes(f"{name} in {len(data)} bytes")
    (prefix,) = _PREFIX.unpack_from(data)
    if message.kind in _KEY_KINDS:
        if prefix != message.number:
            raise MalformedBytes(f"a key of type {prefix} is no {name}")
        prefix = 0
    return _decode_body(name, message, prefix, data, _PREFIX.size)


def control_key(name: str, *, commit: bool = False) -> bytes:
    """The key of a control record; an ``EndTxnMarker`` aborts unless it commits."""
    return _CONTROL_KEY.pack(0, _message(name).number + (1 if commit else 0))


def decode_control(key: bytes, value: bytes) -> Decoded:
    """A control record.

    Raises:
        MalformedBytes: If its type is unknown or its bytes do not follow the schema.
    """
    if len(key) < _CONTROL_KEY.size:
        raise MalformedBytes(f"a control record's key of {len(key)} bytes")
    number: int = _CONTROL_KEY.unpack_from(key)[1]
    name = _CONTROL_NAMES.get(number)
    if name is None:
        raise MalformedBytes(f"control record type {number} is not known")
    return decode_as(name, value)


def decode_coordinator(key: bytes, value: bytes | None) -> tuple[Decoded, Decoded | None]:
    """A record of ``__consumer_offsets``: its key, and its value unless it is a deletion.

    Raises:
        MalformedBytes: If the key's type is unknown or bytes do not follow a schema.
    """
    return _decode_pair(_pairs("group"), key, value)


def decode_share_state(key: bytes, value: bytes | None) -> tuple[Decoded, Decoded | None]:
    """A record of ``__share_group_state``: its key, and its value unless it is a deletion.

    Raises:
        MalformedBytes: If the key's type is unknown or bytes do not follow a schema.
    """
    return _decode_pair(_pairs("share"), key, value)


def decode_transaction(key: bytes, value: bytes | None) -> tuple[Decoded, Decoded | None]:
    """A record of ``__transaction_state``: its key, and its value unless it is a deletion.

    Raises:
        MalformedBytes: If the key's type is unknown or bytes do not follow a schema.
    """
    return (
        decode_as("TransactionLogKey", key),
        None if value is None else decode_as("TransactionLogValue", value),
    )


def _decode_pair(
    known: Mapping[int, tuple[str, str]], key: bytes, value: bytes | None
) -> tuple[Decoded, Decoded | None]:
    if len(key) < _PREFIX.size:
        raise MalformedBytes(f"a coordinator's key of {len(key)} bytes")
    number: int = _PREFIX.unpack_from(key)[0]
    names = known.get(number)
    if names is None:
        raise MalformedBytes(f"coordinator key type {number} is not known")
    return decode_as(names[0], key), None if value is None else decode_as(names[1], value)


def number_of(name: str) -> int:
    """The number that names the message: api key, control type or key type."""
    return _message(name).number


def schema_of(name: str, *, is_preview: bool = False) -> Schema:
    """The fields of a message in wire order and its structures, for those who print it."""
    return (_preview(name) if is_preview else _message(name)).schema


def messages() -> dict[str, Message]:
    """Every message known here, by Kafka's name."""
    return {name: _message(name) for name in _kinds()}


def _decode_body(name: str, message: Message, version: int, data: bytes, position: int) -> Decoded:
    if version not in message.versions:
        raise MalformedBytes(f"version {version} of {name} is not known")
    flexible = version >= message.flexible_since
    reader = Reader(message.schema, version, data, position, flexible=flexible)
    try:
        values = reader.structure(message.schema.fields)
    except UnicodeDecodeError as error:
        raise MalformedBytes(f"{name}: {error}") from error
    if reader.position != len(data):
        raise MalformedBytes(f"{len(data) - reader.position} bytes follow the {name}")
    return Decoded(name, version, values)
