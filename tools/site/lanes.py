"""Lanes of a run's picture: what was in which state, from when to when.

The states are those of the report's timeline, from a run's facts instead of Spark's frames.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from sim.faults.registry import KINDS
from sim.units import SECOND, Micros
from tools.site.facts import Facts

MOST_PARTITIONS: Final = 4
MOST_SERVERS: Final = 8
MOST_FAULTS: Final = 7
MOST_GROUPS: Final = 2

LEVELS: Final = ("all in sync", "some out of sync", "below min.insync.replicas", "no leader")
"""States of a partition, from well to worst."""

DOWN: Final = "down"
"""State of a process that is not there."""

_PROCESS: Final = {
    "running": "up",
    "resumed": "up",
    "started": "starting",
    "paused": "paused",
    "crashed": DOWN,
    "powered_off": DOWN,
    "stopped": DOWN,
    "failed": DOWN,
}
_SETTLED: Final = ("Stable", "Empty")


class Span(NamedTuple):
    """A stretch of time in one state."""

    from_us: Micros
    to_us: Micros
    state: str
    """Name of its colour."""
    label: str = ""
    """Written where it begins, if there is room."""
    words: str = ""
    """Shown when the pointer rests on it."""


class Lane(NamedTuple):
    """One row: a fault, a server, a partition, a group."""

    name: str
    spans: tuple[Span, ...]
    outage: Span | None = None
    """Longest time in which producers of the partition waited and got no acknowledgement."""
    marks: tuple[tuple[Micros, str], ...] = ()
    """Truncations: when, and in words."""


class Track(NamedTuple):
    """Lanes of one kind."""

    name: str
    lanes: tuple[Lane, ...]
    omitted: int = 0


def tracks(facts: Facts) -> tuple[Track, ...]:
    """Tracks of a picture, from top to bottom; kinds in which nothing happened are left out."""
    found = (_faults(facts), _servers(facts), _controllers(facts), _partitions(facts))
    return tuple(track for track in (*found, _groups(facts)) if track.lanes)


def instant(at_us: Micros, end_us: Micros) -> str:
    """An instant in seconds, to a tenth of a second in a run of less than 200 s."""
    digits = 1 if end_us < 200 * SECOND else 0
    return f"{at_us / SECOND:.{digits}f} s"


def _faults(facts: Facts) -> Track:
    """Faults that began; those of one kind, from one instant to one other, share a lane."""
    end = facts["end_us"]
    alike: dict[tuple[str, Micros, Micros | None], list[Mapping[str, Any]]] = {}
    for fault in facts["faults"]:
        if fault["began_us"] is not None and fault["began_us"] <= end:
            key = (fault["kind"], fault["began_us"], fault["healed_us"])
            alike.setdefault(key, []).append(fault)
    lanes = []
    for (kind, began, healed), (fault, *others) in alike.items():
        lasts = KINDS[kind].span == "lasting"
        until = min(healed, end) if healed is not None else end if lasts else began
        words = f"{kind} of {fault['resolved'] or fault['target']}: {fault['effect']}"
        label = f"{kind} {fault['target']}".strip() + (f" and {len(others)} more" if others else "")
        lanes.append(Lane("", (Span(max(0, began), until, "fault", label, words),)))
    return Track("faults", *_first(lanes, MOST_FAULTS))


def _servers(facts: Facts) -> Track:
    changes: dict[str, list[tuple[Micros, str]]] = {}
    for at, node, state in facts["servers"]:
        changes.setdefault(node, []).append((at, _PROCESS.get(state, state)))
    lanes = []
    for node, states in changes.items():
        spans = tuple(
            Span(begin, end, state, "", f"{node} {state}")
            for begin, end, state in _stretches(states, facts["end_us"])
        )
        if any(span.state != "up" for span in spans):
            lanes.append(Lane(node, spans))
    return Track("servers", *_first(sorted(lanes, key=_by_number), MOST_SERVERS))


def _controllers(facts: Facts) -> Track:
    """Terms of the active controller, where there was more than one."""
    ended = {"crashed", "powered_off", "stopped"}
    events: list[tuple[Micros, str, int, bool]] = [
        (at, node, epoch, leads)
        for at, node, epoch, leads in facts["controllers"]
        if not node.startswith("zookeeper")
    ]
    events += [(at, node, -1, False) for at, node, state in facts["servers"] if state in ended]
    terms: list[tuple[Micros, str]] = []
    leader, newest = "", -1
    for at, node, epoch, leads in sorted(events, key=lambda event: event[0]):
        if leads and epoch >= newest:
            leader, newest = node, epoch
        elif not leads and node == leader and (epoch == -1 or epoch >= newest):
            leader = ""
        else:
            continue
        terms.append((at, leader))
    spans = tuple(
        Span(begin, end, "term" if node else LEVELS[3], node, f"active controller: {node or '-'}")
        for begin, end, node in _stretches(terms, facts["end_us"])
    )
    return Track("controller", (Lane("controller", spans),) if len(spans) > 1 else ())


def _partitions(facts: Facts) -> Track:
    changes: dict[str, list[list[Any]]] = {}
    for row in facts["partitions"]:
        if row[2] is None:  # the topic was deleted
            for name in [each for each in changes if each.rpartition("-")[0] == row[1][:-1]]:
                changes[name].append(row)
        else:
            changes.setdefault(row[1], []).append(row)
    lanes = [_partition(facts, name, rows) for name, rows in changes.items()]
    ranked = sorted(lanes, key=lambda lane: (*_calm(lane), *_by_number(lane)))
    worst = [lane for place, lane in enumerate(ranked) if not place or _is_troubled(lane)]
    of_users = [lane for lane in worst if not lane.name.startswith("__")]
    internal = [lane for lane in worst if lane.name.startswith("__")]
    shown = [*of_users[:MOST_PARTITIONS], *internal[:1]]
    return Track(
        "partitions", tuple(sorted(shown, key=_by_number)), max(0, len(worst) - len(shown))
    )


def _partition(facts: Facts, name: str, rows: Sequence[list[Any]]) -> Lane:
    end = facts["end_us"]
    least = facts["min_in_sync"].get(name, 0)
    states = [(row[0], _state(row, least)) for row in rows]
    spans = []
    before = None
    for begin, until, (level, leader, words) in _stretches(states, end):
        if level < 0:
            before = None
            continue
        label = str(leader) if leader >= 0 and leader != before else ""
        spans.append(Span(begin, until, LEVELS[level], label, f"{name}: {words}"))
        before = leader if leader >= 0 else before
    waited = facts["outages"].get(name)
    outage = None
    if waited and waited[1] >= SECOND:
        begin, until = waited[0], waited[0] + waited[1]
        words = f"{name}: no acknowledgement for {instant(waited[1], end)}"
        outage = Span(max(0, begin), min(until, end), "outage", "", words)
    marks = tuple(
        (at, f"{broker} truncated {name} from offset {begin} to {until}")
        for at, place, broker, begin, until in facts["truncations"]
        if place == name and at >= 0
    )
    return Lane(name, tuple(spans), outage, marks)


def _state(row: Sequence[Any], least: int) -> tuple[int, int, str]:
    """Level, leader and words of a partition's committed state; level -1 of a deleted topic."""
    _, _, leader, in_sync, replicas, unclean = row
    if leader is None:
        return -1, -1, ""
    sizes = f"ISR {in_sync} of {replicas}{', elected unclean' if unclean else ''}"
    if leader < 0:
        return 3, leader, f"no leader, {sizes}"
    level = 2 if in_sync < least else 1 if in_sync < replicas else 0
    return level, leader, f"leader {leader}, {sizes}, {LEVELS[level]}"


def _groups(facts: Facts) -> Track:
    changes: dict[str, list[tuple[Micros, tuple[str, str]]]] = {}
    for at, group, state, generation, members in facts["groups"]:
        kind = "settled" if state in _SETTLED else "rebalancing"
        words = f"{group}: {state}, generation {generation}, members {members}"
        changes.setdefault(group, []).append((at, (kind, words)))
    lanes = []
    for group, states in changes.items():
        spans = tuple(
            Span(begin, end, kind, "", words)
            for begin, end, (kind, words) in _stretches(states, facts["end_us"])
        )
        if sum(span.state == "rebalancing" for span in spans) > 1:
            lanes.append(Lane(group, spans))
    return Track("groups", *_first(sorted(lanes), MOST_GROUPS))


def _stretches(
    states: Iterable[tuple[Micros, Any]], end_us: Micros
) -> Iterator[tuple[Micros, Micros, Any]]:
    """From each change of state to the next, from simulated zero on; equal neighbours are one."""
    known: list[tuple[Micros, Any]] = []
    for at, state in sorted(states, key=lambda each: each[0]):
        if known and known[-1][0] == max(0, at):
            known.pop()
        if not known or known[-1][1] != state:
            known.append((max(0, at), state))
    for (begin, state), (end, _) in pairwise([*known, (end_us, None)]):
        if begin < end:
            yield begin, end, state


def _first(lanes: Sequence[Lane], most: int) -> tuple[tuple[Lane, ...], int]:
    return tuple(lanes[:most]), max(0, len(lanes) - most)


def _calm(lane: Lane) -> tuple[bool, int, int]:
    """Order of lanes: those of internal topics last, then the most troubled first."""
    trouble = sum(LEVELS.index(span.state) * (span.to_us - span.from_us) for span in lane.spans)
    waited = lane.outage.to_us - lane.outage.from_us if lane.outage else 0
    return lane.name.startswith("__"), -trouble - waited, -len(lane.spans)


def _is_troubled(lane: Lane) -> bool:
    return bool(lane.outage or lane.marks or any(span.state != LEVELS[0] for span in lane.spans))


def _by_number(lane: Lane) -> tuple[str, int]:
    """Names in the order of their numbers: broker-2 before broker-10."""
    name, _, number = lane.name.rpartition("-")
    return (name, int(number)) if number.isdigit() else (lane.name, 0)
