"""Tiered storage on one broker: its remote log manager, metadata topic and object store client.

Source: ``RemoteLogManager``, ``TopicBasedRemoteLogMetadataManager``, as ``BrokerServer`` has them.
"""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

from sim.ids import Offset, TopicPartition
from sim.log.partition.log import PartitionLog
from sim.log.partition.segment import all_segment_files
from sim.log.producers.snapshot import snapshot_file
from sim.log.store.checkpoints import encode_epochs
from sim.nodes.broker.replicas import Replicas
from sim.nodes.broker.tiered.remote_storage import SUFFIXES, RemoteStorage
from sim.nodes.process.dispatcher import Dispatcher, Performer
from sim.nodes.process.port import Port
from sim.nodes.storage.log_dirs import Storage
from sim.protocol.broker.replication.events import LogStartMoved
from sim.protocol.broker.tiered import ports as tp
from sim.protocol.broker.tiered.manager import RemoteLogManager
from sim.protocol.broker.tiered.metadata_topic import (
    BatchesFetched,
    MetadataTopic,
    WriteEvent,
    metadata_partition_of,
)
from sim.protocol.broker.tiered.segments import Epochs, RemoteSegment
from sim.protocol.messages.data import AbortedTransaction
from sim.protocol.metadata.image import MetadataImage
from sim.records import remote_log_metadata
from sim.units import Bytes, timestamp_ms
from sim.wire.record_batch import RecordBatch


class _Log:
    """A replica's log as its remote log manager sees it. Satisfies ``TieredLog``."""

    def __init__(self, log: PartitionLog, replicas: Replicas) -> None:
        self._log = log
        self._replicas = replicas

    @property
    def epochs(self) -> Epochs:
        """Entries of the epoch cache."""
        return self._log.epochs

    @property
    def log_start_offset(self) -> Offset:
        """First offset of the remote or local log."""
        return self._log.log_start_offset

    @property
    def local_log_start_offset(self) -> Offset:
        """First offset of the local log."""
        return self._log.local_log_start_offset

    @property
    def log_end_offset(self) -> Offset:
        """Log end offset."""
        return self._log.log_end_offset

    @property
    def last_stable_offset(self) -> Offset:
        """Last stable offset."""
        return self._replicas.last_stable_offset(self._log.partition)

    @property
    def retention(self) -> tuple[int, Bytes]:
        """``retention.ms`` and ``retention.bytes``."""
        return self._log.config.retention_ms, self._log.config.retention_bytes

    def closed_segments(self, start: Offset) -> list[tp.ClosedSegment]:
        """Segments from the one that holds the offset on, without the active one."""
        segments = self._log.segments
        return [
            tp.ClosedSegment(
                segment.base_offset,
                following.base_offset,
                segment.size,
                segment.largest_timestamp_ms(),
                not any(True for _ in segment.transaction_index.entries()),
            )
            for segment, following in pairwise(segments)
            if following.base_offset > start
        ]

    def only_local_bytes(self) -> Bytes:
        """Bytes of the segments that were not copied yet.

        Source: ``UnifiedLog.onlyLocalLogSegmentsSize``.
        """
        highest = self._log.highest_remote
        return sum(s.size for s in self._log.segments if s.base_offset > highest)

    def note_copied(self, highest: Offset) -> None:
        """Sets the last offset in the remote log."""
        self._log.highest_remote = highest


class BrokerTier:
    """Tiered storage of one broker process.

    Args:
        process: The broker.
        incarnation: Number of its starts.
        storage: Its logs.
        replicas: Its replicas.
        config: Settings.
        image: Its metadata.
    """

    def __init__(
        self,
        process: Dispatcher,
        storage: Storage,
        replicas: Replicas,
        config: tp.TieredConfig,
        image: Callable[[], MetadataImage],
    ) -> None:
        self._process = process
        self._storage = storage
        self._replicas = replicas
        self._config = config
        self._remote = RemoteStorage(process)
        manager = RemoteLogManager(storage.node, process.incarnation, config, self._log_of)
        self._manager = process.add_machine("tiered", manager)
        self._topic = process.add_machine("remote-log-metadata", MetadataTopic(image))
        self.performers: dict[type, Performer] = {
            tp.RoleApplied: self._to_manager,
            tp.PartitionStopped: self._to_manager,
            tp.RemoteReadRequested: self._to_manager,
            tp.RemoteReadCancelled: self._to_manager,
            tp.AuxStateRequested: self._to_manager,
            tp.Published: self._to_manager,
            tp.RemoteReadDone: self._to_replicas,
            tp.AuxStateDone: self._to_replicas,
            tp.AssignMetadata: self._assign,
            tp.PublishEvent: self._publish,
            BatchesFetched: self._fetched,
            tp.CopySegment: self._copy,
            tp.DeleteSegment: self._delete,
            tp.ReadSegment: self._read,
            tp.CancelRead: self._cancel,
            tp.ReadAuxState: self._read_aux_state,
            tp.RaiseLogStart: self._raise_log_start,
        }
        """Performers of effects."""

    def _log_of(self, partition: TopicPartition) -> _Log | None:
        log = self._storage.manager.get(partition)
        return None if log is None else _Log(log, self._replicas)

    def _to_manager(self, _port: Port, effect: object) -> None:
        self._process.deliver(self._manager, effect)

    def _to_replicas(self, _port: Port, effect: tp.RemoteReadDone | tp.AuxStateDone) -> None:
        self._replicas.deliver(effect)

    # -- metadata topic ---------------------------------------------------------------------------

    def _assign(self, _port: Port, effect: tp.AssignMetadata) -> None:
        self._process.deliver(self._topic, effect)

    def _publish(self, _port: Port, effect: tp.PublishEvent) -> None:
        event = effect.event
        count = self._config.metadata_partitions
        number = metadata_partition_of(event.topic_id, event.partition.partition, count)
        batch = remote_log_metadata.batch_for(event, timestamp_ms(self._process.now()))
        self._process.deliver(self._topic, WriteEvent(effect.token, number, batch))

    def _fetched(self, _port: Port, effect: BatchesFetched) -> None:
        batches = [batch for batch in effect.batches if isinstance(batch, RecordBatch)]
        events = remote_log_metadata.events_in(batches)
        read = tp.EventsRead(effect.metadata_partition, events, effect.caught_up)
        self._process.deliver(self._manager, read)

    # -- object store -----------------------------------------------------------------------------

    def _done(self, token: int) -> Callable[[bool], None]:
        def done(ok: bool) -> None:  # noqa: FBT001 - an outcome
            self._process.deliver(self._manager, tp.StorageDone(token, ok))

        return done

    def _copy(self, _port: Port, effect: tp.CopySegment) -> None:
        """Reads a segment's files, from the disk what is not in memory, and writes its objects."""
        segment, process = effect.segment, self._process
        log = self._storage.manager.get(segment.partition)
        found = None
        if log is not None:
            found = next((s for s in log.segments if s.base_offset == segment.start), None)
        if log is None or found is None:
            self._done(effect.token)(False)  # noqa: FBT003 - an outcome
            return
        files = _files_of(log, segment)
        disk = self._storage.disk_of(segment.partition)
        cold = found.log.use(0, found.size)
        ready = process.kernel.time
        if cold is not None and not disk.stalled:
            ready = disk.read(cold, str(segment.partition))
        process.call_at(ready, self._remote.copy, segment, files, self._done(effect.token))

    def _delete(self, _port: Port, effect: tp.DeleteSegment) -> None:
        self._remote.delete(effect.segment, self._done(effect.token))

    def _read(self, _port: Port, effect: tp.ReadSegment) -> None:
        def done(read: tp.SegmentRead) -> None:
            if effect.committed and read.batches:
                read = replace(read, aborted=self._with_local(effect, read))
            self._process.deliver(self._manager, read)

        self._remote.read(effect, done)

    def _with_local(
        self, effect: tp.ReadSegment, read: tp.SegmentRead
    ) -> tuple[AbortedTransaction, ...]:
        """Aborted transactions of a read, with those whose markers are in the local log."""
        log = self._storage.manager.get(effect.segment.partition)
        local: tuple[tuple[int, Offset], ...] = ()
        if log is not None:
            end = read.batches[-1].last_offset + 1
            local = log.transactions.aborted_between(effect.offset, end)
        found = [*read.aborted, *(AbortedTransaction(*pair) for pair in local)]
        return tuple(dict.fromkeys(found))

    def _cancel(self, _port: Port, effect: tp.CancelRead) -> None:
        self._remote.cancel(effect.token)

    def _read_aux_state(self, _port: Port, effect: tp.ReadAuxState) -> None:
        def done(state: tp.AuxState | None) -> None:
            self._replicas.deliver(tp.AuxStateDone(effect.token, state))

        self._remote.aux_state(effect.segment, done)

    def _raise_log_start(self, _port: Port, effect: tp.RaiseLogStart) -> None:
        """Raises a log start, as far as the high watermark."""
        log = self._storage.manager.get(effect.partition)
        if log is None or effect.offset > self._replicas.high_watermark(effect.partition):
            return
        before = log.log_start_offset
        if log.raise_log_start(effect.offset):
            moved = LogStartMoved(effect.partition, before, effect.offset, effect.reason)
            self._replicas.deliver(moved)


def _files_of(log: PartitionLog, segment: RemoteSegment) -> list[tuple[str, bytes]]:
    """Suffixes and contents of a segment's objects; those without contents are left out."""
    names = [*all_segment_files(log.directory, segment.start)]
    names.append(snapshot_file(log.directory, segment.end + 1))
    contents = [log.store.read_whole(name) or b"" for name in names]
    contents.append(encode_epochs([entry for entry in log.epochs if entry[1] <= segment.end]))
    pairs = list(zip(SUFFIXES, contents, strict=True))
    return [pair for pair in pairs if pair[1] or pair[0] in ("log", "index")]
