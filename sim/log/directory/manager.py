"""All logs of one broker or controller, over one or more log directories.

Opens, makes and deletes logs, and keeps the checkpoints of each directory. Future logs are in a
module of their own.

Source: ``LogManager``, ``ReplicaManager.checkpointHighWatermarks``; KIP-858 for directory ids.
"""

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from pathlib import Path

from sim.errors import SimulationError, StorageFailed
from sim.ids import METADATA_PARTITION, BrokerEpoch, NodeId, Offset, TopicPartition
from sim.log.config import LogConfig
from sim.log.directory.cleaner_checkpoint import write_cleaned
from sim.log.directory.future_logs import FutureLogs, Replaced
from sim.log.directory.names import directory_name, future_partition_of, partition_of
from sim.log.directory.open_logs import LogMaker, OpenLogs, rename_aside
from sim.log.partition.log import PartitionLog
from sim.log.partition.recovery import Recovery, load_log
from sim.log.store import checkpoints
from sim.log.store.checkpoints import Identity, MalformedCheckpoint
from sim.log.store.files import DiskFailed, FileStore
from sim.units import Bytes


class TwoLogs(StorageFailed):
    """A partition has a log in each of two directories; neither can be preferred."""


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """One partition found at startup."""

    partition: TopicPartition
    topic_id: str
    """From ``partition.metadata``; empty if that file is missing."""
    directory: int
    """Index of its log directory."""
    recovery: Recovery
    log: PartitionLog
    is_future: bool = False
    """True for a future log, while another log is in use."""


class LogManager:
    """The logs of one process. A new one is made at each start of the process."""

    def __init__(
        self,
        directories: tuple[FileStore, ...],
        node_id: NodeId,
        cluster_id: str,
        directory_ids: tuple[str, ...],
        config_of: Callable[[TopicPartition], LogConfig] = lambda _: LogConfig(),
        jitter_of: Callable[[TopicPartition], Callable[[LogConfig], int]] | None = None,
    ) -> None:
        """Takes over the log directories; those without ``meta.properties`` get one.

        Args:
            directories: The page caches and platters; they outlive the process.
            node_id: ``node.id``.
            cluster_id: 22 characters.
            directory_ids: ``directory.id`` of each directory, 22 characters.
            config_of: Settings of a partition's log when it is loaded or made.
            jitter_of: Draws, for a partition, how much earlier a new segment rolls by time.

        Raises:
            SimulationError: If a directory belongs to another node or cluster, or all directories
                are unusable.
        """
        self.directories = directories
        self.directory_ids = directory_ids
        self._current = OpenLogs()
        self.logs = self._current.logs
        """Every open log, in the order of opening. Not to be changed."""
        self.offline: dict[int, str] = {}
        """Log directories that have failed, with the reason."""
        self.previous_broker_epoch: BrokerEpoch = -1
        """From the clean shutdown markers, after ``load``; -1 if the last stop was not clean."""
        self._maker = LogMaker(directories, self.offline, config_of, jitter_of)
        self.futures = FutureLogs(self._current, self._maker)
        """Future logs, which move into another directory."""
        self.preferred: dict[TopicPartition, int] = {}
        """Directories that an administrator requested for logs that are not made yet."""
        self.cordoned: tuple[int, ...] = ()
        """Directories that get no new logs."""
        self._config_of = config_of
        self._encoded: dict[tuple[Path, str], tuple[dict[TopicPartition, Offset], bytes]] = {}
        """The checkpoints written last, with their text."""
        for number, store in enumerate(directories):
            identity = Identity(cluster_id, node_id, directory_ids[number])
            try:
                self._identify(store, identity)
            except DiskFailed as error:
                self.take_offline(number, str(error))

    # -- logs --------------------------------------------------------------------------------------

    def load(self) -> tuple[LoadedLog, ...]:
        """Opens every log found, recovering those of directories without a clean shutdown marker.

        A directory that fails on the way, or has a checkpoint that cannot be read, goes offline.

        Raises:
            DiskFailed: If no directory is left.
            TwoLogs: If two directories hold a log of one partition.
        """
        found: list[LoadedLog] = []
        epochs: list[BrokerEpoch] = []
        for number, store in enumerate(self.directories):
            if number in self.offline:
                continue
            try:
                found += self._load_directory(number, store, epochs)
            except DiskFailed as error:
                self.take_offline(number, str(error))
        if len(self.offline) == len(self.directories):
            raise DiskFailed("; ".join(self.offline.values()))
        if len(epochs) == len(self.directories) and len(dict.fromkeys(epochs)) == 1:
            self.previous_broker_epoch = epochs[0]
        return tuple(loaded for loaded in found if loaded.directory not in self.offline)

    def get(self, partition: TopicPartition) -> PartitionLog | None:
        """The partition's log, if it is open."""
        return self.logs.get(partition)

    def create(
        self, partition: TopicPartition, topic_id: str, directory: int | None = None
    ) -> PartitionLog:
        """Makes a log, in the directory with the fewest partitions unless one is requested.

        Raises:
            DiskFailed: If the directory has failed or is full, or none is left.
        """
        assert partition not in self.logs, f"{partition} is open already"
        requested = self.preferred.pop(partition, None) if directory is None else directory
        number = self._least_loaded() if requested is None else requested
        log = self._maker.make(partition, topic_id, number, str(partition))
        self._current.take_in(log, number, topic_id)
        self._maker.begin_jitter(log)
        return log

    def directory_of(self, partition: TopicPartition) -> int:
        """Index of the log directory of an open log."""
        return self._current.directory_of(partition)

    def topic_id_of(self, partition: TopicPartition) -> str:
        """The topic id in an open log's ``partition.metadata``; empty without that file."""
        return self._current.topic_id_of(partition)

    def delete(self, partition: TopicPartition) -> str:
        """Closes a log for good: its directory is renamed and waits for :meth:`remove_deleted`.

        Returns:
            The directory's new name.

        Raises:
            DiskFailed: If the disk has failed.
        """
        return self._current.close_as(partition, "delete")[1]

    def put_aside(self, partition: TopicPartition) -> str:
        """Closes a log that this broker should not have, and renames its directory.

        Returns:
            The directory's new name.

        Raises:
            DiskFailed: If the disk has failed.
        """
        return self._current.close_as(partition, "stray")[1]

    def replace_current(self, partition: TopicPartition) -> Replaced:
        """Replaces the current log, if there is one, by the future log.

        Raises:
            DiskFailed: If the future log's directory has failed; then nothing has changed.
        """
        current, futures = self._current, self.futures
        log = futures.logs[partition]
        log.rename_directory(str(partition))
        directory, topic_id = futures.release(partition)
        former = current.get(partition)
        if former is None:
            current.take_in(log, directory, topic_id)
            return Replaced(-1, "", None)
        source, known = current.release(partition)
        current.take_in(log, directory, topic_id)
        try:
            _move_cleaned(former, log, current.logs)
            doomed = rename_aside(former, source, known, "delete")
            self._checkpoint_directory(source)
        except DiskFailed as failure:
            return Replaced(source, "", failure)
        return Replaced(source, doomed, None)

    def remove_deleted(self, directory: int, name: str) -> None:
        """Removes the files of a deleted log, unless the log directory has failed meanwhile."""
        store = self.directories[directory]
        if directory not in self.offline and name in store.directories():
            store.delete_directory(name)

    def take_offline(self, directory: int, reason: str) -> tuple[TopicPartition, ...]:
        """Closes the logs of a failed log directory as they are; returns their partitions."""
        self.offline.setdefault(directory, reason)
        closed = self._current.take_offline(directory)
        self.futures.take_offline(directory)
        return closed

    # -- checkpoints -------------------------------------------------------------------------------

    def checkpoint_recovery_points(self) -> None:
        """Writes the recovery points of all directories.

        Raises:
            DiskFailed: If a disk has failed or is full; directories before it are written.
        """
        for number, store in self._online():
            self._checkpoint_recovery_points(number, store)

    def checkpoint_log_starts(self) -> None:
        """Writes the log start offsets of all directories.

        Raises:
            DiskFailed: If a disk has failed or is full; directories before it are written.
        """
        for number, store in self._online():
            self._checkpoint_log_starts(number, store)

    def checkpoint_high_watermarks(
        self,
        offsets: Mapping[TopicPartition, Offset],
        futures: Mapping[TopicPartition, Offset] | None = None,
    ) -> None:
        """Writes high watermarks, each to the directory of its log; closed logs are left out.

        Args:
            offsets: Of the logs that count.
            futures: Of future logs.

        Raises:
            DiskFailed: If a disk has failed or is full; directories before it are written.
        """
        for number, store in self._online():
            own = {
                log.partition: offsets[log.partition]
                for log in self._logs_in(number)
                if log.partition in offsets
            }
            if futures:
                logs = self.futures.logs_in(number)
                own.update({log.partition: futures.get(log.partition, 0) for log in logs})
            self._write_offsets(store, checkpoints.HIGH_WATERMARKS, own)

    def read_high_watermarks(self) -> dict[TopicPartition, Offset]:
        """Checkpointed high watermarks, except of future logs.

        Raises:
            MalformedCheckpoint: If a file cannot be read.
            DiskFailed: If a disk has failed.
        """
        found: dict[TopicPartition, Offset] = {}
        for number, store in self._online():
            futures = [log.partition for log in self.futures.logs_in(number)]
            known = checkpoints.read_offsets(store, checkpoints.HIGH_WATERMARKS)
            found.update({tp: offset for tp, offset in known.items() if tp not in futures})
        return found

    def read_future_watermarks(self) -> dict[TopicPartition, Offset]:
        """Checkpointed high watermarks of future logs.

        Raises:
            MalformedCheckpoint: If a file cannot be read.
            DiskFailed: If a disk has failed.
        """
        found: dict[TopicPartition, Offset] = {}
        for number, store in self._online():
            futures = [log.partition for log in self.futures.logs_in(number)]
            if futures:
                known = checkpoints.read_offsets(store, checkpoints.HIGH_WATERMARKS)
                found.update({tp: known[tp] for tp in futures if tp in known})
        return found

    # -- the end -----------------------------------------------------------------------------------

    def shutdown(self, broker_epoch: BrokerEpoch) -> Bytes:
        """Shuts down cleanly: closes and flushes every log, writes checkpoints, then the markers.

        A directory that fails on the way goes offline and gets no marker.

        Returns:
            Bytes moved to the platter.
        """
        moved = 0
        marker = checkpoints.encode_clean_shutdown(broker_epoch)
        for number, store in self._online():
            try:
                logs = [*self._logs_in(number, metadata=True), *self.futures.logs_in(number)]
                moved += sum([log.close() for log in logs])
                self._checkpoint_recovery_points(number, store)
                self._checkpoint_log_starts(number, store)
                store.replace(checkpoints.CLEAN_SHUTDOWN, marker)
            except DiskFailed as error:
                self.take_offline(number, str(error))
            store.close()
        return moved

    def finish(self) -> None:
        """Ends the run: writes page caches to the real files and closes these."""
        for store in self.directories:
            store.write_back_all()
            store.close()

    # -- inside ------------------------------------------------------------------------------------

    def _identify(self, store: FileStore, expected: Identity) -> None:
        name = checkpoints.META_PROPERTIES
        data = store.read_whole(name)
        if not store.exists(checkpoints.LOCK):
            store.replace(checkpoints.LOCK, b"")
        if data is None:
            store.replace(name, checkpoints.encode_identity(expected))
            return
        found = checkpoints.decode_identity(data, name)
        if found != expected:
            raise SimulationError(f"{store.root / name}: {found} found, {expected} expected")

    def _load_directory(
        self, number: int, store: FileStore, epochs: list[BrokerEpoch]
    ) -> list[LoadedLog]:
        marker = store.read_whole(checkpoints.CLEAN_SHUTDOWN)
        if marker is not None:
            epochs.append(checkpoints.decode_clean_shutdown(marker))
            store.delete(checkpoints.CLEAN_SHUTDOWN)
        _remove_deleted(store)
        points = checkpoints.read_offsets(store, checkpoints.RECOVERY_POINTS)
        starts = checkpoints.read_offsets(store, checkpoints.LOG_STARTS)
        found = []
        for directory in store.directories():
            if directory.endswith("-stray"):
                continue
            future = future_partition_of(directory)
            partition = partition_of(directory) if future is None else future
            if partition is None:
                raise MalformedCheckpoint(f"{store.root / directory} is no partition's directory")
            metadata = partition == METADATA_PARTITION
            log, recovery = load_log(
                store,
                directory,
                partition,
                self._config_of(partition),
                # The metadata log is always checked from its start, as KafkaRaftLog does.
                clean=marker is not None and not metadata,
                recovery_point=0 if metadata else points.get(partition, 0),
                log_start_offset=starts.get(partition, 0),
            )
            name = f"{directory}/{checkpoints.PARTITION_METADATA}"
            data = store.read_whole(name)
            topic_id = checkpoints.decode_partition_metadata(data, name) if data else ""
            self._take_loaded(log, number, topic_id, is_future=future is not None)
            found.append(
                LoadedLog(partition, topic_id, number, recovery, log, is_future=future is not None)
            )
        return found

    def _take_loaded(
        self, log: PartitionLog, number: int, topic_id: str, *, is_future: bool
    ) -> None:
        logs = self.futures if is_future else self._current
        known = logs.get(log.partition)
        if known is not None and logs.topic_id_of(log.partition) == topic_id:
            raise TwoLogs(
                f"{log.partition} found in {known.store.root / known.directory} and in "
                f"{log.store.root / log.directory}; one log allowed: delete one of the two "
                "directories, that of the disk that failed if one did"
            )
        logs.take_in(log, number, topic_id)
        self._maker.begin_jitter(log)

    def _checkpoint_directory(self, number: int) -> None:
        store = self.directories[number]
        self._checkpoint_recovery_points(number, store)
        self._checkpoint_log_starts(number, store)

    def _checkpoint_recovery_points(self, number: int, store: FileStore) -> None:
        logs = [*self._logs_in(number), *self.futures.logs_in(number)]
        points = {log.partition: log.recovery_point for log in logs}
        self._write_offsets(store, checkpoints.RECOVERY_POINTS, points)

    def _checkpoint_log_starts(self, number: int, store: FileStore) -> None:
        starts = {
            log.partition: log.log_start_offset
            for log in [*self._logs_in(number), *self.futures.logs_in(number)]
            if log.is_tiered or log.log_start_offset > log.segments[0].base_offset
        }
        checkpoints.write_offsets(store, checkpoints.LOG_STARTS, starts)

    def _write_offsets(
        self, store: FileStore, name: str, offsets: dict[TopicPartition, Offset]
    ) -> None:
        """Replaces a checkpoint; the text of the last one serves again if nothing has moved."""
        known = self._encoded.get((store.root, name))
        if known is None or known[0] != offsets:
            known = self._encoded[store.root, name] = (
                offsets,
                checkpoints.encode_offsets(offsets),
            )
        store.replace(name, known[1])

    def _online(self) -> list[tuple[int, FileStore]]:
        return [
            (number, store)
            for number, store in enumerate(self.directories)
            if number not in self.offline
        ]

    def _logs_in(self, directory: int, *, metadata: bool = False) -> list[PartitionLog]:
        logs = self._current.logs_in(directory)
        return [log for log in logs if metadata or log.partition != METADATA_PARTITION]

    def cordon(self, directories: str) -> None:
        """Directories that get no new logs: their names by commas, or ``*`` (KIP-1066)."""
        words = directories.split(",")
        count = len(self.directory_ids)
        self.cordoned = tuple(
            number for number in range(count) if {"*", directory_name(number)} & set(words)
        )

    def _least_loaded(self) -> int:
        """Directory with the fewest logs that is not cordoned, if there is one.

        Source: ``LogManager.nextLogDirs`` (4.3).
        """
        online = [number for number, _ in self._online()]
        if not online:
            raise DiskFailed("every log directory is offline")
        counts = {
            number: len(self._logs_in(number)) + len(self.futures.logs_in(number))
            for number in online
            if number not in self.cordoned
        }
        if not counts:
            return online[0]
        return min(counts, key=lambda number: (counts[number], number))


def _remove_deleted(store: FileStore) -> None:
    for name in store.directories():
        if name.endswith("-delete"):
            store.delete_directory(name)


def _move_cleaned(former: PartitionLog, log: PartitionLog, logs: Container[TopicPartition]) -> None:
    """The former log's first dirty offset holds for the log that replaces it."""
    known = checkpoints.read_offsets(former.store, checkpoints.CLEANER_OFFSETS)
    cleaned: Offset | None = known.pop(former.partition, None)
    if cleaned is not None:
        checkpoints.write_offsets(former.store, checkpoints.CLEANER_OFFSETS, known)
        write_cleaned(log, min(cleaned, log.cut_to), logs)
