"""Kafka's messages as its released jars define them, read from the data file when one is used.

``data/kafka_messages.jsonl`` is written by ``make kafka-facts``; the README beside it says what a
line is. A process reads the file once, and parses a message's fields when it is first needed.

Source: the classes that Kafka's message generator makes, of each release that the file names.
"""

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from sim.wire.fields import Schema, parse_fields

TABLE: Final = files("sim.wire") / "data" / "kafka_messages.jsonl"
"""The data file: a head, then a line of JSON for each message; it may lie in a zip file."""

PREVIEW_TABLE: Final = files("sim.wire") / "data" / "preview_records.jsonl"
"""The same of the metadata records of 2.8 alone, which no later release reads."""

NEVER_FLEXIBLE: Final = 1 << 15
"""``flexible_since`` of a message without flexible versions."""


class Definition(NamedTuple):
    """A message as a release defines it."""

    schema: Schema
    of: str
    """``request``, ``response``, ``header``, ``metadata``, ``group``, ``share``, ..."""
    key: int
    """Api key, or type of a coordinator's key and value; -1 for none."""
    versions: range
    flexible_since: int
    """The first version with compact lengths and tagged fields."""
    unstable: bool
    """The newest version of a request is not negotiated unless a broker is set to do so."""

    @property
    def newest(self) -> int:
        """The version that two processes of the release use."""
        return self.versions[-2] if self.unstable else self.versions[-1]


@cache
def releases() -> tuple[str, ...]:
    """Releases that were read, as ``4.1``, oldest first."""
    found: Mapping[str, str] = json.loads(_text().partition("\n")[0])["releases"]
    return tuple(found)


@cache
def definition(name: str, release: str = "") -> Definition | None:
    """A message by Kafka's name, as ``FetchRequest``; ``None`` if the release has none.

    Args:
        name: Of the message.
        release: One of :func:`releases`; empty for the newest.
    """
    chosen = release or releases()[-1]
    for row in _rows(name, _text()):
        for span, versions in row["in"].items():
            if _has(span, chosen):
                return _definition(row, versions, unstable=chosen in row.get("unstable", ()))
    return None


@cache
def preview(name: str) -> Definition | None:
    """A record of the metadata log as 2.8 has it; ``None`` if it has none of the name."""
    for row in _rows(name, _preview_text()):
        [versions] = row["in"].values()
        return _definition(row, versions, unstable=False)
    return None


@cache
def preview_keys() -> Mapping[str, int]:
    """Names of 2.8's metadata records and their api keys."""
    rows = map(json.loads, _preview_text().splitlines()[1:])
    return {row["name"]: row["key"] for row in rows}


@cache
def keys(of: str) -> Mapping[str, int]:
    """Names of a kind's messages that the newest release has, in order, and their keys."""
    mark = f'","of":"{of}",'
    newest = releases()[-1]
    found = [line for line in _text().split("\n") if mark in line]
    return {
        row["name"]: row.get("key", -1)
        for row in map(json.loads, found)
        if any(_has(span, newest) for span in row["in"])
    }


@cache
def _text() -> str:
    return TABLE.read_text(encoding="utf-8")


@cache
def _preview_text() -> str:
    return PREVIEW_TABLE.read_text(encoding="utf-8")


def _rows(name: str, text: str) -> list[dict[str, Any]]:
    """Lines of a message: one for each way in which releases define it."""
    found = []
    head = f'\n{{"name":"{name}",'
    place = text.find(head)
    while place >= 0:
        found.append(json.loads(text[place : text.index("\n", place + 1)]))
        place = text.find(head, place + 1)
    return found


def _has(span: str, release: str) -> bool:
    """True if releases like ``4.0-4.2`` have the one named."""
    first, _, last = span.partition("-")
    known = releases()
    return known.index(first) <= known.index(release) <= known.index(last or first)


def _definition(row: Mapping[str, Any], versions: str, *, unstable: bool) -> Definition:
    low, _, high = versions.partition("-")
    fields: Mapping[str, str] = row["fields"]
    parsed = {name: parse_fields(text) for name, text in fields.items()}
    return Definition(
        Schema(row["name"], parsed.pop(""), parsed),
        row["of"],
        row.get("key", -1),
        range(int(low), int(high or low) + 1),
        row.get("flexible", NEVER_FLEXIBLE),
        unstable,
    )
