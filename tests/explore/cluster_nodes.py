"""The processes of a whole cluster: what each holds, what its disk keeps, and how it starts.

Every mind is the real one: a controller is a ``Quorum`` and a ``Controller``, a broker a ``Quorum``
as observer, a ``BrokerLifecycle`` and a ``ReplicaManager``. Logs are lists.
"""

import random
from collections import deque
from dataclasses import dataclass, field

from sim.ids import TopicPartition
from sim.protocol.broker import lifecycle as life
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.replication.fetcher import FetcherConfig
from sim.protocol.broker.replication.replica_manager import ReplicaManager
from sim.protocol.broker.truncation.registry import TRUNCATIONS
from sim.protocol.controller.controller import Controller
from sim.protocol.controller.types import ControllerConfig
from sim.protocol.kraft.raft import Quorum
from sim.protocol.kraft.types import QuorumConfig, QuorumState
from sim.protocol.metadata.image import MetadataImage
from sim.units import MS, SECOND
from tests.explore.brokers import EMPTY, P, View
from tests.log.list_log import ListLog
from tests.protocol.kraft.list_metadata_log import ListMetadataLog

VOTERS = (3001, 3002, 3003)
BROKERS = (1, 2, 3)
SESSION_US = 3 * SECOND


@dataclass(frozen=True)
class Plan:
    """What kind of cluster it is; two of these are planted defects."""

    truncation: str = "kip320"
    min_in_sync: int = 2
    remembers_vote: bool = True
    repeats: bool = False
    """Whether a leader is shown metadata of a partition epoch that it has from the controller's
    answer, as in Kafka: see ``test_explore_truncation.py`` for what this breaks."""


@dataclass
class Node:
    """A process, and what is left of it when it ends."""

    id: int
    metadata_log: ListMetadataLog = field(default_factory=ListMetadataLog)
    incarnation: int = 0
    machines: dict = field(default_factory=dict)
    """By name; empty while no process runs."""
    timers: dict = field(default_factory=dict)
    backlog: deque = field(default_factory=deque)
    """Events of the quorum while its disk works."""
    disk: tuple | None = None
    """Effects of the quorum, the one whose fsync is under way, and where the log ended."""
    told: int = 0
    """Offset below which this process was told of commits."""

    @property
    def is_up(self) -> bool:
        return bool(self.machines)

    @property
    def quorum(self) -> Quorum:
        return self.machines["quorum"]

    def stop(self) -> None:
        """The process is gone, in the middle of whatever it did."""
        self.machines, self.timers, self.disk, self.told = {}, {}, None, 0
        self.backlog.clear()

    def _begin(self, state: QuorumState) -> None:
        self.incarnation += 1
        draws = random.Random(self.id * 1_000 + self.incarnation)
        self.machines["quorum"] = Quorum(
            # Without a linger: when a batch is written is the explorer's choice anyway.
            self.id, VOTERS, self.metadata_log, draws.random,
            config=QuorumConfig(append_linger_us=0), state=state,
        )  # fmt: skip


@dataclass
class ControllerNode(Node):
    """A voter."""

    state: QuorumState = field(default_factory=QuorumState)
    flushed: int = 0

    @property
    def is_active(self) -> bool:
        return self.is_up and self.machines["controller"].is_active

    def start(self, plan: Plan) -> None:
        self._begin(self.state if plan.remembers_vote else QuorumState(self.state.epoch))
        config = ControllerConfig(session_timeout_us=SESSION_US, no_op_interval_us=5 * SECOND)
        draws = random.Random(self.id * 7_000 + self.incarnation)
        self.machines["controller"] = Controller(self.id, draws.random, config)

    def lose_power(self, kept: float) -> int:
        """Of what was not flushed, only a part is left; returns how many offsets are gone."""
        log = self.metadata_log
        end = log.log_end_offset
        log.truncate_to(_between(min(self.flushed, end), end, kept))
        return end - log.log_end_offset


@dataclass
class BrokerNode(Node):
    """A broker; it never flushes its logs by itself."""

    log: ListLog = field(default_factory=ListLog)
    checkpoint: int = 0
    """High watermark of the partition, as the last process wrote it down."""
    image: MetadataImage = field(default_factory=MetadataImage)
    pending: deque = field(default_factory=deque)
    """Commits that the observer told of and the broker has not applied, with their numbers."""
    is_slow: bool = False
    """Whether it applies metadata only when made to."""
    is_published: bool = False
    view: View = field(default_factory=lambda: View((), EMPTY, False))

    @property
    def replicas(self) -> ReplicaManager:
        return self.machines["replicas"]

    @property
    def epoch(self) -> int:
        return self.machines["lifecycle"].broker_epoch

    @property
    def serves(self) -> bool:
        """Whether requests are answered: since 3.5 a broker applies metadata, and may lead, before
        it is registered, and answers nobody before it is unfenced.
        """
        states = life.LifecycleState.RUNNING, life.LifecycleState.PENDING_CONTROLLED_SHUTDOWN
        return self.is_up and self.machines["lifecycle"].state in states

    @property
    def leads(self) -> bool:
        return self.serves and P in self.replicas.replicas and self.replicas.replicas[P].is_leader

    def start(self, plan: Plan) -> None:
        self._begin(QuorumState())
        self.image, self.is_published = MetadataImage(), False
        config = ReplicaManagerConfig(
            lag_time_max_us=2 * SECOND,
            fetcher=FetcherConfig(backoff_us=200 * MS, socket_timeout_us=2 * SECOND),
            truncation=TRUNCATIONS[plan.truncation],
        )
        marks = {P: self.checkpoint}
        self.machines["replicas"] = ReplicaManager(self.id, config, _Open(self), marks)
        who = life.Introduction(self.id, f"{self.id}/{self.incarnation}", "", (), -1)
        times = life.LifecycleConfig(
            heartbeat_interval_us=1 * SECOND,
            session_timeout_us=SESSION_US,
            registration_timeout_us=600 * SECOND,
        )
        self.machines["lifecycle"] = life.BrokerLifecycle(who, VOTERS, _Applied(self), times)

    def stop(self) -> None:
        if P in self.replicas.replicas:
            self.checkpoint = self.replicas.replicas[P].high_watermark
        self.pending.clear()
        self.is_slow = False
        super().stop()

    def lose_power(self, kept: float) -> int:
        """Of the log, only a part is left; returns how many offsets are gone."""
        end = self.log.log_end_offset
        self.log.truncate_to(_between(0, end, kept))
        self.checkpoint = min(self.checkpoint, self.log.log_end_offset)
        self.metadata_log.truncate_to(_between(0, self.metadata_log.log_end_offset, kept))
        return end - self.log.log_end_offset


class _Open:
    """Opens the one log; a class, so that a cluster can be pickled."""

    def __init__(self, node: BrokerNode) -> None:
        self.node = node

    def __call__(self, partition: TopicPartition, topic_id: str, configs: dict) -> ListLog:
        assert partition == P
        return self.node.log


class _Applied:
    """Up to where the broker has applied metadata."""

    def __init__(self, node: BrokerNode) -> None:
        self.node = node

    def __call__(self) -> int:
        return self.node.image.offset - 1 if self.node.is_published else -1


def _between(low: int, high: int, part: float) -> int:
    return low + int((high - low) * part)
