"""What passes between a producer's mind and its shell, beside what every machine has.

Plain tuples and one small class: there is one of each per batch, so their cost counts.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from sim.error_codes import ErrorCode
from sim.ids import NodeId, Offset, ProducerId, TopicPartition
from sim.protocol.clients.consumer.work import WorkEnding, WorkTaken
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.ports import Batch
from sim.units import Bytes, Micros

REFUSED_PARTITION = -1
"""Partition of records that ``send()`` refused before they were given one."""

BUFFER_EXHAUSTED = "BUFFER_EXHAUSTED"
"""Kafka's ``BufferExhaustedException``, which has no code of its own on the wire."""

NEVER_SENT = "NEVER_SENT"
"""Of a batch in the buffer of a producer that ended: no broker has it, and none has refused it.

Kafka names no error: of a process that died nobody hears, and one that is closed by force completes
such batches with a ``KafkaException`` (``RecordAccumulator.abortIncompleteBatches``).
"""


class ArrivalBlock(NamedTuple):
    """Some of the instants at which the application means to send, in order.

    ``instants_us``: int64, shape (records,), scenario clock, never decreasing, at least one.
    ``key_ids``: int64, same shape; ``None`` for records without keys, or, from a source that has
    no keys, the application's own number of each record.
    ``tombstones``: bool, same shape; ``None`` if no record can be one.
    """

    instants_us: NDArray[np.int64]
    key_ids: NDArray[np.int64] | None
    tombstones: NDArray[np.bool_] | None = None


class ArrivalSource(Protocol):
    """The application, known ahead: the accumulator pulls what it has sent up to an instant."""

    @property
    def value_bytes(self) -> Bytes:
        """Size of every record's value."""

    @property
    def keyed(self) -> bool:
        """Whether records have keys."""

    @property
    def header_bytes(self) -> Bytes:
        """Encoded size of every record's headers without their count, a tombstone's own aside."""

    @property
    def header_count(self) -> int:
        """Headers of every record, a tombstone's own aside."""

    def next_block(self) -> ArrivalBlock | None:
        """The next arrivals; ``None`` when the workload is over."""


class Connections(Protocol):
    """What a client knows of its connections (``NetworkClient.ready``)."""

    def is_open(self, node: NodeId) -> bool:
        """Whether the connection to the server is established."""

    def connectable_at(self, node: NodeId) -> Micros:
        """The instant before which no connection is attempted: the reconnect back-off's end."""


class ProducerBatchDraft:
    """A batch ready to be encoded; ``encoded`` is the shell's own note of the result.

    ``intended_us`` and ``timestamps_ms``: int64, shape (records,). A batch whose producer id, epoch
    or sequence changed is a new draft, so an encoding never goes stale.
    """

    __slots__ = (
        "base_sequence",
        "encoded",
        "first_record",
        "intended_us",
        "key_ids",
        "partition",
        "producer_epoch",
        "producer_id",
        "timestamps_ms",
        "tombstones",
    )

    def __init__(
        self,
        partition: TopicPartition,
        first_record: int,
        intended_us: NDArray[np.int64],
        timestamps_ms: NDArray[np.int64],
        key_ids: NDArray[np.int64] | None,
        producer_id: ProducerId,
        producer_epoch: int,
        base_sequence: int,
        tombstones: NDArray[np.bool_] | None = None,
    ) -> None:
        self.partition = partition
        self.first_record = first_record
        self.intended_us = intended_us
        self.timestamps_ms = timestamps_ms
        self.key_ids = key_ids
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.tombstones = tombstones
        self.encoded: Batch | None = None


class SendProduce(NamedTuple):
    """Encode the drafts and send them in one ProduceRequest on the connection to the broker.

    With ``acks`` 0 the shell answers with :class:`ProduceWritten` once the socket took the bytes.
    """

    to: NodeId
    correlation: int
    drafts: tuple[ProducerBatchDraft, ...]
    acks: int
    timeout_us: Micros


class BatchDone(NamedTuple):
    """A batch's outcome: one row of ``client_batches``. Instants are of the host's clock."""

    partition: int
    first_record: int
    record_count: int
    size_bytes: Bytes
    created_us: Micros
    first_sent_us: Micros | None
    last_sent_us: Micros | None
    attempts: int
    outcome: str
    """``ok``, ``failed`` (certainly not written) or ``unknown``."""
    error: str
    base_offset: Offset
    answered_by: NodeId
    correlation: int
    intended_us: NDArray[np.int64]


class TransactionDone(NamedTuple):
    """A transaction's outcome: one row of ``transaction_outcomes``."""

    transaction: int
    """The producer's number of it."""
    producer_id: ProducerId
    producer_epoch: int
    begun_us: Micros
    """Of the scenario's clock."""
    outcome: str
    """``committed``; ``aborted`` or ``fenced`` (certainly never committed); ``unknown``."""
    error: str
    """Why it was not committed; NONE if the application meant it so."""
    records: tuple[tuple[int, int, int], ...]
    """Partition, first and last record number, for each partition with records in it."""


class TransactionsReady(NamedTuple):
    """``initTransactions()`` has returned: who had the transactional id before is fenced."""


class ProducerStopped(NamedTuple):
    """The application closed the producer after a fatal error, and ended."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class ProducerStarted:
    """The process has begun: find the cluster."""


@dataclass(frozen=True, slots=True)
class ProduceWritten:
    """The socket took an acks=0 request: that is all the producer will ever know."""

    to: NodeId
    correlation: int


@dataclass(frozen=True, slots=True)
class BatchesCompressed:
    """The batches of a request were compressed: their sizes are known now.

    ``sizes``: in the order of the request's drafts, the whole batch and its records uncompressed.
    """

    correlation: int
    sizes: tuple[tuple[Bytes, Bytes], ...]


@dataclass(frozen=True, slots=True)
class ServerThrottles:
    """A server's quotas make this client wait: nothing goes to it before the instant (KIP-219)."""

    node: NodeId
    until: Micros


@dataclass(frozen=True, slots=True)
class ApplicationPaused:
    """The process stops now: what it meant to send until now it has sent."""


@dataclass(frozen=True, slots=True)
class ApplicationResumed:
    """The process goes on: what it meant to send meanwhile it sends now."""


ProducerEvent = (
    ProducerStarted
    | ResponseReceived
    | RequestFailed
    | TimerFired
    | ProduceWritten
    | BatchesCompressed
    | ServerThrottles
    | ApplicationPaused
    | ApplicationResumed
    | WorkTaken
    | WorkEnding
)
"""What can happen to a producer; the last two to one of a task."""
