"""The data path: produce, fetch, list offsets."""

from dataclasses import dataclass, field

from sim.error_codes import ErrorCode
from sim.ids import BrokerEpoch, LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol.message_base import HEADER_BYTES, PARTITION_BYTES, Request, Response
from sim.protocol.ports import NO_EPOCH_END, Batch, EpochEnd
from sim.units import Bytes, Micros


@dataclass(frozen=True, slots=True)
class ProduceRequest(Request):
    """``acks`` is 0, 1 or -1 (all); one batch per partition."""

    acks: int
    timeout_us: Micros
    batches: tuple[tuple[TopicPartition, Batch], ...]
    records_bytes: Bytes = field(init=False, repr=False, compare=False)
    """Size of all batches with their partitions' fields; asked for at every hop, so kept."""

    def __post_init__(self) -> None:
        size = 0
        for _, batch in self.batches:
            size += PARTITION_BYTES + batch.size_bytes
        object.__setattr__(self, "records_bytes", size)

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + self.records_bytes


@dataclass(frozen=True, slots=True)
class LeaderHint:
    """Current leader as a broker knows it, sent with NOT_LEADER_OR_FOLLOWER (KIP-951)."""

    leader: NodeId
    leader_epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class ProduceResult:
    """One partition's part of a :class:`ProduceResponse`."""

    partition: TopicPartition
    error: ErrorCode
    base_offset: Offset = -1
    log_start_offset: Offset = -1
    hint: LeaderHint | None = None


@dataclass(frozen=True, slots=True)
class ProduceResponse(Response):
    """Not sent for acks=0."""

    results: tuple[ProduceResult, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + PARTITION_BYTES * len(self.results)


@dataclass(frozen=True, slots=True)
class FetchPartition:
    """What is asked of one partition. ``last_fetched_epoch`` is -1 for clients before KIP-595."""

    partition: TopicPartition
    fetch_offset: Offset
    leader_epoch: LeaderEpoch
    last_fetched_epoch: LeaderEpoch = -1
    log_start_offset: Offset = -1
    max_bytes: Bytes = 1 << 20


@dataclass(frozen=True, slots=True)
class FetchRequest(Request):
    """An incremental fetch (KIP-227): only partitions that are new or changed are listed.

    ``replica_id`` is -1 for consumers. ``session_epoch`` 0 opens a session with all partitions;
    -1 is a fetch without session.
    """

    replica_id: NodeId
    replica_epoch: BrokerEpoch
    max_wait_us: Micros
    min_bytes: Bytes
    max_bytes: Bytes
    session_id: int
    session_epoch: int
    partitions: tuple[FetchPartition, ...]
    forgotten: tuple[TopicPartition, ...] = ()
    rack: str = ""
    isolation_level: str = "read_uncommitted"

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + PARTITION_BYTES * len(self.partitions)


@dataclass(frozen=True, slots=True)
class FetchResult:
    """One partition's part of a :class:`FetchResponse`."""

    partition: TopicPartition
    error: ErrorCode
    high_watermark: Offset = -1
    log_start_offset: Offset = -1
    batches: tuple[Batch, ...] = ()
    diverging: EpochEnd = NO_EPOCH_END
    hint: LeaderHint | None = None


@dataclass(frozen=True, slots=True)
class FetchResponse(Response):
    """``error`` is the session's; a failed session is reopened with epoch 0."""

    error: ErrorCode
    session_id: int
    results: tuple[FetchResult, ...]
    records_bytes: Bytes = field(init=False, repr=False, compare=False)
    """Size of all batches with their partitions' fields; asked for at every hop, so kept."""

    def __post_init__(self) -> None:
        size = 0
        for result in self.results:
            size += PARTITION_BYTES
            for batch in result.batches:
                size += batch.size_bytes
        object.__setattr__(self, "records_bytes", size)

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + self.records_bytes


LATEST_TIMESTAMP = -1
"""ListOffsets: the high watermark, for a client."""

EARLIEST_TIMESTAMP = -2
"""ListOffsets: the log start offset."""


@dataclass(frozen=True, slots=True)
class ListOffsetsRequest(Request):
    """``timestamp`` is LATEST_TIMESTAMP or EARLIEST_TIMESTAMP; ``replica_id`` -1 for clients."""

    partition: TopicPartition
    timestamp: int
    leader_epoch: LeaderEpoch = -1
    replica_id: NodeId = -1


@dataclass(frozen=True, slots=True)
class ListOffsetsResponse(Response):
    """Offset and the leader epoch it belongs to."""

    partition: TopicPartition
    error: ErrorCode
    offset: Offset = -1
    leader_epoch: LeaderEpoch = -1
