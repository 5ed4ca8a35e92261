"""Producers and consumers of a scenario, as a file has them and with everything filled in."""

from itertools import accumulate, pairwise
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from pydantic import AfterValidator, Field, PlainSerializer

from sim.protocol.acls import ANONYMOUS
from sim.scenario.model.security import LoginModel
from sim.scenario.model.types import (
    NOT_WRITTEN,
    ConfigSchema,
    Count,
    Duration,
    Fields,
    GivenSettings,
    Pairs,
    Rate,
    Settings,
    Share,
    Size,
    Strict,
    Version,
    Words,
)
from sim.substrate.distributions import Spread, quantile_table
from sim.units import Bytes

SHARE_MODE: Final = "share.acknowledgement.mode"
SHARE_ACQUIRE: Final = "share.acquire.mode"
SHARE_RESET: Final = "share.auto.offset.reset"

RECORD_SIZE_MIN: Final[Bytes] = 24
"""A record's value holds at least its own name: see the record layout."""

Release: TypeAlias = Annotated[
    Version | None, Field(description="release of the client; default: that of the brokers")
]

Group: TypeAlias = Annotated[
    str,
    AfterValidator(lambda name: "" if name == "none" else name),
    PlainSerializer(lambda name: name or "none"),
]
"""``group.id``; empty for ``none``: every partition is assigned by hand."""


def numbered(name: str, count: int) -> tuple[str, ...]:
    """Names of ``count`` clients: the name itself, or ``name-1`` to ``name-N``."""
    if count == 1:
        return (name,)
    return tuple(f"{name}-{number}" for number in range(1, count + 1))


def numbered_or_none(name: str, count: int) -> tuple[str, ...]:
    """As :func:`numbered`; as many empty names without a name."""
    return numbered(name, count) if name else ("",) * count


class BurstModel(Strict, frozen=True):
    """The peak rate for ``on``, then the ordinary rate for ``off``, over and over."""

    on_us: Duration = Field(alias="on")
    off_us: Duration = Field(alias="off")
    peak_per_s: Rate = Field(alias="peak")


class PointModel(Strict, frozen=True):
    """Level of a rate at an instant of its period."""

    at_us: Duration = Field(alias="at")
    level: Annotated[float, Field(ge=0, le=1_000_000, strict=False)] = Field(
        description="relative to the other points"
    )


class CurveModel(Strict, frozen=True):
    """The rate over a period, around its mean: a sine, or points joined by straight lines."""

    quiet: ClassVar[Fields] = ("amplitude_ppm", "points")

    period_us: Duration = Field(alias="period")
    amplitude_ppm: Share = Field(
        0, alias="amplitude", description="of a sine: rise and fall, as a share of the mean"
    )
    points: tuple[PointModel, ...] = Field((), strict=False)

    @property
    def peak(self) -> float:
        """The highest level, over the mean; 1 is a steady rate."""
        if not self.points:
            return 1 + self.amplitude_ppm / 1_000_000
        levels = [(point.at_us, point.level) for point in self.points]
        levels.append((levels[0][0] + self.period_us, levels[0][1]))
        area = sum(
            (late - early) * (low + high) / 2 for (early, low), (late, high) in pairwise(levels)
        )
        return max(level for _, level in levels) * self.period_us / area


class SizesModel(Strict, frozen=True):
    """Sizes of values: a log-normal distribution by quantiles, or sizes with their shares."""

    p50: Size | None = None
    p99: Size | None = Field(None, description="with p50")
    max: Size | None = Field(None, description="with p50: no value is larger; default: as drawn")
    values: dict[Size, Share] | None = Field(
        None, description="instead: the share of each size, as in {200B: 90%, 1MiB: 10%}"
    )

    @property
    def table(self) -> tuple[tuple[Bytes, ...], tuple[int, ...]]:
        """Sizes, and the share that each or one before has, in equal parts of the last number."""
        if self.values is not None:
            return tuple(self.values), tuple(accumulate(self.values.values()))
        p50, p99 = self.p50 or 0, self.p99 or 0  # checked when they are read
        drawn = quantile_table(Spread(p50, p99))
        most = drawn[-1] if self.max is None else self.max
        sizes = tuple(min(most, max(RECORD_SIZE_MIN, size)) for size in drawn)
        return sizes, tuple(range(1, len(sizes) + 1))

    @property
    def mean(self) -> Bytes:
        """The mean size, rounded."""
        sizes, until = self.table
        shares = (after - before for before, after in pairwise((0, *until)))
        total = sum(size * share for size, share in zip(sizes, shares, strict=True))
        return round(total / until[-1])


class HeadersModel(Strict, frozen=True):
    """Headers of each record, all alike; ``size`` is that of each header's value."""

    count: Annotated[int, Field(ge=0, le=100)]
    size: Size = 16


class TransactionModel(Strict, frozen=True):
    """Transactions of a producer: cut by a number of records, or by time."""

    records: Count | None = Field(None, description="records in each")
    every_us: Duration | None = Field(
        None, alias="every", description="or: from its first record to its end"
    )
    abort_ppm: Share = Field(
        0, alias="abort", description="share of them that the application aborts by itself"
    )


class ProducerModel(Strict, frozen=True):
    """Producers alike; the rate is each one's own."""

    quiet: ClassVar[Fields] = ("producer_per", "key_hot_ppm", "principal", "kafka")
    behind: ClassVar[Pairs] = (("key_skew", "tombstone_ppm"),)

    name: str
    topic: str
    count: Count = 1
    rate_per_s: Rate = Field(0, alias="rate", description="required without clients")
    """Between bursts, when arrivals come in bursts; the mean of a curve; of closed loops, once
    everything is filled in, an estimate."""
    clients: Count | None = Field(
        None, description="instead of rate: so many wait each for the answer to its last record"
    )
    think_us: Duration | None = Field(
        None,
        alias="think.time",
        description="of each client, from an answer to its next record; arrivals: poisson draws it",
    )
    record_size: Size = Field(1_024, alias="record.size")
    """Of each record's value; the mean of ``record.sizes``, once everything is filled in."""
    record_sizes: SizesModel | None = Field(
        None, alias="record.sizes", description="instead of record.size: their distribution"
    )
    record_headers: HeadersModel = Field(
        default_factory=lambda: HeadersModel.model_construct(count=0, size=16),
        alias="record.headers",
    )
    compressibility: Annotated[float, Field(ge=0, le=1, strict=False)] = Field(
        1.0, alias="record.compressibility"
    )
    """Share of a value's filler that compresses to nearly nothing; the rest is noise."""
    keys: Literal["none", "uniform", "zipf"] = "none"
    key_count: Count | None = Field(None, alias="key.count")
    key_skew: Annotated[float, Field(gt=0, le=10, strict=False)] | None = Field(
        None, alias="key.skew"
    )
    """Exponent of the Zipf law."""
    key_hot_ppm: Share = Field(
        0, alias="key.hot", description="share of the records that have the first key in any case"
    )
    tombstone_ppm: Share = Field(0, alias="tombstones")
    """Records without a value."""
    arrivals: Literal["steady", "poisson", "burst"] = "steady"
    burst: BurstModel | None = None
    curve: CurveModel | None = None
    transaction: TransactionModel | None = None
    producer_per: Literal["process", "request"] = Field("process", alias="producer.per")
    start_us: Duration = Field(0, alias="start")
    stop_us: Duration | None = Field(None, alias="stop")
    rack: str | None = None
    principal: str = Field(ANONYMOUS, description="whom a broker's authorizer takes it for")
    kafka: Release = None
    login: LoginModel | None = Field(None, description="beside cluster.security: its credentials")
    config: Annotated[GivenSettings, ConfigSchema("producer")] = Field(default_factory=dict)

    @property
    def per_request(self) -> bool:
        """True if the application makes a producer for each record, and closes it."""
        return self.producer_per == "request"


class ProducerSpec(ProducerModel, frozen=True):
    """Producers alike, each with its own rate, index and random streams."""

    key_count: int
    """0 without keys."""
    key_skew: float
    """0.0 unless keys are ``zipf``."""
    stop_us: Duration
    """No record is meant to be sent at or after it."""
    config: Settings
    partitioner_source: str = NOT_WRITTEN
    """Text of the file that ``partitioner.class`` names; empty for a class of Kafka's."""

    def meaningless(self) -> Fields:
        """Details of keys that there are not, the rate of closed loops, and a mean."""
        names = () if self.clients is None else ("rate_per_s",)
        if self.record_sizes is not None:
            names = (*names, "record_size")
        of_keys = ("key_count", "tombstone_ppm") if self.keys == "none" else ()
        return (*names, *(of_keys if self.keys == "zipf" else ("key_skew", *of_keys)))

    @property
    def client_names(self) -> tuple[str, ...]:
        """Printed names: the name itself, or ``name-1`` to ``name-N``."""
        return numbered(self.name, self.count)

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        """Of each client, numbered as their names are; none without ``transactional.id``."""
        name = self.config.text("transactional.id")
        return numbered(name, self.count) if name else ()


class ConsumerModel(Strict, frozen=True):
    """Consumers alike: members of a group, or with ``group: none`` each reading everything."""

    quiet: ClassVar[Fields] = ("commits", "principal", "kafka", "pattern")
    behind: ClassVar[Pairs] = (("group_type", "group"),)

    name: str | None = None
    group: Group
    topics: Words = ()
    pattern: str = Field(
        "",
        alias="topics.pattern",
        description="instead of topics: a regular expression of their whole names, which the "
        "consumer matches against its metadata",
    )
    count: Count = 1
    group_type: Literal["share"] | None = Field(
        None, alias="group.type", description="share: members may share partitions (KIP-932)"
    )
    processing_us: Duration = Field(0, alias="processing")
    """Time that the application takes for each record."""
    release_ppm: Share = Field(
        0, alias="release", description="share of deliveries that the application gives back"
    )
    reject_ppm: Share = Field(
        0, alias="reject", description="share of deliveries that the application rejects"
    )
    renew_us: Duration | None = Field(
        None,
        alias="renew",
        description="of a share group: time after which the application, which works in a thread "
        "of its own, renews the locks of what it has not finished (KIP-1222)",
    )
    commits: Literal["auto", "sync", "async"] = Field(
        "auto",
        description="by the client itself (enable.auto.commit), or by the application after "
        "processing: commitSync, or commitAsync",
    )
    start_us: Duration = Field(0, alias="start")
    stop_us: Duration | None = Field(None, alias="stop")
    """Instant of leaving; ``None``: stays to the end."""
    rack: str | None = None
    principal: str = Field(ANONYMOUS, description="whom a broker's authorizer takes it for")
    kafka: Release = None
    login: LoginModel | None = Field(None, description="beside cluster.security: its credentials")
    config: Annotated[GivenSettings, ConfigSchema("consumer")] = Field(default_factory=dict)


class ConsumerSpec(ConsumerModel, frozen=True):
    """Consumers alike, with their name and their settings."""

    name: str
    config: Settings

    def meaningless(self) -> Fields:
        """Keys of share groups, outside of them; topics that a pattern matches."""
        topics = ("topics",) if self.pattern else ()
        return topics if self.is_share else (*topics, "release_ppm", "reject_ppm", "renew_us")

    @property
    def is_share(self) -> bool:
        """True for members of a share group (KIP-932)."""
        return self.group_type == "share"

    @property
    def membership(self) -> str:
        """``share``, or ``group.protocol``: classic or consumer; empty without a group."""
        if self.is_share:
            return "share"
        return self.config.text("group.protocol") if self.group else ""

    @property
    def is_explicit(self) -> bool:
        """True if the application of a share group acknowledges each record."""
        return self.config.text(SHARE_MODE) == "explicit"

    @property
    def from_earliest(self) -> bool:
        """True if a share group begins with the first record, not with the next."""
        return self.config.text(SHARE_RESET) == "earliest"

    @property
    def client_names(self) -> tuple[str, ...]:
        """Printed names: the name itself, or ``name-1`` to ``name-N``."""
        return numbered(self.name, self.count)

    @property
    def instance_ids(self) -> tuple[str, ...]:
        """``group.instance.id`` of each, numbered like the names; empty for dynamic members."""
        return numbered_or_none(self.config.text("group.instance.id"), self.count)

    @property
    def reads_committed(self) -> bool:
        """True if they read committed data only."""
        return self.config.text("isolation.level") == "read_committed"
