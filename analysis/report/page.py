"""The page of a run's report: the values of ``templates/report.html``."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from analysis.pages import script
from analysis.pages.cells import Picture, rows_of, short
from analysis.pages.markup import render
from analysis.report import timeline
from analysis.report.agreement import JudgedNumber
from analysis.report.findings import Findings
from analysis.report.glance import glance
from analysis.report.kafka_metrics import metrics
from analysis.spark import histogram

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


@dataclass(frozen=True, slots=True)
class Number:
    """A line of the table of durability."""

    number: JudgedNumber
    title: str
    is_alarming: bool
    meaning: str


@dataclass(frozen=True, slots=True)
class ExpectationRow:
    """A line of the table of expectations."""

    name: str
    bound: object
    found: object
    micros: float | None
    """The value, if it is a duration."""
    held: bool


@dataclass(frozen=True, slots=True)
class CheckRow:
    """A line of the table of checks."""

    name: object
    outcome: str
    checked: int
    suspended: str
    sentence: object

    @property
    def is_held(self) -> bool:
        """True if it was checked, and held."""
        return self.outcome == "held"


def page(
    findings: Findings,
    comparisons: Sequence[JudgedNumber],
    pictures: Sequence[Picture],
    explored: Mapping[str, object],
    explanation: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """The whole document.

    Args:
        findings: Of the run.
        comparisons: Numbers of both judges.
        pictures: The figures.
        explored: From :func:`analysis.report.timeline_page.data`.
        explanation: What ``logquake explain --json`` says of the run; empty if nothing went wrong.
    """
    totals = findings.totals
    others = ("duplicated", "reordered", "divergent", "unknown")
    claim = findings.files.scenario.get("claim")
    expected = [_expectation(row) for row in _rows(findings, "expectations")]
    return render(
        "analysis.report",
        "report.html",
        script.TIMELINE,
        findings=findings,
        kind=_kind(findings, totals),
        answer=findings.files.verdict.get("answer"),
        glance=glance(findings),
        sentence=sentence(totals),
        besides=[f"{totals[name]:,} {name}" for name in others if totals[name]],
        compared=len(comparisons),
        differing=sum(not comparison.is_same for comparison in comparisons),
        claim=claim.strip() if isinstance(claim, str) else "",
        expectations=expected,
        held=sum(each.held for each in expected),
        durability={
            topic: list(_numbers(comparisons, topic))
            for topic in ("", *sorted({item.topic for item in comparisons} - {""}))
        },
        checks=[_check(row) for row in _rows(findings, "checks")],
        unreadable=rows_of(findings.unreadable),
        most_faults=_FAULTS_SHOWN,
        explored=explored,
        explanation=explanation,
        most_spans=timeline.MOST_SPANS,
        most_lanes=timeline.MOST_LANES,
        percentiles=[f"{name}#" for name in (*histogram.QUANTILES, "max", "mean")],
        latency={
            name.replace("_", " "): found for name, found in findings.latency_us.items() if found
        },
        error=histogram.RELATIVE_ERROR,
        pictures=pictures,
        gaps=[
            (label, row)
            for label in ("produce", "fetch")
            for row in rows_of(findings.frames[f"{label}_gaps"])
            if row["is_longest"]
        ],
        replication=rows_of(findings.frames["replication"]),
        metrics=metrics(findings.frames, findings.end_us, findings.width_us),
        card=[
            f"{label} {findings.files.card[key]}"
            for key, label in _CARD.items()
            if findings.files.card.get(key) is not None
        ],
    )


def _kind(findings: Findings, totals: Mapping[str, int]) -> str:
    """Colour of the banner: a run that did not hold is never green."""
    if totals["lost_acked"] or findings.files.verdict.get("held") is False:
        return "bad"
    return "good" if totals["acked"] else "none"


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


def _rows(findings: Findings, key: str) -> list[dict[str, object]]:
    """Mappings that the verdict lists."""
    listed = findings.files.verdict.get(key)
    return [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []


def _expectation(row: dict[str, object]) -> ExpectationRow:
    """An expectation; durations, in microseconds in verdicts, have their unit."""
    name, where, found = str(row.get("name")), row.get("where"), row.get("found")
    micros, shown = None, found
    if isinstance(found, int | float) and not isinstance(found, bool):
        is_duration = name.startswith(("produce.", "end_to_end.", "unavailable."))
        micros = float(found) if is_duration else None
        shown = short(found) if is_duration else f"{found:,}"
    named = f"{name} ({where})" if where else name
    return ExpectationRow(named, row.get("asked"), shown, micros, row.get("held") is True)


def _numbers(comparisons: Sequence[JudgedNumber], topic: str) -> Iterator[Number]:
    for item in comparisons:
        is_shown = item.name not in _ONLY_IF_ANY or item.ours or item.checker
        if item.topic == topic and is_shown:
            of = f" (cluster {item.cluster})" if item.cluster else ""
            is_alarming = item.name in _BAD and item.ours > 0
            yield Number(item, item.name + of, is_alarming, MEANINGS[item.name])


def _check(row: dict[str, object]) -> CheckRow:
    checked, suspended = row.get("checked", 0), row.get("suspended")
    why = suspended.items() if isinstance(suspended, dict) else ()
    return CheckRow(
        row.get("name"),
        str(row.get("outcome")),
        checked if isinstance(checked, int) else 0,
        "; ".join(f"{reason}: {count:,}" for reason, count in why),
        row.get("sentence"),
    )
