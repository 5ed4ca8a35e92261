"""Groups of a running cluster as consumers of a scenario, and how far each is behind.

Members alike are one entry. A group that falls behind is as slow as it was measured; of any other
nobody knows what its application could do.

Source: KIP-345 (static members), KIP-429, KIP-848 (assignors of the brokers).
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from sim.importer.live.facts import ClusterFacts, GroupFacts, MemberFacts, some_of
from sim.importer.live.load import GroupLoad, TopicLoad
from sim.importer.sources import Sources
from sim.scenario.settings.registry import SETTINGS
from sim.scenario.text.names import NAME

FALLS_BEHIND: Final = 0.8
"""A group that consumes less than this share of what is written, and whose lag grows, is slow."""

_STRATEGY, _REMOTE = "partition.assignment.strategy", "group.remote.assignor"


def consumers_of(
    facts: ClusterFacts,
    loads: Mapping[str, TopicLoad],
    groups: Mapping[str, GroupLoad],
    found: Sources,
) -> dict[str, str]:
    """Add entries of consumers, and lines about lag and what is not carried over.

    Args:
        facts: With the groups.
        loads: What is written, by topic.
        groups: What is consumed, by group.
        found: Gets the entries and lines.

    Returns:
        Names of entries by the ``client.id`` that all its members have.
    """
    names: dict[str, str] = {}
    left_out: dict[str, list[str]] = {}
    for group in facts.groups:
        _say_lag(group, groups.get(group.name), found)
        if reason := _left_out(group):
            left_out.setdefault(reason, []).append(group.name)
            continue
        name = _spelt(group.name, found)
        for place, (topics, members) in enumerate(_alike(group, found).items()):
            entry: dict[str, Any] = {"group": name, "topics": list(topics), "count": len(members)}
            if place:
                entry["name"] = f"{name}.{place + 1}"
            ids = sorted({member.client for member in members})
            if len(ids) == 1 and NAME.fullmatch(ids[0]) and ids[0] not in names:
                names[ids[0]] = entry.get("name", name)
            if slow := _processing_us(len(members), topics, loads, groups.get(group.name)):
                entry["processing"] = f"{slow}us"
                found.measured.append(
                    f"group {group.name} falls behind: here each record takes it {slow} us"
                )
            if config := _config(group, members, entry.get("name", name), found):
                entry["config"] = config
            found.consumers.append(entry)
    found.absent += [
        f"group{'s' if len(those) > 1 else ''} {some_of(those)}: {reason}; not carried over"
        for reason, those in left_out.items()
    ]
    return names


def _say_lag(group: GroupFacts, load: GroupLoad | None, found: Sources) -> None:
    members = f"{len(group.members)} member{'' if len(group.members) == 1 else 's'}"
    if load is not None:
        found.measured.append(
            f"group {group.name}: {members}, lag {load.lag_first} at first and {load.lag_last} at "
            f"last, {load.records_per_s:.1f} records/s"
        )


def _left_out(group: GroupFacts) -> str:
    if group.kind not in ("classic", "consumer"):
        return f"of kind {group.kind}"
    if group.protocol not in ("consumer", ""):
        return "not of consumers but of another protocol (Connect has one)"
    return "" if group.members else "no members, only offsets"


def _spelt(group: str, found: Sources) -> str:
    if NAME.fullmatch(group) and group not in {".", "..", "none"}:
        return group
    spelt = re.sub(r"[^a-zA-Z0-9._-]+", "-", group)[:190].strip(".") or "group"
    spelt = "group" if spelt == "none" else spelt
    found.absent.append(f"group {spelt}: spelt otherwise in the cluster")
    return spelt


def _alike(group: GroupFacts, found: Sources) -> dict[tuple[str, ...], list[MemberFacts]]:
    """Members by the topics that they subscribed to, of those that the scenario has."""
    by: dict[tuple[str, ...], list[MemberFacts]] = {}
    for member in group.members:
        known = tuple(t for t in member.topics if t in found.topics and not t.startswith("__"))
        by.setdefault(known, []).append(member)
    without = by.pop((), [])
    if without:
        found.absent.append(
            f"group {group.name}: {len(without)} of its members have no topic that is here"
        )
    return by


def _processing_us(
    members: int,
    topics: tuple[str, ...],
    loads: Mapping[str, TopicLoad],
    load: GroupLoad | None,
) -> int:
    """Time for each record, of a group that falls behind; 0 for any other."""
    if load is None or not load.records_per_s or load.lag_last <= load.lag_first:
        return 0
    written = sum(loads[topic].records_per_s for topic in topics if topic in loads)
    if load.records_per_s >= FALLS_BEHIND * written:
        return 0
    return round(members * 1_000_000 / load.records_per_s)


def _config(
    group: GroupFacts, members: list[MemberFacts], name: str, found: Sources
) -> dict[str, Any]:
    config: dict[str, Any] = {}
    setting = _STRATEGY
    if group.kind == "consumer":
        config["group.protocol"], setting = "consumer", _REMOTE
    if group.assignor in SETTINGS["consumer"][setting].choices:
        config[setting] = group.assignor
    elif group.assignor:
        found.absent.append(
            f"group {group.name}: its assignor is not Kafka's own; here the default"
        )
    static = sum(bool(member.instance) for member in members)
    if static and group.kind == "consumer":
        found.absent.append(f"group {group.name}: static members of the consumer protocol")
    elif static == len(members):
        config["group.instance.id"] = name
    elif static:
        found.absent.append(f"group {group.name}: {static} of its members are static; here none is")
    return config
