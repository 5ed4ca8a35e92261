"""Changing who votes in the metadata quorum (KIP-853)."""

from dataclasses import dataclass
from typing import Final

from sim.error_codes import ErrorCode
from sim.ids import NodeId, server_name
from sim.protocol.messages.base import CLUSTER_ID, CONTROLLER_LISTENER, Request, Response
from sim.protocol.messages.sizes import voters as sizes
from sim.units import Bytes

_CONTROLLER_API_KEYS: Final = 41
"""Number of a 4.3 controller's api keys (``ApiKeys.apisForListener``)."""

_CONTROLLER_FEATURES: Final = (
    "metadata.version",
    "kraft.version",
    "transaction.version",
    "group.version",
    "eligible.leader.replicas.version",
    "share.version",
    "streams.version",
)
"""Features that it supports (``Feature.PRODUCTION_FEATURES``)."""


@dataclass(frozen=True, slots=True)
class AddRaftVoterRequest(Request):
    """An administrator's request that a controller vote: this process's disk, not only its id."""

    voter: NodeId
    directory: str
    """``directory.id`` of the log directory that holds its metadata log."""
    when_committed: bool = True
    """True if the answer says that the record is committed; False: appended (4.2)."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        listener = (CONTROLLER_LISTENER, server_name(self.voter))
        return sizes.add_raft_voter_request(cluster_id=CLUSTER_ID, listeners=(listener,))


@dataclass(frozen=True, slots=True)
class AddRaftVoterResponse(sizes.AddRaftVoterResponse):
    """The record with the voter is committed, or why not."""

    error: ErrorCode

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each resource."""
        return (("", self.error),)


@dataclass(frozen=True, slots=True)
class RemoveRaftVoterRequest(Request):
    """An administrator's request that a controller no longer vote."""

    voter: NodeId
    directory: str

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.remove_raft_voter_request(cluster_id=CLUSTER_ID)


@dataclass(frozen=True, slots=True)
class RemoveRaftVoterResponse(sizes.RemoveRaftVoterResponse):
    """The record without the voter is committed, or why not."""

    error: ErrorCode

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each resource."""
        return (("", self.error),)


@dataclass(frozen=True, slots=True)
class ApiVersionsRequest(Request):
    """The leader asks which levels of ``kraft.version`` a controller can do."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.api_versions_request(
            client_software_name="apache-kafka-java", client_software_version="4.3.1"
        )


@dataclass(frozen=True, slots=True)
class ApiVersionsResponse(Response):
    """Levels of ``kraft.version``."""

    kraft_version_min: int
    kraft_version_max: int

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.api_versions_response(
            api_keys=_CONTROLLER_API_KEYS, supported_features=_CONTROLLER_FEATURES
        )
