"""Outages of consumers: records of a partition are there, and nobody gets them."""

import re
from collections.abc import Iterator
from typing import Final

from sim.ids import server_name
from sim.scenario.settings.resolved import Config
from sim.suite.explain.run_facts import Row, Story
from sim.units import MS, Micros, show_duration, show_instant

_STABLE: Final = ("Stable", "Empty", "Dead")
"""States of a group in which nothing of it is on its way: ``ClassicGroupState``."""

_WORDS: Final = re.compile(r"[\w-]+")
"""Names in what a fault resolved to: broker-1 is no part of broker-10."""

_AWAY: Final = ("crashed", "powered_off", "stopped", "paused")


def dead_consumer(story: Story) -> Iterator[str]:
    """The consumer that had the partition, and was not at work when the outage began or soon after.

    Its partitions are read again once its group has noticed, or once it is back.
    """
    start, end = story.window
    last, _ = _around(story)
    if last is None:
        return
    for row in story.states:
        if row["node"] == last["consumer"] and row["state"] in _AWAY and row["t_us"] < end:
            back = _back(story, last["consumer"], row["t_us"])
            if back is None or back > start:
                yield f"{row['node']}, which read the partition, {_end(story, row)}"
                return


def ended_consumer(story: Story) -> Iterator[str]:
    """Other consumers of the partition's group that ended with an error in the outage.

    One of them would have read the partition.
    """
    start, end = story.window
    last, first = _around(story)
    reader = last or first
    if reader is None or not reader["group"]:
        return
    for row in story.facts.rows("consumer_errors"):
        had_it = last is not None and row["consumer"] == last["consumer"]
        if row["group"] == reader["group"] and start < row["t_us"] < end and not had_it:
            who = f"{row['consumer']} of group {row['group']}"
            yield f"{who} ended at {_at(row)}: poll() raised {row['error']}"


def silent_fetch(story: Story) -> Iterator[str]:
    """A fetch that a broker never answered: its consumer waits ``request.timeout.ms`` for it.

    What the broker's machine had acknowledged is not retransmitted, so nothing resets the
    connection, also after the machine has started again: ``NetworkClient.handleTimedOutRequests``.
    """
    start, end = story.window
    last, first = _around(story)
    if last is None or first is None or last["consumer"] != first["consumer"]:
        return
    config = _config(story, last["consumer"])
    timeout = 0 if config is None else config.micros("request.timeout.ms")
    broker = last["read_from"]
    if not 0 < timeout <= first["t_us"] - last["t_us"] or not _is_silent(story, broker):
        return
    led = next(
        (
            row["t_us"]
            for row in story.changes
            if start < row["t_us"] <= end and row["leader"] not in (-1, broker)
        ),
        None,
    )
    ready = "no other broker led meanwhile"
    if led is not None:
        ready = f"another leader had been there for {show_duration(end - led)} by then"
    yield (
        f"request.timeout.ms: {last['consumer']} had its last records from {server_name(broker)} "
        f"at {_at(last)}, and got no answer to its next fetch, for {timeout // MS:,} ms; only then "
        f"it looked for another leader, and read from {server_name(first['read_from'])} at "
        f"{_at(first)}: {ready}"
    )


def rebalance(story: Story) -> Iterator[str]:
    """Rebalances of the partition's groups within the outage, from first to last row of each."""
    start, end = story.window
    last, first = _around(story)
    groups = dict.fromkeys(row["group"] for row in (last, first) if row is not None)
    for group in groups:
        begun: Row | None = None
        rows = [row for row in story.facts.rows("groups") if row["group"] == group]
        for row in rows:
            if row["state"] not in _STABLE:
                begun = begun or row
                continue
            if begun is not None and begun["t_us"] < end and row["t_us"] > start:
                yield _rebalanced(group, begun, row)
            begun = None
        if begun is not None and begun["t_us"] < end:
            yield (
                f"group {group} rebalanced from {_at(begun)} on ({begun['reason']}), and did not "
                "become stable again"
            )


def _rebalanced(group: str, begun: Row, ended: Row) -> str:
    if ended["state"] != "Stable":
        return f"group {group} had no member from {_at(ended)} on ({begun['reason']})"
    return (
        f"group {group} rebalanced from {_at(begun)} to {_at(ended)} ({begun['reason']}): until "
        "then the partition had no consumer"
    )


def _around(story: Story) -> tuple[Row | None, Row | None]:
    """The last read of the partition before the outage, and the first one after it."""
    start, end = story.window
    last = first = None
    for row in story.facts.rows("reads", story.subject):
        if row["t_us"] <= start:
            last = row
        elif row["t_us"] >= end and first is None:
            first = row
    return last, first


def _config(story: Story, consumer: str) -> Config | None:
    """Settings of a consumer, by its printed name."""
    found = (c.config for c in story.facts.scenario.consumers if consumer in c.client_names)
    return next(found, None)


def _is_silent(story: Story, broker: int) -> bool:
    """True if a broker was away, or cut off by a fault, when its consumer waited."""
    start, end = story.window
    if story.is_down(broker, start, end):
        return True
    name = server_name(broker)
    return any(
        fault["took_effect"]
        and name in _WORDS.findall(fault["resolved"])
        and fault["began_us"] is not None
        and fault["began_us"] < end
        and (fault["healed_us"] is None or fault["healed_us"] > start)
        for fault in story.faults
    )


def _end(story: Story, row: Row) -> str:
    """End of a consumer's process in words, from its row of ``node_states``."""
    began = max(
        (
            state["t_us"]
            for state in story.states
            if state["node"] == row["node"]
            and state["state"] == "started"
            and state["t_us"] <= row["t_us"]
        ),
        default=0,
    )
    errors = [
        error
        for error in story.facts.rows("consumer_errors")
        if error["consumer"] == row["node"] and began <= error["t_us"] <= row["t_us"]
    ]
    if row["state"] == "stopped" and errors:
        return f"ended at {_at(errors[-1])}: poll() raised {errors[-1]['error']}"
    return f"{row['state'].replace('powered_off', 'lost power')} at {_at(row)}"


def _back(story: Story, node: str, since: Micros) -> Micros | None:
    """The instant at which a process that was away worked again."""
    found = (
        row["t_us"]
        for row in story.states
        if row["node"] == node and row["t_us"] > since and row["state"] not in _AWAY
    )
    return next(found, None)


def _at(row: Row) -> str:
    return show_instant(row["t_us"])
