"""Load surges: producers with several times their intended rate; transactions that are aborted.

Records and their intended times are the workload's and known ahead
(:mod:`sim.nodes.clients.surges`), so that a seed means the same records whatever happens to their
producer. This module only collects the evidence.

Source: ``KafkaProducer.abortTransaction``; ``Admin.fenceProducers``, ``FenceProducersHandler``.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from sim.faults.action import Action, Evidence, Instant
from sim.faults.fault import LATE, Fault, Hits, Span, TargetFault, key
from sim.faults.operations import AS_MEANT, evidence_of
from sim.faults.resolve import Site
from sim.faults.surface import Operation, Sender, Transactions, World
from sim.faults.target import Target
from sim.ids import NO_LEADER
from sim.protocol.messages.metadata import InitProducerIdRequest
from sim.units import SECOND


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


FENCING_TIMEOUT_US: Final = 60 * SECOND
"""``transaction.timeout.ms`` of an administrator's request: its default API timeout."""


class AbortedByApplication(Instant):
    """The application aborts the next transaction that it begins."""

    def __init__(self, producer: Transactions) -> None:
        self._producer = producer
        self._before = producer.aborts_chosen

    def begin(self) -> None:
        """Chooses the transaction."""
        self._before = self._producer.aborts_chosen
        self._producer.abort_next()

    def evidence(self) -> Evidence:
        """True if a transaction has begun since."""
        if self._producer.aborts_chosen > self._before:
            return Evidence(took_effect=True, effect="its application aborted a transaction")
        return Evidence(took_effect=False, effect="it began no further transaction")


class Fencing(Instant):
    """An administrator requests the producer's id again: its open transaction is aborted."""

    def __init__(self, world: World, producer: Transactions) -> None:
        self._world = world
        self._id = producer.transactional_id
        self._operation: Operation | None = None

    def begin(self) -> None:
        """Sends the request to the coordinator, if there is one."""
        coordinator = self._world.coordinator_of(self._id)
        if coordinator != NO_LEADER:
            request = InitProducerIdRequest(self._id, FENCING_TIMEOUT_US)
            self._operation = self._world.administrator.operate(request, coordinator)

    def evidence(self) -> Evidence:
        """True if the coordinator has given the id another epoch."""
        if self._operation is None:
            return Evidence(took_effect=False, effect=f"no broker coordinates {self._id}")
        return evidence_of(self._operation)


@dataclass(frozen=True, kw_only=True)
class AbortTransaction(TargetFault):
    """A transaction of a producer is aborted: by its application, or the producer is fenced."""

    kind = "abort-transaction"
    proof = "the application aborted one, or the coordinator gave its id another epoch"
    may_break = AS_MEANT
    span: ClassVar[Span] = "operation"
    hits: ClassVar[Hits] = "transactional producer"
    targets: tuple[Target, ...] = field(metadata=key("target", "target"))
    by: str = field(
        default="application",
        metadata=key(
            "by", "word", "the next one, by itself; or the open one, by Admin.fenceProducers",
            words=("application", "administrator"),
        ),
    )  # fmt: skip

    def on(self, names: tuple[str, ...], site: Site) -> Action | None:
        """Action on this producer."""
        producer = site.world.transactions(names[0])
        if producer is None:
            return None
        if self.by == "application":
            return AbortedByApplication(producer)
        return Fencing(site.world, producer)


TRANSACTION_FAULTS: Final[tuple[type[Fault], ...]] = (AbortTransaction,)
