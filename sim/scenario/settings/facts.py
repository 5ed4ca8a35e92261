"""Kafka's settings as its released jars define them, by version: names, types, defaults, bounds.

The data file is written by ``make kafka-facts``; ``data/README.md`` says what a line of it is. It
is read when a setting of a ConfigDef is first needed, and then only the lines of that ConfigDef.

Source: the ``ConfigDef`` of each component of Kafka, and ``ServerTopicConfigSynonyms``.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, NamedTuple

from sim.scenario.behaviours.versions import DEFAULT

TABLE: Final = files("sim.scenario.settings") / "data" / "kafka_settings.jsonl"
"""The data file: a head, then a line of JSON for each setting; it may lie in a zip file."""


class VersionedSetting(NamedTuple):
    """A setting as one version defines it."""

    type: str
    """``ConfigDef.Type`` in small letters."""
    default: str | None
    """As a file of properties would have it; ``None``: null, or there is none."""
    is_required: bool
    """True if there is no default."""
    valid: str
    """Its validator's text; ``code`` or a class for one that prints nothing; may be empty."""
    importance: str
    """``high``, ``medium`` or ``low``."""
    is_internal: bool
    """True if Kafka hides it from its documentation."""


@dataclass(frozen=True, slots=True)
class KafkaSetting:
    """A setting in every version that was read and has it."""

    name: str
    of: tuple[str, ...]
    """ConfigDefs that define it alike."""
    since: str
    """The first version; the oldest that was read may not be the first that had it."""
    last: str
    """The last version."""
    history: Mapping[str, VersionedSetting]
    """Facts from a version on, oldest first."""
    brokers: tuple[tuple[str, int], ...]
    """A topic's: broker settings that replace it, and the factor of each; first given first
    taken."""

    def at(self, version: str) -> VersionedSetting | None:
        """The facts of a version; ``None``: that version does not have it."""
        known = versions()
        place = known.index(version)
        if not known.index(self.since) <= place <= known.index(self.last):
            return None
        held = [facts for since, facts in self.history.items() if known.index(since) <= place]
        return held[-1]

    def near(self, version: str = DEFAULT) -> VersionedSetting:
        """The facts of a version, or of the nearest one that has the setting."""
        known = versions()
        nearest = min(max(known.index(version), known.index(self.since)), known.index(self.last))
        found = self.at(known[nearest])
        assert found is not None
        return found

    def absence(self, version: str) -> str:
        """The reason why a version does not have it, in words; empty if it has it."""
        if self.at(version) is not None:
            return ""
        if versions().index(version) < versions().index(self.since):
            return f"came with {self.since}"
        return f"ended with {self.last}"

    @property
    def span(self) -> str:
        """The versions that have it, in words; empty if all that were read have it."""
        first, newest = versions()[0], versions()[-1]
        if self.since == first:
            return "" if self.last == newest else f"up to {self.last}"
        return f"since {self.since}" if self.last == newest else f"{self.since} to {self.last}"


@cache
def versions() -> tuple[str, ...]:
    """Versions of Kafka that were read, oldest first."""
    releases: Mapping[str, str] = json.loads(_lines()[0])["releases"]
    return tuple(releases)


def implied_level(version: str) -> int:
    """Level of ``metadata.version`` whose records and rules a release has that finalizes none.

    That of its ``inter.broker.protocol.version``, and 0 for 2.8, whose records no later release
    reads; a version that finalizes one does what 3.2 did.

    Source: ``MetadataVersion.IBP_3_{0,1,2}``; ``ControllerServer.isLeaderRecoverySupported`` (3.2).
    """
    return {"2.8": 0, "3.0": 1, "3.1": 2}.get(version, 3)


def features_of(version: str) -> Mapping[str, int]:
    """Feature levels of a new cluster of a version, by name; before 3.3 those of 3.3.

    2.8 to 3.2 finalize none: :func:`implied_level`.

    Source: ``MetadataVersion.LATEST_PRODUCTION``, ``Feature.defaultLevel``.
    """
    levels: Mapping[str, Mapping[str, int]] = json.loads(_lines()[0])["features"]
    return levels.get(version) or next(iter(levels.values()))


def supported_features(version: str) -> tuple[tuple[str, int, int], ...]:
    """Features that servers of a version support: name, lowest and highest level.

    Before 3.3 they are those of 3.3.

    Source: ``QuorumFeatures.defaultSupportedFeatureMap``.
    """
    ranges: Mapping[str, Mapping[str, list[int]]] = json.loads(_lines()[0])["supported"]
    found = ranges.get(version) or next(iter(ranges.values()))
    return tuple((name, low, high) for name, (low, high) in found.items())


@cache
def settings_of(definition: str) -> Mapping[str, KafkaSetting]:
    """Every setting of a ConfigDef by its name; none for a ConfigDef that is not known."""
    word = f'"{definition}"'
    found = ",".join(line for line in _lines()[1:] if word in line)
    rows: list[dict[str, Any]] = json.loads(f"[{found}]")
    return {row["name"]: _setting(row) for row in rows if definition in row["of"]}


@cache
def _lines() -> list[str]:
    return TABLE.read_text(encoding="utf-8").splitlines()


def _setting(row: Mapping[str, Any]) -> KafkaSetting:
    later = {since: _facts(facts) for since, facts in row.get("then", {}).items()}
    return KafkaSetting(
        row["name"],
        tuple(row["of"]),
        row["since"],
        row.get("last", versions()[-1]),
        {row["since"]: _facts(row), **later},
        tuple((name, factor) for name, factor in row.get("broker", ())),
    )


def _facts(row: Mapping[str, Any]) -> VersionedSetting:
    return VersionedSetting(
        row["type"],
        row.get("default"),
        "default" not in row,
        row.get("valid", ""),
        row["importance"],
        row.get("internal", False),
    )
