"""Real time that a search may take."""

from collections.abc import Callable
from time import monotonic

from sim.errors import SimulationError
from sim.suite import fault_outcomes
from sim.units import SECOND


def seconds_of(option: str, text: str) -> float:
    """Seconds of real time.

    Raises:
        SimulationError: For anything that is no time.
    """
    try:
        return fault_outcomes.parse_budget(text) / SECOND
    except ValueError as error:
        raise SimulationError(
            f"{option}: {error.args[0]}; allowed: a time such as 90s, 5m or 1h"
        ) from None


def alarm(seconds: float) -> Callable[[], bool]:
    """A test that is true as soon as so much time has passed."""
    deadline = monotonic() + seconds
    return lambda: monotonic() > deadline
