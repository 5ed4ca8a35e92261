"""``--set KEY=VALUE``: changes to a scenario's data before it is checked.

Keys contain dots themselves (``min.insync.replicas``), so a path is resolved greedily: at each
level the longest run of words that is a key there, or could be one, is taken. Items of a list are
named by number or by their ``name``. What a bare setting name means:
:mod:`sim.scenario.overrides.places`.
"""

from collections.abc import Sequence
from typing import Final

from sim.scenario.overrides.places import places
from sim.scenario.text.problems import KeyPath, Problem
from sim.scenario.text.yaml import Document, ReadError, read_value

_OPEN_KEYS: Final = ("config", "expect", "behaviours")
"""Below these, everything that is left is one key."""

_DOTTED_KEYS: Final = (
    "replication.factor",
    "record.size",
    "record.sizes",
    "key.count",
    "key.skew",
    "drain.timeout",
    "dirty.expire",
    "dirty.writeback",
    "dirty.background",
    "dirty.limit",
    "network.request",
    "handler.request",
    "handler.produce.partition",
    "handler.fetch.partition",
    "handler.produce.bytes",
    "handler.fetch.bytes",
    "tls.bytes",
    "tls.handshake",
)
"""Keys of the scenario language that have dots."""


def apply(document: Document, overrides: Sequence[str]) -> None:
    """Change the document in place, one override after the other.

    Raises:
        ReadError: For an override that is not ``KEY=VALUE`` or leads through a value.
    """
    for override in overrides:
        key, equals, text = override.partition("=")
        origin = f"--set {override}"
        if not key.strip() or not equals:
            found = f"{override!r} is not an assignment"
            raise ReadError(origin, Problem((), found, "KEY=VALUE, as in run.for=30s"))
        value = read_value(text, origin)
        try:
            paths = places(key.strip(), document.data)
        except Problem as problem:
            raise ReadError(origin, problem) from None
        for words in paths:
            path = _assign(document.data, words, value.data, origin)
            document.origins = {p: o for p, o in document.origins.items() if p[: len(path)] != path}
            document.origins[path] = origin


def _assign(data: object, words: list[str], value: object, origin: str) -> KeyPath:
    path: KeyPath = ()
    while True:
        if isinstance(data, list):
            key, words = _item(data, words, path, origin)
            if not words:
                data[key] = value
                return (*path, key)
            path, data = (*path, key), data[key]
        elif isinstance(data, dict):
            name, words = _key(data, words, path)
            path = (*path, name)
            if not words:
                data[name] = value
                return path
            if data.get(name) is None:
                data[name] = {}
            data = data[name]
        else:
            raise ReadError(origin, Problem(path, f"{data!r} has nothing below it", "a mapping"))


def _item(
    data: Sequence[object], words: list[str], path: KeyPath, origin: str
) -> tuple[int, list[str]]:
    word = words[0]
    names = [item.get("name") if isinstance(item, dict) else None for item in data]
    if word.isdecimal() and int(word) < len(data):
        return int(word), words[1:]
    if word in names:
        return names.index(word), words[1:]
    known = ", ".join(str(name) for name in names if name is not None)
    allowed = f"0 to {len(data) - 1}" if data else "nothing, the list is empty"
    raise ReadError(
        origin, Problem(path, f"no item {word!r}", f"{allowed}{'; ' if known else ''}{known}")
    )


def _key(data: dict[str, object], words: list[str], path: KeyPath) -> tuple[str, list[str]]:
    if path and path[-1] in _OPEN_KEYS:
        return ".".join(words), []
    for known in (tuple(data), _DOTTED_KEYS):
        for length in range(len(words), 0, -1):
            key = ".".join(words[:length])
            if key in known:
                return key, words[length:]
    return words[0], words[1:]
