"""Changing who votes in the metadata quorum (KIP-853)."""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import NodeId
from sim.protocol.messages.base import Request, Response


@dataclass(frozen=True, slots=True)
class AddRaftVoterRequest(Request):
    """An administrator's request that a controller vote: this process's disk, not only its id."""

    voter: NodeId
    directory: str
    """``directory.id`` of the log directory that holds its metadata log."""
    when_committed: bool = True
    """True if the answer says that the record is committed; False: appended (4.2)."""


@dataclass(frozen=True, slots=True)
class AddRaftVoterResponse(Response):
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


@dataclass(frozen=True, slots=True)
class RemoveRaftVoterResponse(Response):
    """The record without the voter is committed, or why not."""

    error: ErrorCode

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each resource."""
        return (("", self.error),)


@dataclass(frozen=True, slots=True)
class ApiVersionsRequest(Request):
    """The leader asks which levels of ``kraft.version`` a controller can do."""


@dataclass(frozen=True, slots=True)
class ApiVersionsResponse(Response):
    """Levels of ``kraft.version``."""

    kraft_version_min: int
    kraft_version_max: int
