"""Requests of an administrator to a group's coordinator: describe, delete, delete offsets.

Source: ``DescribeGroupsRequest``, ``DeleteGroupsRequest``, ``OffsetDeleteRequest`` (KIP-229,
KIP-496).
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.messages.base import ANSWERS, Echo, Request, Response
from sim.protocol.messages.group import PROTOCOL_TYPE
from sim.protocol.messages.sizes import group_admin as sizes
from sim.protocol.messages.sizes.encoding import by_topic
from sim.units import Bytes


@dataclass(frozen=True, slots=True)
class DescribeGroupsRequest(Request):
    """State of a group of either protocol, where Kafka asks ConsumerGroupDescribe first."""

    group: str

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.describe_groups_request(groups=(self.group,))

    def refused(self, error: ErrorCode) -> "DescribeGroupsResponse":
        """Response with only an error."""
        return DescribeGroupsResponse(error)


@dataclass(frozen=True, slots=True)
class DescribeGroupsResponse(Echo):
    """``state`` is Kafka's name of it; GROUP_ID_NOT_FOUND and ``Dead`` without the group."""

    error: ErrorCode
    state: str = ""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        assert isinstance(self.request, DescribeGroupsRequest), ANSWERS
        kind = PROTOCOL_TYPE if self.error is ErrorCode.NONE else ""
        group = (self.request.group, self.state, kind, "")
        return sizes.describe_groups_response(groups=(group,))


@dataclass(frozen=True, slots=True)
class DeleteGroupsRequest(Request):
    """Deletes a group without members, with its offsets."""

    group: str

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.delete_groups_request(groups_names=(self.group,))

    def refused(self, error: ErrorCode) -> "DeleteGroupsResponse":
        """Response with only an error."""
        return DeleteGroupsResponse(error)


@dataclass(frozen=True, slots=True)
class DeleteGroupsResponse(Echo):
    """NON_EMPTY_GROUP while it has members."""

    error: ErrorCode

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        assert isinstance(self.request, DeleteGroupsRequest), ANSWERS
        return sizes.delete_groups_response(results=(self.request.group,))


@dataclass(frozen=True, slots=True)
class OffsetDeleteRequest(Request):
    """Deletes a group's committed offsets of some partitions."""

    group: str
    partitions: tuple[TopicPartition, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        topics = by_topic(self.partitions)
        return sizes.offset_delete_request(group_id=self.group, topics=topics.items())

    def refused(self, error: ErrorCode) -> "OffsetDeleteResponse":
        """Response with only an error."""
        return OffsetDeleteResponse(error)


@dataclass(frozen=True, slots=True)
class OffsetDeleteResponse(Response):
    """``error`` is the request's; partitions of a subscribed topic are refused each."""

    error: ErrorCode
    results: tuple[tuple[TopicPartition, ErrorCode], ...] = ()

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        topics = by_topic(partition for partition, _ in self.results)
        return sizes.offset_delete_response(topics=topics.items())
