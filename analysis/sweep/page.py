"""The page of a sweep: ``report/index.html``, self-contained, in the style of a run's report.

First the result in a sentence, then the Pareto figure, the table of configurations, the influence
of settings on numbers, and the differences between configurations.
"""

import json
from collections.abc import Hashable, Sequence
from math import isfinite, isnan
from pathlib import Path
from typing import Any, Final, NamedTuple

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from analysis.pages import script
from analysis.pages.cells import rows_of, short
from analysis.pages.markup import render
from analysis.report.figures.canvas import BLUE, GREY, ORANGE, STYLE, svg_of
from analysis.sweep.confidence import wilson
from analysis.sweep.results import LATENCY_ERROR, MOVED, Sweep, percent, probability, spell, three
from sim.units import SECOND, show_bytes

FORMAT: Final = 1
"""Version of ``report.json``."""

_SHOWN: Final = 50
"""Lines of a table of failures or differences."""

_BREAK: Final = "\u200b"
"""Zero-width space, at which a long name may be broken."""

_LABEL: Final = 40
"""Characters of a point's label."""

_NOTICED: Final = 0.005
"""The least share of differences of which the page speaks."""

Row = dict[Hashable, Any]


class Influence(NamedTuple):
    """Influence of a setting on a number, as it is shown."""

    meaning: str
    key: str
    share: str
    low: str
    low_at: str
    high: str
    high_at: str


def write(sweep: Sweep, directory: Path) -> Path:
    """Writes the page, its figure and its numbers; returns the page."""
    directory.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context(STYLE):
        figure = pareto(sweep)
    (directory / "pareto.svg").write_text(figure, encoding="utf-8")
    (directory / "report.json").write_text(
        json.dumps(summary(sweep), indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    index = directory / "index.html"
    index.write_text(page(sweep, figure), encoding="utf-8")
    return index


def summary(sweep: Sweep) -> dict[str, object]:
    """Contents of ``report.json``; durations are microseconds, nulls what was not measured."""
    plain = json.loads(sweep.configurations.to_json(orient="records"))
    best = safest(rows_of(sweep.configurations))
    return {
        "format": FORMAT,
        "scenario": sweep.name,
        "claim": sweep.claim,
        "verdict": sentence(sweep),
        "varied": sweep.varied,
        "outage_us": sweep.outage_us,
        "runs": len(sweep.runs),
        "failed": json.loads(sweep.failed.to_json(orient="records")),
        "refused": [{"configuration": name, "why": why} for name, why in sweep.refused],
        "configurations": plain,
        "safest": None if best is None else int(best["configuration"]),
        "sensitivity": json.loads(sweep.sensitivity.to_json(orient="records")),
        "differences": json.loads(sweep.differences().to_json(orient="records")),
    }


def safest(rows: Sequence[Row]) -> Row | None:
    """The best of configurations with runs; ``None`` without any.

    Of those that lost nothing and were out of service for about the shortest time the one whose
    acknowledged records are on the most replicas; if every one lost something, the one that did so
    least often.
    """
    ran = [row for row in rows if row["runs"]]
    clean = [row for row in ran if not row["lost_runs"]]
    if not clean:
        return min(ran, key=lambda row: row["loss"], default=None)
    return min(_alike(clean), key=lambda r: (-r["promised"], r["unavailable_us"], r["p50"]))


def _alike(clean: Sequence[Row]) -> list[Row]:
    """Those whose time without service is within the interval of the shortest one."""
    shortest = min(clean, key=lambda row: (row["unavailable_us"], row["p50"]))
    high = shortest.get("unavailable_us_high")
    bound = shortest["unavailable_us"] if high is None or not isfinite(high) else high
    return [row for row in clean if row["unavailable_us"] <= bound]


def sentence(sweep: Sweep) -> str:
    """The result, in plain words."""
    rows = [row for row in rows_of(sweep.configurations) if row["runs"]]
    best = safest(rows)
    if best is None:
        return "No run came to an end."
    name = sweep.text_of(int(best["configuration"]))
    clean = [row for row in rows if not row["lost_runs"]]
    if not clean:
        return (
            f"Every configuration lost acknowledged records; the least often {name}: "
            f"in {percent(best['loss'])} of its runs."
        )
    fewest = min(row["runs"] for row in clean)
    alike = _alike(clean)
    count = f"{len(clean)} of {len(rows)}" if len(clean) < len(rows) else f"None of {len(rows)}"
    lost = "lost nothing" if len(clean) < len(rows) else "lost anything"
    promised = int(best["promised"])
    copies = f"{promised} replica" if promised == 1 else f"{promised} replicas"
    which = (
        f"The safest of {len(alike)} that were out of service for about the shortest time: {name}. "
        f"An acknowledged record is on {copies} at least"
        if len(alike) > 1
        else f"Out of service for the shortest time: {name}"
    )
    return (
        f"{count} configurations {lost} in {fewest:,} runs each (below "
        f"{percent(min(1.0, 3 / fewest))} of runs, with 95 % confidence). {which}, "
        f"{spell(best, 'unavailable_us')} without service at the longest in a run, on average."
    )


def page(sweep: Sweep, figure: str) -> str:
    """The whole document."""
    rows = rows_of(sweep.configurations)
    lost = any(row["lost_runs"] for row in rows if row["runs"])
    return render(
        "analysis.sweep",
        "sweep.html",
        script.TABLES,
        sweep=sweep,
        kind="none" if lost else "good",
        sentence=sentence(sweep),
        figure=figure,
        breakable=[key.replace(".", f".{_BREAK}") for key in sweep.varied],
        configurations=_marked(rows),
        error=LATENCY_ERROR,
        influences=_influences(rows_of(sweep.sensitivity)),
        differences=_differences(sweep, rows),
        failed=rows_of(sweep.failed),
        most_lines=_SHOWN,
        probability=probability,
        spell=spell,
        three=three,
    )


def pareto(sweep: Sweep) -> str:
    """Loss against time without service, and against latency, as SVG."""
    rows = [row for row in rows_of(sweep.configurations) if row["runs"]]
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    _points(sweep, left, rows, "unavailable_us", "longest time without service, mean of runs")
    _points(sweep, right, rows, "p50", "median latency")
    left.set_ylabel("runs that lost acknowledged records")
    left.yaxis.set_major_formatter(FuncFormatter(_tick_percent))
    left.set_ylim(-0.04, 1.04)
    return svg_of(figure)


def _points(sweep: Sweep, axes: Axes, rows: Sequence[Row], name: str, label: str) -> None:
    measured = [row for row in rows if row[name] is not None and not isnan(row[name])]
    for row in measured:
        colour = BLUE if row["is_best"] else GREY
        chance = wilson(int(row["lost_runs"]), int(row["runs"]))
        x, y = row[name] / SECOND, chance.value
        below, above = max(0.0, y - chance.low), max(0.0, chance.high - y)
        axes.errorbar(x, y, yerr=[[below], [above]], color=colour, alpha=0.35, lw=1, zorder=1)
        low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
        if low is not None and high is not None and high < float("inf"):
            axes.hlines(y, max(0.0, low) / SECOND, high / SECOND, color=colour, alpha=0.35, lw=1)
        face = colour if row["is_best"] else "white"
        axes.plot(x, y, "o", color=colour, markerfacecolor=face, markersize=7, zorder=2)
    widest = max((row[name] for row in measured), default=0)
    for (x, y), numbers in _together(measured, name).items():
        is_right = x > widest / 2
        axes.annotate(
            _label(sweep, numbers), (x / SECOND, y), xytext=(-6 if is_right else 6, 5),
            textcoords="offset points", ha="right" if is_right else "left",
            fontsize=8, color=ORANGE, fontweight="bold",
        )  # fmt: skip
    axes.xaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(_tick_time))
    axes.set_xlim(left=0)
    axes.set_xlabel(label)


def _together(rows: Sequence[Row], name: str) -> dict[tuple[float, float], list[int]]:
    """The numbers of the best configurations at each point; many may have done the same."""
    found: dict[tuple[float, float], list[int]] = {}
    for row in rows:
        if row["is_best"]:
            found.setdefault((row[name], row["loss"]), []).append(int(row["configuration"]) + 1)
    return found


def _label(sweep: Sweep, numbers: Sequence[int]) -> str:
    """Numbers of configurations at a point, and the settings that set them apart from others."""
    here = [sweep.labels[number - 1] for number in numbers]
    words = []
    for key in sweep.varied:
        own = list(dict.fromkeys(labels[key] for labels in here))
        if len(own) < len({labels[key] for labels in sweep.labels}):
            words.append(f"{key}={' or '.join(own)}")
    named = f"{spans(numbers)}: {', '.join(words)}" if words else spans(numbers)
    return named if len(named) <= _LABEL else f"{named[: _LABEL - 3]}..."


def spans(numbers: Sequence[int]) -> str:
    """Whole numbers in order, in few words: ``1-3, 7``."""
    parts: list[tuple[int, int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1] = (parts[-1][0], number)
        else:
            parts.append((number, number))
    return ", ".join(f"{low}" if low == high else f"{low}-{high}" for low, high in parts)


def _tick_time(value: float, _: float | None = None) -> str:
    return short(value * SECOND) if value else "0"


def _tick_percent(value: float, _: float | None = None) -> str:
    return f"{100 * value:.0f} %"


def _marked(rows: list[Row]) -> list[Row]:
    """Those with the least loss first, then by time without service."""
    return sorted(
        rows,
        key=lambda row: (not row["runs"], row["loss"] or 0, row["unavailable_us"] or 0),
    )


def _influences(rows: list[Row]) -> list[Influence]:
    """Settings that move each number, the strongest first; the first has the number's title."""
    found = []
    for number, meaning in MOVED.items():
        own = [row for row in rows if row["number"] == number and row["share"] >= _NOTICED]
        for place, row in enumerate(sorted(own, key=lambda row: -row["share"])):
            found.append(
                Influence(
                    meaning if place == 0 else "",
                    row["key"],
                    f"{row['share']:.0%}",
                    _shown(number, row["low"]),
                    row["low_at"],
                    _shown(number, row["high"]),
                    row["high_at"],
                )
            )
    return found


def _shown(number: str, value: float) -> str:
    if number in {"loss", "outage"}:
        return percent(value)
    if number.endswith("_us") or number in {"p50", "p99", "p999"}:
        return short(value)
    if number.endswith("_bytes"):
        return show_bytes(round(value))
    return f"{value:,.1f}"


def _differences(sweep: Sweep, configurations: Sequence[Row]) -> list[Row]:
    """Lines of configurations against the first one, with the differences in words."""
    return [
        row
        | {
            "is_best": configurations[row["configuration"]]["is_best"],
            "unavailable": _signed(row, "unavailable_produce_us"),
            "median": _signed(row, "produce_p50_us"),
        }
        for row in rows_of(sweep.differences())[:_SHOWN]
    ]


def _signed(row: Row, name: str) -> str:
    value = row.get(name)
    if value is None or isnan(value):
        return ""
    if not value and row[f"{name}_high"] == 0:
        return "the same"
    sign = "+" if value > 0 else "-" if value < 0 else ""
    half = row[f"{name}_high"] - value
    spread = f" ± {short(half)}" if half < float("inf") else ""
    return f"{sign}{short(abs(value))}{spread}"
