"""The parts of a scenario as frozen data: what the loader makes and the run is built from.

Durations are whole microseconds, sizes bytes, rates whole records a second, bandwidths bytes a
second. Kafka's settings stay under their own names in a
:class:`~sim.scenario.settings.resolved.Config`.
"""

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from sim.checking.scope import EVERYTHING, Scope
from sim.ids import NodeId, server_name
from sim.protocol.messages.admin import QuotaAlteration, quota_entity_text
from sim.protocol.metadata.image import QuotaEntity
from sim.scenario.model.machines import CpuModel, DiskModel, HeapModel, NetworkModel
from sim.scenario.settings.resolved import Config
from sim.units import Bytes, Micros

KeyKind: TypeAlias = Literal["none", "uniform", "zipf"]
"""How keys are drawn; ``none``: null keys."""

ArrivalKind: TypeAlias = Literal["steady", "poisson", "burst"]
"""How records arrive."""

DEFAULT_ENTITY: Final = "<default>"
"""The name of every client-id, or every user, without a quota of its own."""


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """A broker, a controller or a ZooKeeper server, alone on its host."""

    node: NodeId
    rack: str
    """Empty: no rack."""

    @property
    def name(self) -> str:
        """Printed name: ``broker-1``, ``controller-1``."""
        return server_name(self.node)


@dataclass(frozen=True, slots=True)
class ZooKeeperSpec:
    """The ensemble of a cluster in ZooKeeper mode."""

    servers: tuple[ServerSpec, ...]
    tick_us: Micros
    """``tickTime``."""
    sync_limit: int
    """``syncLimit``, in ticks."""


@dataclass(frozen=True, slots=True)
class ClusterSpec:
    """The servers and what lies between them."""

    kafka: str
    """Version whose behaviour is simulated."""
    racks: tuple[str, ...]
    """Names in the order of the file; empty when the brokers have no racks."""
    brokers: tuple[ServerSpec, ...]
    controllers: tuple[ServerSpec, ...]
    config: Config
    """Broker, controller and coordinator settings."""
    network: NetworkModel
    disk: DiskModel
    cpu: CpuModel
    replication: str = "isr"
    """Kafka's in-sync replicas (isr), or a Raft group for each partition (raft)."""
    combined: bool = False
    """Whether the controllers are brokers as well, in one process each."""
    initial_controllers: int = 0
    """Of a dynamic quorum: how many controllers, from the first on, vote when it is formatted; 0:
    the quorum is static, and all of them vote for good."""
    zookeeper: ZooKeeperSpec | None = None
    """``None``: the controllers of KRaft."""
    internal_replicas: tuple[tuple[str, tuple[tuple[NodeId, ...], ...]], ...] = ()
    """Replicas of each partition of internal topics, where the scenario says them."""
    initial_brokers: int = 0
    """How many brokers, from the first on, the cluster has at its start; 0: all of them. The others
    come when the administrator adds them."""

    heap: HeapModel | None = None
    """``None``: memory has no end."""

    def internal_assignment(self, topic: str) -> tuple[tuple[NodeId, ...], ...]:
        """Replicas of each partition of an internal topic; empty: the controller places them."""
        return dict(self.internal_replicas).get(topic, ())

    @property
    def first_brokers(self) -> tuple[ServerSpec, ...]:
        """The brokers that the cluster has at its start."""
        return self.brokers[: self.initial_brokers or len(self.brokers)]

    @property
    def spare_brokers(self) -> tuple[ServerSpec, ...]:
        """Those that may be added later."""
        return self.brokers[len(self.first_brokers) :]

    @property
    def zookeepers(self) -> tuple[ServerSpec, ...]:
        """Servers of the ensemble; none under KRaft."""
        return () if self.zookeeper is None else self.zookeeper.servers

    def servers_in(self, rack: str) -> tuple[ServerSpec, ...]:
        """The brokers, controllers and ZooKeeper servers of a rack."""
        return tuple(s for s in self.servers if s.rack == rack)

    @property
    def servers(self) -> tuple[ServerSpec, ...]:
        """Brokers, then controllers or ZooKeeper servers, each process once."""
        return tuple(dict.fromkeys((*self.brokers, *self.controllers, *self.zookeepers)))


@dataclass(frozen=True, slots=True)
class TopicSpec:
    """A topic, created before the workload begins."""

    name: str
    partitions: int
    replication_factor: int
    config: Config
    """Topic settings: its own, else the broker's, else Kafka's default."""
    assignment: tuple[tuple[NodeId, ...], ...] = ()
    """Replicas of each partition, the preferred leader first; empty: the controller places them."""


@dataclass(frozen=True, slots=True)
class BurstSpec:
    """For ``on_us`` the peak rate, then for ``off_us`` the ordinary one, over and over."""

    on_us: Micros
    off_us: Micros
    peak_per_s: int


@dataclass(frozen=True, slots=True)
class TransactionSpec:
    """A producer's transactions: so many ``records`` each, or 0 and ``every_us`` long."""

    records: int
    every_us: Micros
    abort_ppm: int
    """Millionths of them that the application aborts of its own will."""


@dataclass(frozen=True, slots=True)
class ProducerSpec:
    """``count`` producers alike, each with its own rate, index and random streams."""

    name: str
    topic: str
    count: int
    rate_per_s: int
    """Records a second of each producer; between bursts when arrivals come in bursts."""
    record_size: Bytes
    """Of each record's value; at least 24."""
    keys: KeyKind
    key_count: int
    """Distinct keys; 0 without keys."""
    key_skew: float
    """Exponent of the Zipf law; 0.0 unless keys are ``zipf``."""
    tombstone_ppm: int
    """Records without a value, in a million; 0 without keys."""
    header_count: int
    """Headers of each record."""
    header_bytes: Bytes
    """Of each header's value."""
    compressibility: float
    """Share of a value's filler that compresses to nearly nothing; the rest is noise."""
    arrivals: ArrivalKind
    burst: BurstSpec | None
    transaction: TransactionSpec | None
    """``None`` without ``transactional.id``."""
    start_us: Micros
    stop_us: Micros
    """No record is meant to be sent at or after it."""
    rack: str
    """Where its host stands; empty: outside the racks."""
    config: Config
    per_request: bool = False
    """Whether the application makes a producer for each record, and closes it."""

    @property
    def client_names(self) -> tuple[str, ...]:
        """Printed names: the name itself, or ``name-1`` to ``name-N``."""
        return numbered(self.name, self.count)

    @property
    def transactional_ids(self) -> tuple[str, ...]:
        """Of each client, numbered as their names are; none without ``transactional.id``."""
        name = self.config.text("transactional.id")
        return numbered(name, self.count) if name else ()


@dataclass(frozen=True, slots=True)
class ShareSpec:
    """What makes consumers members of a share group (KIP-932)."""

    explicit: bool
    """Whether the application says what becomes of each record."""
    release_ppm: int
    """Millionths of deliveries that it gives back."""
    reject_ppm: int
    """Millionths of deliveries that it rejects."""
    from_earliest: bool
    """Where the group begins: with the first record, or with the next."""


@dataclass(frozen=True, slots=True)
class ConsumerSpec:
    """``count`` consumers alike: members of one group, or each reading everything alone."""

    name: str
    group: str
    """``group.id``; empty for none: every partition is assigned by hand."""
    topics: tuple[str, ...]
    count: int
    processing_us: Micros
    """Time the application takes for each record."""
    start_us: Micros
    stop_us: Micros | None
    """Instant of leaving; ``None``: stays to the end."""
    rack: str
    config: Config
    share: ShareSpec | None = None
    """``None``: no members of a share group."""
    commits: Literal["auto", "sync", "async"] = "auto"
    """Who commits: the client itself, or the application after processing."""

    @property
    def client_names(self) -> tuple[str, ...]:
        """Printed names: the name itself, or ``name-1`` to ``name-N``."""
        return numbered(self.name, self.count)

    @property
    def instance_ids(self) -> tuple[str, ...]:
        """``group.instance.id`` of each, numbered like the names; empty for dynamic members."""
        given = self.config.text("group.instance.id")
        return numbered(given, self.count) if given else ("",) * self.count

    @property
    def reads_committed(self) -> bool:
        """Whether they read committed data only."""
        return self.config.text("isolation.level") == "read_committed"


@dataclass(frozen=True, slots=True)
class QuotaSpec:
    """Quotas of one entity; ``None`` removes one."""

    alteration: QuotaAlteration

    @property
    def entity(self) -> QuotaEntity:
        """Whom they are for."""
        return self.alteration.entity

    @property
    def text(self) -> str:
        """Whom they are for, in words."""
        return quota_entity_text(self.entity)


@dataclass(frozen=True, slots=True)
class RunSpec:
    """How long, and how it ends."""

    for_us: Micros
    drain: bool
    """``heal and drain``: heal and restart everything, then wait until clients are done."""
    seed: int
    drain_timeout_us: Micros


@dataclass(frozen=True, slots=True)
class Expectation:
    """One line of ``expect``: a verdict's number and the interval it must lie in.

    Bounds are whole numbers: records, or microseconds for times. ``None``: no bound on that side.
    """

    name: str
    asked: str
    """As written in the scenario."""
    low: int | None
    high: int | None
    low_open: bool = False
    """Whether ``low`` itself is excluded."""
    high_open: bool = False
    """Whether ``high`` itself is excluded."""
    scope: Scope = EVERYTHING
    """Which part of the run it is about."""

    def holds(self, found: int) -> bool:
        """Whether a number lies in the interval."""
        above = self.low is None or found > self.low or (found == self.low and not self.low_open)
        below = (
            self.high is None or found < self.high or (found == self.high and not self.high_open)
        )
        return above and below


def numbered(name: str, count: int) -> tuple[str, ...]:
    """Names of ``count`` clients: the name itself, or ``name-1`` to ``name-N``."""
    if count == 1:
        return (name,)
    return tuple(f"{name}-{number}" for number in range(1, count + 1))
