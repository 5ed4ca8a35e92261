"""Futures of a run: from an instant on other chance, without some faults, with other settings.

The past is replayed once; at each instant the process is forked, and every child is one future.
What the simulated disks hold are real files, which a child must not share: it gets a copy of the
run's directory, and its open files are those of the copy. The run's directory is relative to the
working directory, so that the child finds its own by changing into it. Where processes cannot be
forked like that, each future is a run of its own that is the same up to the instant.
"""

import json
import os
import select
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, NoReturn

from sim.errors import SimulationError
from sim.faults.fault import Fault
from sim.hunting.fingerprint import of_numbers
from sim.hunting.replay import Watcher
from sim.hunting.sought import STUCK, Sought
from sim.lifetime import end_with_fork
from sim.scenario.loader import load_data
from sim.scenario.run.directory import RunDirectory
from sim.scenario.run.hooks import Paused
from sim.scenario.run.runner import Work
from sim.scenario.scenario import Scenario
from sim.scratch import scratch
from sim.suite.pool import ShouldStop
from sim.units import Micros

CAN_FORK: Final = sys.platform == "linux"
"""True if a child finds its open files in ``/proc/self/fd``."""

_OPEN: Final = Path("/proc/self/fd")
_LOOK_EVERY_S: Final = 0.2


@dataclass(frozen=True, slots=True)
class Change:
    """Difference of a future from what happened, beside its chance."""

    without: tuple[int, ...] = ()
    """Places of faults that are healed, or do not begin."""
    configs: tuple[Mapping[str, Any], ...] = ()
    """Entries of ``faults:`` that change settings at the instant, without ``at``."""


@dataclass(frozen=True, slots=True)
class Future:
    """One future, as it came out."""

    at_us: Micros
    seed: int
    hits: tuple[str, ...]
    """Names of what was looked for and happened."""
    lost: int
    down_us: Micros


@dataclass(frozen=True, slots=True)
class Task:
    """A past, and the futures that are made of it."""

    data: Mapping[str, Any]
    """The scenario, as its file has it."""
    seed: int
    """Of the past."""
    instants: tuple[Micros, ...]
    seeds: tuple[int, ...]
    """Of the futures."""
    change: Change
    sought: tuple[Sought, ...]
    forks: bool = CAN_FORK


@dataclass(frozen=True, slots=True)
class Branches:
    """Result of a task."""

    futures: tuple[Future, ...]
    digest: str = ""
    """Of the trace of the past with the future that it had; empty if it was not run to its end."""
    error: str = ""
    """Of a future that came to no end."""


class _Branch(Watcher):
    """Changes a run at an instant."""

    def __init__(self, task: Task, scenario: Scenario) -> None:
        super().__init__(scenario, is_waiting=any(each.name == STUCK for each in task.sought))
        self._task = task

    def change(self, at: Micros, seed: int, run: Paused) -> None:
        """From here on it is another run."""
        run.streams.reseed(seed)
        for number in self._task.change.without:
            run.injector.drop(number)
        for fault in _altering(self._task, at):
            run.injector.add(fault)


class _Replayed(_Branch):
    """A run that is the past up to an instant, and one future from there on."""

    def __init__(self, task: Task, scenario: Scenario, at: Micros, seed: int) -> None:
        super().__init__(task, scenario)
        self.instants = (at,)
        self._seed = seed

    def pause(self, at: Micros, run: Paused) -> None:
        """The one instant."""
        self.change(at, self._seed, run)


class _Forked(_Branch):
    """A run that is forked at each instant."""

    def __init__(self, task: Task, scenario: Scenario, should_stop: ShouldStop) -> None:
        super().__init__(task, scenario)
        self.instants = task.instants
        self._should_stop = should_stop
        self.lines: list[str] = []
        """Answers of the children, as JSON."""
        self.answers_to = -1
        """Pipe of a child; -1 in the process of the past."""
        self.of: tuple[Micros, int] = (0, 0)
        """Instant and seed of a child."""

    def pause(self, at: Micros, run: Paused) -> None:
        """Makes all futures of an instant, one after the other; returns in each child, too.

        A child is a future already: at the later instants it is not forked once more, or futures
        would multiply from instant to instant.
        """
        if self.answers_to >= 0:
            return
        for seed in self._task.seeds:
            if self._should_stop():
                return
            reading, writing = os.pipe()
            child = os.fork()
            if not child:
                os.close(reading)
                self.answers_to, self.of = writing, (at, seed)
                end_with_fork()
                _move_to_copy(f"future-{at}-{seed}")
                self.change(at, seed, run)
                return
            os.close(writing)
            self._hear(child, reading)
            shutil.rmtree(Path("..") / f"future-{at}-{seed}", ignore_errors=True)

    def _hear(self, child: int, reading: int) -> None:
        """Wait for a child; it is killed when a stop was requested."""
        parts = []
        try:
            while True:
                ready, _, _ = select.select([reading], [], [], _LOOK_EVERY_S)
                if ready:
                    part = os.read(reading, 1 << 16)
                    if not part:
                        break
                    parts.append(part)
                elif self._should_stop():
                    with suppress(ProcessLookupError):
                        os.kill(child, 9)
                    break
        finally:
            os.close(reading)
            os.waitpid(child, 0)
        if parts:
            self.lines.append(b"".join(parts).decode())


def branches(task: Task, should_stop: ShouldStop) -> Branches | None:
    """Make the futures of a task; ``None`` if somebody stopped it.

    Raises:
        SimulationError: If the cluster cannot come up.
    """
    scenario = replace(load_data(task.data), expect=())
    with scratch() as place, _within(place / "past"):
        if task.forks:
            return _forked(task, scenario, should_stop)
        futures = []
        for at in task.instants:
            for seed in task.seeds:
                hooks = _Replayed(task, scenario, at, seed)
                work = _work(scenario, task.seed, hooks, should_stop, f"run-{at}-{seed}")
                result = work.execute()
                if not result.complete:
                    return None
                futures.append(_future(at, seed, dict(result.verdict), hooks, task.sought))
                shutil.rmtree(result.directory, ignore_errors=True)
        return Branches(tuple(futures))


def _forked(task: Task, scenario: Scenario, should_stop: ShouldStop) -> Branches | None:
    hooks = _Forked(task, scenario, should_stop)
    try:
        work = _work(scenario, task.seed, hooks, should_stop, "run")
        result = work.execute()
        verdict = dict(result.verdict)
    except Exception as error:
        if hooks.answers_to < 0:
            raise
        _answer(hooks.answers_to, {"error": f"{type(error).__name__}: {error}"})
    if hooks.answers_to >= 0:
        future = _future(*hooks.of, verdict, hooks, task.sought)
        _answer(hooks.answers_to, asdict(future) if result.complete else {"error": "interrupted"})
    if should_stop() or not result.complete:
        return None
    answers = [json.loads(line) for line in hooks.lines]
    errors = [str(answer["error"]) for answer in answers if "error" in answer]
    made = tuple(
        Future(a["at_us"], a["seed"], tuple(a["hits"]), a["lost"], a["down_us"])
        for a in answers
        if "error" not in a
    )
    if not errors and len(answers) < len(task.instants) * len(task.seeds):
        errors = ["its process ended without an answer (killed, or out of memory)"]
    return Branches(made, work.trace.digest(), errors[0] if errors else "")


def _work(
    scenario: Scenario, seed: int, hooks: Watcher, should_stop: ShouldStop, name: str
) -> Work:
    directory = RunDirectory(Path(name), force=False, is_part=True)
    return Work(
        scenario, seed, directory, "facts", should_stop=should_stop, keeps=False, hooks=hooks
    )


def _future(
    at: Micros, seed: int, verdict: dict[str, Any], hooks: Watcher, sought: Sequence[Sought]
) -> Future:
    names = of_numbers(verdict, hooks.leftovers, sought)
    lost, down = verdict["answer"]["lost"]["size"], verdict["answer"]["down"]["size"]
    return Future(at, seed, tuple(names), int(lost), int(down))


def _answer(pipe: int, answer: Mapping[str, Any]) -> NoReturn:
    """Send a child's answer, and end it: nothing of the parent's is to be done twice."""
    text = json.dumps(answer).encode()
    while text:
        text = text[os.write(pipe, text) :]
    os._exit(0)


def _altering(task: Task, at: Micros) -> Iterator[Fault]:
    """Faults that change settings at an instant, behind those of the scenario."""
    if not task.change.configs:
        return
    faults = list(task.data.get("faults") or ())
    more = [{"at": f"{at}us", **config} for config in task.change.configs]
    changed = load_data({**task.data, "faults": [*faults, *more]})
    yield from changed.faults[-len(more) :]


def check(task: Task) -> None:
    """Check that a task can be run.

    Raises:
        SimulationError: For an instant outside of the workload, a fault that there is not, or a
            setting that cannot be changed while a cluster runs.
    """
    scenario = load_data(task.data)
    for at in task.instants:
        if not 0 <= at < scenario.run.for_us:
            raise SimulationError(
                f"--at: {at / 1_000_000:g}s is not in the workload; allowed: 0s to "
                f"{scenario.run.for_us / 1_000_000:g}s, its end excluded"
            )
    for number in task.change.without:
        if number >= len(scenario.faults):
            known = f"0 to {len(scenario.faults) - 1}" if scenario.faults else "none, it has none"
            raise SimulationError(f"--without: found {number}; allowed: {known}, as in faults[0]")
    list(_altering(task, task.instants[0]))


@contextmanager
def _within(place: Path) -> Iterator[None]:
    """Work in a directory for a block."""
    before = Path.cwd()
    place.mkdir()
    os.chdir(place)
    try:
        yield
    finally:
        os.chdir(before)


def _move_to_copy(name: str) -> None:
    """Give this process its own copy of the files in the working directory."""
    here = os.fspath(Path.cwd())
    there = Path("..") / name
    shutil.copytree(here, there)
    os.chdir(there)
    for link in list(_OPEN.iterdir()):
        with suppress(FileNotFoundError):
            target = os.fspath(link.readlink())
            if target.startswith(f"{here}{os.sep}") and Path(target).is_file():
                own = os.open(Path(os.path.relpath(target, here)), os.O_RDWR | os.O_CLOEXEC)
                os.dup2(own, int(link.name), inheritable=False)
                os.close(own)
