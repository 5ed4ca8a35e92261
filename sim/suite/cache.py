"""Results of earlier runs, found by what makes a run what it is: scenario, seed and code."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Final

from sim.suite.outcome import Outcome, from_json
from sim.suite.plan import Job
from sim.trace.kept import LEFT_OUT, Kept, kept_of

DIRECTORY: Final = Path(".logquake_cache")
"""Directory of results, below the current one."""


class Cache:
    """A directory with a file for each result.

    Args:
        directory: Made when the first result is kept; ``None`` remembers nothing.
    """

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory

    def find(self, job: Job) -> Outcome | None:
        """The result of the same run, if it is known; a damaged file is as good as none."""
        if self._directory is None:
            return None
        try:
            plain = json.loads(self._file(job).read_text(encoding="utf-8"))
            outcome = from_json(plain)
        except (OSError, ValueError, TypeError, RecursionError):
            return None
        kept = Path(outcome.directory) if outcome.directory else None
        due = job.keep or ("all" if outcome.status != "held" else None)
        if due is not None and (kept is None or not _holds(kept, due)):
            return None  # the run was to be kept, and is not there any more
        return replace(outcome, path=job.path, cached=True)

    def keep(self, job: Job, outcome: Outcome) -> None:
        """Remember a result, unless the same run could come to another one."""
        if self._directory is None or not outcome.is_repeatable:
            return
        file = self._file(job)
        file.parent.mkdir(parents=True, exist_ok=True)
        ignore = self._directory / ".gitignore"
        if not ignore.exists():
            ignore.write_text("*\n", encoding="utf-8")
        temporary = file.with_suffix(".tmp")
        temporary.write_text(json.dumps(outcome.as_json()), encoding="utf-8")
        temporary.replace(file)

    def _file(self, job: Job) -> Path:
        assert self._directory is not None
        return self._directory / job.key[:2] / f"{job.key}.json"


def _holds(directory: Path, due: Kept) -> bool:
    """True if a run directory has as much as is to be kept."""
    return directory.is_dir() and set(LEFT_OUT[kept_of(directory)]) <= set(LEFT_OUT[due])
