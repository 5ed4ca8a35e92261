"""The data path: produce, fetch, list offsets.

Messages that every batch needs have constructors of their own: one that is made by ``dataclass`` is
interpreted even where its class is compiled, and takes five times as long.
"""

from dataclasses import dataclass, field
from typing import Final

from sim.error_codes import ErrorCode
from sim.ids import (
    NO_LEADER,
    BrokerEpoch,
    LeaderEpoch,
    NodeId,
    Offset,
    ProducerId,
    TopicPartition,
    server_name,
)
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.sizes import data as sizes
from sim.protocol.messages.sizes.encoding import topic_counts, topic_runs
from sim.protocol.ports import NO_EPOCH_END, Batch, EpochEnd
from sim.units import Bytes, Micros


@dataclass(init=False, slots=True, unsafe_hash=True)
class ProduceRequest(Request):
    """``acks`` is 0, 1 or -1 (all); one batch per partition; ``transactional_id`` "" for none."""

    acks: Final[int]
    timeout_us: Final[Micros]
    batches: Final[tuple[tuple[TopicPartition, Batch], ...]]
    transactional_id: Final[str]
    sent_bytes: Bytes = field(init=False, repr=False, compare=False)
    """Size on the wire; read at every hop, so kept."""

    def __init__(
        self,
        acks: int,
        timeout_us: Micros,
        batches: tuple[tuple[TopicPartition, Batch], ...],
        transactional_id: str = "",
    ) -> None:
        self.acks = acks
        self.timeout_us = timeout_us
        self.batches = batches
        self.transactional_id = transactional_id
        size = 0
        for _, batch in batches:
            size += sizes.produce_request_partition_produce_data(records=batch.size_bytes)
        self.sent_bytes = sizes.produce_request(
            transactional_id=transactional_id,
            topic_data=topic_counts([partition for partition, _ in batches]),
            partition_data=size,
        )

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return self.sent_bytes


@dataclass(frozen=True, slots=True)
class LeaderHint:
    """Current leader as a broker knows it, sent with NOT_LEADER_OR_FOLLOWER (KIP-951)."""

    leader: NodeId
    leader_epoch: LeaderEpoch


def hinted_hosts(hints: list[LeaderHint]) -> list[str]:
    """Hosts of the leaders that hints name, each once."""
    leaders = dict.fromkeys([hint.leader for hint in hints if hint.leader != NO_LEADER])
    return [server_name(leader) for leader in leaders]


@dataclass(frozen=True, slots=True)
class ProduceResult:
    """One partition's part of a :class:`ProduceResponse`."""

    partition: TopicPartition
    error: ErrorCode
    base_offset: Offset = -1
    log_start_offset: Offset = -1
    hint: LeaderHint | None = None


@dataclass(init=False, slots=True, unsafe_hash=True)
class ProduceResponse(Response):
    """Not sent for acks=0."""

    results: Final[tuple[ProduceResult, ...]]
    sent_bytes: Bytes = field(init=False, repr=False, compare=False)
    """Size on the wire; read at every hop, so kept."""

    def __init__(self, results: tuple[ProduceResult, ...]) -> None:
        self.results = results
        hints = [result.hint for result in results if result.hint is not None]
        hinted = sizes.produce_response_partition_produce_response(current_leader=True)
        plain = sizes.produce_response_partition_produce_response()
        self.sent_bytes = sizes.produce_response(
            responses=topic_counts([result.partition for result in results]),
            partition_responses=len(hints) * hinted + (len(results) - len(hints)) * plain,
            node_endpoints=hinted_hosts(hints) if hints else (),
        )

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return self.sent_bytes


@dataclass(init=False, slots=True, unsafe_hash=True)
class FetchPartition:
    """Fetch of one partition. ``last_fetched_epoch`` is -1 for clients before KIP-595."""

    partition: Final[TopicPartition]
    fetch_offset: Final[Offset]
    leader_epoch: Final[LeaderEpoch]
    last_fetched_epoch: Final[LeaderEpoch]
    log_start_offset: Final[Offset]
    max_bytes: Final[Bytes]

    def __init__(
        self,
        partition: TopicPartition,
        fetch_offset: Offset,
        leader_epoch: LeaderEpoch,
        last_fetched_epoch: LeaderEpoch = -1,
        log_start_offset: Offset = -1,
        max_bytes: Bytes = 1 << 20,
    ) -> None:
        self.partition = partition
        self.fetch_offset = fetch_offset
        self.leader_epoch = leader_epoch
        self.last_fetched_epoch = last_fetched_epoch
        self.log_start_offset = log_start_offset
        self.max_bytes = max_bytes


@dataclass(init=False, slots=True, unsafe_hash=True)
class FetchRequest(Request):
    """An incremental fetch (KIP-227): only partitions that are new or changed are listed.

    ``replica_id`` is -1 for consumers. ``session_epoch`` 0 opens a session with all partitions;
    -1 is a fetch without session.
    """

    replica_id: Final[NodeId]
    replica_epoch: Final[BrokerEpoch]
    max_wait_us: Final[Micros]
    min_bytes: Final[Bytes]
    max_bytes: Final[Bytes]
    session_id: Final[int]
    session_epoch: Final[int]
    partitions: Final[tuple[FetchPartition, ...]]
    forgotten: Final[tuple[TopicPartition, ...]]
    rack: Final[str]
    isolation_level: Final[str]
    sent_bytes: Bytes = field(init=False, repr=False, compare=False)
    """Size on the wire; read at every hop, so kept."""

    def __init__(
        self,
        replica_id: NodeId,
        replica_epoch: BrokerEpoch,
        max_wait_us: Micros,
        min_bytes: Bytes,
        max_bytes: Bytes,
        session_id: int,
        session_epoch: int,
        partitions: tuple[FetchPartition, ...],
        forgotten: tuple[TopicPartition, ...] = (),
        rack: str = "",
        isolation_level: str = "read_uncommitted",
    ) -> None:
        self.replica_id = replica_id
        self.replica_epoch = replica_epoch
        self.max_wait_us = max_wait_us
        self.min_bytes = min_bytes
        self.max_bytes = max_bytes
        self.session_id = session_id
        self.session_epoch = session_epoch
        self.partitions = partitions
        self.forgotten = forgotten
        self.rack = rack
        self.isolation_level = isolation_level
        self.sent_bytes = sizes.fetch_request(
            replica_state=replica_id >= 0,
            topics=topic_runs([each.partition for each in partitions]),
            forgotten_topics_data=topic_counts(forgotten),
            rack_id=rack,
        )

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return self.sent_bytes


READ_COMMITTED = "read_committed"
"""``isolation_level`` of a reader of decided transactions only."""


@dataclass(frozen=True, slots=True)
class AbortedTransaction:
    """A transaction that a read_committed reader skips: its data from ``first_offset`` on."""

    producer_id: ProducerId
    first_offset: Offset


@dataclass(init=False, slots=True, unsafe_hash=True)
class FetchResult:
    """One partition's part of a :class:`FetchResponse`.

    ``last_stable_offset`` and ``aborted`` are for consumers that read committed data only: the end
    of what was sent to them, and the aborted transactions in it; else -1 and empty. ``preferred``
    is the broker to fetch from instead (KIP-392); -1 for none.
    """

    partition: Final[TopicPartition]
    error: Final[ErrorCode]
    high_watermark: Final[Offset]
    log_start_offset: Final[Offset]
    batches: Final[tuple[Batch, ...]]
    diverging: Final[EpochEnd]
    hint: Final[LeaderHint | None]
    last_stable_offset: Final[Offset]
    aborted: Final[tuple[AbortedTransaction, ...]]
    preferred: Final[NodeId]

    def __init__(
        self,
        partition: TopicPartition,
        error: ErrorCode,
        high_watermark: Offset = -1,
        log_start_offset: Offset = -1,
        batches: tuple[Batch, ...] = (),
        diverging: EpochEnd = NO_EPOCH_END,
        hint: LeaderHint | None = None,
        last_stable_offset: Offset = -1,
        aborted: tuple[AbortedTransaction, ...] = (),
        preferred: NodeId = -1,
    ) -> None:
        self.partition = partition
        self.error = error
        self.high_watermark = high_watermark
        self.log_start_offset = log_start_offset
        self.batches = batches
        self.diverging = diverging
        self.hint = hint
        self.last_stable_offset = last_stable_offset
        self.aborted = aborted
        self.preferred = preferred


@dataclass(init=False, slots=True, unsafe_hash=True)
class FetchResponse(Response):
    """``error`` is the session's; a failed session is reopened with epoch 0."""

    error: Final[ErrorCode]
    session_id: Final[int]
    results: Final[tuple[FetchResult, ...]]
    sent_bytes: Bytes = field(init=False, repr=False, compare=False)
    """Size on the wire; read at every hop, so kept."""

    def __init__(self, error: ErrorCode, session_id: int, results: tuple[FetchResult, ...]) -> None:
        self.error = error
        self.session_id = session_id
        self.results = results
        size = 0
        hints: list[LeaderHint] = []
        for result in results:
            records = 0
            for batch in result.batches:
                records += batch.size_bytes
            if result.hint is not None:
                hints.append(result.hint)
            size += sizes.fetch_response_partition_data(
                diverging_epoch=result.diverging != NO_EPOCH_END,
                current_leader=result.hint is not None,
                aborted_transactions=len(result.aborted),
                records=records,
            )
        self.sent_bytes = sizes.fetch_response(
            responses=topic_runs([result.partition for result in results]),
            partitions=size,
            node_endpoints=hinted_hosts(hints) if hints else (),
        )

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return self.sent_bytes


LATEST_TIMESTAMP = -1
"""ListOffsets: the high watermark, for a client."""

EARLIEST_TIMESTAMP = -2
"""ListOffsets: the log start offset."""

EARLIEST_LOCAL_TIMESTAMP = -4
"""ListOffsets: the local log start offset (KIP-405)."""

EARLIEST_PENDING_UPLOAD_TIMESTAMP = -6
"""ListOffsets: the first offset that is not in the remote log, -1 if the leader does not know it
(KIP-1023)."""


@dataclass(frozen=True, slots=True)
class ListOffsetsRequest(Request):
    """``timestamp`` is one of those above, or of 1970; ``replica_id`` is -1 for clients."""

    partition: TopicPartition
    timestamp: int
    leader_epoch: LeaderEpoch = -1
    replica_id: NodeId = -1
    isolation_level: str = "read_uncommitted"
    """With READ_COMMITTED the latest offset is the last stable one."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.list_offsets_request(topics=((self.partition.topic, 1),))


@dataclass(frozen=True, slots=True)
class ListOffsetsResponse(Response):
    """Offset and the leader epoch it belongs to."""

    partition: TopicPartition
    error: ErrorCode
    offset: Offset = -1
    leader_epoch: LeaderEpoch = -1

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.list_offsets_response(topics=((self.partition.topic, 1),))
