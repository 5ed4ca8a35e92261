"""Principals and ACLs of a scenario: the keys of ``kafka-acls``, and what they must be.

Source: ``AclCommand``, ``AclEntry.supportedOperations``; KIP-11, KIP-290, KIP-801.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field

from sim.protocol.acls import ALL, ANONYMOUS, ANY, CLUSTER, Acl
from sim.protocol.authorization import AuthorizerConfig
from sim.protocol.rights.caller import HEARTBEATS, ClientIdentity
from sim.scenario.model.authentication import principal_of
from sim.scenario.model.clients import ConsumerSpec, ProducerSpec
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.types import Fields, Strict, Words
from sim.scenario.settings.resolved import Config
from sim.scenario.text.plain import Plain
from sim.scenario.text.problems import Problem, nearest, one_of

AUTHORIZER: Final = "authorizer.class.name"

RIGHTS: Final = (AUTHORIZER, "super.users", "allow.everyone.if.no.acl.found")
"""A broker's settings of authorisation."""

_FIRST_VERSION: Final = (3, 2)
"""The first with ``StandardAuthorizer`` (KIP-801)."""

_OPERATIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "topic": (
        *("Read", "Write", "Create", "Describe", "Delete", "Alter"),
        *("DescribeConfigs", "AlterConfigs"),
    ),
    "group": ("Read", "Describe", "Delete", "DescribeConfigs", "AlterConfigs"),
    "cluster": (
        *("Create", "ClusterAction", "DescribeConfigs", "AlterConfigs", "IdempotentWrite"),
        *("Alter", "Describe"),
    ),
    "transactional-id": ("Describe", "Write"),
}
"""Operations on each type of resource, besides All."""

_ABSENT: Final[Mapping[str, Mapping[str, str]]] = {
    "transactional-id": {"TwoPhaseCommit": "transactions have one phase (KIP-939)"},
}
"""Others of Kafka's that no request requires here, with the reason."""

_PRINCIPAL: Final = re.compile(r"User:.+")


class AclModel(Strict, frozen=True):
    """A right of a principal, or its denial: one operation or several on one resource."""

    quiet: ClassVar[Fields] = ("pattern", "permission", "host")
    absent: ClassVar[Mapping[str, str]] = {
        "delegation.token": "only who describes tokens needs it, and nobody does",
        "user.principal": "its users request tokens for themselves alone (KIP-373)",
    }

    principal: str = Field(description="User:NAME, or User:* for everybody")
    operation: Words = Field(description="as kafka-acls writes it: Read, Write, Describe, All, …")
    topic: str | None = Field(None, description="by its name or prefix; * for every one")
    group: str | None = Field(None, description="likewise")
    transactional_id: str | None = Field(None, alias="transactional.id", description="likewise")
    on_cluster: Literal[True] | None = Field(None, alias="on.cluster")
    pattern: Literal["literal", "prefixed"] = "literal"
    permission: Literal["allow", "deny"] = "allow"
    host: Annotated[str, Field(min_length=1)] = Field(
        ANY, description="a client's host, which has its name; * for every one"
    )

    @property
    def resources(self) -> dict[str, str]:
        """The resources that are named, by type."""
        named = {
            "topic": self.topic,
            "group": self.group,
            "transactional-id": self.transactional_id,
            "cluster": CLUSTER if self.on_cluster else None,
        }
        return {kind: name for kind, name in named.items() if name is not None}


_KEYS: Final = {
    "topic": "topic",
    "group": "group",
    "transactional-id": "transactional.id",
    "cluster": "on.cluster",
}


def acls_of(model: AclModel) -> tuple[Acl, ...]:
    """The ACLs of an entry, one for each operation.

    Raises:
        Problem: If it is not about one resource, or names what Kafka does not know there.
    """
    resources = model.resources
    if len(resources) != 1:
        found = " beside ".join(_KEYS[kind] for kind in resources) or "an ACL without a resource"
        raise Problem((), found, f"one of {one_of(_KEYS.values())}")
    ((kind, name),) = resources.items()
    if not name:
        raise Problem((_KEYS[kind],), "an empty name", "a name, or * for every one")
    if kind == "cluster" and model.pattern != "literal":
        raise Problem(("pattern",), f"{model.pattern} with on.cluster", "literal")
    check_principal("principal", model.principal)
    for operation in model.operation:
        known = (ALL, *_OPERATIONS[kind])
        absent = _ABSENT.get(kind, {}).get(operation)
        if absent is not None:
            found = f"{operation} on a {kind}, which is not simulated: {absent}"
            raise Problem(("operation",), found, one_of(known))
        if operation not in known:
            found = f"no operation {operation!r} on a {kind}"
            raise Problem(("operation",), found, one_of(known), nearest(operation, known))
    return tuple(
        Acl(kind, name, model.pattern, model.principal, model.host, each, model.permission)
        for each in dict.fromkeys(model.operation)
    )


def check_principal(key: str, principal: str) -> None:
    """Check the form of a principal.

    Raises:
        Problem: With the key as its path.
    """
    if _PRINCIPAL.fullmatch(principal) is None:
        raise Problem((key,), repr(principal), "User:NAME, as in User:shop")


def first_acls(models: Sequence[AclModel], cluster: ClusterSpec) -> tuple[Acl, ...]:
    """The ACLs from the start of a run.

    Raises:
        Problem: As :func:`acls_of`; for one that is there twice; without an authorizer.
    """
    found: dict[Acl, None] = {}
    for index, model in enumerate(models):
        try:
            check_has_authorizer(cluster)
            _add(acls_of(model), found)
        except Problem as problem:
            raise problem.below(index) from None
    return tuple(found)


def _add(acls: Iterable[Acl], found: dict[Acl, None]) -> None:
    for acl in acls:
        if acl in found:
            raise Problem((), f"{acl} twice", "each ACL once")
        found[acl] = None


def has_authorizer(config: Config) -> bool:
    """True if the brokers have an authorizer."""
    return config.text(AUTHORIZER) != ""


def check_has_authorizer(cluster: ClusterSpec) -> None:
    """Check that the brokers look at ACLs.

    Raises:
        Problem: If they have no authorizer; Kafka answers SECURITY_DISABLED then.
    """
    if not has_authorizer(cluster.config):
        raise Problem(
            (), f"an ACL without {AUTHORIZER}", f"{AUTHORIZER}: StandardAuthorizer",
            f"add {AUTHORIZER} to cluster.config",
        )  # fmt: skip


def check_cluster(cluster: ClusterSpec) -> None:
    """Check the servers' principal and version beside their authorizer.

    Servers register with each other before any ACL is known, so that only super users can.

    Raises:
        Problem: With a path below ``cluster``.
    """
    check_principal("principal", cluster.principal)
    config = cluster.config
    if not has_authorizer(config):
        for name in RIGHTS[1:]:
            if config[name]:
                raise Problem(("config", name), f"{name} without {AUTHORIZER}", f"add {AUTHORIZER}")
        if cluster.principal != ANONYMOUS:
            raise Problem(("principal",), f"a principal without {AUTHORIZER}", "leave it out")
        return
    if tuple(int(part) for part in cluster.kafka.split(".")[:2]) < _FIRST_VERSION:
        raise Problem(
            ("config", AUTHORIZER),
            f"StandardAuthorizer in Kafka {cluster.kafka}",
            "cluster.kafka 3.2 or newer (KIP-801)",
        )
    for user in super_users(config):
        check_principal("config", user)
    if cluster.principal not in super_users(config):
        raise Problem(
            ("config", "super.users"),
            f"the servers' own {cluster.principal} is not in it: they could not register",
            f"{cluster.principal}, beside others",
            "add it, or give the servers another one by cluster.principal",
        )


ALONE: Final = ("quotas", "processors", "connectors", "mirrors", "clusters")
"""Parts of a scenario that are not simulated beside an authorizer."""


def check_clients(
    cluster: ClusterSpec, producers: Iterable[ProducerSpec], consumers: Iterable[ConsumerSpec]
) -> None:
    """Check the principals of producers and consumers.

    Raises:
        Problem: With a path from the top of the file.
    """
    by_key: dict[str, Iterable[ProducerSpec | ConsumerSpec]]
    by_key = {"producers": producers, "consumers": consumers}
    for key, loads in by_key.items():
        for index, load in enumerate(loads):
            try:
                _check_client(cluster.config, load)
            except Problem as problem:
                raise problem.below(key, index) from None


def _check_client(config: Config, load: ProducerSpec | ConsumerSpec) -> None:
    check_principal("principal", load.principal)
    if load.principal != ANONYMOUS and not has_authorizer(config):
        raise Problem(("principal",), f"a principal without {AUTHORIZER}", "leave it out")


def check_alone(config: Config, others: Mapping[str, object]) -> None:
    """Check that nothing is beside an authorizer whose rights are not simulated.

    Args:
        config: The brokers' settings.
        others: Parts of the scenario, by their keys.

    Raises:
        Problem: With a path from the top of the file.
    """
    if not has_authorizer(config):
        return
    for key, part in others.items():
        if part:
            raise Problem(
                (key,), f"{key} with {AUTHORIZER}, which are not simulated together",
                "producers and consumers", f"leave out {key} or {AUTHORIZER}",
            )  # fmt: skip


def super_users(config: Config) -> tuple[str, ...]:
    """``super.users``, in their order."""
    return tuple(filter(None, (each.strip() for each in config.text("super.users").split(";"))))


TOPICS_CHECKED: Final[Mapping[str, tuple[str, ...]]] = {
    "all": HEARTBEATS,
    "consumer": HEARTBEATS[:1],
    "none": (),
}
"""By the position of ``rights.heartbeat_topics``."""


def authorizer_config(
    cluster: ClusterSpec,
    producers: Iterable[ProducerSpec],
    consumers: Iterable[ConsumerSpec],
    behaviours: Mapping[str, str],
) -> AuthorizerConfig | None:
    """A broker's authorizer; ``None`` without one."""
    config = cluster.config
    if not has_authorizer(config):
        return None
    clients: dict[str, ClientIdentity] = {}
    writers = [(each, name) for each in producers for name in each.client_names]
    for index, (producer, name) in enumerate(writers):
        clients[name] = ClientIdentity(principal_of(cluster, producer), name, index)
    for consumer in consumers:
        for name in consumer.client_names:
            clients[name] = ClientIdentity(principal_of(cluster, consumer), name)
    return AuthorizerConfig(
        clients,
        super_users(config),
        allows_by_default=config.flag("allow.everyone.if.no.acl.found"),
        topics_checked=TOPICS_CHECKED[behaviours["rights.heartbeat_topics"]],
    )


def acl_keys(acls: Sequence[Acl]) -> dict[str, Plain]:
    """ACLs that differ in their operations alone, as a scenario gives them."""
    acl = acls[0]
    plain: dict[str, Plain] = {"principal": acl.principal}
    plain["operation"] = [each.operation for each in acls]
    is_cluster = acl.resource_type == "cluster"
    plain[_KEYS[acl.resource_type]] = True if is_cluster else acl.resource_name
    usual = {"pattern": "literal", "permission": "allow", "host": ANY}
    return plain | {key: getattr(acl, key) for key in usual if getattr(acl, key) != usual[key]}
