"""Quotas of a running cluster as those of a scenario, as far as they meet a client there.

Source: KIP-546; ``QuotaConfig``.
"""

import math
from collections.abc import Mapping
from typing import Any, Final

from sim.importer.live.facts import ClusterFacts, QuotaFacts
from sim.importer.live.load import TopicLoad
from sim.importer.sources import Sources
from sim.protocol.quotas.client import USER
from sim.scenario.model.quotas import DEFAULT_ENTITY
from sim.scenario.rules.quotas import KEYS

_KINDS: Final = {"user": "user", "client-id": "client.id", "ip": "ip"}
_WHOLE: Final = ("producer_byte_rate", "consumer_byte_rate", "connection_creation_rate")
_WRITES: Final = "producer_byte_rate"


def quotas_of(
    facts: ClusterFacts,
    loads: Mapping[str, TopicLoad],
    clients: Mapping[str, str],
    found: Sources,
) -> None:
    """Add entries, and a line for each quota that meets nobody here.

    Args:
        facts: With the quotas.
        loads: What is written; a quota below it would hold up what is many producers' load.
        clients: Names of entries of consumers, by their ``client.id``.
        found: Gets entries and lines.
    """
    highest = max((load.bytes_per_s or 0.0 for load in loads.values()), default=0.0)
    for quota in facts.quotas:
        entity = _entity(quota, clients)
        if not entity:
            said = ", ".join(f"{key}={value}" for key, value in sorted(quota.values.items()))
            found.absent.append(
                f"quota of {_text(quota)}: {said}: no client here is known by it; not carried over"
            )
        elif values := _values(quota, highest / max(1, len(facts.brokers)), found):
            found.quotas.append(entity | values)
            _rename(entity.get("client.id", ""), clients, found)


def _text(quota: QuotaFacts) -> str:
    return ", ".join(f"{kind} {name or DEFAULT_ENTITY}" for kind, name in quota.entity)


def _entity(quota: QuotaFacts, clients: Mapping[str, str]) -> dict[str, Any]:
    """Keys of an entry; none if it is about somebody who is not in the scenario."""
    known = {"user": (USER,), "client-id": tuple(clients), "ip": ()}
    entity: dict[str, Any] = {}
    for kind, name in quota.entity:
        if kind not in _KINDS or (name is not None and name not in known[kind]):
            return {}
        entity[_KINDS[kind]] = DEFAULT_ENTITY if name is None else name
    return entity


def _values(quota: QuotaFacts, writes: float, found: Sources) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, value in sorted(quota.values.items()):
        if key not in KEYS or not math.isfinite(value) or value <= 0:
            found.absent.append(f"quota of {_text(quota)}: {key}: not carried over")
        elif key == _WRITES and value < writes:
            found.absent.append(
                f"quota of {_text(quota)}: {key}={value:.0f}: left out: here one producer writes "
                "what many wrote, and would be held up"
            )
        else:
            values[key] = round(value) if key in _WHOLE else value
    return values


def _rename(client: str, clients: Mapping[str, str], found: Sources) -> None:
    """Give the consumers of a quota their client-id as their name."""
    for entry in found.consumers:
        if client in clients and entry.get("name", entry["group"]) == clients[client]:
            entry["name"] = client
