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
from sim.scenario.settings.resolved import Config
from sim.units import KIB, MIB, Bytes, Micros

KeyKind: TypeAlias = Literal["none", "uniform", "zipf"]
"""How keys are drawn; ``none``: null keys."""

ArrivalKind: TypeAlias = Literal["steady", "poisson", "burst"]
"""How records arrive."""

DEFAULT_ENTITY: Final = "<default>"
"""The name of every client-id, or every user, without a quota of its own."""


@dataclass(frozen=True, slots=True)
class Quantiles:
    """A delay distribution known by two of its quantiles; ``0 <= p50_us <= p99_us``."""

    p50_us: Micros
    p99_us: Micros


PREEMPTED: Final = Quantiles(2_000, 20_000)
"""How long a thread is interrupted in a race: what it waits on a busy server, a modelling choice.
Only where a scenario says something else is it written out, so that it moves no digest."""

WAKEUP: Final = Quantiles(30, 121)
"""What a thread that waited takes to run: log-normal with a sigma of 0.6, a modelling choice.
Written out as :data:`PREEMPTED` is."""

TEARDOWN_US: Final[Micros] = 60_000
"""How long the kernel takes to free the memory of a killed JVM before it closes its sockets; a
modelling choice for a heap of some GiB. Written out as :data:`PREEMPTED` is."""


@dataclass(frozen=True, slots=True)
class YoungSpec:
    """The young generation of a server's heap."""

    size_bytes: Bytes
    """What is allocated between two collections; 0: there is none."""
    request_bytes: Bytes
    """What a request allocates beside its own size."""
    pause: Quantiles
    """How long a collection stops everything."""


YOUNG: Final = YoungSpec(256 * MIB, 16 * KIB, Quantiles(5_000, 20_000))
"""Of a heap of 1 GiB, as ``kafka-server-start.sh`` has it, under G1; a modelling choice. Written
out as :data:`PREEMPTED` is."""


@dataclass(frozen=True, slots=True)
class NetworkSpec:
    """One-way delays of messages, and the bandwidth of each host's interface, each way."""

    same_rack: Quantiles
    cross_rack: Quantiles
    client: Quantiles
    """Between a client outside the racks and a server."""
    bandwidth_bytes_per_s: int


@dataclass(frozen=True, slots=True)
class DiskSpec:
    """Every log directory's disk, and how the kernel writes its page cache back."""

    write_bytes_per_s: int
    read_bytes_per_s: int
    access_us: Micros
    """Until the first byte of a read that does not go on where the last one ended."""
    flush: Quantiles
    dirty_expire_us: Micros
    """A dirty page older than this is written back (vm.dirty_expire_centisecs)."""
    dirty_writeback_us: Micros
    """How often that is looked at (vm.dirty_writeback_centisecs)."""
    dirty_background_bytes: Bytes
    """Above this, write-back begins at once (vm.dirty_background_bytes)."""
    dirty_limit_bytes: Bytes
    """Above this, writers wait (vm.dirty_bytes)."""
    page_cache_bytes: Bytes
    """Memory of each server for file pages, dirty ones included; at least the dirty limit."""
    directories: int
    """Log directories (disks) of each broker."""
    capacity_bytes: Bytes
    """What each of them holds; 0: as much as is written."""


@dataclass(frozen=True, slots=True)
class CpuSpec:
    """What a server's threads pay. Counts of threads are Kafka settings."""

    network_request_us: Micros
    """Network thread, for each message."""
    handler_request_us: Micros
    """Request handler, for each request."""
    handler_produce_partition_us: Micros
    """Request handler, for each partition of a produce request or of fetched data to append."""
    handler_fetch_partition_us: Micros
    """Request handler, for each partition of a fetch request."""
    handler_produce_bytes_per_s: int
    """Copy and CRC of produced bytes."""
    handler_fetch_bytes_per_s: int
    """Fetched bytes, sent from the page cache."""
    tls_bytes_per_s: int
    """Encryption or decryption, by the threads that send or receive, where a connection has TLS."""
    tls_handshake_us: Micros
    """Network thread, for each new connection with TLS."""
    preempted: Quantiles
    """A thread that is interrupted where a historic behaviour was a race of two threads."""
    metadata_load: Quantiles
    """A broker's way from committed records to a new image."""
    metadata_publish: Quantiles
    """From the image to changed roles, if the records change anything."""
    metadata_partition_us: Micros
    """The same, for each partition that changes."""
    wakeup: Quantiles = WAKEUP
    """A thread that waited, until it runs."""
    teardown_us: Micros = TEARDOWN_US
    """A killed server's memory, until its sockets close."""
    young: YoungSpec = YOUNG
    """A server's young generation and its collections."""


@dataclass(frozen=True, slots=True)
class HeapSpec:
    """Every broker's heap, and what things take of it."""

    size_bytes: Bytes
    used_bytes: Bytes
    """What lives there before a client comes."""
    producer_bytes: Bytes
    """For each producer id in each log that knows it."""
    connection_bytes: Bytes
    request_bytes: Bytes
    """Garbage that a request leaves."""
    collected_bytes_per_s: int
    """How fast a collection gets through what lives."""


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
    network: NetworkSpec
    disk: DiskSpec
    cpu: CpuSpec
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

    heap: HeapSpec | None = None
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
