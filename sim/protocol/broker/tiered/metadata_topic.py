"""A broker's producer and consumer of ``__remote_log_metadata``.

Events are written with acks=all, one batch each, until the delivery timeout; an event counts once
this broker has read it back. Approximate: the producer is not idempotent (a repeated event changes
nothing), and fetches begin without a lookup of offsets.

Source: ``TopicBasedRemoteLogMetadataManager``, ``ProducerManager``, ``ConsumerTask``,
``RemoteLogMetadataTopicPartitioner``.
"""

import base64
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NO_EPOCH, REMOTE_LOG_METADATA_TOPIC, NodeId, Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replication.fetcher import Fetcher, FetcherConfig, FetchState
from sim.protocol.broker.tiered.ports import (
    DELIVERY_TIMEOUT_US,
    RETRY_US,
    AssignMetadata,
    Published,
)
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.java.murmur2 import murmur2
from sim.protocol.messages.data import (
    FetchResponse,
    FetchResult,
    ProduceRequest,
    ProduceResponse,
)
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.ports import Batch
from sim.units import MIB, MS, NEVER, SECOND, Micros

CHANNEL = "remote-log-metadata"
"""Name of the producer's connections; the consumer's has another."""

_REQUEST_TIMEOUT_US: Micros = 30 * SECOND
_LOOK_US: Micros = 100 * MS
"""Time until a partition without a known leader is looked at again."""

_CONSUMER = FetcherConfig(500 * MS, 1, MIB, 50 * MIB, RETRY_US, _REQUEST_TIMEOUT_US, 1)
_UUID = struct.Struct(">qq")
_HASH = struct.Struct(">I")


class WriteEvent(NamedTuple):
    """Event: an encoded event is to be written."""

    token: int
    partition: int
    batch: Batch


class BatchesFetched(NamedTuple):
    """Effect: batches of a metadata partition, to be decoded."""

    metadata_partition: int
    batches: tuple[Batch, ...]
    caught_up: bool


TopicEvent: TypeAlias = WriteEvent | AssignMetadata | ResponseReceived | RequestFailed | TimerFired
TopicEffect: TypeAlias = fx.Send | fx.SetTimer | BatchesFetched | Published


@dataclass(slots=True)
class _Write:
    """A batch that is not written, or not read back."""

    token: int
    partition: TopicPartition
    batch: Batch
    deadline: Micros
    retry_at: Micros = NEVER
    correlation: int = -1
    written: Offset = -1
    """Its offset; -1 before the answer."""


class MetadataTopic:
    """The metadata topic as one broker uses it.

    Args:
        image: The broker's metadata.
    """

    def __init__(self, image: Callable[[], MetadataImage]) -> None:
        self._image = image
        self._writes: dict[int, _Write] = {}
        self._in_flight: dict[int, Fetcher] = {}
        self._correlation = 0
        self._positions: dict[TopicPartition, Offset] = {}
        """Next offset of each assigned partition."""
        self._fetchers: dict[NodeId, Fetcher] = {}
        self._empty: dict[TopicPartition, bool] = {}
        """True of a partition that had nothing when it was last fetched."""

    def handle(self, event: TopicEvent, now: Micros) -> list[TopicEffect]:
        """Handles an event; returns effects in order."""
        out: list[TopicEffect] = []
        match event:
            case WriteEvent(token, partition, batch):
                where = TopicPartition(REMOTE_LOG_METADATA_TOPIC, partition)
                write = _Write(token, where, batch, now + DELIVERY_TIMEOUT_US)
                self._writes[token] = write
                self._write(write, now, out)
            case AssignMetadata():
                self._assign(event, out)
            case ResponseReceived(_, correlation, response):
                self._answered(correlation, response, now, out)
            case RequestFailed():
                self._failed(event.correlation, now, out)
            case TimerFired():
                self._retry(now, out)
        self._fetch(now, out)
        return out

    # -- producer ---------------------------------------------------------------------------------

    def _write(self, write: _Write, now: Micros, out: list[TopicEffect]) -> None:
        leader = self._image().leader_of(write.partition)
        if leader < 0:
            self._delay(write, now, out)
            return
        write.retry_at, write.correlation = NEVER, self._next()
        request = ProduceRequest(-1, _REQUEST_TIMEOUT_US, ((write.partition, write.batch),))
        out.append(fx.Send(leader, write.correlation, request, _REQUEST_TIMEOUT_US, CHANNEL))

    def _delay(self, write: _Write, now: Micros, out: list[TopicEffect]) -> None:
        """Tries again later, or gives up."""
        write.correlation = -1
        if now >= write.deadline:
            del self._writes[write.token]
            out.append(Published(write.token, ok=False))
            return
        write.retry_at = now + RETRY_US
        out.append(fx.SetTimer("writes", now + RETRY_US))

    def _produced(
        self, write: _Write, response: ProduceResponse, now: Micros, out: list[TopicEffect]
    ) -> None:
        result = response.results[0]
        if result.error is not ErrorCode.NONE:
            self._delay(write, now, out)
            return
        write.correlation, write.written = -1, result.base_offset
        write.deadline = now + DELIVERY_TIMEOUT_US
        out.append(fx.SetTimer("writes", write.deadline))
        self._read_back(write.partition, out)

    def _read_back(self, partition: TopicPartition, out: list[TopicEffect]) -> None:
        """Completes the events below this broker's position."""
        position = self._positions.get(partition, 0)
        for write in list(self._writes.values()):
            if write.partition == partition and 0 <= write.written < position:
                del self._writes[write.token]
                out.append(Published(write.token, ok=True))

    def _retry(self, now: Micros, out: list[TopicEffect]) -> None:
        for write in list(self._writes.values()):
            if write.retry_at <= now:
                self._write(write, now, out)
            elif write.written >= 0 and write.deadline <= now:
                del self._writes[write.token]
                out.append(Published(write.token, ok=False))
        waits = [min(w.retry_at, w.deadline) for w in self._writes.values() if w.correlation < 0]
        if waits:
            out.append(fx.SetTimer("writes", max(min(waits), now + MS)))

    # -- consumer ---------------------------------------------------------------------------------

    def _assign(self, event: AssignMetadata, out: list[TopicEffect]) -> None:
        assigned = [TopicPartition(REMOTE_LOG_METADATA_TOPIC, n) for n in event.assigned]
        for partition in [p for p in self._positions if p not in assigned]:
            self._drop(partition)
            del self._positions[partition]
        for partition in assigned:
            if partition not in self._positions or partition.partition in event.restarted:
                self._drop(partition)
                self._positions[partition] = 0
                if self._empty.get(partition):
                    # A session has no news of it.
                    out.append(BatchesFetched(partition.partition, (), caught_up=True))

    def _drop(self, partition: TopicPartition) -> None:
        for fetcher in self._fetchers.values():
            fetcher.remove(partition)

    def _fetch(self, now: Micros, out: list[TopicEffect]) -> None:
        """Sends the fetches that may be sent, each to its partitions' leader."""
        waits = False
        for partition, position in self._positions.items():
            leader = self._image().leader_of(partition)
            waits = waits or leader < 0
            for known, fetcher in self._fetchers.items():
                if known != leader:
                    fetcher.remove(partition)
            if leader >= 0 and partition not in self._fetcher(leader).partitions:
                self._fetcher(leader).add(partition, FetchState(position, NO_EPOCH, NO_EPOCH, -1))
        wake_up = now + _LOOK_US if waits else NEVER
        for leader, fetcher in self._fetchers.items():
            if fetcher.correlation >= 0 or not fetcher.partitions:
                continue
            request = fetcher.next_request(-1, -1, now)
            wake_up = min(wake_up, fetcher.wake_up_at())
            if request is not None:
                fetcher.correlation = self._next()
                self._in_flight[fetcher.correlation] = fetcher
                out.append(
                    fx.Send(
                        leader,
                        fetcher.correlation,
                        request,
                        _REQUEST_TIMEOUT_US,
                        f"{CHANNEL}-consumer",
                    )
                )
        if wake_up < NEVER:
            out.append(fx.SetTimer("fetches", max(wake_up, now + MS)))

    def _fetcher(self, leader: NodeId) -> Fetcher:
        fetcher = self._fetchers.get(leader)
        if fetcher is None:
            fetcher = self._fetchers[leader] = Fetcher(leader, 0, _CONSUMER, is_fenced=False)
        return fetcher

    def _fetched(
        self, fetcher: Fetcher, response: FetchResponse, now: Micros, out: list[TopicEffect]
    ) -> None:
        if response.error is not ErrorCode.NONE:
            fetcher.correlation = -1
            fetcher.reopen()
            return
        fetcher.answered(response.session_id)
        for result in response.results:
            partition = result.partition
            state = fetcher.partitions.get(partition)
            if state is None or not state.requested:
                continue
            if result.error is not ErrorCode.NONE:
                fetcher.delay(partition, now + RETRY_US)
            else:
                self._take(fetcher, result, out)

    def _take(self, fetcher: Fetcher, result: FetchResult, out: list[TopicEffect]) -> None:
        partition, batches = result.partition, result.batches
        position = self._positions[partition]
        if batches:
            if batches[-1].last_offset < position:
                return
            position = self._positions[partition] = batches[-1].last_offset + 1
            fetcher.moved(partition, position, NO_EPOCH)
        caught_up = position >= result.high_watermark
        self._empty[partition] = position == result.high_watermark == 0
        out.append(BatchesFetched(partition.partition, batches, caught_up))
        self._read_back(partition, out)

    # -- answers ----------------------------------------------------------------------------------

    def _answered(
        self, correlation: int, response: object, now: Micros, out: list[TopicEffect]
    ) -> None:
        if isinstance(response, ProduceResponse):
            for write in list(self._writes.values()):
                if write.correlation == correlation:
                    self._produced(write, response, now, out)
        elif isinstance(response, FetchResponse):
            fetcher = self._in_flight.pop(correlation, None)
            if fetcher is not None and fetcher.correlation == correlation:
                self._fetched(fetcher, response, now, out)

    def _failed(self, correlation: int, now: Micros, out: list[TopicEffect]) -> None:
        fetcher = self._in_flight.pop(correlation, None)
        if fetcher is not None:
            fetcher.correlation = -1
            fetcher.reopen()
            for partition in fetcher.partitions:
                fetcher.delay(partition, now + RETRY_US)
        for write in list(self._writes.values()):
            if write.correlation == correlation:
                self._delay(write, now, out)

    def _next(self) -> int:
        self._correlation += 1
        return self._correlation


def metadata_partition_of(topic_id: str, partition: int, count: int) -> int:
    """Partition of the metadata topic that has the events of a user partition.

    Source: ``RemoteLogMetadataTopicPartitioner.metadataPartition``: Java's ``Objects.hash`` of the
    topic id's halves and the partition, hashed again by murmur2.
    """
    high, low = _UUID.unpack(base64.urlsafe_b64decode(topic_id + "=="))
    value = 1
    for part in (_long_hash(low), _long_hash(high), partition):
        value = (31 * value + part) & 0xFFFF_FFFF
    return (murmur2(_HASH.pack(value)) & 0x7FFF_FFFF) % count


def _long_hash(value: int) -> int:
    value &= 0xFFFF_FFFF_FFFF_FFFF
    return (value ^ value >> 32) & 0xFFFF_FFFF
