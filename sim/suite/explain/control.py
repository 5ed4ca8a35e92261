"""Active controllers of a cluster over time, and the brokers whose sessions they ended.

Source: the trace tables ``quorum`` (KRaft) or ``controllers`` (ZooKeeper), ``broker_states`` and
``node_states``.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from sim.ids import server_name
from sim.suite.explain.run_facts import Row, RunFacts
from sim.units import Micros

_DOWN: Final = ("crashed", "powered_off", "stopped", "paused")
"""States in which a process decides nothing."""

_SESSION_ENDS: Final = ("fenced", "unregistered")
"""Record that a controller commits when a broker's session ends, in KRaft and with ZooKeeper."""


class Reign(NamedTuple):
    """A stretch of time with an active controller."""

    from_us: Micros
    to_us: Micros
    name: str


def reigns(facts: RunFacts) -> list[Reign]:
    """Active controllers in order of time."""
    found: list[Reign] = []
    name, since = "", 0
    for at, who, is_active in _steps(facts):
        if is_active and who != name:
            if name:
                found.append(Reign(since, at, name))
            name, since = who, at
        elif not is_active and who == name:
            found.append(Reign(since, at, name))
            name = ""
    if name:
        found.append(Reign(since, facts.end_us, name))
    return found


def ungoverned(facts: RunFacts, low: Micros, high: Micros) -> list[tuple[Micros, Micros]]:
    """Stretches that overlap [low, high) and have no active controller."""
    found: list[tuple[Micros, Micros]] = []
    free_from: Micros = -1 << 62
    for reign in [*reigns(facts), Reign(facts.end_us, facts.end_us, "")]:
        if free_from < reign.from_us and free_from < high and reign.from_us > low:
            found.append((free_from, reign.from_us))
        free_from = reign.to_us
    return [gap for gap in found if gap[0] > -1 << 62]


def down_at(facts: RunFacts, at: Micros) -> list[str]:
    """Servers that could be the active controller and are down at an instant."""
    state = dict.fromkeys(_electors(facts), "")
    for row in facts.rows("node_states"):
        if row["t_us"] <= at and row["node"] in state:
            state[row["node"]] = row["state"]
    return [name for name, last in state.items() if last in _DOWN]


def session_end(facts: RunFacts, broker: int, low: Micros, high: Micros) -> Row | None:
    """The row with which a controller gave a broker up because it had not heard of it."""
    rows = [row for row in facts.rows("broker_states") if row["broker"] == broker]
    # A new incarnation that registers ends the session of the former one: that is no time-out.
    back = [row["t_us"] for row in rows if row["state"] == "registered"]
    for row in rows:
        is_end = row["state"] in _SESSION_ENDS and low <= row["t_us"] <= high
        if is_end and row["t_us"] not in back:
            return row
    return None


def _electors(facts: RunFacts) -> list[str]:
    if facts.scenario.cluster.zookeeper is not None:
        return [broker.name for broker in facts.scenario.cluster.brokers]
    return [server.name for server in facts.scenario.cluster.controllers]


def _steps(facts: RunFacts) -> Iterator[tuple[Micros, str, bool]]:
    """Each instant at which a server became the active controller, or could be it no longer."""
    steps: list[tuple[Micros, int, str, bool]] = []
    names = _electors(facts)
    for row in facts.rows("quorum"):
        name = server_name(row["node"])
        if name in names:
            steps.append((row["t_us"], 1, name, row["role"] == "leader"))
    steps += [
        (row["t_us"], 1, server_name(row["broker"]), row["state"] == "loaded")
        for row in facts.rows("controllers")
        if row["state"] != "elected"
    ]
    steps += [
        (row["t_us"], 0, row["node"], False)
        for row in facts.rows("node_states")
        if row["node"] in names and row["state"] in _DOWN
    ]
    steps.sort(key=lambda step: step[:2])
    for at, _, name, is_active in steps:
        yield at, name, is_active
