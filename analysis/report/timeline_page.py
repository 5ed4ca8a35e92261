"""The interactive part of a page: timeline, latency, space-time diagram.

Its data are aggregates of bounded size, computed by Spark: what :mod:`analysis.report.timeline`,
:func:`analysis.report.latency.heat` and :mod:`analysis.report.messages` return. ``report.json`` has
the same.
"""

import re
from typing import Final

import pandas as pd

from analysis.pages.cells import rows_of
from analysis.report import latency, timeline
from analysis.report.findings import Findings
from analysis.verify import availability
from sim.units import SECOND

MOST_FAULTS: Final = 400
"""Faults that are drawn; the table of faults has all of them."""

MOST_OUTAGES: Final = 4_000
"""Outages that are drawn."""

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
        level, value, detail and changes (states and details are places in ``words``); ``outages``,
        by partition flat lists of from and to: records waited, none was acknowledged; ``latency``
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
        "outages": _outages(findings.frames["produce_gaps"]),
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


def _outages(gaps: pd.DataFrame) -> dict[str, list[int]]:
    """Long produce gaps; of too many the longest."""
    long = gaps[gaps["gap_us"] > availability.REPORTED_FROM]
    shown = long.sort_values("gap_us", ascending=False).head(MOST_OUTAGES)
    found: dict[str, list[int]] = {}
    for row in rows_of(shown.sort_values(["topic", "partition", "from_us"])):
        lane = f"{row['topic']}-{row['partition']}"[:_NAME]
        found.setdefault(lane, []).extend((int(row["from_us"]), int(row["to_us"])))
    return found


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
