"""All invariants of a run, installed together.

Sources: section 7 of the semantics rules (S-numbers) and the formal models of Kafka's replication
(Kip101, Kip279, Kip320, AsyncIsr; kip-966), under whose names the classes' ``source`` is found.
Left out: what needs ELR's bookkeeping or record values.
"""

from collections.abc import Mapping
from typing import Final

from sim.checking.invariant import CheckReport, Invariant
from sim.checking.invariants.clients import CLIENT_INVARIANTS
from sim.checking.invariants.compaction import COMPACTION_INVARIANTS
from sim.checking.invariants.control import CONTROL_INVARIANTS
from sim.checking.invariants.logs import LOG_INVARIANTS
from sim.checking.invariants.members import MEMBER_INVARIANTS
from sim.checking.invariants.rights import RIGHTS_INVARIANTS
from sim.checking.invariants.sequences import SEQUENCE_INVARIANTS
from sim.checking.invariants.shares import SHARE_INVARIANTS
from sim.checking.invariants.starts import START_INVARIANTS
from sim.checking.invariants.tiered import TIERED_INVARIANTS
from sim.checking.invariants.transactions import TRANSACTION_INVARIANTS
from sim.checking.invariants.watermarks import WATERMARK_INVARIANTS
from sim.checking.observer import Observer
from sim.errors import SimulationError
from sim.trace.writer import Trace

INVARIANTS: Final[tuple[type[Invariant], ...]] = (
    *LOG_INVARIANTS,
    *WATERMARK_INVARIANTS,
    *SEQUENCE_INVARIANTS,
    *START_INVARIANTS,
    *COMPACTION_INVARIANTS,
    *CONTROL_INVARIANTS,
    *CLIENT_INVARIANTS,
    *MEMBER_INVARIANTS,
    *TRANSACTION_INVARIANTS,
    *SHARE_INVARIANTS,
    *RIGHTS_INVARIANTS,
    *TIERED_INVARIANTS,
)
"""Every invariant, in the order in which they are reported."""


class Watch:
    """Checks every invariant against a trace while it is written.

    A row that breaks one makes :meth:`TableWriter.add` raise
    :class:`~sim.errors.InvariantBroken`; the row itself is recorded.

    Args:
        trace: Whose rows are judged; must be given before the first row.
        waived: Names of invariants that the scenario's behaviours break on purpose (a bug of an old
            Kafka version, say), each with the reason; they are reported as suspended.
        more: Invariants that not every cluster has.

    Raises:
        SimulationError: If there is no invariant of a waived name.
    """

    def __init__(
        self,
        trace: Trace,
        *,
        waived: Mapping[str, str] | None = None,
        more: tuple[type[Invariant], ...] = (),
    ) -> None:
        waived = waived or {}
        kinds = (*INVARIANTS, *more)
        names = [kind.name for kind in kinds]
        unknown = [name for name in waived if name not in names]
        if unknown:
            raise SimulationError(f"no invariant {unknown[0]!r}; they are {', '.join(names)}")
        self.observer = Observer(trace)
        self._invariants = [kind() for kind in kinds]
        for invariant in self._invariants:
            reason = waived.get(invariant.name)
            if reason is None:
                invariant.watch(self.observer)
            else:
                invariant.suspend(f"waived: {reason}")

    def reports(self) -> list[CheckReport]:
        """Reports of all invariants so far. ``checked`` 0 means that it never met its subject."""
        return [invariant.report() for invariant in self._invariants]
