"""A broker's client of the object store: segments as objects, and a cache of their indexes.

Each segment is six objects: batches, offset index, time index, aborted transactions, the producers'
snapshot behind it, and the leader epochs up to its end. A call is one request after another, each
on a connection of its own while it lasts; an answer other than 200 ends it.

Left out: the size of the index cache (``remote.log.index.file.cache.total.size.bytes``).

Source: ``RemoteStorageManager``, ``RemoteIndexCache``, ``RemoteLogManager.read``.
"""

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import OBJECT_STORE_ID, Offset
from sim.log.partition.index import OFFSET_ENTRY
from sim.log.producers.transaction_index import decode_aborted
from sim.log.store.checkpoints import decode_epochs
from sim.nodes.process.dispatcher import Dispatcher
from sim.protocol import effects as fx
from sim.protocol.broker.tiered.ports import (
    AuxState,
    ReadSegment,
    SegmentRead,
)
from sim.protocol.broker.tiered.segments import RemoteSegment
from sim.protocol.events import RequestFailed, ResponseReceived
from sim.protocol.messages.base import Request
from sim.protocol.messages.data import AbortedTransaction
from sim.protocol.messages.object_store import (
    NOT_FOUND,
    OK,
    DeleteObject,
    GetObject,
    ObjectResponse,
    PutObject,
)
from sim.units import MIB, SECOND, Bytes, Micros
from sim.wire.record_batch import LOG_OVERHEAD, RecordBatch, batch_size_at

SUFFIXES = ("log", "index", "timeindex", "txnindex", "snapshot", "leader-epoch-checkpoint")
"""Suffixes of a segment's objects."""

_TIMEOUT_US: Micros = 30 * SECOND
_LOOKAHEAD: Bytes = MIB
"""Bytes read beyond what was requested, so that at least one batch comes whole."""

Then: TypeAlias = Callable[["ObjectResponse | None"], None]
"""Continues a call with an answer; ``None``: none came."""


def object_name(segment: RemoteSegment, suffix: str) -> str:
    """Name of one of a segment's objects."""
    return f"{segment.partition}/{segment.start:020d}-{segment.segment_id}.{suffix}"


class _Request(NamedTuple):
    """A request without an answer."""

    then: Then
    channel: int


@dataclass(slots=True)
class _Read:
    """A consumer's read."""

    effect: ReadSegment
    done: Callable[[SegmentRead], None]
    batches: tuple[RecordBatch, ...] = ()
    aborted: list[AbortedTransaction] = field(default_factory=list)


class RemoteStorage:
    """The object store as one broker process uses it; also the machine that gets its answers.

    Args:
        process: The broker.
    """

    def __init__(self, process: Dispatcher) -> None:
        self._process = process
        self._port = process.add_machine("remote-storage", self)
        self._open: dict[int, _Request] = {}
        self._correlation = 0
        self._idle: list[int] = []
        self._channels = 0
        self._indexes: dict[str, tuple[list[Offset], list[Bytes]]] = {}
        self._cancelled: dict[int, None] = {}

    def handle(self, event: ResponseReceived | RequestFailed, now: Micros) -> list[fx.Send]:
        """Takes an answer."""
        del now
        request = self._open.pop(event.correlation, None)
        if request is not None:
            self._idle.append(request.channel)
            self._idle.sort(reverse=True)
            response = event.response if isinstance(event, ResponseReceived) else None
            assert response is None or isinstance(response, ObjectResponse), "the store's own"
            request.then(response)
        return []

    def _send(self, request: Request, then: Then) -> None:
        if self._idle:
            channel = self._idle.pop()
        else:
            channel = self._channels
            self._channels += 1
        self._correlation += 1
        self._open[self._correlation] = _Request(then, channel)
        name = f"objects-{channel}"
        send = fx.Send(OBJECT_STORE_ID, self._correlation, request, _TIMEOUT_US, name)
        self._process.perform(self._port, [send])

    # -- writing ----------------------------------------------------------------------------------

    def copy(
        self, segment: RemoteSegment, files: list[tuple[str, bytes]], done: Callable[[bool], None]
    ) -> None:
        """Writes a segment's objects, the batches first.

        Args:
            segment: What is copied.
            files: Suffixes and contents that are left to write.
            done: Gets true once all are written, false at the first failure.
        """
        if not files:
            done(True)  # noqa: FBT003 - an outcome
            return
        suffix, data = files[0]

        def then(response: ObjectResponse | None) -> None:
            if response is None or response.status != OK:
                done(False)  # noqa: FBT003 - an outcome
            else:
                self.copy(segment, files[1:], done)

        self._send(PutObject(object_name(segment, suffix), data), then)

    def delete(self, segment: RemoteSegment, done: Callable[[bool], None]) -> None:
        """Deletes a segment's objects; ``done`` gets false at the first failure."""
        self._indexes.pop(segment.segment_id, None)
        self._delete(segment, list(SUFFIXES), done)

    def _delete(
        self, segment: RemoteSegment, left: list[str], done: Callable[[bool], None]
    ) -> None:
        if not left:
            done(True)  # noqa: FBT003 - an outcome
            return

        def then(response: ObjectResponse | None) -> None:
            if response is None or response.status != OK:
                done(False)  # noqa: FBT003 - an outcome
            else:
                self._delete(segment, left[1:], done)

        self._send(DeleteObject(object_name(segment, left[0])), then)

    # -- reading ----------------------------------------------------------------------------------

    def aux_state(self, segment: RemoteSegment, done: Callable[[AuxState | None], None]) -> None:
        """Reads leader epochs and producers; ``done`` gets ``None`` if one cannot be read."""

        def epochs(response: ObjectResponse | None) -> None:
            if response is None or response.status != OK:
                done(None)
                return
            entries = tuple(decode_epochs(response.data, "leader-epoch-checkpoint"))

            def snapshot(found: ObjectResponse | None) -> None:
                if found is None or found.status not in (OK, NOT_FOUND):
                    done(None)
                else:
                    done(AuxState(segment.end + 1, entries, found.data))

            self._send(GetObject(object_name(segment, "snapshot")), snapshot)

        self._send(GetObject(object_name(segment, "leader-epoch-checkpoint")), epochs)

    def cancel(self, token: int) -> None:
        """Interrupts a read: what is on its way is thrown away, an index too."""
        self._cancelled[token] = None

    def read(self, effect: ReadSegment, done: Callable[[SegmentRead], None]) -> None:
        """Reads batches: the index first, unless it is cached, then the range that it names."""
        work = _Read(effect, done)
        segment = effect.segment
        if segment.segment_id in self._indexes:
            self._read_range(work)
            return

        def then(response: ObjectResponse | None) -> None:
            if self._ended(work, response):
                return
            assert response is not None, "it would have ended"
            pairs = list(OFFSET_ENTRY.iter_unpack(response.data))
            self._indexes[segment.segment_id] = (
                [segment.start + relative for relative, _ in pairs],
                [position for _, position in pairs],
            )
            self._read_range(work)

        self._send(GetObject(object_name(segment, "index")), then)

    def _ended(self, work: _Read, response: ObjectResponse | None) -> bool:
        """True if a read is cancelled, or has failed and is answered so."""
        token = work.effect.token
        if token in self._cancelled:
            del self._cancelled[token]
            return True
        if response is None or response.status != OK:
            work.done(SegmentRead(token, ErrorCode.UNKNOWN_SERVER_ERROR))
            return True
        return False

    def _read_range(self, work: _Read, ahead: Bytes = _LOOKAHEAD) -> None:
        effect = work.effect
        offsets, positions = self._indexes[effect.segment.segment_id]
        at = bisect_right(offsets, effect.offset)
        position = positions[at - 1] if at else 0
        request = GetObject(object_name(effect.segment, "log"), position, effect.bytes_max + ahead)

        def then(response: ObjectResponse | None) -> None:
            if not self._ended(work, response):
                assert response is not None, "it would have ended"
                work.batches = _batches_from(response.data, effect.offset, effect.bytes_max)
                if not work.batches and len(response.data) == request.length:
                    self._read_range(work, 2 * ahead)  # a batch is larger than that
                else:
                    self._collect(work, (effect.segment, *effect.following))

        self._send(request, then)

    def _collect(self, work: _Read, left: tuple[RemoteSegment, ...]) -> None:
        """Collects the aborted transactions of what was read, from one segment after another.

        Source: ``RemoteLogManager.collectAbortedTransactions``.
        """
        effect = work.effect
        indexed = [segment for segment in left if not segment.lacks_aborted]
        if not effect.committed or not work.batches or not indexed:
            found = SegmentRead(effect.token, ErrorCode.NONE, work.batches, tuple(work.aborted))
            work.done(found)
            return
        end = work.batches[-1].last_offset + 1

        def then(response: ObjectResponse | None) -> None:
            if self._ended(work, response):
                return
            assert response is not None, "it would have ended"
            is_complete = False
            for entry in decode_aborted(response.data):
                if entry.last_offset >= effect.offset and entry.first_offset < end:
                    work.aborted.append(AbortedTransaction(entry.producer_id, entry.first_offset))
                is_complete = is_complete or entry.last_stable_offset >= end
            rest = () if is_complete else tuple(indexed[1:])
            self._collect(work, rest)

        self._send(GetObject(object_name(indexed[0], "txnindex")), then)


def _batches_from(data: bytes, offset: Offset, bytes_max: Bytes) -> tuple[RecordBatch, ...]:
    """Whole batches from the one that holds the offset, at least one if it is there."""
    found: list[RecordBatch] = []
    position = 0
    while position + LOG_OVERHEAD <= len(data):
        size = batch_size_at(data[position : position + LOG_OVERHEAD], 0)
        if position + size > len(data):
            break
        batch = RecordBatch(data[position : position + size])
        position += size
        if batch.last_offset < offset:
            continue
        bytes_max -= size
        if bytes_max < 0 and found:
            break
        found.append(batch)
    return tuple(found)
