"""Requests of an administrator to a group's coordinator: describe, delete, delete offsets.

Source: ``DescribeGroupsRequest``, ``DeleteGroupsRequest``, ``OffsetDeleteRequest`` (KIP-229,
KIP-496).
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.messages.base import HEADER_BYTES, Request, Response
from sim.units import Bytes


@dataclass(frozen=True, slots=True)
class DescribeGroupsRequest(Request):
    """State of a group of either protocol, where Kafka asks ConsumerGroupDescribe first."""

    group: str

    def refused(self, error: ErrorCode) -> "DescribeGroupsResponse":
        """Response with only an error."""
        return DescribeGroupsResponse(error)


@dataclass(frozen=True, slots=True)
class DescribeGroupsResponse(Response):
    """``state`` is Kafka's name of it; GROUP_ID_NOT_FOUND and ``Dead`` without the group."""

    error: ErrorCode
    state: str = ""


@dataclass(frozen=True, slots=True)
class DeleteGroupsRequest(Request):
    """Deletes a group without members, with its offsets."""

    group: str

    def refused(self, error: ErrorCode) -> "DeleteGroupsResponse":
        """Response with only an error."""
        return DeleteGroupsResponse(error)


@dataclass(frozen=True, slots=True)
class DeleteGroupsResponse(Response):
    """NON_EMPTY_GROUP while it has members."""

    error: ErrorCode


@dataclass(frozen=True, slots=True)
class OffsetDeleteRequest(Request):
    """Deletes a group's committed offsets of some partitions."""

    group: str
    partitions: tuple[TopicPartition, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + 4 * len(self.partitions)

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
        return HEADER_BYTES + 6 * len(self.results)
