"""A server's part of authentication on one connection of its clients' listener.

Until it is complete only ApiVersions, SaslHandshake and SaslAuthenticate are answered. A failure is
answered, and its connection closed, after ``connection.failed.authentication.delay.ms`` (KIP-306).

Source: ``SaslServerAuthenticator``, ``SslTransportLayer``,
``KafkaApis.handleSaslHandshakeRequest``; KIP-43, KIP-152.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.security import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from sim.protocol.messages.voters import ApiVersionsRequest, ApiVersionsResponse
from sim.protocol.security.config import (
    ANONYMOUS,
    Certificate,
    ListenerSecurity,
    is_sasl,
    is_tls,
)
from sim.protocol.security.mechanisms import Failed, SaslServer, server_of
from sim.units import NEVER, Micros

_EXCHANGE = (ApiVersionsRequest, SaslHandshakeRequest, SaslAuthenticateRequest)
"""Requests of authentication, which no handler sees."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Decision about a request of a client.

    ``passes``: its handlers get it, as the connection is authenticated. Otherwise the response, if
    there is one, is sent: at once, or with the end of a connection that has failed.
    """

    passes: bool = False
    response: Response | None = None
    error: ErrorCode = ErrorCode.NONE
    """Reason of a failure."""
    alerts: bool = False
    """True if TLS answers the client at once, with an alert."""


_PASSES = Verdict(passes=True)


class ServerAuthenticator:
    """State of one connection.

    Args:
        listener: The clients' listener.
        certificate: That of the client; ``None``: it has none.
        nonce: The server's part of SCRAM's nonce.
        encrypted: True if the client speaks TLS.
        valid_until: End of the client's certificate.
    """

    def __init__(
        self,
        listener: ListenerSecurity,
        certificate: Certificate | None,
        nonce: str,
        *,
        encrypted: bool,
        valid_until: Micros = NEVER,
    ) -> None:
        self._listener = listener
        self._certificate = certificate
        self._nonce = nonce
        self._encrypted = encrypted
        self._valid_until = valid_until
        self._is_checked = False
        self._server: SaslServer | None = None
        self.mechanism = ""
        """SASL's, once the client has named one that is enabled."""
        self.principal = ""
        """Of the client, once it is authenticated."""

    def receive(self, request: Request, now: Micros) -> Verdict:
        """Decides about a request, at an instant of the broker's clock."""
        if not self._is_checked:
            error = self._transport_error(now)
            if error is not None:
                return error
            self._is_checked = True
            if not is_sasl(self._listener.protocol):
                self.principal = self._principal_of_tls()
        if self.principal and type(request) not in _EXCHANGE:
            return _PASSES
        if not is_sasl(self._listener.protocol):
            return self._without_sasl(request)
        return self._exchange(request)

    def _transport_error(self, now: Micros) -> Verdict | None:
        """Verdict about what comes before the first request: TLS, and the client's certificate."""
        if not is_tls(self._listener.protocol):
            return None
        failed = ErrorCode.SSL_AUTHENTICATION_FAILED
        if not self._encrypted:
            return Verdict(error=failed)
        demands = self._listener.client_auth
        certificate = self._certificate if demands != "none" else None
        if certificate is None:
            return Verdict(error=failed, alerts=True) if demands == "required" else None
        is_valid = certificate.is_trusted and now < self._valid_until
        return None if is_valid else Verdict(error=failed, alerts=True)

    def _principal_of_tls(self) -> str:
        """Source: ``DefaultKafkaPrincipalBuilder``, without ``ssl.principal.mapping.rules``."""
        if self._certificate is None or self._listener.client_auth == "none":
            return ANONYMOUS
        return f"User:{self._certificate.subject}"

    @staticmethod
    def _without_sasl(request: Request) -> Verdict:
        if isinstance(request, ApiVersionsRequest):
            return Verdict(response=ApiVersionsResponse(0, 0))
        return Verdict(response=SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE, ()))

    def _exchange(self, request: Request) -> Verdict:
        enabled = self._listener.mechanisms
        if isinstance(request, SaslAuthenticateRequest) and self._server is not None:
            return self._authenticate(self._server, request)
        if self._server is not None or self.principal:
            return Verdict(error=ErrorCode.ILLEGAL_SASL_STATE)
        if isinstance(request, ApiVersionsRequest):
            return Verdict(response=ApiVersionsResponse(0, 0))
        if not isinstance(request, SaslHandshakeRequest):
            return Verdict(error=ErrorCode.ILLEGAL_SASL_STATE)
        if request.mechanism not in enabled:
            unsupported = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return Verdict(response=SaslHandshakeResponse(unsupported, enabled), error=unsupported)
        self.mechanism = request.mechanism
        self._server = server_of(request.mechanism, self._listener.users, self._nonce)
        return Verdict(response=SaslHandshakeResponse(ErrorCode.NONE, enabled))

    def _authenticate(self, server: SaslServer, request: SaslAuthenticateRequest) -> Verdict:
        try:
            token = server.answer(request.token)
        except Failed:
            failed = ErrorCode.SASL_AUTHENTICATION_FAILED
            said = (
                "Authentication failed during authentication due to invalid credentials with SASL "
                f"mechanism {self.mechanism}"
            )
            return Verdict(response=SaslAuthenticateResponse(failed, message=said), error=failed)
        if server.is_complete:
            self.principal = f"User:{server.user}"
            self._server = None
        return Verdict(response=SaslAuthenticateResponse(ErrorCode.NONE, token))
