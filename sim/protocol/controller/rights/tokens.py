"""Delegation tokens at the controller: created, renewed, expired by request, and swept.

A token is looked up in the metadata that is committed and published, as Kafka's cache of tokens is:
two requests that overlap do not see each other's records.

Left out: tokens for other principals (KIP-373), which only a right to CREATE_TOKENS allows.

Source: ``DelegationTokenControlManager``, ``QuorumController.registerExpireDelegationTokens``,
``ControllerApis.{handleCreateDelegationTokenRequest,allowTokenRequests}`` (4.3); KIP-48,
KAFKA-15219.
"""

from collections.abc import Mapping
from dataclasses import replace
from hmac import compare_digest
from typing import Final, TypeAlias

from sim.error_codes import ErrorCode
from sim.protocol.controller.types import Decision
from sim.protocol.messages.security import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.records import (
    DelegationTokenRecord,
    RemoveDelegationTokenRecord,
)
from sim.protocol.metadata.versions import DELEGATION_TOKENS, is_at_least
from sim.protocol.security.tokens import TokenConfig, hmac_of
from sim.units import Micros, timestamp_ms

TIMER: Final = "delegation-tokens"
"""Timer of the sweep."""

_LAST_MS: Final = 2**63 - 1
_USER: Final = "User:"

TokenRequest: TypeAlias = (
    CreateDelegationTokenRequest | RenewDelegationTokenRequest | ExpireDelegationTokenRequest
)


class Tokens:
    """Decisions about delegation tokens.

    Args:
        config: Settings; ``None``: without ``delegation.token.secret.key``.
        image: The committed metadata.
    """

    def __init__(self, config: TokenConfig | None, image: MetadataImage) -> None:
        self._config = config
        self._image = image

    def decide(self, request: TokenRequest, now: Micros) -> Decision:
        """Records and response of a request, by the controller's clock."""
        config = self._config
        if request.requester.by_token:
            error = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
        elif config is None:
            error = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        elif not is_at_least(self._image.features, DELEGATION_TOKENS):
            error = ErrorCode.UNSUPPORTED_VERSION
        elif isinstance(request, CreateDelegationTokenRequest):
            return _create(config, request, timestamp_ms(now))
        else:
            return self._change(config, request, timestamp_ms(now))
        return Decision((), request.refused(error))

    def _change(
        self,
        config: TokenConfig,
        request: RenewDelegationTokenRequest | ExpireDelegationTokenRequest,
        now_ms: int,
    ) -> Decision:
        token = self._of(config, request.hmac)
        if token is None:
            return Decision((), request.refused(ErrorCode.DELEGATION_TOKEN_NOT_FOUND))
        if isinstance(request, RenewDelegationTokenRequest):
            return _renew(config, token, request, now_ms)
        return _expire(token, request, now_ms)

    def _of(self, config: TokenConfig, hmac: bytes) -> DelegationTokenRecord | None:
        for token in self._image.tokens.values():
            if compare_digest(hmac_of(config.secret, token.token_id), hmac):
                return token
        return None


def swept(
    tokens: Mapping[str, DelegationTokenRecord], now: Micros, most: int | None
) -> tuple[RemoveDelegationTokenRecord, ...]:
    """Removals of tokens that have expired; of so many at most, or of all."""
    now_ms = timestamp_ms(now)
    expired = [token for token in tokens.values() if _has_expired(token, now_ms)]
    return tuple(RemoveDelegationTokenRecord(token.token_id) for token in expired[:most])


def _create(config: TokenConfig, request: CreateDelegationTokenRequest, now_ms: int) -> Decision:
    if not all(renewer.startswith(_USER) for renewer in request.renewers):
        return Decision((), request.refused(ErrorCode.INVALID_PRINCIPAL_TYPE))
    lifetime_ms = config.max_lifetime_ms
    if request.max_lifetime_ms > 0:
        lifetime_ms = min(lifetime_ms, request.max_lifetime_ms)
    max_ms = min(_LAST_MS, now_ms + lifetime_ms)
    expiry_ms = min(max_ms, now_ms + config.expiry_time_ms)
    owner = request.requester.principal
    record = DelegationTokenRecord(
        owner, owner, request.renewers, now_ms, max_ms, expiry_ms, request.token_id
    )
    response = CreateDelegationTokenResponse(
        ErrorCode.NONE,
        owner,
        now_ms,
        expiry_ms,
        max_ms,
        request.token_id,
        hmac_of(config.secret, request.token_id),
    )
    return Decision((record,), response)


def _renew(
    config: TokenConfig,
    token: DelegationTokenRecord,
    request: RenewDelegationTokenRequest,
    now_ms: int,
) -> Decision:
    if _has_expired(token, now_ms):
        return Decision((), request.refused(ErrorCode.DELEGATION_TOKEN_EXPIRED))
    if not _may_change(token, request.requester.principal):
        return Decision((), request.refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH))
    period_ms = config.expiry_time_ms
    if request.period_ms > 0:
        period_ms = min(period_ms, request.period_ms)
    expiry_ms = min(token.max_ms, now_ms + period_ms)
    renewed = replace(token, expiry_ms=expiry_ms)
    return Decision((renewed,), RenewDelegationTokenResponse(ErrorCode.NONE, expiry_ms))


def _expire(
    token: DelegationTokenRecord, request: ExpireDelegationTokenRequest, now_ms: int
) -> Decision:
    """A token that is to go at once is removed even if it has expired."""
    if not _may_change(token, request.requester.principal):
        return Decision((), request.refused(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH))
    if request.period_ms < 0:
        removal = RemoveDelegationTokenRecord(token.token_id)
        return Decision((removal,), ExpireDelegationTokenResponse(ErrorCode.NONE, now_ms))
    if _has_expired(token, now_ms):
        return Decision((), request.refused(ErrorCode.DELEGATION_TOKEN_EXPIRED))
    expiry_ms = min(token.max_ms, now_ms + request.period_ms)
    changed = replace(token, expiry_ms=expiry_ms)
    return Decision((changed,), ExpireDelegationTokenResponse(ErrorCode.NONE, expiry_ms))


def _has_expired(token: DelegationTokenRecord, now_ms: int) -> bool:
    return min(token.max_ms, token.expiry_ms) < now_ms


def _may_change(token: DelegationTokenRecord, principal: str) -> bool:
    return principal == token.owner or principal in token.renewers
