"""The figure of consumer groups: partitions by owner, members by what they have, rebalances."""

from typing import Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.pages.cells import Picture, rows_of
from analysis.report.figures.canvas import LINES, finish, shade, time_axis
from analysis.report.findings import Drawable
from sim.units import SECOND

_MOST_GROUPS: Final = 3
_MOST_ROWS: Final = 32
_IDLE: Final = "#d1d5db"
_REBALANCE: Final = "#9ca3af"


def groups(drawable: Drawable) -> Picture:
    """Partitions of each group by owner over time, and idle members."""
    name, title = "groups", "Consumer groups"
    members, owners = drawable.frames["group_members"], drawable.frames["group_owners"]
    names = sorted(members["group"].unique())
    if not names:
        return Picture(name, title, "No data: no consumer group was assigned anything.", "")
    shown = names[:_MOST_GROUPS]
    rows = [
        (len(_partitions(owners, group)[:_MOST_ROWS]), len(_consumers(members, group)[:_MOST_ROWS]))
        for group in shown
    ]
    ratios = [max(1, count) for pair in rows for count in pair]
    figure = Figure(figsize=(11, 1.4 + 0.9 * len(shown) + 0.2 * sum(ratios)), layout="constrained")
    every = figure.subplots(
        2 * len(shown), 1, sharex=True, squeeze=False, gridspec_kw={"height_ratios": ratios}
    )
    entries: list[Patch] = []
    for place, group in enumerate(shown):
        upper, lower = every[2 * place][0], every[2 * place + 1][0]
        colours = _colours(_consumers(members, group))
        _draw_owners(upper, owners[owners["group"] == group], colours)
        _draw_members(lower, members[members["group"] == group], colours)
        upper.set_title(f"{group}: partitions by owner", loc="left", fontsize=11, pad=16)
        lower.set_title(f"{group}: members, and how many partitions each has", loc="left",
                        fontsize=11)  # fmt: skip
        for axes in (upper, lower):
            _draw_rebalances(axes, drawable.frames["rebalances"], group)
            shade(axes, drawable.faults, drawable, named=axes is every[0][0])
    for axes in every[:, 0]:
        time_axis(axes, drawable)
        axes.grid(visible=False)
        if axes is not every[-1][0]:
            axes.set_xlabel("")
    entries = [
        Patch(color=_IDLE, label="idle member"),
        Patch(facecolor="none", edgecolor=_REBALANCE, hatch="////", label="rebalance"),
    ]
    note = (
        "A partition's bar has the colour of the member that has it; without one, no member "
        "reads it. A member without partitions waits to take over."
    )
    if len(names) > len(shown):
        note += f" The first {len(shown)} of {len(names)} groups."
    if any(
        len(_partitions(owners, group)) > _MOST_ROWS or len(_consumers(members, group)) > _MOST_ROWS
        for group in shown
    ):
        note += f" The first {_MOST_ROWS} rows of each."
    return Picture(name, title, note, finish(figure, every[-1][0], entries))


def _partitions(owners: pd.DataFrame, group: str) -> list[tuple[str, int]]:
    rows = owners[owners["group"] == group]
    return sorted({(str(t), int(p)) for t, p in zip(rows["topic"], rows["partition"], strict=True)})


def _consumers(members: pd.DataFrame, group: str) -> list[str]:
    return sorted({str(c) for c in members[members["group"] == group]["consumer"]})


def _colours(consumers: list[str]) -> dict[str, str]:
    return {consumer: LINES[place % len(LINES)] for place, consumer in enumerate(consumers)}


def _draw_owners(axes: Axes, rows: pd.DataFrame, colours: dict[str, str]) -> None:
    places = {
        key: place
        for place, key in enumerate(_partitions(rows, str(rows["group"].iloc[0]))[:_MOST_ROWS])
    } if len(rows) else {}  # fmt: skip
    for row in rows_of(rows):
        place = places.get((str(row["topic"]), int(row["partition"])))
        if place is not None:
            start = max(0, int(row["from_us"])) / SECOND
            took = int(row["to_us"]) / SECOND - start
            axes.barh(
                place, took, left=start, height=0.8, color=colours[str(row["consumer"])], zorder=2
            )
    axes.set_yticks(range(len(places)), [f"{t}-{p}" for t, p in places], fontsize=8)
    axes.set_ylim(max(len(places), 1) - 0.4, -0.6)


def _draw_members(axes: Axes, rows: pd.DataFrame, colours: dict[str, str]) -> None:
    names = sorted(colours)[:_MOST_ROWS]
    places = {name: place for place, name in enumerate(names)}
    for row in rows_of(rows):
        place = places.get(str(row["consumer"]))
        if place is None:
            continue
        count = int(row["count"])
        start = max(0, int(row["from_us"])) / SECOND
        took = int(row["to_us"]) / SECOND - start
        colour = colours[str(row["consumer"])] if count else _IDLE
        axes.barh(place, took, left=start, height=0.8, color=colour, zorder=2)
        if count:
            axes.text(start, place, f" {count}", va="center", fontsize=8, color="white",
                      zorder=4, clip_on=True)  # fmt: skip
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(max(len(names), 1) - 0.4, -0.6)


def _draw_rebalances(axes: Axes, rows: pd.DataFrame, group: str) -> None:
    for row in rows_of(rows[rows["group"] == group]):
        start = max(0, int(row["from_us"])) / SECOND
        end = max(start, int(row["to_us"]) / SECOND)
        axes.axvspan(
            start, end, facecolor="none", edgecolor=_REBALANCE, hatch="////", lw=0.6, zorder=3
        )
