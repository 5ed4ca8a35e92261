"""A fault in progress: it begins, it is healed, and it gives evidence of its effect."""

from abc import ABC, abstractmethod
from typing import NamedTuple, Protocol


class Evidence(NamedTuple):
    """The substrate's evidence of a fault."""

    took_effect: bool
    """True if anything was different because of it."""
    effect: str
    """Its effect as text."""


class Action(Protocol):
    """A fault whose target is resolved."""

    def begin(self) -> None:
        """Begins the fault."""

    def heal(self) -> bool:
        """Ends the fault; false if that is not yet possible, to be called again a little later."""

    def evidence(self) -> Evidence:
        """Evidence of its effect up to now."""


class Step(NamedTuple):
    """A step of a procedure."""

    server: str
    """Server whose turn it is; empty: the cluster's."""
    text: str


class Procedure(ABC):
    """Base of faults that take steps, each of which is written down."""

    def __init__(self) -> None:
        self._taken: list[Step] = []

    @abstractmethod
    def begin(self) -> None:
        """Begins the procedure."""

    @abstractmethod
    def heal(self) -> bool:
        """Continues as far as possible now; true at the end."""

    @abstractmethod
    def evidence(self) -> Evidence:
        """Evidence of its effect up to now."""

    def note(self, server: str, text: str) -> None:
        """Notes a step."""
        self._taken.append(Step(server, text))

    def take_steps(self) -> list[Step]:
        """Steps since the last call."""
        taken, self._taken = self._taken, []
        return taken


class Instant:
    """Base of faults without a duration."""

    def heal(self) -> bool:
        """Nothing to heal."""
        return True
