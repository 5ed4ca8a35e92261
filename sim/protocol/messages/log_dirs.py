"""Moving replicas between the log directories of one broker, as an administrator asks it.

Source: ``AlterReplicaLogDirsRequest``, ``AlterReplicaLogDirsResponse``; KIP-113.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.messages.base import HEADER_BYTES, PARTITION_BYTES, Request, Response
from sim.units import Bytes


@dataclass(frozen=True, slots=True)
class AlterReplicaLogDirsRequest(Request):
    """For each partition the log directory, by name, that shall hold this broker's replica."""

    directories: tuple[tuple[TopicPartition, str], ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + PARTITION_BYTES * len(self.directories)

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        places = tuple((partition, error) for partition, _ in self.directories)
        return AlterReplicaLogDirsResponse(places)


@dataclass(frozen=True, slots=True)
class AlterReplicaLogDirsResponse(Response):
    """An error for each partition; NONE: it lies there, or is on its way."""

    errors: tuple[tuple[TopicPartition, ErrorCode], ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + PARTITION_BYTES * len(self.errors)

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each resource."""
        return tuple((str(partition), error) for partition, error in self.errors)
