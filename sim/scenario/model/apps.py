"""Applications of a scenario that read and write: tasks of Streams, connectors, mirrors."""

from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, field_serializer

from sim.scenario.model.clients import Release, numbered, numbered_or_none
from sim.scenario.model.types import (
    NOT_WRITTEN,
    ConfigSchema,
    Count,
    Duration,
    Fields,
    GivenSettings,
    Rate,
    Size,
    Strict,
    Words,
)
from sim.scenario.settings.connect import WORKERS
from sim.scenario.settings.resolved import Config, SettingValue
from sim.units import Bytes

OF_SOURCES: Final = ("rate_per_s", "record_size", "poll_us", "batch", "stop_us")
OF_SINKS: Final = ("processing_us", "buffer", "delivery")


def _under(client: str, config: Config) -> dict[str, SettingValue]:
    """Settings of an application's client, as it names them."""
    return {f"{client}.{name}": value for name, value in config.items()}


class ProcessorModel(Strict, frozen=True):
    """Tasks alike, members of one group: each reads, makes outputs of what it read, and commits."""

    quiet: ClassVar[Fields] = ("kafka",)

    name: str
    topics: Words
    output: str
    count: Count = 1
    outputs: Annotated[int, Field(ge=1, le=1_000, description="of each input record")] = 1
    processing_us: Duration = Field(0, alias="processing")
    commits: Literal["after", "before", "auto"] = Field(
        "after",
        description="when input is committed: after its outputs, before they are made, or by "
        "enable.auto.commit while a worker makes them",
    )
    record_size: Size = Field(1_024, alias="record.size")
    start_us: Duration = Field(0, alias="start")
    stop_us: Duration | None = Field(None, alias="stop")
    rack: str | None = None
    kafka: Release = None
    config: Annotated[GivenSettings, ConfigSchema("streams", ("consumer", "producer"))] = Field(
        default_factory=dict
    )


class ProcessorSpec(ProcessorModel, frozen=True):
    """Tasks alike with their settings: Streams' own, and those of their two clients."""

    config: Config
    consumer: Config = NOT_WRITTEN
    producer: Config = NOT_WRITTEN

    @property
    def group(self) -> str:
        """``group.id`` of its consumers: Streams' ``application.id``."""
        return self.name

    @property
    def client_names(self) -> tuple[str, ...]:
        """Printed names: the name itself, or ``name-1`` to ``name-N``."""
        return numbered(self.name, self.count)

    @property
    def instance_ids(self) -> tuple[str, ...]:
        """``group.instance.id`` of each, numbered like the names; empty for dynamic members."""
        return numbered_or_none(self.consumer.text("group.instance.id"), self.count)

    @property
    def membership(self) -> str:
        """``group.protocol``: classic or consumer."""
        return self.consumer.text("group.protocol")

    @property
    def is_exactly_once(self) -> bool:
        """True if offsets are committed in the transactions of the outputs."""
        return self.config.text("processing.guarantee") != "at_least_once"

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        """Of each task; none without transactions."""
        return self.client_names if self.is_exactly_once else ()

    @field_serializer("config")
    def _settings(self, config: Config) -> dict[str, SettingValue]:
        own = dict(config)
        if self.commits == "auto":
            del own["commit.interval.ms"]
        return {**own, **_under("consumer", self.consumer), **_under("producer", self.producer)}

    @property
    def reads_committed(self) -> bool:
        """True if they read committed data only."""
        return self.consumer.text("isolation.level") == "read_committed"


class ConnectorModel(Strict, frozen=True):
    """A connector: a source writes an external log to a topic, a sink delivers topics elsewhere."""

    quiet: ClassVar[Fields] = ("kafka",)

    name: str
    kind: Literal["source", "sink"]
    topics: Words = Field(..., description="of a source one, which it writes to")
    tasks: Count = 1
    rate_per_s: Rate | None = Field(
        None, alias="rate", description="source: external records, for each task"
    )
    record_size: Size = Field(1_024, alias="record.size", description="source")
    poll_us: Duration = Field(
        500_000, alias="poll", description="source: from one poll to the next"
    )
    batch: Count = Field(2_048, description="source: records that a poll returns at most")
    stop_us: Duration | None = Field(
        None, alias="stop", description="source: from then on no record appears"
    )
    processing_us: Duration = Field(
        0, alias="processing", description="sink: time that each record takes"
    )
    buffer: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        0, description="sink: records that a task collects before it writes"
    )
    delivery: Literal["at-least-once", "exactly-once"] = Field(
        "at-least-once", description="sink: whether the external system keeps offsets"
    )
    start_us: Duration = Field(0, alias="start")
    rack: str | None = None
    kafka: Release = None
    config: Annotated[GivenSettings, ConfigSchema("connect", ("consumer", "producer"))] = Field(
        default_factory=dict
    )

    @property
    def is_source(self) -> bool:
        """True if it writes to Kafka."""
        return self.kind == "source"

    def meaningless(self) -> Fields:
        """Keys of the other kind."""
        return OF_SINKS if self.is_source else OF_SOURCES


class ConnectorSpec(ConnectorModel, frozen=True):
    """A connector with its settings; each of its tasks is a process of its own.

    Those of a source read a partition of the external log each; those of a sink are members of one
    group.
    """

    rate_per_s: Rate
    """Records that appear in each partition of the external log; 0 for a sink."""
    stop_us: Duration
    config: Config
    """Connect's own settings."""
    client: Config = NOT_WRITTEN
    """Of its producers, or of its consumers."""

    @property
    def group(self) -> str:
        """``group.id`` of a sink's consumers, or under which a source's positions are kept."""
        return f"connect-{self.name}"

    @property
    def count(self) -> int:
        """Processes that it has."""
        return self.tasks

    @property
    def client_names(self) -> tuple[str, ...]:
        """Printed names: the name itself, or ``name-1`` to ``name-N``."""
        return numbered(self.name, self.tasks)

    @property
    def is_exactly_once(self) -> bool:
        """True if positions of a source are committed in the transactions of its records."""
        return self.is_source and self.config.text("exactly.once.source.support") == "enabled"

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        """Of each task (``Worker.taskTransactionalId``); none without transactions."""
        if not self.is_exactly_once:
            return ()
        return tuple(f"{WORKERS}-{self.name}-{task}" for task in range(self.tasks))

    @property
    def reads_committed(self) -> bool:
        """True for a sink that reads committed data only."""
        return not self.is_source and self.client.text("isolation.level") == "read_committed"

    @field_serializer("config")
    def _settings(self, config: Config) -> dict[str, SettingValue]:
        by_interval = config.text("transaction.boundary") == "interval"
        refused = {
            "exactly.once.source.support": not self.is_source,
            "exactly.once.support": not self.is_source,
            "transaction.boundary": not self.is_exactly_once,
            "transaction.boundary.interval.ms": not (self.is_exactly_once and by_interval),
        }
        own = {name: value for name, value in config.items() if not refused.get(name)}
        return own | _under("producer" if self.is_source else "consumer", self.client)


class MirrorModel(Strict, frozen=True):
    """A mirror of one topic of the scenario's own cluster to another cluster (MirrorMaker 2)."""

    quiet: ClassVar[Fields] = ("groups",)

    name: str
    topic: str
    target: str = Field(..., alias="to", description="a cluster of clusters")
    groups: Words = Field(default=(), description="groups whose offsets are translated")
    at: Literal["source", "target"] = Field("target", description="in whose region it runs")
    start_us: Duration = Field(0, alias="start")
    config: Annotated[GivenSettings, ConfigSchema("mirror", ("consumer", "producer"))] = Field(
        default_factory=dict
    )


class MirrorSpec(MirrorModel, frozen=True):
    """A mirror with its topic in the other cluster and its settings."""

    config: Config
    """The mirror's own settings."""
    target_topic: str = NOT_WRITTEN
    partitions: int = NOT_WRITTEN
    record_size: Bytes = NOT_WRITTEN
    """Of each record's value."""
    consumer: Config = NOT_WRITTEN
    producer: Config = NOT_WRITTEN

    @property
    def group(self) -> str:
        """``group.id`` under which its own offsets are kept."""
        return self.name

    @property
    def client_names(self) -> tuple[str, ...]:
        """Printed names: one process."""
        return (self.name,)

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        """None: it writes outside of transactions."""
        return ()

    @field_serializer("config")
    def _settings(self, config: Config) -> dict[str, SettingValue]:
        return {**config, **_under("consumer", self.consumer), **_under("producer", self.producer)}
