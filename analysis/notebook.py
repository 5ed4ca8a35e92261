"""Frames and figures of one run for a notebook, without Spark.

Latency over time, leaders and in-sync replicas, as in a report, but at once, of a run that fits in
memory. Every figure has units on its axes and shades the faults. A run is anything whose
``table(name)`` gives a trace table, as ``sim.run`` returns it. A drawing shows itself at the end of
a cell, with any backend of matplotlib.
"""

import io
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from analysis.pages.cells import rows_of
from analysis.report.fault_windows import FaultWindow, fault_windows
from analysis.report.figures.canvas import (
    BLUE,
    GREEN,
    GREY,
    LINES,
    ORANGE,
    RED,
    SHADE,
    STYLE,
    fault_labels,
    tick_ms,
)
from sim.units import MS, SECOND, Micros

__all__ = [
    "BLUE", "GREEN", "GREY", "LINES", "ORANGE", "RED",
    "Drawing", "faults", "latency", "leaders", "log_time", "records", "shaded", "style",
]  # fmt: skip

INTERNAL: Final = "__"
"""Prefix of the names of Kafka's own topics."""

FULL: Final = "#b7dfc3"
PART: Final = "#f0b65b"
NO_LEADER: Final = "#1f2937"


class Run(Protocol):
    """Port to a run."""

    def table(self, name: str) -> pd.DataFrame:
        """One trace table."""
        ...


class Drawing(Figure):
    """A figure with its own display in a notebook.

    Args:
        width: In inches.
        height: In inches.
    """

    def __init__(self, width: float = 10, height: float = 3.2) -> None:
        with style():
            super().__init__(figsize=(width, height), layout="constrained")

    def add_subplot(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - matplotlib's own
        """Axes in the style of all figures, as matplotlib's."""
        with style():
            return super().add_subplot(*args, **kwargs)

    def legend(self, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - matplotlib's own
        """A legend in the style of all figures, below them by default."""
        with style():
            return super().legend(*args, **{"loc": "outside lower center", **kwargs})

    def _repr_png_(self) -> bytes:
        out = io.BytesIO()
        with style():
            self.savefig(out, format="png", dpi=110)
        return out.getvalue()


def style() -> AbstractContextManager[None]:
    """The style of all figures, for a block."""
    return mpl.rc_context(STYLE)


def records(run: Run) -> pd.DataFrame:
    """Every record of a batch with an outcome at its producer, known or not.

    Returns:
        ``[producer, topic, partition, record, outcome, meant_us, told_us, latency_us]``; the
        outcome is of ``told_us``; the record was meant to be sent ``latency_us`` before.
    """
    batches = run.table("client_batches").explode("latency_us", ignore_index=True)
    batches = batches[batches["latency_us"].notna()]
    place = batches.groupby(["producer_index", "topic", "partition", "first_record"]).cumcount()
    waited = batches["latency_us"].astype("int64")
    return pd.DataFrame(
        {
            "producer": batches["producer"],
            "topic": batches["topic"],
            "partition": batches["partition"],
            "record": batches["first_record"] + place,
            "outcome": batches["outcome"],
            "meant_us": batches["t_us"] - waited,
            "told_us": batches["t_us"],
            "latency_us": waited,
        }
    ).reset_index(drop=True)


def faults(run: Run) -> tuple[FaultWindow, ...]:
    """The faults as injected, in order of their beginnings."""
    return fault_windows(run.table("faults"), _end_us(run))


def latency(run: Run, bin_us: Micros = SECOND // 4) -> Drawing:
    """Median, 99th percentile and largest latency of acknowledged records over time.

    Args:
        run: The run.
        bin_us: Width of a bin; a record belongs to the one in which it was meant to be sent.
    """
    acked = records(run)
    acked = acked[acked["outcome"] == "ok"]
    bins = acked.groupby(acked["meant_us"] // bin_us)["latency_us"]
    with style():
        figure, axes = _timed(run, 3.2)
        for column, values, colour in (
            ("max", bins.max(), "#b8bec8"),
            ("p99", bins.quantile(0.99), ORANGE),
            ("p50", bins.median(), BLUE),
        ):
            every = values.reindex(range(int(values.index.max()) + 1))
            seconds = (every.index.to_numpy() + 0.5) * bin_us / SECOND
            line = every.to_numpy(dtype=float) / MS
            axes.plot(seconds, np.maximum(line, 1 / MS), color=colour, label=column, linewidth=1.6)
        log_time(axes)
        axes.set_ylabel("latency")
        figure.legend(ncols=3)
    return figure


def leaders(run: Run, topics: Sequence[str] = ()) -> Drawing:
    """Leaders and in-sync replicas of each partition over time.

    Args:
        run: The run.
        topics: Names; all but Kafka's own by default.
    """
    changes = run.table("partition_changes")
    internal = changes["topic"].str.startswith(INTERNAL)
    chosen = changes[changes["topic"].isin(topics) if topics else ~internal]
    partitions = list(chosen.groupby(["topic", "partition"]))
    end = _end_us(run)
    with style():
        figure, axes = _timed(run, 1.3 + 0.34 * len(partitions))
        for place, (_, rows) in enumerate(partitions):
            _strip(axes, place, rows.sort_values("t_us", kind="stable"), end)
        names = [f"{rows['topic'].iloc[0]}-{rows['partition'].iloc[0]}" for _, rows in partitions]
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(len(names) - 0.4, -0.6)
        axes.grid(visible=False)
        kinds = {"all in sync": FULL, "some out of sync": PART, "no leader": NO_LEADER}
        figure.legend(
            handles=[Patch(color=colour, label=label) for label, colour in kinds.items()],
            ncols=3,
        )
    return figure


def log_time(axes: Axes) -> None:
    """Makes the vertical axis, in milliseconds, logarithmic, with ticks like ``10 ms``."""
    axes.set_yscale("log")
    axes.yaxis.set_major_formatter(FuncFormatter(tick_ms))


def shaded(axes: Axes, run: Run) -> None:
    """Shades the windows of the faults on a time axis in seconds, with their kinds above."""
    windows = faults(run)
    end = _end_us(run)
    for window in windows:
        axes.axvspan(
            window.from_us / SECOND, window.to_us / SECOND, color=SHADE, alpha=0.28, lw=0, zorder=0
        )
    for text, middle in fault_labels(windows, end):
        axes.annotate(
            text, (middle / SECOND, 1), xycoords=("data", "axes fraction"), xytext=(0, 3),
            textcoords="offset points", ha="center", fontsize=9, color="#8a5a00",
        )  # fmt: skip


def _timed(run: Run, height: float) -> tuple[Drawing, Axes]:
    figure = Drawing(height=height)
    axes = figure.add_subplot()
    shaded(axes, run)
    axes.set_xlim(0, max(1.0, _end_us(run) / SECOND))
    axes.set_xlabel("simulated time (s)")
    return figure, axes


def _end_us(run: Run) -> Micros:
    """The last instant in the tables of clients and faults."""
    tables = (run.table("client_batches"), run.table("faults"))
    return max((int(table["t_us"].max()) for table in tables if len(table)), default=0)


def _strip(axes: Axes, place: int, rows: pd.DataFrame, end: Micros) -> None:
    """One partition's life; a leader's broker id is written at its election."""
    states = rows_of(rows)
    before = -1
    ends = [*(int(row["t_us"]) for row in states[1:]), end]
    for row, until in zip(states, ends, strict=True):
        since = max(0, int(row["t_us"]))
        if until <= since:
            continue
        leader = int(row["leader"])
        members = len(str(row["in_sync"]).split(","))
        colour = FULL if members == len(str(row["replicas"]).split(",")) else PART
        if leader < 0:
            colour = NO_LEADER
        axes.barh(
            place,
            (until - since) / SECOND,
            left=since / SECOND,
            height=0.72,
            color=colour,
            zorder=2,
        )
        if leader not in (before, -1):
            axes.text(since / SECOND, place, f" {leader}", va="center", fontsize=9, zorder=3)
        before = leader
