"""The story of an expectation that did not hold: what was found first, and the nearest fault.

Read from the trace once it is written, so a run whose expectations hold pays nothing for it.
"""

# ruff: noqa: PLC0415 - Arrow's kernels are imported when something did not hold, not before

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sim.checking.outcomes.scoped.changes import FIRST
from sim.checking.scope import Scope
from sim.faults.injector import FaultReport
from sim.scenario.expect.bounds import NOTHING_SLICED, Held, report_for
from sim.scenario.expect.found import Finding
from sim.scenario.model.run import Expectation
from sim.units import Micros, show_duration, show_instant

_OUTCOMES: Final = ("failed", "unknown")


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
        from sim.scenario.expect import rows

        found = rows.of_example(example, trace)
        if found is None:
            continue
        words, at = found.words.removeprefix("first: "), found.at_us
        cut = rows.cut_from(Scope(example["topic"], example["partition"]), example["offset"], trace)
        if cut is not None:
            words, at = f"{words}; {cut.words}", cut.at_us
        return f"{words}; {nearest_fault(at, faults)}"
    return ""


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
) -> Finding | None:
    if line.name.startswith("unavailable."):
        return _gap(line.name.split(".")[1], part)
    if line.name == "offline.max":
        return _without_leader(part)
    first = part.get("changes", {}).get(FIRST, {}).get(line.name)
    if first is not None:
        return Finding(first[0], f"first: {first[1]}")
    from sim.scenario.expect import rows

    if line.name in _OUTCOMES:
        return rows.first_batch(line, trace)
    if line.name.startswith("produce."):
        return rows.slowest(line, trace)
    kind = "divergent" if line.name == "divergence" else line.name
    for example in verdict.get("examples", {}).get(kind, ()):
        if line.scope.topic in ("", example["topic"]) and line.scope.partition in (
            -1,
            example["partition"],
        ):
            return rows.of_example(example, trace)
    return None


def _gap(kind: str, part: Mapping[str, Any]) -> Finding | None:
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
    return Finding(
        start, f"{name} was not served from {show_instant(start)} on for {show_duration(length)}"
    )


def _without_leader(part: Mapping[str, Any]) -> Finding | None:
    offline = part.get("availability", {}).get("offline")
    if not offline:
        return None
    name = max(offline, key=lambda each: (offline[each]["max_us"], -offline[each]["from_us"]))
    start, length = offline[name]["from_us"], show_duration(offline[name]["max_us"])
    return Finding(start, f"{name} had no live leader from {show_instant(start)} on for {length}")
