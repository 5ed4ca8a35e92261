"""Delegation tokens as brokers know them: ids, HMACs, and the credentials that follow from them.

A token is a user of SCRAM whose name is its id and whose password is its HMAC, which brokers and
controllers compute with ``delegation.token.secret.key``. Nothing looks at its end when a client
logs in: a token that has expired is one as long as no sweep has removed it, and its session ends
at once.

Source: ``DelegationTokenCache``, ``DelegationTokenManager``, ``DelegationTokenPublisher``,
``ScramServerCallbackHandler``; KIP-48.
"""

import hmac
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from sim.ids import uuid_text
from sim.protocol.messages.security import (
    NO_TIME,
    CreateDelegationTokenRequest,
    TokenRequester,
)
from sim.protocol.metadata.records import DelegationTokenRecord


def token_id(name: str) -> str:
    """Id of the token that a scenario calls so; Kafka draws it at random."""
    return uuid_text(f"token/{name}")


def hmac_of(secret: str, token: str) -> bytes:
    """HMAC of a token's id, which requests about the token carry."""
    return hmac.new(secret.encode(), token.encode(), "sha512").digest()


def password_of(secret: str, token: str) -> str:
    """SCRAM password of a client with the token."""
    return b64encode(hmac_of(secret, token)).decode()


def user_of(principal: str) -> str:
    """Name of a principal without its type."""
    return principal.partition(":")[2]


@dataclass(frozen=True, slots=True)
class NamedToken:
    """A token of a scenario: what its requests and its clients need."""

    name: str
    owner: str
    """Principal."""
    secret: str
    """``delegation.token.secret.key``."""
    renewers: tuple[str, ...] = ()
    """Principals."""
    max_lifetime_ms: int = NO_TIME

    @property
    def token_id(self) -> str:
        """Its id, which is the user of a client."""
        return token_id(self.name)

    @property
    def hmac(self) -> bytes:
        """Its HMAC."""
        return hmac_of(self.secret, self.token_id)

    def creation(self, *, by_token: bool = False) -> CreateDelegationTokenRequest:
        """Its owner's request for it; ``by_token`` if that is authenticated by another one."""
        requester = TokenRequester(self.owner, by_token)
        return CreateDelegationTokenRequest(
            self.token_id, requester, self.renewers, self.max_lifetime_ms
        )


@dataclass(frozen=True, slots=True)
class TokenConfig:
    """Settings of tokens, with Kafka's defaults in milliseconds."""

    secret: str
    """``delegation.token.secret.key``."""
    max_lifetime_ms: int = 7 * 24 * 3_600_000
    """``delegation.token.max.lifetime.ms``."""
    expiry_time_ms: int = 24 * 3_600_000
    """``delegation.token.expiry.time.ms``: life of a new token, and of a renewal."""
    check_interval_ms: int = 3_600_000
    """``delegation.token.expiry.check.interval.ms``: interval of the controller's sweep."""
    sweep_max: int | None = 1_000
    """Tokens that one sweep removes, a constant in Kafka; ``None``: all (``tokens.sweep``)."""


@dataclass(frozen=True, slots=True)
class Update:
    """Differences between two states of a cache."""

    removed: tuple[DelegationTokenRecord, ...]
    applied: tuple[DelegationTokenRecord, ...]
    """New ones, and those that have another end."""


class TokenCache:
    """Tokens of the metadata that one broker process has applied.

    Args:
        secret: ``delegation.token.secret.key``; empty: there are no tokens.
    """

    def __init__(self, secret: str) -> None:
        self._secret = secret
        self._tokens: dict[str, DelegationTokenRecord] = {}

    def update(self, tokens: Mapping[str, DelegationTokenRecord]) -> Update:
        """Applies the tokens of a new metadata image; returns what has changed."""
        before, self._tokens = self._tokens, dict(tokens)
        return Update(_others(before, self._tokens), _changed(before, self._tokens.values()))

    def of(self, token: str) -> DelegationTokenRecord | None:
        """Token of an id, expired or not; ``None`` if it is not known, or not any more."""
        return self._tokens.get(token)

    def password(self, token: str) -> str:
        """SCRAM password of a token."""
        return password_of(self._secret, token)


def _others(
    before: Mapping[str, DelegationTokenRecord], now: Mapping[str, DelegationTokenRecord]
) -> tuple[DelegationTokenRecord, ...]:
    return tuple(record for token, record in before.items() if token not in now)


def _changed(
    before: Mapping[str, DelegationTokenRecord], now: Iterable[DelegationTokenRecord]
) -> tuple[DelegationTokenRecord, ...]:
    return tuple(record for record in now if before.get(record.token_id) != record)
