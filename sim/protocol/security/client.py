"""A client's part of authentication on one connection.

Source: ``SaslClientAuthenticator``; KIP-43, KIP-152, KIP-255, KIP-368.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.protocol.messages.base import Request
from sim.protocol.messages.security import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from sim.protocol.messages.voters import ApiVersionsRequest
from sim.protocol.security.config import PLAIN, ClientSecurity, is_sasl
from sim.protocol.security.mechanisms import Failed, client_of
from sim.units import MS, Micros

HASH_US: Micros = 3 * MS
"""Time of a client for SCRAM's 4,096 iterations on one core; a modelling choice."""


@dataclass(frozen=True, slots=True)
class LoginStep:
    """Consequence of a response: the next request, the end, or a failure."""

    request: Request | None = None
    """``None``: the connection is ready, or has failed."""
    error: ErrorCode = ErrorCode.NONE
    work_us: Micros = 0
    """Time that the client needs before it sends the request."""
    session_us: Micros = 0
    """Time from the end of the exchange until the next one (KIP-368); 0: there is none."""


class SaslClientAuthenticator:
    """One exchange: ApiVersions, SaslHandshake, then the mechanism's tokens.

    Args:
        credentials: The client's.
        nonce: Its part of SCRAM's nonce on this connection.
        chance: Uniform in [0, 1), for the instant of the next exchange.
    """

    def __init__(self, credentials: ClientSecurity, nonce: str, chance: float = 0.0) -> None:
        self._credentials = credentials
        self._client = client_of(credentials, nonce)
        self._chance = chance
        self._lifetime_us: Micros = 0

    def begin(self) -> Request | None:
        """First request of a new connection; ``None`` if it is ready as it is."""
        return ApiVersionsRequest() if is_sasl(self._credentials.protocol) else None

    def begin_again(self) -> Request:
        """First request of a re-authentication, which knows the server's versions."""
        return SaslHandshakeRequest(self._credentials.mechanism)

    def receive(self, response: object) -> LoginStep:
        """Decides what follows from a response."""
        if isinstance(response, SaslHandshakeResponse):
            if response.error is not ErrorCode.NONE:
                return LoginStep(error=response.error)
            return LoginStep(SaslAuthenticateRequest(self._client.first()))
        if isinstance(response, SaslAuthenticateResponse):
            if response.error is not ErrorCode.NONE:
                return LoginStep(error=response.error)
            self._lifetime_us = response.session_lifetime_us
            return self._answer(response.token)
        return LoginStep(SaslHandshakeRequest(self._credentials.mechanism))

    def _answer(self, token: bytes) -> LoginStep:
        try:
            answer = self._client.answer(token)
        except Failed:
            return LoginStep(error=ErrorCode.SASL_AUTHENTICATION_FAILED)
        if answer is None:
            # Source: ``setAuthenticationEndAndSessionReauthenticationTimes``.
            share = int((0.85 + 0.10 * self._chance) * self._lifetime_us)
            return LoginStep(session_us=share if self._credentials.reauthenticates else 0)
        proves = self._credentials.mechanism != PLAIN
        return LoginStep(SaslAuthenticateRequest(answer), work_us=HASH_US if proves else 0)
