"""Fingerprint of a failure: its kind and its causal chain, not the accidents of a seed.

The kind is that which was looked for, a broken promise, or an error of the simulator. The chain has
the names of the mechanisms by which ``logquake explain`` explains it, the decisive one first; of a
cluster that is stuck the kinds of what is left over.
"""

import re
import traceback
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from sim.errors import InvariantBroken, NoProgress
from sim.hunting.rest import Leftover, in_words, kinds
from sim.hunting.sought import DOWN, STUCK, Sought
from sim.scenario.expect.bounds import VOCABULARY
from sim.suite.explain.causes import causes, mechanisms
from sim.suite.explain.run_facts import RECORD_KINDS, TASK_KINDS, RunFacts, Story
from sim.suite.explain.subject import Subject
from sim.units import Micros, show_duration

BROKEN: Final = "broken"
"""Kind of a promise of Kafka that did not hold: a defect of the simulator, or a planted one."""

DEFECT: Final = "defect"
"""Kind of an error of the simulator."""

_NAME: Final = re.compile(r"invariant (\S+) broken")
_LOOKED_AT: Final = (0, 4, 9)
"""Places of examples that are explained, among the ten of a verdict: others share their story."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A failure: equal to any other of the same kind and chain."""

    kind: str
    chain: tuple[str, ...]
    words: str = field(default="", compare=False)
    """About this run."""

    @property
    def fingerprint(self) -> str:
        """``lost_acked: acks-1, truncated``."""
        return f"{self.kind}: {', '.join(self.chain) or 'no mechanism that is known by name'}"

    @property
    def file_name(self) -> str:
        """The same as a part of a file's name."""
        words = "-".join((self.kind, *self.chain)).lower()
        return re.sub(r"[^a-z0-9]+", "-", words).strip("-")[:80]


def of_error(error: Exception) -> Finding:
    """A run that ended in an exception."""
    first = str(error).partition("\n")[0]
    if isinstance(error, InvariantBroken):
        match = _NAME.search(first)
        return Finding(BROKEN, (match[1] if match else "promise",), first)
    if isinstance(error, NoProgress):
        return Finding(DEFECT, ("no-progress",), first)
    frames = traceback.extract_tb(error.__traceback__)
    where = next((f for f in reversed(frames) if "sim" in Path(f.filename).parts), frames[-1])
    place = f"{Path(where.filename).stem}.{where.name}"
    return Finding(DEFECT, (type(error).__name__, place), first)


def of_numbers(
    verdict: Mapping[str, Any], leftovers: Sequence[Leftover], sought: Sequence[Sought]
) -> list[str]:
    """Names of what was found, before anything is known of its causes."""
    found = [each.name for each in sought if each.found(verdict)]
    is_stuck = leftovers and any(each.name == STUCK for each in sought)
    return [*found, STUCK] if is_stuck else found


def of_run(
    directory: Path, leftovers: Sequence[Leftover], sought: Sequence[Sought]
) -> list[Finding]:
    """Failures of a run that has ended, each once, in the order in which they are looked for.

    Args:
        directory: Of the run, with its trace.
        leftovers: What was not at rest in the end.
        sought: What is looked for.

    Raises:
        SimulationError: If the directory has no such run.
    """
    facts = RunFacts(directory)
    found = [finding for each in sought for finding in _found(facts, leftovers, each)]
    return list(dict.fromkeys(found))


def _found(facts: RunFacts, leftovers: Sequence[Leftover], sought: Sought) -> Iterator[Finding]:
    if sought.name == STUCK:
        if leftovers:
            yield Finding(STUCK, kinds(list(leftovers)), in_words(list(leftovers)))
        return
    size = sought.found(facts.verdict)
    if not size:
        return
    if sought.name in (*RECORD_KINDS, *TASK_KINDS):
        examples = list(facts.subjects(sought.name))
        for at in _LOOKED_AT:
            if at < len(examples):
                yield _explained(facts, examples[at], f"{size:,} records, {examples[at]} first")
    elif sought.name == DOWN:
        yield _down(facts)
    else:
        is_time = VOCABULARY[sought.name][0] == "time"
        shown = show_duration(size) if is_time else f"{size:,}"
        yield Finding(sought.name, (), f"{sought.name} is {shown}")


def _explained(facts: RunFacts, subject: Subject, words: str) -> Finding:
    story = Story(facts, subject)
    why = causes(story)
    return Finding(subject.kind, tuple(mechanisms(story)), f"{words}{f': {why[0]}' if why else ''}")


def _down(facts: RunFacts) -> Finding:
    worst = max(facts.verdict["answer"][DOWN]["worst"], key=lambda each: int(each["max_us"]))
    topic, _, number = str(worst["of"]).rpartition("-")
    since: Micros = max(int(worst["from_us"]), 0)
    kind = "unread" if worst["what"] == "consume" else "outage"
    gap = Subject(kind, topic, int(number), from_us=since, for_us=int(worst["max_us"]))
    words = f"{worst['what']} of {worst['of']} is down for {show_duration(int(worst['max_us']))}"
    found = _explained(facts, gap, words)
    return Finding(DOWN, found.chain, found.words)
