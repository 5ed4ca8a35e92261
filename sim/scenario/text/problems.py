"""Mistakes of a scenario, before their lines in the file are known.

A :class:`Problem` knows the path of the key; the loader adds file and line and raises the one-line
:class:`~sim.errors.ScenarioError` that people see.
"""

import difflib
from collections.abc import Callable, Iterable
from typing import TypeAlias, TypeVar

from sim.errors import ScenarioError

KeyPath: TypeAlias = tuple[str | int, ...]
"""Keys and list positions from the top of the file."""


class Problem(Exception):  # noqa: N818 - it names what was found, and never leaves the loader
    """One mistake. ``args``: path, what was found, what is allowed, the remedy (may be empty)."""

    def __init__(self, path: KeyPath, found: str, allowed: str, remedy: str = "") -> None:
        super().__init__(path, found, allowed, remedy)
        self.path = path
        self.found = found
        self.allowed = allowed
        self.remedy = remedy
        self.others: tuple[Problem, ...] = ()
        """Further mistakes of the same file, in the order of its lines."""

    def below(self, *parents: str | int) -> "Problem":
        """The same problem seen from further up, and the others with it."""
        moved = Problem((*parents, *self.path), self.found, self.allowed, self.remedy)
        moved.others = tuple(other.below(*parents) for other in self.others)
        return moved


T = TypeVar("T")


def gather(makes: Iterable[Callable[[], T]]) -> tuple[T, ...]:
    """Results of functions that do not need each other.

    Raises:
        Problem: The first one that any of them raised, with the others.
    """
    made: list[T] = []
    problems: list[Problem] = []
    for make in makes:
        try:
            made.append(make())
        except Problem as problem:
            problems += [problem, *problem.others]
    if problems:
        first, *others = problems
        first.others = tuple(others)
        raise first
    return tuple(made)


def show_path(path: KeyPath) -> str:
    """``faults[0].target``; ``scenario`` for the whole file."""
    text = ""
    for key in path:
        text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else key
    return text or "scenario"


def scenario_error(origin: str, problem: Problem) -> ScenarioError:
    """The line that people see: ``FILE:LINE: key.path: found; allowed; remedy``."""
    parts = [problem.found, f"allowed: {problem.allowed}" if problem.allowed else ""]
    sentence = "; ".join(part for part in (*parts, problem.remedy) if part)
    line = " ".join(f"{origin}: {show_path(problem.path)}: {sentence}".split())
    return ScenarioError(line)


def nearest(word: str, known: Iterable[str]) -> str:
    """A remedy: the nearest known spelling, or the empty text if none is near."""
    match = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"did you mean {match[0]}?" if match else ""


def one_of(known: Iterable[str]) -> str:
    """The words that are allowed, if they are few."""
    return ", ".join(known)
