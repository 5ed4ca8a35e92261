"""Comparison of the two judges: Spark on the files, and the checker inside the simulator.

Counts of records are compared, and times in which partitions had no leader in service, exactly.
Both have latencies, too, but each rounds into buckets of its own, so they are shown side by side
without a judgement.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from analysis.pages.cells import rows_of
from analysis.report.findings import Findings
from analysis.verify import acknowledgements
from analysis.verify.durability import COUNTS


@dataclass(frozen=True, slots=True)
class JudgedNumber:
    """One number of both judges."""

    topic: str
    """Empty for the total."""
    name: str
    ours: int
    checker: int | None
    """``None`` if the checker does not have it."""
    cluster: str = ""
    """Alias of another cluster of the run; empty for the run's own."""

    @property
    def is_same(self) -> bool:
        """True if both are equal."""
        return self.ours == self.checker


def compare(findings: Findings) -> tuple[JudgedNumber, ...]:
    """Every number, the totals first, then topic by topic; topics that one judge lacks count 0."""
    verdict = findings.files.verdict
    reported = _mapping(verdict.get("topics"))
    found = [_of("", name, findings.totals, _mapping(verdict.get("records"))) for name in COUNTS]
    for topic in sorted({*findings.topics, *reported}):
        ours = findings.topics.get(topic, dict.fromkeys(COUNTS, 0))
        found.extend(_of(topic, name, ours, _mapping(reported.get(topic))) for name in COUNTS)
    task_counts = _mapping(verdict.get("processing"))
    tasks = findings.processing
    found.extend(_of("", name, tasks, task_counts) for name in tasks)
    share_counts = _mapping(verdict.get("sharing"))
    shares = findings.sharing
    found.extend(_of("", name, shares, share_counts) for name in shares)
    connected = findings.connecting
    connector_counts = _mapping(verdict.get("connecting"))
    found.extend(_of("", name, connected, connector_counts) for name in connected)
    mirror_counts = _mapping(verdict.get("mirroring"))
    mirrors = findings.mirroring
    found.extend(_offline(findings))
    given = findings.answers if acknowledgements.COUNTS[0] in verdict else {}
    found.extend(_of("", name, given, verdict) for name in given)
    found.extend(_others(findings))
    return (*found, *(_of("", name, mirrors, mirror_counts) for name in mirrors))


def _others(findings: Findings) -> Iterator[JudgedNumber]:
    """Acknowledgements by both sides, of each other cluster."""
    clusters = _mapping(findings.files.verdict.get("clusters"))
    for alias, ours in findings.other_answers.items():
        reported = _mapping(clusters.get(alias))
        for name in ours:
            yield replace(_of("", name, ours, reported), cluster=alias)


def _offline(findings: Findings) -> Iterator[JudgedNumber]:
    """The longest stretch without a leader in service, of all and of each topic."""
    availability = _mapping(findings.files.verdict.get("availability"))
    if "offline_max_us" not in availability:
        return
    ours, theirs = dict[str, int](), dict[str, int]()
    for row in rows_of(findings.frames["offline"]):
        _raise_to(ours, str(row["topic"]), int(row["max_us"]))
    for name, each in _mapping(availability.get("offline")).items():
        longest = _mapping(each).get("max_us")
        _raise_to(theirs, name.rpartition("-")[0], longest if isinstance(longest, int) else -1)
    reported = availability["offline_max_us"]
    checker = reported if isinstance(reported, int) else None
    yield JudgedNumber("", "offline.max", max(ours.values(), default=0), checker)
    for topic in sorted({*ours, *theirs}):
        yield JudgedNumber(topic, "offline.max", ours.get(topic, 0), theirs.get(topic, 0))


def _raise_to(longest: dict[str, int], topic: str, duration: int) -> None:
    longest[topic] = max(duration, longest.get(topic, 0))


def _of(
    topic: str, name: str, ours: Mapping[str, int], reported: dict[str, object]
) -> JudgedNumber:
    value = reported.get(name)
    checker = value if isinstance(value, int) and not isinstance(value, bool) else None
    return JudgedNumber(topic, name, ours[name], checker)


def _mapping(value: object) -> dict[str, object]:
    return {str(k): v for k, v in value.items()} if isinstance(value, dict) else {}
