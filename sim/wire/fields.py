"""An encoder and decoder driven by schemas, for Kafka's message formats in both encodings.

A schema is a line of text per message: ``name:type`` per field, with marks for nullability,
versions, tags and defaults. Values are plain mappings with the field names of Kafka's classes;
uuids are text of 22 characters. Fields that are unknown in a version are left out when writing only
if they have their default, as in Kafka's generated code.

Source: Kafka's message generator (``generator/…/MessageDataGenerator``); KIP-482.
"""

import base64
import re
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, cast

from sim.errors import SimulationError
from sim.wire.primitives import (
    MalformedBytes,
    decode_uvarint,
    encode_uvarint,
    take,
)

Value: TypeAlias = "bool | int | float | str | bytes | Sequence[Value] | Mapping[str, Value] | None"
"""Value of a field; arrays are sequences, structs are mappings."""

ZERO_UUID = "AAAAAAAAAAAAAAAAAAAAAA"
"""No id."""

_NUMBERS = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "uint16": struct.Struct(">H"),
    "int32": struct.Struct(">i"),
    "uint32": struct.Struct(">I"),
    "int64": struct.Struct(">q"),
}

_FLOAT = struct.Struct(">d")

_PRIMITIVES = dict.fromkeys(("bool", "uuid", "string", "bytes", "records", "float64", *_NUMBERS))

_FIELD = re.compile(
    r"(?P<name>\w+):(?P<array>\[\])?(?P<type>\w+)(?P<null>\?(?P<since>\d*))?"
    r"(?:@(?P<low>\d+)(?:-(?P<high>\d+))?)?(?:#(?P<tag>\d+))?(?:=(?P<default>\S+))?"
)


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a schema."""

    name: str
    type: str
    array: bool
    nullable_since: int | None
    low: int
    high: int
    tag: int | None
    default: str | None
    own_default: Value
    """``default`` as a value, for a field of a primitive type that is no array."""

    @property
    def may_be_no_structure(self) -> bool:
        """True for a single nullable structure: a byte in front of it marks null.

        In a tagged field that byte is 0 or 1, elsewhere -1 or 1.
        """
        return self.nullable_since is not None and not self.array and self.type not in _PRIMITIVES

    def in_version(self, version: int) -> bool:
        """True if the field exists in the version."""
        return self.low <= version <= self.high


@dataclass(frozen=True, slots=True)
class Schema:
    """The fields of a message or of a structure inside one, in wire order."""

    name: str
    fields: tuple[Field, ...]
    structures: Mapping[str, tuple[Field, ...]]


def parse_fields(text: str) -> tuple[Field, ...]:
    """Fields from their notation, separated by white space.

    ``name:type`` with type ``bool``, ``int8`` to ``int64``, ``uint16``, ``uint32``, ``float64``,
    ``uuid``, ``string``, ``bytes``, ``records`` or a structure's name, ``[]`` before it for an
    array; then ``?`` if nullable (``?2``: from version 2), ``@3`` from version 3 (``@1-1``: only
    there), ``#0`` tag 0, ``=x`` a default that is not the type's own (0, false, empty).
    """
    fields = []
    for word in text.split():
        found = _FIELD.fullmatch(word)
        assert found is not None, f"not a field: {word}"
        since = found["since"]
        fields.append(
            Field(
                name=found["name"],
                type=found["type"],
                array=found["array"] is not None,
                nullable_since=None if found["null"] is None else int(since or 0),
                low=int(found["low"] or 0),
                high=int(found["high"] or (1 << 15)),
                tag=None if found["tag"] is None else int(found["tag"]),
                default=found["default"],
                own_default=_own_default(found["type"], found["default"] or ""),
            )
        )
    return tuple(fields)


def uuid_bytes(text: str) -> bytes:
    """The 16 bytes of an id of 22 characters.

    Raises:
        SimulationError: If the text is no such id.
    """
    try:
        raw = base64.urlsafe_b64decode(text + "==")
    except ValueError as error:
        raise SimulationError(f"{text!r} is no id of 22 characters: {error}") from error
    if len(raw) != 16:
        raise SimulationError(f"{text!r} is no id of 22 characters")
    return raw


def uuid_text(raw: bytes) -> str:
    """The text of 22 characters of an id of 16 bytes."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


class Writer:
    """Encodes mappings by one schema in one version."""

    def __init__(self, schema: Schema, version: int, *, flexible: bool) -> None:
        self._schema = schema
        self._version = version
        self._flexible = flexible

    def structure(self, fields: tuple[Field, ...], values: Mapping[str, Value]) -> bytes:
        """All fields, then the tagged ones that differ from their default.

        Raises:
            SimulationError: If a field is missing, unknown, or cannot be expressed.
        """
        known = dict.fromkeys(field.name for field in fields)
        for name in values:
            if name not in known:
                raise SimulationError(f"{self._schema.name} has no field {name}")
        parts: list[bytes] = []
        tagged: list[tuple[int, bytes]] = []
        for field in fields:
            value = self._value_of(field, values)
            if not field.in_version(self._version):
                if field.name in values and not self._is_default(field, value):
                    raise SimulationError(
                        f"{self._schema.name} version {self._version} cannot say {field.name}"
                    )
            elif field.tag is None:
                parts.append(self._field(field, value))
            elif not self._flexible:
                raise SimulationError(f"{field.name} is tagged in an inflexible version")
            elif not self._is_default(field, value):
                tagged.append((field.tag, self._field(field, value)))
        if self._flexible:
            parts.append(encode_uvarint(len(tagged)))
            for tag, payload in sorted(tagged):
                parts += (encode_uvarint(tag), encode_uvarint(len(payload)), payload)
        return b"".join(parts)

    def _value_of(self, field: Field, values: Mapping[str, Value]) -> Value:
        if field.name in values:
            value = values[field.name]
            return list(value) if isinstance(value, tuple) else value
        if field.tag is None and field.default is None and field.in_version(self._version):
            raise SimulationError(f"{self._schema.name} lacks {field.name}")
        return default_of(field, self._schema, self._version)

    def _is_default(self, field: Field, value: Value) -> bool:
        if field.default == "null":
            return value is None
        default = default_of(field, self._schema, self._version)
        if isinstance(default, dict) and isinstance(value, Mapping):
            return {**default, **value} == default
        return value == default

    def _field(self, field: Field, value: Value) -> bytes:
        if value is None:
            if field.nullable_since is None or self._version < field.nullable_since:
                raise SimulationError(f"{self._schema.name}.{field.name} cannot be null")
            return self._null(field)
        if not field.array:
            return self._one(field, value)
        assert isinstance(value, Sequence), f"{field.name} is an array"
        count = len(value)
        head = encode_uvarint(count + 1) if self._flexible else struct.pack(">i", count)
        return head + b"".join(self._one(field, item) for item in value)

    def _null(self, field: Field) -> bytes:
        if field.may_be_no_structure:
            return b"\xff" if field.tag is None else b"\x00"
        if self._flexible:
            return b"\x00"
        return b"\xff\xff" if field.type == "string" and not field.array else b"\xff\xff\xff\xff"

    def _one(self, field: Field, value: Value) -> bytes:
        match field.type:
            case "bool":
                return b"\x01" if value else b"\x00"
            case "uuid":
                return uuid_bytes(cast("str", value))
            case "string":
                return self._sized(cast("str", value).encode(), ">h")
            case "bytes" | "records":
                return self._sized(cast("bytes", value), ">i")
            case "float64":
                return _FLOAT.pack(cast("float", value))
            case number if number in _NUMBERS:
                return self._number(field, cast("int", value))
            case _:
                body = self.structure(
                    self._schema.structures[field.type], cast("Mapping[str, Value]", value)
                )
                return b"\x01" + body if field.may_be_no_structure else body

    def _number(self, field: Field, value: int) -> bytes:
        try:
            return _NUMBERS[field.type].pack(value)
        except struct.error as error:
            raise SimulationError(f"{self._schema.name}.{field.name} = {value}: {error}") from error

    def _sized(self, raw: bytes, width: str) -> bytes:
        size = encode_uvarint(len(raw) + 1) if self._flexible else struct.pack(width, len(raw))
        return size + raw


class Reader:
    """Decodes bytes by one schema in one version; remembers its position."""

    def __init__(
        self, schema: Schema, version: int, data: bytes, position: int, *, flexible: bool
    ) -> None:
        self._schema = schema
        self._version = version
        self._flexible = flexible
        self._data = data
        self.position = position

    def structure(self, fields: tuple[Field, ...]) -> dict[str, Value]:
        """All fields of this version, tagged ones with their default if they are absent.

        Raises:
            MalformedBytes: If the bytes do not follow the schema.
        """
        values: dict[str, Value] = {}
        tagged: dict[int, Field] = {}
        for field in fields:
            if not field.in_version(self._version):
                continue
            if field.tag is None:
                values[field.name] = self._field(field)
            else:
                tagged[field.tag] = field
                values[field.name] = default_of(field, self._schema, self._version)
        if self._flexible:
            for _ in range(self._uvarint()):
                tag, size = self._uvarint(), self._uvarint()
                end = self.position + size
                known = tagged.get(tag)
                if known is not None:
                    values[known.name] = self._field(known)
                    if self.position != end:
                        raise MalformedBytes(f"tag {tag} of {self._schema.name} has a wrong size")
                self._take(end - self.position)
        return values

    def _field(self, field: Field) -> Value:
        if not field.array:
            return self._one(field)
        count = self._uvarint() - 1 if self._flexible else self._fixed(">i")
        if count < 0:
            return None
        return [self._one(field) for _ in range(count)]

    def _one(self, field: Field) -> Value:
        match field.type:
            case "bool":
                return self._take(1) != b"\x00"
            case "uuid":
                return uuid_text(self._take(16))
            case "string":
                text = self._sized(">h")
                # As Kafka's generated readers do: bytes that are not UTF-8 become U+FFFD.
                return None if text is None else text.decode(errors="replace")
            case "bytes" | "records":
                return self._sized(">i")
            case "float64":
                real: float = _FLOAT.unpack(self._take(_FLOAT.size))[0]
                return real
            case number if number in _NUMBERS:
                found = _NUMBERS[number]
                value: int = found.unpack(self._take(found.size))[0]
                return value
            case _:
                if field.may_be_no_structure and self._take(1) in (b"\xff", b"\x00"):
                    return None
                return self.structure(self._schema.structures[field.type])

    def _sized(self, width: str) -> bytes | None:
        size = self._uvarint() - 1 if self._flexible else self._fixed(width)
        return None if size < 0 else self._take(size)

    def _fixed(self, width: str) -> int:
        value: int = struct.unpack(width, self._take(struct.calcsize(width)))[0]
        return value

    def _uvarint(self) -> int:
        value, self.position = decode_uvarint(self._data, self.position)
        return value

    def _take(self, size: int) -> bytes:
        raw, self.position = take(self._data, self.position, size)
        return raw


def default_of(field: Field, schema: Schema, version: int) -> Value:
    """The field's default value; a structure's is that of each of its fields in the version."""
    if field.default == "null":
        return None
    if field.array:
        return []
    if field.type in _PRIMITIVES:
        return field.own_default
    return {
        inner.name: default_of(inner, schema, version)
        for inner in schema.structures[field.type]
        if inner.in_version(version)
    }


def _own_default(kind: str, text: str) -> Value:
    """The default of a primitive type; ``None`` for null, and for a structure."""
    match kind:
        case _ if text == "null":
            return None
        case "bool":
            return text == "true"
        case "string":
            return text
        case "bytes" | "records":
            return b""
        case "uuid":
            return ZERO_UUID
        case "float64":
            return float(text or 0)
        case number if number in _NUMBERS:
            return int(text or 0)
        case _:
            return None
