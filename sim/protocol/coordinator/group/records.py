"""Records of ``__consumer_offsets``, and events and effects of a group coordinator.

Plain values; ``sim.records.consumer_offsets`` encodes them. Those of the consumer protocol
(KIP-848) are in :mod:`sim.protocol.coordinator.group.consumer_group_records`. Left out: the records
of share and streams groups, and offset metadata strings (always empty).

Source: ``OffsetCommitValue.json``, ``GroupMetadataValue.json`` of the group coordinator.
"""

from dataclasses import dataclass

from sim.ids import LeaderEpoch, Offset, ProducerId, TopicPartition
from sim.protocol.assignors.subscription import Subscription
from sim.protocol.coordinator.group.consumer_group_records import ConsumerGroupRecord
from sim.protocol.coordinator.log import (
    AppendRecords,
    PartitionElected,
    PartitionLoading,
    PartitionResigned,
    RecordsAppended,
    TransactionVerified,
    VerifyTransaction,
)
from sim.protocol.effects import Effect
from sim.protocol.events import RequestFailed, RequestReceived, ResponseReceived, TimerFired
from sim.units import Micros


@dataclass(frozen=True, slots=True)
class OffsetCommitRecord:
    """A group's next offset to read from a partition; ``leader_epoch`` -1 if unknown."""

    group: str
    partition: TopicPartition
    offset: Offset
    leader_epoch: LeaderEpoch
    timestamp_ms: int
    topic_id: str | None = None
    """Id of its topic, empty if the commit did not name it; ``None`` before 4.2, where the value is
    of version 3."""


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """A member as written with its group; timeouts in microseconds."""

    member_id: str
    client_id: str
    client_host: str
    """In a broker's printed form: ``/shop-1``."""
    rebalance_timeout_us: Micros
    session_timeout_us: Micros
    subscription: Subscription
    assignment: tuple[TopicPartition, ...]


@dataclass(frozen=True, slots=True)
class GroupMetadataRecord:
    """A group at the start of a generation; without members, protocol and leader are empty."""

    group: str
    generation: int
    protocol: str
    leader: str
    timestamp_ms: int
    members: tuple[MemberRecord, ...]


@dataclass(frozen=True, slots=True)
class OffsetTombstone:
    """Removes the group's offset of the partition."""

    group: str
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class GroupTombstone:
    """Removes the group."""

    group: str


@dataclass(frozen=True, slots=True)
class PendingOffsetRecord:
    """An offset that becomes the group's when the producer's transaction commits (KIP-447)."""

    producer_id: ProducerId
    commit: OffsetCommitRecord

    @property
    def group(self) -> str:
        """The offset's group."""
        return self.commit.group


@dataclass(frozen=True, slots=True)
class OffsetsMarker:
    """The end of a producer's transaction in a partition of the offsets topic."""

    producer_id: ProducerId
    committed: bool


GroupRecord = (
    OffsetCommitRecord
    | PendingOffsetRecord
    | OffsetsMarker
    | GroupMetadataRecord
    | OffsetTombstone
    | GroupTombstone
    | ConsumerGroupRecord
)
"""A record of ``__consumer_offsets``; markers are written by the partition's leader."""


@dataclass(frozen=True, slots=True)
class TransactionEnded:
    """A marker in a partition of the offsets topic is committed.

    A leader's effect, and an event of the group coordinator beside it.
    """

    partition: int
    producer_id: ProducerId
    producer_epoch: int
    committed: bool


GroupEvent = (
    RequestReceived
    | TimerFired
    | PartitionLoading
    | PartitionElected
    | PartitionResigned
    | RecordsAppended
    | TransactionVerified
    | TransactionEnded
    | ResponseReceived
    | RequestFailed
)
"""Events of a group coordinator."""


GroupEffect = Effect | AppendRecords | VerifyTransaction
"""Effects of a group coordinator."""
