"""A transactional producer's process, and its application; a fenced one exits."""

from dataclasses import dataclass

from sim.nodes.clients.producer import ProducerClient
from sim.nodes.clients.transacting import TransactingNode
from sim.nodes.clients.workload import WorkloadSpec
from sim.nodes.process.port import Port
from sim.nodes.process.process import World
from sim.protocol.clients.producer.config import ProducerSetup
from sim.protocol.clients.producer.events import ArrivalSource, ProducerStopped
from sim.protocol.clients.producer.producer import Producer
from sim.protocol.clients.producer.transaction_workload import TransactionPlan
from sim.protocol.clients.producer.transactional_producer import TransactionalProducer
from sim.substrate.host import Host
from sim.units import Micros


@dataclass(frozen=True, slots=True)
class TransactionSpec:
    """An application's transactions: either ``records`` or ``every_us`` is above 0."""

    records: int
    every_us: Micros
    abort_ppm: int
    """Transactions in a million that the application aborts."""
    version: int
    """``transaction.version`` of the cluster."""
    adds_partitions: bool = True
    """True if the client sends AddPartitionsToTxn before it writes to a partition."""


class TransactionalProducerNode(TransactingNode):
    """A :class:`TransactingNode` whose settings have a transactional id."""

    def __init__(
        self,
        name: str,
        host: Host,
        world: World,
        client: ProducerClient,
        spec: WorkloadSpec,
        transactions: TransactionSpec,
    ) -> None:
        super().__init__(name, host, world, client, spec)
        self.transactions = transactions
        self.aborts_chosen = 0
        """Transactions aborted because a fault chose them."""
        self._chosen = 0
        self.performers[ProducerStopped] = self._stopped

    def make_machine(self, source: ArrivalSource, setup: ProducerSetup) -> Producer:
        """Creates the client library of a new process, and its application."""
        chance = self.streams.named(f"transactions/{self.name}").unit
        spec = self.transactions

        def aborts() -> bool:
            drawn = chance() * 1e6 < spec.abort_ppm
            return self._take_chosen() or drawn

        plan = TransactionPlan(spec.records, spec.every_us, aborts, spec.adds_partitions)
        return TransactionalProducer(setup, source, plan, spec.version)

    @property
    def transactional_id(self) -> str:
        """``transactional.id``."""
        return self.config.transactional_id

    def abort_next(self) -> None:
        """Lets the application abort the next transaction that it begins."""
        self._chosen += 1

    def _take_chosen(self) -> bool:
        if not self._chosen:
            return False
        self._chosen -= 1
        self.aborts_chosen += 1
        return True

    # -- effects ----------------------------------------------------------------------------------

    def _stopped(self, port: Port, effect: ProducerStopped) -> None:  # noqa: ARG002 - said in rows
        self.finish()
        self.end()
