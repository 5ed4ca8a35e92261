"""Reads of the remote log for consumers: reader threads, and the tasks that wait for one.

Source: ``RemoteLogManager.asyncRead``, ``RemoteLogReader``, ``RemoteStorageThreadPool``.
"""

from collections.abc import Callable

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.broker.tiered.cache import RemoteLogMetadataCache
from sim.protocol.broker.tiered.ports import (
    CancelRead,
    Effects,
    ReadSegment,
    RemoteReadDone,
    RemoteReadRequested,
    SegmentRead,
    TieredConfig,
    TieredLog,
)
from sim.protocol.broker.tiered.segments import Epochs, RemoteSegment, epoch_at


class RemoteReads:
    """Remote reads of one broker.

    Args:
        config: Settings.
        log_of: A replica's log; ``None`` if it is not on this broker.
    """

    def __init__(
        self, config: TieredConfig, log_of: Callable[[TopicPartition], TieredLog | None]
    ) -> None:
        self._config = config
        self._log_of = log_of
        self._running: dict[int, None] = {}
        self._waiting: dict[int, tuple[RemoteReadRequested, RemoteLogMetadataCache]] = {}

    def request(
        self, event: RemoteReadRequested, known: RemoteLogMetadataCache | None, out: Effects
    ) -> None:
        """Begins a read, lets it wait for a thread, or refuses it.

        Args:
            event: What to read.
            known: Remote segments of the partition; ``None`` if their events are not read yet.
            out: Receives effects.
        """
        if known is None:
            out.append(RemoteReadDone(event.token, ErrorCode.REPLICA_NOT_AVAILABLE))
        elif len(self._running) < self._config.readers:
            self._begin(event, known, out)
        elif len(self._waiting) < self._config.pending_reads_max:
            self._waiting[event.token] = event, known
        else:
            out.append(RemoteReadDone(event.token, ErrorCode.UNKNOWN_SERVER_ERROR))

    def cancel(self, token: int, out: Effects) -> None:
        """A fetch has waited too long: its thread is interrupted, its task removed."""
        self._waiting.pop(token, None)
        if token in self._running:
            del self._running[token]
            out.append(CancelRead(token))
            self._next(out)

    def answered(self, event: SegmentRead, out: Effects) -> None:
        """A read has ended."""
        if event.token not in self._running:
            return
        del self._running[event.token]
        out.append(RemoteReadDone(event.token, event.error, event.batches, event.aborted))
        self._next(out)

    def _next(self, out: Effects) -> None:
        while self._waiting and len(self._running) < self._config.readers:
            token = next(iter(self._waiting))
            self._begin(*self._waiting.pop(token), out)

    def _begin(
        self, event: RemoteReadRequested, known: RemoteLogMetadataCache, out: Effects
    ) -> None:
        log = self._log_of(event.partition)
        epoch = epoch_at(log.epochs, event.offset) if log is not None else None
        segment = known.find(epoch, event.offset) if epoch is not None else None
        if log is None or segment is None:
            # The offset is in no remote segment of this lineage.
            out.append(RemoteReadDone(event.token, ErrorCode.OFFSET_OUT_OF_RANGE))
            return
        self._running[event.token] = None
        following = _after(segment, known, log.epochs) if event.committed else ()
        read = ReadSegment(
            event.token, segment, event.offset, event.bytes_max, following, event.committed
        )
        out.append(read)


def _after(
    segment: RemoteSegment, known: RemoteLogMetadataCache, epochs: Epochs
) -> tuple[RemoteSegment, ...]:
    """The segments behind one in its lineage."""
    found: list[RemoteSegment] = []
    following: RemoteSegment | None = segment
    while following is not None:
        offset = following.end + 1
        epoch = epoch_at(epochs, offset)
        following = known.find(epoch, offset) if epoch is not None else None
        if following is not None:
            found.append(following)
    return tuple(found)
