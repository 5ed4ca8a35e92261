"""What a group coordinator writes to ``__consumer_offsets``, and says to its broker about it.

Plain facts; their bytes are the business of the node. Those of the consumer protocol (KIP-848) are
in :mod:`sim.protocol.coordinator.group.consumer_group_records`. Left out: the records of share and
streams groups, and offset metadata strings (always empty).

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
from sim.protocol.events import RequestReceived, TimerFired
from sim.units import Micros


@dataclass(frozen=True, slots=True)
class OffsetCommitRecord:
    """A group's next offset to read from a partition; ``leader_epoch`` -1 if unknown."""

    group: str
    partition: TopicPartition
    offset: Offset
    leader_epoch: LeaderEpoch
    timestamp_ms: int


@dataclass(frozen=True, slots=True)
class MemberRecord:
    """A member as written with its group; timeouts in microseconds."""

    member_id: str
    client_id: str
    client_host: str
    """As a broker prints it: ``/shop-1``."""
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
    """The group's offset of the partition is forgotten."""

    group: str
    partition: TopicPartition


@dataclass(frozen=True, slots=True)
class GroupTombstone:
    """The group is forgotten."""

    group: str


@dataclass(frozen=True, slots=True)
class PendingOffsetRecord:
    """An offset that is the group's when the producer's transaction commits (KIP-447)."""

    producer_id: ProducerId
    commit: OffsetCommitRecord

    @property
    def group(self) -> str:
        """Whose offset it is."""
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
"""A record of ``__consumer_offsets``; markers are written by the partition's leader itself."""


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
)
"""What can happen to a group coordinator."""


GroupEffect = Effect | AppendRecords | VerifyTransaction
"""What a group coordinator may ask of its broker."""
