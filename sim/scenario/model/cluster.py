"""The cluster of a scenario: as a file has it, and with every server in its place."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, TypeAlias

from pydantic import Field, PlainValidator, WithJsonSchema

from sim.ids import FIRST_CONTROLLER_ID, NodeId, server_name
from sim.protocol.acls import ANONYMOUS
from sim.scenario.behaviours.versions import DEFAULT
from sim.scenario.model.hardware import ComputerModel, HardwareModel
from sim.scenario.model.machines import (
    CpuModel,
    DiskModel,
    HeapModel,
    NetworkModel,
    ObjectStoreModel,
)
from sim.scenario.model.security import SecurityModel
from sim.scenario.model.topics import Assignment
from sim.scenario.model.types import (
    NOT_WRITTEN,
    ConfigSchema,
    Duration,
    Fields,
    GivenSettings,
    Settings,
    Strict,
    Version,
    refuse,
)
from sim.units import SECOND


def _count_or_racks(value: object) -> int | dict[str, int]:
    hint = "a whole number, or how many in each rack, as in {a: 1, b: 1}"
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return value
    if isinstance(value, dict) and value:
        counts = {name: count for name, count in value.items() if type(count) is int and count >= 0}
        if len(counts) == len(value):
            return counts
    raise refuse(repr(value), hint)


CountOrRacks: TypeAlias = Annotated[
    int | dict[str, int],
    PlainValidator(_count_or_racks),
    WithJsonSchema({"type": ["integer", "object"]}),
]


class ZooKeeperModel(Strict, frozen=True):
    """The ensemble of ZooKeeper mode, in place of controllers; its settings have its own names."""

    servers: CountOrRacks = 3
    tick_us: Duration = Field(2 * SECOND, alias="tickTime")
    sync_limit: Annotated[int, Field(ge=1, le=1_000)] = Field(2, alias="syncLimit")
    """In ticks."""


class ClusterModel(Strict, frozen=True):
    """Servers, and what lies between them."""

    quiet: ClassVar[Fields] = ("quorum", "internal_replicas", "principal")

    kafka: Version = DEFAULT
    # Aliases that are names of the servers below are annotations: mypy takes others for attributes.
    broker_count: Annotated[
        Annotated[int, Field(ge=1, le=1_000)] | None, Field(alias="brokers")
    ] = None
    rack_counts: Annotated[
        Annotated[dict[str, Annotated[int, Field(ge=0, le=1_000)]], Field(min_length=1)] | None,
        Field(alias="racks"),
    ] = None
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
    controller_counts: Annotated[
        CountOrRacks | None,
        Field(alias="controllers", description="default: 3, or none with combined"),
    ] = None
    combined_count: Annotated[
        Annotated[int, Field(ge=1, le=99, description="brokers that are controllers too")] | None,
        Field(alias="combined"),
    ] = None
    quorum: Literal["static", "dynamic"] = "static"
    initial_controllers: (
        Annotated[int, Field(ge=1, le=99, description="default: all of them")] | None
    ) = Field(None, alias="initial.controllers")
    zookeeper: ZooKeeperModel | None = None
    replication: Literal["isr", "raft"] = "isr"
    """Kafka's in-sync replicas, or a Raft group for each partition."""
    internal_replicas: dict[
        Literal["__consumer_offsets", "__transaction_state"], list[list[str]]
    ] = Field(
        default_factory=dict,
        alias="internal.replicas",
        description="brokers of each partition of an internal topic, the preferred leader first",
    )
    principal: str = Field(
        ANONYMOUS, description="of the servers and of the administrator; one of super.users"
    )
    security: SecurityModel | None = Field(
        None, description="listener of the clients; default: each is taken for its principal"
    )
    config: Annotated[GivenSettings, ConfigSchema("broker")] = Field(default_factory=dict)
    network: NetworkModel = Field(default_factory=NetworkModel.model_construct)
    disk: DiskModel = Field(default_factory=DiskModel.model_construct)
    cpu: CpuModel = Field(default_factory=CpuModel.model_construct)
    heap: HeapModel | None = Field(None, description="default: no end of memory")
    object_store: ObjectStoreModel | None = Field(
        None, alias="object-store", description="default: no tiered storage"
    )
    hardware: HardwareModel | None = None

    @property
    def combined(self) -> bool:
        """True if the controllers are brokers as well, in one process each."""
        return self.combined_count is not None


_AS_ALL: Final = ComputerModel.model_construct()


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


class ClusterSpec(ClusterModel, frozen=True):
    """The cluster with its servers."""

    initial_brokers: int
    """Number of brokers, from the first on, at the cluster's start; 0: all of them. The others come
    when the administrator adds them."""
    initial_controllers: int
    """Of a dynamic quorum: how many controllers, from the first on, vote when it is formatted; 0:
    the quorum is static, and all of them vote for good."""
    config: Settings
    """Broker, controller and coordinator settings."""
    brokers: tuple[ServerSpec, ...] = NOT_WRITTEN
    controllers: tuple[ServerSpec, ...] = NOT_WRITTEN
    zookeepers: tuple[ServerSpec, ...] = NOT_WRITTEN
    """Servers of the ensemble; none under KRaft."""
    placed: tuple[tuple[str, Assignment], ...] = NOT_WRITTEN
    """Replicas of internal topics, where the scenario names them."""

    def meaningless(self) -> Fields:
        """Numbers of first servers, if those are all."""
        names = ("initial_brokers", "initial_controllers")
        return tuple(name for name in names if not getattr(self, name))

    @property
    def preempts(self) -> bool:
        """True if threads are interrupted, which shows the races of a release."""
        return self.replication == "isr" and "preempted" in self.cpu.model_fields_set

    def internal_assignment(self, topic: str) -> Assignment:
        """Replicas of each partition of an internal topic; empty: the controller places them."""
        return dict(self.placed).get(topic, ())

    def disk_of(self, server: ServerSpec) -> DiskModel:
        """The disks of a server."""
        own = self._computer(server).disk
        return self.disk if own is None else self.disk.model_copy(update=own.figures)

    def bandwidth_of(self, server: ServerSpec) -> int:
        """Bytes a second, each way, of a server's interface."""
        own = self._computer(server).network
        figures = {} if own is None else own.figures
        return int(figures.get("bandwidth_bytes_per_s", self.network.bandwidth_bytes_per_s))

    def cores_of(self, server: ServerSpec) -> int:
        """Cores of a server; 0: no limit."""
        everywhere = self.hardware and self.hardware.cores
        return self._computer(server).cores or everywhere or 0

    def _computer(self, server: ServerSpec) -> ComputerModel:
        servers = {} if self.hardware is None else self.hardware.servers
        return servers.get(server.name, _AS_ALL)

    @property
    def racks(self) -> tuple[str, ...]:
        """Names in the order of the file; empty when the brokers have no racks."""
        return tuple(self.rack_counts or ())

    @property
    def first_brokers(self) -> tuple[ServerSpec, ...]:
        """The brokers that the cluster has at its start."""
        return self.brokers[: self.initial_brokers or len(self.brokers)]

    @property
    def spare_brokers(self) -> tuple[ServerSpec, ...]:
        """Those that may be added later."""
        return self.brokers[len(self.first_brokers) :]

    def servers_in(self, rack: str) -> tuple[ServerSpec, ...]:
        """The brokers, controllers and ZooKeeper servers of a rack."""
        return tuple(s for s in self.servers if s.rack == rack)

    @property
    def servers(self) -> tuple[ServerSpec, ...]:
        """Brokers, then controllers or ZooKeeper servers, each process once."""
        return tuple(dict.fromkeys((*self.brokers, *self.controllers, *self.zookeepers)))
