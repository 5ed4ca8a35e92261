"""Transactions that are aborted: by their application, or by an administrator.

Source: ``KafkaProducer.abortTransaction``; ``Admin.fenceProducers``, ``FenceProducersHandler``.
"""

from dataclasses import dataclass, field
from typing import ClassVar, Final

from sim.faults.action import Action, Evidence, Instant
from sim.faults.fault import Fault, Hits, Span, TargetFault, key
from sim.faults.operations import AS_MEANT, evidence_of
from sim.faults.resolve import Site
from sim.faults.surface import Operation, Transactions, World
from sim.faults.target import Target
from sim.ids import NO_LEADER
from sim.protocol.messages.metadata import InitProducerIdRequest
from sim.units import SECOND

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
