"""The entries of ``faults:`` as strict types, made of the kinds' keys."""

from collections.abc import Sequence
from dataclasses import MISSING, fields
from functools import reduce
from operator import or_
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import Field, GetCoreSchemaHandler, create_model
from pydantic_core import CoreSchema

from sim.faults.fault import Fault, Form, Key, Span
from sim.faults.registry import KINDS
from sim.scenario.model.acls import AclModel
from sim.scenario.model.machines import LatencyModel
from sim.scenario.model.quotas import QuotaModel
from sim.scenario.model.types import Bandwidth, ConfigSchema, Duration, Strict, Version, When, Words


class FaultModel(Strict, frozen=True):
    """An entry; the keys that are only its kind's have the names of the kind's fields."""

    name: str | None = Field(None, description="by which the instants of other faults refer to it")
    at: When | None = Field(
        None,
        description="an instant; a window, as in 20s..40s, from which the seed draws it; or "
        "relative to a fault with a name, as in crash + 5s or end of crash + 5s",
    )
    do: str

    @property
    def kind(self) -> type[Fault]:
        """The class of the fault."""
        return KINDS[self.do]


class RecurringModel(FaultModel, frozen=True):
    """A fault of components that fail at random."""

    mtbf: Duration | None = Field(
        None, description="instead of at: mean time between failures of each component"
    )
    mttr: Duration | None = Field(None, description="instead of for: mean time to repair")


class LastingModel(RecurringModel, frozen=True):
    """A fault that may last, and be repeated."""

    for_: Duration | None = Field(None, alias="for")
    every: Duration | None = Field(None, description="from one beginning to the next")
    times: Annotated[int, Field(ge=2, le=10_000, description="how often in all")] | None = None


class _Kinds:
    """Entries of some kinds, distinguished by ``do``."""

    def __init__(self, models: Sequence[type[FaultModel]]) -> None:
        self._models = models

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        """One of the kinds' schemas."""
        known: Any = reduce(or_, self._models)
        return handler.generate_schema(Annotated[known, Field(discriminator="do")])


_MIXED: Final[dict[Form, type[Strict]]] = {"quota": QuotaModel, "acl": AclModel}
"""Forms of which the entry has all keys beside its own."""

_BASES: Final[dict[Span, type[FaultModel]]] = {
    "lasting": LastingModel,
    "instant": RecurringModel,
    "drawn": RecurringModel,
    "procedure": FaultModel,
    "operation": FaultModel,
}
_Whole: TypeAlias = Annotated[int, Field(ge=0)]
_TYPES: Final[dict[Form, Any]] = {
    "targets": Words,
    "target": str,
    "side": Words,
    "messages": Words,
    "requests": Words,
    "duration": Duration,
    "spread": LatencyModel,
    "bandwidth": Bandwidth,
    "ratio": Annotated[float, Field(gt=0, lt=1, strict=False)],
    "flag": bool,
    "directory": _Whole,
    "other directory": _Whole,
    "partition": str,
    "replica": str,
    "topic": str,
    "config": Annotated[dict[str, object], ConfigSchema("topic"), Field(min_length=1)],
    "broker config": Annotated[dict[str, object], ConfigSchema("broker"), Field(min_length=1)],
    "broker": str,
    "brokers": Words,
    "offset": _Whole | Literal["high-watermark"],
    "partitions": Words,
    "seek": _Whole | Literal["beginning", "end"],
    "reset": _Whole | Literal["earliest", "latest", "current"],
    "group": str,
    "token": str,
    "user": str,
    "release": Version,
    "metadata release": Version,
}


def _type(key: Key) -> Any:  # noqa: ANN401 - a type that is made here
    match key.form:
        case "word":
            return Literal[key.words]
        case "faults":
            choices = Annotated[FaultModel, _Kinds([*_PLAIN.values()])]
            return Annotated[list[choices], Field(min_length=1, max_length=100)]
        case "whole" | "more partitions":
            return Annotated[int, Field(ge=key.low, le=key.high)]
        case form:
            return _TYPES[form]


def _model(kind: type[Fault]) -> type[FaultModel]:
    defaults = {each.name: each.default for each in fields(kind)}
    made: dict[str, Any] = {"do": (Literal[kind.kind], ...)}
    bases: tuple[Any, ...] = (_BASES[kind.span],)
    for name, key in kind.keys().items():
        if key.form in _MIXED:
            bases = (*bases, _MIXED[key.form])
            continue
        known, default = _type(key), ... if defaults[name] is MISSING else defaults[name]
        if default in (None, ()):
            known, default = known | None, None
        made[name] = known, Field(default, alias=key.name, description=key.hint or None)
    model: type[FaultModel] = create_model(
        f"{kind.__name__}Model", __base__=bases, __doc__=kind.__doc__, **made
    )
    return model


_PLAIN: Final = {
    name: _model(kind) for name, kind in KINDS.items() if kind.span in {"lasting", "instant"}
}
"""Kinds that can be chosen under ``one-of``."""

_MODELS: Final = {name: _PLAIN.get(name) or _model(kind) for name, kind in KINDS.items()}

Entry: TypeAlias = Annotated[FaultModel, _Kinds([*_MODELS.values()])]
"""faults."""


def keys_of(kind: type[Fault]) -> tuple[str, ...]:
    """Its keys beside times and ``do``; a trailing ``?`` marks one that may be left out."""
    known = _MODELS[kind.kind].model_fields
    own = [name for name in known if name not in LastingModel.model_fields and name != "do"]
    own += [name for name in ("for_",) if name in known]
    return tuple(
        (known[name].alias or name) + ("" if known[name].is_required() else "?") for name in own
    )
