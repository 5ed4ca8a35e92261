"""Intervals of members' partitions in groups, and of the groups' rebalances.

A member has its partitions until it gives them up, takes over others, or its process ends. The
coordinator's view is in the table ``groups``.

Left out: members' partitions by the coordinator's record, which may still name a dead process.
"""

from typing import Final

import pandas as pd

from sim.units import Micros

MEMBER_COLUMNS: Final = ["group", "consumer", "from_us", "to_us", "count"]
OWNER_COLUMNS: Final = ["group", "topic", "partition", "consumer", "from_us", "to_us"]
REBALANCE_COLUMNS: Final = ["group", "from_us", "to_us", "generation"]

_ENDED: Final = ("crashed", "powered_off", "stopped")
_SETTLED: Final = ("Stable", "Empty", "Dead")


def memberships(
    assignments: pd.DataFrame, revocations: pd.DataFrame, states: pd.DataFrame, end_us: Micros
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Intervals within which a member has the same partitions, and those of each partition.

    Args:
        assignments: Trace table; consumers without a group are ignored.
        revocations: Trace table.
        states: Trace table ``node_states``.
        end_us: End of open intervals.

    Returns:
        ``[group, consumer, from_us, to_us, count]`` (count 0: an idle member) and
        ``[group, topic, partition, consumer, from_us, to_us]``, in order of time.
    """
    members: list[tuple[str, str, int, int, int]] = []
    owners: list[tuple[str, str, int, str, int, int]] = []
    groups = {
        str(c): str(g)
        for c, g in zip(assignments["consumer"], assignments["group"], strict=True)
        if g
    }
    held: dict[str, dict[str, int]] = {}
    since: dict[str, int] = {}

    def become(consumer: str, at: int, now: list[str] | None) -> None:
        """Closes an interval; ``None``: the process ended."""
        before = held.pop(consumer, None)
        group = groups[consumer]
        if before is not None:
            members.append((group, consumer, since[consumer], at, len(before)))
        kept = {} if before is None else before
        for partition, start in kept.items():
            if now is None or partition not in now:
                topic, _, number = partition.rpartition("-")
                owners.append((group, topic, int(number), consumer, start, at))
        if now is not None:
            held[consumer] = {partition: kept.get(partition, at) for partition in now}
            since[consumer] = at

    for at, consumer, kind, text in _events(assignments, revocations, states):
        if consumer not in groups:
            continue
        listed = text.split(",") if text else []
        if kind == "given up":
            listed = [p for p in held.get(consumer, {}) if p not in listed]
        become(consumer, at, None if kind == "ended" else listed)
    for consumer in list(held):
        become(consumer, max(end_us, since[consumer]), None)
    return (
        pd.DataFrame(members, columns=MEMBER_COLUMNS).sort_values(["group", "from_us", "consumer"]),
        pd.DataFrame(owners, columns=OWNER_COLUMNS).sort_values(
            ["group", "topic", "partition", "from_us"]
        ),
    )


def _events(
    assignments: pd.DataFrame, revocations: pd.DataFrame, states: pd.DataFrame
) -> list[tuple[int, str, str, str]]:
    """Instant, consumer, event and partitions, in order of time."""
    ended = states[states["state"].isin(_ENDED)]
    frames = [
        (assignments["t_us"], assignments["consumer"], "taken over", assignments["partitions"]),
        (revocations["t_us"], revocations["consumer"], "given up", revocations["partitions"]),
        (ended["t_us"], ended["node"], "ended", ended["state"]),
    ]
    found = [
        (int(at), str(consumer), kind, "" if kind == "ended" else str(text))
        for instants, consumers, kind, texts in frames
        for at, consumer, text in zip(instants, consumers, texts, strict=True)
    ]
    # At equal instants partitions are given up before others are taken over.
    order = {"ended": 0, "given up": 1, "taken over": 2}
    return sorted(found, key=lambda event: (event[0], order[event[2]], event[1]))


def rebalances(groups: pd.DataFrame, end_us: Micros) -> pd.DataFrame:
    """From each beginning of a rebalance to its end.

    Args:
        groups: Trace table.
        end_us: End of one that has not ended.

    Returns:
        ``[group, from_us, to_us, generation]``, the generation being the one it led to.
    """
    found: list[tuple[str, int, int, int]] = []
    begun: dict[str, int] = {}
    last: dict[str, int] = {}
    rows = groups.sort_values("t_us", kind="stable")
    for at, group, state, generation in zip(
        rows["t_us"], rows["group"], rows["state"], rows["generation"], strict=True
    ):
        name = str(group)
        last[name] = int(generation)
        if str(state) not in _SETTLED:
            begun.setdefault(name, int(at))
        elif name in begun:
            found.append((name, begun.pop(name), int(at), int(generation)))
    found += [(name, start, max(end_us, start), last[name]) for name, start in begun.items()]
    return pd.DataFrame(found, columns=REBALANCE_COLUMNS).sort_values(["group", "from_us"])
