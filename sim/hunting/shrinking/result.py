"""Files of a shrunk failure: the scenario that a person reads, and its capsule."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sim.errors import SimulationError
from sim.hunting.capsule import ENDING, Capsule, dumped, made, text_of
from sim.hunting.fingerprint import Finding
from sim.hunting.shrinking.shrink import Shrunk, Task, attempt, claimed
from sim.hunting.sought import Sought
from sim.suite.pool import Pool, ShouldStop

OTHER_SEEDS = 5
"""Seeds beside its own with which a shrunk failure is tried."""


@dataclass(frozen=True, slots=True)
class Files:
    """Names of both files."""

    scenario: Path
    capsule: Path


def files_of(out: Path, *, force: bool) -> Files:
    """Names of the files below one name, with or without an ending.

    Raises:
        SimulationError: If one is there already.
    """
    stem = out.name.removesuffix(ENDING).removesuffix(".yaml")
    files = Files(out.with_name(f"{stem}.yaml"), out.with_name(f"{stem}{ENDING}"))
    for file in (files.scenario, files.capsule):
        if file.exists() and not force:
            raise SimulationError(
                f"{file}: is there already; add --force to replace it, or choose another --out"
            )
    return files


def save(
    files: Files, found: Shrunk, seed: int, sought: Sequence[Sought], finding: Finding, origin: str
) -> Capsule:
    """Write both files.

    Args:
        files: Where.
        found: What the shrinker came to.
        seed: Of its runs.
        sought: What was looked for.
        finding: The failure.
        origin: What it was made of, for the comment above.
    """
    seen = finding if found.last is None else _same(finding, found.last.findings)
    capsule = made(claimed(found.data, finding, sought), seed, sought, seen)
    files.scenario.parent.mkdir(parents=True, exist_ok=True)
    head = f"# Made by logquake shrink of {origin}.\n# {seen.fingerprint}\n"
    files.scenario.write_text(head + dumped(capsule.data), encoding="utf-8")
    files.capsule.write_text(text_of(capsule), encoding="utf-8")
    return capsule


def elsewhere(capsule: Capsule, pool: Pool, should_stop: ShouldStop) -> tuple[int, int]:
    """In how many of some other seeds the same failure happens, and of how many that is known."""
    seeds = range(capsule.seed + 1, capsule.seed + 1 + OTHER_SEEDS)
    tasks = [Task(dict(capsule.data), seed, capsule.sought) for seed in seeds]
    found = [
        capsule.finding in result.findings
        for _, result in pool.results(attempt, tasks, should_stop)
        if result is not None and result.complete
    ]
    return sum(found), len(found)


def _same(finding: Finding, found: Sequence[Finding]) -> Finding:
    return next((each for each in found if each == finding), finding)
