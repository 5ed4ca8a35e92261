"""Writes what Apache Kafka defines, by version: its settings, and its messages.

The facts are those of the released jars: Maven brings them, ``KafkaFacts.java`` reads their
``ConfigDef`` by reflection, and :mod:`tools.kafka_messages` has the messages. Maven and a Java of
17 or newer are needed. Run ``make kafka-facts`` when a release is added to
:data:`tools.kafka_jars.RELEASES`.
"""

import json
import tempfile
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, TypeAlias

from tools import kafka_messages
from tools.kafka_jars import (
    FEATURE_RELEASES,
    MESSAGE_RELEASES,
    PREVIEW,
    RELEASES,
    Row,
    jars,
    printed,
)

PROGRAM: Final = "KafkaFacts.java"
"""Prints every setting of a release, one for each ConfigDef that has it."""

FEATURES: Final = "KafkaFeatures.java"
"""Prints the feature levels of a new cluster of a release, and those that its servers support."""

TARGET: Final = Path(__file__).parents[1] / "sim/scenario/settings/data/kafka_settings.jsonl"
"""The data file; the README beside it says what a line is."""


def merged(rows: Mapping[str, Iterable[Row]]) -> list[Row]:
    """Lines of the data file, from the rows of each version, oldest first.

    Raises:
        ValueError: If a setting is absent from a version between two that have it.
    """
    facts: dict[tuple[str, str], dict[str, Row]] = {}
    for version, found in rows.items():
        for row in found:
            plain = {key: value for key, value in row.items() if key not in ("of", "name")}
            facts.setdefault((row["name"], row["of"]), {})[version] = plain
    alike: dict[tuple[str, str], list[str]] = {}
    for (name, scope), history in sorted(facts.items()):
        text = json.dumps(_line(name, history, list(rows)), separators=(",", ":"))
        alike.setdefault((name, text), []).append(scope)
    return [json.loads(text) | {"of": scopes} for (_, text), scopes in alike.items()]


def _line(name: str, history: Mapping[str, Row], versions: list[str]) -> Row:
    first = versions.index(next(iter(history)))
    has = versions[first : first + len(history)]
    if has != list(history):
        raise ValueError(f"{name} is in {', '.join(history)}")
    line: dict[str, Any] = {"name": name, "since": has[0], **history[has[0]]}
    changes = {
        version: history[version]
        for before, version in pairwise(has)
        if history[version] != history[before]
    }
    if changes:
        line["then"] = changes
    if has[-1] != versions[-1]:
        line["last"] = has[-1]
    return line


_ORDER: Final = ("name", "of", "since", "last")


Features: TypeAlias = Mapping[str, Mapping[str, int]]
"""Feature levels by version and name."""


def levels(rows: Iterable[Row]) -> dict[str, int]:
    """Levels by feature, without those of Kafka's own tests."""
    return {
        row["name"]: row["level"] for row in rows if "level" in row and "test." not in row["name"]
    }


def supported(rows: Iterable[Row]) -> dict[str, list[int]]:
    """Lowest and highest level that servers support, by feature."""
    return {row["name"]: [row["lowest"], row["highest"]] for row in rows if "lowest" in row}


def text(
    rows: Mapping[str, Iterable[Row]],
    features: Features,
    ranges: Mapping[str, Mapping[str, list[int]]],
) -> str:
    """The data file's content: a head, then a line of JSON for each setting, sorted by name."""
    head = {
        "generated": "make kafka-facts (tools/kafka_facts.py); do not edit",
        "releases": {version: RELEASES[version] for version in rows},
        "features": features,
        "supported": ranges,
    }
    lines = [json.dumps(head)]
    for row in merged(rows):
        keys = [key for key in _ORDER if key in row]
        keys += [key for key in row if key not in _ORDER]
        lines.append(json.dumps({key: row[key] for key in keys}, separators=(",", ":")))
    return "\n".join(lines) + "\n"


_MIRRORS_UNREAD: Final = ("2.4", "2.5", "2.6")
"""Versions whose MirrorMaker 2 is not in Maven Central."""

_MIRRORS_LATER: Final = ("sync.group.offsets.enabled", "sync.group.offsets.interval.seconds")
_EXCLUDE: Final = ".exclude"
_FORMER: Final = ".blacklist"


def mirrors_before(rows: Iterable[Row]) -> list[Row]:
    """Settings of MirrorMaker 2 before 2.7, from those of 2.7.

    Synchronised group offsets came with 2.7 (KIP-545), and lists of exclusions got other names
    (KIP-629). Source: ``MirrorConnectorConfig``, ``Default{Topic,Group,ConfigProperty}Filter``.
    """
    held = [row for row in rows if row["of"].startswith("mirror")]
    defaults = {(row["of"], row["name"]): row.get("default") for row in held}
    found: list[Row] = []
    for row in held:
        scope, name = row["of"], row["name"]
        if name in _MIRRORS_LATER or name.endswith(_EXCLUDE):
            continue
        instead = name.removesuffix(_FORMER) + _EXCLUDE
        renamed = {"default": defaults[scope, instead]} if name.endswith(_FORMER) else {}
        found.append({**row, **renamed})
    return found


def of_quotas_alone(rows: Iterable[Row]) -> list[Row]:
    """The rows, without brokers' settings from the definition of quotas, which 1.1 to 3.8 had."""
    listed = list(rows)
    brokers = {row["name"] for row in listed if row["of"] == "broker"}
    return [row for row in listed if row["of"] != "broker quota" or row["name"] not in brokers]


def with_synonyms(rows: Mapping[str, list[Row]]) -> dict[str, list[Row]]:
    """The rows, with brokers' settings that replace a topic's where a release has no table of them.

    Source: ``KafkaServer.copyKafkaConfigToLog``, which had the same ones before.
    """
    newest: dict[str, Any] = {}
    found: dict[str, list[Row]] = {}
    for version in reversed(list(rows)):
        for row in rows[version]:
            if "broker" in row:
                newest[row["name"]] = row["broker"]
        found[version] = [
            {**row, "broker": newest[row["name"]]}
            if row["of"] == "topic" and row["name"] in newest
            else row
            for row in rows[version]
        ]
    return {version: found[version] for version in rows}


def settings_of_releases(read: Mapping[str, Iterable[Row]]) -> dict[str, list[Row]]:
    """Settings by version, of what was printed of each release."""
    rows = {version: of_quotas_alone(found) for version, found in read.items()}
    for version in _MIRRORS_UNREAD:
        rows[version] += mirrors_before(rows["2.7"])
    return with_synonyms(rows)


def main() -> None:
    """Write the data files."""
    settings: dict[str, list[Row]] = {}
    features: dict[str, dict[str, int]] = {}
    ranges: dict[str, dict[str, list[int]]] = {}
    messages: dict[str, list[kafka_messages.Message]] = {}
    preview: dict[str, list[kafka_messages.Message]] = {}
    with tempfile.TemporaryDirectory() as directory:
        for version, release in RELEASES.items():
            library = jars(release, Path(directory) / release)
            settings[version] = printed(library, PROGRAM)
            if version in FEATURE_RELEASES:
                printed_features = printed(library, FEATURES)
                features[version] = levels(printed_features)
                ranges[version] = supported(printed_features)
            if version in MESSAGE_RELEASES:
                rows = printed(library, kafka_messages.PROGRAM)
                messages[version] = [kafka_messages.message(row) for row in rows]
            if version == PREVIEW:
                rows = printed(library, kafka_messages.PROGRAM)
                preview[version] = kafka_messages.records_of_metadata(rows)
    TARGET.write_text(text(settings_of_releases(settings), features, ranges), encoding="utf-8")
    kafka_messages.TARGET.write_text(kafka_messages.text(messages), encoding="utf-8")
    kafka_messages.PREVIEW_TARGET.write_text(kafka_messages.text(preview), encoding="utf-8")


if __name__ == "__main__":
    main()
