"""A fault in progress: it begins, it is healed, and it gives evidence of its effect."""

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


class Instant:
    """Base of faults without a duration."""

    def heal(self) -> bool:
        """Nothing to heal."""
        return True
