"""First finding about an expectation that did not hold."""

from dataclasses import dataclass

from sim.units import Micros


@dataclass(frozen=True, slots=True)
class Finding:
    """The first thing that was found."""

    at_us: Micros
    words: str
