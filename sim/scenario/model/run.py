"""Length and end of a run, and expectations of it."""

from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from sim.checking.scope import EVERYTHING, Scope
from sim.scenario.model.types import Duration, Strict
from sim.units import SECOND


class RunModel(Strict, frozen=True):
    """Length of the run, and its end."""

    for_us: Duration = Field(alias="for")
    then: Literal["heal and drain", "stop"] = "heal and drain"
    """``heal and drain``: heal and restart everything, then wait until clients are done."""
    seed: Annotated[int, Field(ge=0, lt=1 << 63)] = 1
    drain_timeout_us: Duration = Field(120 * SECOND, alias="drain.timeout")

    @property
    def drain(self) -> bool:
        """True if clients may finish at the end."""
        return self.then == "heal and drain"


@dataclass(frozen=True, slots=True)
class Expectation:
    """One line of ``expect``: a verdict's number and the interval it must lie in.

    Bounds are whole numbers: records, or microseconds for times. ``None``: no bound on that side.
    """

    name: str
    given: str
    """As written in the scenario."""
    low: int | None
    high: int | None
    low_open: bool = False
    """True if ``low`` itself is excluded."""
    high_open: bool = False
    """True if ``high`` itself is excluded."""
    scope: Scope = EVERYTHING
    """Part of the run that it is about."""

    def holds(self, found: int) -> bool:
        """True for a number in the interval."""
        above = self.low is None or found > self.low or (found == self.low and not self.low_open)
        below = (
            self.high is None or found < self.high or (found == self.high and not self.high_open)
        )
        return above and below
