"""Quotas of clients in a scenario: from the keys of ``kafka-configs`` to Kafka's alterations.

Source: ``kafka-configs --alter --entity-type clients|users|ips``; ``QuotaConfig``; KIP-13, KIP-55,
KIP-124, KIP-599, KIP-612.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from sim.protocol.controller.mutation_quotas import MUTATION_RATE, MutationQuotaConfig
from sim.protocol.controller.quotas import ADDRESS_KEYS, QUOTA_KEYS
from sim.protocol.messages.admin import QuotaAlteration, quota_entity_text
from sim.protocol.quotas.client import USER, ClientQuotaConfig
from sim.protocol.quotas.connection import UNLIMITED, ConnectionQuotaConfig
from sim.scenario.model.apps import ProcessorSpec
from sim.scenario.model.clients import ConsumerSpec, ProducerSpec
from sim.scenario.model.cluster import ClusterSpec
from sim.scenario.model.quotas import DEFAULT_ENTITY, QuotaModel
from sim.scenario.settings.resolved import Config
from sim.scenario.text.problems import Problem, nearest, one_of

KEYS: Final = (*QUOTA_KEYS, *ADDRESS_KEYS)
"""Every quota."""

ADMINISTRATOR: Final = "admin"
"""The client-id of the administrator."""


def quota_of(
    model: QuotaModel, clients: Iterable[str], addresses: Iterable[str] = ()
) -> QuotaAlteration:
    """One entity's quotas.

    Args:
        model: The entry, its form checked.
        clients: Known client-ids.
        addresses: Known hosts.

    Raises:
        Problem: If it is nobody's, has nothing to say, names a client, user or host that is not
            there, or a quota that means nothing for it.
    """
    names = (*clients, ADMINISTRATOR, DEFAULT_ENTITY)
    entity: list[tuple[str, str | None]] = []
    for key, kind, name, known in (
        ("user", "user", model.user, (USER, DEFAULT_ENTITY)),
        ("client.id", "client-id", model.client_id, names),
        ("ip", "ip", model.ip, (*addresses, DEFAULT_ENTITY)),
    ):
        if name is None:
            continue
        if name not in known:
            raise Problem((key,), f"no {key} {name!r}", one_of(known), nearest(name, known))
        entity.append((kind, None if name == DEFAULT_ENTITY else name))
    if not entity:
        raise Problem((), "a quota for nobody", "client.id, user, or both; or ip")
    changes: list[tuple[str, float | None]] = [
        (key, float(value))
        for key, value in ((key, getattr(model, key)) for key in KEYS)
        if value is not None
    ]
    changes += [(key, None) for key in model.remove]
    keys = [key for key, _ in changes]
    if not keys:
        raise Problem((), "an entity without a quota", f"{', '.join(KEYS)} or remove")
    if len(dict.fromkeys(keys)) < len(keys):
        raise Problem(("remove",), "a quota that is set and removed, or twice", "each quota once")
    _check_meaning(model, keys)
    return QuotaAlteration(tuple(entity), tuple(changes))


def _check_meaning(model: QuotaModel, keys: Sequence[str]) -> None:
    """Addresses have their own quota and no other; only the administrator changes metadata."""
    if model.ip is not None and (model.user is not None or model.client_id is not None):
        raise Problem(("ip",), "ip beside client.id or user", "one of the two")
    known = ADDRESS_KEYS if model.ip is not None else QUOTA_KEYS
    for key in keys:
        if key not in known:
            whose = "an address" if model.ip is not None else "clients and users"
            raise Problem((key,), f"{key} of {whose}", ", ".join(known))
    client = model.client_id
    if client == ADMINISTRATOR and any(key != MUTATION_RATE for key in keys):
        raise Problem(("client.id",), f"{client}, who sends no records", MUTATION_RATE)
    if MUTATION_RATE in keys and client not in {None, ADMINISTRATOR, DEFAULT_ENTITY}:
        raise Problem(
            (MUTATION_RATE,),
            f"{MUTATION_RATE} of {client}, who makes and deletes no topics",
            f"client.id {ADMINISTRATOR} or {DEFAULT_ENTITY}, or user",
        )


def quotas_of(
    models: Sequence[QuotaModel],
    clients: Iterable[str],
    addresses: Iterable[str],
    cluster: ClusterSpec,
) -> tuple[QuotaAlteration, ...]:
    """The quotas from the start of a run.

    Raises:
        Problem: As :func:`quota_of`; for two entries about one entity; under Raft.
    """
    names, hosts = tuple(clients), tuple(addresses)
    found: list[QuotaAlteration] = []
    for index, model in enumerate(models):
        try:
            check_replication(cluster)
            found.append(_first(quota_of(model, names, hosts), found))
        except Problem as problem:
            raise problem.below(index) from None
    return tuple(found)


def _first(quota: QuotaAlteration, before: Sequence[QuotaAlteration]) -> QuotaAlteration:
    """A quota that is there from the start; what is not there cannot be removed or said again."""
    if any(value is None for _, value in quota.changes):
        raise Problem(("remove",), "nothing is there yet to be removed", "a quota")
    if any(quota.entity == other.entity for other in before):
        raise Problem((), f"{quota_entity_text(quota.entity)} twice", "each entity once")
    return quota


def check_replication(cluster: ClusterSpec) -> None:
    """Check that the brokers know quotas.

    Raises:
        Problem: In ZooKeeper mode, and under Raft: Redpanda's quotas are others.
    """
    if cluster.zookeeper is not None:
        raise Problem(
            (),
            "a quota with cluster.zookeeper, where quotas in nodes are not modelled",
            "quotas under KRaft",
            "leave it out, or leave cluster.zookeeper out",
        )
    if cluster.replication != "isr":
        raise Problem(
            (), "quotas with cluster.replication: raft, which are not modelled",
            "cluster.replication: isr", "leave them out",
        )  # fmt: skip


def quota_config(
    config: Config,
    behaviours: Mapping[str, str],
    workloads: Iterable[ProducerSpec | ConsumerSpec | ProcessorSpec],
) -> ClientQuotaConfig:
    """A broker's settings for quotas; clients alike, and both of a task, have one client-id."""
    return ClientQuotaConfig(
        {name: load.name for load in workloads for name in load.client_names},
        config.number("quota.window.num"),
        config.number("quota.window.size.seconds") * 1_000,
        mutes=behaviours["quota.throttle"] == "kip219",
    )


def mutation_config(config: Config, behaviours: Mapping[str, str]) -> MutationQuotaConfig:
    """A controller's settings for quotas of changes; the administrator alone makes them."""
    return MutationQuotaConfig(
        {ADMINISTRATOR: ADMINISTRATOR},
        config.number("controller.quota.window.num"),
        config.number("controller.quota.window.size.seconds") * 1_000,
        strict=behaviours["client.quota_errors"] == "kip599",
    )


def connection_config(config: Config, *, has_quotas: bool) -> ConnectionQuotaConfig | None:
    """A broker's limits of connections; ``None`` where there never are any.

    Args:
        config: The broker's settings.
        has_quotas: Whether an address could ever have a quota.
    """
    limits = ConnectionQuotaConfig(
        config.number("max.connections"),
        config.number("max.connections.per.ip"),
        overrides_of(config),
        config.number("max.connection.creation.rate"),
        config.number("quota.window.num"),
        config.number("quota.window.size.seconds") * 1_000,
    )
    bounds = (limits.max_connections, limits.max_per_address, limits.creation_rate)
    if not has_quotas and not limits.overrides and min(bounds) >= UNLIMITED:
        return None
    return limits


def overrides_of(config: Config) -> dict[str, int]:
    """``max.connections.per.ip.overrides``: how many connections, by the name of a host.

    Raises:
        Problem: For an entry that is not HOST:NUMBER.
    """
    name = "max.connections.per.ip.overrides"
    found: dict[str, int] = {}
    for entry in filter(None, config.text(name).split(",")):
        host, _, number = entry.strip().rpartition(":")
        if not host or not number.isdecimal():
            raise Problem((name,), repr(entry), "HOST:NUMBER, joined by commas")
        found[host] = int(number)
    return found


def check_overrides(config: Config, addresses: Iterable[str]) -> None:
    """Check that the hosts are there that may have other numbers of connections.

    Raises:
        Problem: With the setting's name as its path.
    """
    known = tuple(addresses)
    for host in overrides_of(config):
        if host not in known:
            path = ("max.connections.per.ip.overrides",)
            raise Problem(path, f"no host {host!r}", one_of(known), nearest(host, known))
