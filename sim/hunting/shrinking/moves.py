"""Moves of a shrinker: one scenario to a smaller or rounder one, the largest steps first."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from sim.faults.fault import OneOf
from sim.hunting.shrinking.numbers import Place, halved, numbers, value_at
from sim.scenario.text.quantities import (
    QuantityError,
    parse_duration,
    parse_moment,
    show_duration,
)
from sim.units import MS, SECOND, Micros

Data: TypeAlias = dict[str, Any]
"""A scenario, as its file has it."""

GRAINS: Final[tuple[Micros, ...]] = tuple(
    step * unit
    for unit in (10 * SECOND, SECOND, 100 * MS, 10 * MS, MS, 100, 10, 1)
    for step in ((1,) if unit == 10 * SECOND else (5, 1))
)
"""Roundness of instants and durations, the roundest first."""

_PARTS: Final = (
    *("mirrors", "connectors", "processors", "consumers", "producers", "quotas", "acls"),
)
_TAILS: Final[tuple[Micros, ...]] = (SECOND, 5 * SECOND, 10 * SECOND)
_TIMES: Final = ("at", "for")


@dataclass(frozen=True, slots=True)
class Move:
    """One step."""

    words: str
    """Its effect, and the name under which it is remembered."""
    data: Data


Stage: TypeAlias = Callable[[Data], Iterator[Move]]
"""The moves of one kind from a scenario."""


def fewer_faults(data: Data) -> Iterator[Move]:
    """Without some faults: all, halves, quarters, ..., each alone."""
    faults = data.get("faults") or []
    size = len(faults)
    while size >= 1:
        for start in range(0, len(faults), size):
            left = [*faults[:start], *faults[start + size :]]
            if len(left) < len(faults):
                named = ", ".join(_short(each) for each in faults[start : start + size])
                yield Move(f"without {named}", {**data, "faults": left})
        size = size // 2


def fewer_parts(data: Data) -> Iterator[Move]:
    """Without clients, mirrors, quotas, topics, racks and hardware of its own."""
    if data.get("clusters") or data.get("mirrors"):
        yield Move("one cluster", _left_out(data, "clusters", "mirrors"))
    for kind in _PARTS:
        entries = data.get(kind) or []
        if len(entries) > 1:
            yield Move(f"no {kind}", _left_out(data, kind))
        for number in range(len(entries)):
            left = [*entries[:number], *entries[number + 1 :]]
            changed = {**data, kind: left} if left else _left_out(data, kind)
            yield Move(f"without {kind} {number}", changed)
    for name in data.get("topics") or {}:
        topics = {key: topic for key, topic in data["topics"].items() if key != name}
        yield Move(f"without topic {name}", {**data, "topics": topics})
    cluster = data.get("cluster") or {}
    for key in ("racks", "brokers", "controllers"):
        if isinstance(cluster.get(key), dict):
            total = sum(cluster[key].values())
            kept = {k: v for k, v in cluster.items() if k != key}
            named = "brokers" if key == "racks" else key
            yield Move(f"{key} in one place", {**data, "cluster": {**kept, named: total}})
    for key in ("combined",):
        if key in cluster:
            kept = {k: v for k, v in cluster.items() if k != key}
            yield Move(f"without {key}", {**data, "cluster": kept})


def fewer_settings(data: Data) -> Iterator[Move]:
    """Without settings and other keys off their default: all of a part, then each."""
    for place, target in _parts_with_keys(data):
        removable = [key for key in target if _is_optional(place, key)]
        if place[-1:] == ("config",) and len(removable) > 1:
            yield Move(f"no {_dotted(place)}", _replaced(data, place, {}))
        for key in removable:
            left = {name: value for name, value in target.items() if name != key}
            yield Move(f"default {_dotted((*place, key))}", _replaced(data, place, left))


def smaller_numbers(data: Data) -> Iterator[Move]:
    """Fewer servers with their replicas, half of everything that lasts, half of each number."""
    yield from _fewer_servers(data)
    halves = _scaled(data)
    if halves is not None:
        yield Move("everything in half the time", halves)
    yield from _trimmed(data)
    for place in numbers(data):
        value = value_at(data, place)
        half = halved(place, value)
        if half is not None:
            words = f"{_dotted(place)} {value} -> {half}"
            yield Move(words, _replaced(data, place, half))
        if isinstance(value, int) and not isinstance(value, bool) and value > 2:
            words = f"{_dotted(place)} {value} -> {value - 1}"
            yield Move(words, _replaced(data, place, value - 1))


def rounder_times(data: Data) -> Iterator[Move]:
    """Instants and durations in rounder numbers, the roundest first."""
    for number, fault in enumerate(data.get("faults") or ()):
        for key in _TIMES:
            place: Place = ("faults", number, key)
            for rounder in _rounder(fault.get(key)):
                words = f"{_dotted(place)} {fault[key]} -> {rounder}"
                yield Move(words, _replaced(data, place, rounder))


STAGES: Final[tuple[Stage, ...]] = (
    fewer_faults,
    fewer_parts,
    fewer_settings,
    smaller_numbers,
    rounder_times,
)
"""In their order: what takes most away first."""


def pinned(data: Data, hits: Sequence[Sequence[str]]) -> Data | None:
    """The same scenario with the instants that a seed has drawn; ``None`` if it has none of those.

    Args:
        data: A scenario.
        hits: Kind, beginning and end of each fault, in order, as a run had them.
    """
    faults = data.get("faults") or []
    if len(hits) != len(faults):
        return None
    changed = deepcopy(faults)
    for fault, hit in zip(changed, hits, strict=True):
        if fault.get("do") == OneOf.kind:
            chosen = [each for each in fault["of"] if each["do"] == hit[0]]
            if len(chosen) != 1:
                return None
            fault.pop("of")
            fault.update(chosen[0])
        if _instant(fault.get("at")) is None and hit[1].isdecimal():
            fault["at"] = show_duration(int(hit[1]))
    return {**data, "faults": changed} if changed != faults else None


# -- parts of moves --------------------------------------------------------------------------------


def _fewer_servers(data: Data) -> Iterator[Move]:
    cluster = data.get("cluster") or {}
    brokers = cluster.get("brokers")
    if not isinstance(brokers, int):
        return
    for count in dict.fromkeys((1, brokers // 2, brokers - 1)):
        if 1 <= count < brokers:
            topics = {
                name: {**topic, "replication.factor": min(count, factor)}
                if isinstance(factor := (topic or {}).get("replication.factor"), int)
                else topic
                for name, topic in (data.get("topics") or {}).items()
            }
            changed = {**data, "cluster": {**cluster, "brokers": count}, "topics": topics}
            yield Move(f"{count} brokers, and as many replicas", changed)


def _scaled(data: Data) -> Data | None:
    """Everything that has an instant or a duration in half the time; ``None`` if it is short."""
    changed = deepcopy(data)
    if (_instant(changed["run"].get("for")) or 0) < 2 * SECOND:
        return None
    entries = [changed["run"], *(changed.get("faults") or ())]
    for kind in ("producers", "consumers", "processors"):
        entries += changed.get(kind) or ()
    for entry in entries:
        for key in ("at", "for", "start", "stop"):
            length = _instant(entry.get(key))
            if length is not None and length >= 2 * MS:
                entry[key] = show_duration(length // 2 // MS * MS)
    return changed


def _trimmed(data: Data) -> Iterator[Move]:
    """A run that ends soon after the last thing that happens in it."""
    length = _instant(data["run"].get("for"))
    last = 0
    for fault in data.get("faults") or ():
        begin, lasts = _instant(fault.get("at")), _instant(fault.get("for"))
        if begin is None:
            return
        last = max(last, begin + (lasts or 0))
    for tail in (0, *_TAILS):
        end = -(-(last + tail) // SECOND) * SECOND
        if length is not None and 0 < end < length:
            changed = _replaced(data, ("run", "for"), show_duration(end))
            for number, producer in enumerate(changed.get("producers") or ()):
                stop = _instant(producer.get("stop"))
                if stop is not None and stop > end:
                    changed["producers"][number] = _left_out(producer, "stop")
            yield Move(f"run.for {show_duration(end)}", changed)


def _rounder(value: object) -> Iterator[str]:
    at = _instant(value)
    if not at:
        return
    own = next(grain for grain in GRAINS if at % grain == 0)
    for grain in GRAINS:
        if grain <= own:
            return
        for near in (at // grain * grain, -(-at // grain) * grain):
            # An instant that moves by more than itself is another one.
            if near and abs(near - at) * 2 <= at:
                yield show_duration(near)


def _instant(value: object) -> Micros | None:
    """A fixed instant or duration; ``None`` for a window, a relation, or nothing."""
    if not isinstance(value, str) or ".." in value:
        return None
    try:
        low, _ = parse_moment(value)
        parse_duration(value)
    except QuantityError:
        return None
    return low


def _parts_with_keys(data: Data) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    """Mappings whose keys may be left out."""
    cluster = data.get("cluster")
    if isinstance(cluster, dict):
        yield ("cluster",), cluster
        if isinstance(cluster.get("config"), dict):
            yield ("cluster", "config"), cluster["config"]
    for name, topic in (data.get("topics") or {}).items():
        if isinstance(topic, dict) and isinstance(topic.get("config"), dict):
            yield ("topics", name, "config"), topic["config"]
    for kind in ("producers", "consumers", "processors"):
        for number, client in enumerate(data.get(kind) or ()):
            yield (kind, number), client
            if isinstance(client.get("config"), dict):
                yield (kind, number, "config"), client["config"]
    if isinstance(data.get("behaviours"), dict):
        yield ("behaviours",), data["behaviours"]
    for number, fault in enumerate(data.get("faults") or ()):
        yield ("faults", number), fault
    yield ("run",), data["run"]


def _is_optional(place: Place, key: str) -> bool:
    if place == ("cluster",):
        return key not in ("brokers", "controllers", "racks", "zookeeper", "combined", "config")
    if place == ("run",):
        return key not in ("for", "seed", "then")
    if place[0] in ("producers", "consumers", "processors") and len(place) == 2:
        return key not in ("name", "topic", "topics", "group", "rate", "output", "config")
    if place[0] == "faults":
        return key not in ("at", "do", "target", "between", "message", "from", "for")
    return True


def _replaced(data: Data, place: Place, value: object) -> Data:
    changed = deepcopy(data)
    target: Any = value_at(changed, place[:-1])
    if value == {} and place[-1] in ("config", "behaviours"):
        del target[place[-1]]
    else:
        target[place[-1]] = value
    return changed


def _left_out(data: Mapping[str, Any], *keys: str) -> Data:
    return {key: value for key, value in data.items() if key not in keys}


def _dotted(place: Place) -> str:
    return ".".join(map(str, place))


def _short(fault: Mapping[str, Any]) -> str:
    return f"{fault.get('do')} at {fault.get('at')}"
