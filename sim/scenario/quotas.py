"""Quotas of clients in a scenario: from the keys of ``kafka-configs`` to what Kafka is asked for.

Source: ``kafka-configs --alter --entity-type clients|users``; ``QuotaConfig``; KIP-13, KIP-55,
KIP-124.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from sim.protocol.client_quotas import USER, ClientQuotaConfig
from sim.protocol.messages import QuotaAlteration
from sim.scenario.config import Config
from sim.scenario.problems import Problem
from sim.scenario.spec import ClusterSpec, ConsumerSpec, ProducerSpec, QuotaSpec

if TYPE_CHECKING:
    from sim.scenario.schema_quotas import QuotaModel

DEFAULT_ENTITY = "<default>"
"""The name that stands for every client-id, or every user, without a quota of its own."""


def quota_of(model: "QuotaModel", clients: Iterable[str]) -> QuotaSpec:
    """One entity's quotas.

    Raises:
        Problem: If it is nobody's, has nothing to say, or names a client or user that is not there.
    """
    names = (*clients, DEFAULT_ENTITY)
    entity: list[tuple[str, str | None]] = []
    for key, kind, name, known in (
        ("user", "user", model.user, (USER, DEFAULT_ENTITY)),
        ("client.id", "client-id", model.client_id, names),
    ):
        if name is None:
            continue
        if name not in known:
            raise Problem((key,), f"no {key} {name!r}", ", ".join(known))
        entity.append((kind, None if name == DEFAULT_ENTITY else name))
    if not entity:
        raise Problem((), "a quota for nobody", "client.id, user, or both")
    changes: list[tuple[str, float | None]] = [
        (key, float(value))
        for key, value in (
            ("producer_byte_rate", model.producer_byte_rate),
            ("consumer_byte_rate", model.consumer_byte_rate),
            ("request_percentage", model.request_percentage),
        )
        if value is not None
    ]
    changes += [(key, None) for key in model.remove]
    keys = [key for key, _ in changes]
    if not keys:
        allowed = "producer_byte_rate, consumer_byte_rate, request_percentage or remove"
        raise Problem((), "an entity without a quota", allowed)
    if len(dict.fromkeys(keys)) < len(keys):
        raise Problem(("remove",), "a quota that is set and removed, or twice", "each quota once")
    return QuotaSpec(QuotaAlteration(tuple(entity), tuple(changes)))


def quotas_of(
    models: Sequence["QuotaModel"], clients: Iterable[str], cluster: ClusterSpec
) -> tuple[QuotaSpec, ...]:
    """The quotas from the start of a run.

    Raises:
        Problem: As :func:`quota_of`; for two entries about one entity; under Raft.
    """
    names = tuple(clients)
    found: list[QuotaSpec] = []
    for index, model in enumerate(models):
        try:
            check_replication(cluster)
            found.append(_first(quota_of(model, names), found))
        except Problem as problem:
            raise problem.below(index) from None
    return tuple(found)


def _first(quota: QuotaSpec, before: Sequence[QuotaSpec]) -> QuotaSpec:
    """A quota that stands from the start; what is not there cannot be removed or said again."""
    if any(value is None for _, value in quota.alteration.changes):
        raise Problem(("remove",), "nothing is there yet to be removed", "a quota")
    if any(quota.entity == other.entity for other in before):
        raise Problem((), f"{quota.text} twice", "each entity once")
    return quota


def check_replication(cluster: ClusterSpec) -> None:
    """Whether the brokers know quotas.

    Raises:
        Problem: Under Raft: Redpanda's quotas are others.
    """
    if cluster.replication != "isr":
        raise Problem(
            (), "quotas with cluster.replication: raft, which are not modelled",
            "cluster.replication: isr", "leave them out",
        )  # fmt: skip


def quota_config(
    config: Config,
    behaviours: Mapping[str, str],
    workloads: Iterable[ProducerSpec | ConsumerSpec],
) -> ClientQuotaConfig:
    """A broker's settings for quotas; clients alike have one client-id."""
    return ClientQuotaConfig(
        {name: load.name for load in workloads for name in load.client_names},
        config.number("quota.window.num"),
        config.number("quota.window.size.seconds") * 1_000,
        mutes=behaviours["quota.throttle"] == "kip219",
    )
