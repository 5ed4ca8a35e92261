"""What every part of the scenario file is made of: quantities, names, settings, strict mappings."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetJsonSchemaHandler,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import CoreSchema, PydanticCustomError

from sim.scenario.settings.registry import SETTINGS
from sim.scenario.settings.types import Scope, Setting
from sim.scenario.text import quantities as q


def _quantity(parse: Callable[[object], int]) -> BeforeValidator:
    def validate(value: object) -> int:
        try:
            return parse(value)
        except q.QuantityError as error:
            # Custom templates see braces as fields, so the texts travel as fields themselves.
            raise PydanticCustomError(
                "logquake", "{found}", {"found": error.found, "allowed": error.allowed}
            ) from None

    return BeforeValidator(validate)


def _moment(value: object) -> tuple[int, int]:
    try:
        return q.parse_moment(value)
    except q.QuantityError as error:
        raise refuse(error.found, error.allowed) from None


def _text_schema(pattern: str, hint: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern}$", "description": hint})


def _units(names: Mapping[str, object]) -> str:
    return rf"{q.NUMBER_PATTERN}\s*({'|'.join(names)})"


Duration: TypeAlias = Annotated[
    int, _quantity(q.parse_duration), _text_schema(_units(q.DURATION_UNITS), q.DURATION_HINT)
]
Moment: TypeAlias = Annotated[
    tuple[int, int],
    PlainValidator(_moment),
    _text_schema(
        rf"{_units(q.DURATION_UNITS)}(\s*\.\.\s*{_units(q.DURATION_UNITS)})?", q.MOMENT_HINT
    ),
]
Size: TypeAlias = Annotated[
    int, _quantity(q.parse_size), _text_schema(_units(q.SIZE_UNITS), q.SIZE_HINT)
]
Bandwidth: TypeAlias = Annotated[
    int, _quantity(q.parse_bandwidth), _text_schema(_units(q.BANDWIDTH_UNITS), q.BANDWIDTH_HINT)
]
Rate: TypeAlias = Annotated[
    int, _quantity(q.parse_rate), _text_schema(_units(q.RATE_UNITS), q.RATE_HINT)
]
Share: TypeAlias = Annotated[
    int, _quantity(q.parse_share), _text_schema(_units(q.SHARE_UNITS), q.SHARE_HINT)
]
Count: TypeAlias = Annotated[int, Field(ge=1, le=100_000)]


def refuse(found: str, allowed: str) -> PydanticCustomError:
    """What is raised for a value that cannot be."""
    return PydanticCustomError("logquake", "{found}", {"found": found, "allowed": allowed})


def _words(value: object) -> tuple[str, ...]:
    words = value if isinstance(value, list) else [value]
    if not words or not all(isinstance(word, str) for word in words):
        raise refuse(repr(value), "a name or a list of names")
    return tuple(str(word) for word in words)


Words: TypeAlias = Annotated[
    tuple[str, ...],
    PlainValidator(_words),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}),
]


def _setting_schema(setting: Setting) -> dict[str, Any]:
    kinds = {"int": "integer", "double": "number", "boolean": "boolean"}
    described = f"{setting.allowed}; default {setting.default}"
    plain: dict[str, Any] = {"description": described}
    if setting.type in kinds:
        plain["type"] = (
            kinds[setting.type] if setting.default is not None else [kinds[setting.type], "null"]
        )
    if setting.absent:
        plain["description"] = f"not modelled: {setting.absent}"
        plain["const"] = setting.default
    return plain


@dataclass(frozen=True, slots=True)
class ConfigSchema:
    """The JSON schema of a scope's settings, and of its clients'; made when it is asked for."""

    scope: Scope
    clients: tuple[Scope, ...] = ()
    """Scopes whose settings stand beside it, with the scope's name before each."""

    def __get_pydantic_json_schema__(
        self, _core: CoreSchema, _handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        known = {name: _setting_schema(each) for name, each in SETTINGS[self.scope].items()}
        for client in self.clients:
            for name, each in SETTINGS[client].items():
                known[f"{client}.{name}"] = _setting_schema(each)
        return {"type": "object", "additionalProperties": False, "properties": known}


class Strict(BaseModel):
    """A mapping whose every key is known and whose values are not bent into shape."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            raise refuse(_kind(value), "a mapping")
        allowed = tuple(field.alias or name for name, field in cls.model_fields.items())
        for key in value:
            if key not in allowed:
                raise PydanticCustomError(
                    "unknown_key", "{key}", {"key": key, "allowed": ", ".join(allowed)}
                )
        return value


def _kind(value: object) -> str:
    return "nothing" if value is None else "a list" if isinstance(value, list) else repr(value)
