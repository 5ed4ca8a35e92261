"""A server's log directories in time: what loading, flushing and checkpointing cost.

The bytes are :mod:`sim.log`'s, the seconds are the disk's; here they meet. Left out: several log
directories that fail one by one (JBOD): when the only one fails, the broker stops.

Source: ``kafka.log.LogManager``; ``log.flush.offset.checkpoint.interval.ms``.
"""

from collections.abc import Callable, Mapping

from sim.ids import METADATA_PARTITION, NodeId, Offset, TopicPartition, uuid_text
from sim.log.config import LogConfig
from sim.log.files import FileStore
from sim.log.manager import LoadedLog, LogManager
from sim.log.partition_log import PartitionLog
from sim.nodes.metadata_log import METADATA_LOG_CONFIG
from sim.substrate.disk import Disk
from sim.trace.writer import Trace
from sim.units import MS, Bytes, Micros

OPEN_LOG_US: Micros = 1 * MS
"""Opening one log's files at a start; a modelling choice."""

CLUSTER_ID = uuid_text("logquake")
"""``cluster.id`` of every simulated cluster."""

_LOG_SETTINGS: Mapping[str, str] = {
    "segment.bytes": "segment_bytes",
    "segment.ms": "segment_ms",
    "segment.index.bytes": "segment_index_bytes",
    "index.interval.bytes": "index_interval_bytes",
    "flush.messages": "flush_messages",
    "max.message.bytes": "max_message_bytes",
    "message.timestamp.after.max.ms": "message_timestamp_after_max_ms",
}


def log_config(configs: Mapping[str, str]) -> LogConfig:
    """A log's settings from topic settings in Kafka's names; others are not the log's."""
    chosen = {ours: int(configs[name]) for name, ours in _LOG_SETTINGS.items() if name in configs}
    return LogConfig(**chosen)


class Storage:
    """One server's logs on its disks. A new one is made at each start of the process.

    Args:
        node: ``node.id``.
        name: Printed name of the server.
        disks: The disks, which outlive the process.
        trace: Where loading and truncation by loss are written down.
        configs_of: Topic settings of a partition, in Kafka's names.
        ends: Log ends at the last stop, to tell what a loss took; kept up to date here.
    """

    def __init__(
        self,
        node: NodeId,
        name: str,
        disks: list[Disk],
        trace: Trace,
        configs_of: Callable[[TopicPartition], Mapping[str, str]],
        ends: dict[TopicPartition, Offset],
    ) -> None:
        self.node = node
        self.disks = disks
        self.ends = ends
        self._recoveries = trace.table("recoveries")
        self._truncations = trace.table("truncations")
        self.manager = LogManager(
            tuple(disk.store for disk in disks),
            node,
            CLUSTER_ID,
            tuple(uuid_text(f"{name}/{number}") for number in range(len(disks))),
            lambda partition: (
                METADATA_LOG_CONFIG
                if partition == METADATA_PARTITION
                else log_config(configs_of(partition))
            ),
        )

    def load(self) -> tuple[tuple[LoadedLog, ...], Micros]:
        """Load every log found, one after the other; returns them and how long it takes."""
        loaded = self.manager.load()
        read_us = [
            -(-log.recovery.scanned_bytes * 1_000_000 // disk.spec.read_bytes_per_s)
            for log in loaded
            for disk in (self.disks[log.directory],)
        ]
        return loaded, OPEN_LOG_US * len(loaded) + sum(read_us)

    def note_loaded(self, loaded: tuple[LoadedLog, ...], now: Micros) -> None:
        """Write what was found, and what is missing since the last stop, to the trace."""
        found = {}
        for log in loaded:
            partition, recovery = log.partition, log.recovery
            found[partition] = recovery.log_end_offset
            self._recoveries.add(
                (
                    now,
                    self.node,
                    partition.topic,
                    partition.partition,
                    recovery.clean,
                    recovery.recovery_point,
                    recovery.log_end_offset,
                    recovery.scanned_bytes,
                    recovery.truncated_bytes,
                )
            )
        for partition, before in self.ends.items():
            after = found.get(partition, 0)
            if after < before:
                reason = "recovery" if partition in found else "wiped"
                self._truncations.add(
                    (
                        now,
                        self.node,
                        partition.topic,
                        partition.partition,
                        before,
                        after,
                        -1,
                        -1,
                        reason,
                    )
                )
        self.ends.clear()

    def note_ends(self) -> None:
        """Remember every log's end, at the moment the process stops."""
        self.ends.clear()
        for partition, log in self.manager.logs.items():
            self.ends[partition] = log.log_end_offset

    def open_log(
        self, partition: TopicPartition, topic_id: str, configs: Mapping[str, str]
    ) -> PartitionLog:
        """The partition's log; made if it is not there."""
        log = self.manager.get(partition)
        if log is None:
            return self.manager.create(partition, topic_id)
        log.config = log_config(configs)
        return log

    def disk_of(self, partition: TopicPartition) -> Disk:
        """The disk that holds the partition's log."""
        return self.disks[self.manager.directory_of(partition)]

    def begin_fsync(self, partition: TopicPartition) -> Micros | None:
        """Queue an fsync of a log; the instant it is done, or ``None`` if it cannot begin."""
        disk = self.disk_of(partition)
        if disk.stalled:
            disk.refuse()
            return None
        return disk.fsync(self.manager.logs[partition].flush_bytes(), str(partition))

    def flush_rolled(self) -> list[tuple[PartitionLog, Offset, Micros]]:
        """Queue the fsyncs that rolls have scheduled: log, offset, and the instant each is done."""
        due = []
        for partition, log in self.manager.logs.items():
            rolled = log.take_rolled()
            if rolled is not None:
                disk = self.disk_of(partition)
                size: Bytes = rolled.bytes
                done = disk.fsync(size, str(partition)) if not disk.stalled else disk.busy_until
                due.append((log, rolled.up_to, done))
        return due


def remove_replica(store: FileStore, partition: TopicPartition) -> bool:
    """Delete the files of a partition under a stopped process; whether there were any."""
    if str(partition) not in store.directories():
        return False
    store.delete_directory(str(partition))
    return True


def flip_a_bit(store: FileStore, partition: TopicPartition, unit: Callable[[], float]) -> bool:
    """Flip a bit of the newest segment of a partition; whether there was a byte to flip.

    The newest segment is read whole when a process starts uncleanly, so the flip is found then.
    """
    logs = [name for name in store.names(str(partition)) if name.endswith(".log")]
    if not logs:
        return False
    newest = f"{partition}/{max(logs)}"
    file = store.open(newest)
    if file is None or file.size == 0:
        return False
    store.flip_bit(newest, int(unit() * file.size), int(unit() * 8))
    return True
