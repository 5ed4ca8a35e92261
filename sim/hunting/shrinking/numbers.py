"""Numbers of a scenario: how many, how much and how long; each can be halved.

Values of Kafka's settings are no numbers here: they are removed, or stay. Instants are: what
happens sooner makes a shorter run. Below its floor a number is small enough for a reader.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from sim.scenario.text.quantities import (
    QuantityError,
    parse_duration,
    parse_rate,
    parse_size,
    show_duration,
    show_rate,
    show_size,
)
from sim.units import MS, SECOND, Micros

Place: TypeAlias = tuple[str | int, ...]
"""Keys from the top of the data to a value."""

_OF_CLUSTER: Final = ("brokers", "controllers", "combined")
_OF_TOPICS: Final = ("partitions", "replication.factor")
_OF_CLIENTS: Final = ("count", "rate", "record.size", "key.count", "start", "stop", "processing")
_CLIENTS: Final = ("producers", "consumers", "processors")
_NOT_OF_FAULTS: Final = ("do", "name", "target", "directory", "broker", "offset", "before", "ppm")

_TIMES: Final = ("for", "at", "start", "stop")
"""Keys of which a second is short enough; of other times it is a millisecond."""


def numbers(data: Mapping[str, Any]) -> Iterator[Place]:
    """Places of all numbers that can be halved, the most telling first."""
    cluster = data.get("cluster")
    if isinstance(cluster, dict):
        for key in _OF_CLUSTER:
            yield from _with_racks(("cluster", key), cluster.get(key))
        yield from _with_racks(("cluster", "racks"), cluster.get("racks"))
        if isinstance(cluster.get("zookeeper"), dict):
            yield from _with_racks(
                ("cluster", "zookeeper", "servers"), cluster["zookeeper"].get("servers")
            )
    for name, topic in (data.get("topics") or {}).items():
        yield from (("topics", name, key) for key in _OF_TOPICS if key in (topic or {}))
    for kind in _CLIENTS:
        for number, client in enumerate(data.get(kind) or ()):
            yield from ((kind, number, key) for key in _OF_CLIENTS if key in client)
    for number, fault in enumerate(data.get("faults") or ()):
        for key, value in fault.items():
            is_number = not isinstance(value, bool) and isinstance(value, int | float | str)
            if is_number and key not in _NOT_OF_FAULTS:
                yield ("faults", number, key)
    yield ("run", "for")


def halved(place: Place, value: object) -> int | float | str | None:
    """Half of a number, in its own notation; ``None`` at its floor, or if it is no number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value // 2 if value > 1 else None
    if isinstance(value, float):
        return value / 2 if value >= 0.02 else None
    if not isinstance(value, str):
        return None
    floor: Micros = SECOND if place[-1] in _TIMES else MS
    for parse, show, least in (
        (parse_duration, show_duration, floor),
        (parse_rate, show_rate, 1),
        (parse_size, show_size, 1),
    ):
        try:
            half = parse(value) // 2
        except QuantityError:
            continue
        if parse is parse_duration:
            half -= half % (MS if half >= MS else 1)
        return show(half) if half >= least else None
    return None


def value_at(data: Any, place: Place) -> object:  # noqa: ANN401 - plain data
    """The value at a place.

    Raises:
        KeyError: If there is none.
    """
    for step in place:
        try:
            data = data[step]
        except (IndexError, TypeError):
            raise KeyError(step) from None
    found: object = data
    return found


def _with_racks(place: Place, value: object) -> Iterator[Place]:
    if isinstance(value, dict):
        yield from ((*place, rack) for rack in value)
    elif value is not None:
        yield place
