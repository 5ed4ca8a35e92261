"""More load than usual: producers that are meant to send several times as many records.

What is meant to be sent, and when, is the workload's and known ahead
(:mod:`sim.nodes.clients.surges`), so that a seed means the same records whatever happens to their
producer. Here is the proof alone.
"""

from collections.abc import Sequence

from sim.faults.action import Evidence
from sim.faults.surface import Sender


class LoadSurge:
    """Producers in a surge."""

    def __init__(self, senders: Sequence[Sender]) -> None:
        self._senders = senders
        self._before = 0
        self._after: int | None = None

    def begin(self) -> None:
        """Note how much was sent before."""
        self._before = self._taken()

    def heal(self) -> bool:
        """Note how much was sent until now."""
        self._after = self._taken()
        return True

    def evidence(self) -> Evidence:
        """How many records came in that time."""
        taken = (self._taken() if self._after is None else self._after) - self._before
        return Evidence(taken > 0, f"{taken} records were sent meanwhile")

    def _taken(self) -> int:
        return sum(sender.records_taken for sender in self._senders)
