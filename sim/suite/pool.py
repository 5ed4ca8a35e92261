"""Jobs in several processes: results as they come, and an orderly end when somebody stops it."""

import multiprocessing
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool

from sim.lifetime import INTERRUPTS, end_with_parent
from sim.suite.outcome import Outcome
from sim.suite.plan import Job
from sim.suite.work import execute

_LOOK_EVERY_S = 0.2


def outcomes(
    jobs: Sequence[Job], processes: int, should_stop: Callable[[], bool]
) -> Iterator[tuple[Job, Outcome]]:
    """Run the jobs; each with its result, in the order in which they end.

    Once ``should_stop`` says so nothing new begins, what runs is asked to end early, and jobs that
    had not begun have no result.
    """
    if processes == 1 or len(jobs) <= 1:
        for job in jobs:
            if should_stop():
                return
            yield job, execute(job, should_stop)
        return
    context = multiprocessing.get_context("spawn")
    count = min(processes, len(jobs))
    with ProcessPoolExecutor(count, mp_context=context, initializer=_listen) as pool:
        waiting = list(reversed(jobs))
        running: dict[Future[Outcome], Job] = {}
        stopped = False
        while True:
            while waiting and not stopped and len(running) < count:
                job = waiting.pop()
                running[pool.submit(execute_in_pool, job)] = job
            if not running:
                return
            done, _ = wait(running, timeout=_LOOK_EVERY_S, return_when=FIRST_COMPLETED)
            for future in [future for future in running if future in done]:
                job = running.pop(future)
                yield job, _result(future, job)
            if not stopped and should_stop():
                stopped = True
                for child in multiprocessing.active_children():
                    child.terminate()


def execute_in_pool(job: Job) -> Outcome:
    """A job in a worker process, which a signal ends early."""
    return execute(job, lambda: bool(_SIGNALS))


_SIGNALS: list[int] = []
"""Signals that this worker has got."""


def _listen() -> None:
    """Ctrl-C reaches every process of a terminal: a worker notes it, and its run ends readable.

    A parent that is killed cannot signal its workers: they end with it.
    """
    end_with_parent()
    for number in INTERRUPTS:
        signal.signal(number, lambda got, _frame: _SIGNALS.append(got))


def _result(future: "Future[Outcome]", job: Job) -> Outcome:
    try:
        return future.result()
    except BrokenProcessPool:
        message = "its process ended without an answer (killed, or out of memory)"
        return Outcome(job.path, job.seed, "interrupted", message, directory=job.directory)
