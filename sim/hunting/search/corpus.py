"""Corpus: schedules that reached something new, and how rare it is.

A schedule's energy is the sum, over its cells, of one over the number of executions that had the
cell, divided by how often it was chosen: what few runs reach, and little was made of, is continued.

Source: M. Böhme, V.-T. Pham and A. Roychoudhury, "Coverage-based Greybox Fuzzing as Markov Chain"
(AFLFast), for energy by rarity; L. Chao, "Nonparametric estimation of the number of classes in a
population", and I. J. Good for what was not seen.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from sim.hunting.search.schedule import Parent
from sim.rng import Stream

ENTRIES_MAX: Final = 400
"""Schedules that are kept; the ones with the least energy leave."""

_RARE: Final = 10
"""A cell of more executions than this adds nothing to a schedule's energy."""


@dataclass(slots=True)
class Entry:
    """A schedule of the corpus."""

    parent: Parent
    cells: tuple[int, ...]
    chosen: int = 0


class Corpus:
    """Schedules and cells of a hunt."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        """Executions that had each cell."""
        self.entries: list[Entry] = []

    def add(self, parent: Parent, cells: Sequence[int]) -> int:
        """Count an execution; the number of cells that no one had before it.

        It becomes an entry if there are any.
        """
        fresh = 0
        for cell in cells:
            count = self.counts.get(cell, 0)
            fresh += not count
            self.counts[cell] = count + 1
        if fresh:
            self.entries.append(Entry(parent, tuple(cells)))
            if len(self.entries) > ENTRIES_MAX:
                weakest = min(range(len(self.entries)), key=lambda n: (self.energy(n), n))
                self.entries.pop(weakest)
        return fresh

    def energy(self, number: int) -> float:
        """Energy of an entry."""
        entry = self.entries[number]
        counts = (self.counts[cell] for cell in entry.cells)
        return sum(1 / count for count in counts if count <= _RARE) / (1 + entry.chosen) + 1e-6

    def pick(self, stream: Stream) -> Parent:
        """An entry by its energy."""
        weights = [self.energy(number) for number in range(len(self.entries))]
        left = stream.unit() * sum(weights)
        chosen = len(weights) - 1
        for number, weight in enumerate(weights):
            left -= weight
            if left < 0:
                chosen = number
                break
        entry = self.entries[chosen]
        entry.chosen += 1
        return entry.parent


@dataclass(frozen=True, slots=True)
class Unseen:
    """Estimate of what a number of independent draws has not seen."""

    seen: int
    """Cells that were seen."""
    once: int
    """Of those, cells that one draw alone had."""
    estimated: float
    """Cells that there are, at least (Chao's lower bound)."""
    discovery: float
    """Chance that the next draw has something new, by Good and Turing: the share of draws that had
    a cell which no other draw had."""


def unseen(draws: Iterable[Sequence[int]]) -> Unseen:
    """Estimate over the cells of independent draws."""
    every = [tuple(cells) for cells in draws]
    counts: dict[int, int] = {}
    for cells in every:
        for cell in cells:
            counts[cell] = counts.get(cell, 0) + 1
    once = sum(count == 1 for count in counts.values())
    twice = sum(count == 2 for count in counts.values())
    more = once * (once - 1) / (2 * (twice + 1))
    alone = sum(any(counts[cell] == 1 for cell in cells) for cells in every)
    discovery = alone / len(every) if every else 1.0
    return Unseen(len(counts), once, len(counts) + more, discovery)
