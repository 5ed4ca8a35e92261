"""Faults of one replica's files on a broker's disks, applied while its process is down.

The process is restarted at once, which is when Kafka would notice the damage.
"""

from collections.abc import Callable
from typing import Final

from sim.ids import TopicPartition
from sim.log.directory import damage
from sim.log.store.files import FileStore
from sim.log.store.stored_file import Rot
from sim.nodes.process.server import ServerNode
from sim.trace.rows.log import Truncations
from sim.units import Bytes

_Work = Callable[[FileStore, TopicPartition, Callable[[], float]], bool]

WAYS: Final[dict[str, _Work]] = {
    "remove": lambda store, partition, _: damage.remove_replica(store, partition),
    "flip a bit": damage.flip_a_bit,
    "tear": damage.tear_a_write,
}
"""Damage by its name; ``overwrite``, a misdirected write, leaves a row in the trace, too."""


def damage_replica(server: ServerNode, way: str, partition: TopicPartition, stream: str) -> bool:
    """Kills the process if it runs, damages one replica's files, and starts it again.

    ``stream`` is the first part of the name of the stream that chance comes from.

    Returns:
        True if there was a file to damage on a disk that can be read.
    """
    unit = server.streams.named(f"{stream}/{server.name}/{partition}").unit
    was_running = server.running
    if was_running:
        server.crash()
    stores = [disk.store for disk in server.host.disks if not disk.store.failed]
    if way == "overwrite":
        done = [_misdirect(server, store, partition, unit) for store in stores]
    else:
        done = [WAYS[way](store, partition, unit) for store in stores]
    if was_running:
        server.start()
    return any(done)


def cut_file(server: ServerNode, partition: TopicPartition, file: str, size: Bytes) -> str:
    """Kills the process if it runs, cuts the end of a file, and starts it again.

    Returns:
        What was cut, as text; empty if there was nothing.
    """
    was_running = server.running
    if was_running:
        server.crash()
    stores = [disk.store for disk in server.host.disks if not disk.store.failed]
    cut = [damage.cut_file(store, partition, file, size) for store in stores]
    if was_running:
        server.start()
    return ", ".join(text for text in cut if text)


def let_rot(
    server: ServerNode, partition: TopicPartition, which: str, bits: int, stream: str
) -> tuple[str, Rot] | None:
    """Flips bits of a replica on the platter, while its process runs on.

    Returns:
        The file and the bytes; ``None`` if no byte of the replica is on a disk that can be read.
    """
    unit = server.streams.named(f"{stream}/{server.name}/{partition}").unit
    for disk in server.host.disks:
        if not disk.store.failed:
            found = damage.let_rot(disk.store, partition, which, bits, unit)
            if found is not None:
                return found
    return None


def _misdirect(
    server: ServerNode, store: FileStore, partition: TopicPartition, unit: Callable[[], float]
) -> bool:
    """Overwrites a page, and adds a row: recovery may take records found there for this log's."""
    found = damage.misdirect_a_write(store, partition, unit)
    if found is None:
        return False
    first, end = found
    row = Truncations.row(
        server.node_id,
        *partition,
        from_offset=end,
        to_offset=first,
        high_watermark=-1,
        leader_epoch=-1,
        reason="overwritten",
    )
    server.trace.write(server.kernel.time, row)
    return True
