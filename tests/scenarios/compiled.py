"""Runs in a process beside this one, from the compiled packages: what users have, in half the time.

Where nothing is compiled of these sources, the other process runs from the sources too.
"""

import multiprocessing
import os
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from pathlib import Path

from sim.compiled import PURE_VARIABLE
from sim.lifetime import end_with_parent
from sim.scenario.loader import load_text
from sim.scenario.run.runner import run

COMPILED = {PURE_VARIABLE: "0"}
"""What makes a process import the compiled packages."""


class Switch:
    """Whether runs may leave this process; not while a test may have changed a class in it."""

    def __init__(self) -> None:
        self.here = False


SWITCH = Switch()


def run_beside(text: str, out: Path) -> None:
    """Run a scenario; what fails in the other process is run again here, where it is raised."""
    if not SWITCH.here and _beside().submit(_run, text, out).result():
        return
    run(load_text(text), out=out, force=True)


def _run(text: str, out: Path) -> bool:
    try:
        run(load_text(text), out=out)
    except Exception:  # noqa: BLE001 - whatever it is, it comes again where the test can see it
        return False
    return True


@cache
def _beside() -> ProcessPoolExecutor:
    """One process, as each test worker has one core to itself; it ends with the worker."""
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(1, mp_context=spawn, initializer=end_with_parent)
    before = os.environ[PURE_VARIABLE]
    os.environ.update(COMPILED)
    try:
        pool.submit(os.getpid).result()
    finally:
        os.environ[PURE_VARIABLE] = before
    return pool
