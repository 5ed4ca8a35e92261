"""Search in the scenarios that come with the program: published failures, and examples."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

import yaml

from sim.scenario.behaviours.versions import DEFAULT
from sim.scenario.shipped import shipped

Kind = Literal["all", "catalogue", "example"]

_WORD: Final = re.compile(r"[a-z0-9]+(?:[._-][a-z0-9]+)*")
_IN_NAME, _IN_CLAIM, _IN_HEAD, _BELOW = 8, 4, 2, 1
"""Weight of a word in the name, the claim, the comment at the head, and anywhere below."""


@dataclass(frozen=True, slots=True)
class ShippedScenario:
    """A scenario file in words."""

    name: str
    kind: Literal["catalogue", "example"]
    claim: str
    versions: str
    history: str
    """The comment at its head, up to the source."""
    source: str
    file: Path
    text: str
    """The whole file, in lower case."""


def search(words: Sequence[str], kind: Kind) -> list[ShippedScenario]:
    """Scenarios that have every word, the nearest first; where none has, those with most of them.

    Args:
        words: As from :func:`words_of`; none finds every scenario.
        kind: Which to search.
    """
    ranked = []
    for each in searched(kind):
        weights = [_weight(word, each) for word in words]
        hits = sum(weight > 0 for weight in weights)
        if hits or not words:
            ranked.append((-hits, -sum(weights), each.name, each))
    best = min((hits for hits, *_ in ranked), default=0)
    return [each for hits, _, _, each in sorted(ranked, key=lambda r: r[:3]) if hits == best]


def searched(kind: Kind) -> list[ShippedScenario]:
    """Every scenario of a kind, by name."""
    return [each for each in _scenarios() if kind in ("all", each.kind)]


def words_of(text: str) -> list[str]:
    """The words of a search, in lower case; settings and names of entries are one word."""
    return list(dict.fromkeys(_WORD.findall(text.lower())))


def near(words: Sequence[str]) -> list[str]:
    """Words of names and claims that are spelt nearly so."""
    known = sorted({w for each in _scenarios() for w in words_of(f"{each.name} {each.claim}")})
    return [match for word in words for match in get_close_matches(word, known, n=3)]


def _weight(word: str, each: ShippedScenario) -> int:
    if word in each.name:
        return _IN_NAME
    if word in each.claim.lower():
        return _IN_CLAIM
    if word in f"{each.history} {each.source}".lower():
        return _IN_HEAD
    return _BELOW if word in each.text else 0


@lru_cache(maxsize=1)
def _scenarios() -> tuple[ShippedScenario, ...]:
    return tuple(_read(name, file.resolve()) for name, file in shipped().items())


def _read(name: str, file: Path) -> ShippedScenario:
    text = file.read_text(encoding="utf-8")
    data = yaml.safe_load(text)
    head = []
    for line in text.splitlines():
        if not line.startswith("#"):
            break
        head.append(line.lstrip("# "))
    history, _, source = " ".join(head).partition("Source:")
    version = data["cluster"].get("kafka", DEFAULT)
    behaviours = ", ".join(f"{key}={value}" for key, value in data.get("behaviours", {}).items())
    return ShippedScenario(
        name=name,
        kind="catalogue" if file.parent.name == "catalogue" else "example",
        claim=data["claim"],
        versions=f"Kafka {version}{f'; behaviours {behaviours}' if behaviours else ''}",
        history=history.strip(),
        source=source.strip(),
        file=file,
        text=text.lower(),
    )
