"""Removal of what a scenario's file need not say: keys that have their default anyway.

The canonical scenario of a run directory has every setting. Of two files that mean the same
scenario the shorter one is read; nothing is run for that.
"""

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from sim.errors import ScenarioError
from sim.hunting.shrinking.numbers import Place, value_at
from sim.scenario.loader import load_data
from sim.scenario.scenario import document

_KEPT: Final = (*("claim", "brokers", "controllers", "partitions", "replication.factor", "rate"),)
"""Numbers stay, and are written out: a reader has to see them, and a shrinker to make them less."""


def lean(data: Mapping[str, Any]) -> dict[str, Any]:
    """The same scenario without keys that have their default.

    Raises:
        ScenarioError: If it cannot be run.
    """
    found = deepcopy(dict(data))
    meaning = document(load_data(found))
    _write_out(found, meaning)
    for place in list(_mappings(found, ())):
        target = _at(found, place)
        if target is None:
            continue
        keys = [key for key in target if key not in _KEPT]
        _without(found, place, keys, meaning)
    return found


def _write_out(data: dict[str, Any], meaning: Mapping[str, Any]) -> None:
    """Add the numbers of servers and replicas that a file leaves to their defaults."""
    cluster = data["cluster"] = dict(data.get("cluster") or {})
    for key in ("brokers", "controllers"):
        if isinstance(meaning["cluster"].get(key), int) and "racks" not in cluster:
            cluster.setdefault(key, meaning["cluster"][key])
    for name, topic in (data.get("topics") or {}).items():
        data["topics"][name] = dict(topic or {})
        for key in ("partitions", "replication.factor"):
            if key in meaning["topics"][name]:
                data["topics"][name].setdefault(key, meaning["topics"][name][key])


def _mappings(value: object, place: Place) -> Iterator[Place]:
    """Places of all mappings, the outer ones first: they may go as a whole."""
    if isinstance(value, dict):
        yield place
        for key, inner in value.items():
            yield from _mappings(inner, (*place, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _mappings(inner, (*place, number))


def _without(data: dict[str, Any], place: Place, keys: Sequence[str], meaning: object) -> None:
    """Remove keys of one mapping, as many at a time as change nothing."""
    target = _at(data, place)
    if target is None or not keys:
        return
    before = dict(target)
    for key in keys:
        del target[key]
    if _means(data, meaning):
        return
    # The order of the others is that of the file.
    target.clear()
    target.update(before)
    if len(keys) > 1:
        middle = len(keys) // 2
        _without(data, place, keys[:middle], meaning)
        _without(data, place, keys[middle:], meaning)


def _means(data: Mapping[str, Any], meaning: object) -> bool:
    try:
        return document(load_data(data)) == meaning
    except (ScenarioError, KeyError, TypeError, AttributeError):
        return False


def _at(data: object, place: Place) -> dict[str, Any] | None:
    """The mapping at a place; ``None`` if it has been removed with an outer one."""
    try:
        found = value_at(data, place)
    except KeyError:
        return None
    return found if isinstance(found, dict) else None
