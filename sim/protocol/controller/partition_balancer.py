"""Balancing of replicas when brokers join, leave, or are away.

Replicas leave a broker that is being decommissioned, whatever the mode. In mode ``node_add`` they
also move until a joining broker has its share; in mode ``continuous`` they also leave a broker that
has been away for long, and a rack that holds two replicas of a partition while another rack holds
none. A replica goes to a broker in a rack with the fewest replicas of its partition, then with the
fewest of its topic, then with the fewest in all. The number of concurrent moves is limited.

Left out: full disks, brokers of different capacities, forced moves of partitions that lost their
majority, maintenance mode, rebalancing on demand.

Source: Redpanda v25.1 ``cluster/partition_balancer_planner.cc``.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from sim.ids import NodeId, TopicPartition
from sim.protocol.controller.placement import shuffle
from sim.protocol.metadata.image import MetadataImage, PartitionRegistration
from sim.protocol.metadata.records import DRAINING, JOINING
from sim.protocol.raft_groups.membership import Nodes
from sim.units import SECOND, Micros

BalancingMode: TypeAlias = Literal["off", "node_add", "continuous"]
"""``partition_autobalancing_mode``."""

MODES: tuple[BalancingMode, ...] = ("off", "node_add", "continuous")
"""Every mode."""


@dataclass(frozen=True, slots=True)
class BalancerConfig:
    """Settings, with Redpanda's names and defaults."""

    mode: BalancingMode = "node_add"
    """``partition_autobalancing_mode``."""
    concurrent_moves: int = 50
    """``partition_autobalancing_concurrent_moves``: concurrent moves of partitions."""
    tick_us: Micros = 30 * SECOND
    """``partition_autobalancing_tick_interval_ms``: interval of plans while there is cause."""
    drop_threshold: float = 0.2
    """``partition_autobalancing_tick_moves_drop_threshold``: the next plan is made at once when
    that share of the moves in progress has ended."""
    availability_timeout_us: Micros = 900 * SECOND
    """``partition_autobalancing_node_availability_timeout_sec``."""
    topic_aware: bool = True
    """``partition_autobalancing_topic_aware``: each topic's replicas are spread evenly first."""


class Away(NamedTuple):
    """Brokers that are not active, by number."""

    all: Nodes = ()
    timed_out: Nodes = ()
    """Those that have been away for longer than the availability timeout."""


class Plan(NamedTuple):
    """Moves to begin and to cancel."""

    moves: dict[TopicPartition, Nodes]
    """Partitions that should move, and their new replicas."""
    cancelled: tuple[TopicPartition, ...]
    """Moves to cancel: they lead to a broker that is being drained or away."""
    is_even: bool
    """True if no move of a replica would make the counts more even, with every broker active:
    joining brokers have their share."""


class BalancerRules:
    """Rules of the balancer, in which tests plant defects, one method each. Without state."""

    def is_better(self, there: tuple[int, int], here: tuple[int, int]) -> bool:
        """True if a replica should move: counts of its topic, and of all, would be lower there."""
        return there < here

    def is_drained(self, image: MetadataImage, broker: NodeId) -> bool:
        """True if a broker may leave the cluster: no group has it as a member."""
        return not any(broker in known.replicas for known in image.partitions.values())


RULES = BalancerRules()
"""The balancer's rules."""


@dataclass(slots=True)
class _Layout:
    """Replicas after all moves in progress and planned."""

    image: MetadataImage
    config: BalancerConfig
    away: Away
    rules: BalancerRules
    goal: dict[TopicPartition, list[NodeId]] = field(default_factory=dict)
    moving: dict[TopicPartition, None] = field(default_factory=dict)
    planned: dict[TopicPartition, None] = field(default_factory=dict)
    cancelled: dict[TopicPartition, None] = field(default_factory=dict)
    totals: dict[NodeId, int] = field(default_factory=dict)
    of_topic: dict[tuple[str, NodeId], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for partition, known in self.image.partitions.items():
            self.goal[partition] = [b for b in known.replicas if b not in known.removing]
            if known.adding or known.removing:
                self.moving[partition] = None
            for broker in self.goal[partition]:
                self._count(partition, broker, 1)

    @property
    def can_begin_move(self) -> bool:
        """True if another partition may begin to move."""
        under_way = len(self.moving) + len(self.planned)
        return under_way < self.config.concurrent_moves

    def may_move(self, partition: TopicPartition) -> bool:
        """True if its group could change its members, and the limit allows it."""
        if partition in self.moving or not (partition in self.planned or self.can_begin_move):
            return False
        replicas = self.image.partitions[partition].replicas
        return sum(b not in self.away.all for b in replicas) * 2 >= len(replicas)

    def place_for(self, partition: TopicPartition, replica: NodeId) -> NodeId | None:
        """Best broker for a replica, perhaps its own; ``None`` if no broker may have it."""
        others = [b for b in self.goal[partition] if b != replica]
        racks = [self.image.brokers[b].rack for b in others if b in self.image.brokers]
        best: tuple[int, int, int, bool, NodeId] | None = None
        for broker, registration in self.image.brokers.items():
            if broker in others or not self._may_hold(broker):
                continue
            shared = racks.count(registration.rack) if registration.rack else 0
            # It stays where it is if scores are equal.
            is_other = broker != replica
            topic, total = self.scores(partition, broker, more=is_other)
            rank = shared, topic, total, is_other, broker
            if best is None or rank < best:
                best = rank
        return None if best is None else best[-1]

    def scores(
        self, partition: TopicPartition, broker: NodeId, *, more: bool = False
    ) -> tuple[int, int]:
        """Replicas of the topic on a broker, and of all topics; with one more of them."""
        extra = 1 if more else 0
        total = self.totals.get(broker, 0) + extra
        if not self.config.topic_aware:
            return 0, total
        return self.of_topic.get((partition.topic, broker), 0) + extra, total

    def move(self, partition: TopicPartition, replica: NodeId, to: NodeId) -> None:
        """Moves a replica; a new one comes last."""
        self.goal[partition] = [*(b for b in self.goal[partition] if b != replica), to]
        self._count(partition, replica, -1)
        self._count(partition, to, 1)
        self.planned[partition] = None

    def _may_hold(self, broker: NodeId) -> bool:
        is_leaving = self.image.memberships.get(broker) == DRAINING
        return not is_leaving and broker not in self.away.all

    def _count(self, partition: TopicPartition, broker: NodeId, by: int) -> None:
        key = partition.topic, broker
        self.totals[broker] = self.totals.get(broker, 0) + by
        self.of_topic[key] = self.of_topic.get(key, 0) + by


def plan(
    image: MetadataImage,
    config: BalancerConfig,
    away: Away,
    unit: Callable[[], float],
    rules: BalancerRules = RULES,
) -> Plan:
    """Plans the moves of this instant.

    Args:
        image: Replicas, with moves in progress.
        config: Settings.
        away: Brokers that are not active.
        unit: Draws, uniform in [0, 1): replicas are visited in random order, or the first
            partitions would always be the ones that move.
        rules: The balancer's rules.
    """
    layout = _Layout(image, config, away, rules)
    _drain(layout, [b for b, value in image.memberships.items() if value == DRAINING])
    if config.mode == "continuous":
        _drain(layout, away.timed_out)
        _repair_racks(layout)
    is_even = True
    if JOINING in image.memberships.values() and config.mode != "off":
        is_even = _even_out(layout, unit) and not away.all
    moves = {p: tuple(layout.goal[p]) for p in layout.planned}
    return Plan(moves, tuple(layout.cancelled), is_even)


def moves_under_way(image: MetadataImage) -> int:
    """Number of partitions being reassigned."""
    return sum(bool(known.adding or known.removing) for known in image.partitions.values())


def _drain(layout: _Layout, brokers: Iterable[NodeId]) -> None:
    """Moves replicas away from these brokers, and none to them."""
    for broker in brokers:
        for partition, known in layout.image.partitions.items():
            if broker in known.adding:
                layout.cancelled[partition] = None
            elif broker in layout.goal[partition] and layout.may_move(partition):
                to = layout.place_for(partition, broker)
                if to is not None:
                    layout.move(partition, broker, to)


def _repair_racks(layout: _Layout) -> None:
    """Moves a second replica in a rack to a rack without any."""
    for partition, known in layout.image.partitions.items():
        if not layout.may_move(partition):
            continue
        for replica in _in_racks_of_others(layout, known):
            to = layout.place_for(partition, replica)
            if to is not None and to != replica and not _shares(layout, partition, replica, to):
                layout.move(partition, replica, to)


def _in_racks_of_others(layout: _Layout, known: PartitionRegistration) -> list[NodeId]:
    """Replicas in a rack with an earlier replica."""
    seen: list[str] = []
    found = []
    for broker in known.replicas:
        rack = layout.image.brokers[broker].rack
        if rack and rack in seen:
            found.append(broker)
        seen.append(rack)
    return found


def _shares(layout: _Layout, partition: TopicPartition, replica: NodeId, to: NodeId) -> bool:
    rack = layout.image.brokers[to].rack
    others = [b for b in layout.goal[partition] if b != replica]
    return any(layout.image.brokers[b].rack == rack for b in others)


def _even_out(layout: _Layout, unit: Callable[[], float]) -> bool:
    """Moves replicas to brokers with fewer; true if nothing is left to improve."""
    replicas = [(p, b) for p in layout.image.partitions for b in layout.goal[p]]
    shuffle(replicas, unit)
    is_even = True
    for partition, replica in replicas:
        if not layout.can_begin_move:
            return False
        if partition in layout.moving or replica not in layout.image.partitions[partition].replicas:
            continue
        if not layout.may_move(partition):
            is_even = False
            continue
        to = layout.place_for(partition, replica)
        if to is None or to == replica:
            continue
        there = layout.scores(partition, to, more=True)
        if layout.rules.is_better(there, layout.scores(partition, replica)):
            layout.move(partition, replica, to)
            is_even = False
    return is_even
