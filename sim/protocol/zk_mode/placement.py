"""Placement of new partitions in ZooKeeper mode: round-robin over brokers, then shifted.

Source: ``org.apache.kafka.admin.AdminUtils.assignReplicasToBrokers`` (3.9); KIP-36.
"""

from collections.abc import Callable, Mapping

from sim.ids import NodeId
from sim.protocol.controller.placement import PlacementImpossible


def assign_replicas(
    racks: Mapping[NodeId, str],
    partitions: int,
    replication_factor: int,
    unit: Callable[[], float],
    behind: tuple[tuple[NodeId, ...], ...] = (),
) -> tuple[tuple[NodeId, ...], ...]:
    """Replicas of new partitions, by number; the first of each is the preferred leader.

    Args:
        racks: The live brokers, each with its rack; racks count if every broker has one.
        partitions: Number of new partitions.
        replication_factor: Replicas of each.
        unit: Draws, uniform in [0, 1): the first broker, then the first shift.
        behind: Replicas of the topic's partitions before them, if any: nothing is drawn then, and
            the first broker is that of partition 0.

    Raises:
        PlacementImpossible: If the factor is not positive or above the number of brokers.
    """
    if not 0 < replication_factor <= len(racks):
        raise PlacementImpossible(
            f"replication factor {replication_factor}, {len(racks)} brokers live"
        )
    aware = all(racks.values())
    ring = _alternated(racks) if aware else sorted(racks)
    size = len(ring)
    if behind:
        start = next((i for i, b in enumerate(sorted(racks)) if b >= behind[0][0]), 0)
        shift = start
    else:
        start, shift = int(unit() * size), int(unit() * size)
    placed: list[tuple[NodeId, ...]] = []
    for number in range(len(behind), len(behind) + partitions):
        if number > 0 and number % size == 0:
            shift += 1
        first = (number + start) % size
        if aware:
            placed.append(_over_racks(ring, racks, first, shift, replication_factor))
        else:
            followers = [
                ring[_place(first, shift, follower, size)]
                for follower in range(replication_factor - 1)
            ]
            placed.append((ring[first], *followers))
    return tuple(placed)


def _over_racks(
    ring: list[NodeId], racks: Mapping[NodeId, str], first: int, shift: int, factor: int
) -> tuple[NodeId, ...]:
    """Replicas over racks: no rack twice before every rack has a replica."""
    count = len(dict.fromkeys(racks.values()))
    chosen = [ring[first]]
    used = {racks[ring[first]]: None}
    step = 0
    while len(chosen) < factor:
        broker = ring[_place(first, shift * count, step, len(ring))]
        step += 1
        if (racks[broker] not in used or len(used) == count) and broker not in chosen:
            chosen.append(broker)
            used[racks[broker]] = None
    return tuple(chosen)


def _place(first: int, shift: int, follower: int, size: int) -> int:
    return (first + 1 + (shift + follower) % (size - 1)) % size


def _alternated(racks: Mapping[NodeId, str]) -> list[NodeId]:
    """Brokers in an order in which racks take turns: each rack's next, rack by rack."""
    waiting: dict[str, list[NodeId]] = {}
    for broker in sorted(racks):
        waiting.setdefault(racks[broker], []).append(broker)
    names = sorted(waiting)
    ring: list[NodeId] = []
    while len(ring) < len(racks):
        ring += [waiting[name].pop(0) for name in names if waiting[name]]
    return ring
