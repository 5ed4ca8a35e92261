"""YAML to plain data that remembers its lines; no tag, no duplicate key, no surprise.

Scalars are read as in YAML 1.2's core schema: ``on``, ``no`` and ``12:30`` are texts, as they look.
Anchors, aliases and merge keys work. Tags are refused before anything is built from them.

Source: YAML 1.2.2, chapter 10.3; PyYAML's composer.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NoReturn, Protocol

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from sim.scenario.text.problems import KeyPath, Problem

NODES_MAX: Final = 100_000
"""More nodes than this, aliases written out, are refused: no scenario needs them."""

EVENTS_MAX: Final = 2 * NODES_MAX
"""A value is an event of the YAML parser, a list or mapping two."""

DEPTH_MAX: Final = 50
"""Deeper nesting than this is refused, aliases written out."""

_INT = re.compile(r"[-+]?[0-9]{1,40}")
_FLOAT = re.compile(r"[-+]?([0-9]{1,40}\.[0-9]{0,40}|\.[0-9]{1,40})([eE][-+]?[0-9]{1,3})?")
_CONSTANTS: Final[Mapping[str, bool | None]] = {
    "": None,
    "~": None,
    "null": None,
    "true": True,
    "True": True,
    "false": False,
    "False": False,
}
_MERGE: Final = "<<"


@dataclass(slots=True)
class Document:
    """Plain data and the line of each key. Lists and mappings are new at every alias."""

    data: object
    origins: dict[KeyPath, str] = field(default_factory=dict)
    """Place of each key or list item, as ``FILE:LINE``."""
    top: str = ""
    """Place of the document itself."""

    def origin(self, path: KeyPath) -> str:
        """Place of the key, or of the nearest thing above it that is in the file."""
        while path and path not in self.origins:
            path = path[:-1]
        return self.origins.get(path, self.top)


class ReadError(Exception):
    """The text cannot be read. ``args``: its place, and the problem."""

    def __init__(self, origin: str, problem: Problem) -> None:
        super().__init__(origin, problem)
        self.origin = origin
        self.problem = problem


def read(text: str, name: str) -> Document:
    """The document in a text.

    Args:
        text: YAML.
        name: How the file is called in messages.

    Raises:
        ReadError: If the text is empty, is not YAML, has a tag or names a key twice.
    """
    root = _compose(text, name)
    reader = _Reader(name)
    return Document(reader.build(root, ()), reader.origins, _place(name, root))


def read_value(text: str, name: str) -> Document:
    """The value of an override, which may be a scalar or a list or mapping in braces.

    Raises:
        ReadError: As :func:`read`; an empty text is nothing, as in YAML.
    """
    return read(text, name) if text.strip() else Document(None, {}, name)


def _check_events(text: str, name: str) -> None:
    """Look at the text before anything is built: tags, and depths that no recursion survives."""
    depth = 0
    for events, event in enumerate(yaml.parse(text, Loader=yaml.SafeLoader)):
        place = f"{name}:{_line(event.start_mark)}"
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH_MAX:
            raise ReadError(place, _too_deep(()))
        if events > EVENTS_MAX:
            raise ReadError(place, Problem((), "too many values", f"at most {NODES_MAX} values"))
        tag = getattr(event, "tag", None)
        if tag is not None and tag != "!":
            found = f"the YAML tag {_shown(tag)}"
            raise ReadError(place, Problem((), found, "plain values", "remove the tag"))


def _compose(text: str, name: str) -> Node:
    try:
        _check_events(text, name)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ReadError(
            f"{name}:{_line(mark)}",
            Problem((), f"not YAML: {error.problem or error.context}", "one YAML document"),
        ) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise ReadError(
            f"{name}:{line}",
            Problem((), f"not YAML: {error.reason}", "UTF-8 text without control characters"),
        ) from None
    except (ValueError, OverflowError) as error:
        # PyYAML does not check the numbers in escapes such as "\UFFFFFFFF".
        found = f"not YAML: {str(error)[:80]}"
        raise ReadError(f"{name}:1", Problem((), found, "one YAML document")) from None
    if root is None:
        remedy = "start from scenarios/quickstart.yaml"
        raise ReadError(f"{name}:1", Problem((), "the file is empty", "a scenario", remedy))
    return root


def _shown(tag: str) -> str:
    return tag.replace("tag:yaml.org,2002:", "!!")


def _line(mark: "_HasLine | None") -> int:
    return 1 if mark is None else mark.line + 1


def _place(name: str, node: Node) -> str:
    return f"{name}:{_line(node.start_mark)}"


class _HasLine(Protocol):
    """A mark of PyYAML's: of its Python or its C reader."""

    line: int


class _Reader:
    """One pass over the node tree."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.origins: dict[KeyPath, str] = {}
        self._open: list[Node] = []
        self._built = 0

    def build(self, node: Node, path: KeyPath) -> object:
        """The node as plain data."""
        if isinstance(node, ScalarNode):
            self._count(node, path)
            return _scalar(node) if _is_text(node.value) else self._refuse_halves(node, path)
        with self._opened(node, path):
            if isinstance(node, SequenceNode):
                return [self._item(item, (*path, at)) for at, item in enumerate(node.value)]
            assert isinstance(node, MappingNode)
            return self._mapping(node, path)

    def _count(self, node: Node, path: KeyPath) -> None:
        self._built += 1
        if self._built > NODES_MAX:
            raise self._error(node, Problem(path, "too many values", f"at most {NODES_MAX} values"))

    @contextmanager
    def _opened(self, node: Node, path: KeyPath) -> Iterator[None]:
        """While what the node holds is read: it does not hold itself, nor too much."""
        self._count(node, path)
        if any(node is above for above in self._open):
            raise self._error(node, Problem(path, "an alias that holds itself", "plain values"))
        if len(self._open) >= DEPTH_MAX:
            raise self._error(node, _too_deep(path))
        self._open.append(node)
        yield
        self._open.pop()

    def _refuse_halves(self, node: Node, path: KeyPath) -> NoReturn:
        allowed = "UTF-8 text"
        raise self._error(node, Problem(path, "half of a surrogate pair", allowed, "remove it"))

    def _item(self, node: Node, path: KeyPath) -> object:
        self.origins[path] = _place(self.name, node)
        return self.build(node, path)

    def _mapping(self, node: MappingNode, path: KeyPath) -> dict[str, object]:
        built: dict[str, object] = {}
        merged: dict[str, object] = {}
        for key_node, value_node in node.value:
            key = self._key(key_node, path)
            if key == _MERGE and key_node.style is None:
                self._merge(value_node, path, merged)
                continue
            if key in built:
                raise self._error(
                    key_node, Problem((*path, key), "the key stands twice", "once", "remove one")
                )
            self.origins[*path, key] = _place(self.name, key_node)
            built[key] = self.build(value_node, (*path, key))
        return {**{key: value for key, value in merged.items() if key not in built}, **built}

    def _merge(self, node: Node, path: KeyPath, merged: dict[str, object]) -> None:
        for part in _merge_parts(node):
            if not isinstance(part, MappingNode):
                raise self._error(node, Problem((*path, _MERGE), "not a mapping", "an alias"))
            with self._opened(part, path):
                for key, value in self._mapping(part, path).items():
                    merged.setdefault(key, value)

    def _key(self, node: Node, path: KeyPath) -> str:
        if not isinstance(node, ScalarNode) or not node.value:
            raise self._error(node, Problem(path, "a key that is not a word", "a word"))
        if not _is_text(node.value):
            self._refuse_halves(node, path)
        return str(node.value)

    def _error(self, node: Node, problem: Problem) -> ReadError:
        return ReadError(_place(self.name, node), problem)


def _too_deep(path: KeyPath) -> Problem:
    return Problem(path, "nested too deeply", f"{DEPTH_MAX} levels")


def _is_text(text: str) -> bool:
    """True if it can be written as UTF-8: an escape may name half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _merge_parts(node: Node) -> Iterator[Node]:
    if isinstance(node, SequenceNode):
        yield from node.value
    else:
        yield node


def _scalar(node: ScalarNode) -> object:
    text = str(node.value)
    if node.style is not None:
        return text
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if _INT.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text
