"""Breadth-first search over a world: every state within the bounds, shortest counterexample first.

States are compared whole, never by a fingerprint: two states are one only if they are equal.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from tests.explore.properties import PROPERTIES, Property
from tests.explore.world import State, Violation, World


@dataclass
class Found:
    """What a search saw. ``trace`` is empty if every property held."""

    states: int
    transitions: int
    depth: int
    broken: str = ""
    trace: tuple[str, ...] = ()
    complete: bool = True
    """Whether nothing was left to look at."""

    def __str__(self) -> str:
        lines = [f"{i:3}  {step}" for i, step in enumerate(self.trace, start=1)]
        return "\n".join([f"{self.states} states, depth {self.depth}", *lines, self.broken])


def search(
    world: World,
    properties: Mapping[str, Property] = PROPERTIES,
    *,
    start: State | None = None,
    states_max: int = 5_000_000,
) -> Found:
    """Look at every state, nearest first, until a property breaks or nothing is left."""
    first = start or world.initial()
    parents: dict[State, tuple[State, str] | None] = {first: None}
    frontier = deque([(first, 0)])
    transitions = depth = 0
    while frontier:
        state, depth = frontier.popleft()
        successors = world.successors(state)
        while True:
            try:
                words, after = next(successors)
            except StopIteration:
                break
            except Violation as violation:
                trace = (*_path(parents, state), violation.words)
                return Found(len(parents), transitions, depth + 1, str(violation), trace)
            transitions += 1
            if after in parents:
                continue
            parents[after] = (state, words)
            for name, holds in properties.items():
                wrong = holds(world, after)
                if wrong:
                    trace = _path(parents, after)
                    return Found(len(parents), transitions, depth + 1, f"{name}: {wrong}", trace)
            if len(parents) >= states_max:
                return Found(len(parents), transitions, depth, complete=False)
            frontier.append((after, depth + 1))
    return Found(len(parents), transitions, depth)


def _path(parents: dict, state: State) -> tuple[str, ...]:
    steps = []
    while (parent := parents[state]) is not None:
        state, words = parent
        steps.append(words)
    return tuple(reversed(steps))
