"""Outcomes of single faults in plain sentences, each with the command that shows it."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Final, NamedTuple

from sim.levels import rank
from sim.scenario.text.quantities import parse_duration
from sim.suite.outcome import Outcome, Status
from sim.suite.single_faults import SingleFault
from sim.suite.statistics import never_above
from sim.units import SECOND, Micros, show_duration

STOP_US: Final[Micros] = SECOND
"""Writes that wait longer than this are worth a sentence of their own."""

_UNAVAILABLE: Final = "unavailable.produce.max"


class AnswerLine(NamedTuple):
    """One of the three numbers of a run, see :mod:`sim.scenario.run.answer`."""

    name: str
    level: str
    text: str
    size: int
    seed: int


@dataclass(frozen=True, slots=True)
class FaultOutcome:
    """Outcome of one fault over its seeds."""

    name: str
    words: str
    file: str
    """The scenario that shows it."""
    seeds: tuple[int, ...]
    """Those in which it took effect."""
    idle_seeds: tuple[int, ...]
    """Those in which it did not: they say nothing."""
    lost_seeds: tuple[int, ...]
    lost: int
    """Acknowledged records lost in the worst seed."""
    lost_us: Micros
    """The longest time in which a partition takes as many records as it lost in that seed."""
    lost_seed: int
    duplicated: int
    duplicated_seed: int
    reordered: int
    reordered_seed: int
    unavailable_us: Micros
    unavailable_seed: int
    unserved: str = ""
    """A topic's refusal, in the first such seed (:mod:`sim.scenario.expect.unserved`)."""
    unserved_seed: int = 0
    offline_us: Micros = 0
    """The longest time in which a partition had no leader, in the worst seed."""
    offline_seed: int = 0
    answer: tuple[AnswerLine, ...] = ()
    """Lost, down and slow, each of its worst seed."""
    also: tuple[str, ...] = ()
    """Other names of the same fault: in every seed they meant the same servers and instants."""
    also_runs: int = 0
    """Runs that were made under those names."""
    errors: tuple[str, ...] = ()
    """Runs that came to no verdict, and why."""
    error_kinds: tuple[Status, ...] = ()
    """End of each of them."""
    error_seeds: tuple[int, ...] = ()

    @property
    def is_harmless(self) -> bool:
        """True if it took effect, and nothing is worth a sentence of its own."""
        return bool(self.seeds) and not self.errors and not self.sentences()

    @property
    def title(self) -> str:
        """The fault, with all its names."""
        if not self.also:
            return self.words
        return f"{self.words} (here the same as: {'; '.join(self.also)})"

    def sentences(self) -> list[tuple[str, int]]:
        """Each finding with the seed that shows it; the worst first."""
        found: list[tuple[str, int]] = []
        if self.lost:
            often = f"in {len(self.lost_seeds)} of {_many(len(self.seeds), 'seed')}"
            span = f"up to {_span(self.lost_us)} of acknowledged records"
            words = f"{self.title} loses {span} ({self.lost:,} records), {often}."
            found.append((words, self.lost_seed))
        if self.unserved:
            found.append((f"{self.title}: {self.unserved}.", self.unserved_seed))
        if self.duplicated:
            words = (
                f"{self.title} leaves up to {_many(self.duplicated, 'record')} twice in the log."
            )
            found.append((words, self.duplicated_seed))
        if self.reordered:
            count = _many(self.reordered, "record")
            words = f"{self.title} leaves up to {count} behind later ones of the same producer."
            found.append((words, self.reordered_seed))
        if self.unavailable_us > STOP_US:
            span = _span(self.unavailable_us)
            words = f"{self.title} stops writes to a partition for up to {span}."
            found.append((words, self.unavailable_seed))
        if self.offline_us > STOP_US:
            span = _span(self.offline_us)
            words = f"{self.title} leaves a partition without a leader for up to {span}."
            found.append((words, self.offline_seed))
        return found

    def command(self, seed: int) -> str:
        """The command that shows it."""
        return f"logquake run {quote(self.file)} --seed {seed}"


def answer(
    fault: SingleFault | None, file: str, run_us: Micros, found: Sequence[Outcome]
) -> FaultOutcome:
    """One fault's answer from its runs.

    Args:
        fault: What struck; ``None`` for the run in which nothing does.
        file: The scenario.
        run_us: How long its workload lasted.
        found: Its runs.
    """
    words = "Nothing going wrong" if fault is None else fault.words
    judged = [o for o in found if o.status in ("held", "failed")]
    broken = [o for o in found if o.status not in ("held", "failed")]
    reached = [o for o in judged if not o.faults_without_effect]
    lost, lost_seed = _worst(reached, "lost_acked")
    worst = next((o for o in reached if o.seed == lost_seed), None)
    duplicated, duplicated_seed = _worst(reached, "duplicated")
    reordered, reordered_seed = _worst(reached, "reordered")
    gaps = [(o.metrics.get(_UNAVAILABLE, 0), -o.seed) for o in reached]
    gap, minus_seed = max(gaps, default=(0, 0))
    unserved, unserved_seed = next(
        ((o.unserved[0], o.seed) for o in reached if o.unserved), ("", 0)
    )
    offline, minus_offline = max(((o.offline_us, -o.seed) for o in reached), default=(0, 0))
    return FaultOutcome(
        name="nothing" if fault is None else fault.name,
        words=words,
        file=file,
        seeds=tuple(o.seed for o in reached),
        idle_seeds=tuple(o.seed for o in judged if o.faults_without_effect),
        lost_seeds=tuple(o.seed for o in reached if o.records.get("lost_acked", 0)),
        lost=lost,
        lost_us=0 if worst is None or not lost else _worth(worst, run_us),
        lost_seed=lost_seed,
        duplicated=duplicated,
        duplicated_seed=duplicated_seed,
        reordered=reordered,
        reordered_seed=reordered_seed,
        unavailable_us=gap,
        unavailable_seed=-minus_seed,
        unserved=unserved,
        unserved_seed=unserved_seed,
        offline_us=offline,
        offline_seed=-minus_offline,
        answer=tuple(_three(reached)),
        errors=tuple(f"seed {o.seed}: {o.status}: {o.message}" for o in broken),
        error_kinds=tuple(o.status for o in broken),
        error_seeds=tuple(o.seed for o in broken),
    )


def _three(found: Iterable[Outcome]) -> Iterator[AnswerLine]:
    """The worst of each number over some runs."""
    every = [
        [AnswerLine(*line, o.sizes[line[0]], o.seed) for line in o.answer]
        for o in found
        if o.answer
    ]
    for same in zip(*every, strict=True):
        yield max(same, key=lambda line: (*rank(line.level, line.size), -line.seed))


def three(answers: Sequence[FaultOutcome]) -> list[AnswerLine]:
    """The three numbers of the cluster: each of the fault that makes it worst, which is named."""
    every = [[line._replace(text=f"{a.title}: {line.text}") for line in a.answer] for a in answers]
    return [
        max(same, key=lambda line: rank(line.level, line.size))
        for same in zip(*(lines for lines in every if lines), strict=True)
    ]


def ranked(answers: Iterable[FaultOutcome]) -> list[FaultOutcome]:
    """The worst first: what loses most, then what duplicates, then what stops for longest."""

    def order(a: FaultOutcome) -> tuple[int | str, ...]:
        return -a.lost_us, -a.lost, -a.duplicated, -max(a.unavailable_us, a.offline_us), a.name

    return sorted(answers, key=order)


Tried = tuple[SingleFault | None, str, list[Outcome]]
"""A fault, the scenario in which it struck, and its runs."""


def distinct(tried: Iterable[Tried]) -> list[list[Tried]]:
    """Faults by what they hit: those that are one fault under several names, together.

    They are one if their runs, in every seed that both have, met the same servers with the same
    kind of fault at the same instants: the leaders of three topics may be one broker. Without a
    common seed, and where a role was not filled, nothing is known.
    """
    groups: list[list[Tried]] = []
    for each in tried:
        for group in groups:
            if each[0] is not None and _is_one_fault(group[0][2], each[2]):
                group.append(each)
                break
        else:
            groups.append([each])
    return groups


def _is_one_fault(some: Sequence[Outcome], others: Sequence[Outcome]) -> bool:
    hits = {o.seed: o.hits for o in some}
    common = [o for o in others if o.seed in hits]
    return bool(common) and all(
        o.hits == hits[o.seed] and o.hits and all(len(hit) > _NAMELESS for hit in o.hits)
        for o in common
    )


_NAMELESS: Final = 3
"""The rest of a hit beside names: a kind and two instants."""


def closing(answers: Sequence[FaultOutcome], untried: int, budget: str) -> list[str]:
    """Conclusion from all of them together, and its limits."""
    reached = [a for a in answers if a.seeds]
    runs = sum(len(a.seeds) for a in reached)
    losing = [a for a in reached if a.lost]
    lines = []
    quiet = [a.title for a in reached if a.is_harmless]
    if quiet:
        lines.append(f"Harmless ({show_duration(STOP_US)} at most): {'; '.join(quiet)}.")
    idle = [each.title for each in answers if each.idle_seeds and not each.seeds]
    lines += [f"{words} did not take effect, which says nothing." for words in idle]
    faults = _many(len(reached), "single fault")
    if losing:
        count = f"{len(losing)} of {faults}"
        lines.append(f"{count} lost acknowledged records ({_many(runs, 'run')}).")
    elif reached:
        missed = never_above(min(len(a.seeds) for a in reached))
        lines.append(
            f"None of {faults} lost an acknowledged record ({_many(runs, 'run')}). What happens in "
            f"less than {missed:.0%} of the cases may be missed with so few seeds; ask for more."
        )
    if untried:
        lines.append(
            f"{_many(untried, 'run')} did not fit into the budget of {budget}: what was run is "
            "kept, so the same command goes on, and --budget asks for more."
        )
    return lines


def _worst(found: Sequence[Outcome], name: str) -> tuple[int, int]:
    """The largest number of the runs, and the first seed that has it."""
    value, minus_seed = max(((o.records.get(name, 0), -o.seed) for o in found), default=(0, 0))
    return value, -minus_seed


def _worth(outcome: Outcome, run_us: Micros) -> Micros:
    """Time in which a partition gets as many records as it lost; the longest of all."""
    file = Path(outcome.directory) / "verdict.json"
    partitions = json.loads(file.read_text(encoding="utf-8"))["partitions"]
    return max(
        int(p["lost_acked"]) * run_us // int(p["sent"]) for p in partitions.values() if p["sent"]
    )


def _span(duration: Micros) -> str:
    """A duration in two digits, as one says it."""
    unit, name = (SECOND, "s") if duration >= SECOND else (1_000, "ms")
    value = duration / unit
    return f"{value:.1f} {name}" if value < 10 else f"{value:.0f} {name}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}" if count == 1 else f"{count:,} {what}s"


def parse_budget(text: str) -> Micros:
    """``5m`` of real time, in microseconds; written as durations of scenarios are, or in ``m``.

    Raises:
        ValueError: If it is neither.
    """
    word = f"{text}in" if text.endswith("m") and text[:-1].isdecimal() else text
    return parse_duration(word)
