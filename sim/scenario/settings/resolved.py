"""Kafka settings of one node or topic, resolved: every default filled in.

Values keep Kafka's own units; the accessors turn them into ours.
"""

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from sim.units import HOUR, MINUTE, MS, NEVER, SECOND, Bytes, Micros

SettingValue: TypeAlias = int | float | bool | str | None
"""A Kafka setting's value: lists are kept as Kafka writes them, joined by commas."""

_TIME_UNITS: Final[tuple[tuple[str, Micros], ...]] = (
    (".ms", MS),
    ("_ms", MS),
    (".seconds", SECOND),
    (".minutes", MINUTE),
    (".hours", HOUR),
)


class Config(Mapping[str, SettingValue]):
    """Settings by Kafka's dotted names; those that the version lacks are read, but not listed.

    Every accessor raises ``KeyError`` for a name the scope does not have and ``TypeError`` for a
    value of another type: both are defects of the caller, not of the scenario.
    """

    __slots__ = ("_missing", "_values", "version")

    def __init__(
        self,
        values: Mapping[str, SettingValue],
        version: str = "",
        missing: Mapping[str, SettingValue] | None = None,
    ) -> None:
        self.version = version
        """Kafka's version whose settings they are."""
        self._missing = missing or {}
        self._values = values

    def __getitem__(self, name: str) -> SettingValue:
        values = self._values
        return values[name] if name in values else self._missing[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Config({self._values!r})"

    def changed(self, values: Mapping[str, SettingValue]) -> "Config":
        """These settings with others in their place."""
        return Config({**self, **values}, self.version, self._missing)

    def has(self, name: str) -> bool:
        """True if the version has the setting; one that it lacks is what the version did."""
        return name in self._values

    def number(self, name: str) -> int:
        """A whole number in Kafka's own unit."""
        value = self[name]
        if type(value) is not int:
            raise TypeError(f"{name} is {value!r}, not a whole number")
        return value

    def real(self, name: str) -> float:
        """A number that need not be whole."""
        value = self[name]
        if type(value) is int:
            return float(value)
        if type(value) is not float:
            raise TypeError(f"{name} is {value!r}, not a number")
        return value

    def optional_number(self, name: str) -> int | None:
        """A whole number in Kafka's own unit; ``None`` where Kafka's value is null."""
        return None if self[name] is None else self.number(name)

    def micros(self, name: str) -> Micros:
        """A duration in microseconds, by the unit in the name; at most NEVER."""
        for suffix, unit in _TIME_UNITS:
            if name.endswith(suffix):
                return min(self.number(name) * unit, NEVER)
        raise TypeError(f"{name} does not name a duration")

    def size(self, name: str) -> Bytes:
        """A size in bytes."""
        return self.number(name)

    def flag(self, name: str) -> bool:
        """A boolean."""
        value = self[name]
        if type(value) is not bool:
            raise TypeError(f"{name} is {value!r}, not true or false")
        return value

    def text(self, name: str) -> str:
        """A string; empty where Kafka's value is null."""
        value = self[name]
        if value is None:
            return ""
        if type(value) is not str:
            raise TypeError(f"{name} is {value!r}, not a text")
        return value

    def words(self, name: str) -> tuple[str, ...]:
        """A list that Kafka writes joined by commas."""
        return tuple(word for word in self.text(name).split(",") if word)
