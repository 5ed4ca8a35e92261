"""What faults do to one replica on a broker's disks: between two lives of its process.

The damage is found out at the restart that follows at once, which is when Kafka would notice it.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from sim.ids import TopicPartition
from sim.log.files import FileStore
from sim.nodes.storage import flip_a_bit, remove_replica

if TYPE_CHECKING:
    from sim.nodes.broker import BrokerNode


def lose_replica(node: "BrokerNode", partition: TopicPartition) -> bool:
    """Delete one replica's files; returns whether there was such a replica."""
    return _between_lives(node, lambda store: remove_replica(store, partition))


def corrupt_replica(node: "BrokerNode", partition: TopicPartition) -> bool:
    """Flip a bit in one replica's log; returns whether there was a byte to flip."""
    unit = node.streams.named(f"corruption/{node.name}/{partition}").unit
    return _between_lives(node, lambda store: flip_a_bit(store, partition, unit))


def _between_lives(node: "BrokerNode", work: Callable[[FileStore], bool]) -> bool:
    """Kill the process if it runs, touch the disks that can be read, and start it again."""
    was_running = node.running
    if was_running:
        node.crash()
    done = [work(disk.store) for disk in node.host.disks if not disk.store.failed]
    if was_running:
        node.start()
    return any(done)
