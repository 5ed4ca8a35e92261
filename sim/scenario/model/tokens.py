"""Delegation tokens of a scenario: rules, and what its servers and clients are built with.

Source: ``DelegationTokenManagerConfigs``; KIP-48, KAFKA-15219.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from sim.protocol.messages.security import NO_TIME, CreateDelegationTokenRequest
from sim.protocol.security.config import SCRAM, is_sasl
from sim.protocol.security.tokens import NamedToken, TokenConfig
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.security import SecurityModel, TokenModel
from sim.scenario.settings.registry import default_of
from sim.scenario.settings.resolved import Config
from sim.scenario.text.problems import Problem, nearest, one_of
from sim.units import MS, Micros

SECRET: Final = "delegation.token.secret.key"  # noqa: S105 - the name of the setting

TOKEN_SETTINGS: Final = (
    SECRET,
    "delegation.token.max.lifetime.ms",
    "delegation.token.expiry.time.ms",
    "delegation.token.expiry.check.interval.ms",
)
"""Settings of brokers and controllers."""

_FIRST_VERSION: Final = (3, 6)
"""The first whose KRaft keeps delegation tokens (KAFKA-15219)."""


def check_tokens(cluster: ClusterSpec, security: SecurityModel) -> None:
    """Check the tokens.

    Raises:
        Problem: With a path below ``cluster.security``.
    """
    try:
        if security.tokens:
            _check_listener(cluster, security)
        for name, token in security.tokens.items():
            _check_token(cluster.config, security, name, token)
    except Problem as problem:
        raise problem.below("tokens") from None


def check_token_settings(cluster: ClusterSpec) -> None:
    """Check that settings of tokens have a meaning.

    Raises:
        Problem: With a path below ``cluster``.
    """
    config = cluster.config
    for name in TOKEN_SETTINGS:
        if name not in config or config[name] == default_of("broker", name, config.version):
            continue
        at = ("config", name)
        if cluster.security is None:
            raise Problem(at, f"{name} without cluster.security", "add cluster.security")
        if name == SECRET and not config.text(name):
            raise Problem(at, "an empty key", "a text", "leave it out to have no tokens")
        if not _secret(config):
            raise Problem(at, f"{name} without {SECRET}: there are no tokens", f"add {SECRET}")
        _check_version(cluster, at)


def _check_version(cluster: ClusterSpec, at: tuple[str, ...]) -> None:
    if tuple(int(part) for part in cluster.kafka.split(".")[:2]) < _FIRST_VERSION:
        found = f"delegation tokens without ZooKeeper in Kafka {cluster.kafka}"
        raise Problem(at, found, "cluster.kafka 3.6 or newer (KAFKA-15219)")


def _check_listener(cluster: ClusterSpec, security: SecurityModel) -> None:
    _check_version(cluster, ())
    if not is_sasl(security.protocol):
        raise Problem((), f"tokens with {security.protocol}", "SASL_PLAINTEXT or SASL_SSL")
    if not any(name in SCRAM for name in security.mechanisms):
        raise Problem((), "tokens without a mechanism of SCRAM", one_of(SCRAM))


def _check_token(config: Config, security: SecurityModel, name: str, token: TokenModel) -> None:
    if not token.later and not _secret(config):
        found = f"a token without {SECRET}: the controller refuses to make it"
        raise Problem((name,), found, f"add {SECRET} to cluster.config")
    for key, users in (("owner", (token.owner,)), ("renewers", token.renewers)):
        for user in users:
            if user not in security.users:
                known = tuple(security.users)
                found = f"no user {user!r}"
                raise Problem((name, key), found, one_of(known), nearest(user, known))
    lifetime = token.max_lifetime_us
    if lifetime is not None and lifetime < MS:
        raise Problem((name, "max.lifetime"), "less than a millisecond", "1ms or more")


def _secret(config: Config) -> str:
    return config.text(SECRET) if SECRET in config and config[SECRET] is not None else ""


def token_secret(cluster: ClusterSpec) -> str:
    """``delegation.token.secret.key``; empty: there are no tokens."""
    return _secret(cluster.config)


def token_config(config: Config, behaviours: Mapping[str, str]) -> TokenConfig | None:
    """Settings of the controller; ``None`` without the key."""
    secret = _secret(config)
    if not secret:
        return None
    times = (config.number(name) for name in TOKEN_SETTINGS[1:])
    made = TokenConfig(secret, *times)
    return made if behaviours["tokens.sweep"] == "thousand" else replace(made, sweep_max=None)


def named_token(cluster: ClusterSpec, name: str) -> NamedToken:
    """A token by its name.

    Raises:
        Problem: If there is none of that name.
    """
    tokens = {} if cluster.security is None else cluster.security.tokens
    model = tokens.get(name)
    if model is None:
        known = tuple(tokens)
        allowed = one_of(known) or "none: cluster.security has no tokens"
        raise Problem((), f"no token {name!r}", allowed, nearest(name, known))
    return NamedToken(
        name,
        f"User:{model.owner}",
        token_secret(cluster),
        tuple(f"User:{user}" for user in model.renewers),
        NO_TIME if model.max_lifetime_us is None else whole_ms(model.max_lifetime_us),
    )


def first_tokens(cluster: ClusterSpec) -> tuple[CreateDelegationTokenRequest, ...]:
    """Requests for the tokens that are there before the run."""
    tokens = {} if cluster.security is None else cluster.security.tokens
    first = (name for name, token in tokens.items() if not token.later)
    return tuple(named_token(cluster, name).creation() for name in first)


def whole_ms(time: Micros) -> int:
    """A time in milliseconds, rounded up."""
    return -(-time // MS)
