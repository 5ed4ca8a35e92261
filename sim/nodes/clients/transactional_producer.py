"""A transactional producer's process, and its application; a fenced one ends by itself."""

from collections.abc import Callable
from dataclasses import dataclass

from sim.ids import NodeId
from sim.nodes.clients.transacting import TransactingNode
from sim.nodes.clients.workload import WorkloadSpec
from sim.nodes.process.port import Port
from sim.nodes.process.process import World
from sim.protocol.clients.producer.config import ProducerConfig
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
    """Millionths of them that the application aborts of its own will."""
    version: int
    """``transaction.version`` of the cluster."""
    adds_partitions: bool = True
    """Whether the client tells the coordinator of every partition before it writes there."""


class TransactionalProducerNode(TransactingNode):
    """A :class:`TransactingNode` whose settings have a transactional id."""

    def __init__(
        self,
        name: str,
        host: Host,
        world: World,
        *,
        index: int,
        spec: WorkloadSpec,
        config: ProducerConfig,
        bootstrap: tuple[NodeId, ...],
        tells_keys: bool = False,
        transactions: TransactionSpec,
    ) -> None:
        super().__init__(
            name,
            host,
            world,
            index=index,
            spec=spec,
            config=config,
            bootstrap=bootstrap,
            tells_keys=tells_keys,
        )
        self.transactions = transactions
        self.performers[ProducerStopped] = self._stopped

    def make_mind(
        self, source: ArrivalSource, unit: Callable[[], float], first_correlation: int
    ) -> Producer:
        """The client library of a new process, and its application."""
        chance = self.streams.named(f"transactions/{self.name}").unit
        spec = self.transactions
        plan = TransactionPlan(
            spec.records,
            spec.every_us,
            lambda: chance() * 1e6 < spec.abort_ppm,
            spec.adds_partitions,
        )
        return TransactionalProducer(
            self.spec.topic,
            self.config,
            source,
            self,
            unit,
            plan=plan,
            version=spec.version,
            bootstrap=self._bootstrap,
            clock_offset=lambda: self.host.clock_offset_us,
            next_records=self._next_records,
            refused_records=self._refused_records,
            first_correlation=first_correlation,
            first_transaction=self._next_transaction,
        )

    # -- effects ----------------------------------------------------------------------------------

    def _stopped(self, port: Port, effect: ProducerStopped) -> None:  # noqa: ARG002 - said in rows
        self.finish()
        self.end()
