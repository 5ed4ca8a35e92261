"""Places of a change that does not name its own: ``acks`` alone, or ``producers.*.rate``.

A Kafka setting by its bare name is set wherever settings of its kind are: a producer's in every
producer's ``config``, a topic's in every topic's, a broker's in ``cluster.config``. Brokers and
topics share names for what one decides for the other; the topic's own word wins there, so the topic
is meant. A name that two kinds of clients share has to be written out. A ``*`` in the place of an
item is every item.
"""

from collections.abc import Mapping
from typing import Final

from sim.scenario.settings.registry import SETTINGS
from sim.scenario.settings.types import Scope
from sim.scenario.text.problems import Problem

_LISTS: Final[Mapping[Scope, str]] = {
    "topic": "topics",
    "group": "groups",
    "producer": "producers",
    "consumer": "consumers",
}


def places(key: str, data: object) -> list[list[str]]:
    """Every path that a key means, as words; the key itself if it is one already.

    Raises:
        Problem: If the scenario has no such place, or the name is of two kinds.
    """
    words = key.split(".")
    if not isinstance(data, dict) or words[0] in data:
        return _every(words, data)
    scopes = [scope for scope, table in SETTINGS.items() if key in table]
    if not scopes:
        return [words]
    if scopes == ["broker"]:
        return [["cluster", "config", key]]
    if scopes == ["broker", "topic"]:
        scopes = ["topic"]
    if len(scopes) > 1:
        paths = [_path(scope, key) for scope in scopes]
        raise Problem((), f"{key} is a setting of {' and '.join(scopes)}", ", ".join(paths))
    return _every([_LISTS[scopes[0]], "*", "config", key], data)


def _every(words: list[str], data: object) -> list[list[str]]:
    """The paths with each item in the place of ``*``, which may be below the first word."""
    if words[1:2] != ["*"] or not isinstance(data, dict):
        return [words]
    items = data.get(words[0])
    names = [str(number) for number in range(len(items))] if isinstance(items, list) else []
    if isinstance(items, dict):
        names = list(items)
    if not names:
        raise Problem((words[0],), f"there are no {words[0]}", f"a scenario that has {words[0]}")
    return [[words[0], name, *words[2:]] for name in names]


def _path(scope: Scope, key: str) -> str:
    return f"cluster.config.{key}" if scope == "broker" else f"{_LISTS[scope]}.*.config.{key}"
