"""The scenario file as strict types, and its JSON Schema for editors.

Only shapes and units are checked here, key by key; what one part must be to another is checked by
the loader. Every quantity becomes a whole number of our smallest unit on the way in.
"""

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from sim.scenario import quantities as q
from sim.scenario.behaviours import BEHAVIOURS
from sim.scenario.expectations import VOCABULARY
from sim.scenario.settings import SETTINGS
from sim.scenario.settings_types import Scope, Setting
from sim.units import GIB, MIB, SECOND, Bytes, Micros


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


def _text_schema(pattern: str, hint: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern}$", "description": hint})


def _units(names: Mapping[str, object]) -> str:
    return rf"{q.NUMBER_PATTERN}\s*({'|'.join(names)})"


Duration: TypeAlias = Annotated[
    int, _quantity(q.parse_duration), _text_schema(_units(q.DURATION_UNITS), q.DURATION_HINT)
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
Count: TypeAlias = Annotated[int, Field(ge=1, le=100_000)]


def _refuse(found: str, allowed: str) -> PydanticCustomError:
    return PydanticCustomError("logquake", "{found}", {"found": found, "allowed": allowed})


def _words(value: object) -> tuple[str, ...]:
    words = value if isinstance(value, list) else [value]
    if not words or not all(isinstance(word, str) for word in words):
        raise _refuse(repr(value), "a name or a list of names")
    return tuple(str(word) for word in words)


def _version(value: object) -> str:
    return str(value) if isinstance(value, float) else value  # type: ignore[return-value] # checked next


def _count_or_racks(value: object) -> int | dict[str, int]:
    hint = "a whole number, or how many in each rack, as in {a: 1, b: 1}"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    if isinstance(value, dict) and value:
        counts = {name: count for name, count in value.items() if type(count) is int and count >= 0}
        if len(counts) == len(value):
            return counts
    raise _refuse(repr(value), hint)


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


def _config_schema(scope: Scope) -> WithJsonSchema:
    return WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                name: _setting_schema(setting) for name, setting in SETTINGS[scope].items()
            },
        }
    )


class Strict(BaseModel):
    """A mapping whose every key is known and whose values are not bent into shape."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, defer_build=True)

    @model_validator(mode="before")
    @classmethod
    def _known_keys(cls, value: object) -> object:
        if not isinstance(value, Mapping):
            raise _refuse(_kind(value), "a mapping")
        allowed = tuple(field.alias or name for name, field in cls.model_fields.items())
        for key in value:
            if key not in allowed:
                raise PydanticCustomError(
                    "unknown_key", "{key}", {"key": key, "allowed": ", ".join(allowed)}
                )
        return value


def _kind(value: object) -> str:
    return "nothing" if value is None else "a list" if isinstance(value, list) else repr(value)


class QuantilesModel(Strict):
    """A delay known by its median and its 99th percentile."""

    p50: Duration
    p99: Duration

    @model_validator(mode="after")
    def _ordered(self) -> "QuantilesModel":
        if self.p50 > self.p99:
            raise _refuse("p50 above p99", "p50 at most p99")
        return self


def _spread(p50: Micros, p99: Micros) -> QuantilesModel:
    # Already parsed, so the quantities' own validators must not see it.
    return QuantilesModel.model_construct(p50=p50, p99=p99)


class NetworkModel(Strict):
    """One-way delays of a message, and what each host's interface carries each way."""

    same_rack: QuantilesModel = Field(_spread(100, 250), alias="same-rack")
    cross_rack: QuantilesModel = Field(_spread(400, 1_000), alias="cross-rack")
    client: QuantilesModel | None = Field(None, description="default: as same-rack")
    bandwidth: Bandwidth = 1_250_000_000


class DiskModel(Strict):
    """Every log directory's disk; the page cache above it is written back as Linux does."""

    write: Bandwidth = 1_000_000_000
    read: Bandwidth = 1_000_000_000
    flush: QuantilesModel = _spread(1_000, 10_000)
    dirty_expire: Duration = Field(30 * SECOND, alias="dirty.expire")
    dirty_writeback: Duration = Field(5 * SECOND, alias="dirty.writeback")
    dirty_background: Size = Field(256 * MIB, alias="dirty.background")
    dirty_limit: Size = Field(GIB, alias="dirty.limit")
    directories: Annotated[int, Field(ge=1, le=64)] = 1


class CpuModel(Strict):
    """What a server's threads pay for each message, request, partition and byte."""

    network_request: Duration = Field(10, alias="network.request")
    handler_request: Duration = Field(20, alias="handler.request")
    handler_produce_partition: Duration = Field(5, alias="handler.produce.partition")
    handler_fetch_partition: Duration = Field(2, alias="handler.fetch.partition")
    handler_produce_bytes: Bandwidth = Field(3_300_000_000, alias="handler.produce.bytes")
    handler_fetch_bytes: Bandwidth = Field(20_000_000_000, alias="handler.fetch.bytes")


class ClusterModel(Strict):
    """Servers, and what lies between them."""

    kafka: Annotated[Literal["4.1"], BeforeValidator(_version)] = "4.1"
    brokers: Annotated[int, Field(ge=1, le=1_000)] | None = None
    racks: (
        Annotated[dict[str, Annotated[int, Field(ge=0, le=1_000)]], Field(min_length=1)] | None
    ) = None
    controllers: Annotated[
        int | dict[str, int],
        PlainValidator(_count_or_racks),
        WithJsonSchema({"type": ["integer", "object"]}),
    ] = 3
    config: Annotated[dict[str, object], _config_schema("broker")] = Field(default_factory=dict)
    network: NetworkModel = Field(default_factory=lambda: NetworkModel.model_validate({}))
    disk: DiskModel = Field(default_factory=lambda: DiskModel.model_validate({}))
    cpu: CpuModel = Field(default_factory=lambda: CpuModel.model_validate({}))


class TopicModel(Strict):
    """A topic, made before the workload begins."""

    partitions: Annotated[int, Field(ge=1, le=10_000)] = 1
    replication_factor: Annotated[int, Field(ge=1, le=1_000)] = Field(
        ..., alias="replication.factor"
    )
    config: Annotated[dict[str, object], _config_schema("topic")] = Field(default_factory=dict)


class BurstModel(Strict):
    """The peak rate for ``on``, then the ordinary rate for ``off``, over and over."""

    on: Duration
    off: Duration
    peak: Rate


class ProducerModel(Strict):
    """Producers alike; the rate is each one's own."""

    name: str
    topic: str
    count: Count = 1
    rate: Rate
    record_size: Size = Field(1_024, alias="record.size")
    keys: Literal["none", "uniform", "zipf"] = "none"
    key_count: Count | None = Field(None, alias="key.count")
    key_skew: Annotated[float, Field(gt=0, le=10, strict=False)] | None = Field(
        None, alias="key.skew"
    )
    arrivals: Literal["steady", "poisson", "burst"] = "steady"
    burst: BurstModel | None = None
    start: Duration = 0
    stop: Duration | None = None
    rack: str | None = None
    config: Annotated[dict[str, object], _config_schema("producer")] = Field(default_factory=dict)


class ConsumerModel(Strict):
    """Consumers alike: members of a group, or with ``group: none`` each reading everything."""

    name: str | None = None
    group: str
    topics: Words
    count: Count = 1
    processing: Duration = 0
    start: Duration = 0
    stop: Duration | None = None
    rack: str | None = None
    config: Annotated[dict[str, object], _config_schema("consumer")] = Field(default_factory=dict)


class _FaultModel(Strict):
    at: Duration


class NodeFaultModel(_FaultModel):
    """Something happens to a process or a host."""

    do: Literal["crash", "controlled-shutdown", "pause", "power-loss"]
    target: str
    for_: Duration | None = Field(None, alias="for")


class RestartModel(_FaultModel):
    """A process is started at once."""

    do: Literal["restart"]
    target: str


class _LinkModel(_FaultModel):
    between: Words
    and_: Words | None = Field(None, alias="and", description="default: everyone else")
    one_way: bool = Field(default=False, alias="one-way")
    for_: Duration | None = Field(None, alias="for")


class PartitionModel(_LinkModel):
    """A silent cut."""

    do: Literal["partition"]


class DelayModel(_LinkModel):
    """Messages take longer."""

    do: Literal["delay"]
    by: Duration


class LossModel(_LinkModel):
    """Segments get lost."""

    do: Literal["loss"]
    ratio: Annotated[float, Field(gt=0, lt=1, strict=False)]


class DiskFaultModel(_FaultModel):
    """A disk misbehaves."""

    do: Literal["stalled-disk", "failed-disk", "full-disk"]
    target: str
    directory: Annotated[int, Field(ge=0)] = 0
    for_: Duration | None = Field(None, alias="for")


class SlowDiskModel(_FaultModel):
    """A disk takes ``factor`` times as long."""

    do: Literal["slow-disk"]
    target: str
    factor: Annotated[int, Field(ge=2, le=1_000_000)]
    directory: Annotated[int, Field(ge=0)] = 0
    for_: Duration | None = Field(None, alias="for")


class ReplicaFaultModel(_FaultModel):
    """One replica of one topic partition is lost or corrupted."""

    do: Literal["lost-replica", "corrupt-replica"]
    target: str
    partition: str | None = Field(None, description="default: the partition the target names")


FaultModel: TypeAlias = Annotated[
    NodeFaultModel
    | RestartModel
    | PartitionModel
    | DelayModel
    | LossModel
    | DiskFaultModel
    | SlowDiskModel
    | ReplicaFaultModel,
    Field(discriminator="do"),
]


class RunModel(Strict):
    """How long, and how it ends."""

    for_: Duration = Field(..., alias="for")
    then: Literal["heal and drain", "stop"] = "heal and drain"
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 1
    drain_timeout: Duration = Field(120 * SECOND, alias="drain.timeout")


_Expect: TypeAlias = Annotated[
    dict[str, object],
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                name: {
                    "description": meaning,
                    "type": ["integer", "string"] if unit == "records" else "string",
                }
                for name, (unit, meaning) in VOCABULARY.items()
            },
        }
    ),
]
_Behaviours: TypeAlias = Annotated[
    dict[str, str],
    WithJsonSchema(
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                item.name: {"description": item.meaning, "enum": list(item.choices)}
                for item in BEHAVIOURS
            },
        }
    ),
]


class ScenarioModel(Strict):
    """A scenario file."""

    claim: Annotated[str, Field(min_length=1)]
    cluster: ClusterModel
    topics: Annotated[dict[str, TopicModel], Field(min_length=1)]
    producers: list[ProducerModel] = Field(default_factory=list)
    consumers: list[ConsumerModel] = Field(default_factory=list)
    faults: list[FaultModel] = Field(default_factory=list)
    run: RunModel
    expect: _Expect = Field(default_factory=dict)
    behaviours: _Behaviours = Field(default_factory=dict)


def json_schema() -> dict[str, Any]:
    """JSON Schema of a scenario file, for editors."""
    schema = ScenarioModel.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


RECORD_SIZE_MIN: Bytes = 24
"""A record's value holds at least its own name: see the record layout."""
