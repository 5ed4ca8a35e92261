"""``explore``: many configurations of a scenario over the same seeds, each run a Spark task.

Every configuration runs with the same seeds (common random numbers): the same faults occur at the
same instants, so configurations are compared pair by pair, and differences show with few runs. A
run that fails is a row with its seed and message. Runs are stored by their content, so a stopped
sweep is resumed. A row depends on nothing but scenario, seed and version: not on the number of
workers, not on the order of tasks.

Only this module of the package uses :mod:`sim.scenario`.
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from time import monotonic
from typing import Final, NamedTuple

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

import sim
from analysis.spark.session import using
from analysis.sweep import page as sweep_page
from analysis.sweep import store as sweep_store
from analysis.sweep.results import Sweep
from analysis.sweep.store import DIED, DONE, FAILED, Row, Store
from sim.errors import ScenarioError, SimulationError
from sim.locks import check_free, hold
from sim.scenario.estimate.space import check_scratch
from sim.scenario.loader import load, load_text
from sim.scenario.overrides.vary import Configuration, configurations, of_values, variation
from sim.scenario.run.trial import trial
from sim.scenario.scenario import Scenario
from sim.scenario.text.quantities import parse_duration

__all__ = ["Sweep", "explore"]

SECONDS_A_WAVE: Final = 15.0
"""Work handed out at a time: what a stopped sweep may lose, and the interval of progress."""

OUTAGE: Final = "1s"
"""A partition that serves no producer for longer than this was out of service."""

Vary = Mapping[str, Sequence[object] | Mapping[str, Mapping[str, object]]] | Sequence[str]
Progress = Callable[[int, int], None]
"""Runs done, and runs in all."""


class _Task(NamedTuple):
    """One run to be done."""

    key: str
    configuration: int
    seed: int


@dataclass(frozen=True, slots=True)
class _Plan:
    """Runs of a sweep."""

    name: str
    claim: str
    configurations: tuple[Configuration, ...]
    scenarios: tuple[Scenario, ...]
    """One for each configuration."""
    refused: tuple[tuple[Configuration, str], ...]
    """Impossible combinations, with reasons."""
    seeds: tuple[int, ...]


def explore(
    scenario: str | Path,
    vary: Vary,
    seeds: int | Sequence[int] = 20,
    *,
    sets: Sequence[str] = (),
    outage: str = OUTAGE,
    master: str | None = None,
    out: str | Path | None = None,
    on_progress: Progress | None = None,
    on_space: Callable[[str], None] | None = None,
) -> Sweep:
    """Runs every configuration of a scenario over the same seeds, and compares them.

    Args:
        scenario: A scenario file.
        vary: Values by setting: texts as for ``--vary``, or values by key
            (``{"acks": [1, "all"]}``; a mapping of names to settings is a bundle).
        seeds: Their number, from 1 on; or the seeds.
        sets: Changes for every configuration, ``KEY=VALUE`` each.
        outage: A longer stretch without service is an outage, as in ``5s``.
        master: Spark master URL; ``None`` for every core of this machine.
        out: Directory; ``runs/<scenario>-explore`` if not given. Runs that are there are not
            run again.
        on_progress: Called with the number of runs done, and of all runs.
        on_space: Called with a line, if runs of this machine take much of its disk while they last.

    Returns:
        Frames of results, with the report's directory.

    Raises:
        ScenarioError: If the scenario, a key or a value cannot be; nothing has been run then.
        SimulationError: If the directory holds something else, another sweep writes there, or
            there is no Java for Spark; or if its runs would fill the disk while they last.
    """
    plan = _planned(Path(scenario), vary, seeds, sets)
    _outage(outage)
    if master is None or master.startswith("local"):
        line = check_scratch(plan.scenarios, os.cpu_count() or 1, Path(tempfile.gettempdir()))
        if line and on_space is not None:
            on_space(line)
    directory = Path(out) if out is not None else Path("runs") / f"{plan.name}-explore"
    _check_directory(directory)
    directory.mkdir(parents=True, exist_ok=True)
    lock = hold(directory / _LOCK)
    try:
        return _explored(plan, directory, sets, outage, master, on_progress)
    finally:
        lock.release()


def _explored(
    plan: _Plan,
    directory: Path,
    sets: Sequence[str],
    outage: str,
    master: str | None,
    on_progress: Progress | None,
) -> Sweep:
    """The sweep, in a directory that this process has locked."""
    outage_us = _outage(outage)
    _write_card(directory, plan, sets, outage, complete=False)
    rows = _rows(plan, Store(directory / "results"), master, on_progress)
    sweep_store.write(rows, directory / "runs.parquet")
    keys = [configuration.labels for configuration in plan.configurations]
    refused = [(configuration.text, why) for configuration, why in plan.refused]
    sweep = Sweep(plan.name, plan.claim, directory, keys, refused, rows, outage_us)
    sweep.configurations.to_parquet(directory / "configurations.parquet", index=False)
    sweep.sensitivity.to_parquet(directory / "sensitivity.parquet", index=False)
    sweep_page.write(sweep, directory / "report")
    _write_card(directory, plan, sets, outage, complete=True)
    return sweep


def _planned(path: Path, vary: Vary, seeds: int | Sequence[int], sets: Sequence[str]) -> _Plan:
    """Every configuration, loaded and checked, before anything runs."""
    base = load(path, sets)
    if isinstance(vary, Mapping):
        variations = [of_values(key, values) for key, values in vary.items()]
    else:
        variations = [variation(text) for text in vary]
    good: list[tuple[Configuration, Scenario]] = []
    refused: list[tuple[Configuration, str]] = []
    for configuration in configurations(variations):
        try:
            good.append((configuration, load(path, (*sets, *configuration.overrides))))
        except ScenarioError as error:
            refused.append((configuration, str(error)))
    for key, label in _labels(configuration for configuration, _ in refused):
        if not any((key, label) in configuration.labels for configuration, _ in good):
            # The value itself is wrong, not its combination.
            why = next(why for c, why in refused if (key, label) in c.labels)
            raise ScenarioError(why)
    return _Plan(
        base.name,
        base.claim,
        tuple(configuration for configuration, _ in good),
        tuple(found for _, found in good),
        tuple(refused),
        _seeds(seeds),
    )


def _labels(found: Iterator[Configuration]) -> list[tuple[str, str]]:
    return list(dict.fromkeys(label for configuration in found for label in configuration.labels))


def _seeds(chosen: int | Sequence[int]) -> tuple[int, ...]:
    seeds = tuple(range(1, chosen + 1)) if isinstance(chosen, int) else tuple(chosen)
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise ScenarioError("seeds: give at least one, each once and none below 0")
    return seeds


def _outage(text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ScenarioError(f"outage: {error.args[0]}; allowed: {error.args[1]}") from None


def _check_directory(directory: Path) -> None:
    if directory.exists() and not directory.is_dir():
        raise SimulationError(f"{directory}: is a file; choose another --out")
    if not directory.is_dir():
        return
    check_free(directory / _LOCK)
    known = (directory / _CARD).is_file()
    if not known and any(path.name not in _FIRST for path in directory.iterdir()):
        raise SimulationError(
            f"{directory}: exists and is not a sweep (it has no {_CARD}); choose another --out"
        )


_CARD: Final = "sweep.json"
_LOCK: Final = "sweep.lock"
_FIRST: Final = (f"{_CARD}.tmp", _LOCK)
"""Files of a sweep before its card is there."""


def _write_card(
    directory: Path, plan: _Plan, sets: Sequence[str], outage: str, *, complete: bool
) -> None:
    """Writes the arguments; ``complete`` turns true at the very end."""
    card = {
        "logquake": version("logquake"),
        "scenario": plan.name,
        "claim": plan.claim,
        "sets": list(sets),
        "configurations": [dict(configuration.labels) for configuration in plan.configurations],
        "scenario_digests": [scenario.digest for scenario in plan.scenarios],
        "refused": [{"configuration": c.text, "why": why} for c, why in plan.refused],
        "seeds": list(plan.seeds),
        "outage": outage,
        "complete": complete,
    }
    unfinished = directory / f"{_CARD}.tmp"
    unfinished.write_text(json.dumps(card, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    unfinished.replace(directory / _CARD)


# -- running ---------------------------------------------------------------------------------------


def _rows(plan: _Plan, store: Store, master: str | None, on_progress: Progress | None) -> list[Row]:
    """The rows of the plan, by configuration and seed; missing ones are run."""
    sources = sweep_store.sources_digest(Path(sim.__file__).parent)
    digests = [scenario.digest for scenario in plan.scenarios]
    # Seed by seed, so that a sweep that is stopped has compared everything on as many seeds.
    tasks = [
        _Task(sweep_store.key_of(sources, digest, seed), number, seed)
        for seed in plan.seeds
        for number, digest in enumerate(digests)
    ]
    # Settings that do not differ make the same scenario: it is run once.
    todo = list({task.key: task for task in tasks if not store.has(task.key)}.values())
    report = on_progress or _silent
    done = len({task.key for task in tasks}) - len(todo)
    total = done + len(todo)
    report(done, total)
    if todo:
        texts = [(scenario.name, scenario.as_yaml()) for scenario in plan.scenarios]
        with using(master) as spark:
            for rows in _waves(spark, texts, todo):
                store.add(rows)
                done += len(rows)
                report(done, total)
        store.compact()
    found = []
    for task in sorted(tasks, key=lambda task: (task.configuration, plan.seeds.index(task.seed))):
        row = store.row(task.key)
        assert row is not None, "every task has been run"
        found.append({**row, "configuration": task.configuration})
    return found


def _silent(_: int, __: int) -> None:
    """Ignores progress."""


def _waves(
    spark: SparkSession, texts: list[tuple[str, str]], tasks: list[_Task]
) -> Iterator[list[Row]]:
    """Rows of the tasks, some at a time: as many as take about the time of a wave."""
    context = spark.sparkContext
    shared = context.broadcast(texts)

    def run(task: _Task) -> Row:
        return _run(shared.value[task.configuration], task)

    at, size = 0, 0
    while at < len(tasks):
        # A cluster's executors come one after the other, and may end.
        workers = max(1, context.defaultParallelism)
        size = max(2 * workers, size - size % workers)
        wave = tasks[at : at + size]
        began = monotonic()
        try:
            yield context.parallelize(wave, len(wave)).map(run).collect()
        except Py4JError:
            # A worker's process died, and with it the wave: find out of which run.
            for task in wave:
                yield [_alone(spark, run, task)]
        at += len(wave)
        seconds = max(monotonic() - began, 0.001)
        size = min(4 * size, round(len(wave) * SECONDS_A_WAVE / seconds))
    shared.destroy()


def _alone(spark: SparkSession, run: Callable[[_Task], Row], task: _Task) -> Row:
    """One run as a job of its own, which may end with its worker."""
    try:
        rows = spark.sparkContext.parallelize([task], 1).map(run).collect()
    except Py4JError:
        return _empty(task, DIED, "the process that ran it ended; was it out of memory?")
    return rows[0]


@lru_cache(maxsize=64)
def _scenario(name: str, text: str) -> Scenario:
    """A configuration; loading takes a tenth of the time of a small run."""
    return load_text(text, f"{name}.yaml")


def _run(text: tuple[str, str], task: _Task) -> Row:
    """Runs a task, on a worker."""
    try:
        found = trial(_scenario(*text), task.seed)
    except Exception as error:  # noqa: BLE001 - a run that fails is a row, with any error
        return _empty(task, FAILED, f"{type(error).__name__}: {error}")
    row = _empty(task, DONE, "")
    row |= dict(found.records)
    row |= {_column(name): value for name, value in found.times_us.items()}
    row |= {
        "held": found.held,
        "run_us": found.run_us,
        "cross_rack_bytes": found.cross_rack_bytes,
        "disk_bytes": found.disk_bytes,
        "replicas": found.replicas,
        "promised": found.promised,
        **{f"{name}_us": value for name, value in found.answer_us.items()},
        "latency_us": found.latency_us[0],
        "latency_records": found.latency_us[1],
        "faults": list(found.faults),
        "trace_digest": found.trace_digest,
    }
    return row


def _column(name: str) -> str:
    """``produce.p99`` is ``produce_p99_us``; ``unavailable.produce.max`` the longest time."""
    return f"{name.removesuffix('.max') if name.startswith('unavailable') else name}_us".replace(
        ".", "_"
    )


def _empty(task: _Task, status: str, message: str) -> Row:
    return dict.fromkeys(sweep_store.SCHEMA.names) | {
        "key": task.key,
        "configuration": task.configuration,
        "seed": task.seed,
        "status": status,
        "message": message,
    }
