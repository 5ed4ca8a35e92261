"""Authentication in a scenario: the clients' listener, and what a client presents to it."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from sim.scenario.model.types import Duration, Fields, Strict, Words


class CertificateModel(Strict, frozen=True):
    """A client's certificate."""

    quiet: ClassVar[Fields] = ("is_trusted",)

    subject: Annotated[str, Field(min_length=1)] = Field(description="as in CN=shop,O=Acme")
    is_trusted: bool = Field(
        default=True, alias="trusted", description="whether the brokers trust its issuer"
    )
    not_after_us: Duration | None = Field(None, alias="not.after", description="when it expires")
    renewed_us: Duration | None = Field(
        None, alias="renewed", description="when its file has one that does not; read at a start"
    )


class BrokerCertificateModel(Strict, frozen=True):
    """The certificate of every broker, for its clients or for the others."""

    not_after_us: Duration = Field(alias="not.after", description="when it expires")
    renewed_us: Duration | None = Field(
        None, alias="renewed", description="when its file has one that does not; read at a start"
    )
    reloaded_us: Duration | None = Field(
        None, alias="reloaded", description="when running brokers read it again (KIP-226)"
    )


class LoginModel(Strict, frozen=True):
    """Credentials of a client; ``security.protocol`` is one of its settings."""

    mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = Field(
        None, alias="sasl.mechanism"
    )
    user: str | None = None
    password: str | None = None
    token: str | None = Field(
        None, description="one of cluster.security.tokens, instead of user and password"
    )
    certificate: CertificateModel | None = Field(
        None, description="of its keystore; default: it has none"
    )


class TokenModel(Strict, frozen=True):
    """A delegation token."""

    quiet: ClassVar[Fields] = ("renewers", "later")

    owner: str = Field(description="user who has it made, and as whom a client with it is known")
    renewers: Words = Field((), description="users who may renew and expire it, beside the owner")
    max_lifetime_us: Duration | None = Field(
        None, alias="max.lifetime", description="default: delegation.token.max.lifetime.ms"
    )
    later: bool = Field(
        default=False, description="true: it is made by do: create-token; false: before the run"
    )


class SecurityModel(Strict, frozen=True):
    """The listener of clients on every broker."""

    quiet: ClassVar[Fields] = (
        *("mechanisms", "users", "client_auth", "mapping", "max_reauth_ms", "failure_delay_ms"),
        "tokens",
    )

    protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    mechanisms: Words = Field(
        (), alias="sasl.enabled.mechanisms", description="PLAIN, SCRAM-SHA-256, SCRAM-SHA-512"
    )
    users: dict[str, str] = Field(
        default_factory=dict, description="password of each, with every mechanism that is enabled"
    )
    tokens: dict[str, TokenModel] = Field(
        default_factory=dict, description="delegation tokens by the names that logins use (KIP-48)"
    )
    certificate: BrokerCertificateModel | None = Field(
        None, description="of every broker; default: it does not expire"
    )
    inter_broker_certificate: BrokerCertificateModel | None = Field(
        None, alias="inter.broker.certificate", description="of every broker, for the others"
    )
    client_auth: Literal["none", "requested", "required"] = Field("none", alias="ssl.client.auth")
    mapping: str = Field(
        "DEFAULT", alias="ssl.principal.mapping.rules", description="as in RULE:^CN=(.*?),.*$/$1/L"
    )
    max_reauth_ms: Annotated[int, Field(ge=0)] = Field(
        0, alias="connections.max.reauth.ms", description="0: sessions do not end"
    )
    failure_delay_ms: Annotated[int, Field(ge=0, le=2_147_483_647)] = Field(
        100, alias="connection.failed.authentication.delay.ms"
    )
