"""Time without leaders after the controller fails: ZooKeeper against KRaft.

Metadata only: the control plane's own machines on a plain host, no clients, no data. Costs are
:class:`FailoverCosts`, one set for every row; each number has its source. Numbers that the
publications do not give (brokers, replicas) are :func:`shape_of`, one rule for every size.

Approximate: the rows of two million partitions were published without the number of brokers,
replicas and the machines used; times of other sizes are predictions. A broker's load of its own
data, and clients' discovery of new leaders, are not in these times.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from enum import StrEnum

from sim.errors import NoProgress
from sim.ids import NodeId, TopicPartition
from sim.nodes.broker.settings import LOGGED_STATE_NS
from sim.protocol import events as ev
from sim.protocol.controller.types import ControllerConfig
from sim.protocol.metadata.image import MetadataImage, PartitionRegistration
from sim.protocol.zk_mode.broker_types import ZkBrokerConfig
from sim.protocol.zk_mode.controller_types import StatesLogged, ZkControllerConfig
from sim.protocol.zk_mode.znodes import LeaderAndIsrRequest, UpdateMetadataRequest
from sim.protocol.zookeeper.session import SessionConfig
from sim.rng import Streams
from sim.studies.kraft_cluster import KraftCluster, KraftCosts
from sim.studies.loop import Costs, Loop
from sim.studies.zk_cluster import Assignments, ZkCluster, tree_of
from sim.studies.zookeeper import Ensemble
from sim.units import HOUR, SECOND, Micros, show_duration


class ControlPlane(StrEnum):
    """Store of the metadata."""

    ZOOKEEPER = "zookeeper"
    KRAFT = "kraft"


class Event(StrEnum):
    """Event that the cluster undergoes."""

    CONTROLLED_SHUTDOWN = "controlled shutdown"
    """A broker that is not the controller requests controlled shutdown; the time until it is
    granted."""
    UNCONTROLLED_SHUTDOWN = "uncontrolled shutdown"
    """The controller and a broker die at once (in ZooKeeper mode they are one process); the time
    until the last broker has the last new leader."""


@dataclass(frozen=True, slots=True)
class FailoverCosts:
    """Costs in microseconds where not stated otherwise; the same for every row.

    "200K" is Jun Rao, "Apache Kafka Supports 200K Partitions Per Cluster" (2018); "2M" is
    Confluent's measurement of two million partitions (2021). Numbers without a publication are
    working values: twice as large, none of them makes a ZooKeeper time longer by a fifth.
    """

    one_way_us: Micros = 50
    """One-way delay of a message. A read takes two of them, a server's work and the controller's:
    0.28 ms one after the other, which is 28 s for 100,000 partitions (200K, Kafka 1.0)."""
    zk_request_us: Micros = 40
    """A ZooKeeper server's work for one request; with ``one_way_us``."""
    zk_answer_us: Micros = 140
    """The controller's work for one response of ZooKeeper, all that is left when reads overlap: 14
    s for 100,000 partitions (200K, Kafka 1.1)."""
    fsync_us: Micros = 500
    """Forcing a log to disk; working value for a solid-state disk."""
    apply_us: Micros = 20
    """A broker's work for a partition whose role changes (ZooKeeper mode); working value."""
    metadata_us: Micros = 2
    """A broker's, and the controller's, work for a partition in an UpdateMetadata request; working
    value."""
    logged_state_ns: int = LOGGED_STATE_NS
    kraft_record_us: Micros = 64
    """A partition's change in KRaft, from the decision to the replica that follows it: 32 s for the
    500,000 replicas of a broker in controlled shutdown (2M). Half is charged to the controller,
    half to each broker; the real ratio is not published."""


PUBLISHED = FailoverCosts()
"""The costs of the table."""


@dataclass(frozen=True, slots=True)
class ClusterShape:
    """A cluster."""

    partitions: int
    brokers: int = 12
    replication: int = 3
    partitions_per_topic: int = 50
    zookeepers: int = 3
    controllers: int = 3
    session_us: Micros = 18 * SECOND
    """``zookeeper.session.timeout.ms``."""
    in_flight: int = 10
    """``zookeeper.max.in.flight.requests``; 1 represents versions before 1.1: one operation after
    the other, and requests to brokers for each partition."""
    logs_every_state: bool = False
    """Each election logs the states of all partitions (KAFKA-6116)."""

    def assignments(self) -> Assignments:
        """Replicas in turn, so that brokers have equal numbers of leaders and followers."""
        brokers, factor, size = self.brokers, self.replication, self.partitions_per_topic
        rings = [
            tuple((first + step) % brokers + 1 for step in range(factor))
            for first in range(brokers)
        ]
        return {
            f"t{start // size}": tuple(
                rings[number % brokers]
                for number in range(start, min(start + size, self.partitions))
            )
            for start in range(0, self.partitions, size)
        }


@dataclass(frozen=True, slots=True)
class FailoverRow:
    """One line of the study's table."""

    partitions: int
    control_plane: str
    event: str
    seconds: float
    detection_seconds: float
    """Of these, until the failure was detected: a session's end, or a new leader of the quorum."""
    load_seconds: float
    """Of these, until the new controller had read its state."""
    replicas_moved: int
    """Replicas on the broker that failed."""


SIZES = (10_000, 200_000, 2_000_000)
"""The table's sizes."""


def shape_of(partitions: int) -> ClusterShape:
    """The cluster of a size: twelve brokers with three replicas of everything."""
    return ClusterShape(partitions)


class ZkCosts(Costs):
    """Costs of a ZooKeeper-mode broker's threads."""

    def __init__(self, costs: FailoverCosts) -> None:
        self.costs = costs

    def lane(self, machine: str, event: object) -> int:  # noqa: ARG002 - there is one machine
        """The controller's thread handles ZooKeeper's events; another serves requests."""
        return 1 if isinstance(event, ev.RequestReceived) else 0

    def event_us(self, event: object) -> Micros:
        """Cost of an event."""
        if isinstance(event, ev.ResponseReceived | ev.NotificationReceived):
            return self.costs.zk_answer_us if event.sender >= _FIRST_ZOOKEEPER else 0
        if isinstance(event, ev.RequestReceived):
            request = event.request
            if isinstance(request, LeaderAndIsrRequest | UpdateMetadataRequest):
                return self.costs.metadata_us * len(request.partitions)
        return 0

    def effect_us(self, effect: object) -> Micros:
        """Cost of a broker's role changes, and of the controller's log."""
        if isinstance(effect, StatesLogged):
            return self.costs.logged_state_ns * effect.partitions // 1_000
        return self.costs.apply_us * len(getattr(effect, "entries", ()))


_FIRST_ZOOKEEPER: NodeId = 5001
_STEP_US: Micros = 100_000
_PATIENCE_US: Micros = 24 * HOUR


class _ServerCosts(Costs):
    """Costs of a ZooKeeper server's thread."""

    def __init__(self, request_us: Micros) -> None:
        self.request_us = request_us

    def event_us(self, event: object) -> Micros:
        """Cost of requests; responses and timers cost nothing."""
        return self.request_us if isinstance(event, ev.RequestReceived) else 0


def measure(
    shape: ClusterShape,
    plane: ControlPlane,
    event: Event,
    costs: FailoverCosts = PUBLISHED,
    seed: int = 1,
) -> FailoverRow:
    """Runs the event once on a cluster at rest."""
    run = _zookeeper if plane is ControlPlane.ZOOKEEPER else _kraft
    with _not_collecting():
        total, detection, load = run(shape, event, costs, seed)
    return FailoverRow(
        shape.partitions,
        plane.value,
        event.value,
        total / SECOND,
        detection / SECOND,
        load / SECOND,
        shape.partitions * shape.replication // shape.brokers,
    )


def table(
    sizes: tuple[int, ...] = SIZES, costs: FailoverCosts = PUBLISHED
) -> Iterator[FailoverRow]:
    """All rows, the smallest size first."""
    for size in sizes:
        for plane in ControlPlane:
            for event in Event:
                yield measure(shape_of(size), plane, event, costs)


@contextmanager
def _not_collecting() -> Iterator[None]:
    """Suspends garbage collection: the cluster is one cycle, of millions of partitions."""
    collected = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collected:
            gc.enable()
        gc.collect()


def _zookeeper(
    shape: ClusterShape, event: Event, costs: FailoverCosts, seed: int
) -> tuple[Micros, Micros, Micros]:
    loop = Loop(costs.one_way_us)
    ensemble = Ensemble(
        loop,
        shape.zookeepers,
        Streams(seed),
        fsync_us=costs.fsync_us,
        costs=_ServerCosts(costs.zk_request_us),
        tree=tree_of(shape.assignments()),
    )
    in_flight = shape.in_flight
    config = ZkBrokerConfig(
        SessionConfig(shape.session_us, in_flight),
        ZkControllerConfig(
            auto_leader_rebalance=False,
            batched=in_flight > 1,
            logs_every_state=shape.logs_every_state,
        ),
        shutdown_timeout_us=_PATIENCE_US,
    )
    cluster = ZkCluster(loop, ensemble, shape.brokers, config, costs=ZkCosts(costs))

    def at_rest() -> bool:
        controller = cluster.controller()
        return (
            controller is not None
            and controller.idle
            and len(controller.controller.brokers) == len(cluster.running())
        )

    _run(loop, at_rest)
    controller = cluster.controller()
    assert controller is not None
    start = loop.now
    if event is Event.CONTROLLED_SHUTDOWN:
        leaving = next(n for n in cluster.brokers if n != controller.node)
        cluster.stop(leaving)
        _run(loop, lambda: leaving in cluster.granted)
        return cluster.granted[leaving] - start, 0, 0
    loop.kill(controller.node)
    _run(loop, at_rest)
    last = max(cluster.loaded_at, *(cluster.applied_at[node] for node in cluster.running()))
    return last - start, cluster.elected_at - start, cluster.loaded_at - cluster.elected_at


def _kraft(
    shape: ClusterShape, event: Event, costs: FailoverCosts, seed: int
) -> tuple[Micros, Micros, Micros]:
    loop = Loop(costs.one_way_us)
    half = costs.kraft_record_us // 2
    config = ControllerConfig(auto_leader_rebalance=False)
    cluster = KraftCluster(
        loop,
        image_of(shape, config),
        shape.brokers,
        shape.controllers,
        Streams(seed),
        controller_costs=KraftCosts(costs.fsync_us, costs.kraft_record_us - half),
        broker_costs=KraftCosts(costs.fsync_us, 0),
        replay_us=half,
        config=config,
    )

    def in_service() -> bool:
        active = cluster.active()
        return (
            active is not None
            and sum(not b.fenced for b in active.committed.brokers.values()) == shape.brokers
            and cluster.is_settled()
        )

    _run(loop, in_service)
    start = loop.now
    if event is Event.CONTROLLED_SHUTDOWN:
        cluster.stop(1)
        _run(loop, lambda: 1 in cluster.granted)
        return cluster.granted[1] - start, 0, 0
    active = cluster.active()
    assert active is not None
    loop.kill(active.node)
    loop.kill(1)

    def recovered() -> bool:
        others = [n for n in cluster.applied if n != 1]
        return cluster.decided_at > start and all(
            cluster.applied_at.get(n, -1) > start for n in others
        )

    _run(loop, recovered)
    last = max(cluster.applied_at.values())
    return last - start, cluster.decided_at - start, 0


def _run(loop: Loop, done: Callable[[], bool]) -> None:
    """Runs until ``done``, checked every tenth of a second.

    Raises:
        NoProgress: If that takes more than a day.
    """
    deadline = loop.now + _PATIENCE_US
    while not done():
        if loop.now >= deadline:
            raise NoProgress(f"no end within {show_duration(_PATIENCE_US)}")
        loop.run(loop.now + _STEP_US)


def image_of(shape: ClusterShape, config: ControllerConfig) -> MetadataImage:
    """Metadata of a healthy cluster before its brokers register, as KRaft controllers have it."""
    image = MetadataImage(features=config.features)
    for topic, replicas in shape.assignments().items():
        topic_id = topic  # topic ids are not used here
        image.topic_ids[topic] = topic_id
        image.topic_names[topic_id] = topic
        image.partition_counts[topic] = len(replicas)
        same: dict[tuple[NodeId, ...], PartitionRegistration] = {}
        for number, brokers in enumerate(replicas):
            if brokers not in same:
                same[brokers] = PartitionRegistration(
                    topic_id, brokers, brokers, brokers[0], leader_epoch=0, partition_epoch=0
                )
            image.partitions[TopicPartition(topic, number)] = same[brokers]
    return image


def as_dict(row: FailoverRow | FailoverCosts) -> dict[str, object]:
    """The row as a dictionary, for programs."""
    return asdict(row)
