"""Output for people, during a run and after it: progress bar, run card, verdict.

Progress goes to standard error and only to a terminal; cards and verdicts go to standard output and
are plain text in a pipe.
"""

import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from typing import Any, Final

from rich.console import Console
from rich.progress import (
    BarColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import (
    Progress as Bar,
)
from rich.table import Table

from sim.cli.screen import console, escaped, say_step
from sim.progress import Step, is_requested
from sim.scenario.expect.bounds import Held
from sim.scenario.run.answer import lines
from sim.scenario.run.result import Progress, Result
from sim.scenario.run.summary import fault_text, many, servers_text
from sim.scenario.scenario import Scenario
from sim.units import SECOND, Micros, show_duration

_COLOURS: Final[dict[str, str]] = {"green": "green", "amber": "yellow", "red": "red"}

_ONLY_IF_ANY = (
    *("removed", "early_tombstones", "aborted", "aborted_visible", "aborted_read", "undecided"),
    "torn_transactions",
)
"""Counts that say nothing where nothing of the kind happened."""


def show_table(table: Table) -> None:
    """A table on standard output: as wide as a terminal or ``COLUMNS`` says, else as it needs."""
    width = shutil.get_terminal_size(fallback=(0, 0)).columns
    if width:
        Console(highlight=False, width=width).print(table)
    else:
        console().print(table)


def _run_steps() -> Callable[[Progress], None]:
    """Progress of a run as lines: simulated seconds, a line for each thousandth of a phase."""
    began: list[Micros] = []
    last = ("", -1)

    def show(progress: Progress) -> None:
        nonlocal last
        if not began:
            began.append(progress.now_us)
        done, total = progress.now_us - began[0], progress.until_us - began[0]
        at = (progress.phase, 1_000 * done // max(total, 1))
        if at == last:
            return
        last = at
        clock = f"{progress.phase}, {progress.now_us / SECOND:.1f} s of simulated time"
        faults = f"faults {progress.faults_begun}/{progress.faults}"
        say_step(Step(done / SECOND, total / SECOND or None, f"{clock}, {faults}"))

    return show


@contextmanager
def progress_bar(name: str) -> Iterator[Callable[[Progress], None] | None]:
    """A bar of simulated time on a terminal; ``None`` where nobody watches."""
    err = Console(stderr=True)
    if not err.is_terminal:
        yield _run_steps() if is_requested() else None
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[clock]}"),
        TextColumn("{task.fields[pace]}"),
        TextColumn("{task.fields[faults]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=err, transient=True) as bar:
        task = bar.add_task(escaped(name), total=None, clock="", pace="", faults="")
        began: dict[str, Micros] = {}

        def show(progress: Progress) -> None:
            start = began.setdefault(progress.phase, progress.now_us)
            elapsed = bar.tasks[0].elapsed or 0.0
            pace = progress.events / elapsed if elapsed > 0 else 0.0
            bar.update(
                task,
                description=f"{escaped(name)} {progress.phase}",
                total=max(progress.until_us - start, 1),
                completed=progress.now_us - start,
                clock=f"{progress.now_us / SECOND:.1f} s",
                pace=f"{pace:,.0f} events/s",
                faults=f"faults {progress.faults_begun}/{progress.faults}",
            )

        yield show


@contextmanager
def count_bar(name: str, total: int) -> Iterator[Callable[[str, bool], None]]:
    """A bar of finished runs on a terminal, called with the outcome of each; else silence."""
    err = Console(stderr=True)
    if not err.is_terminal:
        ended = count(1)
        say_step(Step(0, total, name))
        yield lambda what, _held: say_step(Step(next(ended), total, what))
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:.0f}/{task.total:.0f}"),
        TextColumn("{task.fields[failed]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=err, transient=True) as bar:
        task = bar.add_task(escaped(name), total=total, failed="")
        failures = 0

        def show(what: str, held: bool) -> None:  # noqa: FBT001 - a callback's second word
            nonlocal failures
            failures += not held
            bad = f"[red]{failures} failed[/red]" if failures else ""
            bar.update(task, advance=1, description=f"{escaped(name)} {escaped(what)}", failed=bad)

        yield show


def show_card(scenario: Scenario, seed: int, version: str, directory: str) -> None:
    """The run to come, with every option off its default."""
    topics = [
        f"{t.name} ({many(t.partitions, 'partition')}, RF {t.replication_factor})"
        for t in scenario.topics
    ]
    producers, consumers = len(scenario.producer_names), len(scenario.consumer_names)
    rows = [
        ("scenario", f"{scenario.name} (digest {scenario.digest[:12]}), seed {seed}"),
        ("claim", scenario.claim),
        ("cluster", f"Kafka {scenario.cluster.kafka}: {servers_text(scenario.cluster)}"),
        ("topics", ", ".join(topics)),
        ("clients", f"{many(producers, 'producer')}, {many(consumers, 'consumer')}"),
        ("faults", "; ".join(map(fault_text, scenario.faults)) or "none"),
        ("for", show_duration(scenario.run.for_us)),
        *(
            ("" if at else "off default", f"{o.path} = {o.value} (default {o.default})")
            for at, o in enumerate(scenario.off_default)
        ),
        ("logquake", version),
        ("writes", directory),
    ]
    grid = Table.grid(padding=(0, 2))
    for name, text in rows:
        grid.add_row(f"[bold]{name}[/bold]", escaped(text))
    show_table(grid)


def show_verdict(result: Result) -> None:
    """Outcome of a run: the three numbers, what each fault did, each expectation."""
    out = console()
    found = result.verdict.get("answer")
    if isinstance(found, Mapping):
        show_answer(found)
    records = result.verdict.get("records")
    if isinstance(records, Mapping):
        counts = [
            f"{key} {count:,}"
            for key, count in records.items()
            if isinstance(count, int) and (count or key not in _ONLY_IF_ANY)
        ]
        out.print(f"[bold]records[/bold]  {escaped(', '.join(counts))}")
    for errors in _failures(result.verdict.get("failed_by_error")):
        out.print(f"[bold]errors[/bold]   {escaped(errors)}")
    checks = result.verdict.get("checks")
    if isinstance(checks, list):
        out.print(f"[bold]checks[/bold]   {escaped(describe_checks(checks))}")
    for line in result.expectations:
        out.print(_marked(escaped(describe(line)), held=line["held"]))
    for fault in result.unaffected_faults:
        out.print(_marked(escaped(f"a fault did not take effect: {fault}"), held=False))
    for sentence in result.unserved:
        out.print(_marked(escaped(sentence), held=False))
    if not result.complete:
        out.print("[yellow bold]INTERRUPTED[/yellow bold]")
    elif result.held:
        out.print("[green bold]HELD[/green bold]")
    else:
        out.print("[red bold]FAILED[/red bold]")


def show_answer(found: Mapping[str, Any]) -> None:
    """Lost, down, slow, a part of each on a line; then each fault: what it did, what it cost."""
    for name, level, _ in lines(found):
        first, *rest = found[name]["parts"]
        show_numbers([(name, level, first), *(("", level, part) for part in rest)])
    for fault in found["faults"]:
        console().print(f"  [{_COLOURS[fault['level']]}]fault[/]  {escaped(fault['text'])}")


def show_numbers(found: Iterable[tuple[str, str, str]]) -> None:
    """Numbers, or parts of them, a line each, in their colours."""
    out = console()
    for name, level, text in found:
        out.print(f"[{_COLOURS[level]} bold]{name:8}[/] {escaped(text)}")


def _failures(topics: object) -> Iterator[str]:
    """Failed records of each topic by error, the most frequent error first."""
    for topic, errors in topics.items() if isinstance(topics, Mapping) else ():
        ranked = sorted(errors.items(), key=lambda entry: (-entry[1], entry[0]))
        yield f"{topic}: " + ", ".join(f"{error} {records:,}" for error, records in ranked)


def describe(line: Held) -> str:
    """One expectation: where, asked, found; and the story of one that did not hold."""
    where = f" ({line['where']})" if line["where"] else ""
    story = f"; {line['story']}" if line["story"] else ""
    return f"{line['name']}{where}: asked {line['asked']}, found {line['shown']}{story}"


def describe_checks(checks: Sequence[Mapping[str, object]]) -> str:
    """Number of checks that held, and of those that met nothing and so prove nothing."""
    counts = Counter(str(check["outcome"]) for check in checks)
    parts = [f"{counts.pop('held', 0)} held"]
    parts += [f"{count} {outcome}" for outcome, count in sorted(counts.items())]
    return "; ".join(parts)


def _marked(text: str, *, held: bool) -> str:
    return f"[green]held[/green]    {text}" if held else f"[red]failed[/red]  {text}"
