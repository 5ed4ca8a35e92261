"""A consumer's process: the client library, and its rows of the trace.

Source: ``org.apache.kafka.clients.consumer.KafkaConsumer``.
"""

from collections.abc import Sequence
from typing import Literal

from sim.error_codes import ErrorCode
from sim.ids import NO_OFFSET, NodeId, Offset, TopicPartition
from sim.nodes.process.base import Node
from sim.nodes.process.port import Machine, Port
from sim.nodes.process.process import World
from sim.protocol.clients.consumer.config import ConsumerConfig, ConsumerSetup
from sim.protocol.clients.consumer.consumer import (
    ApplicationCall,
    ApplicationCalled,
    CloseConsumer,
    Consumer,
    Deliver,
    Start,
    Stopped,
)
from sim.substrate.host import Host
from sim.trace.rows.clients import CommittedReadersRow, ReadsRow
from sim.trace.writer import TableWriter
from sim.units import Micros

__all__ = ["ConsumerConfig", "ConsumerNode", "read_row"]


class ConsumerNode(Node):
    """One consumer on a host.

    It polls from the start of the process, with the ``bootstrap`` brokers, and ends with
    :meth:`close`, with an error that its poll raises, or with its process. A process that starts
    again is a new member of its group.
    """

    def __init__(
        self,
        name: str,
        host: Host,
        world: World,
        config: ConsumerConfig,
        bootstrap: Sequence[NodeId],
    ) -> None:
        super().__init__(name, host, world)
        self.config = config
        self.error = ErrorCode.NONE
        """Error of its poll; NONE before one."""
        self._bootstrap = tuple(bootstrap)
        self._consumer: Consumer | None = None
        self._port: Port | None = None
        self._reads: TableWriter[ReadsRow] = self.trace.table("reads")
        self.performers[Deliver] = self._deliver_records
        self.performers[Stopped] = self._stopped
        self.performers[ApplicationCalled] = self._called
        self._calls: list[tuple[TopicPartition, ...] | None] = []
        """Partitions that each call of the application has met; ``None`` before it."""

    def boot(self) -> None:
        """Creates the client and begins to poll."""
        self._consumer = Consumer(self.setup())
        self._begin(self._consumer)

    def setup(self) -> ConsumerSetup:
        """Makes what a client library begins with."""
        unit = self.streams.named(f"consumer/{self.name}").unit
        return ConsumerSetup(self.name, self.config, self._bootstrap, unit)

    def _begin(self, machine: Machine) -> None:
        self.error = ErrorCode.NONE
        self._port = self.add_machine("consumer", machine)
        self.deliver(self._port, Start())
        self.note_state("running")
        if self.config.isolation_level == "read_committed":
            began: TableWriter[CommittedReadersRow] = self.trace.table("committed_readers")
            began.add((self.kernel.now(), self.name, self.config.group_id))

    def close(self) -> None:
        """Commits, leaves the group, and stops; no effect if it is not running.

        A paused process closes when it resumes.
        """
        self.call_at(self.kernel.now(), self._close)

    def call(
        self,
        what: Literal["seek", "pause", "resume"],
        partitions: tuple[TopicPartition, ...],
        offset: Offset = NO_OFFSET,
        timestamp: int | None = None,
    ) -> int:
        """Lets the application seek, pause or resume before its next poll; returns its number."""
        self._calls.append(None)
        call = ApplicationCall(len(self._calls) - 1, what, partitions, offset, timestamp)
        self.call_at(self.kernel.now(), self._deliver_call, call)
        return call.number

    # -- views ------------------------------------------------------------------------------------

    def assignment(self) -> tuple[TopicPartition, ...]:
        """Assigned partitions, sorted; none if it does not run."""
        return self._consumer.assignment() if self.running and self._consumer is not None else ()

    def position(self, partition: TopicPartition) -> Offset:
        """Next offset in the partition; -1 if it is not assigned or not known yet."""
        if not self.running or self._consumer is None:
            return -1
        return self._consumer.position(partition)

    def committed(self, partition: TopicPartition) -> Offset:
        """Last offset acknowledged as committed; -1 for none."""
        return self._consumer.committed().get(partition, -1) if self._consumer is not None else -1

    def called(self, number: int) -> tuple[TopicPartition, ...] | None:
        """Partitions that a call has met; ``None`` if the application has not got to it."""
        return self._calls[number]

    # -- effects ----------------------------------------------------------------------------------

    def _close(self) -> None:
        assert self._port is not None, "a process that runs has booted"
        self.deliver(self._port, CloseConsumer())

    def _deliver_call(self, call: ApplicationCall) -> None:
        assert self._port is not None, "a process that runs has booted"
        self.deliver(self._port, call)

    def _called(self, _port: Port, effect: ApplicationCalled) -> None:
        self._calls[effect.number] = effect.partitions

    def _deliver_records(self, _port: Port, effect: Deliver) -> None:
        self._reads.add(read_row(self.kernel.now(), self.name, self.config.group_id, effect))

    def _stopped(self, _port: Port, effect: Stopped) -> None:
        self.error = effect.error
        self.end()


def read_row(now: Micros, consumer: str, group: str, effect: Deliver) -> ReadsRow:
    """Row of ``reads`` for a poll's records."""
    return (
        now,
        consumer,
        group,
        effect.partition.topic,
        effect.partition.partition,
        effect.base_offset,
        effect.last_offset,
        effect.leader_epoch,
        effect.producer_index,
        effect.first_record,
        effect.record_count,
        effect.high_watermark,
        effect.read_from,
    )
