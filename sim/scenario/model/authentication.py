"""Rules of authentication in a scenario, and what its brokers and clients are built with.

Source: ``SocketServerConfigs``, ``BrokerSecurityConfigs``, ``SaslConfigs``, ``SslConfigs``;
KIP-43, KIP-84, KIP-684, KIP-900.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from sim.protocol.acls import ANONYMOUS
from sim.protocol.security.config import (
    MECHANISMS,
    SCRAM,
    Certificate,
    ClientSecurity,
    ListenerSecurity,
    is_sasl,
    is_tls,
)
from sim.protocol.security.principals import name_of, rules_of
from sim.protocol.security.tokens import password_of
from sim.scenario.behaviours.versions import is_since
from sim.scenario.model.apps import ConnectorSpec, MirrorSpec, ProcessorSpec
from sim.scenario.model.clients import ConsumerSpec, ProducerSpec
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.security import (
    BrokerCertificateModel,
    CertificateModel,
    LoginModel,
    SecurityModel,
)
from sim.scenario.model.tokens import check_token_settings, check_tokens, named_token, token_secret
from sim.scenario.settings.resolved import Config
from sim.scenario.text.problems import Problem, nearest, one_of
from sim.units import MS, NEVER, Micros

Load: TypeAlias = ProducerSpec | ConsumerSpec

PROTOCOL: Final = "security.protocol"

_FIRST_VERSION: Final = (2, 1)
"""The first with ``connection.failed.authentication.delay.ms`` (KIP-306)."""

_REAUTHENTICATES: Final = "2.2"
"""The first release whose clients do so on a connection (KIP-368)."""

_FIRST_SCRAM: Final = (3, 5)
"""The first whose KRaft keeps SCRAM's credentials (KIP-900)."""

_NOTHING: Final = LoginModel.model_construct(mechanism=None, certificate=None)

ALONE: Final = ("quotas", "processors", "connectors", "mirrors", "clusters")
"""Parts of a scenario that are not simulated beside ``cluster.security``."""


def check_cluster(cluster: ClusterSpec) -> None:
    """Check the clients' listener, and the delegation tokens.

    Raises:
        Problem: With a path below ``cluster``.
    """
    check_token_settings(cluster)
    security = cluster.security
    if security is None:
        return
    try:
        _check_version(cluster, security)
        _check_listener(security)
        _check_certificates(cluster.config, security)
        _check_mapping(security)
        check_tokens(cluster, security)
    except Problem as problem:
        raise problem.below("security") from None


def _check_version(cluster: ClusterSpec, security: SecurityModel) -> None:
    if cluster.zookeeper is not None or cluster.replication == "raft":
        other = "in ZooKeeper mode" if cluster.zookeeper is not None else "with Raft groups"
        raise Problem((), f"security {other}, which are not simulated together", "KRaft's brokers")
    version = tuple(int(part) for part in cluster.kafka.split(".")[:2])
    has_scram = any(name in SCRAM for name in security.mechanisms)
    first = _FIRST_SCRAM if has_scram else _FIRST_VERSION
    if version < first:
        what = "SCRAM without ZooKeeper (KIP-900)" if has_scram else "cluster.security"
        raise Problem(
            (), f"{what} in Kafka {cluster.kafka}", f"cluster.kafka {first[0]}.{first[1]} or newer"
        )


def _check_mapping(security: SecurityModel) -> None:
    key = "ssl.principal.mapping.rules"
    try:
        rules = rules_of(security.mapping)
        for rule in rules:
            re.compile(rule.pattern)
    except (ValueError, re.error) as error:
        hint = "DEFAULT, RULE:PATTERN/REPLACEMENT/, or one with L or U behind it"
        raise Problem((key,), f"no rule: {error}", hint) from None
    if security.mapping != "DEFAULT" and security.client_auth == "none":
        raise Problem((key,), "rules without certificates", "ssl.client.auth: requested, required")


def _check_certificates(config: Config, security: SecurityModel) -> None:
    if security.certificate is not None and not is_tls(security.protocol):
        found = f"a certificate with {security.protocol}"
        raise Problem(("certificate",), found, "protocol: SSL or SASL_SSL")
    name = "security.inter.broker.protocol"
    if security.inter_broker_certificate is not None and not is_tls(config.text(name)):
        found = f"a certificate with {name} {config.text(name)}"
        raise Problem(("inter.broker.certificate",), found, f"{name}: SSL in cluster.config")
    for key, certificate in (
        ("certificate", security.certificate),
        ("inter.broker.certificate", security.inter_broker_certificate),
    ):
        if certificate is not None:
            _check_renewal(key, certificate.renewed_us, certificate.reloaded_us)


def _check_listener(security: SecurityModel) -> None:
    names = "sasl.enabled.mechanisms"
    for name in security.mechanisms:
        if name not in MECHANISMS:
            found = f"{name}, which is not simulated"
            raise Problem((names,), found, one_of(MECHANISMS), nearest(name, MECHANISMS))
    if is_sasl(security.protocol):
        if not security.mechanisms:
            raise Problem((names,), f"{security.protocol} without mechanisms", one_of(MECHANISMS))
        for user, password in security.users.items():
            if not user or not password or "\0" in user + password:
                raise Problem(("users", user), "an empty name or password", "both of them")
    elif security.mechanisms or security.users or security.max_reauth_ms:
        key = names if security.mechanisms else "connections.max.reauth.ms"
        key = "users" if security.users else key
        raise Problem((key,), f"{key} with {security.protocol}", "SASL_PLAINTEXT or SASL_SSL")
    if security.client_auth != "none" and security.protocol != "SSL":
        found = f"{security.client_auth} with {security.protocol}"
        raise Problem(("ssl.client.auth",), found, "protocol: SSL", "leave it out")


def _check_renewal(key: str, renewed: Micros | None, reloaded: Micros | None) -> None:
    if reloaded is not None and (renewed is None or reloaded < renewed):
        raise Problem(
            (key, "reloaded"),
            "a file that is read again before it has another certificate",
            f"an instant from {key}.renewed on",
        )


def check_clients(
    cluster: ClusterSpec, producers: Iterable[ProducerSpec], consumers: Iterable[ConsumerSpec]
) -> None:
    """Check what each client presents.

    Raises:
        Problem: With a path from the top of the file.
    """
    loads: Mapping[str, Iterable[Load]] = {"producers": producers, "consumers": consumers}
    for key, found in loads.items():
        for index, load in enumerate(found):
            try:
                _check_client(cluster, load)
            except Problem as problem:
                raise problem.below(key, index) from None


def _check_client(cluster: ClusterSpec, load: Load) -> None:
    security = cluster.security
    protocol = load.config.text(PROTOCOL)
    if security is None:
        _check_without(load.config)
        if load.login is not None:
            raise Problem(("login",), "a login without cluster.security", "add cluster.security")
        return
    if load.principal != ANONYMOUS:
        raise Problem(
            ("principal",), "a principal beside cluster.security", "leave it out",
            "it follows from the client's login",
        )  # fmt: skip
    _check_login(protocol, load.login or _NOTHING)
    _check_token(cluster, load)
    if load.login is not None and load.login.certificate is not None:
        subject = load.login.certificate.subject
        if name_of(rules_of(security.mapping), subject) is None:
            raise Problem(
                ("login", "certificate", "subject"),
                f"{subject}, about which is no rule of ssl.principal.mapping.rules: Kafka closes "
                "its connections",
                "a subject with a rule", "add DEFAULT at the end of the rules",
            )  # fmt: skip


def _check_token(cluster: ClusterSpec, load: Load) -> None:
    """Check a login with a delegation token, which is one of SCRAM."""
    login = load.login
    if login is None or login.token is None:
        return
    if login.mechanism not in SCRAM:
        found = f"a token with {login.mechanism}"
        raise Problem(("login", "sasl.mechanism"), found, one_of(SCRAM))
    try:
        named_token(cluster, login.token)
    except Problem as problem:
        raise problem.below("login", "token") from None


def _check_login(protocol: str, login: LoginModel) -> None:
    given = {
        "sasl.mechanism": login.mechanism,
        "user": login.user,
        "password": login.password,
    }
    if login.token is not None:
        for key in ("user", "password"):
            if given.pop(key) is not None:
                raise Problem(("login", key), f"{key} beside token", "one of the two")
        given["token"] = login.token
    for key, value in given.items():
        if is_sasl(protocol) and not value:
            raise Problem(("login", key), f"no {key} with {PROTOCOL} {protocol}", f"a {key}")
        if not is_sasl(protocol) and value is not None:
            found = f"{key} with {PROTOCOL} {protocol}"
            raise Problem(("login", key), found, f"{PROTOCOL} SASL_PLAINTEXT or SASL_SSL")
    held = login.certificate
    if held is not None and held.renewed_us is not None and held.not_after_us is None:
        found = "renewed without not.after"
        raise Problem(("login", "certificate", "renewed"), found, "both, or neither")
    if held is not None and not is_tls(protocol):
        found = f"a certificate with {PROTOCOL} {protocol}"
        raise Problem(("login", "certificate"), found, f"{PROTOCOL} SSL or SASL_SSL")


def _check_without(config: Config) -> None:
    protocol = config.text(PROTOCOL)
    if is_sasl(protocol):
        raise Problem(
            ("config", PROTOCOL), f"{protocol} without cluster.security", "PLAINTEXT or SSL",
            "give the brokers' listener by cluster.security",
        )  # fmt: skip


def check_tasks(
    processors: Iterable[ProcessorSpec],
    connectors: Iterable[ConnectorSpec],
    mirrors: Iterable[MirrorSpec],
) -> None:
    """Check the clients of tasks, which log in nowhere.

    Raises:
        Problem: With a path from the top of the file.
    """
    clients = [("processors", index, task.producer) for index, task in enumerate(processors)]
    clients += [("connectors", index, task.client) for index, task in enumerate(connectors)]
    clients += [("mirrors", index, task.producer) for index, task in enumerate(mirrors)]
    for key, index, config in clients:
        try:
            _check_without(config)
        except Problem as problem:
            raise problem.below(key, index) from None


def check_alone(cluster: ClusterSpec, others: Mapping[str, object]) -> None:
    """Check that nothing is beside ``cluster.security`` whose logins are not simulated.

    Raises:
        Problem: With a path from the top of the file.
    """
    for key, part in others.items():
        if cluster.security is not None and part:
            raise Problem(
                (key,), f"{key} with cluster.security, which are not simulated together",
                "producers and consumers", f"leave out {key} or cluster.security",
            )  # fmt: skip


def principal_of(cluster: ClusterSpec, load: Load) -> str:
    """Principal of a client whose authentication succeeds; as given without security."""
    security, login = cluster.security, load.login
    if security is None or login is None:
        return load.principal
    if is_sasl(security.protocol):
        if login.token is not None:
            return named_token(cluster, login.token).owner
        return f"User:{login.user}"
    if login.certificate is not None and security.client_auth != "none":
        return f"User:{name_of(rules_of(security.mapping), login.certificate.subject)}"
    return ANONYMOUS


def client_security(cluster: ClusterSpec, load: Load) -> ClientSecurity | None:
    """Credentials of a client; ``None`` without ``cluster.security``."""
    if cluster.security is None:
        return None
    login = load.login or _NOTHING
    held = login.certificate
    user, password, token = login.user or "", login.password or "", ""
    if login.token is not None:
        named = named_token(cluster, login.token)
        user = token = named.token_id
        password = password_of(named.secret, token)
    return ClientSecurity(
        load.config.text(PROTOCOL),
        login.mechanism or MECHANISMS[0],
        user,
        password,
        None if held is None else _client_certificate(held),
        token,
        is_since(load.config.version, _REAUTHENTICATES),
    )


def _client_certificate(model: CertificateModel) -> Certificate:
    return Certificate(
        model.subject, model.is_trusted, _or_never(model.not_after_us), _or_never(model.renewed_us)
    )


def broker_security(cluster: ClusterSpec) -> ClientSecurity | None:
    """Credentials of a broker at the others; ``None``: its certificate does not expire."""
    security = cluster.security
    if security is None or security.inter_broker_certificate is None:
        return None
    certificate = _broker_certificate(security.inter_broker_certificate)
    return ClientSecurity("SSL", certificate=certificate)


def _broker_certificate(model: BrokerCertificateModel | None) -> Certificate | None:
    if model is None:
        return None
    return Certificate(
        "CN=brokers",
        not_after_us=model.not_after_us,
        renewed_us=_or_never(model.renewed_us),
        reloaded_us=_or_never(model.reloaded_us),
    )


def _or_never(instant: Micros | None) -> Micros:
    return NEVER if instant is None else instant


def listener_security(
    cluster: ClusterSpec, producers: Iterable[ProducerSpec], consumers: Iterable[ConsumerSpec]
) -> ListenerSecurity | None:
    """The clients' listener of each broker; ``None`` without ``cluster.security``."""
    security = cluster.security
    if security is None:
        return None
    clients: dict[str, ClientSecurity] = {}
    loads: tuple[Load, ...] = (*producers, *consumers)
    for load in loads:
        presented = client_security(cluster, load)
        if presented is not None:
            clients |= dict.fromkeys(load.client_names, presented)
    return ListenerSecurity(
        security.protocol,
        clients,
        tuple(dict.fromkeys(security.mechanisms)),  # twice is once, since 4.2 with a warning
        security.users,
        security.client_auth,
        rules_of(security.mapping),
        _broker_certificate(security.certificate),
        _broker_certificate(security.inter_broker_certificate),
        security.max_reauth_ms * MS,
        token_secret(cluster),
        security.failure_delay_ms * MS,
    )
