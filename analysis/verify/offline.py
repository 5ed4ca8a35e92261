"""Times without a leader in service: none was committed, or the committed one could not serve.

A broker is in service while its process runs and is not paused, and its registration is unfenced
since the process was started. Definitions as in the simulator's checker, found here from the
finished tables: intervals of leaders against intervals of brokers out of service.

Spark is not involved: these tables grow with what happens to servers and partitions, not with
records.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, TypeAlias

import pandas as pd

from sim.units import Micros

_PARTITION: Final = ["topic", "partition"]
_NAME: Final = re.compile(r"broker-(\d+)")
_DOWN: Final = ("crashed", "powered_off", "stopped", "failed")
_NOBODY: Final = -1
_DELETED: Final = -2
"""Leader of a partition whose topic is deleted: it does not count as offline."""
_LAST: Final = (1 << 31) - 1

Interval: TypeAlias = tuple[Micros, Micros]
Away: TypeAlias = Mapping[int, Sequence[Interval]]
Place: TypeAlias = tuple[str, int]
"""Topic and partition."""


def frames(
    small: Callable[[str], pd.DataFrame], card: Mapping[str, object], end_us: Micros
) -> dict[str, pd.DataFrame]:
    """Offline time of a run: ``offline``, rows of :func:`totals`, and ``offline_stretches``.

    Args:
        small: A trace table by its name.
        card: The run card, which has the end of the run.
        end_us: End of the run if the card does not have it.
    """
    measured_us = card.get("simulated_us")
    found = stretches(
        small("partition_changes"),
        small("topic_deletions"),
        small("node_states"),
        small("broker_states"),
        measured_us if isinstance(measured_us, int) else end_us,
    )
    return {"offline": totals(found), "offline_stretches": found}


def stretches(
    partition_changes: pd.DataFrame,
    topic_deletions: pd.DataFrame,
    node_states: pd.DataFrame,
    broker_states: pd.DataFrame,
    end_us: Micros,
) -> pd.DataFrame:
    """Stretches of the run in which partitions were offline, each of greatest length.

    Args:
        partition_changes: Trace table.
        topic_deletions: Trace table.
        node_states: Trace table.
        broker_states: Trace table.
        end_us: End of the run.

    Returns:
        ``[topic, partition, from_us, to_us]``, ordered.
    """
    away = out_of_service(node_states, broker_states, end_us)
    found = [
        (*place, *stretch)
        for place, led in sorted(_led(partition_changes, topic_deletions, end_us).items())
        for stretch in _joined(sorted(_offline(led, away, end_us)))
    ]
    kinds = {"topic": "object", "partition": "int32", "from_us": "int64", "to_us": "int64"}
    return pd.DataFrame(found, columns=list(kinds)).astype(kinds)


def totals(found: pd.DataFrame) -> pd.DataFrame:
    """For each partition that was offline, its longest stretch and the sum of all.

    Args:
        found: Rows of :func:`stretches`.

    Returns:
        ``[topic, partition, max_us, from_us, total_us]``, ordered; of equal stretches the earliest.
    """
    took = found.assign(max_us=found["to_us"] - found["from_us"])
    sums = took.groupby(_PARTITION, as_index=False).agg(total_us=("max_us", "sum"))
    longest = took.sort_values(["max_us", "from_us"], ascending=[False, True], kind="stable")
    firsts = longest.drop_duplicates(_PARTITION).drop(columns="to_us")
    merged = firsts.merge(sums, on=_PARTITION).sort_values(_PARTITION, ignore_index=True)
    return merged[[*_PARTITION, "max_us", "from_us", "total_us"]]


def out_of_service(
    node_states: pd.DataFrame, broker_states: pd.DataFrame, end_us: Micros
) -> dict[int, list[Interval]]:
    """Intervals in which each broker could not serve, in order of time; neighbours not joined."""
    events: defaultdict[int, list[tuple[Micros, str]]] = defaultdict(list)
    for at, node, state in _rows(node_states, "t_us", "node", "state"):
        broker = _NAME.fullmatch(node)
        if broker is not None:
            events[int(broker[1])].append((at, state))
    for at, number, state in _rows(broker_states, "t_us", "broker", "state"):
        if state != "controlled_shutdown":
            events[number].append((at, "unfenced" if state == "unfenced" else "fenced"))
    found = {}
    for number, states in events.items():
        # Of one instant, what became of the process comes first.
        states.sort(key=lambda event: event[0])
        found[number] = list(_not_serving(states, end_us))
    return found


def _not_serving(states: Sequence[tuple[Micros, str]], end_us: Micros) -> Iterator[Interval]:
    """Intervals between the states of a broker, in order, in which it does not serve."""
    runs, paused, unfenced = True, False, True
    for (at, state), (until, _) in pairwise([*states, (end_us, "")]):
        if state == "started":
            runs, paused, unfenced = True, False, False
        elif state in _DOWN:
            runs, paused = False, False
        elif state in ("paused", "resumed"):
            paused = state == "paused"
        elif state in ("unfenced", "fenced"):
            unfenced = state == "unfenced"
        if not (runs and unfenced) or paused:
            yield at, until


def _led(
    changes: pd.DataFrame, deletions: pd.DataFrame, end_us: Micros
) -> dict[Place, list[tuple[int, Micros, Micros]]]:
    """Leaders of each partition, as committed, each with its interval."""
    made: defaultdict[Place, list[tuple[Micros, int, int]]] = defaultdict(list)
    columns = (*_PARTITION, "t_us", "partition_epoch", "leader")
    for topic, partition, *change in _rows(changes, *columns):
        made[topic, partition].append(tuple(change))
    partitions: defaultdict[str, list[int]] = defaultdict(list)
    for topic, partition in made:
        partitions[topic].append(partition)
    for topic, at in _rows(deletions, "topic", "t_us"):
        for partition in partitions[topic]:
            made[topic, partition].append((at, _LAST, _DELETED))
    return {
        place: [
            (leader, at, until)
            for (at, _, leader), (until, *_) in pairwise([*sorted(steps), (end_us, 0, 0)])
        ]
        for place, steps in made.items()
    }


def _offline(
    led: Sequence[tuple[int, Micros, Micros]], away: Away, end_us: Micros
) -> Iterator[Interval]:
    """Intervals within the run without a leader in service; they may overlap."""
    for leader, since, until in led:
        for out, back in [(since, until)] if leader == _NOBODY else away.get(leader, ()):
            begin, end = max(since, out, 0), min(until, back, end_us)
            if begin < end:
                yield begin, end


def _joined(intervals: Sequence[Interval]) -> Iterator[Interval]:
    """Ordered intervals, those that touch or overlap as one."""
    begin: Micros | None = None
    end: Micros = 0
    for since, until in intervals:
        if begin is not None and since <= end:
            end = max(end, until)
            continue
        if begin is not None:
            yield begin, end
        begin, end = since, until
    if begin is not None:
        yield begin, end


def _rows(frame: pd.DataFrame, *columns: str) -> Iterator[tuple[Any, ...]]:
    return zip(*(frame[name].tolist() for name in columns), strict=True)
