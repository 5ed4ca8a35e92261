"""One fault at work: it begins, it is healed, and it says what came of it."""

from typing import NamedTuple, Protocol


class Evidence(NamedTuple):
    """What the substrate says about a fault."""

    took_effect: bool
    """Whether anything was different because of it."""
    effect: str
    """What it did, in words."""


class Action(Protocol):
    """A fault whose target is resolved."""

    def begin(self) -> None:
        """Break something."""

    def heal(self) -> bool:
        """Mend it; false if it is not yet possible and must be asked again a little later."""

    def evidence(self) -> Evidence:
        """What came of it up to now."""


class Instant:
    """Base of what is done in an instant."""

    def heal(self) -> bool:
        """Nothing to do."""
        return True
