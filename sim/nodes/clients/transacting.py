"""A producer's process that writes the outcomes of its transactions to the trace.

A process that starts again initializes its transactional id again, which aborts the transaction
that the one before left open.
"""

from dataclasses import replace

from sim.nodes.clients.producer import ProducerClient, ProducerNode
from sim.nodes.clients.workload import WorkloadSpec
from sim.nodes.process.port import Port
from sim.nodes.process.process import World
from sim.protocol.clients.producer.config import ProducerSetup
from sim.protocol.clients.producer.events import TransactionDone
from sim.protocol.clients.producer.producer import Producer
from sim.protocol.clients.producer.transactional_producer import TransactionalProducer
from sim.substrate.host import Host
from sim.trace.rows.clients import TransactionOutcomesRow, TransactionRecordsRow
from sim.trace.writer import TableWriter


class TransactingNode(ProducerNode):
    """A :class:`ProducerNode` whose settings may have a transactional id."""

    def __init__(
        self, name: str, host: Host, world: World, client: ProducerClient, spec: WorkloadSpec
    ) -> None:
        super().__init__(name, host, world, client, spec)
        self._next_transaction = 0
        self._ended: TableWriter[TransactionOutcomesRow] = world.trace.table("transaction_outcomes")
        self._held_records: TableWriter[TransactionRecordsRow] = world.trace.table(
            "transaction_records"
        )
        self.performers[TransactionDone] = self._transaction_done

    def setup(self, skipped: int = 0) -> ProducerSetup:
        """Makes what a client library begins with, and numbers its transactions on."""
        return replace(super().setup(skipped), first_transaction=self._next_transaction)

    def remember(self, machine: Producer) -> None:
        """Writes the outcome of an open transaction, and numbers on in the next process."""
        assert self._port is not None, "it has booted"
        if isinstance(machine, TransactionalProducer):
            last = machine.finish_transaction()
            if last is not None:
                self._transaction_done(self._port, last)
            self._next_transaction = machine.next_transaction
        super().remember(machine)

    def _transaction_done(self, port: Port, done: TransactionDone) -> None:  # noqa: ARG002
        now, topic = self.kernel.now(), self.spec.topic
        who = (self.name, self.config.transactional_id, done.transaction)
        for partition, first, last in done.records:
            self._held_records.add((now, *who, self.index, topic, partition, first, last))
        self._ended.add(
            (
                now,
                *who,
                done.producer_id,
                done.producer_epoch,
                done.begun_us,
                done.outcome,
                done.error,
                sum(last - first + 1 for _, first, last in done.records),
            )
        )
