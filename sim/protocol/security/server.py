"""A server's part of authentication on one connection of its clients' listener.

Until it is complete only ApiVersions, SaslHandshake and SaslAuthenticate are answered. A failure is
answered, and its connection closed, after ``connection.failed.authentication.delay.ms`` (KIP-306).

Source: ``SaslServerAuthenticator``, ``SslTransportLayer``,
``KafkaApis.handleSaslHandshakeRequest``; KIP-43, KIP-48, KIP-152, KIP-368.
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
from sim.protocol.metadata.records import DelegationTokenRecord
from sim.protocol.security.config import (
    ANONYMOUS,
    Certificate,
    ListenerSecurity,
    is_sasl,
    is_tls,
)
from sim.protocol.security.mechanisms import Failed, SaslServer, server_of
from sim.protocol.security.principals import name_of
from sim.protocol.security.tokens import TokenCache
from sim.units import LONG_AGO, MS, NEVER, SECOND, Micros, timestamp_ms

_EXCHANGE = (ApiVersionsRequest, SaslHandshakeRequest, SaslAuthenticateRequest)
"""Requests of authentication, which no handler sees."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Decision about a request of a client.

    ``passes``: its handlers get it, as the connection is authenticated. Otherwise the response, if
    there is one, is sent: at once, or with the end of a connection that has failed.
    """

    passes: bool = False
    logs_in: bool = False
    """True if an exchange has ended well."""
    response: Response | None = None
    error: ErrorCode = ErrorCode.NONE
    """Reason of a failure."""
    expired: bool = False
    """True if the session has ended: the connection is closed at once (KIP-368)."""
    token: DelegationTokenRecord | None = None
    """Delegation token that the client has named, and has still to prove."""
    alerts: bool = False
    """True if TLS answers the client at once, with an alert."""


_PASSES = Verdict(passes=True)

MIN_REAUTH_US: Micros = 1 * SECOND
"""``MIN_REAUTH_INTERVAL_ONE_SECOND_NANOS``: a handshake that comes sooner is refused."""


class ServerAuthenticator:
    """State of one connection.

    Args:
        listener: The clients' listener.
        certificate: That of the client; ``None``: it has none.
        nonce: The server's part of SCRAM's nonce.
        encrypted: True if the client speaks TLS.
        tokens: Delegation tokens that the broker knows.
        valid_until: End of the client's certificate.
    """

    def __init__(
        self,
        listener: ListenerSecurity,
        certificate: Certificate | None,
        nonce: str,
        tokens: TokenCache,
        *,
        encrypted: bool,
        valid_until: Micros = NEVER,
    ) -> None:
        self._listener = listener
        self._certificate = certificate
        self._nonce = nonce
        self._tokens = tokens
        self._encrypted = encrypted
        self._valid_until = valid_until
        self._is_checked = False
        self._server: SaslServer | None = None
        self.mechanism = ""
        """SASL's, once the client has named one that is enabled."""
        self.principal = ""
        """Of the client, once it is authenticated."""
        self.session_until: Micros = NEVER
        """End of the session."""
        self._wall_ms = 0
        """Timestamp of the request in hand by the broker's clock."""
        self._reauthenticated_us: Micros = LONG_AGO
        """Beginning of the last re-authentication."""

    def receive(self, request: Request, now: Micros, clock_offset_us: Micros = 0) -> Verdict:
        """Decides about a request.

        Args:
            request: The client's.
            now: By a clock that never jumps.
            clock_offset_us: Difference of the broker's clock from it, for certificates and tokens.
        """
        self._wall_ms = timestamp_ms(now + clock_offset_us)
        if not self._is_checked:
            error = self._transport_error(now + clock_offset_us)
            if error is not None:
                return error
            self._is_checked = True
            if not is_sasl(self._listener.protocol):
                self.principal = self._principal_of_tls()
        if not is_sasl(self._listener.protocol):
            return self._after_login(request) if type(request) in _EXCHANGE else _PASSES
        if not self.principal or self._server is not None:
            return self._exchange(request, now)
        if isinstance(request, SaslHandshakeRequest) and self._may_begin_again(now):
            self._reauthenticated_us = now
            return self._begin(request)
        if now > self.session_until:
            return Verdict(expired=True)
        return self._after_login(request) if type(request) in _EXCHANGE else _PASSES

    def _may_begin_again(self, now: Micros) -> bool:
        """Source: ``KafkaChannel.maybeBeginServerReauthentication``."""
        return self.session_until < NEVER and now - self._reauthenticated_us >= MIN_REAUTH_US

    @staticmethod
    def _after_login(request: Request) -> Verdict:
        """Answer of a handler to a request of an exchange that nobody expects."""
        illegal = ErrorCode.ILLEGAL_SASL_STATE
        if isinstance(request, SaslHandshakeRequest):
            return Verdict(response=SaslHandshakeResponse(illegal, ()))
        if isinstance(request, SaslAuthenticateRequest):
            return Verdict(response=SaslAuthenticateResponse(illegal))
        return Verdict(response=ApiVersionsResponse(0, 0))

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
        """Source: ``DefaultKafkaPrincipalBuilder``."""
        if self._certificate is None or self._listener.client_auth == "none":
            return ANONYMOUS
        return f"User:{name_of(self._listener.mapping, self._certificate.subject)}"

    def _exchange(self, request: Request, now: Micros) -> Verdict:
        if isinstance(request, SaslAuthenticateRequest) and self._server is not None:
            return self._authenticate(self._server, request, now)
        if self._server is not None:
            return Verdict(error=ErrorCode.ILLEGAL_SASL_STATE)
        if isinstance(request, ApiVersionsRequest):
            return Verdict(response=ApiVersionsResponse(0, 0))
        if not isinstance(request, SaslHandshakeRequest):
            return Verdict(error=ErrorCode.ILLEGAL_SASL_STATE)
        return self._begin(request)

    def _begin(self, request: SaslHandshakeRequest) -> Verdict:
        enabled = self._listener.mechanisms
        if request.mechanism not in enabled:
            unsupported = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            return Verdict(response=SaslHandshakeResponse(unsupported, enabled), error=unsupported)
        self.mechanism = request.mechanism
        users = self._listener.users
        self._server = server_of(request.mechanism, users, self._nonce, self._tokens)
        return Verdict(response=SaslHandshakeResponse(ErrorCode.NONE, enabled))

    def _authenticate(
        self, server: SaslServer, request: SaslAuthenticateRequest, now: Micros
    ) -> Verdict:
        try:
            token = server.answer(request.token)
        except Failed:
            failed = ErrorCode.SASL_AUTHENTICATION_FAILED
            said = (
                "Authentication failed during authentication due to invalid credentials with SASL "
                f"mechanism {self.mechanism}"
            )
            return Verdict(response=SaslAuthenticateResponse(failed, message=said), error=failed)
        if not server.is_complete:
            challenge = SaslAuthenticateResponse(ErrorCode.NONE, token)
            return Verdict(response=challenge, token=server.token)
        self.principal = f"User:{server.user}"
        self._server = None
        lifetime = self._session_lifetime(server)
        if lifetime is not None:
            self.session_until = now + lifetime
        done = SaslAuthenticateResponse(ErrorCode.NONE, token, session_lifetime_us=lifetime or 0)
        return Verdict(response=done, logs_in=True)

    def _session_lifetime(self, server: SaslServer) -> Micros | None:
        """Time until the next exchange is due; ``None``: none is.

        A token that has expired leaves nothing of it: the next request closes the connection, and
        the client, which reads a time of 0, does not know why.

        Source: ``calcCompletionTimesAndReturnSessionLifetimeMs`` of ``SaslServerAuthenticator``.
        """
        limits: list[Micros] = []
        if self._listener.max_reauth_us:
            limits.append(self._listener.max_reauth_us)
        if server.token is not None:
            limits.append(max(0, server.token.expiry_ms - self._wall_ms) * MS)
        return min(limits, default=None)
