"""Runs to come: files, seeds, and the name under which a run is cached."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sim.errors import SimulationError
from sim.scenario.loader import load
from sim.scenario.run.directory import CARD
from sim.scenario.scenario import Scenario
from sim.trace.kept import Kept

SEEDS_MAX: Final = 100_000
"""More seeds than that are a mistyped range."""

_RANGE: Final = re.compile(r"(\d+)(?:\.\.(\d+))?", re.ASCII)
_ALLOWED: Final = "seeds such as 7, 1..20 or 1..3,8,11"


@dataclass(frozen=True, slots=True)
class Job:
    """One run that is to be made."""

    path: str
    """The scenario file, as given."""
    seed: int
    directory: str
    """Directory of the run."""
    key: str
    """Equal for runs that must have equal results: scenario as resolved, seed, code."""
    twice: bool = False
    keep: Kept | None = None
    """Parts of the run directory that stay; ``None``: all if the run did not hold, else nothing."""


def parse_seeds(text: str) -> tuple[int, ...]:
    """The seeds of ``1..20`` or ``3,5..7``, in that order, each once.

    Raises:
        SimulationError: For anything else, with what is allowed.
    """
    seeds: list[int] = []
    for word in text.split(","):
        match = _RANGE.fullmatch(word.strip())
        if match is None:
            raise SimulationError(f"--seeds: found {word.strip()!r}; allowed: {_ALLOWED}")
        low, high = int(match[1]), int(match[2] or match[1])
        if low > high or high - low >= SEEDS_MAX:
            raise SimulationError(
                f"--seeds: {word.strip()!r} is {'empty' if low > high else 'too long'}; "
                f"allowed: {_ALLOWED}, at most {SEEDS_MAX:,}"
            )
        seeds += range(low, high + 1)
    return tuple(dict.fromkeys(seeds))


def find_files(paths: Sequence[Path]) -> list[Path]:
    """Scenario files: those named, and all below directories, sorted within each.

    What a run left beside its card is a copy, and is not run again.

    Raises:
        SimulationError: If a directory has none.
    """
    found: list[Path] = []
    for path in paths:
        if not path.is_dir():
            found.append(path)
            continue
        below = sorted(
            file
            for pattern in ("*.yaml", "*.yml")
            for file in path.rglob(pattern)
            if not (file.parent / CARD).exists()
        )
        if not below:
            raise SimulationError(f"{path}: no scenario in this directory; they end in .yaml")
        found += below
    return list(dict.fromkeys(found))


def plan(
    files: Sequence[Path],
    seeds: Sequence[int],
    directory: Path,
    *,
    twice: bool = False,
    keep: Kept | None = None,
) -> list[Job]:
    """Every file with every seed; without seeds each file with its own.

    All files are read before anything runs.

    Raises:
        ScenarioError: For the first file that cannot be run.
    """
    code = code_digest()
    jobs: list[Job] = []
    taken: dict[str, str] = {}
    for file in files:
        scenario = load(file)
        name = scenario.name
        if taken.setdefault(name, str(file)) != str(file):
            name += f"-{hashlib.sha256(str(file).encode()).hexdigest()[:8]}"
        jobs += [
            Job(
                path=file.as_posix(),
                seed=seed,
                directory=(directory / f"{name}-s{seed}").as_posix(),
                key=run_key(scenario, seed, code, twice=twice),
                twice=twice,
                keep=keep,
            )
            for seed in seeds or (scenario.run.seed,)
        ]
    return jobs


def run_key(scenario: Scenario, seed: int, code: str, *, twice: bool = False) -> str:
    """Hex name of a run: runs with one name have one result."""
    words = (scenario.name, scenario.digest, str(seed), code, "twice" if twice else "once")
    return hashlib.sha256("\0".join(words).encode()).hexdigest()


def code_digest() -> str:
    """Hex digest of the simulator's sources: another one may come to other results."""
    root = Path(__file__).resolve().parents[1]
    total = hashlib.sha256()
    for file in sorted(root.rglob("*.py")):
        total.update(file.relative_to(root).as_posix().encode() + b"\0")
        total.update(hashlib.sha256(file.read_bytes()).digest())
    return total.hexdigest()
