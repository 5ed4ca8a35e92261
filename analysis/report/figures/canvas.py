"""Common parts of all figures: style, time axes with shaded faults, and SVG as text.

Names from scenario files are drawn as plain text: matplotlib's formulas are off.
"""

import io
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from numpy.typing import NDArray

from analysis.pages.cells import short
from analysis.report.fault_windows import FaultWindow
from analysis.report.findings import Drawable
from sim.units import MS, SECOND, Micros

Reals = NDArray[np.float64]

BLUE: Final = "#1f6fb4"
ORANGE: Final = "#d9730d"
RED: Final = "#c02626"
GREEN: Final = "#2f8f4e"
GREY: Final = "#6b7280"
SHADE: Final = "#f2c14e"

LINES: Final = (BLUE, ORANGE, GREEN, "#7c4bb5", "#0f8b8d", "#b0368c", "#8a6d1d", "#4b5563")
_LETTER: Final = 0.0085
"""Width of a letter of a fault's label, as a share of the time axis."""

DASHES: Final = ("-", "--", ":")
STYLE: Final[dict[Any, Any]] = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "grid.color": "#e5e7eb",
    "axes.axisbelow": True,
    "legend.frameon": False,
    "svg.fonttype": "path",
    "svg.hashsalt": "logquake",
    "text.parse_math": False,
    "axes.unicode_minus": False,
}


def timed(drawable: Drawable, height: float = 3.2) -> tuple[Figure, Axes]:
    """A figure of the page's width with one time axis, faults shaded."""
    figure = Figure(figsize=(11, height), layout="constrained")
    axes = figure.add_subplot()
    shade(axes, drawable.faults, drawable, named=True)
    time_axis(axes, drawable)
    return figure, axes


def time_axis(axes: Axes, drawable: Drawable) -> None:
    """From the workload's beginning to the end of the run."""
    axes.set_xlim(0, max(1.0, drawable.end_us / SECOND))
    axes.set_xlabel("simulated time (s)")


def shade(axes: Axes, faults: tuple[FaultWindow, ...], drawable: Drawable, *, named: bool) -> None:
    """Each fault's window with its number above, and its kind where it fits."""
    shown = [fault for fault in faults if fault.from_us <= drawable.end_us]
    for fault in shown:
        start, end = fault.from_us / SECOND, fault.to_us / SECOND
        axes.axvspan(start, max(end, start), color=SHADE, alpha=0.28, lw=0, zorder=0)
        axes.axvline(start, color=SHADE, lw=1.2, zorder=0)
    if not named:
        return
    for text, middle in fault_labels(shown, drawable.end_us):
        axes.annotate(
            text, (middle / SECOND, 1), xycoords=("data", "axes fraction"),
            xytext=(0, 3), textcoords="offset points", ha="center", fontsize=9,
            color="#8a5a00", annotation_clip=True,
        )  # fmt: skip


def fault_labels(faults: Sequence[FaultWindow], end_us: Micros) -> list[tuple[str, float]]:
    """Labels above windows, with the instants they are centred on, in order of time.

    A label has the fault's kind unless it would run into a neighbour's: the number alone then, and
    no label where even that would.
    """
    middle_of = {f: (max(f.from_us, 0) + min(f.to_us, end_us)) / 2 for f in faults}
    ordered = sorted(faults, key=lambda fault: middle_of[fault])
    middles = [middle_of[fault] for fault in ordered]
    far = 2.0 * end_us
    labels: list[tuple[str, float]] = []
    free = -far
    edges = [-far, *middles, 2 * far]
    for before, fault, after in zip(edges[:-2], ordered, edges[2:], strict=True):
        middle = middle_of[fault]
        text = f"#{fault.number} {fault.kind}"
        if min(middle - before, after - middle) <= len(text) * _LETTER * end_us:
            text = f"#{fault.number}"
        half = 0.8 * len(text) * _LETTER * end_us / 2
        if middle - half >= free:
            labels.append((text, middle))
            free = middle + half
    return labels


def line(
    axes: Axes,
    seconds: Reals,
    values: Reals,
    drawable: Drawable,
    *,
    colour: str,
    label: str,
    dash: str = "-",
) -> None:
    """A line that is broken where bins are missing."""
    width = drawable.width_us / SECOND
    holes = np.nonzero(np.diff(seconds) > 1.5 * width)[0] + 1
    x = np.insert(seconds.astype(float), holes, np.nan)
    y = np.insert(values.astype(float), holes, np.nan)
    axes.plot(x, y, color=colour, label=label, linewidth=1.6, linestyle=dash)


def seconds_of(drawable: Drawable, frame: pd.DataFrame) -> Reals:
    """Middles of the bins in seconds."""
    return (frame["bin"].to_numpy() + 0.5) * (drawable.width_us / SECOND)


def tick_ms(value: float, _: float | None = None) -> str:
    """A tick in milliseconds, in the largest unit that leaves a short number."""
    return short(value * MS)


def finish(figure: Figure, axes: Axes, entries: list[Patch] | None = None) -> str:
    """The figure as SVG text, with its legend below."""
    handles = entries or axes.get_legend_handles_labels()[0]
    figure.legend(handles=handles, loc="outside lower center", ncols=6)
    return svg_of(figure)


def svg_of(figure: Figure) -> str:
    """The figure as SVG text, the same for the same figure."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None})
    return out.getvalue()
