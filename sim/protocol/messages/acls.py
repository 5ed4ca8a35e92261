"""ACLs to create and to delete, by an administrator (KIP-140).

A deletion names the entries themselves; Kafka's request has filters.

Source: ``clients/src/main/resources/common/message`` (4.1): CreateAcls, DeleteAcls.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.protocol.acls import Acl
from sim.protocol.messages.base import Request, Response
from sim.units import Bytes

_REQUEST_BYTES: Bytes = 27
_RESPONSE_BYTES: Bytes = 15
_FIXED_BYTES: Bytes = 8


def _size(acls: tuple[Acl, ...]) -> Bytes:
    return sum(
        _FIXED_BYTES + len(acl.resource_name) + len(acl.principal) + len(acl.host) for acl in acls
    )


@dataclass(frozen=True, slots=True)
class CreateAclsRequest(Request):
    """Entries that shall exist."""

    acls: tuple[Acl, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return _REQUEST_BYTES + _size(self.acls)

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return CreateAclsResponse(tuple((str(acl), error) for acl in self.acls))


@dataclass(frozen=True, slots=True)
class CreateAclsResponse(Response):
    """An error for each entry, printed; an entry that existed has none."""

    errors: tuple[tuple[str, ErrorCode], ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return _RESPONSE_BYTES + 4 * len(self.errors)

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each entry."""
        return self.errors


@dataclass(frozen=True, slots=True)
class DeleteAclsRequest(Request):
    """Entries that shall not exist."""

    acls: tuple[Acl, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return _REQUEST_BYTES + _size(self.acls)

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return DeleteAclsResponse(tuple((str(acl), error) for acl in self.acls))


@dataclass(frozen=True, slots=True)
class DeleteAclsResponse(Response):
    """An error for each entry, printed; an entry that was not there has none."""

    errors: tuple[tuple[str, ErrorCode], ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return _RESPONSE_BYTES + sum(len(name) - 1 for name, _ in self.errors)

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each entry."""
        return self.errors
