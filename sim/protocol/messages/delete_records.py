"""Deleting records up to an offset, as an administrator asks a partition's leader.

Source: ``DeleteRecordsRequest``, ``DeleteRecordsResponse``; KIP-107.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import Offset, TopicPartition
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.sizes import delete_records as sizes
from sim.protocol.messages.sizes.encoding import by_topic
from sim.units import Bytes, Micros

UP_TO_HIGH_WATERMARK: Offset = -1
"""Offset of a request that means everything which is committed."""


@dataclass(frozen=True, slots=True)
class DeleteRecordsRequest(Request):
    """For each partition the first offset to keep, or UP_TO_HIGH_WATERMARK."""

    offsets: tuple[tuple[TopicPartition, Offset], ...]
    timeout_us: Micros

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        topics = by_topic(partition for partition, _ in self.offsets)
        return sizes.delete_records_request(topics=topics.items())


@dataclass(frozen=True, slots=True)
class DeleteRecordsResult:
    """``low_watermark``: smallest log start offset of all live replicas; -1 after an error."""

    partition: TopicPartition
    error: ErrorCode
    low_watermark: Offset = -1


@dataclass(frozen=True, slots=True)
class DeleteRecordsResponse(Response):
    """One result for each requested partition."""

    results: tuple[DeleteRecordsResult, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        topics = by_topic(result.partition for result in self.results)
        return sizes.delete_records_response(topics=topics.items())

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each resource."""
        return tuple((str(result.partition), result.error) for result in self.results)
