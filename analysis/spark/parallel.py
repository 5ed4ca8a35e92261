"""Queries that do not wait for each other: several threads use Spark at once.

Spark plans a query in the thread that requests it, on one core, and a small query is little more
than its plan. Each Python thread has a Java thread of its own (``PYSPARK_PIN_THREAD``).
"""

import os
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from typing import Final, Protocol, TypeVar

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

Result = TypeVar("Result")

THREADS: Final = max(2, min(4, os.cpu_count() or 2))
"""Planning takes one core each, and what is executed the rest."""

_AGAIN_S: Final = 0.2


class Start(Protocol):
    """Begins a function in a thread of its own."""

    def __call__(self, part: Callable[[], Result], /) -> "Future[Result]":
        """The result to come."""


@contextmanager
def parallel(spark: SparkSession) -> Iterator[Start]:
    """Runs parts of a block in threads; at its end all of them have ended.

    Args:
        spark: The session that the parts use. Where the block ends by an error, the interrupt of a
            user among them, every job of the session is cancelled, so that every part ends.
    """
    begun: list[Future[object]] = []
    with ThreadPoolExecutor(THREADS, "report") as pool:

        def start(part: Callable[[], Result], /) -> "Future[Result]":
            future = pool.submit(part)
            begun.append(future)  # type: ignore[arg-type] # read for its state alone
            return future

        try:
            yield start
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            # A part between two queries has no job yet, so not once alone.
            while wait(begun, _AGAIN_S).not_done:
                with suppress(Py4JError, OSError):
                    spark.sparkContext.cancelAllJobs()
            raise
