"""Moving replicas between the log directories of one broker, as an administrator asks it.

Source: ``AlterReplicaLogDirsRequest``, ``AlterReplicaLogDirsResponse``; KIP-113.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.sizes import log_dirs as sizes
from sim.protocol.messages.sizes.encoding import by_topic
from sim.units import Bytes


@dataclass(frozen=True, slots=True)
class AlterReplicaLogDirsRequest(Request):
    """For each partition the log directory, by name, that shall hold this broker's replica."""

    directories: tuple[tuple[TopicPartition, str], ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        found: dict[str, list[TopicPartition]] = {}
        for partition, directory in self.directories:
            found.setdefault(directory, []).append(partition)
        directories = [(path, by_topic(places).items()) for path, places in found.items()]
        return sizes.alter_replica_log_dirs_request(dirs=directories)

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
        topics = by_topic(partition for partition, _ in self.errors)
        return sizes.alter_replica_log_dirs_response(results=topics.items())

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each resource."""
        return tuple((str(partition), error) for partition, error in self.errors)
