"""More load than usual: producers that are meant to send several times as many records.

What is meant to be sent, and when, is the workload's and known ahead
(:mod:`sim.nodes.clients.surges`), so that a seed means the same records whatever happens to their
producer. Here is the proof alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from sim.faults.action import Evidence
from sim.faults.fault import LATE, Fault, Hits, TargetFault, key
from sim.faults.resolve import Site
from sim.faults.surface import Sender


class SentMeanwhile:
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


@dataclass(frozen=True, kw_only=True)
class LoadSurge(TargetFault):
    """Producers send `factor` times as many records."""

    kind = "load-surge"
    proof = "records were meant for that time"
    may_break = f"{LATE}, where the cluster cannot keep up"
    hits: ClassVar[Hits] = "producer"
    factor: int = field(metadata=key("factor", "whole", low=2, high=1_000))

    def on(self, names: tuple[str, ...], site: Site) -> SentMeanwhile:
        """At work on these producers."""
        senders = [site.world.sender(name) for name in names]
        return SentMeanwhile([sender for sender in senders if sender is not None])


LOAD_FAULTS: Final[tuple[type[Fault], ...]] = (LoadSurge,)
