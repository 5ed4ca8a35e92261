"""Records of consumer-protocol groups and share groups in ``__consumer_offsets``.

Plain values; ``share`` distinguishes the two, and so the record's type (KIP-848, KIP-932).
Partitions are named by topic id instead of the topic's name: a topic that is created again under
its name is another one. Left out: subscriptions by regular expression.

Source: ``ConsumerGroup*Value.json``, ``ShareGroup*Value.json`` of the group coordinator.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import NamedTuple

from sim.ids import TopicPartition
from sim.protocol.assignors.subscription import Subscription
from sim.units import Micros


class MemberState(IntEnum):
    """Progress of a member towards the target assignment; numbers are Kafka's.

    Source: ``org.apache.kafka.coordinator.group.modern.MemberState``.
    """

    STABLE = 0
    UNREVOKED_PARTITIONS = 1
    UNRELEASED_PARTITIONS = 2


@dataclass(frozen=True, slots=True)
class ConsumerGroupEpochRecord:
    """A group's epoch, and a hash of its topics."""

    group: str
    epoch: int
    metadata_hash: int
    share: bool = False


@dataclass(frozen=True, slots=True)
class ClassicMember:
    """JoinGroup of a member of the classic protocol, as far as the record has no place for it.

    Source: ``ConsumerGroupMemberMetadataValue.ClassicMemberMetadata``.
    """

    session_timeout_us: Micros
    protocols: tuple[str, ...]
    """Names of its assignors; its group works with the first one."""
    subscription: Subscription


@dataclass(frozen=True, slots=True)
class ConsumerGroupMemberRecord:
    """A member's metadata and subscription."""

    group: str
    member_id: str
    rack_id: str
    client_id: str
    client_host: str
    """In a broker's printed form: ``/shop-1``."""
    topics: tuple[str, ...]
    rebalance_timeout_us: Micros
    server_assignor: str
    share: bool = False
    instance_id: str = ""
    classic: ClassicMember | None = None
    """``None`` of a member of the consumer protocol."""


@dataclass(frozen=True, slots=True)
class TargetAssignmentEpochRecord:
    """The target assignment is complete, for this group epoch."""

    group: str
    epoch: int
    share: bool = False
    timestamp_ms: int = 0
    """Milliseconds since 1970 at which it was computed; 0 is not written, as before 4.3."""


@dataclass(frozen=True, slots=True)
class TargetAssignmentMemberRecord:
    """Target assignment of a member."""

    group: str
    member_id: str
    partitions: tuple[TopicPartition, ...]
    share: bool = False


@dataclass(frozen=True, slots=True)
class CurrentMemberAssignmentRecord:
    """Present assignment of a member, and partitions pending revocation."""

    group: str
    member_id: str
    epoch: int
    previous_epoch: int
    state: MemberState
    assigned: tuple[TopicPartition, ...]
    pending_revocation: tuple[TopicPartition, ...]
    share: bool = False
    assigned_epochs: tuple[int, ...] = ()
    """Epoch at which each was assigned (KIP-1251); empty before 4.3."""
    pending_epochs: tuple[int, ...] = ()
    """The same of those pending revocation."""


class SharedTopic(NamedTuple):
    """Partitions of a topic that a share group subscribes to."""

    topic_id: str
    topic: str
    partitions: tuple[int, ...]
    """Sorted."""


@dataclass(frozen=True, slots=True)
class ShareStatePartitionsRecord:
    """Share partitions of a group whose states are being made, and those that have one.

    Left out: topics that are being deleted.

    Source: ``ShareGroupStatePartitionMetadataValue.json``.
    """

    group: str
    initializing: tuple[SharedTopic, ...] = ()
    initialized: tuple[SharedTopic, ...] = ()
    since_us: Micros = 0
    """Instant from which the coordinator counts until it tries again; it is not written, and the
    next coordinator counts from its own beginning."""

    @property
    def share(self) -> bool:
        """True: no other groups have such states."""
        return True


@dataclass(frozen=True, slots=True)
class MemberTombstone:
    """One of the three tombstones of a member that has left or was fenced, by its key's type."""

    group: str
    member_id: str
    key_type: int

    @property
    def share(self) -> bool:
        """True if it was a share group's."""
        return self.key_type in member_keys(share=True)

    @property
    def is_last(self) -> bool:
        """True if it is the last of the three."""
        return self.key_type in {MEMBER_KEY, SHARE_MEMBER_KEY}


@dataclass(frozen=True, slots=True)
class GroupKeyTombstone:
    """One of the tombstones of a consumer group that was deleted, by its key's type."""

    group: str
    key_type: int
    share: bool = False

    @property
    def is_last(self) -> bool:
        """True if it is the last of them: of the group's epoch."""
        return self.key_type == EPOCH_KEY


EPOCH_KEY = 3
PARTITION_METADATA_KEY = 4
TARGET_EPOCH_KEY = 6
GROUP_KEYS = TARGET_EPOCH_KEY, PARTITION_METADATA_KEY, EPOCH_KEY
"""Key types of a consumer group, in the order in which its tombstones are written."""

MEMBER_KEY = 5
TARGET_KEY = 7
CURRENT_KEY = 8
SHARE_MEMBER_KEY = 10
SHARE_TARGET_KEY = 13
SHARE_CURRENT_KEY = 14
SHARE_STATES_KEY = 15


def member_keys(*, share: bool) -> tuple[int, int, int]:
    """Key types of a member, in the order in which its tombstones are written."""
    if share:
        return SHARE_CURRENT_KEY, SHARE_TARGET_KEY, SHARE_MEMBER_KEY
    return CURRENT_KEY, TARGET_KEY, MEMBER_KEY


ConsumerGroupRecord = (
    ConsumerGroupEpochRecord
    | ConsumerGroupMemberRecord
    | TargetAssignmentEpochRecord
    | TargetAssignmentMemberRecord
    | CurrentMemberAssignmentRecord
    | ShareStatePartitionsRecord
    | MemberTombstone
    | GroupKeyTombstone
)
"""A consumer-protocol record of ``__consumer_offsets``."""

CONSUMER_GROUP_RECORDS = (
    ConsumerGroupEpochRecord,
    ConsumerGroupMemberRecord,
    TargetAssignmentEpochRecord,
    TargetAssignmentMemberRecord,
    CurrentMemberAssignmentRecord,
    ShareStatePartitionsRecord,
    MemberTombstone,
    GroupKeyTombstone,
)
"""The same types, for ``isinstance``."""
