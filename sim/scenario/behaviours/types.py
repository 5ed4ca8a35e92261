"""A switch of Kafka's history: its positions, and since when each of them."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from sim.scenario.behaviours.versions import DEFAULT, VERSIONS, is_since

Side: TypeAlias = Literal["server", "client", "both", "level"]
"""Process whose release decides: the server's, the client's, or at each end its own; or ``level``:
a finalized feature level, or the protocol version, that a cluster keeps until it is upgraded."""

NONE = "none for data"
"""Risk of a position that costs nothing but time, if that."""


@dataclass(frozen=True, slots=True)
class Choice:
    """One position of a switch."""

    name: str
    since: str = VERSIONS[0]
    """The first version whose first release does it; "" for one that no version chooses."""
    changes: str = ""
    """Change against the position before it in time."""
    risk: str = NONE
    """Possible harm, in Kafka's words: to acknowledged records, to availability, to clients."""
    backports: tuple[str, ...] = ()
    """Patch releases of older lines that do it, too."""
    modelled: bool = True
    proposed: bool = False
    """True if a KIP proposes it and no release has it."""
    is_race: bool = False
    """True if it needs two threads of one broker to meet, see :mod:`.races`."""
    waives: tuple[str, ...] = ()
    """Invariants that it breaks, which is what it is there to show."""

    @property
    def released(self) -> str:
        """Releases that brought it, the line's first and those of patches."""
        if self.proposed:
            return "proposed, in no release"
        first = (self.since,) if self.since else ()
        return ", ".join((*first, *self.backports)) or "free choice"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """One switch; its choices from the newest to the oldest.

    A position is there twice if a mistake came between: it is one choice.
    """

    name: str
    source: str
    """The KIP or the issue that changed it."""
    meaning: str
    positions: tuple[Choice, ...]
    side: Side = "server"
    is_quiet: bool = False
    """True if a scenario is written out without it where it is as the scenario's version has it, so
    that it moves no digest of scenarios that were there before it."""

    @property
    def default(self) -> str:
        """Position of the version that a scenario has which names none."""
        return self.at(DEFAULT)

    @property
    def choices(self) -> tuple[str, ...]:
        """Every position by name."""
        return tuple(dict.fromkeys(choice.name for choice in self.positions))

    @property
    def modelled(self) -> tuple[str, ...]:
        """The positions that are built."""
        built = (choice.name for choice in self.positions if choice.modelled)
        return tuple(dict.fromkeys(built))

    def at(self, version: str, *, preempted: bool = False) -> str:
        """Position of that version of Kafka.

        Args:
            version: One of ``VERSIONS``: the first release of that line.
            preempted: True if threads are interrupted; without it no race is met, and it is the
                position beside it that the version shows.
        """
        return next(
            c.name
            for c in self.positions
            if c.since and is_since(version, c.since) and (preempted or not c.is_race)
        )

    @property
    def versions(self) -> str:
        """The dated positions with the first version of each, the oldest first; then the others."""
        dated = [choice for choice in reversed(self.positions) if choice.since]
        others = [c for c in self.positions if not c.since and (c.proposed or c.backports)]
        return "; ".join(
            (", ".join(_dated(c) for c in dated), *(f"{c.name}: {c.released}" for c in others))
        )

    @property
    def changes(self) -> str:
        """Every position with its change."""
        return "; ".join(f"{choice.name}: {choice.changes}" for choice in self.positions)

    @property
    def risks(self) -> str:
        """Every position with its risk."""
        risks = dict.fromkeys((choice.name, choice.risk) for choice in self.positions)
        return "; ".join(f"{name}: {risk}" for name, risk in risks)


def _dated(choice: Choice) -> str:
    backports = f" (and {', '.join(choice.backports)})" if choice.backports else ""
    since = "" if choice.since == VERSIONS[0] else f" since {choice.since}"
    race = " (a race)" if choice.is_race else ""
    return f"{choice.name}{since}{backports}{race}"
