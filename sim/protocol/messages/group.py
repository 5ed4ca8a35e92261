"""Group coordination: the classic protocol."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, LeaderEpoch, NodeId, Offset, TopicPartition, server_name
from sim.protocol.assignors.subscription import Subscription
from sim.protocol.messages.base import ANSWERS, Echo, Request, Response
from sim.protocol.messages.sizes import group as sizes
from sim.protocol.messages.sizes.encoding import by_topic, plain_text
from sim.units import Bytes, Micros

CommittedOffsets: TypeAlias = tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...]
"""Partition, next offset, leader epoch of the last record of each."""

PROTOCOL_TYPE: Final = "consumer"
"""``protocol.type`` of consumers' groups."""

_OF_A_MEMBER: Final = (
    ErrorCode.NONE,
    ErrorCode.UNKNOWN_MEMBER_ID,
    ErrorCode.FENCED_INSTANCE_ID,
)
"""Errors that a response to LeaveGroup has of each member, not of the group."""


def _said_size(said: Subscription, protocol: str) -> Bytes:
    """Bytes of a subscription with the user data of an assignor.

    Source: ``ConsumerCoordinator.metadata``; ``StickyAssignor.STICKY_ASSIGNOR_USER_DATA_V1``,
    ``CooperativeStickyAssignor.subscriptionUserData``.
    """
    user_data = 0
    if protocol == "cooperative-sticky":
        user_data = 4
    elif protocol == "sticky" and said.remembered_generation >= 0:
        user_data = 4 + 4 + 4 * len(said.remembered)
        user_data += sum(plain_text(topic) + 4 for topic in by_topic(said.remembered))
    return sizes.consumer_protocol_subscription(
        topics=said.topics,
        user_data=user_data,
        owned_partitions=by_topic(said.owned).items(),
        rack_id=said.rack,
    )


def _share_size(share: tuple[TopicPartition, ...]) -> Bytes:
    """Bytes of a member's assignment."""
    return sizes.consumer_protocol_assignment(assigned_partitions=by_topic(share).items())


@dataclass(frozen=True, slots=True)
class FindCoordinatorRequest(Request):
    """Request for a group's or transactional id's coordinator; ``kind`` is Kafka's key type."""

    key: str
    kind: Literal["group", "transaction"] = "group"

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.find_coordinator_request(coordinator_keys=(self.key,))


@dataclass(frozen=True, slots=True)
class FindCoordinatorResponse(Echo):
    """``COORDINATOR_NOT_AVAILABLE`` while the key's partition has no leader."""

    error: ErrorCode
    coordinator: NodeId = NO_LEADER

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        assert isinstance(self.request, FindCoordinatorRequest), ANSWERS
        host = "" if self.coordinator == NO_LEADER else server_name(self.coordinator)
        return sizes.find_coordinator_response(coordinators=((self.request.key, host),))


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

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.join_group_request(
            group_id=self.group,
            member_id=self.member_id,
            group_instance_id=self.subscription.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocols=[(name, _said_size(self.subscription, name)) for name in self.protocols],
        )


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

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        members = [
            (member, said.instance_id, _said_size(said, self.protocol))
            for member, said in self.members
        ]
        return sizes.join_group_response(
            protocol_type=PROTOCOL_TYPE if self.error is ErrorCode.NONE else None,
            protocol_name=self.protocol,
            leader=self.leader,
            member_id=self.member_id,
            members=members,
        )


@dataclass(frozen=True, slots=True)
class SyncGroupRequest(Request):
    """``assignments`` is filled by the leader only."""

    group: str
    member_id: str
    generation: int
    assignments: Mapping[str, tuple[TopicPartition, ...]] = field(default_factory=dict)
    instance_id: str = ""
    protocol: str = ""
    """Assignor of the generation."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.sync_group_request(
            group_id=self.group,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self.protocol,
            assignments=[(name, _share_size(share)) for name, share in self.assignments.items()],
        )


@dataclass(frozen=True, slots=True)
class SyncGroupResponse(Echo):
    """The member's own partitions."""

    error: ErrorCode
    assignment: tuple[TopicPartition, ...] = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        if self.error is not ErrorCode.NONE:
            return sizes.sync_group_response(assignment=0)
        assert isinstance(self.request, SyncGroupRequest), ANSWERS
        return sizes.sync_group_response(
            protocol_type=PROTOCOL_TYPE,
            protocol_name=self.request.protocol,
            assignment=_share_size(self.assignment),
        )


@dataclass(frozen=True, slots=True)
class HeartbeatRequest(Request):
    """A member's sign of life."""

    group: str
    member_id: str
    generation: int
    instance_id: str = ""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.heartbeat_request(
            group_id=self.group, member_id=self.member_id, group_instance_id=self.instance_id
        )


@dataclass(frozen=True, slots=True)
class HeartbeatResponse(sizes.HeartbeatResponse):
    """REBALANCE_IN_PROGRESS asks the member to join again."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class LeaveGroupRequest(Request):
    """A member leaves; an instance id without a member id is how an administrator takes it out."""

    group: str
    member_id: str
    instance_id: str = ""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        member = (self.member_id, self.instance_id)
        return sizes.leave_group_request(group_id=self.group, members=(member,))


@dataclass(frozen=True, slots=True)
class LeaveGroupResponse(Echo):
    """NONE if the member was known."""

    error: ErrorCode

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        if self.error not in _OF_A_MEMBER:
            return sizes.leave_group_response(members=())
        assert isinstance(self.request, LeaveGroupRequest), ANSWERS
        member = (self.request.member_id, self.request.instance_id)
        return sizes.leave_group_response(members=(member,))


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
        return sizes.offset_commit_request(
            group_id=self.group,
            member_id=self.member_id,
            group_instance_id=self.instance_id,
            topics=by_topic(partition for partition, _, _ in self.offsets).values(),
        )


@dataclass(frozen=True, slots=True)
class OffsetCommitResponse(Echo):
    """One error for all: commits of one request are appended together."""

    error: ErrorCode

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        assert isinstance(self.request, OffsetCommitRequest), ANSWERS
        topics = by_topic(partition for partition, _, _ in self.request.offsets)
        return sizes.offset_commit_response(topics=topics.values())


@dataclass(frozen=True, slots=True)
class OffsetFetchRequest(Request):
    """Committed offsets of a group for the partitions named.

    ``require_stable``: UNSTABLE_OFFSET_COMMIT while a transaction holds an offset of any of them.
    """

    group: str
    partitions: tuple[TopicPartition, ...]
    require_stable: bool = False

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        group = (self.group, by_topic(self.partitions).values())
        return sizes.offset_fetch_request(groups=(group,))


@dataclass(frozen=True, slots=True)
class OffsetFetchResponse(Echo):
    """Offset -1 where the group has committed nothing."""

    error: ErrorCode
    offsets: tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...] = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        assert isinstance(self.request, OffsetFetchRequest), ANSWERS
        topics = by_topic(partition for partition, _, _ in self.offsets)
        return sizes.offset_fetch_response(groups=((self.request.group, topics.values()),))
