"""The page of a sweep: ``report/index.html``, self-contained, in the style of a run's report.

First the result in a sentence, then the Pareto figure, the table of configurations, the influence
of settings on numbers, and the differences between configurations.
"""

import base64
import json
from collections.abc import Hashable, Sequence
from html import escape
from math import isnan
from pathlib import Path
from typing import Any, Final

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from analysis.report.canvas import BLUE, GREY, ORANGE, STYLE, rows_of, short, svg_of
from analysis.report.markup import Cell, document, table, text
from analysis.sweep.confidence import wilson
from analysis.sweep.results import LATENCY_ERROR, MOVED, Sweep, percent, probability, spell
from sim.units import SECOND, show_bytes

FORMAT: Final = 1
"""Version of ``report.json``."""

_SHOWN: Final = 50
"""Lines of a table of failures or differences."""

_LEGEND: Final = (
    "Each point is a configuration; lower and further left is better. Filled: no other one is "
    "better in something and worse in nothing (loss, time without service, median latency, "
    "replicas). Bars are 95 % intervals; numbers are those of the table."
)
_BREAK: Final = "\u200b"
"""Zero-width space, at which a long name may be broken."""

_FOOT: Final = (
    "The same numbers for programs: report.json; ../runs.parquet has a row for each run, "
    "../configurations.parquet and ../sensitivity.parquet what the tables show."
)

Row = dict[Hashable, Any]


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
        "sensitivity": json.loads(sweep.sensitivity.to_json(orient="records")),
        "differences": json.loads(sweep.differences().to_json(orient="records")),
    }


def sentence(sweep: Sweep) -> str:
    """The result, in plain words."""
    rows = [row for row in rows_of(sweep.configurations) if row["runs"]]
    if not rows:
        return "No run came to an end."
    clean = [row for row in rows if not row["lost_runs"]]
    if not clean:
        least = min(rows, key=lambda row: row["loss"])
        name = sweep.text_of(int(least["configuration"]))
        return (
            f"Every configuration lost acknowledged records; the least often {name}: "
            f"in {percent(least['loss'])} of its runs."
        )
    fewest = min(row["runs"] for row in clean)
    best = min(clean, key=lambda row: (row["unavailable_us"], row["p50"]))
    name = sweep.text_of(int(best["configuration"]))
    alike = sum(row["unavailable_us"] == best["unavailable_us"] for row in clean) - 1
    others = f" (and {alike} more alike)" if alike else ""
    count = f"{len(clean)} of {len(rows)}" if len(clean) < len(rows) else f"None of {len(rows)}"
    lost = "lost nothing" if len(clean) < len(rows) else "lost anything"
    return (
        f"{count} configurations {lost} in {fewest:,} runs each (below "
        f"{percent(min(1.0, 3 / fewest))} of runs, with 95 % confidence). Of these, "
        f"{name}{others} was out of service for the shortest time: "
        f"{spell(best, 'unavailable_us')} at the longest in a run, on average."
    )


def page(sweep: Sweep, figure: str) -> str:
    """The whole document."""
    data = base64.b64encode(figure.encode()).decode()
    lost = any(row["lost_runs"] for row in rows_of(sweep.configurations) if row["runs"])
    parts = [
        f"<h1>Logquake sweep: {escape(sweep.name)}</h1>",
        f'<p class="verdict {"none" if lost else "good"}">{escape(sentence(sweep))}</p>',
        _counts(sweep),
        f'<h2>The claim</h2><p class="claim">{escape(sweep.claim)}</p>',
        "<h2>What is bought with what</h2>",
        f'<p class="note">{_LEGEND}</p>',
        f'<img alt="Pareto figure" src="data:image/svg+xml;base64,{data}">',
        _configurations(sweep),
        _sensitivity(sweep),
        _differences(sweep),
        _failed(sweep),
        _refused(sweep),
        f"<footer><p>{_FOOT}</p></footer>",
    ]
    return document(f"Logquake sweep: {escape(sweep.name)}", "\n".join(p for p in parts if p))


def pareto(sweep: Sweep) -> str:
    """Loss against time without service, and against latency, as SVG."""
    rows = [row for row in rows_of(sweep.configurations) if row["runs"]]
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    _points(left, rows, "unavailable_us", "longest time without service, mean of runs")
    _points(right, rows, "p50", "median latency")
    left.set_ylabel("runs that lost acknowledged records")
    left.yaxis.set_major_formatter(FuncFormatter(_tick_percent))
    left.set_ylim(-0.04, 1.04)
    return svg_of(figure)


def _points(axes: Axes, rows: Sequence[Row], name: str, label: str) -> None:
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
    for (x, y), numbers in _together(measured, name).items():
        axes.annotate(
            spans(numbers), (x / SECOND, y), xytext=(6, 5), textcoords="offset points",
            fontsize=9, color=ORANGE, fontweight="bold",
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


def _counts(sweep: Sweep) -> str:
    done = len(sweep.runs) - len(sweep.failed)
    parts = [f"{len(sweep.labels):,} configurations, {done:,} runs; every configuration met the "]
    parts.append("same seeds, so they are compared pair by pair.")
    if len(sweep.failed):
        parts.append(f' <span class="no">{len(sweep.failed):,} runs failed</span>: see below.')
    return f"<p>{''.join(parts)}</p>"


def _configurations(sweep: Sweep) -> str:
    rows = _marked(rows_of(sweep.configurations))
    outages = f"outages above {short(sweep.outage_us)}"
    service = ("lost records", "lost a run#", outages, "longest gap#")
    cost = ("p50#", "p99#", "p99.9#", "acked/s#", "replicas#", "between racks#", "on disks#")
    own = _heads(sweep)
    return (
        '<h2>Durability and service</h2><p class="note">In bold the numbers of those that no other '
        "one betters. Probabilities with exact 95 % intervals (Clopper and Pearson), means with "
        "Student's. The longest gap is the longest time in a run in which records of a partition "
        "waited and none was acknowledged.</p>"
        + table((*own, *service), [[*_own(sweep, row), *_service(row)] for row in rows])
        + '<h2>Latency and cost</h2><p class="note">Percentiles of all records of all runs, within '
        f"{LATENCY_ERROR:.1%}, from the instant a record was meant to be sent. Bytes are those of "
        "one run, replicas those of the scenario's topics.</p>"
        + table((*own, *cost), [[*_own(sweep, row), *_cost(row)] for row in rows])
    )


def _marked(rows: list[Row]) -> list[Row]:
    """Those with the least loss first, then by time without service."""
    return sorted(
        rows,
        key=lambda row: (not row["runs"], row["loss"] or 0, row["unavailable_us"] or 0),
    )


def _heads(sweep: Sweep) -> tuple[str, ...]:
    return ("#", *(key.replace(".", f".{_BREAK}") for key in sweep.varied))


def _own(sweep: Sweep, row: Row) -> list[Cell]:
    """A configuration's number and values."""
    number = f"{int(row['configuration']) + 1}"
    labels = sweep.labels[int(row["configuration"])]
    cells: list[Cell] = [(f"<b>{number}</b>" if row["is_best"] else number, "n")]
    return [*cells, *((escape(labels[key]), "w") for key in sweep.varied)]


def _service(row: Row) -> list[Cell]:
    if not row["runs"]:
        return [(f"all {int(row['failed_runs'])} runs failed", "no")]
    loss = escape(probability(row, "loss", "lost_runs"))
    return [
        (loss, "w" if row["lost_runs"] else "w yes"),
        (f"{row['lost_records']:,.1f}", "n"),
        (escape(probability(row, "outage", "outages")), "w"),
        (escape(spell(row, "unavailable_us")), "n"),
    ]


def _cost(row: Row) -> list[Cell]:
    if not row["runs"]:
        return []
    return [
        *((escape(spell(row, name)), "n") for name in ("p50", "p99", "p999")),
        (f"{row['throughput']:,.0f}", "n"),
        (f"{int(row['replicas']):,}", "n"),
        (show_bytes(round(row["cross_rack_bytes"])), "n"),
        (show_bytes(round(row["disk_bytes"])), "n"),
    ]


def _sensitivity(sweep: Sweep) -> str:
    if not sweep.varied:
        return ""
    rows = rows_of(sweep.sensitivity)
    cells = []
    for number, meaning in MOVED.items():
        found = sorted(
            (row for row in rows if row["number"] == number), key=lambda row: -row["share"]
        )
        for place, row in enumerate(found):
            if row["share"] < 0.005:
                continue
            cells.append(
                [
                    (meaning if place == 0 else "", ""),
                    text(row["key"]),
                    (f"{row['share']:.0%}", "n"),
                    (_shown(number, row["low"]), "n"),
                    text(row["low_at"]),
                    (_shown(number, row["high"]), "n"),
                    text(row["high_at"]),
                ]
            )
    heads = ("number", "is moved by", "share#", "least#", "at", "most#", "at")
    note = (
        '<p class="note">Share of the differences between configurations that the setting alone '
        "explains; what is left is explained by settings together. Means over everything else.</p>"
    )
    return "<h2>Which setting moves which number</h2>" + note + table(heads, cells)


def _shown(number: str, value: float) -> str:
    if number in {"loss", "outage"}:
        return percent(value)
    if number.endswith("_us") or number in {"p50", "p99", "p999"}:
        return short(value)
    if number.endswith("_bytes"):
        return show_bytes(round(value))
    return f"{value:,.1f}"


def _differences(sweep: Sweep) -> str:
    frame = sweep.differences()
    if frame.empty:
        return ""
    heads = (
        *_heads(sweep), "pairs#", "only this lost#", "only the first lost#", "by chance#",
        "time without service#", "p50#",
    )  # fmt: skip
    best = rows_of(sweep.configurations)
    cells = [
        [
            *_own(sweep, best[int(row["configuration"])]),
            (f"{int(row['pairs']):,}", "n"),
            (f"{int(row['lost_more']):,}", "n"),
            (f"{int(row['lost_less']):,}", "n"),
            (f"{row['loss_p']:.2g}", "n"),
            (_signed(row, "unavailable_produce_us"), "n"),
            (_signed(row, "produce_p50_us"), "n"),
        ]
        for row in rows_of(frame)[:_SHOWN]
    ]
    first = escape(sweep.text_of(0))
    return (
        f"<details><summary>each configuration against the first ({first}), seed by seed</summary>"
        '<p class="note">"By chance": how likely so uneven a split would be if both lost as often '
        "(McNemar's exact test). Differences are means over seeds, with 95 % intervals.</p>"
        f"{table(heads, cells)}</details>"
    )


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


def _failed(sweep: Sweep) -> str:
    if sweep.failed.empty:
        return ""
    cells = [
        [
            text(sweep.text_of(int(row["configuration"]))),
            (f"{int(row['seed'])}", "n"),
            text(row["message"]),
        ]
        for row in rows_of(sweep.failed)[:_SHOWN]
    ]
    return f"<h2>{len(sweep.failed):,} failed runs</h2>" + table(
        ("configuration", "seed#", "message"), cells
    )


def _refused(sweep: Sweep) -> str:
    if not sweep.refused:
        return ""
    cells = [[text(name), text(why)] for name, why in sweep.refused[:_SHOWN]]
    return f"<h2>{len(sweep.refused):,} combinations cannot be</h2>" + table(
        ("configuration", "why"), cells
    )
