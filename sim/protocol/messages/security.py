"""ACLs to create and to delete, by an administrator (KIP-140); SASL's handshake and tokens.

A deletion names the entries themselves; Kafka's request has filters.

Source: ``clients/src/main/resources/common/message`` (4.1): CreateAcls, DeleteAcls, SaslHandshake,
SaslAuthenticate; KIP-43, KIP-152.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.protocol.acls import Acl
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.sizes import security as sizes
from sim.units import Bytes, Micros


def _texts(acl: Acl) -> tuple[str, str, str]:
    return acl.resource_name, acl.principal, acl.host


@dataclass(frozen=True, slots=True)
class CreateAclsRequest(Request):
    """Entries that shall exist."""

    acls: tuple[Acl, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.create_acls_request(creations=[_texts(acl) for acl in self.acls])

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
        return sizes.create_acls_response(results=len(self.errors))

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
        return sizes.delete_acls_request(filters=[_texts(acl) for acl in self.acls])

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return DeleteAclsResponse(tuple((str(acl), error) for acl in self.acls))


@dataclass(frozen=True, slots=True)
class DeleteAclsResponse(Response):
    """An error for each entry, printed; an entry that was not there has none."""

    errors: tuple[tuple[str, ErrorCode], ...]
    deleted: tuple[Acl, ...] = ()
    """Entries that were there."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        found = [[_texts(acl)] for acl in self.deleted]
        found += [[]] * (len(self.errors) - len(found))
        return sizes.delete_acls_response(filter_results=found)

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """Error of each entry."""
        return self.errors


@dataclass(frozen=True, slots=True)
class SaslHandshakeRequest(Request):
    """Names the mechanism with which the client will authenticate."""

    mechanism: str

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.sasl_handshake_request(mechanism=self.mechanism)


@dataclass(frozen=True, slots=True)
class SaslHandshakeResponse(Response):
    """NONE or UNSUPPORTED_SASL_MECHANISM, and the mechanisms that are enabled."""

    error: ErrorCode
    mechanisms: tuple[str, ...]

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.sasl_handshake_response(mechanisms=self.mechanisms)


@dataclass(frozen=True, slots=True)
class SaslAuthenticateRequest(Request):
    """A client's token."""

    token: bytes

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.sasl_authenticate_request(auth_bytes=len(self.token))


@dataclass(frozen=True, slots=True)
class SaslAuthenticateResponse(Response):
    """A server's token, or SASL_AUTHENTICATION_FAILED with a sentence."""

    error: ErrorCode
    token: bytes = b""
    message: str = ""
    session_lifetime_us: Micros = 0
    """Time within which the client has to authenticate again (KIP-368); 0: never."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.sasl_authenticate_response(
            error_message=self.message, auth_bytes=len(self.token)
        )


@dataclass(frozen=True, slots=True)
class TlsAlert:
    """A fatal alert: the server does not accept the client's certificate (RFC 8446, section 6)."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes of a record with an alert, before it is encrypted."""
        return 2
