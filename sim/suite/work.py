"""One run of many: in this process, or twice in two processes of its own."""

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from sim.errors import InvariantBroken, NoProgress, SimulationError
from sim.lifetime import ENDS_WITH_INPUT, child
from sim.scenario.estimate.forecast import estimate
from sim.scenario.estimate.space import check_run, check_runs, space_at
from sim.scenario.estimate.storage import Storage
from sim.scenario.loader import load
from sim.scenario.run.directory import CARD, keep_only
from sim.scenario.run.runner import run
from sim.suite.outcome import Outcome, Status, read_outcome
from sim.suite.plan import Job
from sim.trace.difference import first_difference

HASH_SEEDS: Final = ("1", "4711")
"""``PYTHONHASHSEED`` of the two processes: what follows the order of a set shows."""

_OTHERWISE: Final = ("run them in a directory on a larger disk",)

_SAME: Final = ("scenario_digest", "trace_digest", "disk_digest", "events", "simulated_us")

_STATUS: Final[dict[int, Status]] = {
    2: "bad input",
    3: "no progress",
    4: "defect",
    130: "interrupted",
}


def execute(job: Job, should_stop: Callable[[], bool] | None = None) -> Outcome:
    """Run a job; whatever goes wrong is part of the answer.

    The directory of a run that held is removed, unless the job keeps it; of one that is kept only
    what the job keeps stays.
    """
    outcome = _twice(job) if job.twice else _once(job, should_stop)
    if outcome.status == "held" and job.keep is None:
        shutil.rmtree(job.directory, ignore_errors=True)
        return replace(outcome, directory="")
    if outcome.status in ("held", "failed"):
        directory = Path(job.directory)
        card = json.loads((directory / CARD).read_text(encoding="utf-8"))
        keep_only(directory, job.keep or "all", card)
    return outcome


def check_space(jobs: Sequence[Job], processes: int) -> str:
    """Check that the disk has space for the runs that are made at once, and for what is kept.

    Runs that do not hold stay, too, and are not counted: each looks for space when it begins.

    Returns:
        A line that announces large runs; empty for others.

    Raises:
        SimulationError: If they would fill it.
    """
    if not jobs:
        return ""
    disks = {path: _estimate(path) for path in dict.fromkeys(job.path for job in jobs)}
    at_once = min(processes, len(jobs))
    largest = sorted(jobs, key=lambda job: disks[job.path].total * (1 + job.twice), reverse=True)
    needed = sum(disks[job.path].total * (1 + job.twice) for job in largest[:at_once])
    needed += sum(
        disks[job.path].kept(job.keep) for job in largest[at_once:] if job.keep is not None
    )
    advice = ["--keep verdict"] if any(job.keep in ("all", "logs") for job in jobs) else []
    advice += ["fewer at once (--jobs)"] if at_once > 1 else []
    where = space_at(Path(jobs[0].directory).parent)
    words = f"{len(jobs)} runs, {at_once} at once,"
    return check_runs(needed, words, where, [*advice, "shorten the runs", *_OTHERWISE])


def _estimate(path: str) -> Storage:
    return estimate(load(Path(path)), "facts").disk


def _once(job: Job, should_stop: Callable[[], bool] | None) -> Outcome:
    directory = Path(job.directory)
    try:
        scenario = load(Path(job.path))
        check_run(estimate(scenario, "facts"), space_at(directory, replaces=True), _OTHERWISE)
        run(scenario, job.seed, directory, force=True, level="facts", should_stop=should_stop)
        return read_outcome(job.path, directory)
    except NoProgress as error:
        return _broken(job, "no progress", str(error))
    except SimulationError as error:
        return _broken(job, "bad input", str(error))
    except InvariantBroken as error:
        return _broken(job, "defect", str(error))
    except OSError as error:
        return _broken(job, "interrupted", f"{error.filename or directory}: {error.strerror}")
    except Exception as error:  # noqa: BLE001 - one run's defect must not end the others
        message = f"{type(error).__name__}: {error}"
        return _broken(job, "defect", message)


def _broken(job: Job, status: Status, message: str) -> Outcome:
    return Outcome(job.path, job.seed, status, message, directory=job.directory)


def _twice(job: Job) -> Outcome:
    """The same seed in two processes with different hash seeds; both must leave the same."""
    first, second = Path(job.directory), Path(f"{job.directory}-again")
    for directory, hash_seed in zip((first, second), HASH_SEEDS, strict=True):
        done = child(
            [
                *("/usr/bin/env", f"PYTHONHASHSEED={hash_seed}", sys.executable, "-m", "sim"),
                *(ENDS_WITH_INPUT, "run", job.path, "--seed", str(job.seed)),
                *("--out", str(directory), "--trace", "facts", "--force", "--json"),
            ]
        )
        if done.returncode not in (0, 1):
            complaints = done.stderr.strip().splitlines()
            message = complaints[-1] if complaints else f"exit code {done.returncode}"
            return _broken(job, _STATUS.get(done.returncode, "defect"), message)
    outcome = read_outcome(job.path, first)
    difference = compare(first, second)
    if difference is None:
        shutil.rmtree(second)
        return outcome
    return replace(outcome, status="not deterministic", message=difference)


def compare(first: Path, second: Path) -> str | None:
    """In what two runs that should be one differ: the first row, or else what else; ``None``."""
    cards = [
        json.loads((directory / "run.json").read_text(encoding="utf-8"))
        for directory in (first, second)
    ]
    differing = [key for key in _SAME if cards[0][key] != cards[1][key]]
    verdicts = [(directory / "verdict.json").read_bytes() for directory in (first, second)]
    if verdicts[0] != verdicts[1]:
        differing.append("verdict")
    if not differing:
        return None
    row = first_difference(first / "trace", second / "trace")
    where = row or "the recorded rows are equal"
    return f"two runs of one seed differ in {', '.join(differing)}: {where}"
