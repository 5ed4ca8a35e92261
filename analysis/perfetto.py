"""A run as a trace file for Perfetto or ``chrome://tracing``.

Faults, control plane, partitions and groups are processes with a thread for each lane of
:mod:`analysis.report.timeline`; each server is a process with its own states, its load as counters,
and the requests that it answered as asynchronous events, from the instant at which they reached its
socket to the answer. Time begins at simulated zero; one microsecond is one unit of ``ts``.

Source: Google, "Trace Event Format": the JSON object format with events M, X, b, e and C.

Left out: clients; requests beyond :data:`MOST_REQUESTS`, chosen so that each kind is seen in each
second; messages.
"""

import json
from collections.abc import Hashable, Iterator, Mapping
from pathlib import Path
from typing import Final

import pandas as pd
import pyarrow as pa

from analysis.pages.cells import rows_of
from analysis.report import load, messages, timeline
from analysis.report.fault_windows import FaultWindow, end_of, fault_windows
from analysis.report.progress import Progress, silent
from analysis.report.states import partitions
from analysis.spark import tables
from analysis.verify.run_files import open_run
from sim.errors import SimulationError
from sim.ids import server_name
from sim.trace.schema import BY_NAME
from sim.units import SECOND, Micros

MOST_REQUESTS: Final = 40_000
"""Requests in a file, at most."""

MOST_BYTES: Final = 64_000_000
"""Greatest size of a file, in bytes."""

_MOST_FAULTS: Final = 1_000
_MOST_SERVERS: Final = 100
_COUNTER_BINS: Final = 600
_NAMED: Final = {"controller": "control", "partition": "partitions", "group": "groups"}
_FIRST_SERVER: Final = 10
_WORD: Final = 200
_BUSY: Final = ("network_threads", "request_handlers", "disk")
_INSTANTS: Final = ("sent_us", "arrived_us", "started_us", "decided_us", "t_us")

Event = dict[str, object]


def export(run: Path, target: Path, *, on_progress: Progress | None = None) -> int:
    """Writes the file, without Spark; it appears when it is whole.

    Args:
        run: Run directory.
        target: Where to write.
        on_progress: Called with the name of each step.

    Returns:
        Number of events.

    Raises:
        SimulationError: If the directory is no run or its trace is of another version, or the file
            cannot be written.
    """
    files = open_run(run)
    report = on_progress or silent

    def small(name: str) -> pd.DataFrame:
        return tables.small(run, name)

    faults = small("faults")
    end_us = end_of(run, faults)
    report("states")
    spans = timeline.spans(small, partitions(run, end_us), end_us)
    width = SECOND * max(1, -(-end_us // (SECOND * _COUNTER_BINS)))
    loads = load.servers(small("load"), width)
    report("requests")
    answered = _answered(run, end_us)
    report("writing")
    listed = [
        *_faults(fault_windows(faults, end_us), end_us),
        *_tracks(spans),
        *_servers(spans, loads, answered, width),
    ]
    details = {
        "traceEvents": listed,
        "displayTimeUnit": "ms",
        "otherData": {"run": files.name, "seed": str(files.card.get("seed"))},
    }
    _write(target, json.dumps(details, separators=(",", ":")))
    return len(listed)


def _answered(run: Path, end_us: Micros) -> pd.DataFrame:
    """Requests to show, ordered: of each second those of every kind, server and client first."""
    share = max(1, MOST_REQUESTS // (end_us // SECOND + 1))

    def here() -> Iterator[pa.Table]:
        for rows in tables.row_groups(run, "requests", BY_NAME["requests"].column_names):
            yield rows.filter(messages.within(rows["arrived_us"], end_us))

    found = messages.taking_turns(here(), "arrived_us", ("node", "kind", "client"), share)
    by = ["arrived_us", "node", "client", "correlation"]
    return found.sort_values(by, kind="stable").head(MOST_REQUESTS)


def _write(target: Path, text: str) -> None:
    half = target.with_name(f".{target.name}.unfinished")
    try:
        half.write_text(text, encoding="utf-8")
        half.replace(target)
    except OSError as error:
        half.unlink(missing_ok=True)
        raise SimulationError(f"{target}: cannot be written: {error.strerror}") from error


def _named(pid: int, process: str, order: int) -> Iterator[Event]:
    yield {"ph": "M", "name": "process_name", "pid": pid, "tid": 0, "args": {"name": process}}
    yield {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0,
           "args": {"sort_index": order}}  # fmt: skip


def _thread(pid: int, tid: int, name: str) -> Event:
    named = {"name": name[:_WORD]}
    return {"ph": "M", "name": "thread_name", "pid": pid, "tid": tid, "args": named}


def _faults(windows: tuple[FaultWindow, ...], end_us: Micros) -> Iterator[Event]:
    """A thread for each fault, so that concurrent ones are below each other."""
    yield from _named(1, "faults", 1)
    for fault in windows[:_MOST_FAULTS]:
        tid = fault.number + 1
        begin, end = max(0, fault.from_us), min(fault.to_us, end_us)
        yield _thread(1, tid, f"#{fault.number} {fault.kind}")
        if end < begin:
            continue
        details = {
            "target": fault.target[:_WORD],
            "resolved": fault.resolved[:_WORD],
            "effect": fault.effect[:_WORD],
            "took_effect": fault.took_effect,
        }
        yield {"ph": "X", "cat": "fault", "name": fault.kind[:_WORD], "pid": 1, "tid": tid,
               "ts": begin, "dur": end - begin, "args": details}  # fmt: skip


def _tracks(spans: pd.DataFrame) -> Iterator[Event]:
    for pid, (track, name) in enumerate(_NAMED.items(), start=2):
        rows = spans[spans["track"] == track]
        if rows.empty:
            continue
        yield from _named(pid, name, pid)
        for tid, lane in enumerate(sorted(rows["lane"].unique()), start=1):
            yield _thread(pid, tid, lane)
            yield from _states(rows[rows["lane"] == lane], pid, tid)


def _states(rows: pd.DataFrame, pid: int, tid: int) -> Iterator[Event]:
    for row in rows_of(rows):
        state, value = str(row["state"]), int(row["value"])
        is_led = row["track"] == "partition" and value >= 0
        details = {
            "state": state,
            "detail": str(row["detail"])[:_WORD],
            "changes": int(row["changes"]),
        }
        yield {
            "ph": "X",
            "cat": str(row["track"]),
            "name": f"leader {value}: {state}" if is_led else state,
            "pid": pid,
            "tid": tid,
            "ts": int(row["from_us"]),
            "dur": int(row["to_us"]) - int(row["from_us"]),
            "args": details,
        }


def _servers(
    spans: pd.DataFrame, loads: pd.DataFrame, answered: pd.DataFrame, width_us: Micros
) -> Iterator[Event]:
    """States, load and requests of each server."""
    servers = spans[spans["track"].isin(["server", "registration"])]
    names = {str(lane) for lane in servers["lane"]} | {str(node) for node in loads["node"]}
    names |= {server_name(int(node)) for node in answered["node"].unique()}
    pids = {}
    for pid, name in enumerate(sorted(names)[:_MOST_SERVERS], start=_FIRST_SERVER):
        pids[name] = pid
        yield from _named(pid, name, pid)
        for tid, track in enumerate(("server", "registration"), start=1):
            yield _thread(pid, tid, "process" if track == "server" else track)
            yield from _states(
                servers[(servers["track"] == track) & (servers["lane"] == name)], pid, tid
            )
    for row in rows_of(loads):
        pid = pids.get(str(row["node"]), 0)
        if pid and row["bin"] >= 0:
            busy = {name: round(100 * float(row[name]), 2) for name in _BUSY}
            yield {"ph": "C", "name": "busy (%)", "cat": "load", "pid": pid, "tid": 0,
                   "ts": int(row["bin"]) * width_us, "args": busy}  # fmt: skip
    for number, row in enumerate(rows_of(answered)):
        known = pids.get(server_name(int(row["node"])))
        if known is not None:
            yield from _request(row, known, number)


def _request(row: Mapping[Hashable, object], pid: int, number: int) -> Iterator[Event]:
    """Asynchronous events, as requests overlap, with their stages as arguments."""
    at = {name: int(str(row[name])) for name in _INSTANTS}
    shared = {"cat": "request", "id": f"0x{number:x}", "pid": pid, "tid": 0, "name": row["kind"]}
    details = {
        "client": str(row["client"])[:_WORD],
        "correlation": int(str(row["correlation"])),
        "sent_us": at["sent_us"],
        "waited_for_a_handler_us": at["started_us"] - at["arrived_us"],
        "handled_us": at["decided_us"] - at["started_us"],
        "waited_for_others_us": at["t_us"] - at["decided_us"],
    }
    yield {"ph": "b", "ts": at["arrived_us"], "args": details, **shared}
    yield {"ph": "e", "ts": at["t_us"], **shared}
