"""Settings of the clients' listener, and credentials of a client.

Source: ``SecurityProtocol``, ``BrokerSecurityConfigs``, ``SaslConfigs``, ``SslConfigs``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sim.protocol.security.principals import MappingRule
from sim.units import MS, NEVER, Micros

PLAIN = "PLAIN"
SCRAM: Mapping[str, str] = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}
"""Hash functions of the SCRAM mechanisms (KIP-84)."""

MECHANISMS: tuple[str, ...] = (PLAIN, *SCRAM)

ANONYMOUS = "User:ANONYMOUS"


def is_tls(protocol: str) -> bool:
    """True if connections of this ``security.protocol`` are encrypted."""
    return protocol.endswith("SSL")


def is_sasl(protocol: str) -> bool:
    """True if clients of this ``security.protocol`` authenticate by SASL."""
    return protocol.startswith("SASL")


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate in a keystore."""

    subject: str
    """Its distinguished name, as in ``CN=shop,O=Acme``."""
    is_trusted: bool = True
    """True if the other end's truststore has its issuer."""
    not_after_us: Micros = NEVER
    """End of its validity."""
    renewed_us: Micros = NEVER
    """Instant from which on the keystore's file has one that does not expire."""
    reloaded_us: Micros = NEVER
    """Instant at which running brokers read the file again (KIP-226)."""

    def valid_until(self, started_us: Micros, now: Micros) -> Micros:
        """End of the certificate that a process presents.

        Args:
            started_us: Start of the process, which has read the file then.
            now: Instant of a handshake.
        """
        read_us = self.reloaded_us if self.reloaded_us <= now else started_us
        return NEVER if max(read_us, started_us) >= self.renewed_us else self.not_after_us


@dataclass(frozen=True, slots=True)
class ClientSecurity:
    """Credentials of a client, and how it uses them."""

    protocol: str = "PLAINTEXT"
    """``security.protocol``."""
    mechanism: str = PLAIN
    """``sasl.mechanism``."""
    user: str = ""
    password: str = ""
    certificate: Certificate | None = None
    """That of its keystore; ``None``: it has none."""
    token: str = ""
    """Id of the delegation token that it uses instead of a user's credentials (KIP-48); it is the
    user then, and the token's HMAC the password."""
    reauthenticates: bool = True
    """True if it authenticates again on a connection, as since 2.2 (KIP-368)."""


@dataclass(frozen=True, slots=True)
class ListenerSecurity:
    """The clients' listener of a broker."""

    protocol: str
    """``listener.security.protocol.map`` of it."""
    clients: Mapping[str, ClientSecurity]
    """Clients by their printed names; all other processes use another listener."""
    mechanisms: tuple[str, ...] = ()
    """``sasl.enabled.mechanisms``."""
    users: Mapping[str, str] = field(default_factory=dict)
    """Passwords of users."""
    client_auth: str = "none"
    """``ssl.client.auth``."""
    mapping: tuple[MappingRule, ...] = (MappingRule(is_default=True),)
    """``ssl.principal.mapping.rules``; one of them is about each client's certificate."""
    certificate: Certificate | None = None
    """That of the brokers; ``None``: it does not expire."""
    inter_broker: Certificate | None = None
    """That of the brokers for each other; ``None``: it does not expire."""
    max_reauth_us: Micros = 0
    """``connections.max.reauth.ms``; 0: sessions do not end."""
    token_secret: str = ""
    """``delegation.token.secret.key``; empty: there are no delegation tokens."""
    failure_delay_us: Micros = 100 * MS
    """``connection.failed.authentication.delay.ms``."""
