"""What faults do to one replica on a broker's disks: between two lives of its process.

The damage is found out at the restart that follows at once, which is when Kafka would notice it.
"""

from collections.abc import Callable
from typing import Final

from sim.ids import TopicPartition
from sim.log.directory import damage
from sim.log.store.files import FileStore
from sim.nodes.process.server import ServerNode
from sim.trace.rows.log import TruncationsRow
from sim.trace.writer import TableWriter

_Work = Callable[[FileStore, TopicPartition, Callable[[], float]], bool]

WAYS: Final[dict[str, _Work]] = {
    "lost-replica": lambda store, partition, _: damage.remove_replica(store, partition),
    "corrupt-replica": damage.flip_a_bit,
    "torn-write": damage.tear_a_write,
}
"""What is done to the files, by the name of the fault; a misdirected write tells more."""


def damage_replica(server: ServerNode, way: str, partition: TopicPartition) -> bool:
    """Kill the process if it runs, damage one replica's files, and start it again.

    Returns:
        Whether there was anything to damage on a disk that can be read.
    """
    # The stream of the fault that was there first keeps its name, and its draws.
    kind = "corruption" if way == "corrupt-replica" else way
    unit = server.streams.named(f"{kind}/{server.name}/{partition}").unit
    was_running = server.running
    if was_running:
        server.crash()
    stores = [disk.store for disk in server.host.disks if not disk.store.failed]
    if way == "misdirected-write":
        done = [_misdirect(server, store, partition, unit) for store in stores]
    else:
        done = [WAYS[way](store, partition, unit) for store in stores]
    if was_running:
        server.start()
    return any(done)


def _misdirect(
    server: ServerNode, store: FileStore, partition: TopicPartition, unit: Callable[[], float]
) -> bool:
    """Overwrite a page, and say so in the trace: a recovery may take what lies there for ours."""
    found = damage.misdirect_a_write(store, partition, unit)
    if found is None:
        return False
    first, end = found
    where = (server.node_id, partition.topic, partition.partition)
    row = (server.kernel.time, *where, end, first, -1, -1, "overwritten")
    table: TableWriter[TruncationsRow] = server.trace.table("truncations")
    table.add(row)
    return True
