"""Jobs in several processes: results as they come, and an orderly end when somebody stops it."""

import gc
import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.context import BaseContext
from typing import TypeAlias, TypeVar

from sim.lifetime import INTERRUPTS, end_with_parent, has_one_thread
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
        self.processes = processes
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
                yield number, _alone(work, task, should_stop)
            return
        waiting = list(reversed(range(len(tasks))))
        running: dict[Future[R], int] = {}
        stopped = False
        while True:
            while waiting and not stopped and len(running) < self.processes:
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
    """Processes for a block, which a bar on a terminal (a thread) is to begin after.

    Args:
        processes: How many; one is this process.
        apart: True if one is to be another process, too.
    """
    if processes <= 1 and not apart:
        # What is imported stays: the look for garbage after each task leaves it out, a quarter of
        # the time of a short run.
        gc.collect()
        gc.freeze()
        try:
            yield Pool(1, None)
        finally:
            gc.unfreeze()
        return
    processes = max(processes, 1)
    with ProcessPoolExecutor(processes, mp_context=_context(), initializer=_listen) as executor:
        # Those that are forked begin now, before anything else starts a thread here.
        executor.submit(_ready)
        yield Pool(processes, executor)


def _context() -> BaseContext:
    """Start of workers: forked from this process, which has imported what they need.

    A fork copies one thread, and locks that others hold stay held in it; and only Linux ends a
    forked child with its parent (:func:`sim.lifetime.end_with_parent`). Elsewhere, and in a process
    that has threads, workers are interpreters of their own, which import everything once more.
    """
    if sys.platform != "linux" or not has_one_thread():
        return multiprocessing.get_context("spawn")
    import sim.scenario.run.runner  # noqa: F401, PLC0415 - what every worker would import

    # What is frozen is not looked at for garbage, so that its memory stays shared.
    gc.freeze()
    return multiprocessing.get_context("fork")


def _ready() -> None:
    """Does nothing: its submission starts the workers."""


def outcomes(
    jobs: Sequence[Job], some: Pool, should_stop: ShouldStop
) -> Iterator[tuple[Job, Outcome]]:
    """Run the jobs in a pool; each with its result, in the order in which they end.

    Once ``should_stop`` says so nothing new begins, what runs is asked to end early, and jobs that
    had not begun have no result.
    """
    for number, outcome in some.results(execute, jobs, should_stop):
        yield jobs[number], outcome or _ended(jobs[number])


def _in_worker(work: Callable[[T, ShouldStop], R], task: T) -> R:
    """A task in a worker process, which a signal ends early."""
    return _alone(work, task, lambda: bool(_SIGNALS))


def _alone(work: Callable[[T, ShouldStop], R], task: T, should_stop: ShouldStop) -> R:
    """A task whose memory is free again when it has ended.

    The nodes of a run refer to each other, and Python puts off the collection that would find that:
    a worker grew by 13 MB with each run of the catalogue.
    """
    try:
        return work(task, should_stop)
    finally:
        gc.collect()


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
