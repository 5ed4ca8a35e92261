"""Jobs in several processes: results as they come, and an orderly end when somebody stops it."""

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import TypeAlias, TypeVar

from sim.lifetime import INTERRUPTS, end_with_parent
from sim.suite.outcome import Outcome
from sim.suite.plan import Job
from sim.suite.work import execute

_LOOK_EVERY_S = 0.2

ShouldStop: TypeAlias = Callable[[], bool]

T = TypeVar("T")
R = TypeVar("R")


class Pool:
    """Processes that work on tasks, or this one alone.

    Args:
        processes: How many.
        executor: Of the processes; ``None`` for this one.
    """

    def __init__(self, processes: int, executor: ProcessPoolExecutor | None) -> None:
        self._processes = processes
        self._executor = executor

    def results(
        self, work: Callable[[T, ShouldStop], R], tasks: Sequence[T], should_stop: ShouldStop
    ) -> Iterator[tuple[int, R | None]]:
        """Do the tasks; the number of each with its result, in the order in which they end.

        Once ``should_stop`` says so nothing new begins, what is under way is asked to end early,
        and tasks that had not begun have no result. The result of a process that ended without one
        is ``None``.

        Args:
            work: A function of a module, called with a task and a test for a request to stop.
            tasks: What to work on.
            should_stop: Asked now and then.
        """
        if self._executor is None:
            for number, task in enumerate(tasks):
                if should_stop():
                    return
                yield number, work(task, should_stop)
            return
        waiting = list(reversed(range(len(tasks))))
        running: dict[Future[R], int] = {}
        stopped = False
        while True:
            while waiting and not stopped and len(running) < self._processes:
                number = waiting.pop()
                running[self._executor.submit(_in_worker, work, tasks[number])] = number
            if not running:
                return
            done, _ = wait(running, timeout=_LOOK_EVERY_S, return_when=FIRST_COMPLETED)
            for future in [future for future in running if future in done]:
                number = running.pop(future)
                yield number, _result(future)
            if not stopped and should_stop():
                stopped = True
                for child in multiprocessing.active_children():
                    child.terminate()


@contextmanager
def pool(processes: int, *, apart: bool = False) -> Iterator[Pool]:
    """Processes for a block.

    Args:
        processes: How many; one is this process.
        apart: True if one is to be another process, too.
    """
    if processes <= 1 and not apart:
        yield Pool(1, None)
        return
    context = multiprocessing.get_context("spawn")
    processes = max(processes, 1)
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_listen) as executor:
        yield Pool(processes, executor)


def outcomes(
    jobs: Sequence[Job], processes: int, should_stop: ShouldStop
) -> Iterator[tuple[Job, Outcome]]:
    """Run the jobs; each with its result, in the order in which they end.

    Once ``should_stop`` says so nothing new begins, what runs is asked to end early, and jobs that
    had not begun have no result.
    """
    with pool(min(processes, len(jobs))) as some:
        for number, outcome in some.results(execute, jobs, should_stop):
            yield jobs[number], outcome or _ended(jobs[number])


def _in_worker(work: Callable[[T, ShouldStop], R], task: T) -> R:
    """A task in a worker process, which a signal ends early."""
    return work(task, lambda: bool(_SIGNALS))


_SIGNALS: list[int] = []
"""Signals that this worker has got."""


def _listen() -> None:
    """Ctrl-C reaches every process of a terminal: a worker notes it, and its run ends readable.

    A parent that is killed cannot signal its workers: they end with it.
    """
    end_with_parent()
    for number in INTERRUPTS:
        signal.signal(number, lambda got, _frame: _SIGNALS.append(got))


def _result(future: "Future[R]") -> R | None:
    try:
        return future.result()
    except BrokenProcessPool:
        return None


def _ended(job: Job) -> Outcome:
    message = "its process ended without an answer (killed, or out of memory)"
    return Outcome(job.path, job.seed, "interrupted", message, directory=job.directory)
