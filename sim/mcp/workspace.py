"""Files of the server: a root below which everything is written, and what may be read beside it."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import walk
from pathlib import Path
from typing import Final, Literal

from sim.errors import SimulationError
from sim.scenario.loader import FILE_BYTES_MAX
from sim.scenario.run.directory import CARD
from sim.scenario.shipped import find, shipped
from sim.units import Bytes

Origin = Literal["text", "path", "shipped"]
"""Form in which a scenario was given."""

SCRATCH: Final = ".scratch"
"""Directory below the root for temporary files of commands."""

_TEXTS: Final = "scenarios"
"""Directory below the root for scenarios that were given as text."""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
_NUMBERS_MAX: Final = 10_000


@dataclass(frozen=True, slots=True)
class GivenScenario:
    """A scenario file, and the form in which it was given."""

    file: Path
    origin: Origin


class Workspace:
    """The root directory and its rules.

    Args:
        root: Made if it is missing.
        beside: Directories that may be read, too.
    """

    def __init__(self, root: Path, beside: Sequence[Path] = ()) -> None:
        root.mkdir(parents=True, exist_ok=True)
        self.root = root.resolve()
        self._readable = (self.root, *(path.resolve() for path in beside))
        self._given_out: set[str] = set()
        (self.root / SCRATCH).mkdir(exist_ok=True)

    def scenario(self, given: str, name: str) -> GivenScenario:
        """The file of a scenario.

        Args:
            given: YAML text, the path of a file, or the name of one that comes with the program.
            name: Of a text; its file is called so.

        Raises:
            SimulationError: If a path is outside, or a name is none.
        """
        if "\n" in given or given.lstrip().startswith("{"):
            return GivenScenario(self._written(given, name), "text")
        if given in shipped():
            return GivenScenario(find(given).resolve(), "shipped")
        if "/" not in given and not given.endswith((".yaml", ".yml")):
            find(given)  # raises, with names that are near
        return GivenScenario(self.readable(given), "path")

    def readable(self, given: str) -> Path:
        """A file that may be read.

        Raises:
            SimulationError: If it is outside.
        """
        return self._inside(given, self._readable)

    def check_modules(self, scenario: Path, modules: Sequence[str]) -> None:
        """Check that the Python files that a scenario names, all beside it, are below the root.

        Raises:
            SimulationError: If one is not: code is run from nowhere else.
        """
        if modules and not scenario.resolve().is_relative_to(self.root):
            raise SimulationError(
                f"{scenario}: names {', '.join(modules)}; Python is run from {self.root} alone: "
                "put both files there"
            )

    def run_directory(self, given: str) -> Path:
        """An earlier run, by its directory or its name below the root.

        Raises:
            SimulationError: If it is outside, or no run.
        """
        found = self._inside(given, (self.root,))
        if not (found / CARD).is_file():
            known = sorted(card.parent.name for card in self.root.glob(f"*/{CARD}"))
            raise SimulationError(
                f"{found}: not a run directory (no {CARD}); "
                f"known: {', '.join(known[-10:]) or 'none, run a scenario first'}"
            )
        return found

    def free(self, name: str) -> Path:
        """A directory below the root that is not there yet: the name, or with a number behind it.

        None is given out twice: a call may wait before it makes its directory.

        Raises:
            SimulationError: If all of them are taken.
        """
        names = (name, *(f"{name}-{number}" for number in range(2, _NUMBERS_MAX)))
        for each in names:
            if each not in self._given_out and not (self.root / each).exists():
                self._given_out.add(each)
                return self.root / each
        raise SimulationError(f"{self.root / name}: every number is taken; remove earlier runs")

    def used(self, below: Path | None = None) -> Bytes:
        """Size of all files below a directory, the root if it is not given."""
        total = 0
        for directory, _, names in walk(self.root if below is None else below):
            for name in names:
                try:
                    total += (Path(directory) / name).lstat().st_size
                except OSError:
                    continue  # a run removes what it has rolled
        return total

    def _written(self, text: str, name: str) -> Path:
        """The file of a text, named by its content: the same text has the same file."""
        check_name(name)
        if len(text) > FILE_BYTES_MAX:
            raise SimulationError(f"scenario: more than {FILE_BYTES_MAX} bytes of text")
        digest = hashlib.sha256(text.encode()).hexdigest()[:8]
        file = self.root / _TEXTS / f"{name}-{digest}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def _inside(self, given: str, allowed: Sequence[Path]) -> Path:
        """The path, links resolved; relative ones begin at the root or where the server began.

        Raises:
            SimulationError: If it is in none of the directories: nothing outside is looked at.
        """
        if "\0" in given:
            raise SimulationError(f"{given!r}: not a path")
        candidates = [(start / given).resolve() for start in (self.root, Path.cwd())]
        inside = [
            path
            for path in candidates
            if any(path.is_relative_to(directory) for directory in allowed)
        ]
        if not inside:
            places = ", ".join(str(directory) for directory in allowed)
            raise SimulationError(
                f"{given}: outside of what this server may read; allowed: files below {places}; "
                "give the scenario's text, or begin logquake mcp with --root or --read"
            )
        return next((path for path in inside if path.exists()), inside[0])


def check_name(name: str) -> None:
    """Check the name of something that is given without one.

    Raises:
        SimulationError: If it could be more than a part of a file's name.
    """
    if _NAME.fullmatch(name) is None:
        raise SimulationError(
            f"name: found {name!r}; allowed: lower-case letters, digits and hyphens, "
            "at most 40; such as acks-one"
        )
