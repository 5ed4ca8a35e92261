"""Faults as data: what goes wrong, to whom, from when, for how long.

A fault says what is done, never what it must bring about: whether anything came of it is asked of
the substrate when it is healed. Left out: clocks that drift.

Source: the fault table of the design, section 2; Kafka's Trogdor fault specs for the idea that a
fault is a value.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from sim.ids import NO_LEADER, NodeId, TopicPartition
from sim.protocol.messages import Request
from sim.units import Micros

FaultKind: TypeAlias = Literal[
    "crash",
    "restart",
    "controlled-shutdown",
    "pause",
    "power-loss",
    "partition",
    "delay",
    "loss",
    "bandwidth",
    "hold",
    "drop",
    "clock-jump",
    "slow-disk",
    "stalled-disk",
    "failed-disk",
    "full-disk",
    "lying-flush",
    "wiped-disk",
    "no-file-descriptors",
    "slow-cpu",
    "lost-replica",
    "corrupt-replica",
    "torn-write",
    "misdirected-write",
    "rolling-restart",
    "load-surge",
    "create-topic",
    "delete-topic",
    "create-partitions",
    "alter-config",
    "reassign",
    "cancel-reassignment",
    "elect-leader",
    "delete-records",
    "alter-replica-log-dirs",
    "one-of",
    "alter-client-quotas",
    "add-controller",
    "remove-controller",
    "add-broker",
    "decommission",
]
"""The word after ``do:``; ``one-of`` becomes another one before a run begins."""

TargetKind: TypeAlias = Literal[
    "node", "rack", "leader", "follower", "controller leader", "zookeeper leader",
    "random broker", "random rack", "all brokers", "each",
]  # fmt: skip
"""How a target is to be resolved."""


@dataclass(frozen=True, slots=True)
class Target:
    """Whom a fault hits; roles are resolved when the fault starts."""

    kind: TargetKind
    text: str
    """As written in the scenario."""
    names: tuple[str, ...] = ()
    """The printed names, for ``node`` and ``rack``; known before the run."""
    partition: TopicPartition | None = None
    """For ``leader`` and ``follower``."""
    parts: tuple["Target", ...] = ()
    """For ``each``: the components that fail by themselves."""

    @property
    def is_role(self) -> bool:
        """Whether it can only be resolved in the running cluster."""
        return self.kind not in {"node", "rack", "all brokers", "each"}


@dataclass(frozen=True, slots=True)
class OperationSpec:
    """What an administrator asks of the controller, of a leader or of one broker."""

    text: str
    """What it is about, as in the scenario: a topic, a partition or one replica of it."""
    request: Request
    keys: Mapping[str, object]
    """Its keys as in the scenario, beside ``at`` and ``do``."""
    broker: NodeId = NO_LEADER
    """The one broker that is asked, if it is one."""
    directory: int = 0
    """Which of its log directories it is about."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One line of the calendar. A field that its kind does not use keeps its default."""

    index: int
    """Place in the scenario, from 0."""
    kind: FaultKind
    at_us: Micros
    """Instant at which it starts; at or after 0."""
    for_us: Micros | None = None
    """How long it lasts. ``None``: until everything is healed at the end, or it has no duration."""
    targets: tuple[Target, ...] = ()
    """Whom it hits; on a link fault, one side of the link."""
    peers: tuple[Target, ...] = ()
    """The other side of a link; empty stands for everyone else."""
    one_way: bool = False
    """On a link fault: only what ``targets`` send to ``peers``."""
    factor: int = 1
    """How many times longer a slow disk or CPU takes, or as many records are sent."""
    by_us: Micros = 0
    """What a delay adds to each message, one way; how far a clock jumps, backward if negative."""
    ratio: float = 0.0
    """Share of the segments that a lossy link drops, in (0, 1)."""
    bandwidth_bits: int = 0
    """What a collapsed link carries, in bits per second."""
    messages: tuple[str, ...] = ()
    """Types of message that are held, dropped or delayed; empty on a link fault: all."""
    count: int = 0
    """How many messages are concerned; 0: all."""
    directory: int = 0
    """Which log directory of the host, from 0."""
    all_directories: bool = False
    """Whether it is about every log directory of the host."""
    spares_none: bool = False
    """Whether a power loss takes all that was not written back; else a part may have been."""
    down_us: Micros = 0
    """How long a rolling restart leaves each process down."""
    settle_us: Micros = 0
    """How long a rolling restart waits after each process is in sync again."""
    partition: TopicPartition | None = None
    """Which replica is lost or corrupted."""
    operation: OperationSpec | None = None
    """What the administrator asks for."""
    spread_us: Micros = 0
    """Its instant is drawn, uniform in ``[at_us, at_us + spread_us]``."""
    mtbf_us: Micros = 0
    """Mean time to the next failure of each component, exponential; 0: it happens once. Then
    ``for_us`` is the mean time to repair, exponential too."""
    choices: tuple["Fault", ...] = ()
    """For ``one-of``: what it may be, each as likely; without instants of their own."""

    @property
    def until_us(self) -> Micros | None:
        """Last instant at which it heals by itself; ``None`` if it does not, or may come again."""
        if self.mtbf_us:
            return None
        lasting = [choice.for_us for choice in self.choices] or [self.for_us]
        longest = max((time for time in lasting if time is not None), default=0)
        return None if None in lasting else self.at_us + self.spread_us + longest

    @property
    def components(self) -> tuple[Target | None, ...]:
        """What fails by itself under ``mtbf_us``; ``None``: the targets as a whole."""
        return self.targets[0].parts if self.targets and self.targets[0].parts else (None,)

    @property
    def target_text(self) -> str:
        """Its target as in the scenario; both sides of a link."""
        if self.operation is not None:
            return self.operation.text
        if self.choices:
            return ", ".join(f"{choice.kind} of {choice.target_text}" for choice in self.choices)
        left = ", ".join(target.text for target in self.targets)
        if not self.peers:
            return left
        arrow = "->" if self.one_way else "<->"
        return f"{left} {arrow} {', '.join(target.text for target in self.peers)}"


MESSAGE_KINDS: Final[tuple[FaultKind, ...]] = ("hold", "drop")
"""Kinds that act on one kind of message, one way."""

LINK_KINDS: Final[tuple[FaultKind, ...]] = (
    "partition",
    "delay",
    "loss",
    "bandwidth",
    *MESSAGE_KINDS,
)
"""Kinds that act on links."""

VOTER_KINDS: Final[tuple[FaultKind, ...]] = ("add-controller", "remove-controller")
"""Kinds that change who votes on metadata."""

MEMBER_KINDS: Final[tuple[FaultKind, ...]] = ("add-broker", "decommission")
"""Kinds that change which brokers belong to the cluster."""

OPERATION_KINDS: Final[tuple[FaultKind, ...]] = (
    "create-topic",
    "delete-topic",
    "create-partitions",
    "alter-config",
    "reassign",
    "cancel-reassignment",
    "elect-leader",
    "delete-records",
    "alter-replica-log-dirs",
    "alter-client-quotas",
    *VOTER_KINDS,
    *MEMBER_KINDS,
)
"""Kinds that are an administrator's doing."""

REPLICA_KINDS: Final[tuple[FaultKind, ...]] = (
    "lost-replica",
    "corrupt-replica",
    "torn-write",
    "misdirected-write",
)
"""Kinds that hit one replica of one topic partition."""

DISK_KINDS: Final[tuple[FaultKind, ...]] = (
    "slow-disk",
    "stalled-disk",
    "failed-disk",
    "full-disk",
    "lying-flush",
    "wiped-disk",
)
"""Kinds that hit log directories."""

PROCEDURE_KINDS: Final[tuple[FaultKind, ...]] = ("rolling-restart",)
"""Kinds that go on by themselves until they are done."""

INSTANT_KINDS: Final[tuple[FaultKind, ...]] = (
    "restart",
    "wiped-disk",
    *REPLICA_KINDS,
    *OPERATION_KINDS,
)
"""Kinds without a duration."""

TARGET_FORMS: Final[tuple[str, ...]] = (
    "broker-1",
    "controller-1",
    "rack a",
    "leader of orders-0",
    "follower of orders-0",
    "group coordinator of billing",
    "transaction coordinator of shop",
    "controller leader",
    "zookeeper leader",
    "random broker",
    "random rack",
    "all brokers",
    "each broker (with mtbf)",
    "a client's name",
)
"""Examples of every form of target."""
