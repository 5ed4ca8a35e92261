"""What a transaction coordinator writes to ``__transaction_state``, and says to its broker.

Plain facts; their bytes are the business of the node.

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
    """Where a transactional id stands; values are Kafka's names."""

    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"


STATUS: dict[TransactionState, int] = {state: n for n, state in enumerate(TransactionState)}
"""Kafka's number of each state, as records have it; only the first six are ever written."""


@dataclass(frozen=True, slots=True)
class TransactionRecord:
    """A transactional id as it is written; timestamps in milliseconds since 1970.

    ``next_producer_id`` is the id that takes over when a Prepare state with an exhausted epoch
    completes, -1 else; ``start_ms`` is -1 without a transaction.
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
    """The transactional id is forgotten."""

    transactional_id: str


TransactionLogRecord = TransactionRecord | TransactionTombstone
"""A record of ``__transaction_state``."""


@dataclass(frozen=True, slots=True)
class MetadataPublished:
    """Event: the broker's image, in which leaders are looked up, has moved on."""

    image: MetadataImage


@dataclass(frozen=True, slots=True)
class ProducerIdWanted:
    """Effect: a new producer id, answered by exactly one :class:`ProducerIdGiven`."""

    token: int


@dataclass(frozen=True, slots=True)
class ProducerIdGiven:
    """Event: the id that was wanted."""

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
    | ProducerIdGiven
    | Resumed
)
"""What can happen to a transaction coordinator."""

TransactionEffect = Effect | AppendRecords | ProducerIdWanted | Preempt
"""What a transaction coordinator may ask of its broker."""
