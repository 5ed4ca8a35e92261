"""Corpus: schedules that reached something new or came nearer to a loss, and how rare that is.

A schedule's energy is the sum, over its cells, of one over the number of executions that had the
cell, and of its nearness: a half for each step by which it is farther from a loss than the nearest
one that did not fail. It is divided by how often the schedule was chosen: what few runs reach, what
nearly failed, and of what little was made, is continued. What has failed is found, and is continued
less often; what has failed as another one before, not at all.

Cells of a corpus are coarse: named states by themselves and in pairs, and kinds of faults that had
an effect. Of the fine ones (:mod:`sim.hunting.search.coverage`) nearly every run has a new one.

Source: M. Böhme, V.-T. Pham and A. Roychoudhury, "Coverage-based Greybox Fuzzing as Markov Chain"
(AFLFast), for energy by rarity; L. Chao, "Nonparametric estimation of the number of classes in a
population", and I. J. Good for what was not seen.
"""

import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

from sim.hunting.search.schedule import Parent
from sim.rng import Stream

ENTRIES_MAX: Final = 400
"""Schedules that are kept; the ones with the least energy leave."""

_RARE: Final = 10
"""A cell of more executions than this adds nothing to a schedule's energy."""


_NEAR: Final = 4.0
"""Energy of the nearest schedule, in cells that it alone has reached."""

_FOUND: Final = 3
"""Times that a schedule which failed counts as chosen."""


@dataclass(slots=True)
class Entry:
    """A schedule of the corpus."""

    parent: Parent
    cells: tuple[int, ...]
    distance: int | None = None
    """From a loss; ``None`` if nobody has measured it."""
    chosen: int = 0


def coarse(landmarks: Iterable[str], kinds: Iterable[str]) -> tuple[int, ...]:
    """Cells of an execution: its landmarks, each two of them, and the faults that had an effect."""
    names = sorted(landmarks)
    words = [*names, *(" ".join(two) for two in combinations(names, 2))]
    words += [f"fault {kind}" for kind in kinds]
    return tuple(zlib.crc32(word.encode()) for word in words)


class Corpus:
    """Schedules and cells of a hunt."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}
        """Executions that had each cell."""
        self.entries: list[Entry] = []
        self.nearest: int | None = None
        """Least distance of an execution that did not fail: those that did are found."""

    def add(
        self,
        parent: Parent,
        cells: Sequence[int],
        distance: int | None = None,
        *,
        is_found: bool = False,
        is_known: bool = False,
    ) -> int:
        """Count an execution; the number of cells that no one had before it.

        It becomes an entry if there are any, or if it came nearer to a loss than all before it.

        Args:
            parent: Its schedule, and the points of its run.
            cells: What it reached.
            distance: From a loss, if somebody has measured it.
            is_found: True if it failed.
            is_known: True if it failed as another one before: it is counted, and not continued.
        """
        is_nearer = (
            not is_found
            and distance is not None
            and (self.nearest is None or distance < self.nearest)
        )
        if is_nearer:
            self.nearest = distance
        fresh = 0
        for cell in cells:
            count = self.counts.get(cell, 0)
            fresh += not count
            self.counts[cell] = count + 1
        if (fresh or is_nearer) and not is_known:
            chosen = _FOUND if is_found else 0
            self.entries.append(Entry(parent, tuple(cells), distance, chosen))
            if len(self.entries) > ENTRIES_MAX:
                weakest = min(range(len(self.entries)), key=lambda n: (self.energy(n), n))
                self.entries.pop(weakest)
        return fresh

    def energy(self, number: int) -> float:
        """Energy of an entry."""
        entry = self.entries[number]
        counts = (self.counts[cell] for cell in entry.cells)
        rarity = sum(1 / count for count in counts if count <= _RARE)
        nearness = 0.0
        if entry.distance is not None and self.nearest is not None:
            nearness = 0.5 ** max(entry.distance - self.nearest, 0)
        return (rarity + _NEAR * nearness) / (1 + entry.chosen) + 1e-6

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
