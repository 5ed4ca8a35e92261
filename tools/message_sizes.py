"""Writes ``sim/protocol/messages/sizes``: sizes of Kafka's messages, as formulas from its schemas.

Run ``make docs`` after a change of a message or of Kafka's schemas; a test fails until then.

A module of ``sim/protocol/messages`` calls ``sizes.fetch_request(...)`` with what a message holds,
and what it calls is generated: the message in the version that two processes of the newest release
use. Its header and its fields of a fixed size are folded into a number; every other field is a
parameter under Kafka's name, which may be left out if it may be null or is tagged. An array is
given as its length, or as a collection of what varies in its structures, in wire order. A structure
that is called too, as ``sizes.fetch_response_partition_data(...)``, is given as bytes: all of them
in one sum. A base class, ``sizes.HeartbeatResponse``, is generated for a message that is the same
size whatever it says.
"""

import ast
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from sim.wire.definitions import Definition, definition, keys
from sim.wire.fields import Field

MESSAGES: Final = Path(__file__).parents[1] / "sim" / "protocol" / "messages"
SIZES: Final = MESSAGES / "sizes"

CLIENT_ID: Final = "producer-1"
"""``client.id`` in the header of every request: a message does not know its sender."""

ABSENT: Final = (
    "errorMessage", "acknowledgeErrorMessage", "recordErrors", "reason", "committedMetadata",
    "OffsetFetchResponsePartitions.metadata", "OffsetFetchRequestGroup.memberId",
    "NodeEndpoint.rack", "CreatableTopicResult.configs", "DescribedGroup.members",
)  # fmt: skip
"""Fields of structures that are always null or empty here: texts, and what has no model."""

_HAND_WRITTEN: Final = ("__init__", "encoding")
_LENGTH: Final = 4
_REQUEST_HEADER: Final = 2 + 2 + 4 + 2 + len(CLIENT_ID)
_RESPONSE_HEADER: Final = 4
_WIDTHS: Final = {
    "bool": 1, "int8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4, "int64": 8,
    "float64": 8, "uuid": 16,
}  # fmt: skip
_BLOBS: Final = ("bytes", "records")
_PREFIXED: Final = ("ConsumerProtocolSubscription", "ConsumerProtocolAssignment")
"""Bytes inside of other messages, behind a version of two bytes."""

_LINE: Final = 99


def snake(name: str) -> str:
    """A name of Kafka's in Python's way: ``topicData`` is ``topic_data``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def negotiated(name: str) -> int:
    """The version of a message that a client and a broker of the newest release use."""
    request = f"{name.removesuffix('Response').removesuffix('Request')}Request"
    return min(_known(name).versions[-1], (definition(request) or _known(name)).newest)


def _known(name: str) -> Definition:
    found = definition(name)
    if found is None:
        raise ValueError(f"{name} is no message of Kafka's newest release")
    return found


class Part(NamedTuple):
    """A field that varies: its parameter and type, its term, and lines for an array's elements."""

    name: str
    type: str
    term: str
    default: str = ""
    """For a field that may be left out."""
    lines: tuple[str, ...] = ()
    total: str = ""
    """Another parameter: bytes of all inner structures."""

    @property
    def parameters(self) -> list[str]:
        """As a function has them."""
        default = f" = {self.default}" if self.default else ""
        total = [f"{self.total}: Bytes"] if self.total else []
        return [f"{self.name}: {self.type}{default}", *total]


class Sizes:
    """Formulas of one message.

    Args:
        name: Kafka's name of it.
        called: Functions that a module calls; a structure that is among them is given as bytes.
    """

    def __init__(self, name: str, called: Sequence[str]) -> None:
        found = _known(name)
        self.name = name
        self.version = negotiated(name)
        self._schema = found.schema
        self._called = called
        self._flexible = self.version >= found.flexible_since
        self._loops = 0

    def header(self) -> int:
        """Bytes in front of the message's fields."""
        if self.name in _PREFIXED:
            return 2
        header = _REQUEST_HEADER if self.name.endswith("Request") else _RESPONSE_HEADER
        # The client does not know yet what the server understands.
        has_tags = self._flexible and self.name != "ApiVersionsResponse"
        return _LENGTH + header + has_tags

    def fields(self, structure: str, loop: int = 0) -> tuple[int, list[Part]]:
        """Bytes that a structure, or under "" the message, always has, and what varies in it.

        In a ``loop``, which has a number, it is an element of an array.
        """
        fixed, parts = int(self._flexible), []
        for field in self._schema.structures[structure] if structure else self._schema.fields:
            if field.in_version(self.version) and not (field.tag is not None and loop):
                found = self._field(field, structure, loop)
                if isinstance(found, int):
                    fixed += found
                else:
                    parts.append(found)
        return fixed, parts

    def _field(self, field: Field, structure: str, loop: int) -> int | Part:
        may_be_null = field.nullable_since is not None and self.version >= field.nullable_since
        if structure and (field.name in ABSENT or f"{structure}.{field.name}" in ABSENT):
            if field.type == "string" and not field.array:
                return 1 if self._flexible else 2
            return 1 if self._flexible else 4
        found = self._value(field, loop, may_be_null=may_be_null)
        if field.tag is not None:
            return self._tagged(field, found)
        if isinstance(found, Part) and may_be_null and not loop:
            return found._replace(default=_default(found.type))
        return found

    def _tagged(self, field: Field, found: int | Part) -> Part:
        """A field that is sent only if it differs from its default."""
        if isinstance(found, int):
            name = snake(field.name)
            return Part(name, "bool", f"({2 + found} if {name} else 0)", "False")
        if not found.lines:
            term = f"(wire.tagged({found.term}) if {found.name} else 0)"
            return found._replace(term=term, default=_default(found.type))
        inner = [f"    {line.replace('size +=', 'tagged +=')}" for line in found.lines]
        head = [f"if {found.name}:", f"    tagged = {found.term}"]
        lines = [*head, *inner, "    size += wire.tagged(tagged)"]
        return found._replace(term="", default=_default(found.type), lines=tuple(lines))

    def _value(self, field: Field, loop: int, *, may_be_null: bool) -> int | Part:
        name = f"{snake(field.name)}_{loop}" if loop else snake(field.name)
        plain = "" if self._flexible else "plain_"
        if field.array:
            return self._array(field, name, loop)
        if field.type in _WIDTHS:
            return _WIDTHS[field.type]
        if field.type == "string":
            kind = "str | None" if may_be_null else "str"
            return Part(name, kind, f"wire.{plain}text({name})")
        if field.type in _BLOBS:
            return Part(name, "Bytes", f"wire.blob({name})" if self._flexible else f"4 + {name}")
        if self._is_called(field.type):
            return Part(name, "Bytes", f"1 + {name}" if may_be_null else name)
        fixed, varying = self.fields(field.type, loop or 1)
        if varying or may_be_null:
            raise ValueError(f"{self.name}.{field.name} varies: call {self._function(field.type)}")
        return fixed

    def _array(self, field: Field, name: str, loop: int) -> Part:
        count = f"wire.uvarint(len({name}) + 1)" if self._flexible else "4"
        if field.type == "string":
            plain = "" if self._flexible else "plain_"
            lines = (f"for each in {name}:", f"    size += wire.{plain}text(each)")
            return Part(name, "Collection[str]", count, lines=lines)
        if field.type in _WIDTHS:
            return self._numbers(name, _WIDTHS[field.type])
        if self._is_called(field.type):
            if not loop:
                raise ValueError(f"{self.name}.{field.name}: its structures cannot be called")
            return Part(name, "int", f"wire.uvarint({name} + 1)", total=snake(field.name))
        self._loops += 1
        fixed, parts = self.fields(field.type, self._loops)
        return self._loop(name, count, fixed, parts) if parts else self._numbers(name, fixed)

    def _loop(self, name: str, count: str, fixed: int, parts: list[Part]) -> Part:
        """An array that is given as a collection."""
        terms = [part.term for part in parts]
        lines = [f"for {', '.join(part.name for part in parts)} in {name}:"]
        lines.append(f"    size += {' + '.join([str(fixed), *terms[:2]])}")
        lines += [f"    size += {term}" for term in terms[2:]]
        lines += [f"    {line}" for part in parts for line in part.lines]
        types = ", ".join(part.type for part in parts)
        kind = f"Collection[{types if len(parts) == 1 else f'tuple[{types}]'}]"
        total = "".join(part.total for part in parts)
        term = f"{count} + {total}" if total else count
        return Part(name, kind, term, lines=tuple(lines), total=total)

    def _numbers(self, name: str, each: int) -> Part:
        term = f"wire.numbers({name}, {each})" if self._flexible else f"4 + {name} * {each}"
        return Part(name, "int", term)

    def _function(self, structure: str) -> str:
        return f"{snake(self.name)}_{snake(structure)}"

    def _is_called(self, structure: str) -> bool:
        return self._function(structure) in self._called


def _default(kind: str) -> str:
    if kind.startswith("Collection"):
        return "()"
    return {"str": '""', "str | None": "None", "bool": "False"}.get(kind, "0")


@cache
def _functions() -> Mapping[str, tuple[str, str]]:
    """Message and structure of each function that could be called, by the newest release."""
    found: dict[str, tuple[str, str]] = {}
    for name in (*keys("request"), *keys("response"), *_PREFIXED):
        for structure in ("", *_known(name).schema.structures):
            found[f"{snake(name)}_{snake(structure)}".rstrip("_")] = name, structure
    return found


def called(source: str) -> list[str]:
    """What a module takes from its sizes, sorted."""
    found = [
        node.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "sizes"
    ]
    return sorted(dict.fromkeys(found))


def files() -> Iterator[tuple[Path, str]]:
    """Each generated module, and its text as it should be."""
    for path in sorted(MESSAGES.glob("*.py")):
        wanted = called(path.read_text(encoding="utf-8"))
        if wanted:
            yield SIZES / path.name, module(path.stem, wanted)


def module(name: str, wanted: Sequence[str]) -> str:
    """The text of one generated module.

    Raises:
        ValueError: If what is called belongs to no message of Kafka's, or lacks a parameter.
    """
    parts = [_class(each) if each[0].isupper() else _function(each, wanted) for each in wanted]
    body = "".join(parts)
    bases = [base for base in ("Request", "Response") if f"({base}):" in body]
    imports = ["from collections.abc import Collection\n\n"] if "Collection[" in body else []
    imports += [f"from sim.protocol.messages.base import {', '.join(bases)}\n"] if bases else []
    if "wire." in body:
        imports.append("from sim.protocol.messages.sizes import encoding as wire\n")
    return (
        f'"""Sizes of the messages in :mod:`sim.protocol.messages.{name}`.\n\n'
        "Written from Kafka's schemas by ``python -m tools.message_sizes``; do not edit.\n"
        f'"""\n\n# fmt: off\n{"".join(imports)}from sim.units import Bytes\n{body}'
    )


def _class(name: str) -> str:
    sizes = Sizes(name, ())
    fixed, parts = sizes.fields("")
    if not all(part.default for part in parts):
        raise ValueError(f"{name} varies: call sizes.{snake(name)}(...)")
    size = (
        sizes.header()
        + fixed
        + sum(1 for part in parts if part.term and part.term[-8:] != " else 0)")
    )
    base = "Request" if name.endswith("Request") else "Response"
    return (
        f'\n\nclass {name}({base}):\n    """{name} {sizes.version}: always of this size."""\n\n'
        "    __slots__ = ()\n\n    @property\n    def size_bytes(self) -> Bytes:\n"
        f'        """Bytes on the wire."""\n        return {size}\n'
    )


def _function(function: str, wanted: Sequence[str]) -> str:
    if function not in _functions():
        raise ValueError(f"sizes.{function} is no message of Kafka's, nor a structure in one")
    name, structure = _functions()[function]
    sizes = Sizes(name, wanted)
    fixed, parts = sizes.fields(structure)
    fixed += 0 if structure else sizes.header()
    given = ", ".join(_whole(each) for part in parts for each in part.parameters)
    head = f"def {function}(*, {given}) -> Bytes:".replace("\0", " ")
    if len(head) > _LINE:
        head = f"def {function}(\n    *,\n{_wrapped(given, 4)},\n) -> Bytes:"
    formula = " + ".join([str(fixed), *(_whole(part.term) for part in parts if part.term)])
    lines = [f"    {line}" for part in parts for line in part.lines]
    result = [_statement("return", formula)]
    if lines:
        result = [_statement("size =", formula), *lines, "    return size"]
    what = f"{structure} in {name}" if structure else name
    body = "\n".join(result)
    return f'\n\n{head}\n    """{what} {sizes.version}."""\n{body}\n'


def _statement(begin: str, formula: str) -> str:
    line = f"    {begin} {formula}"
    if len(line) <= _LINE:
        return line.replace("\0", " ")
    return f"    {begin} (\n{_wrapped(formula, 8)}\n    )"


def _whole(words: str) -> str:
    """Words between which no line is broken."""
    return words.replace(" ", "\0")


def _wrapped(words: str, indent: int) -> str:
    margin = " " * indent
    text = textwrap.fill(
        words, _LINE, initial_indent=margin, subsequent_indent=margin, break_long_words=False
    )
    return text.replace("\0", " ")


def main() -> None:
    """Write the files."""
    written = dict(files())
    for path, text in written.items():
        path.write_text(text, encoding="utf-8")
    for path in SIZES.glob("*.py"):
        if path not in written and path.stem not in _HAND_WRITTEN:
            path.unlink()


if __name__ == "__main__":
    main()
