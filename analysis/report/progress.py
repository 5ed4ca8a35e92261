"""Progress of a report: its steps as they begin, in whichever thread."""

from collections.abc import Callable
from threading import Lock
from typing import Final

Progress = Callable[[str], None]
"""Called with the name of each step."""

STEPS: Final = 9
"""Steps that every run's report has."""


class Steps:
    """Numbers steps as they begin.

    Args:
        report: Called with each.
        total: How many there are.
    """

    def __init__(self, report: Progress, total: int) -> None:
        self._report = report
        self._total = total
        self._begun = 0
        self._lock = Lock()

    def begin(self, step: str) -> None:
        """The next one, numbered."""
        with self._lock:
            self._begun += 1
            self._report(f"{self._begun} of {self._total}: {step}")

    def within(self, step: str) -> None:
        """A part of one, which few runs have."""
        with self._lock:
            self._report(step)


def silent(_: str) -> None:
    """Ignores progress."""
