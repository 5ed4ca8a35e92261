"""Queries that do not wait for each other: several threads use Spark at once.

Spark plans a query in the thread that requests it, on one core, and a small query is little more
than its plan. Each Python thread has a Java thread of its own (``PYSPARK_PIN_THREAD``).
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager, suppress
from threading import BoundedSemaphore, Thread
from typing import Final, Protocol, TypeVar

from pyspark.sql import SparkSession

Result = TypeVar("Result")

THREADS: Final = max(2, min(4, os.cpu_count() or 2))
"""Planning takes one core each, and what is executed the rest."""

_AGAIN_S: Final = 0.2
_PATIENCE_S: Final = 5.0


class Start(Protocol):
    """Begins a function in a thread of its own."""

    def __call__(self, part: Callable[[], Result], /) -> "Future[Result]":
        """The result to come."""


@contextmanager
def parallel(spark: SparkSession) -> Iterator[Start]:
    """Runs parts of a block in threads; at its end all of them have ended.

    Where the block ends by an error, the interrupt of a user among them, every job of the session
    is cancelled. A thread that hears nothing more from Java (a signal of a terminal ends it, too)
    is left behind after some seconds; it does not outlive the program.

    Args:
        spark: The session that the parts use.
    """
    begun: list[Future[object]] = []
    slots = BoundedSemaphore(THREADS)

    def start(part: Callable[[], Result], /) -> "Future[Result]":
        future: Future[Result] = Future()

        def work() -> None:
            with slots:
                if future.set_running_or_notify_cancel():
                    try:
                        future.set_result(part())
                    except BaseException as error:  # noqa: BLE001 - raised where it is awaited
                        future.set_exception(error)

        begun.append(future)  # type: ignore[arg-type] # read for its state alone
        # Not of an executor: the program waits for its threads before it ends Java.
        Thread(target=work, name="report", daemon=True).start()
        return future

    try:
        yield start
        wait(begun)
    except BaseException:
        for future in begun:
            future.cancel()
        helper = Thread(target=_cancel, args=(spark, begun), name="cancel", daemon=True)
        helper.start()
        helper.join(_PATIENCE_S)
        raise


def _cancel(spark: SparkSession, begun: "list[Future[object]]") -> None:
    """Cancels jobs until no part runs: one between two queries has none yet."""
    while wait(begun, _AGAIN_S).not_done:
        with suppress(Exception):
            spark.sparkContext.cancelAllJobs()
