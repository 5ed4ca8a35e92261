"""Finds, in the trace of a run, the row with which the story of an expectation begins.

Arrow's kernels, which it needs, are slow to import. So :mod:`sim.scenario.expect.stories` imports
this module when something did not hold.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sim.checking.scope import Scope
from sim.ids import server_name
from sim.scenario.expect.found import Finding
from sim.scenario.model.run import Expectation
from sim.units import show_duration, show_instant

_CUT: Final = {
    "diverging_epoch": "truncated to the new leader's log",
    "out_of_range": "truncated: the leader's log ends before",
    "recovery": "not on the disk at its restart",
    "unrecovered": "not on its disk",
    "wiped": "its disk was wiped",
    "overwritten": "overwritten",
}
"""Reasons of truncations, in words."""


def cut_from(scope: Scope, offset: int, trace: Path) -> Finding | None:
    """The last truncation that took an offset."""
    columns = ["t_us", "broker", "topic", "partition", "from_offset", "to_offset", "reason"]
    last = None
    for rows in _blocks(trace / "truncations", columns):
        mine = _in_scope(rows, scope)
        above = pc.greater(mine["from_offset"], offset)
        hits = mine.filter(pc.and_(above, pc.less_equal(mine["to_offset"], offset)))
        if hits.num_rows:
            last = hits.slice(hits.num_rows - 1, 1).to_pylist()[0]
    if last is None:
        return None
    reason = _CUT.get(last["reason"], last["reason"])
    at = last["t_us"]
    return Finding(at, f"cut from {server_name(last['broker'])} at {show_instant(at)} ({reason})")


def first_batch(line: Expectation, trace: Path) -> Finding | None:
    """The first batch with the outcome that an expectation counts."""
    for rows in _batches(line.scope, trace, ["outcome", "error"]):
        bad = rows.filter(pc.equal(rows["outcome"], line.name))
        if bad.num_rows:
            row = bad.slice(0, 1).to_pylist()[0]
            return Finding(
                row["t_us"],
                f"first: record {row['first_record']} of {row['producer']} in "
                f"{row['topic']}-{row['partition']}, {row['error']} at {show_instant(row['t_us'])}",
            )
    return None


def slowest(line: Expectation, trace: Path) -> Finding | None:
    """The record that waited longest for its acknowledgement."""
    worst: tuple[int, dict[str, Any]] | None = None
    for rows in _batches(line.scope, trace, ["outcome", "latency_us"]):
        answered = rows.filter(pc.equal(rows["outcome"], "ok"))
        if not answered.num_rows:
            continue
        # The first record of a batch has waited longest.
        waits = pc.list_element(answered["latency_us"], 0)
        place = pc.index(waits, pc.max(waits)).as_py()
        longest = waits[place].as_py()
        if worst is None or longest > worst[0]:
            worst = longest, answered.slice(place, 1).to_pylist()[0]
    if worst is None:
        return None
    longest, row = worst
    meant = row["t_us"] - longest
    return Finding(
        meant,
        f"slowest: record {row['first_record']} of {row['producer']} in "
        f"{row['topic']}-{row['partition']}, meant for {show_instant(meant)}, acknowledged "
        f"{show_duration(longest)} later",
    )


def of_example(example: Mapping[str, Any], trace: Path) -> Finding | None:
    """A record that an example of the verdict names, with the instant of its acknowledgement."""
    scope = Scope(example["topic"], example["partition"])
    where = f"{scope.topic}-{scope.partition}"
    record = example.get("record")
    if record is None:
        return _append(scope, example["offset"], trace)
    for rows in _batches(scope, trace, ["outcome", "record_count"]):
        ends = pc.add(rows["first_record"], pc.cast(rows["record_count"], pa.int64()))
        mask = pc.and_(
            pc.equal(rows["producer"], example["producer"]),
            pc.and_(pc.less_equal(rows["first_record"], record), pc.greater(ends, record)),
        )
        hits = rows.filter(mask)
        if hits.num_rows:
            row = hits.slice(0, 1).to_pylist()[0]
            ended = {"ok": "acknowledged", "failed": "refused"}.get(row["outcome"], "given up")
            return Finding(
                row["t_us"],
                f"first: record {record} of {example['producer']} in {where}, "
                f"{ended} at {show_instant(row['t_us'])}",
            )
    return None


def _append(scope: Scope, offset: int, trace: Path) -> Finding | None:
    columns = ["t_us", "topic", "partition", "base_offset", "last_offset"]
    last = None
    for rows in _blocks(trace / "appends", columns):
        mine = _in_scope(rows, scope)
        begins = pc.less_equal(mine["base_offset"], offset)
        hits = mine.filter(pc.and_(begins, pc.greater_equal(mine["last_offset"], offset)))
        if hits.num_rows:
            last = hits["t_us"][-1].as_py()
    if last is None:
        return None
    where = f"offset {offset} of {scope.topic}-{scope.partition}"
    return Finding(last, f"first: {where}, last written at {show_instant(last)}")


def _batches(scope: Scope, trace: Path, more: Sequence[str]) -> Iterator[pa.Table]:
    columns = ["t_us", "producer", "topic", "partition", "first_record", *more]
    for rows in _blocks(trace / "client_batches", columns):
        mine = _in_scope(rows, scope)
        if mine.num_rows:
            yield mine


def _in_scope(rows: pa.Table, scope: Scope) -> pa.Table:
    if scope.topic:
        rows = rows.filter(pc.equal(rows["topic"], scope.topic))
    if scope.partition >= 0:
        rows = rows.filter(pc.equal(rows["partition"], scope.partition))
    if scope.clients and "producer" in rows.column_names:
        rows = rows.filter(pc.is_in(rows["producer"], pa.array(scope.clients)))
    if scope.has_window:
        inside = pc.and_(
            pc.greater_equal(rows["t_us"], scope.from_us), pc.less(rows["t_us"], scope.to_us)
        )
        rows = rows.filter(inside)
    return rows


def _blocks(directory: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    for part in sorted(directory.glob("part-*.parquet")):
        for batch in pq.ParquetFile(part).iter_batches(columns=list(columns)):
            yield pa.Table.from_batches([batch])
