"""The scenario file as strict types, and its JSON Schema for editors.

Only shapes and units are checked here, key by key; what one part must be to another is checked by
the loader. Every quantity becomes a whole number of our smallest unit on the way in.
"""

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import (
    Field,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)

from sim.ids import FIRST_CONTROLLER_ID
from sim.scenario.behaviours.registry import BEHAVIOURS
from sim.scenario.behaviours.versions import VERSIONS
from sim.scenario.expect.bounds import VOCABULARY
from sim.scenario.schema.connectors import ConnectorModel
from sim.scenario.schema.faults import Entry
from sim.scenario.schema.mirrors import MirrorModel
from sim.scenario.schema.quotas import QuotaModel
from sim.scenario.schema.tasks import ProcessorModel
from sim.scenario.schema.types import (
    Bandwidth,
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
from sim.units import GIB, KIB, MIB, MS, SECOND, Bytes, Micros


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


class QuantilesModel(Strict):
    """A delay known by its median and its 99th percentile."""

    p50: Duration
    p99: Duration

    @model_validator(mode="after")
    def _ordered(self) -> "QuantilesModel":
        if self.p50 > self.p99:
            raise refuse("p50 above p99", "p50 at most p99")
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
    access: Duration = 100
    flush: QuantilesModel = _spread(1_000, 10_000)
    dirty_expire: Duration = Field(30 * SECOND, alias="dirty.expire")
    dirty_writeback: Duration = Field(5 * SECOND, alias="dirty.writeback")
    dirty_background: Size = Field(256 * MIB, alias="dirty.background")
    dirty_limit: Size = Field(GIB, alias="dirty.limit")
    cache: Size = Field(8 * GIB, description="each server's memory for file pages")
    capacity: Size | None = Field(None, description="default: as much as is written")
    directories: Annotated[int, Field(ge=1, le=64)] = 1


class CpuModel(Strict):
    """What a server's threads pay for each message, request, partition and byte."""

    network_request: Duration = Field(10, alias="network.request")
    handler_request: Duration = Field(20, alias="handler.request")
    handler_produce_partition: Duration = Field(5, alias="handler.produce.partition")
    handler_fetch_partition: Duration = Field(2, alias="handler.fetch.partition")
    handler_produce_bytes: Bandwidth = Field(3_300_000_000, alias="handler.produce.bytes")
    handler_fetch_bytes: Bandwidth = Field(20_000_000_000, alias="handler.fetch.bytes")
    tls_bytes: Bandwidth = Field(1_000_000_000, alias="tls.bytes")
    tls_handshake: Duration = Field(1_000, alias="tls.handshake")
    preempted: QuantilesModel = _spread(2_000, 20_000)
    metadata_load: QuantilesModel = Field(
        _spread(40_000, 70_000),
        alias="metadata.load",
        description="a broker's way from committed records to a new image",
    )
    metadata_publish: QuantilesModel = Field(
        _spread(50_000, 75_000),
        alias="metadata.publish",
        description="from the image to changed roles",
    )
    metadata_partition: Duration = Field(20, alias="metadata.partition")
    wakeup: QuantilesModel = _spread(30, 121)
    teardown: Duration = 60 * MS
    young_generation: Size = Field(256 * MIB, alias="young.generation")
    young_per_request: Size = Field(16 * KIB, alias="young.per.request")
    young_pause: QuantilesModel = Field(_spread(5_000, 20_000), alias="young.pause")


class HeapModel(Strict):
    """Every broker's heap, and what things take of it; without it memory has no end."""

    size: Size
    used: Size = Field(GIB, description="what lives there before a client comes")
    per_producer_id: Size = Field(
        264, alias="per.producer.id", description="for each log that knows the producer"
    )
    per_connection: Size = Field(64 * KIB, alias="per.connection")
    per_request: Size = Field(64 * KIB, alias="per.request", description="garbage")
    collection: Bandwidth = Field(
        1_000_000_000, description="how fast a collection gets through what lives"
    )


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
    distance: QuantilesModel = _spread(40 * MS, 60 * MS)
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


def json_schema() -> dict[str, Any]:
    """JSON Schema of a scenario file, for editors."""
    schema = ScenarioModel.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}


RECORD_SIZE_MIN: Bytes = 24
"""A record's value holds at least its own name: see the record layout."""
