"""The scenario file as strict types.

Only shapes and units are checked here, key by key; what one part must be to another is checked by
the loader. Every quantity becomes a whole number of our smallest unit on the way in.
"""

from typing import Annotated, Literal, TypeAlias

from pydantic import (
    Field,
    PlainValidator,
    WithJsonSchema,
)

from sim.ids import FIRST_CONTROLLER_ID
from sim.scenario.behaviours.registry import BEHAVIOURS
from sim.scenario.behaviours.versions import VERSIONS
from sim.scenario.expect.bounds import VOCABULARY
from sim.scenario.model.machines import (
    CpuModel,
    DiskModel,
    HeapModel,
    NetworkModel,
    QuantilesModel,
    quantiles,
)
from sim.scenario.model.types import (
    ConfigSchema,
    Count,
    Duration,
    Rate,
    Share,
    Size,
    Strict,
    Words,
    refuse,
)
from sim.scenario.schema.connectors import ConnectorModel
from sim.scenario.schema.faults import Entry
from sim.scenario.schema.mirrors import MirrorModel
from sim.scenario.schema.quotas import QuotaModel
from sim.scenario.schema.tasks import ProcessorModel
from sim.units import MS, SECOND, Bytes


def _version(value: object) -> str:
    # YAML reads 4.1 without quotes as a number, and 2.10 as 2.1: only what has no second reading.
    text = str(value) if isinstance(value, float) else value
    if text not in VERSIONS:
        found = f"{text} of Kafka" if isinstance(text, str) else repr(value)
        raise refuse(found, f"one of {', '.join(VERSIONS)}, in quotes")
    return str(text)


def _count_or_racks(value: object) -> int | dict[str, int]:
    hint = "a whole number, or how many in each rack, as in {a: 1, b: 1}"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    if isinstance(value, dict) and value:
        counts = {name: count for name, count in value.items() if type(count) is int and count >= 0}
        if len(counts) == len(value):
            return counts
    raise refuse(repr(value), hint)


class ZooKeeperModel(Strict):
    """The ensemble of ZooKeeper mode, in place of controllers; its settings have its own names."""

    servers: Annotated[
        int | dict[str, int],
        PlainValidator(_count_or_racks),
        WithJsonSchema({"type": ["integer", "object"]}),
    ] = 3
    tick_time: Duration = Field(2 * SECOND, alias="tickTime")
    sync_limit: Annotated[int, Field(ge=1, le=1_000)] = Field(2, alias="syncLimit")


class ClusterModel(Strict):
    """Servers, and what lies between them."""

    kafka: Annotated[str, PlainValidator(_version), WithJsonSchema({"enum": list(VERSIONS)})] = (
        VERSIONS[-1]
    )
    brokers: Annotated[int, Field(ge=1, le=1_000)] | None = None
    racks: (
        Annotated[dict[str, Annotated[int, Field(ge=0, le=1_000)]], Field(min_length=1)] | None
    ) = None
    ids: (
        Annotated[
            list[Annotated[int, Field(ge=0, lt=FIRST_CONTROLLER_ID)]],
            Field(description="default: from 1 on"),
        ]
        | None
    ) = None
    initial_brokers: (
        Annotated[int, Field(ge=1, le=1_000, description="default: all of them")] | None
    ) = Field(None, alias="initial.brokers")
    controllers: (
        Annotated[
            int | dict[str, int],
            PlainValidator(_count_or_racks),
            WithJsonSchema({"type": ["integer", "object"]}),
        ]
        | None
    ) = Field(None, description="default: 3, or none with combined")
    combined: (
        Annotated[int, Field(ge=1, le=99, description="brokers that are controllers too")] | None
    ) = None
    quorum: Literal["static", "dynamic"] = "static"
    initial_controllers: (
        Annotated[int, Field(ge=1, le=99, description="default: all of them")] | None
    ) = Field(None, alias="initial.controllers")
    zookeeper: ZooKeeperModel | None = None
    replication: Literal["isr", "raft"] = "isr"
    internal_replicas: dict[
        Literal["__consumer_offsets", "__transaction_state"], list[list[str]]
    ] = Field(
        default_factory=dict,
        alias="internal.replicas",
        description="brokers of each partition of an internal topic, the preferred leader first",
    )
    config: Annotated[dict[str, object], ConfigSchema("broker")] = Field(default_factory=dict)
    network: NetworkModel = Field(default_factory=lambda: NetworkModel.model_validate({}))
    disk: DiskModel = Field(default_factory=lambda: DiskModel.model_validate({}))
    cpu: CpuModel = Field(default_factory=lambda: CpuModel.model_validate({}))
    heap: HeapModel | None = Field(None, description="default: no end of memory")


class TopicModel(Strict):
    """A topic, made before the workload begins."""

    partitions: Annotated[int, Field(ge=1, le=10_000)] = 1
    replication_factor: Annotated[int, Field(ge=1, le=1_000)] = Field(
        ..., alias="replication.factor"
    )
    replicas: list[list[str]] | None = Field(
        None, description="brokers of each partition, the preferred leader first"
    )
    config: Annotated[dict[str, object], ConfigSchema("topic")] = Field(default_factory=dict)


class BurstModel(Strict):
    """The peak rate for ``on``, then the ordinary rate for ``off``, over and over."""

    on: Duration
    off: Duration
    peak: Rate


class HeadersModel(Strict):
    """Headers of each record, all alike; ``size`` is that of each header's value."""

    count: Annotated[int, Field(ge=0, le=100)]
    size: Size = 16


class TransactionModel(Strict):
    """How a producer's records are cut into transactions: by number, or by time."""

    records: Count | None = Field(None, description="records in each")
    every: Duration | None = Field(None, description="or: from its first record to its end")
    abort: Share = Field(0, description="share of them that the application aborts by itself")


class ProducerModel(Strict):
    """Producers alike; the rate is each one's own."""

    name: str
    topic: str
    count: Count = 1
    rate: Rate
    record_size: Size = Field(1_024, alias="record.size")
    record_headers: HeadersModel = Field(
        default_factory=lambda: HeadersModel.model_construct(count=0, size=16),
        alias="record.headers",
    )
    record_compressibility: Annotated[float, Field(ge=0, le=1, strict=False)] = Field(
        1.0, alias="record.compressibility"
    )
    keys: Literal["none", "uniform", "zipf"] = "none"
    key_count: Count | None = Field(None, alias="key.count")
    key_skew: Annotated[float, Field(gt=0, le=10, strict=False)] | None = Field(
        None, alias="key.skew"
    )
    tombstones: Share = 0
    arrivals: Literal["steady", "poisson", "burst"] = "steady"
    burst: BurstModel | None = None
    transaction: TransactionModel | None = None
    producer_per: Literal["process", "request"] = Field("process", alias="producer.per")
    start: Duration = 0
    stop: Duration | None = None
    rack: str | None = None
    config: Annotated[dict[str, object], ConfigSchema("producer")] = Field(default_factory=dict)


class ConsumerModel(Strict):
    """Consumers alike: members of a group, or with ``group: none`` each reading everything."""

    name: str | None = None
    group: str
    topics: Words
    count: Count = 1
    group_type: Literal["share"] | None = Field(
        None, alias="group.type", description="share: members may share partitions (KIP-932)"
    )
    processing: Duration = 0
    release: Share = Field(0, description="share of deliveries that the application gives back")
    reject: Share = Field(0, description="share of deliveries that the application rejects")
    commits: Literal["auto", "sync", "async"] = Field(
        "auto",
        description="by the client itself (enable.auto.commit), or by the application after "
        "processing: commitSync, or commitAsync",
    )
    start: Duration = 0
    stop: Duration | None = None
    rack: str | None = None
    config: Annotated[dict[str, object], ConfigSchema("consumer")] = Field(default_factory=dict)


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
                    "type": [
                        *(["integer"] if unit == "records" else []),
                        *("string", "object", "array"),
                    ],
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


class OtherClusterModel(Strict):
    """A cluster in another region, with its own topics, clients and faults."""

    cluster: ClusterModel
    distance: QuantilesModel = quantiles(40 * MS, 60 * MS)
    topics: dict[str, TopicModel] = Field(default_factory=dict)
    producers: list[ProducerModel] = Field(default_factory=list)
    consumers: list[ConsumerModel] = Field(default_factory=list)
    faults: list[Entry] = Field(default_factory=list)
    expect: _Expect = Field(default_factory=dict)


class ScenarioModel(Strict):
    """A scenario file."""

    claim: Annotated[str, Field(min_length=1)]
    cluster: ClusterModel
    topics: Annotated[dict[str, TopicModel], Field(min_length=1)]
    producers: list[ProducerModel] = Field(default_factory=list)
    consumers: list[ConsumerModel] = Field(default_factory=list)
    quotas: list[QuotaModel] = Field(default_factory=list)
    processors: list[ProcessorModel] = Field(default_factory=list)
    connectors: list[ConnectorModel] = Field(default_factory=list)
    clusters: dict[str, OtherClusterModel] = Field(default_factory=dict)
    mirrors: list[MirrorModel] = Field(default_factory=list)
    faults: list[Entry] = Field(default_factory=list)
    run: RunModel
    expect: _Expect = Field(default_factory=dict)
    behaviours: _Behaviours = Field(default_factory=dict)


RECORD_SIZE_MIN: Bytes = 24
"""A record's value holds at least its own name: see the record layout."""
