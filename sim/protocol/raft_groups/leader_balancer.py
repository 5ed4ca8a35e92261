"""Leader balancing: every broker leads about as many partitions.

Source: Redpanda v25.1 ``cluster/scheduling/{leader_balancer,leader_balancer_greedy}.cc``.
"""

from sim.ids import NodeId, TopicPartition
from sim.protocol.metadata.image import MetadataImage

TRANSFERS_MAX = 512
"""``leader_balancer_transfer_limit_per_shard``: concurrent transfers."""


def leaders_to_move(image: MetadataImage) -> dict[TopicPartition, NodeId]:
    """Partitions whose leader should change, each with its new leader.

    Leaders of active brokers are counted. As long as a broker leads at least two partitions more
    than another one that has a replica of one of them, the most loaded such broker gives one to the
    least loaded. Partitions that are being moved stay as they are.
    """
    led: dict[NodeId, list[TopicPartition]] = {b: [] for b in image.brokers if image.is_active(b)}
    for partition, registration in image.partitions.items():
        is_moving = registration.adding or registration.removing
        if registration.leader in led and not is_moving:
            led[registration.leader].append(partition)
    counts = dict.fromkeys(led, 0)
    for registration in image.partitions.values():
        if registration.leader in counts:
            counts[registration.leader] += 1
    moves: dict[TopicPartition, NodeId] = {}
    while len(moves) < TRANSFERS_MAX:
        found = _best(image, led, counts)
        if found is None:
            break
        partition, source, target = found
        led[source].remove(partition)
        counts[source] -= 1
        counts[target] += 1
        moves[partition] = target
    return moves


def _best(
    image: MetadataImage, led: dict[NodeId, list[TopicPartition]], counts: dict[NodeId, int]
) -> tuple[TopicPartition, NodeId, NodeId] | None:
    """Next transfer: partition, old and new leader; ``None`` if none is an improvement."""
    for source in sorted(led, key=lambda broker: (-counts[broker], broker)):
        best: tuple[int, TopicPartition, NodeId] | None = None
        for partition in led[source]:
            for broker in image.partitions[partition].replicas:
                count = counts.get(broker, counts[source])
                if counts[source] - count >= 2 and (best is None or count < best[0]):
                    best = count, partition, broker
        if best is not None:
            return best[1], source, best[2]
    return None
