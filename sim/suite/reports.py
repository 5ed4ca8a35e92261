"""Reports of a check: JUnit XML, GitHub's annotations, Markdown."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from sim.errors import SimulationError
from sim.scenario.text.yaml import ReadError, read
from sim.suite.baseline import BaselineComparison, by_path
from sim.suite.outcome import Outcome
from sim.units import SECOND, show_duration

_ERRORS = ("defect", "no progress", "interrupted", "bad input", "not deterministic")


def junit(outcomes: Sequence[Outcome], comparison: BaselineComparison | None) -> str:
    """JUnit XML: a suite for each file, a case for each seed, one more for the baseline."""
    root = ET.Element("testsuites", name="logquake")
    for path, runs in by_path(outcomes).items():
        suite = _suite(root, path, len(runs), runs)
        for run in runs:
            case = ET.SubElement(
                suite,
                "testcase",
                classname=path,
                name=f"seed {run.seed}",
                time=f"{run.wall_us / SECOND:.3f}",
            )
            if run.status != "held":
                kind = "error" if run.status in _ERRORS else "failure"
                first = run.failures[0] if run.failures else run.status
                ET.SubElement(case, kind, message=first, type=run.status).text = "\n".join(
                    run.failures
                )
            if run.answer:
                ET.SubElement(case, "system-out").text = "\n".join(_answer(run))
    if comparison is not None:
        suite = _suite(root, "baseline", 1, ())
        case = ET.SubElement(suite, "testcase", classname="baseline", name="not regressed")
        if comparison.regressed:
            lines = [f"regressed: {change}" for change in comparison.regressed]
            suite.set("failures", "1")
            failure = ET.SubElement(case, "failure", message=lines[0], type="regressed")
            failure.text = "\n".join(lines)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def annotations(
    outcomes: Sequence[Outcome], comparison: BaselineComparison | None
) -> Iterator[str]:
    """A line for each thing that is wrong, as GitHub's runners read them from standard output."""
    for path, runs in by_path(outcomes).items():
        for run in runs:
            if run.status == "held":
                continue
            line = _line(path, run)
            title = f"{run.status}, seed {run.seed}"
            yield _annotation("error", path, line, title, "\n".join(run.failures))
    if comparison is not None:
        for change in comparison.regressed:
            yield _annotation("error", change.path, 1, "regressed", str(change))


def markdown(outcomes: Sequence[Outcome], comparison: BaselineComparison | None) -> str:
    """A summary for a page: a table of the scenarios, then what was wrong."""
    runs = len(outcomes)
    bad = sum(outcome.status != "held" for outcome in outcomes)
    lines = [
        f"## logquake check: {runs - bad} of {runs} runs held",
        "",
        "| scenario | runs | held | lost | down | slow (p99) |",
        "| --- | --- | --- | --- | --- | --- |",
    ]
    for path, of_path in by_path(outcomes).items():
        held = sum(outcome.status == "held" for outcome in of_path)
        mark = "yes" if held == len(of_path) else f"**{held} of {len(of_path)}**"
        cells = (
            f"`{path}`",
            str(len(of_path)),
            mark,
            span(of_path, "lost_acked"),
            span(of_path, "unavailable.produce.max"),
            span(of_path, "produce.p99"),
        )
        lines.append(f"| {' | '.join(cells)} |")
    failed = [outcome for outcome in outcomes if outcome.status != "held"]
    if failed:
        lines += ["", "### What did not hold", ""]
    for outcome in failed:
        lines.append(f"* `{outcome.path}`, seed {outcome.seed}: {outcome.status}")
        lines += [f"  * {line}" for line in (*outcome.failures, *_answer(outcome))]
    if comparison is not None:
        lines += ["", "### Against the baseline", ""]
        lines += [f"* {line}" for line in comparison_lines(comparison)]
    return "\n".join(lines) + "\n"


def comparison_lines(comparison: BaselineComparison) -> list[str]:
    """A comparison in sentences; the first has the sum."""
    regressed, improved = (
        len(changes) or "none" for changes in (comparison.regressed, comparison.improved)
    )
    compared = f"{comparison.compared} numbers compared at a level of {comparison.level:.1g} each"
    lines = [f"{compared}: {regressed} regressed, {improved} improved"]
    lines += [f"regressed: {change}" for change in comparison.regressed]
    lines += [f"improved: {change}" for change in comparison.improved]
    lines += [f"not deterministic: {line}" for line in comparison.not_deterministic]
    lines += comparison.moved
    lines += comparison.notes
    return lines


def span(outcomes: Sequence[Outcome], metric: str) -> str:
    """Smallest and largest of a number, in its unit."""
    values = sorted(o.metrics[metric] for o in outcomes if metric in o.metrics)
    if not values:
        return "not measured"
    shown = [
        show_duration(value) if "." in metric else f"{value:,}" for value in (values[0], values[-1])
    ]
    return shown[0] if shown[0] == shown[1] else f"{shown[0]} to {shown[1]}"


def _answer(run: Outcome) -> list[str]:
    return [f"{name}: {text}" for name, _, text in run.answer]


def _suite(root: ET.Element, name: str, tests: int, runs: Sequence[Outcome]) -> ET.Element:
    errors = sum(run.status in _ERRORS for run in runs)
    failures = sum(run.status == "failed" for run in runs)
    return ET.SubElement(
        root,
        "testsuite",
        name=name,
        tests=str(tests),
        failures=str(failures),
        errors=str(errors),
        time=f"{sum(run.wall_us for run in runs) / SECOND:.3f}",
    )


def _line(path: str, run: Outcome) -> int:
    """Line of the first expectation that did not hold."""
    name = next((line["name"] for line in run.expectations if not line["held"]), "")
    try:
        document = read(Path(path).read_text(encoding="utf-8"), path)
    except (OSError, ReadError, SimulationError):
        return 1
    line = document.origin(("expect", name) if name else ("claim",)).rpartition(":")[2]
    return int(line) if line.isdecimal() else 1


def _annotation(kind: str, path: str, line: int, title: str, text: str) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    where, head = (
        word.replace("%", "%25").replace(":", "%3A").replace(",", "%2C") for word in (path, title)
    )
    return f"::{kind} file={where},line={line},title={head}::{escaped}"
