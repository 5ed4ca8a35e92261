"""The figures of a report, as SVG text: units on every axis, faults shaded on every time axis.

A figure without data is a sentence with the reason, never an empty frame. Figures with a row for
each partition are in :mod:`analysis.report.figures.strips`.
"""

from collections.abc import Callable

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, StrMethodFormatter

from analysis.pages.cells import Picture, short
from analysis.report.figures import strips
from analysis.report.figures.canvas import (
    BLUE,
    DASHES,
    GREY,
    LINES,
    ORANGE,
    RED,
    STYLE,
    finish,
    line,
    seconds_of,
    shade,
    svg_of,
    tick_ms,
    time_axis,
    timed,
)
from analysis.report.figures.gauges import gauges
from analysis.report.figures.groups import groups
from analysis.report.findings import Drawable
from analysis.report.latency import STAGES
from sim.units import MS, SECOND

_NOTHING_US = 0.5
"""Begin of the logarithmic axis of durations; a bar of 0 us has no length there."""


def draw(drawable: Drawable) -> tuple[Picture, ...]:
    """All figures, in the order of the page."""
    painters: tuple[Callable[[Drawable], Picture], ...] = (
        produce_latency,
        outcomes,
        stages,
        end_to_end_latency,
        latency_spread,
        strips.replication,
        gauges,
        strips.unavailability,
        groups,
        lag,
        load,
    )
    with mpl.rc_context(STYLE):
        return tuple(painter(drawable) for painter in painters)


def produce_latency(drawable: Drawable) -> Picture:
    """Percentiles of produce latency over time."""
    return _percentiles(
        drawable,
        "produce_latency",
        "Produce latency",
        "From the instant a record was meant to be sent to its acknowledgement, placed at the "
        "former. Logarithmic scale.",
        "no record was acknowledged",
    )


def end_to_end_latency(drawable: Drawable) -> Picture:
    """Percentiles of end-to-end latency over time."""
    return _percentiles(
        drawable,
        "end_to_end_latency",
        "End-to-end latency",
        "From the instant a record was meant to be sent to the poll that returned it to a "
        "consumer, by the former. Logarithmic scale.",
        "no consumer read a record",
    )


def _percentiles(drawable: Drawable, name: str, title: str, note: str, reason: str) -> Picture:
    frame = drawable.frames[f"{name}_over_time"]
    if frame.empty:
        return Picture(name, title, f"No data: {reason}.", "")
    figure, axes = timed(drawable)
    seconds = seconds_of(drawable, frame)
    for column, colour in (("max", "#b8bec8"), ("p99", ORANGE), ("p50", BLUE)):
        values = frame[column].clip(lower=1).to_numpy() / MS
        line(axes, seconds, values, drawable, colour=colour, label=column)
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(tick_ms))
    axes.set_ylabel("latency")
    return Picture(name, title, note, finish(figure, axes))


def outcomes(drawable: Drawable) -> Picture:
    """Records acknowledged, failed and unknown per second."""
    name, title = "outcomes", "Acknowledgements"
    frame = drawable.frames["outcomes"]
    if frame.empty:
        return Picture(name, title, "No data: no producer reported an outcome.", "")
    width = drawable.width_us // SECOND
    bins = np.arange(int(frame["bin"].min()), int(frame["bin"].max()) + 1)
    figure, axes = timed(drawable)
    kinds = (
        ("ok", "acknowledged", BLUE),
        ("failed", "failed", RED),
        ("unknown", "unknown", ORANGE),
    )
    for outcome, label, colour in kinds:
        rows = frame[frame["outcome"] == outcome].set_index("bin")["records"]
        if not rows.empty:
            rates = rows.reindex(bins, fill_value=0).to_numpy() / width
            edges = np.append(bins, bins[-1] + 1) * width
            axes.stairs(rates, edges, color=colour, label=label, linewidth=1.6)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_ylabel("records per second")
    note = "Records by the instant at which their producers had the outcome."
    return Picture(name, title, note, finish(figure, axes))


def stages(drawable: Drawable) -> Picture:
    """Latency of acknowledged batches by stage."""
    name, title = "stages", "Where the time goes"
    frame = drawable.frames["stages"]
    if frame.empty:
        traced = drawable.is_traced_in_detail
        reason = "no acknowledged batch has a traced request" if traced else "requests not traced"
        return Picture(name, title, f"No data: {reason}.", "")
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    axes = figure.add_subplot()
    places = frame["stage"].to_numpy()
    for shift, column, colour in ((-0.27, "p50", BLUE), (0, "mean", GREY), (0.27, "p99", ORANGE)):
        values = frame[column].clip(lower=_NOTHING_US).to_numpy() / MS
        bars = axes.barh(places + shift, values, height=0.25, color=colour, label=column)
        texts = [short(value) for value in frame[column]]
        axes.bar_label(bars, texts, padding=3, fontsize=9, color="#374151")
    axes.set_yticks(places, [STAGES[place][0] for place in places])
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(tick_ms))
    axes.margins(x=0.08)
    axes.set_xlim(left=_NOTHING_US / MS)
    axes.grid(visible=False, axis="y")
    axes.set_xlabel("time spent by a batch")
    axes.legend(loc="lower right")
    note = (
        "Acknowledged batches. The stages follow one another and their means add up; the time "
        "records waited for their batch is not in them. Logarithmic scale."
    )
    return Picture(name, title, note, svg_of(figure))


def latency_spread(drawable: Drawable) -> Picture:
    """Share of records slower than a given latency."""
    name, title = "latency_spread", "Share of records slower than a given latency"
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    axes = figure.add_subplot()
    drawn = False
    curves = (("produce", BLUE), ("end_to_end", ORANGE))
    for key, colour in curves:
        frame = drawable.frames[f"{key}_latency_spread"]
        if not frame.empty:
            slower = 1 - frame["records"].cumsum().to_numpy() / frame["records"].sum()
            shown = slower > 0
            values = frame["top_us"].clip(lower=1).to_numpy() / MS
            if shown.any():
                drawn = True
                label = key.replace("_", " ")
                axes.plot(values[shown], slower[shown], color=colour, label=label, linewidth=1.8)
    if not drawn:
        return Picture(name, title, "No data: too few records to compare.", "")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.xaxis.set_major_formatter(FuncFormatter(tick_ms))
    axes.yaxis.set_major_formatter(FuncFormatter(_tick_share))
    axes.set_xlabel("latency")
    axes.set_ylabel("share of records slower")
    axes.legend(loc="upper right")
    return Picture(name, title, "Both scales are logarithmic.", svg_of(figure))


def lag(drawable: Drawable) -> Picture:
    """Consumer lag per group."""
    name, title = "lag", "Consumer lag"
    frame = drawable.frames["lag"]
    if frame.empty:
        return Picture(name, title, "No data: the scenario has no consumer group.", "")
    figure, axes = timed(drawable)
    for place, (group, rows) in enumerate(frame.groupby("group")):
        colour, dash = LINES[place % len(LINES)], DASHES[place // len(LINES) % 3]
        values = rows["lag"].to_numpy()
        seconds = seconds_of(drawable, rows)
        line(axes, seconds, values, drawable, colour=colour, dash=dash, label=str(group))
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.set_ylabel("records not yet read")
    note = (
        "High watermark minus position, over all partitions of the group (Kafka's records-lag of "
        "each, added up), sampled each second."
    )
    return Picture(name, title, note, finish(figure, axes))


def load(drawable: Drawable) -> Picture:
    """Busy shares of request handlers, network threads and disks."""
    name, title = "load", "Load of the servers"
    frame = drawable.frames["load"]
    if frame.empty:
        return Picture(name, title, "No data: no load of a server was traced.", "")
    panels = (
        ("request_handlers", "request handlers"),
        ("network_threads", "network threads"),
        ("disk", "busiest disk"),
    )
    figure = Figure(figsize=(11, 6.6), layout="constrained")
    every = figure.subplots(len(panels), 1, sharex=True)
    for axes, (column, label) in zip(every, panels, strict=True):
        shade(axes, drawable.faults, drawable, named=axes is every[0])
        for place, (node, rows) in enumerate(frame.groupby("node")):
            colour, dash = LINES[place % len(LINES)], DASHES[place // len(LINES) % 3]
            values = rows[column].to_numpy() * 100
            seconds = seconds_of(drawable, rows)
            line(axes, seconds, values, drawable, colour=colour, dash=dash, label=str(node))
        axes.set_ylim(bottom=0)
        axes.set_ylabel(f"{label}\nbusy (%)")
    time_axis(every[-1], drawable)
    handles, labels = every[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=min(8, len(labels)))
    note = "Share of time that threads and disks were busy; a stopped server has no line."
    return Picture(name, title, note, svg_of(figure))


def _tick_share(share: float, _: float | None = None) -> str:
    """A share as a percentage without needless zeros: ``0.01%``."""
    return f"{share * 100:.6f}".rstrip("0").rstrip(".") + "%"
