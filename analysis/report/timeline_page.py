"""The interactive part of a page: timeline, latency, space-time diagram.

Its data are aggregates of bounded size, computed by Spark: what :mod:`analysis.report.timeline`,
:func:`analysis.report.latency.heat` and :mod:`analysis.report.messages` return. ``report.json`` has
the same.
"""

import re
from collections.abc import Mapping
from typing import Final

import pandas as pd

from analysis.report import latency, timeline
from analysis.report.canvas import rows_of
from analysis.report.findings import Findings
from analysis.report.script import embedded
from sim.units import SECOND

MOST_FAULTS: Final = 400
"""Faults that are drawn; the table of faults has all of them."""

MOST_BYTES: Final = 8_000_000
"""Greatest size of a page's data for any run, in bytes."""

_WORD: Final = 80
"""Characters that are kept of a span's text."""

_NAME: Final = 160
"""Characters that are kept of a name, or of a fault's target."""

_SERVER: Final = re.compile(timeline.SERVER)
_SPAN: Final = ("from_us", "to_us", "state", "level", "value", "detail", "changes")


class _Words:
    """Each text once, and its place."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def place(self, text: object) -> int:
        """Index of the text in the list."""
        known = str(text)[:_WORD]
        return self._places.setdefault(known, len(self._places))

    def listed(self) -> list[str]:
        """All texts in the order of their places."""
        return list(self._places)


def data(findings: Findings) -> dict[str, object]:
    """Data of the page's script; instants and durations are microseconds.

    Returns:
        ``end``; ``faults``; ``tracks`` of lanes, whose ``spans`` are flat lists of from, to, state,
        level, value, detail and changes (states and details are places in ``words``); ``latency``
        with flat ``cells`` (column, row, records) and ``bands`` (column, p50, p90, p99, p999, max);
        ``space``, or ``None`` where messages were not traced.
    """
    words = _Words()
    tracks = _tracks(findings.frames["timeline"], words)
    return {
        "end": max(1, findings.end_us),
        "faults": [
            {
                "n": fault.number,
                "kind": fault.kind[:_NAME],
                "target": fault.target[:_NAME],
                "resolved": fault.resolved[:_NAME],
                "from": max(0, fault.from_us),
                "to": max(0, min(fault.to_us, findings.end_us)),
                "bit": fault.took_effect,
            }
            for fault in findings.faults[:MOST_FAULTS]
            if fault.from_us <= findings.end_us and fault.to_us >= 0
        ],
        "tracks": tracks,
        "words": words.listed(),
        "fine": findings.fine_us,
        "rows_per_decade": latency.ROWS_PER_DECADE,
        "latency": {name: _latency(findings, name) for name in ("produce", "end_to_end")},
        "space": _space(findings) if findings.is_traced_in_detail else None,
    }


def _tracks(frame: pd.DataFrame, words: _Words) -> list[dict[str, object]]:
    tracks: list[dict[str, object]] = []
    for name in timeline.TRACKS:
        rows = frame[frame["track"] == name]
        lanes: dict[str, list[int]] = {}
        for row in rows_of(rows):
            spans = lanes.setdefault(str(row["lane"]), [])
            for column in _SPAN:
                is_text = column in ("state", "detail")
                spans.append(words.place(row[column]) if is_text else int(row[column]))
        tracks.append(
            {
                "name": name,
                "all": int(rows["lanes"].max()) if len(rows) else 0,
                "lanes": [
                    {"name": lane[:_NAME], "spans": lanes[lane]}
                    for lane in sorted(lanes, key=_rank)
                ],
            }
        )
    return tracks


def _rank(lane: str) -> tuple[str, int, str]:
    """Names in order, ``orders-10`` behind ``orders-9``."""
    head, _, number = lane.rpartition("-")
    return (head, int(number), "") if number.isdecimal() else (lane, -1, "")


def _latency(findings: Findings, name: str) -> dict[str, object]:
    cells = findings.frames[f"{name}_latency_heat"]
    bands = findings.frames[f"{name}_latency_bands"]
    return {
        "cells": _flat(cells[cells["bin"] >= 0], ("bin", "row", "records")),
        "bands": _flat(bands[bands["bin"] >= 0], ("bin", "p50", "p90", "p99", "p999", "max")),
    }


def _flat(frame: pd.DataFrame, columns: tuple[str, ...]) -> list[int]:
    return [int(value) for row in rows_of(frame) for value in (row[name] for name in columns)]


def _space(findings: Findings) -> dict[str, object]:
    frame = findings.frames["messages"]
    named = [str(name) for name in findings.frames["message_nodes"]["node"]]
    servers = [name for name in named if _SERVER.fullmatch(name)]
    clients = [name for name in named if not _SERVER.fullmatch(name)]
    nodes = sorted(servers, key=_rank) + sorted(clients, key=_rank)
    places = {name: place for place, name in enumerate(nodes)}
    kinds, rules = _Words(), _Words()
    seconds: dict[int, dict[str, object]] = {}
    sent: dict[int, list[int]] = {}
    for row in rows_of(frame):
        second = int(row["second"])
        if second not in seconds:
            sent[second] = []
            seconds[second] = {
                "second": second, "total": int(row["total"]), "messages": sent[second],
            }  # fmt: skip
        sent[second] += [
            int(row["sent_us"]) - second * SECOND,
            int(row["t_us"]) - int(row["sent_us"]),
            places[row["sender"]],
            places[row["receiver"]],
            kinds.place(row["kind"]),
            rules.place(row["delayed_by"]) if row["delayed_by"] else -1,
        ]
    return {
        "nodes": [name[:_NAME] for name in nodes],
        "kinds": kinds.listed(),
        "rules": rules.listed(),
        "seconds": list(seconds.values()),
    }


_NO_MESSAGES: Final = (
    '<p class="note" id="lq-space-none">No data: this trace has no messages, because it was '
    "recorded at level facts. A run with <code>--trace detail</code>, which is the default, has "
    "them.</p>"
)

_SPACE: Final = """<div class="controls" role="group" aria-label="time shown">
<button type="button" data-wide="1000000" aria-pressed="true">the second at the cursor</button>
<button type="button" data-wide="100000" aria-pressed="false">100 ms</button>
<button type="button" data-wide="10000" aria-pressed="false">10 ms</button>
<button type="button" data-wide="1000" aria-pressed="false">1 ms</button></div>
<div class="sheet"><canvas id="lq-space" role="img"
aria-label="messages between nodes"></canvas></div>
<p class="note" id="lq-space-note"></p>
<div class="controls" id="lq-kinds" role="group" aria-label="kinds of messages"></div>
<p class="note">A stroke begins where a message was handed to the socket and ends, with a dot,
where it arrived. A red dashed one was held or slowed by a fault. Of a second with more messages
than the page holds, every pair of nodes has one of each kind before any has two.</p>"""

_LEGEND: Final = (
    ("#b7dfc3", "well: running, in sync, stable"),
    ("#f0b65b", "starting; some out of sync; rebalancing"),
    ("#d9534f", "paused; under min.insync.replicas"),
    ("#1f2937", "down; no leader; nobody"),
    ("#7c4bb5", "stripe: not unfenced at the controller"),
)


def section(found: Mapping[str, object]) -> str:
    """The drawings and their data, for a page with the script of :mod:`analysis.report.script`."""
    entries = "".join(f'<span><i style="background:{c}"></i>{text}</span>' for c, text in _LEGEND)
    return f"""<h2>Timeline</h2>
<noscript><p class="warn">The timeline is drawn by a script, and scripts are off.</p></noscript>
<section id="lq-timeline" hidden>
<p class="note">Drag to move the cursor. Zoom with the buttons, a double click, Ctrl and the wheel,
or two fingers; with Shift, or in the strip below, drag a range. Keys: arrows, + and -, 0 for the
whole run.</p>
<div class="controls"><button type="button" id="lq-in">zoom in</button>
<button type="button" id="lq-out">zoom out</button>
<button type="button" id="lq-all">whole run</button>
<button type="button" id="lq-internal" aria-pressed="false" hidden>internal topics</button>
<span class="note">cursor <b id="lq-at"></b>; in view <span id="lq-view"></span></span></div>
<div class="sheet"><canvas id="lq-overview" role="img" aria-label="the whole run"></canvas></div>
<input type="range" id="lq-slider" min="0" max="1" step="1" aria-label="cursor">
<div class="sheet"><canvas id="lq-lanes" tabindex="0" role="img"
aria-label="faults, controller, servers, partitions and groups over time"></canvas></div>
<p class="legend">{entries}</p>
<p class="note">Numbers in partitions are the leaders that begin there. States as the controller and
the coordinators committed them. Where a lane had more than {timeline.MOST_SPANS} changes,
neighbours are drawn as the worst of them; of more than {timeline.MOST_LANES} lanes the most
troubled are shown.</p>
<h3>At the cursor</h3><dl id="lq-state" aria-live="off"></dl>
<h3>Latency over time</h3>
<div class="controls" role="group" aria-label="latency shown">
<button type="button" data-latency="produce" aria-pressed="true">produce</button>
<button type="button" data-latency="end_to_end" aria-pressed="false">end to end</button></div>
<p class="note" id="lq-heat-none" hidden>No data: no record was acknowledged, or read.</p>
<div id="lq-latency"><p class="note">Records by the instant they were meant to be sent: the darker,
the more (both scales are logarithmic).</p>
<div class="sheet"><canvas id="lq-heat" role="img" aria-label="latency heat map"></canvas></div>
<p class="legend"><span><i style="background:#1f6fb4"></i>p50</span>
<span><i style="background:#a9cdea"></i>to p90</span>
<span><i style="background:#f0b27a"></i>to p99</span>
<span><i style="background:#d9730d"></i>p99</span>
<span><i style="background:#f6d3b3"></i>to p99.9</span>
<span><i style="background:#e5e7eb"></i>to the largest</span></p>
<div class="sheet"><canvas id="lq-bands" role="img"
aria-label="percentiles of latency"></canvas></div></div>
<h3>Space-time diagram</h3>
{_SPACE if found["space"] else _NO_MESSAGES}
</section>
<script type="application/json" id="lq-data">{embedded(found)}</script>"""
