"""Events and effects of a producer, beside those of every machine.

Plain tuples and one small class: there is one of each per batch, so their cost counts.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

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
"""Kafka's ``BufferExhaustedException``, which has no code on the wire."""

PARTITIONER_FAILED = "PARTITIONER_FAILED"
"""A user's ``partitioner.class`` raised an exception, whose class follows in brackets."""

PARTITION_OUT_OF_RANGE = "PARTITION_OUT_OF_RANGE"
"""It answered with no partition of the topic: Kafka's ``IllegalArgumentException``. A number that
is too high is refused, too; in Kafka its batch would expire."""

NEVER_SENT = "NEVER_SENT"
"""Outcome of a batch in the buffer of a producer that ended: it was never sent. Kafka has no error
for it: a process that died reports none, and a forced close completes such batches with a
``KafkaException`` (``RecordAccumulator.abortIncompleteBatches``)."""


TOMBSTONE: Final = -1
"""Size of a value that is null."""


class ArrivalBlock(NamedTuple):
    """Intended instants of some of the application's sends, in order.

    ``instants_us``: int64, shape (records,), scenario clock, never decreasing, at least one.
    ``key_ids``: int64, same shape; ``None`` for records without keys, or, from a source that has no
    keys, the application's own number of each record. ``value_sizes``: int64, same shape, size of
    each value in bytes, or :data:`TOMBSTONE`; ``None`` if all have the source's ``value_bytes``.
    """

    instants_us: NDArray[np.int64]
    key_ids: NDArray[np.int64] | None
    value_sizes: NDArray[np.int64] | None = None


class ArrivalSource(Protocol):
    """The application, known ahead: the accumulator pulls its sends up to an instant."""

    @property
    def value_bytes(self) -> Bytes:
        """Size of every record's value; of the largest, if blocks have sizes."""

    @property
    def keyed(self) -> bool:
        """True if records have keys."""

    @property
    def header_bytes(self) -> Bytes:
        """Encoded size of every record's headers without their count, or a tombstone's own."""

    @property
    def header_count(self) -> int:
        """Headers of every record, without a tombstone's own."""

    def next_block(self) -> ArrivalBlock | None:
        """Next arrivals; ``None`` after the last."""


class Connections(Protocol):
    """State of a client's connections (``NetworkClient.ready``)."""

    def is_open(self, node: NodeId) -> bool:
        """True if the connection to the server is established."""

    def connectable_at(self, node: NodeId) -> Micros:
        """End of the reconnect back-off."""


class ProducerBatchDraft:
    """A batch ready to be encoded; ``encoded`` caches the result.

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
        "value_sizes",
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
        value_sizes: NDArray[np.int64] | None = None,
    ) -> None:
        self.partition = partition
        self.first_record = first_record
        self.intended_us = intended_us
        self.timestamps_ms = timestamps_ms
        self.key_ids = key_ids
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.value_sizes = value_sizes
        self.encoded: Batch | None = None


class SendProduce(NamedTuple):
    """Encodes the drafts and sends them in one ProduceRequest on the connection to the broker.

    With ``acks`` 0 :class:`ProduceWritten` follows once the socket took the bytes.
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
    """The producer's number of the transaction."""
    producer_id: ProducerId
    producer_epoch: int
    begun_us: Micros
    """Its beginning, by the scenario's clock."""
    outcome: str
    """``committed``; ``aborted`` or ``fenced`` (certainly never committed); ``unknown``."""
    error: str
    """Its error; NONE if the application aborted it."""
    records: tuple[tuple[int, int, int], ...]
    """Partition, first and last record number, for each partition with records in it."""


class TransactionsReady(NamedTuple):
    """``initTransactions()`` has returned: former owners of the transactional id are fenced."""


class ProducerStopped(NamedTuple):
    """The application closed the producer after a fatal error, and ended."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class ProducerStarted:
    """The process has begun: bootstraps."""


@dataclass(frozen=True, slots=True)
class ProduceWritten:
    """The socket took an acks=0 request, which gets no response."""

    to: NodeId
    correlation: int


@dataclass(frozen=True, slots=True)
class BatchesCompressed:
    """The batches of a request were compressed: their sizes are known.

    ``sizes``: in the order of the request's drafts, the whole batch and its records uncompressed.
    """

    correlation: int
    sizes: tuple[tuple[Bytes, Bytes], ...]


@dataclass(frozen=True, slots=True)
class ServerThrottles:
    """A server throttles this client: nothing is sent to it before the instant (KIP-219)."""

    node: NodeId
    until: Micros


@dataclass(frozen=True, slots=True)
class ApplicationPaused:
    """The process stops: sends intended until now have happened."""


@dataclass(frozen=True, slots=True)
class ApplicationResumed:
    """The process continues: sends intended meanwhile happen now."""


@dataclass(frozen=True, slots=True)
class ApplicationSends:
    """Sends are due that the source did not have at its last call."""


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
    | ApplicationSends
    | WorkTaken
    | WorkEnding
)
"""Events of a producer; the last two only of a task."""
