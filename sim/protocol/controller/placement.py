"""Placement of new partitions' replicas.

The order of draws is Kafka's, up to that of its hash map of racks. The caller passes usable
brokers: registered ones, fenced ones included, without those in controlled shutdown.

Source: ``org.apache.kafka.metadata.placement.StripedReplicaPlacer`` (4.1).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from sim.ids import NodeId

Item = TypeVar("Item")

Unit = Callable[[], float]
"""Draws, uniform in [0, 1)."""


class PlacementImpossible(Exception):  # noqa: N818 - Kafka's InvalidReplicationFactorException
    """There are not enough brokers. ``args``: the message."""


@dataclass(frozen=True, slots=True)
class UsableBroker:
    """A broker that may get replicas."""

    broker: NodeId
    rack: str
    fenced: bool


class _Ring:
    """Brokers of one rack, taken in turn; each new round starts one further."""

    def __init__(self, brokers: list[NodeId], unit: Unit) -> None:
        self.brokers = sorted(brokers)
        self._unit = unit
        self._round = 0
        self._taken = 0
        self._start = int(unit() * len(brokers)) if brokers else 0

    def take(self, number: int) -> NodeId | None:
        """Next broker in the numbered round; ``None`` when all were taken in it."""
        size = len(self.brokers)
        if size == 0:
            return None
        if self._round != number:
            self._round = number
            self._taken = 0
            self._start = (self._start + 1) % size
        if self._taken >= size:
            return None
        broker = self.brokers[(self._taken + self._start) % size]
        self._taken += 1
        return broker

    def shuffle(self) -> None:
        """Shuffles the brokers."""
        shuffle(self.brokers, self._unit)


class _Rack:
    """One rack: unfenced brokers first, fenced ones when those are used up."""

    def __init__(self, brokers: list[UsableBroker], unit: Unit) -> None:
        # Draws come in Kafka's order, the fenced ones' first.
        self.fenced = _Ring([b.broker for b in brokers if b.fenced], unit)
        self.unfenced = _Ring([b.broker for b in brokers if not b.fenced], unit)

    def take(self, number: int) -> NodeId | None:
        broker = self.unfenced.take(number)
        return self.fenced.take(number) if broker is None else broker


class StripedReplicaPlacer:
    """Places the partitions of one request, one after the other.

    Leaders go round the racks, replicas to as many racks as there are, and each broker gets its
    share. With all draws zero, three racks of three give [A0,B0,C0], [B1,C1,A1], [C2,A2,B2].
    """

    def __init__(self, brokers: Iterable[UsableBroker], unit: Unit) -> None:
        by_rack: dict[str, list[UsableBroker]] = {}
        for broker in sorted(brokers, key=lambda b: b.broker):
            by_rack.setdefault(broker.rack, []).append(broker)
        self._unit = unit
        self._names = sorted(by_rack)
        self._racks = {name: _Rack(by_rack[name], unit) for name in self._names}
        self._broker_count = sum(map(len, by_rack.values()))
        self._unfenced_count = sum(not b.fenced for rack in by_rack.values() for b in rack)
        self._round = 0
        self._first = int(unit() * len(self._names)) if self._names else 0

    def place(self, replication_factor: int) -> tuple[NodeId, ...]:
        """Places the next partition's replicas; the first is the preferred leader.

        Raises:
            PlacementImpossible: If the factor is not positive or above the number of brokers, or
                every broker is fenced.
        """
        if replication_factor <= 0:
            raise PlacementImpossible(f"replication factor {replication_factor} is not positive")
        if replication_factor > self._broker_count:
            raise PlacementImpossible(
                f"replication factor {replication_factor}, {self._broker_count} brokers registered"
            )
        if self._unfenced_count == 0:
            raise PlacementImpossible("every broker is fenced")
        if self._round == self._unfenced_count and self._unfenced_count > 1:
            # Every broker has led once: new order, or the same assignments would come again.
            self._shuffle()
            self._round = 0
        if self._first == len(self._names):
            self._first = 0
        leader, leader_rack = self._place_leader()
        replicas = (leader, *self._place_followers(replication_factor - 1, leader_rack))
        self._round += 1
        self._first += 1
        return replicas

    def _place_leader(self) -> tuple[NodeId, int]:
        index = self._first
        while True:
            broker = self._racks[self._names[index]].unfenced.take(self._round)
            if broker is not None:
                return broker, index
            index = (index + 1) % len(self._names)

    def _place_followers(self, count: int, leader_rack: int) -> list[NodeId]:
        followers: list[NodeId] = []
        index = self._first
        skip = leader_rack
        while len(followers) < count:
            if index == skip:
                skip = -1  # its broker is the leader; it takes part again in the next round
            else:
                broker = self._racks[self._names[index]].take(self._round)
                if broker is not None:
                    followers.append(broker)
            index = (index + 1) % len(self._names)
        return followers

    def _shuffle(self) -> None:
        shuffle(self._names, self._unit)
        for rack in self._racks.values():
            rack.fenced.shuffle()
            rack.unfenced.shuffle()


def shuffle(items: list[Item], unit: Unit) -> None:
    """Shuffles the items."""
    for last in range(len(items) - 1, 0, -1):
        other = int(unit() * (last + 1))
        items[last], items[other] = items[other], items[last]
