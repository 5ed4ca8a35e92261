"""A share consumer's process: the client library, and its rows of the trace.

Source: ``org.apache.kafka.clients.consumer.KafkaShareConsumer``.
"""

from collections.abc import Callable, Sequence

from sim.ids import NodeId, Offset, TopicPartition
from sim.nodes.clients.consumer import ConsumerNode
from sim.nodes.process.process import World
from sim.protocol.clients.consumer.config import ConsumerConfig
from sim.protocol.clients.share.consumer import ShareApplication, ShareConsumer
from sim.substrate.host import Host
from sim.trace.rows.share import ShareConsumersRow
from sim.trace.writer import TableWriter


class ShareConsumerNode(ConsumerNode):
    """One member of a share group on a host; a process that starts again is a new member.

    Args:
        name: Printed name.
        host: Where it runs.
        world: The other processes.
        config: Its client's settings.
        application: Its processing of records.
        bootstrap: ``bootstrap.servers``.
        start_offset: Start offset of the group's share partition at its leader; -1 if unknown. An
            outside observer's view, for the lag of the group.
    """

    def __init__(
        self,
        name: str,
        host: Host,
        world: World,
        config: ConsumerConfig,
        application: ShareApplication,
        bootstrap: Sequence[NodeId],
        start_offset: Callable[[str, TopicPartition], Offset],
    ) -> None:
        super().__init__(name, host, world, config, bootstrap)
        self.application = application
        self._start_offset = start_offset
        self._member: ShareConsumer | None = None

    def boot(self) -> None:
        """Creates the client and begins to poll."""
        began: TableWriter[ShareConsumersRow] = self.trace.table("share_consumers")
        began.add((self.kernel.now(), self.name, self.config.group_id))
        chance = self.streams.named(f"application/{self.name}").unit
        self._member = ShareConsumer(self.setup(), self.application, chance)
        self._begin(self._member)

    def assignment(self) -> tuple[TopicPartition, ...]:
        """Assigned partitions, sorted; none if it does not run."""
        return self._member.assignment() if self.running and self._member is not None else ()

    def position(self, partition: TopicPartition) -> Offset:
        """Start offset of the group's share partition; -1 if unknown."""
        return self._start_offset(self.config.group_id, partition)

    def committed(self, partition: TopicPartition) -> Offset:
        """The same: a share group has no other offsets."""
        return self.position(partition)
