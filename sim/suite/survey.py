"""Runs every single fault over a few seeds: scenario files, runs, answers; within a budget."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from sim.errors import SimulationError
from sim.scenario.overrides import apply as changes
from sim.scenario.text.yaml import read
from sim.suite.cache import Cache
from sim.suite.fault_outcomes import FaultOutcome, answer, distinct, ranked
from sim.suite.outcome import Outcome
from sim.suite.plan import Job, plan
from sim.suite.pool import Pool, outcomes
from sim.suite.single_faults import (
    SingleFault,
    lasting,
    loaded,
    reaching_all,
    run_length,
    single_faults,
    text_of,
)
from sim.trace.kept import Kept
from sim.units import Micros

CARD: Final = "answers.json"
"""File of the findings, beside the scenarios that show them."""


@dataclass(frozen=True, slots=True)
class Survey:
    """Scenario files, one for each fault, and their runs."""

    name: str
    directory: Path
    run_us: Micros
    faults: tuple[tuple[SingleFault | None, str], ...]
    """Faults, each with its scenario file; first the one without any."""
    jobs: tuple[Job, ...]
    """Seed by seed, so that a small budget has tried every fault once."""


def prepare(
    path: Path,
    overrides: Sequence[str],
    seeds: Sequence[int],
    directory: Path | None,
    keep: Kept | None = None,
) -> Survey:
    """Write a scenario for each fault, and plan its runs.

    Args:
        path: The scenario that is judged; its own faults and expectations are left out.
        overrides: ``KEY=VALUE`` each.
        seeds: Which.
        directory: Where to write; ``runs/<scenario>-verdict`` if not given.
        keep: What stays of each run, as in :class:`~sim.suite.plan.Job`.

    Raises:
        ScenarioError: If the scenario cannot be run; nothing has been written then.
        SimulationError: If the directory holds something else.
    """
    scenario = loaded(str(path), overrides)
    base = _data(path, overrides)
    lasts = lasting(scenario)
    base = reaching_all(base, scenario, lasts)
    run_us = run_length(base, scenario, lasts, path.parent)
    where = directory or Path("runs") / f"{scenario.name}-verdict"
    if where.exists() and (not where.is_dir() or (any(where.iterdir()) and not _is_ours(where))):
        raise SimulationError(f"{where}: holds something else; choose another --out")
    where.mkdir(parents=True, exist_ok=True)
    (where / CARD).write_text("{}\n", encoding="utf-8")
    for name, text in scenario.modules:
        (where / name).write_text(text, encoding="utf-8")
    faults: list[tuple[SingleFault | None, str]] = []
    for fault in (None, *single_faults(scenario, lasts)):
        file = where / f"{'nothing' if fault is None else fault.name}.yaml"
        file.write_text(text_of(base, fault, run_us, path.as_posix()), encoding="utf-8")
        faults.append((fault, file.as_posix()))
    planned = plan([Path(file) for _, file in faults], seeds, where / "runs", keep=keep)
    jobs = sorted(planned, key=lambda job: list(seeds).index(job.seed))
    return Survey(scenario.name, where, run_us, tuple(faults), tuple(jobs))


def execute(
    survey: Survey,
    cache: Cache,
    some: Pool,
    should_stop: Callable[[], bool],
    on_result: Callable[[str, bool], None],
) -> list[FaultOutcome]:
    """Run what is not known, until somebody stops it; answers, the worst first.

    Args:
        survey: Scenario files and runs.
        cache: Results of earlier runs.
        some: Processes for the runs.
        should_stop: Asked now and then: a signal, or the end of the budget.
        on_result: Called after each run with its fault, and whether nothing was lost.
    """
    results: dict[Job, Outcome] = {
        job: outcome for job in survey.jobs if (outcome := cache.find(job)) is not None
    }
    for job, outcome in results.items():
        on_result(Path(job.path).stem, outcome.status == "held")
    waiting = [job for job in survey.jobs if job not in results]
    for job, outcome in outcomes(waiting, some, should_stop):
        if outcome.status == "interrupted" and should_stop():
            continue
        results[job] = outcome
        cache.keep(job, outcome)
        on_result(Path(job.path).stem, outcome.status == "held")
    tried = [
        (fault, file, [o for j, o in results.items() if j.path == file])
        for fault, file in survey.faults
        if any(job.path == file for job in results)
    ]
    found = [
        replace(
            answer(*group[0][:2], survey.run_us, group[0][2]),
            also=tuple(fault.words for fault, _, _ in group[1:] if fault is not None),
            also_runs=sum(len(runs) for _, _, runs in group[1:]),
        )
        for group in distinct(tried)
    ]
    listed = json.dumps([asdict(each) for each in ranked(found)], indent=1, ensure_ascii=False)
    (survey.directory / CARD).write_text(listed + "\n", encoding="utf-8")
    return ranked(found)


def untried(survey: Survey, answers: Sequence[FaultOutcome]) -> int:
    """Number of runs that were not made."""
    return len(survey.jobs) - sum(
        len(a.seeds) + len(a.idle_seeds) + len(a.errors) + a.also_runs for a in answers
    )


def _is_ours(directory: Path) -> bool:
    return (directory / CARD).is_file()


def _data(path: Path, overrides: Sequence[str]) -> dict[str, Any]:
    """The scenario as its file has it, with the changes; it has been loaded before."""
    document = read(path.read_text(encoding="utf-8"), str(path))
    changes.apply(document, overrides)
    assert isinstance(document.data, dict), "it has been loaded"
    return document.data
