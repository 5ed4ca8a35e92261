"""Types of which every part of a scenario is made: quantities, settings, strict mappings.

A quantity is a whole number of its smallest unit (microsecond, byte, record a second, millionth),
read from the text of a file and written out as the shortest text that says the same.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypeAlias, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    PlainSerializer,
    PlainValidator,
    SerializationInfo,
    SerializerFunctionWrapHandler,
    WithJsonSchema,
    model_serializer,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from sim.scenario.behaviours.versions import VERSIONS
from sim.scenario.settings.registry import SETTINGS, settings_at
from sim.scenario.settings.resolved import Config
from sim.scenario.settings.types import Scope, Setting
from sim.scenario.text import quantities as q
from sim.scenario.text.instants import (
    FAULT_NAME_PATTERN,
    INSTANT_HINT,
    Instant,
    parse_instant,
    show_instant,
)
from sim.scenario.text.plain import Plain
from sim.units import Bytes, Micros

S = TypeVar("S", bound="Strict")


@dataclass(frozen=True, slots=True)
class _Quantity:
    """Annotation of a number: its text in a file, and its JSON Schema."""

    parse: Callable[[object], Any]
    show: Callable[[Any], str]
    pattern: str
    hint: str

    def __get_pydantic_core_schema__(self, _: object, __: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            self._read, serialization=core_schema.plain_serializer_function_ser_schema(self.show)
        )

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, __: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{self.pattern}$", "description": self.hint}

    def _read(self, value: object) -> object:
        try:
            return self.parse(value)
        except q.QuantityError as error:
            raise refuse(error.found, error.allowed) from None


def _units(names: Mapping[str, object]) -> str:
    return rf"{q.NUMBER_PATTERN}\s*({'|'.join(names)})"


_TIME = _units(q.DURATION_UNITS)

Duration: TypeAlias = Annotated[
    Micros, _Quantity(q.parse_duration, q.show_duration, _TIME, q.DURATION_HINT)
]
_MOMENT = rf"{_TIME}(\s*\.\.\s*{_TIME})?"
When: TypeAlias = Annotated[
    Instant,
    _Quantity(
        parse_instant,
        show_instant,
        rf"({_MOMENT}|(end\s+of\s+)?{FAULT_NAME_PATTERN}(\s+[+-]\s+{_MOMENT})?)",
        INSTANT_HINT,
    ),
]
"""Instant of a fault."""
Size: TypeAlias = Annotated[
    Bytes, _Quantity(q.parse_size, q.show_size, _units(q.SIZE_UNITS), q.SIZE_HINT)
]
Bandwidth: TypeAlias = Annotated[
    int,
    _Quantity(q.parse_bandwidth, q.show_bandwidth, _units(q.BANDWIDTH_UNITS), q.BANDWIDTH_HINT),
]
Rate: TypeAlias = Annotated[
    int, _Quantity(q.parse_rate, q.show_rate, _units(q.RATE_UNITS), q.RATE_HINT)
]
Share: TypeAlias = Annotated[
    int, _Quantity(q.parse_share, q.show_share, _units(q.SHARE_UNITS), q.SHARE_HINT)
]
Count: TypeAlias = Annotated[int, Field(ge=1, le=100_000)]


def refuse(found: str, allowed: str) -> PydanticCustomError:
    """An error of a value that cannot be.

    Custom templates see braces as fields, so the texts travel as fields themselves.
    """
    return PydanticCustomError("logquake", "{found}", {"found": found, "allowed": allowed})


def _words(value: object) -> tuple[str, ...]:
    words = value if isinstance(value, list) else [value]
    if not words or not all(isinstance(word, str) for word in words):
        raise refuse(repr(value), "a name or a list of names")
    return tuple(str(word) for word in words)


Words: TypeAlias = Annotated[
    tuple[str, ...],
    PlainValidator(_words),
    PlainSerializer(list),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


def _version(value: object) -> str:
    # YAML reads 4.1 without quotes as a number, and 2.10 as 2.1: only what has no second reading.
    text = str(value) if isinstance(value, float) else value
    if text not in VERSIONS:
        found = f"{text} of Kafka" if isinstance(text, str) else repr(value)
        raise refuse(found, f"one of {', '.join(VERSIONS)}, in quotes")
    return str(text)


Version: TypeAlias = Annotated[
    str, PlainValidator(_version), WithJsonSchema({"enum": list(VERSIONS)})
]
"""A release of Kafka, as far as its line."""


GivenSettings: TypeAlias = Mapping[str, object]
"""Kafka's settings as a file has them."""

Settings: TypeAlias = Annotated[Config, PlainSerializer(dict)]
"""Kafka's settings, every default filled in."""

Fields: TypeAlias = tuple[str, ...]
Pairs: TypeAlias = tuple[tuple[str, str], ...]
"""Names of fields of a model."""

NOT_WRITTEN: Any = Field(exclude=True)
"""A field that a file does not have: it follows from others."""


def _setting_schema(scope: Scope, setting: Setting) -> dict[str, Any]:
    kinds = {"int": "integer", "double": "number", "boolean": "boolean"}
    described = f"{setting.allowed}; default {setting.default}"
    plain: dict[str, Any] = {"description": described}
    if setting.type in kinds:
        plain["type"] = (
            kinds[setting.type] if setting.default is not None else [kinds[setting.type], "null"]
        )
    if setting.absent:
        plain["description"] = f"not modelled: {setting.absent}"
        tables = (settings_at(version)[scope] for version in VERSIONS)
        defaults = [setting.default, *(table[setting.name].default for table in tables)]
        words = list(dict.fromkeys(defaults))
        plain |= {"const": words[0]} if len(words) == 1 else {"enum": words}
    return plain


@dataclass(frozen=True, slots=True)
class ConfigSchema:
    """The JSON schema of a scope's settings, and of its clients'; made when it is first used."""

    scope: Scope
    clients: tuple[Scope, ...] = ()
    """Scopes whose settings are beside it, with the scope's name before each."""

    def __get_pydantic_core_schema__(self, _: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        return handler.generate_schema(dict[str, object])

    def __get_pydantic_json_schema__(
        self, _core: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        own = SETTINGS[self.scope]
        known = {name: _setting_schema(self.scope, each) for name, each in own.items()}
        for client in self.clients:
            for name, each in SETTINGS[client].items():
                known[f"{client}.{name}"] = _setting_schema(client, each)
        return {"type": "object", "additionalProperties": False, "properties": known}


class Strict(BaseModel, frozen=True):
    """A mapping whose every key is known and whose values are not bent into shape.

    :meth:`plain` writes it out as a file has it: every default filled in, ``None`` left out, keys
    in the order of the fields. The class variables are the exceptions, by fields.
    """

    model_config = ConfigDict(
        extra="forbid", strict=True, defer_build=True, arbitrary_types_allowed=True
    )
    absent: ClassVar[Mapping[str, str]] = {}
    """Keys of Kafka's that are not simulated, with the reason."""
    quiet: ClassVar[Fields] = ()
    """Written only where it differs from its default, so that it moved no digest when it came."""
    behind: ClassVar[Pairs] = ()
    """Written behind a field that comes later in the class."""

    def meaningless(self) -> Fields:
        """Fields that mean nothing beside the values of others, and are not written."""
        return ()

    def plain(self, *, whole: bool = False) -> dict[str, Plain]:
        """The mapping of a file that gives this; ``whole``: quiet fields, too."""
        return self.model_dump(by_alias=True, context={"whole": whole})

    @model_serializer(mode="wrap")
    def _written(
        self, write: SerializerFunctionWrapHandler, info: SerializationInfo
    ) -> dict[str, Any]:
        plain: dict[str, Any] = write(self)
        fields, keys = type(self).model_fields, type(self).written_keys()
        out = list(self.meaningless())
        if not (info.context and info.context["whole"]):
            out += [name for name in self.quiet if _is_default(fields[name], getattr(self, name))]
        order = [name for name in keys if name not in out]
        for name, before in self.behind:
            if name in order:
                order.remove(name)
                order.insert(order.index(before) + 1, name)
        found = {keys[name]: plain.get(fields[name].alias or name) for name in order}
        return {key: value for key, value in found.items() if value is not None}

    @classmethod
    def written_keys(cls) -> dict[str, str]:
        """The key of each field that is written, as the first of the class's bases has it."""
        keys: dict[str, str] = {}
        for base in reversed(cls.__mro__):
            if issubclass(base, Strict):
                for name, field in base.model_fields.items():
                    if not field.exclude:
                        keys.setdefault(name, field.alias or name)
        return keys

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            raise refuse(_kind(value), "a mapping")
        allowed = tuple(field.alias or name for name, field in cls.model_fields.items())
        for key in value:
            if key in cls.absent:
                raise refuse(
                    f"{key}, which is not simulated: {cls.absent[key]}", ", ".join(allowed)
                )
            if key not in allowed:
                raise PydanticCustomError(
                    "unknown_key", "{key}", {"key": key, "allowed": ", ".join(allowed)}
                )
        return value


def _is_default(field: FieldInfo, value: object) -> bool:
    found: object = field.get_default(call_default_factory=True)
    return value == found


def _kind(value: object) -> str:
    return "nothing" if value is None else "a list" if isinstance(value, list) else repr(value)


def filled(kind: type[S], model: Strict, **parts: object) -> S:
    """A model with the same fields, and what its file leaves out or only names.

    Raises:
        TypeError: For a field that is missing, or one that the kind does not have.
    """
    values = {**dict(iter(model)), **parts}  # some have a field `keys`, as mappings do
    if values.keys() != kind.model_fields.keys():
        raise TypeError(f"{kind.__name__}: {values.keys() ^ kind.model_fields.keys()}")
    return kind.model_construct().model_copy(update=values)
