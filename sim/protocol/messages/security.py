"""ACLs to create and to delete (KIP-140), delegation tokens (KIP-48), and SASL's exchange.

A deletion of ACLs names the entries themselves; Kafka's request has filters. A request about a
delegation token says whose it is, as Kafka's envelope does where a broker forwards it.

Source: ``clients/src/main/resources/common/message`` (4.1): CreateAcls, DeleteAcls,
CreateDelegationToken, RenewDelegationToken, ExpireDelegationToken, SaslHandshake,
SaslAuthenticate; KIP-43, KIP-152.
"""

from dataclasses import dataclass
from typing import Final

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


NO_TIME: Final = -1
"""A lifetime or a period that is not given, and the end of a token that was refused."""


@dataclass(frozen=True, slots=True)
class TokenRequester:
    """Principal of the connection of a request about a delegation token."""

    principal: str
    by_token: bool = False
    """True if it is authenticated by a delegation token itself."""


@dataclass(frozen=True, slots=True)
class CreateDelegationTokenRequest(Request):
    """A delegation token for who requests it."""

    token_id: str
    """The id that it gets: Kafka's controller draws it at random."""
    requester: TokenRequester
    renewers: tuple[str, ...] = ()
    """Principals."""
    max_lifetime_ms: int = NO_TIME

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        renewers = [_typed(each) for each in self.renewers]
        return sizes.create_delegation_token_request(renewers=renewers)

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return CreateDelegationTokenResponse(error, self.requester.principal)


@dataclass(frozen=True, slots=True)
class CreateDelegationTokenResponse(Response):
    """A new token and its HMAC, or an error."""

    error: ErrorCode
    principal: str
    """Of the owner, who has requested it."""
    issue_ms: int = NO_TIME
    expiry_ms: int = NO_TIME
    max_ms: int = NO_TIME
    token_id: str = ""
    hmac: bytes = b""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        kind, name = _typed(self.principal)
        return sizes.create_delegation_token_response(
            principal_type=kind,
            principal_name=name,
            token_requester_principal_type=kind,
            token_requester_principal_name=name,
            token_id=self.token_id,
            hmac=len(self.hmac),
        )

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """The error."""
        return (("", self.error),)


@dataclass(frozen=True, slots=True)
class RenewDelegationTokenRequest(Request):
    """A later end for the token of an HMAC."""

    hmac: bytes
    requester: TokenRequester
    period_ms: int = NO_TIME
    """Time from now on; the controller's default if it is not given."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.renew_delegation_token_request(hmac=len(self.hmac))

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return RenewDelegationTokenResponse(error)


@dataclass(frozen=True, slots=True)
class RenewDelegationTokenResponse(sizes.RenewDelegationTokenResponse):
    """The token's new end, or an error."""

    error: ErrorCode
    expiry_ms: int = NO_TIME

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """The error."""
        return (("", self.error),)


@dataclass(frozen=True, slots=True)
class ExpireDelegationTokenRequest(Request):
    """An end for the token of an HMAC: at once, or after a time."""

    hmac: bytes
    requester: TokenRequester
    period_ms: int = NO_TIME
    """Time from now on; less than 0: at once."""

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return sizes.expire_delegation_token_request(hmac=len(self.hmac))

    def refused(self, error: ErrorCode) -> Response:
        """Response with only an error."""
        return ExpireDelegationTokenResponse(error)


@dataclass(frozen=True, slots=True)
class ExpireDelegationTokenResponse(sizes.ExpireDelegationTokenResponse):
    """The token's end, or an error."""

    error: ErrorCode
    expiry_ms: int = NO_TIME

    def named_errors(self) -> tuple[tuple[str, ErrorCode], ...]:
        """The error."""
        return (("", self.error),)


def _typed(principal: str) -> tuple[str, str]:
    kind, _, name = principal.partition(":")
    return kind, name


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
