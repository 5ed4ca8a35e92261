"""Writes the messages that Apache Kafka defines, by version, to ``sim/wire/data``.

The facts are those of the released jars: Maven brings them, and ``KafkaMessages.java`` reads their
generated classes by reflection. ``make kafka-facts`` runs it.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from tools.kafka_jars import RELEASES, Row

TARGET: Final = Path(__file__).parents[1] / "sim/wire/data/kafka_messages.jsonl"
"""The data file; the README beside it says what a line is."""

PREVIEW_TARGET: Final = TARGET.with_name("preview_records.jsonl")
"""The data file of the metadata records of KRaft's preview, in the same notation."""

PROGRAM: Final = "KafkaMessages.java"
"""Prints every message of a release."""

_KINDS: Final = {
    "org.apache.kafka.common.metadata": "metadata",
    "org.apache.kafka.coordinator.group.generated": "group",
    "org.apache.kafka.coordinator.share.generated": "share",
    "org.apache.kafka.coordinator.transaction.generated": "transaction",
    "org.apache.kafka.raft.generated": "raft",
    "org.apache.kafka.server.log.remote.metadata.storage.generated": "remote log",
    "org.apache.kafka.streams.internals.generated": "streams",
}
_CLIENTS: Final = re.compile(r"(?:Request|Response)(Header)?(?=Data$)")
_TYPE: Final = re.compile(r":(?:\[\])?(\w+)")
_WORD: Final = re.compile(r"(\w+:[\[\]\w]+)(\?)?(\S*)")

Layout: TypeAlias = Mapping[str, Sequence[str]]
"""Fields of one version: the message's own under "", those of each structure under its name."""


class Message(NamedTuple):
    """A message as one release, or several alike, define it."""

    name: str
    kind: str
    key: int
    unstable: bool
    flexible: Mapping[int, bool]
    layouts: Mapping[int, Layout]


def message(row: Row) -> Message:
    """A message from a line of the Java program."""
    versions = {int(version): dict(facts) for version, facts in row["versions"].items()}
    flexible = {version: bool(facts.pop("flexible")) for version, facts in versions.items()}
    name, kind = str(row["name"]), _KINDS.get(row["package"], "message")
    found = _CLIENTS.search(name)
    if found is not None and kind == "message":
        kind = "header" if found[1] else found[0].lower()
        name = name.removesuffix("Data")
    layouts = {version: _used(facts) for version, facts in versions.items()}
    return Message(name, kind, row["key"], row["unstable"], flexible, layouts)


def _used(facts: Mapping[str, str]) -> Layout:
    """Fields of the message and of the structures that they need; a release may define others."""
    found: dict[str, list[str]] = {}
    wanted = [""]
    while wanted:
        name = wanted.pop()
        found[name] = facts[name].split()
        types = [_TYPE.split(word)[1] for word in found[name]]
        wanted += [each for each in types if each in facts and each not in found]
    return found


def notation(versions: Mapping[int, Sequence[str]]) -> str:
    """Fields of all versions in one text, as :func:`sim.wire.fields.parse_fields` reads it.

    Raises:
        ValueError: If a field is absent between two versions that have it, or the order changes.
    """
    order = list(versions)
    columns: list[tuple[str, str]] = []
    held: dict[tuple[str, str], dict[int, bool]] = {}
    for version, words in versions.items():
        place = 0
        for word in words:
            found = _WORD.fullmatch(word)
            if found is None:
                raise ValueError(f"{word} is no field")
            column = found[1], found[3]
            if column not in held:
                columns.insert(place, column)
                held[column] = {}
            elif columns.index(column) < place:
                raise ValueError(f"{word} has another place in version {version}")
            place = columns.index(column) + 1
            held[column][version] = found[2] is not None
    return " ".join(f"{c[0]}{_span(held[c], order)}{c[1]}" for c in columns)


def _span(held: Mapping[int, bool], order: Sequence[int]) -> str:
    """Marks of a field for the versions that have it, and for those where it may be null."""
    low, high = min(held), max(held)
    if sorted(held) != [version for version in order if low <= version <= high]:
        raise ValueError(f"a field is in versions {sorted(held)} of {order}")
    null = [version for version in sorted(held) if held[version]]
    if null and null != [version for version in sorted(held) if version >= null[0]]:
        raise ValueError(f"a field may be null in versions {null} of {sorted(held)}")
    text = "" if not null else "?" if null[0] == low else f"?{null[0]}"
    if high != order[-1]:
        return f"{text}@{low}-{high}"
    return text if low == order[0] else f"{text}@{low}"


def joined(newer: Message, older: Message) -> Message | None:
    """Both in one; ``None`` if they differ in a version that both have, or no notation has both."""
    if newer.kind != older.kind or older.key not in {newer.key, -1}:
        return None
    for version, layout in older.layouts.items():
        if newer.layouts.get(version, layout) != layout:
            return None
    both = newer._replace(
        flexible={**older.flexible, **newer.flexible}, layouts={**older.layouts, **newer.layouts}
    )
    try:
        noted(both)
    except ValueError:
        return None
    return both


def noted(one: Message) -> dict[str, str]:
    """Fields of the message under "", and of each structure, in all of its versions.

    Raises:
        ValueError: If the notation cannot say it.
    """
    versions = sorted(one.layouts)
    structures = dict.fromkeys(name for version in versions for name in one.layouts[version])
    return {
        name: notation({v: one.layouts[v][name] for v in versions if name in one.layouts[v]})
        for name in sorted(structures)
    }


def lines(releases: Mapping[str, Iterable[Message]]) -> list[dict[str, Any]]:
    """Lines of the data file, by name and newest first, from releases, oldest first."""
    known: dict[str, list[tuple[Message, dict[str, Message]]]] = {}
    for release in reversed(list(releases)):
        for one in releases[release]:
            groups = known.setdefault(one.name, [])
            both = joined(groups[-1][0], one) if groups else None
            if both is None:
                groups.append((one, {release: one}))
            else:
                groups[-1] = (both, groups[-1][1] | {release: one})
    return [_line(*group) for _, groups in sorted(known.items()) for group in groups]


def _line(whole: Message, members: Mapping[str, Message]) -> dict[str, Any]:
    line: dict[str, Any] = {"name": whole.name, "of": whole.kind}
    if whole.key >= 0:
        line["key"] = whole.key
    oldest_first = dict(reversed(list(members.items())))
    line["in"] = _ranges({release: _range(one.layouts) for release, one in oldest_first.items()})
    unstable = [release for release, one in oldest_first.items() if one.unstable]
    if unstable:
        line["unstable"] = unstable
    flexible = [version for version in sorted(whole.layouts) if whole.flexible[version]]
    if flexible:
        line["flexible"] = flexible[0]
    return line | {"fields": noted(whole)}


def _ranges(releases: Mapping[str, str]) -> dict[str, str]:
    """Releases in a row that have the same versions as one: ``4.0-4.2``."""
    found: dict[str, str] = {}
    for versions, row in groupby(releases, key=releases.__getitem__):
        first, *others = row
        found[f"{first}-{others[-1]}" if others else first] = versions
    return found


def _range(versions: Iterable[int]) -> str:
    found = sorted(versions)
    if found != list(range(found[0], found[-1] + 1)):
        raise ValueError(f"a message has versions {found}")
    return str(found[0]) if len(found) == 1 else f"{found[0]}-{found[-1]}"


def records_of_metadata(rows: Iterable[Row]) -> list[Message]:
    """Records of the metadata log, of what was printed of a release."""
    return [one for one in map(message, rows) if one.kind == "metadata"]


def text(releases: Mapping[str, Iterable[Message]]) -> str:
    """The data file's content: a head, then a line of JSON for each message."""
    head = {
        "generated": "make kafka-facts (tools/kafka_messages.py); do not edit",
        "releases": {version: RELEASES[version] for version in releases},
    }
    rows = [
        json.dumps(head),
        *(json.dumps(line, separators=(",", ":")) for line in lines(releases)),
    ]
    return "\n".join(rows) + "\n"
