"""``--vary KEY=A,B,C``: which configurations a sweep compares.

Values are separated by commas outside brackets and quotes. ``1..5`` is every whole number,
``0..100..25`` every 25th, ``1..64..x2`` each the double of the last; a unit may be behind both
ends (``5ms..25ms..5``). A mapping of names to settings is a bundle, whose key is only a name:
``--vary 'kind={safe: {acks: all, min.insync.replicas: 2}, fast: {acks: 1}}'`` has the values
``safe`` and ``fast``. What is quoted is taken as it is.
"""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from json import dumps
from math import prod
from typing import Final

from sim.errors import ScenarioError
from sim.scenario.text.problems import Problem, scenario_error
from sim.scenario.text.yaml import ReadError, read_value

RANGE_MAX: Final = 1_000
"""Values of one range."""

CONFIGURATIONS_MAX: Final = 10_000
"""Configurations of one sweep."""

_RANGE: Final = re.compile(
    r"(?P<low>\d+)(?P<unit>[A-Za-z/%]*)\.\.(?P<high>\d+)(?P<same>[A-Za-z/%]*)"
    r"(\.\.(?P<times>x?)(?P<step>\d+))?"
)
_OPEN: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


@dataclass(frozen=True, slots=True)
class VariedValue:
    """One value of what is varied."""

    label: str
    overrides: tuple[str, ...]
    """``KEY=VALUE`` each, as for ``--set``."""


@dataclass(frozen=True, slots=True)
class Variation:
    """A key and its values."""

    key: str
    choices: tuple[VariedValue, ...]


@dataclass(frozen=True, slots=True)
class Configuration:
    """One value of each key."""

    labels: tuple[tuple[str, str], ...]
    """Key and label, in the order in which the keys were given."""
    overrides: tuple[str, ...]

    @property
    def text(self) -> str:
        """In one line: ``acks=all, min.insync.replicas=2``."""
        return ", ".join(f"{key}={label}" for key, label in self.labels) or "as it is"


def variation(text: str) -> Variation:
    """The configurations of ``--vary``.

    Raises:
        ScenarioError: If it is not ``KEY=VALUES``, or a value cannot be read.
    """
    key, equals, values = text.partition("=")
    if not key.strip() or not equals or not values.strip():
        found = f"{text!r} varies nothing"
        raise _error(text, found, "KEY=VALUES, as in acks=0,1,all or linger.ms=0..100..25")
    return of_values(key.strip(), _bundle(values, text) or _split(values))


def of_values(key: str, values: Sequence[object] | Mapping[str, Mapping[str, object]]) -> Variation:
    """A key with its values, or a bundle's name with its settings.

    Args:
        key: Of the scenario, or any name for a bundle.
        values: Texts as on the command line, or plain values; for a bundle its names with what
            each sets.

    Raises:
        ScenarioError: If there is none, or one twice.
    """
    origin = f"--vary {key}"
    if isinstance(values, Mapping):
        choices = tuple(
            VariedValue(name, tuple(f"{inner}={_flow(value)}" for inner, value in settings.items()))
            for name, settings in values.items()
        )
    else:
        texts: list[str] = []
        for value in values:
            texts += _range(value, origin) if isinstance(value, str) else [_flow(value)]
        choices = tuple(VariedValue(_label(text), (f"{key}={text}",)) for text in texts)
    labels = [choice.label for choice in choices]
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if not labels or twice is not None:
        found = "no value" if twice is None else f"{twice} twice"
        raise _error(key, found, "values that differ, separated by commas")
    return Variation(key, choices)


def configurations(variations: Sequence[Variation]) -> tuple[Configuration, ...]:
    """Every combination, the last key changing fastest.

    Raises:
        ScenarioError: For a key that is varied twice, or too many of them.
    """
    keys = [variation.key for variation in variations]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        raise _error(twice, f"{twice} is varied twice", "each key once", "join its values")
    count = prod(len(variation.choices) for variation in variations)
    if count > CONFIGURATIONS_MAX:
        raise _error(
            ", ".join(keys), f"{count:,} configurations", f"at most {CONFIGURATIONS_MAX:,}"
        )
    return tuple(
        Configuration(
            tuple((key, choice.label) for key, choice in zip(keys, chosen, strict=True)),
            tuple(override for choice in chosen for override in choice.overrides),
        )
        for chosen in itertools.product(*(variation.choices for variation in variations))
    )


def _bundle(values: str, text: str) -> Mapping[str, Mapping[str, object]] | None:
    """The bundle that the values are, if they are one mapping of mappings."""
    if not values.strip().startswith("{") or len(_split(values)) > 1:
        return None
    try:
        data = read_value(values, f"--vary {text}").data
    except ReadError as error:
        raise scenario_error(error.origin, error.problem) from None
    if isinstance(data, dict) and data and all(isinstance(v, dict) for v in data.values()):
        return data
    return None


def _split(values: str) -> list[str]:
    """At commas outside brackets and quotes."""
    parts, depth, quote = [""], 0, ""
    for letter in values:
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "\"'":
            quote = letter
        depth += 0 if quote else _OPEN.get(letter, 0)
        if letter == "," and depth == 0 and not quote:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _range(text: str, origin: str) -> list[str]:
    match = _RANGE.fullmatch(text)
    if match is None:
        return [text]
    low, high, step = int(match["low"]), int(match["high"]), int(match["step"] or 1)
    if match["unit"] != match["same"] or high < low or step < (2 if match["times"] else 1):
        allowed = "LOW..HIGH, LOW..HIGH..STEP or LOW..HIGH..xFACTOR with one unit"
        raise _error(origin, f"{text!r} is no range", allowed, "quote it if it is none")
    found: list[int] = []
    value = low
    while value <= high:
        found.append(value)
        following = value * step if match["times"] else value + step
        if following == value or len(found) > RANGE_MAX:
            raise _error(origin, f"{text!r} has no end", f"at most {RANGE_MAX} values")
        value = following
    return [f"{number}{match['unit']}" for number in found]


def _label(text: str) -> str:
    """Without the quotes around it."""
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'"
    return text[1:-1] if quoted else text


def _flow(value: object) -> str:
    """A plain value in one line of YAML; JSON is that."""
    return dumps(value, ensure_ascii=False)


def _error(key: str, found: str, allowed: str, remedy: str = "") -> ScenarioError:
    return scenario_error(f"--vary {key}", Problem((), found, allowed, remedy))
