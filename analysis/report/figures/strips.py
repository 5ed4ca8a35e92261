"""Figures with a row for each partition: replication, and gaps in service."""

from typing import Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.patches import Patch

from analysis.pages.cells import Picture, rows_of
from analysis.report.figures.canvas import BLUE, RED, finish, timed
from analysis.report.findings import Drawable
from sim.units import SECOND

_MOST_PARTITIONS: Final = 48
_INTERNAL: Final = "__"
_GAPS: Final = {
    "produce_gaps": ("no acknowledgement", RED, -0.2),
    "fetch_gaps": ("no delivery to a consumer", BLUE, 0.2),
}
_ISR_COLOURS: Final = {
    "all in sync": "#b7dfc3",
    "some out of sync": "#f0b65b",
    "under min.insync.replicas": "#d9534f",
    "no leader": "#1f2937",
}


def replication(drawable: Drawable) -> Picture:
    """ISR and leadership of every partition over time."""
    name, title = "replication", "In-sync replicas and leaders"
    frame = drawable.frames["partition_states"]
    frame = frame[(frame["to_us"] > 0) & (frame["from_us"] < drawable.end_us)]
    internal = frame["topic"].str.startswith(_INTERNAL)
    if not internal.all():
        frame = frame[~internal]
    partitions, left_out = _worst(drawable, frame)
    if not partitions:
        return Picture(name, title, "No data: no partition state was committed.", "")
    figure, axes = timed(drawable, height=1.4 + 0.24 * len(partitions))
    for place, (topic, partition) in enumerate(partitions):
        rows = frame[(frame["topic"] == topic) & (frame["partition"] == partition)]
        _strip(axes, place, rows)
    axes.set_yticks(range(len(partitions)), [f"{t}-{p}" for t, p in partitions], fontsize=9)
    axes.set_ylim(len(partitions) - 0.4, -0.6)
    axes.grid(visible=False)
    entries = [Patch(color=colour, label=label) for label, colour in _ISR_COLOURS.items()]
    note = (
        "Numbers are broker ids, written where a leader begins; states as the controller "
        "committed them."
    )
    if internal.any() and not internal.all():
        note += " Internal topics are in the table below."
    if left_out:
        note += f" {left_out} partitions that fared no worse are not shown."
    return Picture(name, title, note, finish(figure, axes, entries))


def _strip(axes: Axes, place: int, rows: pd.DataFrame) -> None:
    before = -1
    for row in rows_of(rows):
        leader = int(row["leader"])
        is_full = row["in_sync_count"] >= row["replica_count"]
        state = "all in sync" if is_full else "some out of sync"
        if row["is_under_min"]:
            state = "under min.insync.replicas"
        if leader < 0:
            state = "no leader"
        start = max(0, int(row["from_us"])) / SECOND
        length = int(row["to_us"]) / SECOND - start
        if length < 0:
            continue
        axes.barh(place, length, left=start, height=0.72, color=_ISR_COLOURS[state], zorder=2)
        if leader != before and leader >= 0:
            axes.text(start, place, f" {leader}", va="center", fontsize=8, zorder=3, clip_on=True)
            axes.plot([start, start], [place - 0.36, place + 0.36], color="#111827", lw=1, zorder=3)
        before = leader


def _worst(drawable: Drawable, frame: pd.DataFrame) -> tuple[list[tuple[str, int]], int]:
    """The partitions to show, in order of name, and the number of omitted ones, the calmest."""
    changes: dict[tuple[str, int], int] = {}
    for row in rows_of(frame):
        key = (str(row["topic"]), int(row["partition"]))
        changes[key] = changes.get(key, 0) + 1
    bad = {
        (str(row["topic"]), int(row["partition"])): (
            -int(row["leaderless_us"]),
            -int(row["under_min_us"]),
        )
        for row in rows_of(drawable.frames["replication"])
    }
    ranked = sorted(changes, key=lambda key: (bad.get(key, (0, 0)), -changes[key], key))
    return sorted(ranked[:_MOST_PARTITIONS]), max(0, len(ranked) - _MOST_PARTITIONS)


def unavailability(drawable: Drawable) -> Picture:
    """Gaps in acknowledgements and deliveries, per partition."""
    name, title = "unavailability", "Gaps in service"
    gaps = [
        (str(row["topic"]), int(row["partition"]), row["from_us"], row["gap_us"], colour, shift)
        for key, (_, colour, shift) in _GAPS.items()
        for row in rows_of(drawable.frames[key])
        if row["gap_us"] > SECOND
    ]
    keys = sorted({(topic, partition) for topic, partition, *_ in gaps})
    if not keys:
        return Picture(name, title, "No partition had a gap of more than one second.", "")
    shown = {key: place for place, key in enumerate(keys[:_MOST_PARTITIONS])}
    figure, axes = timed(drawable, height=1.4 + 0.3 * len(shown))
    for topic, partition, start, took, colour, shift in gaps:
        place = shown.get((topic, partition))
        if place is not None:
            axes.barh(
                place + shift, took / SECOND, left=start / SECOND, height=0.36, color=colour,
                zorder=2,
            )  # fmt: skip
    axes.set_yticks(range(len(shown)), [f"{topic}-{number}" for topic, number in shown], fontsize=9)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.grid(visible=False, axis="y")
    entries = [Patch(color=colour, label=label) for label, colour, _ in _GAPS.values()]
    note = "Longer than one second; partitions without such a gap are not shown."
    if len(keys) > len(shown):
        note += f" The first {len(shown)} of {len(keys)} partitions."
    return Picture(name, title, note, finish(figure, axes, entries))
