"""The story of an expectation that did not hold: what was found first, and the nearest fault.

Read from the trace once it is written, so a run whose expectations hold pays nothing for it.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sim.checking.outcomes.scoped.changes import FIRST
from sim.checking.scope import Scope
from sim.faults.injector import FaultReport
from sim.ids import server_name
from sim.scenario.expect.bounds import NOTHING_SLICED, Held, report_for
from sim.scenario.model.run import Expectation
from sim.units import Micros, show_duration, show_instant

_OUTCOMES: Final = ("failed", "unknown")


@dataclass(frozen=True, slots=True)
class _Finding:
    """The first thing that was found."""

    at_us: Micros
    words: str


def with_stories(
    expect: Sequence[Expectation],
    held: Sequence[Held],
    verdict: Mapping[str, Any],
    trace: Path,
    faults: Sequence[FaultReport],
    sliced: Mapping[Scope, Mapping[str, object]] = NOTHING_SLICED,
) -> list[Held]:
    """The same answers; those that did not hold have a story, if the trace knows one.

    Args:
        expect: Lines of the scenario.
        held: The answers, in the same order.
        verdict: The verdict that they are about.
        trace: Directory of the trace, closed.
        faults: What came of the scenario's faults.
        sliced: What slices report, by scope.
    """
    answers = []
    for line, answer in zip(expect, held, strict=True):
        story = ""
        if not answer["held"]:
            found = _find(line, verdict, report_for(line, verdict, sliced), trace)
            if found is not None:
                story = f"{found.words}; {nearest_fault(found.at_us, faults)}"
        answers.append(Held(**{**answer, "story": story}))
    return answers


_CUT: Final = {
    "diverging_epoch": "truncated to the new leader's log",
    "out_of_range": "truncated: the leader's log ends before",
    "recovery": "not on the disk at its restart",
    "unrecovered": "not on its disk",
    "wiped": "its disk was wiped",
    "overwritten": "overwritten",
}
"""Reasons of truncations, in words."""


def first_loss(verdict: Mapping[str, Any], trace: Path, faults: Sequence[FaultReport]) -> str:
    """The story of the first lost record: where it was cut from a log, and the nearest fault.

    Args:
        verdict: The verdict, with its examples.
        trace: Directory of the trace, closed.
        faults: What came of the scenario's faults.

    Returns:
        Empty if none was lost.
    """
    for example in verdict["examples"].get("lost_acked", ()):
        found = _example(example, trace)
        if found is None:
            continue
        words, at = found.words.removeprefix("first: "), found.at_us
        cut = _cut(Scope(example["topic"], example["partition"]), example["offset"], trace)
        if cut is not None:
            words, at = f"{words}; {cut.words}", cut.at_us
        return f"{words}; {nearest_fault(at, faults)}"
    return ""


def _cut(scope: Scope, offset: int, trace: Path) -> _Finding | None:
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
    return _Finding(at, f"cut from {server_name(last['broker'])} at {show_instant(at)} ({reason})")


def nearest_fault(at: Micros, faults: Sequence[FaultReport]) -> str:
    """The fault whose beginning or end is nearest to an instant, in words.

    A fault that took no effect explains nothing, however near it is.
    """
    ranked = [
        (min(abs(at - edge) for edge in (r.began_us, r.healed_us) if edge is not None), r.fault, r)
        for r in faults
        if r.began_us is not None and r.took_effect
    ]
    if not ranked:
        return "no fault took effect" if faults else "no fault began"
    _, _, report = min(ranked, key=lambda entry: entry[:2])
    began = report.began_us or 0
    meant = f" ({report.resolved})" if report.resolved not in ("", report.target) else ""
    when = "at that instant"
    if at != began:
        gap = show_duration(abs(at - began))
        when = f"{gap} {'before' if began < at else 'after'} that"
    return (
        f"nearest fault: {report.kind} of {report.target}{meant}, faults[{report.fault}], "
        f"begun at {show_instant(began)}, {when}"
    )


def _find(
    line: Expectation, verdict: Mapping[str, Any], part: Mapping[str, Any], trace: Path
) -> _Finding | None:
    if line.name.startswith("unavailable."):
        return _gap(line.name.split(".")[1], part)
    if line.name == "offline.max":
        return _without_leader(part)
    first = part.get("changes", {}).get(FIRST, {}).get(line.name)
    if first is not None:
        return _Finding(first[0], f"first: {first[1]}")
    if line.name in _OUTCOMES:
        return _first_batch(line, trace)
    if line.name.startswith("produce."):
        return _slowest(line, trace)
    kind = "divergent" if line.name == "divergence" else line.name
    for example in verdict.get("examples", {}).get(kind, ()):
        if line.scope.topic in ("", example["topic"]) and line.scope.partition in (
            -1,
            example["partition"],
        ):
            return _example(example, trace)
    return None


def _gap(kind: str, part: Mapping[str, Any]) -> _Finding | None:
    availability = part.get("availability", {})
    partitions = availability.get("partitions")
    if partitions is None:
        if f"{kind}_max_us" not in availability:
            return None
        name, start = availability[f"{kind}_max_of"], availability[f"{kind}_max_from_us"]
        length = availability[f"{kind}_max_us"]
    else:
        gaps = [
            (report[f"{kind}_us"], -report[f"{kind}_from_us"], name)
            for name, report in partitions.items()
            if f"{kind}_us" in report
        ]
        if not gaps:
            return None
        length, minus, name = max(gaps)
        start = -minus
    return _Finding(
        start, f"{name} was not served from {show_instant(start)} on for {show_duration(length)}"
    )


def _without_leader(part: Mapping[str, Any]) -> _Finding | None:
    offline = part.get("availability", {}).get("offline")
    if not offline:
        return None
    name = max(offline, key=lambda each: (offline[each]["max_us"], -offline[each]["from_us"]))
    start, length = offline[name]["from_us"], show_duration(offline[name]["max_us"])
    return _Finding(start, f"{name} had no live leader from {show_instant(start)} on for {length}")


def _first_batch(line: Expectation, trace: Path) -> _Finding | None:
    for rows in _batches(line.scope, trace, ["outcome", "error"]):
        bad = rows.filter(pc.equal(rows["outcome"], line.name))
        if bad.num_rows:
            row = bad.slice(0, 1).to_pylist()[0]
            return _Finding(
                row["t_us"],
                f"first: record {row['first_record']} of {row['producer']} in "
                f"{row['topic']}-{row['partition']}, {row['error']} at {show_instant(row['t_us'])}",
            )
    return None


def _slowest(line: Expectation, trace: Path) -> _Finding | None:
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
    return _Finding(
        meant,
        f"slowest: record {row['first_record']} of {row['producer']} in "
        f"{row['topic']}-{row['partition']}, meant for {show_instant(meant)}, acknowledged "
        f"{show_duration(longest)} later",
    )


def _example(example: Mapping[str, Any], trace: Path) -> _Finding | None:
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
            return _Finding(
                row["t_us"],
                f"first: record {record} of {example['producer']} in {where}, "
                f"{ended} at {show_instant(row['t_us'])}",
            )
    return None


def _append(scope: Scope, offset: int, trace: Path) -> _Finding | None:
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
    return _Finding(last, f"first: {where}, last written at {show_instant(last)}")


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
