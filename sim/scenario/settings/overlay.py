"""Kafka's settings that a scenario may have: names, and where we are narrower than Kafka.

Type, default and bounds of a setting are Kafka's own (:mod:`sim.scenario.settings.facts`). An
overlay says that it is modelled, or why it is not, and gives the reason of each difference.
"""

import re
from dataclasses import dataclass
from typing import Final

from sim.scenario.behaviours.versions import DEFAULT
from sim.scenario.settings.facts import (
    KafkaSetting,
    VersionedSetting,
    settings_of,
    versions,
)
from sim.scenario.settings.resolved import SettingValue
from sim.scenario.settings.types import (
    INT_MAX,
    SHORT_NAMES,
    Scope,
    Setting,
    SettingType,
    as_kafka_writes,
)

DEFINITIONS: Final[dict[Scope, tuple[str, ...]]] = {
    "broker": ("broker", "broker quota", "client quota", "ip quota"),
    "topic": ("topic",),
    "group": ("group",),
    "producer": ("producer",),
    "consumer": ("consumer",),
    "streams": ("streams",),
    "mirror": (
        *("mirror source", "mirror checkpoint", "mirror heartbeat", "mirror maker"),
        "connect distributed",
    ),
    "connect": ("connect source", "connect sink", "connect distributed"),
}
"""Kafka's ConfigDefs of each scope; of two with the same name the first counts."""

NO_BOUND: Final = "Kafka has no validator for it, and less has no meaning"
"""Of numbers of threads, bytes and times."""

ZERO: Final = "Kafka takes 0; a timer of nothing would never let time pass"
"""Of intervals."""

UNLIMITED: Final = "Kafka has no validator for it; less than -1, which is unlimited, has no meaning"
"""Of retention."""

SEGMENT: Final = (
    "Kafka takes less, and then refuses the topic, whose segment.bytes is 1 MiB or more"
)
"""Of internal topics."""

NO_JAVA: Final = "Kafka's own classes; there are no others here"
"""Of settings that name a class."""

NO_SASL: Final = "brokers do not authenticate with each other"
"""Of security protocols."""

NO_DURATION: Final = "the validator is code; by_duration is not simulated"
"""Of offsets to begin at."""

_TYPES: Final[dict[str, SettingType]] = {
    "int": "int",
    "long": "int",
    "short": "int",
    "double": "double",
    "boolean": "boolean",
    "list": "list",
    "string": "string",
    "class": "string",
    "password": "string",
}
_LARGEST: Final = {"int": INT_MAX, "short": 32_767}
_RANGE: Final = re.compile(r"\[(-?[\d.]+|\.\.\.),\.\.\.(?:,(-?[\d.]+))?\]|\[\.\.\.,(-?[\d.]+)\]")
_WORDS_SINCE: Final = {"zstd": "2.1", "sticky": "0.11", "cooperative-sticky": "2.4"}
"""Values that no validator lists, by the version that brought them (KIP-110, KIP-54, KIP-429)."""

_WORDS_UNTIL: Final = {"exactly_once": "2.5"}
"""Values that later versions take, and that mean there what is not simulated.

A second, older way to be exact, without a member's fence, is beside KIP-447's from 2.6 to 3.9.
"""

_ANY_CASE: Final = "(case insensitive) "


@dataclass(frozen=True, slots=True)
class Overlay:
    """Differences of ours in one setting of Kafka's."""

    name: str
    absent: str = ""
    """Reason why it is not modelled; it is modelled if that is empty."""
    because: str = ""
    """Reason why it is not exactly as Kafka has it; empty if it is."""
    low: int | None = None
    """The smallest value allowed; ``None``: Kafka's own."""
    high: int | None = None
    """The largest value allowed; ``None``: Kafka's own."""
    choices: tuple[str, ...] = ()
    """Values allowed; empty: Kafka's own."""
    default: SettingValue = None
    """The default of a setting that must be given in Kafka; ``None``: Kafka's own."""
    of: str = ""
    """The ConfigDef, if that is of another scope."""
    before: SettingValue = None
    """Of a setting that came later: what releases before it did; ``None``: its first default."""
    like: str = ""
    """The setting whose value releases before it took instead."""


def modelled(*names: str) -> tuple[Overlay, ...]:
    """Settings that are simulated exactly as Kafka declares them."""
    return tuple(Overlay(name) for name in names)


def narrowed(
    because: str,
    *names: str,
    low: int | None = None,
    high: int | None = None,
    choices: tuple[str, ...] = (),
) -> tuple[Overlay, ...]:
    """Settings that are simulated for some of the values that Kafka takes, all for one reason."""
    return tuple(
        Overlay(name, because=because, low=low, high=high, choices=choices) for name in names
    )


def codec_levels() -> tuple[Overlay, ...]:
    """The levels of the codecs that have some (KIP-390); another rule refuses 0 for gzip."""
    because = "the validator is code: the codec's default, or one of its levels"
    return (
        *narrowed(because, "compression.gzip.level", low=-1, high=9),
        *modelled("compression.lz4.level", "compression.zstd.level"),
    )


def absent(why: str, *names: str) -> tuple[Overlay, ...]:
    """Settings that are known and not modelled, all for the same reason."""
    return tuple(Overlay(name, absent=why) for name in names)


def newer(name: str, before: SettingValue = None, *, like: str = "") -> Overlay:
    """A setting as Kafka declares it, and what releases did that do not have it yet."""
    return Overlay(name, before=before, like=like)


def known(scope: Scope, name: str, version: str = DEFAULT) -> KafkaSetting | None:
    """A setting of a scope as Kafka defines it, modelled or not.

    Of definitions that have it the first counts that has it in the version.
    """
    tables = (settings_of(definition) for definition in DEFINITIONS[scope])
    found = [table[name] for table in tables if name in table]
    return next((each for each in found if each.at(version)), found[0] if found else None)


def has(scope: Scope, name: str, version: str) -> bool:
    """True if a version has the setting."""
    found = known(scope, name, version)
    return found is not None and found.at(version) is not None


def declared(scope: Scope, overlay: Overlay, version: str = DEFAULT) -> Setting:
    """The setting of a scenario: Kafka's facts in a version, and what is ours.

    Raises:
        LookupError: If Kafka has no such setting in the scope.
    """
    name = overlay.name
    found = settings_of(overlay.of).get(name) if overlay.of else known(scope, name, version)
    if found is None:
        raise LookupError(f"Kafka has no {scope} setting {name}")
    facts = found.near(version)
    kind = _TYPES[facts.type]
    default = parsed(facts) if overlay.default is None else overlay.default
    missing = found.absence(version)
    if missing and overlay.before is not None:
        default = overlay.before
    if overlay.absent:
        return Setting(name, kind, default, absent=overlay.absent, missing=missing)
    # Older releases often have no validator, and what is simulated is bounded all the same.
    judge = facts if facts.valid else found.near()
    low, high = bounds(judge)
    words = overlay.choices or choices(judge)
    return Setting(
        name,
        kind,
        default,
        low if overlay.low is None else overlay.low,
        high if overlay.high is None else overlay.high,
        tuple(word for word in words if _is_there(word, version)),
        because=overlay.because,
        missing=missing,
        like=overlay.like if missing else "",
    )


def _is_there(word: str, version: str) -> bool:
    order = versions()
    first, last = _WORDS_SINCE.get(word, order[0]), _WORDS_UNTIL.get(word, order[-1])
    return order.index(first) <= order.index(version) <= order.index(last)


def other_defaults(scope: Scope, name: str) -> str:
    """The versions that have the setting if not all, and other defaults, in words; may be empty."""
    found = known(scope, name)
    if found is None:
        return ""
    here, order = found.near(), versions()
    middle = order.index(DEFAULT)
    words = [found.span] if found.span else []
    for place, version in enumerate(order):
        # Older ones are named by the last version that has them, newer ones by the first.
        beside = order[place + 1] if place < middle else order[place - 1]
        facts, next_to = found.at(version), found.at(beside)
        if facts is None or facts.default == here.default:
            continue
        if next_to is None or next_to.default != facts.default:
            word = "up to" if place < middle else "since"
            words.append(f"{as_kafka_writes(parsed(facts))} {word} {version}")
    return ", ".join(words)


def bounds(facts: VersionedSetting) -> tuple[int | None, int | None]:
    """The smallest and largest number that Kafka takes; ``None``: its type has no other limit."""
    match = _RANGE.fullmatch(facts.valid)
    largest = _LARGEST.get(facts.type)
    if match is None:
        return None, largest
    low = None if match[1] in (None, "...") else int(float(match[1]))
    high = match[2] or match[3]
    return low, largest if high is None else int(float(high))


def choices(facts: VersionedSetting) -> tuple[str, ...]:
    """The words that Kafka takes; empty for any text."""
    words = facts.valid.removeprefix(_ANY_CASE)
    if facts.type not in ("string", "list") or not re.fullmatch(r"\[.*\]", words):
        return ()
    found = tuple(words[1:-1].split(", "))
    if words == facts.valid or str(facts.default).isupper():
        return found
    return tuple(word.lower() for word in found)


def parsed(facts: VersionedSetting) -> SettingValue:
    """Kafka's default as a scenario has it: classes by short names; ``None`` if there is none."""
    text = facts.default
    if text is None:
        return None
    kind = _TYPES[facts.type]
    if kind == "boolean":
        return text == "true"
    if kind == "int":
        return int(text)
    if kind == "double":
        return float(text)
    return ",".join(SHORT_NAMES.get(word, word) for word in text.split(","))
