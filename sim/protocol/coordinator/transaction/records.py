"""Records of ``__transaction_state``, and events and effects of a transaction coordinator.

Plain values; ``sim.records.transaction_state`` encodes them.

Source: ``TransactionLogValue.json``, ``TransactionState`` of the transaction coordinator.
"""

from dataclasses import dataclass
from enum import Enum

from sim.ids import ProducerId, TopicPartition
from sim.protocol.coordinator.log import (
    AppendRecords,
    PartitionElected,
    PartitionLoading,
    PartitionResigned,
    RecordsAppended,
)
from sim.protocol.effects import Effect
from sim.protocol.events import RequestFailed, RequestReceived, ResponseReceived, TimerFired
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.preemption import Preempt, Resumed
from sim.units import Micros


class TransactionState(Enum):
    """State of a transactional id; values are Kafka's names."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


STATUS: dict[TransactionState, int] = {state: n for n, state in enumerate(TransactionState)}
"""Kafka's number of each state, as in records; only the first six are ever written."""


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    """A transactional id as a record; timestamps in milliseconds since 1970.

    ``next_producer_id`` is the id that replaces the present one when a Prepare state with an
    exhausted epoch completes, -1 else; ``start_ms`` is -1 without a transaction.
    """

    transactional_id: str
    producer_id: ProducerId
    producer_epoch: int
    timeout_us: Micros
    state: TransactionState
    partitions: tuple[TopicPartition, ...]
    last_update_ms: int
    start_ms: int
    previous_producer_id: ProducerId = -1
    next_producer_id: ProducerId = -1
    version: int = 2
    """Transaction version of the client: 0, or 2 (KIP-890)."""
    last_producer_epoch: int = -1
    """Epoch before the last bump; kept in memory only."""


@dataclass(frozen=True, slots=True)
class TransactionTombstone:
    """Removes the transactional id."""

    transactional_id: str


TransactionLogRecord = TransactionRecord | TransactionTombstone
"""A record of ``__transaction_state``."""


@dataclass(frozen=True, slots=True)
class MetadataPublished:
    """Event: the broker has a new image, in which leaders are looked up."""

    image: MetadataImage


@dataclass(frozen=True, slots=True)
class ProducerIdRequested:
    """Effect: a new producer id, answered by exactly one :class:`ProducerIdAllocated`."""

    token: int


@dataclass(frozen=True, slots=True)
class ProducerIdAllocated:
    """Event: the allocated id."""

    token: int
    producer_id: ProducerId


TransactionEvent = (
    RequestReceived
    | ResponseReceived
    | RequestFailed
    | TimerFired
    | PartitionLoading
    | PartitionElected
    | PartitionResigned
    | RecordsAppended
    | MetadataPublished
    | ProducerIdAllocated
    | Resumed
)
"""Events of a transaction coordinator."""

TransactionEffect = Effect | AppendRecords | ProducerIdRequested | Preempt
"""Effects of a transaction coordinator."""
