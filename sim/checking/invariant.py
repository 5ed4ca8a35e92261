"""Base of invariants: a sentence, its source, its conditions, and the count of its checks.

One that never met its subject has ``checked: 0``; one that was suspended has reasons and counts.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from sim.checking.observer import Observer, show_row
from sim.checking.partition import Partition
from sim.errors import InvariantBroken
from sim.ids import server_name
from sim.units import Micros, show_instant

ALWAYS = "always"
"""The condition of an invariant that no configuration and no fault excuses."""

NO_LOSS = "no unclean election and no lossy crash of this partition before"
"""The condition N of the TLA+ models: elections are clean and no log lost records."""


@dataclass(frozen=True, slots=True)
class CheckReport:
    """Report of one invariant in a run."""

    name: str
    sentence: str
    source: str
    conditions: str
    checked: int
    """Number of checked rows."""
    suspended: dict[str, int]
    """Reasons for skipped checks, with their numbers."""
    outcome: str
    """``held``; ``nothing to check``: it never met its subject; ``set aside``: it always was
    suspended. One that is broken ends the run."""


class Invariant:
    """One guarantee, checked at each row about its subject.

    ``name`` is kebab case; ``source`` names the rule of Kafka or of its formal models;
    ``conditions`` is ``always``, or describes when a violation is a defect.
    """

    name: ClassVar[str]
    sentence: ClassVar[str]
    source: ClassVar[str]
    conditions: ClassVar[str] = ALWAYS

    def __init__(self) -> None:
        self.checked = 0
        self.suspended: dict[str, int] = {}

    def watch(self, observer: Observer) -> None:
        """Adds the checks to their tables."""
        self._watch(observer)

    def _watch(self, observer: Observer) -> None:
        raise NotImplementedError

    def suspend(self, reason: str) -> None:
        """Counts a skipped check, by reason."""
        self.suspended[reason] = self.suspended.get(reason, 0) + 1

    def report(self) -> CheckReport:
        """The count so far."""
        outcome = "held" if self.checked else "set aside" if self.suspended else "nothing to check"
        return CheckReport(
            self.name, self.sentence, self.source, self.conditions, self.checked,
            dict(self.suspended), outcome,
        )  # fmt: skip

    def broken(
        self, at: Micros, node: str, found: str, partition: Partition | None = None
    ) -> InvariantBroken:
        """The exception to raise: sentence, instant, node, partition, values and last rows."""
        where = f"{node}, {partition.name}" if partition is not None else node
        text = (
            f"invariant {self.name} broken at {show_instant(at)} on {where}: {found}. "
            f"It says: {self.sentence} ({self.source}; holds {self.conditions})"
        )
        if partition is not None:
            rows = "\n  ".join(show_row(table, row) for table, row in partition.recent)
            text += f"\nLast {len(partition.recent)} rows for {partition.name}:\n  {rows}"
        return InvariantBroken(text)

    def broken_by(self, row: tuple[Any, ...], found: str, partition: Partition) -> InvariantBroken:
        """The same for a row that begins with its instant and the number of its server."""
        at, server, *_ = row
        return self.broken(at, server_name(server), found, partition)
