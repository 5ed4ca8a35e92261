"""Moves of replicas between a broker's log directories (KIP-113).

A future log in the other directory is filled from the current one by a thread of the broker: a
follower's loop whose leader is the log beside it. Each thread moves one replica at a time, the
smallest name first. When the future log has caught up, the controller is asked to assign the new
directory (KIP-858); when it has, and the future log has caught up again, it replaces the current
log. In ZooKeeper mode it replaces it at once.

Until then the thread checks every millisecond for new records; Kafka's does so continuously. Left
out: the throttle of the copying.

Source: ``ReplicaManager.alterReplicaLogDirs``, ``ReplicaAlterLogDirsThread``,
``LocalLeaderEndPoint``, ``AbstractFetcherThread``.
"""

from sim.error_codes import ErrorCode
from sim.errors import CorruptRecord, StorageFailed
from sim.ids import Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.log_dirs import FutureReplica, LogDirs
from sim.protocol.broker.replica import Replica
from sim.protocol.broker.replication.directories.move import (
    CopyThread,
    Move,
    PendingCopy,
    come_into_range,
    cut,
    name_of,
)
from sim.protocol.broker.replication.directories.replica_directories import ReplicaDirectories
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.events import (
    AlterLogDirsTurn,
    CopyTurn,
    FormerBroke,
    FutureBroke,
    StorageBroke,
)
from sim.protocol.broker.replication.fetcher import fetcher_id_of
from sim.protocol.broker.replication.fetchers import Fetchers
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.messages.log_dirs import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
)
from sim.trace.rows.log import LogDirMoves
from sim.units import MS, NEVER, Micros

LOOK_AGAIN_US: Micros = MS
"""Pause of a thread without new records; a modelling choice."""


class AlterLogDirs:
    """All moves on one broker.

    Args:
        hosted: The broker's partitions.
        dirs: The log directories; ``None``: replicas stay where they are.
        directories: Assignments at the controller.
        fetchers: Followers' fetchers, which use the new log then.
    """

    def __init__(
        self,
        hosted: HostedPartitions,
        dirs: LogDirs | None,
        directories: ReplicaDirectories,
        fetchers: Fetchers,
    ) -> None:
        self._hosted = hosted
        self._dirs = dirs
        self._directories = directories
        self._fetchers = fetchers
        self._count = hosted.config.alter_log_dirs_threads
        self._threads: dict[int, CopyThread] = {}
        self.moves: dict[TopicPartition, Move] = {}
        """All moves, oldest first. Not to be changed."""

    def high_watermarks(self) -> dict[TopicPartition, Offset]:
        """High watermarks of future logs, for the checkpoint."""
        return {partition: move.high_watermark for partition, move in self.moves.items()}

    # -- requests ----------------------------------------------------------------------------------

    def request(
        self, token: int, request: AlterReplicaLogDirsRequest, now: Micros, out: Effects
    ) -> None:
        """Begins moves; the response does not wait for their end.

        Source: ``ReplicaManager.alterReplicaLogDirs``.
        """
        errors = []
        for partition, directory in request.directories:
            try:
                error = self._alter(partition, directory, out)
            except StorageFailed as failure:
                error = ErrorCode.KAFKA_STORAGE_ERROR
                if self.moves.get(partition) is not None:
                    out.append(FutureBroke(partition, str(failure)))
            errors.append((partition, error))
        out.append(fx.Reply(token, AlterReplicaLogDirsResponse(tuple(errors))))
        self._directories.send(now, out)

    def _alter(self, partition: TopicPartition, directory: str, out: Effects) -> ErrorCode:
        hosted, dirs = self._hosted, self._dirs
        if dirs is None or not dirs.has_directory(directory):
            return ErrorCode.LOG_DIR_NOT_FOUND
        if not dirs.may_have_future(partition):
            return ErrorCode.INVALID_TOPIC_EXCEPTION
        if not dirs.is_directory_online(directory) or partition in hosted.offline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if dirs.is_cordoned(directory):
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        move = self.moves.get(partition)
        if move is not None and move.future.directory != directory:
            self.cancel(partition, out)
        replica = hosted.replicas.get(partition)
        if replica is None:
            dirs.prefer(partition, directory)
            known = partition in hosted.image.partitions
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return ErrorCode.REPLICA_NOT_AVAILABLE if known else unknown
        if dirs.directory_name_of(partition) == directory or partition in self.moves:
            return ErrorCode.NONE
        if dirs.has_failed_directory():
            # A future log may be in the failed one.
            return ErrorCode.KAFKA_STORAGE_ERROR
        future = dirs.create_future(partition, directory)
        self._begin(replica, future, 0, "began", out)
        return ErrorCode.NONE

    def _begin(
        self,
        replica: Replica,
        future: FutureReplica,
        watermark: Offset,
        phase: str,
        out: Effects,
    ) -> None:
        dirs = self._dirs
        assert dirs is not None, "there is a future log"
        partition = replica.partition
        watermark = max(min(watermark, future.log.log_end_offset), future.log.log_start_offset)
        move = Move(
            partition,
            future,
            dirs.directory_name_of(partition),
            dirs.directory_id_of(partition),
            replica.leader_epoch,
            watermark,
            watermark,
        )
        self.moves[partition] = move
        thread = self._thread_of(partition)
        thread.moves[partition] = move
        self._note(move, phase, replica.log.log_end_offset, out)
        self._start(thread, out)

    # -- events during moves -----------------------------------------------------------------------

    def applied(self, replica: Replica, now: Micros, out: Effects) -> None:
        """Metadata of a partition was applied: a future log found at the start continues.

        The controller's acknowledgement belongs to the partition's former state.

        Source: ``ReplicaManager.maybeAddLogDirFetchers``, ``AbstractFetcherThread.addPartitions``.
        """
        dirs, partition = self._dirs, replica.partition
        future = None if dirs is None else dirs.future_of(partition)
        if dirs is None or future is None:
            return
        move = self.moves.get(partition)
        if move is None:
            if future.directory == dirs.directory_name_of(partition):
                out.append(dirs.remove_future(partition))
            else:
                watermark = dirs.future_watermark(partition)
                self._begin(replica, future, watermark, "resumed", out)
            return
        move.assignment = "none"
        has_failed = move.not_before == NEVER
        if has_failed or move.leader_epoch != replica.leader_epoch:
            move.leader_epoch = replica.leader_epoch
            move.offset = move.high_watermark
            move.truncating = True
            if has_failed:
                move.not_before = now
                self._start(self._thread_of(partition), out)
        elif not move.truncating:
            self._promote(move, replica, now, out)

    def truncated(self, partition: TopicPartition, offset: Offset) -> None:
        """The current log was truncated: so is the future log.

        Source: ``AbstractFetcherThread.markPartitionsForTruncation``.
        """
        move = self.moves.get(partition)
        if move is not None:
            move.offset = min(move.offset, offset)
            move.truncating = True

    def accepted(self, partition: TopicPartition, directory_id: str) -> None:
        """The controller has assigned a replica's directory."""
        move = self.moves.get(partition)
        if move is not None and move.future.directory_id == directory_id:
            move.assignment = "accepted"

    def cancel(self, partition: TopicPartition, out: Effects) -> None:
        """Cancels a move, with its copy.

        Raises:
            StorageFailed: If the future log's disk has failed.
        """
        dirs = self._dirs
        if dirs is None or dirs.future_of(partition) is None:
            return
        self._forget(partition, "cancelled", out)
        out.append(dirs.remove_future(partition))

    def directory_failed(self, lost: tuple[TopicPartition, ...], out: Effects) -> None:
        """A log directory failed; ``lost``: partitions whose current log was in it."""
        dirs = self._dirs
        for partition in list(self.moves):
            if dirs is not None and (partition in lost or dirs.future_of(partition) is None):
                self._forget(partition, "failed", out)

    def _forget(self, partition: TopicPartition, phase: str, out: Effects) -> None:
        """Ends a replica's move; its assignment at the controller is reverted."""
        move = self.moves.pop(partition, None)
        if move is None:
            return
        self._drop(move)
        replica = self._hosted.replicas.get(partition)
        if replica is not None and move.assignment != "none":
            self._directories.assign(partition, replica.topic_id, move.origin_id)
        end = -1 if replica is None else replica.log.log_end_offset
        self._note(move, phase, end, out)

    def _drop(self, move: Move) -> None:
        thread = self._thread_of(move.partition)
        del thread.moves[move.partition]
        if thread.partition == move.partition:
            thread.partition = None

    # -- the threads ------------------------------------------------------------------------------

    def turn(self, event: AlterLogDirsTurn, now: Micros, out: Effects) -> None:
        """A thread's turn: writes the batches that it has read, and reads the next ones."""
        thread = self._threads[event.thread]
        thread.running = False
        copy, thread.copy = thread.copy, None
        flush = False
        if copy is not None and self._is_current(copy):
            flush = self._write(copy, now, out)
            if flush:
                thread.running = True
                out.append(CopyTurn(thread.number, copy.move.partition, 0, 0, flush=True))
        if not flush:
            self._read_next(thread, now, out)
        self._directories.send(now, out)

    def _is_current(self, copy: PendingCopy) -> bool:
        """True if the batches that were read still belong at the future log's end."""
        move = copy.move
        return (
            self.moves.get(move.partition) is move
            and not move.truncating
            and move.offset == copy.offset
            and move.leader_epoch == copy.leader_epoch
        )

    def _read_next(self, thread: CopyThread, now: Micros, out: Effects) -> None:
        """Reads for the first replica that has something to copy; pauses if none has."""
        pause = 0
        while (move := self._choose(thread, now)) is not None:
            copy = self._read(move, now, out)
            if copy is None:
                continue
            if copy.batches:
                thread.copy = copy
                size = sum([batch.size_bytes for batch in copy.batches])
                self._pay(
                    thread, CopyTurn(thread.number, move.partition, size, 0, flush=False), out
                )
                return
            self._write(copy, now, out)
            if self.moves.get(move.partition) is move:
                pause = LOOK_AGAIN_US
                break
        if thread.moves:
            if not pause:
                pause = min([each.not_before for each in thread.moves.values()]) - now
            if pause >= NEVER - now:
                return  # all that is left has failed
            self._pay(thread, CopyTurn(thread.number, None, 0, max(pause, 0), flush=False), out)

    def _choose(self, thread: CopyThread, now: Micros) -> Move | None:
        """Replica that the thread moves: the one it has begun, else the smallest name.

        Source: ``LocalLeaderEndPoint.selectPartitionToFetch``.
        """
        if thread.partition is not None:
            move = thread.moves[thread.partition]
            if move.not_before <= now:
                return move
        ready = [each for each in thread.moves.values() if each.not_before <= now]
        if not ready:
            return None
        move = min(ready, key=name_of)
        thread.partition = move.partition
        return move

    def _read(self, move: Move, now: Micros, out: Effects) -> PendingCopy | None:
        """Reads the next batches of the current log; ``None`` if that fails."""
        replica = self._hosted.replicas[move.partition]
        try:
            while move.truncating:
                cut(move, replica)
        except CorruptRecord:
            # Marked as failed, until metadata of the partition are applied again.
            move.not_before = NEVER
            return None
        except StorageFailed as failure:
            self._broke(move, str(failure), now, out)
            return None
        try:
            come_into_range(move, replica)
        except CorruptRecord:
            self._delay(move, now)
            return None
        except StorageFailed as failure:
            self._broke(move, str(failure), now, out)
            return None
        config = self._hosted.config.fetcher
        size = min(config.partition_bytes_max, config.response_bytes_max)
        log = replica.log
        try:
            batches = log.read(move.offset, log.log_end_offset, size)
        except CorruptRecord:
            self._delay(move, now)
            return None
        except StorageFailed as failure:
            out.append(StorageBroke(move.partition, str(failure)))
            self._delay(move, now)
            return None
        return PendingCopy(
            move,
            move.offset,
            move.leader_epoch,
            batches,
            replica.high_watermark,
            log.log_start_offset,
        )

    def _write(self, copy: PendingCopy, now: Micros, out: Effects) -> bool:
        """Appends to the future log, and promotes it if possible; true if an fsync is due first.

        Source: ``ReplicaAlterLogDirsThread.processPartitionData``.
        """
        move, log = copy.move, copy.move.future.log
        flush_due = False
        try:
            if copy.batches:
                flush_due = log.append_as_follower(copy.batches)
            end = log.log_end_offset
            move.offset = end
            move.high_watermark = max(min(copy.high_watermark, end), log.log_start_offset)
            if copy.log_start <= move.high_watermark:
                log.raise_log_start(copy.log_start)
        except CorruptRecord:
            self._delay(move, now)
            return False
        except StorageFailed as failure:
            self._broke(move, str(failure), now, out)
            return False
        if not flush_due:
            self._promote(move, self._hosted.replicas[move.partition], now, out)
        return flush_due

    # -- promotion ---------------------------------------------------------------------------------

    def _promote(self, move: Move, replica: Replica, now: Micros, out: Effects) -> None:
        """Takes the next step of the promotion, if the future log has caught up.

        Source: ``ReplicaAlterLogDirsThread.maybePromoteFutureReplica``.
        """
        if move.future.log.log_end_offset != replica.log.log_end_offset:
            return
        if move.assignment == "none":
            self._note(move, "caught_up", replica.log.log_end_offset, out)
            if not self._directories.are_assigned:
                self._swap(move, replica, now, out)
                return
            move.assignment = "queued"
            self._directories.assign(move.partition, replica.topic_id, move.future.directory_id)
        elif move.assignment == "accepted":
            self._swap(move, replica, now, out)

    def _swap(self, move: Move, replica: Replica, now: Micros, out: Effects) -> None:
        """Replaces the current log by the future log; the high watermark stays."""
        dirs, partition = self._dirs, move.partition
        assert dirs is not None, "there is a future log"
        start = replica.log.log_start_offset
        try:
            promoted = dirs.replace_current(partition)
        except StorageFailed as failure:
            self._broke(move, str(failure), now, out)
            return
        replica.log = promoted.log
        del self.moves[partition]
        self._drop(move)
        self._fetchers.note_start(replica, start, "moved", out)
        self._note(move, "swapped", replica.log.log_end_offset, out)
        if promoted.doomed is not None:
            out.append(promoted.doomed)
        if promoted.failure:
            out.append(FormerBroke(promoted.source, promoted.failure))

    # -- internals ---------------------------------------------------------------------------------

    def _thread_of(self, partition: TopicPartition) -> CopyThread:
        number = fetcher_id_of(partition, self._count)
        thread = self._threads.get(number)
        if thread is None:
            thread = self._threads[number] = CopyThread(number)
        return thread

    def _start(self, thread: CopyThread, out: Effects) -> None:
        """Gives the thread a turn, if none is on its way."""
        if not thread.running:
            self._pay(thread, CopyTurn(thread.number, None, 0, 0, flush=False), out)

    def _pay(self, thread: CopyThread, turn: CopyTurn, out: Effects) -> None:
        thread.running = True
        out.append(turn)

    def _delay(self, move: Move, now: Micros) -> None:
        move.not_before = now + max(self._hosted.config.fetcher.backoff_us, LOOK_AGAIN_US)

    def _broke(self, move: Move, reason: str, now: Micros, out: Effects) -> None:
        out.append(FutureBroke(move.partition, reason))
        self._delay(move, now)

    def _note(self, move: Move, phase: str, end: Offset, out: Effects) -> None:
        out.append(
            LogDirMoves.row(
                self._hosted.broker,
                *move.partition,
                phase=phase,
                from_directory=move.origin,
                to_directory=move.future.directory,
                future_end=move.future.log.log_end_offset,
                log_end_offset=end,
            )
        )
