"""A broker's part in share groups: its share partitions, and its share coordinator.

The share partitions follow the replica manager's leaderships and high watermarks, and disconnects
of members.

Source: ``BrokerServer``, ``ShareSessionCache.ConnectionDisconnectListener`` (4.1).
"""

from collections.abc import Callable

from sim.ids import NodeId, Offset, TopicPartition
from sim.nodes.broker.replicas import Replicas
from sim.nodes.process.dispatcher import Dispatcher, Performer
from sim.nodes.process.port import Port
from sim.protocol.authorization import ApiAuthorizer
from sim.protocol.broker.replication.events import HighWatermarkMoved, LeadershipApplied
from sim.protocol.broker.share.config import ShareConfig
from sim.protocol.broker.share.effects import ShareSessionOpened
from sim.protocol.broker.share.manager import ShareConnectionClosed, SharePartitionManager
from sim.protocol.coordinator.share.coordinator import ShareCoordinator, ShareCoordinatorConfig
from sim.protocol.metadata.image import MetadataImage
from sim.substrate.network import Connection


class BrokerShares:
    """Share groups in one broker process; each start of the process has its own.

    Args:
        process: The broker.
        node_id: Its id.
        shares: Settings of share partitions.
        coordinator: Settings of the share coordinator.
        replicas: Its replicas.
        image: The metadata that it has applied.
        authorizer: Members' rights; ``None``: nobody is refused.
    """

    def __init__(
        self,
        process: Dispatcher,
        node_id: NodeId,
        shares: ShareConfig,
        coordinator: ShareCoordinatorConfig,
        replicas: Replicas,
        image: Callable[[], MetadataImage],
        authorizer: ApiAuthorizer | None,
    ) -> None:
        self._process = process
        unit = process.streams.named(f"share/{process.name}").unit
        self.machine = SharePartitionManager(
            node_id, shares, replicas.manager, image, unit, authorizer
        )
        self.port = process.add_machine("shares", self.machine)
        self.coordinator = process.add_machine(
            "share-coordinator", ShareCoordinator(node_id, coordinator, image)
        )
        self._members: dict[Connection, tuple[str, str]] = {}
        """Group and member id by the connection of the member's fetches."""
        self.performers: dict[type, Performer] = {HighWatermarkMoved: self._moved}

    def leadership_applied(self, effect: LeadershipApplied) -> None:
        """The broker became or ceased to be leader of a partition."""
        self._process.deliver(self.port, effect)

    def opened(self, link: Connection, effect: ShareSessionOpened) -> None:
        """A member of a share group fetches on a connection."""
        self._members[link] = effect.group, effect.member_id

    def closed(self, link: Connection) -> None:
        """A connection is closed: its member has left."""
        member = self._members.pop(link, None)
        if member is not None:
            self._process.call_at(self._process.kernel.time, self._member_left, *member)

    def start_offset(self, group: str, partition: TopicPartition) -> Offset:
        """Start offset of the share partition; -1 if it is not loaded here."""
        share = self.machine.share(group, partition)
        return -1 if share is None else share.start_offset

    def _member_left(self, group: str, member_id: str) -> None:
        self._process.deliver(self.port, ShareConnectionClosed(group, member_id))

    def _moved(self, _port: Port, effect: HighWatermarkMoved) -> None:
        self._process.deliver(self.port, effect)
