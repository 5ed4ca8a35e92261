"""A switch of Kafka's history: its positions, and since when each of them."""

from dataclasses import dataclass

from sim.scenario.behaviours.versions import DEFAULT, VERSIONS, is_since


@dataclass(frozen=True, slots=True)
class Choice:
    """One position of a switch."""

    name: str
    since: str = VERSIONS[0]
    """The first version that does it where nothing else is given; "" for a free choice."""
    changes: str = ""
    """Change against the position before it in time."""
    modelled: bool = True
    raced_in: str = ""
    """Of a race of two threads, which no version chooses: the versions that had it."""
    waives: tuple[str, ...] = ()
    """Invariants that it breaks, which is what it is there to show."""


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

    def at(self, version: str) -> str:
        """Position of that version of Kafka."""
        dated = [c.name for c in self.positions if c.since and is_since(version, c.since)]
        return dated[0]

    @property
    def versions(self) -> str:
        """The dated positions with the first version of each, the oldest first; then races."""
        dated = [choice for choice in reversed(self.positions) if choice.since]
        dates = ", ".join(
            c.name if c.since == VERSIONS[0] else f"{c.name} since {c.since}" for c in dated
        )
        raced = [f"; {c.name} in {c.raced_in}, by name only" for c in self.positions if c.raced_in]
        return dates + "".join(raced)

    @property
    def changes(self) -> str:
        """Every position with its change."""
        return "; ".join(f"{choice.name}: {choice.changes}" for choice in self.positions)
