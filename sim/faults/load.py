"""Load surges: producers whose intended rate is several times as high.

Records and their intended times are the workload's and known ahead
(:mod:`sim.nodes.clients.surges`), so that a seed means the same records whatever happens to their
producer. This module only collects the evidence.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from sim.faults.action import Evidence
from sim.faults.fault import LATE, Fault, Hits, TargetFault, key
from sim.faults.resolve import Site
from sim.faults.surface import Sender


class SentMeanwhile:
    """Evidence of a surge of some producers."""

    def __init__(self, senders: Sequence[Sender]) -> None:
        self._senders = senders
        self._before = 0
        self._after: int | None = None

    def begin(self) -> None:
        """Notes the number of records before."""
        self._before = self._taken()

    def heal(self) -> bool:
        """Notes the number of records at the end."""
        self._after = self._taken()
        return True

    def evidence(self) -> Evidence:
        """Number of records sent in that time."""
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
        """Action on these producers."""
        senders = [site.world.sender(name) for name in names]
        return SentMeanwhile([sender for sender in senders if sender is not None])


LOAD_FAULTS: Final[tuple[type[Fault], ...]] = (LoadSurge,)
