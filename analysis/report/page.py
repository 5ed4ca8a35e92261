"""The page of a report: one HTML file that fetches nothing.

Everything that comes from a scenario, a trace or a verdict is escaped; figures are data URIs.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Final

from analysis.report import script, timeline_page
from analysis.report.agreement import Comparison
from analysis.report.canvas import Picture, instant, rows_of, short
from analysis.report.findings import Findings
from analysis.report.markup import Cell, document, measured, number, table, text
from analysis.spark import histogram
from sim.units import show_bytes

MEANINGS: Final = {
    "unprocessed": "outputs of tasks that input records require and no reader sees",
    "reprocessed": "outputs of tasks beyond those that their input records require",
    "missing": "acknowledged records of mirrored topics without a copy in the other cluster; "
    "external records that a source, or records that a sink, did not deliver",
    "skipped": "records that a group which moved to the other cluster skipped and never got",
    "reread": "deliveries of mirrored records to a group beyond the first, in both clusters",
    "orphaned": "outputs of tasks, or rows of sinks, whose record is not in its log any more",
    "sent": "records that producers took on",
    "acked": "with a successful response",
    "failed": "certainly not written",
    "unknown": "without a certain outcome",
    "survived": "in the final leaders' logs",
    "lost_acked": "acknowledged, but not there, and no policy removed them",
    "removed": "acknowledged, and removed by policy or by a cleaner",
    "early_tombstones": "acknowledged tombstones that a cleaner removed too early",
    "aborted": "sent in transactions that aborted",
    "aborted_visible": "aborted, and covered by a commit marker",
    "aborted_read": "aborted, and a reader of committed data got them",
    "undecided": "in the final leaders' logs, without a marker",
    "torn_transactions": "transactions visible in part",
    "unacked_present": "there, but never acknowledged",
    "duplicated": "copies beyond the first; deliveries of connectors beyond the expected ones",
    "reordered": "behind a later record of the same producer",
    "divergent": "offsets at which replicas differ",
    "offline.max": "microseconds: the longest time in which a partition had no leader in service",
    "accepted": "records of share groups that a member processed",
    "rejected": "records of share groups that a member gave up for good",
    "archived": "records of share groups at the limit of deliveries",
    "unfinished": "records of share groups that were still to be processed at the end",
    "ok_unanswered": "with a successful response that no broker sent",
    "answered_untold": "acknowledged by a broker, and failed or unknown at their producer",
}
"""Meaning of each number of a verdict."""

_CARD: Final = {"version": "logquake", "seed": "seed", "trace_digest": "trace digest"}
_ONLY_IF_ANY: Final = frozenset(
    {"removed", "early_tombstones", "aborted", "aborted_visible", "aborted_read", "undecided"}
    | {"torn_transactions"}
)
"""Numbers that are shown only where they are not zero."""
_FAULTS_SHOWN: Final = 40
"""Faults that the page shows unfolded."""
_BAD: Final = frozenset(
    {"lost_acked", "duplicated", "reordered", "divergent", "ok_unanswered", "answered_untold"}
)


def page(
    findings: Findings,
    comparisons: Sequence[Comparison],
    pictures: Sequence[Picture],
    explored: Mapping[str, object],
) -> str:
    """The whole document; ``explored`` is from :func:`analysis.report.timeline_page.data`."""
    name = escape(findings.files.name)
    sections = [
        f"<h1>Logquake report: {name}</h1>",
        _verdict(findings, comparisons),
        _claim(findings),
        _expectations(findings),
        _numbers(findings, comparisons),
        _checks(findings),
        _examples(findings),
        _unreadable(findings),
        _faults(findings),
        timeline_page.section(explored),
        _latency(findings),
        *(_picture(picture) for picture in pictures),
        _gaps(findings),
        _replication(findings),
        _footer(findings),
    ]
    body = "\n".join(section for section in sections if section)
    return document(f"Logquake: {name}", body, script.TIMELINE)


def sentence(totals: dict[str, int]) -> str:
    """The verdict on durability in one plain sentence."""
    acked, lost = totals["acked"], totals["lost_acked"]
    if not totals["sent"]:
        return "No producer sent a record."
    if not acked:
        return f"None of {totals['sent']:,} records was acknowledged."
    removed = totals.get("removed", 0)
    aborted = totals.get("aborted", 0)
    kept = max(0, acked - lost - removed - aborted)
    fates = [f"{acked:,} records were acknowledged", f"{kept:,} of them survived"]
    if removed:
        fates.append(f"{removed:,} {_were(removed)} removed by policy")
    if aborted:
        fates.append(f"{aborted:,} {_were(aborted)} aborted")
    fates.append("none was lost" if not lost else f"{lost:,} {_were(lost)} lost")
    return "; ".join(fates) + "."


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _verdict(findings: Findings, comparisons: Sequence[Comparison]) -> str:
    totals = findings.totals
    kind = "bad" if totals["lost_acked"] else "good" if totals["acked"] else "none"
    parts = [f'<p class="verdict {kind}">{escape(sentence(totals))}</p>']
    if findings.files.card.get("complete") is False:
        parts.append('<p class="warn">The run was interrupted: its trace ends early.</p>')
    others = [(name, totals[name]) for name in ("duplicated", "reordered", "divergent", "unknown")]
    there = [f"{count:,} {name}" for name, count in others if count]
    if there:
        parts.append(f"<p>Besides: {', '.join(there)}.</p>")
    wrong = [c for c in comparisons if not c.is_same]
    if not findings.files.verdict:
        parts.append('<p class="warn">There is no verdict.json to compare these numbers with.</p>')
    elif wrong:
        parts.append(
            f'<p class="warn">The two judges differ in {len(wrong)} of {len(comparisons)} numbers. '
            "The table below shows both.</p>"
        )
    elif not findings.inputs.differences:
        parts.append(
            '<p><span class="yes">Two judges agree to the record</span>: the checker inside the '
            "simulator, and Spark on acknowledgements and the bytes of the replicas' files "
            f"({len(comparisons)} numbers).</p>"
        )
    parts.append(_inputs(findings))
    return "\n".join(parts)


def _inputs(findings: Findings) -> str:
    """Comparison of the judges' shared inputs with the disks."""
    wrong, compared = findings.inputs.differences, findings.inputs.compared
    gaps = "".join(f"<li>Not compared: {escape(each)}</li>" for each in findings.inputs.unchecked)
    if wrong:
        listed = "".join(f"<li>{escape(each.sentence)}</li>" for each in wrong[:_FAULTS_SHOWN])
        return (
            f'<p class="warn">The disks contradict {len(wrong)} of {sum(compared.values())} values '
            f"that both judges take from the trace:</p><ul>{listed}{gaps}</ul>"
        )
    counted = ", ".join(f"{count:,} {kind}s" for kind, count in compared.items())
    said = f"<p>The disks say what both judges take from the trace: {counted}.</p>"
    return said + (f"<ul>{gaps}</ul>" if gaps else "")


def _claim(findings: Findings) -> str:
    claim = findings.files.scenario.get("claim")
    if not isinstance(claim, str) or not claim.strip():
        return ""
    return f'<h2>The claim</h2><p class="claim">{escape(claim.strip())}</p>'


def _expectations(findings: Findings) -> str:
    listed = findings.files.verdict.get("expectations")
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    if not rows:
        return "<h2>Expectations</h2><p>The scenario expects nothing in particular.</p>"
    cells = [[_named(row), text(row.get("asked")), _found(row), _mark(row)] for row in rows]
    held = sum(row.get("held") is True for row in rows)
    return (
        f"<h2>Expectations: {held} of {len(rows)} held</h2>"
        + table(("expectation", "asked", "found", "held"), cells)
    )  # fmt: skip


def _named(row: dict[str, object]) -> Cell:
    where = row.get("where")
    return text(f"{row.get('name')} ({where})" if where else row.get("name"))


def _found(row: dict[str, object]) -> Cell:
    """The measured value; durations, in microseconds in verdicts, with their unit."""
    found = row.get("found")
    is_number = isinstance(found, int | float) and not isinstance(found, bool)
    if is_number and str(row.get("name")).startswith(("produce.", "end_to_end.", "unavailable.")):
        return _took(float(str(found)))[0], ""
    return (f"{found:,}", "") if is_number else text(found)


def _took(micros: float) -> Cell:
    """A duration in microseconds, in the unit that suits it."""
    return measured(micros, short(micros))


def _mark(row: dict[str, object]) -> Cell:
    return ("held", "yes") if row.get("held") is True else ("not held", "no")


def _numbers(findings: Findings, comparisons: Sequence[Comparison]) -> str:
    def rows(topic: str) -> Iterable[list[Cell]]:
        for item in comparisons:
            if item.topic != topic:
                continue
            if item.name in _ONLY_IF_ANY and not item.ours and not item.checker:
                continue
            count = f"{item.ours:,}"
            alarm = item.name in _BAD and item.ours > 0
            shown = "none" if item.checker is None else f"{item.checker:,}"
            same = ("agree", "yes") if item.is_same else ("differ", "no")
            if not findings.files.verdict:
                same = ("", "")
            of = f" (cluster {escape(item.cluster)})" if item.cluster else ""
            yield [
                (escape(item.name) + of, "w"),
                (f'<span class="no">{count}</span>' if alarm else count, "n"),
                (shown, "n"),
                same,
                (escape(MEANINGS[item.name]), ""),
            ]

    heads = ("records", "Spark, from the files#", "checker, inside#", "", "meaning")
    parts = ["<h2>Durability</h2>", table(heads, list(rows("")))]
    topics = sorted({item.topic for item in comparisons} - {""})
    for topic in topics:
        shown = table(heads, list(rows(topic)))
        parts.append(
            f"<details><summary>topic {escape(topic)}</summary>{shown}</details>"
        )  # fmt: skip
    return "\n".join(parts)


def _checks(findings: Findings) -> str:
    listed = findings.files.verdict.get("checks")
    rows = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    if not rows:
        return ""
    cells = [
        [
            text(row.get("name")),
            (escape(str(row.get("outcome"))), "yes" if row.get("outcome") == "held" else ""),
            (f"{row.get('checked', 0):,}", "n"),
            text("; ".join(f"{why}: {n:,}" for why, n in row.get("suspended", {}).items())),
            text(row.get("sentence")),
        ]
        for row in rows
    ]
    held = sum(row.get("outcome") == "held" for row in rows)
    heads = ("check", "", "times#", "set aside because", "what it says")
    return (
        f"<details><summary>{held} of {len(rows)} checks held while the run lasted; the others had "
        f"nothing to check or were set aside</summary>{table(heads, cells)}</details>"
    )


def _examples(findings: Findings) -> str:
    parts = []
    for name, rows in findings.examples.items():
        heads = tuple(rows[0]) if rows else ()
        cells = [[text(row[head]) for head in heads] for row in rows]
        parts.append(
            f"<details><summary>first examples of {escape(name)}</summary>"
            f"{table(heads, cells)}</details>"
        )
    return "\n".join(parts)


def _unreadable(findings: Findings) -> str:
    if findings.unreadable.empty:
        return "<p>Every batch of every replica has the right CRC-32C.</p>"
    heads = ("broker#", "topic", "partition#", "status", "batches#", "size#")
    cells = [
        [
            number(row["broker"]),
            text(row["topic"]),
            number(row["partition"]),
            (escape(str(row["status"]).replace("_", " ")), "no"),
            number(row["batches"]),
            measured(int(row["size_bytes"]), show_bytes(int(row["size_bytes"]))),
        ]
        for row in rows_of(findings.unreadable)
    ]
    return "<h2>Unreadable bytes in the replicas' files</h2>" + table(heads, cells)


def _faults(findings: Findings) -> str:
    if not findings.faults:
        return "<h2>Faults</h2><p>No fault was injected.</p>"
    heads = ("#", "fault", "target", "resolved to", "from#", "to#", "effect", "what it did")
    cells = [
        [
            number(fault.number),
            (escape(fault.kind), "w"),
            text(fault.target),
            text(fault.resolved),
            measured(fault.from_us, instant(fault.from_us)),
            measured(fault.to_us, instant(fault.to_us) if fault.healed else "not healed"),
            ("yes", "yes") if fault.took_effect else ("no", "no"),
            text(fault.effect),
        ]
        for fault in findings.faults
    ]
    parts = ["<h2>Faults</h2>", table(heads, cells[:_FAULTS_SHOWN])]
    if len(cells) > _FAULTS_SHOWN:
        more = table(heads, cells[_FAULTS_SHOWN:])
        count = len(cells) - _FAULTS_SHOWN
        parts.append(f"<details><summary>{_more(count)}</summary>{more}</details>")
    return "".join(parts)


def _more(count: int) -> str:
    return "one more fault" if count == 1 else f"{count} more faults"


def _latency(findings: Findings) -> str:
    names = (*histogram.QUANTILES, "max", "mean")
    heads = ("", "records#", *(f"{name}#" for name in names))
    cells = []
    for key, label in (("produce", "produce"), ("end_to_end", "end to end")):
        found = findings.latency_us[key]
        if found:
            values = [_took(found[name]) for name in names]
            cells.append([(label, ""), (f"{int(found['records']):,}", "n"), *values])
    if not cells:
        return "<h2>Latency</h2><p>No data: no record was acknowledged or read.</p>"
    return (
        '<h2>Latency</h2><p class="note">From the instant a record was meant to be sent. '
        f"Percentiles are within {histogram.RELATIVE_ERROR:.0%}; the largest is exact.</p>"
        + table(heads, cells)
    )


def _picture(picture: Picture) -> str:
    parts = [f"<h2>{escape(picture.title)}</h2>", f'<p class="note">{escape(picture.note)}</p>']
    if picture.svg:
        data = base64.b64encode(picture.svg.encode()).decode()
        parts.append(f'<img alt="{escape(picture.title)}" src="data:image/svg+xml;base64,{data}">')
    return "\n".join(parts)


def _gaps(findings: Findings) -> str:
    rows = [
        (label, row)
        for key, label in (("produce_gaps", "produce"), ("fetch_gaps", "fetch"))
        for row in rows_of(findings.frames[key])
        if row["is_longest"]
    ]
    if not rows:
        return ""
    heads = ("", "partition", "longest gap#", "from#", "to#")
    cells = [
        [
            (label, ""),
            text(f"{row['topic']}-{row['partition']}"),
            _took(int(row["gap_us"])),
            measured(int(row["from_us"]), instant(int(row["from_us"]))),
            measured(int(row["to_us"]), instant(int(row["to_us"]))),
        ]
        for label, row in rows
    ]
    return (
        f"<details><summary>longest gap of each partition</summary>{table(heads, cells)}</details>"
    )


def _replication(findings: Findings) -> str:
    frame = findings.frames["replication"]
    if frame.empty:
        return ""
    heads = (
        "partition",
        "without a leader#",
        "under min.insync.replicas#",
        "elections#",
        "unclean#",
    )
    cells = [
        [
            text(f"{row['topic']}-{row['partition']}"),
            _took(int(row["leaderless_us"])),
            _took(int(row["under_min_us"])),
            number(row["elections"]),
            number(row["unclean_elections"]),
        ]
        for row in rows_of(frame)
    ]
    return (
        "<details><summary>leadership of each partition in numbers</summary>"
        f"{table(heads, cells)}</details>"
    )


def _footer(findings: Findings) -> str:
    card = findings.files.card
    parts = [
        f"{label} {escape(str(card[key]))}"
        for key, label in (
            ("version", "logquake"),
            ("seed", "seed"),
            ("trace_digest", "trace digest"),
        )
        if card.get(key) is not None
    ]
    return (
        f"<footer><p>{' · '.join(parts)}</p><p>The same numbers for programs: report.json; "
        "tables/*.parquet hold what the figures show.</p></footer>"
    )
