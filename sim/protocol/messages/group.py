"""Group coordination: the classic protocol."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol.assignors.subscription import Subscription
from sim.protocol.messages.base import HEADER_BYTES, Request, Response
from sim.units import Bytes, Micros

CommittedOffsets: TypeAlias = tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...]
"""Partition, next offset, leader epoch of the last record of each."""


@dataclass(frozen=True, slots=True)
class FindCoordinatorRequest(Request):
    """Request for a group's or transactional id's coordinator; ``kind`` is Kafka's key type."""

    key: str
    kind: Literal["group", "transaction"] = "group"


@dataclass(frozen=True, slots=True)
class FindCoordinatorResponse(Response):
    """``COORDINATOR_NOT_AVAILABLE`` while the key's partition has no leader."""

    error: ErrorCode
    coordinator: NodeId = NO_LEADER


@dataclass(frozen=True, slots=True)
class JoinGroupRequest(Request):
    """``member_id`` is empty for a new member; ``protocols``: assignors in order of choice.

    Kafka has the ``group.instance.id`` beside the subscription, and a subscription for each
    protocol, which differ in what the sticky assignors remember.
    """

    group: str
    member_id: str
    client_id: str
    subscription: Subscription
    protocols: tuple[str, ...]
    session_timeout_us: Micros
    rebalance_timeout_us: Micros


@dataclass(frozen=True, slots=True)
class JoinGroupResponse(Response):
    """``members`` is filled for the leader only.

    ``skip_assignment``: the assignment is still valid for a leader that returned under its
    instance id (KIP-814).
    """

    error: ErrorCode
    member_id: str = ""
    generation: int = -1
    protocol: str = ""
    leader: str = ""
    members: tuple[tuple[str, Subscription], ...] = ()
    skip_assignment: bool = False


@dataclass(frozen=True, slots=True)
class SyncGroupRequest(Request):
    """``assignments`` is filled by the leader only."""

    group: str
    member_id: str
    generation: int
    assignments: Mapping[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    instance_id: str = ""


@dataclass(frozen=True, slots=True)
class SyncGroupResponse(Response):
    """The member's own partitions."""

    error: ErrorCode
    assignment: tuple[TopicPartition, ...] = ()


@dataclass(frozen=True, slots=True)
class HeartbeatRequest(Request):
    """A member's sign of life."""

    group: str
    member_id: str
    generation: int
    instance_id: str = ""


@dataclass(frozen=True, slots=True)
class HeartbeatResponse(Response):
    """REBALANCE_IN_PROGRESS asks the member to join again."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class LeaveGroupRequest(Request):
    """A member leaves; an instance id without a member id is how an administrator takes it out."""

    group: str
    member_id: str
    instance_id: str = ""


@dataclass(frozen=True, slots=True)
class LeaveGroupResponse(Response):
    """NONE if the member was known."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class OffsetCommitRequest(Request):
    """Positions to remember: partition, next offset, leader epoch of the last record."""

    group: str
    member_id: str
    generation: int
    offsets: CommittedOffsets
    instance_id: str = ""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + 40 * len(self.offsets)


@dataclass(frozen=True, slots=True)
class OffsetCommitResponse(Response):
    """One error for all: commits of one request are appended together."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class OffsetFetchRequest(Request):
    """Committed offsets of a group for the partitions named.

    ``require_stable``: UNSTABLE_OFFSET_COMMIT while a transaction holds an offset of any of them.
    """

    group: str
    partitions: tuple[TopicPartition, ...]
    require_stable: bool = False


@dataclass(frozen=True, slots=True)
class OffsetFetchResponse(Response):
    """Offset -1 where the group has committed nothing."""

    error: ErrorCode
    offsets: tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...] = ()
