"""A broker's part in share groups: its share partitions, and its share coordinator.

The share partitions hear from the data plane who leads what and how far it is committed, and from
the broker's connections when a member is gone.

Source: ``BrokerServer``, ``ShareSessionCache.ConnectionDisconnectListener`` (4.1).
"""

from typing import TYPE_CHECKING

from sim.ids import SHARE_STATE_TOPIC, Offset, TopicPartition
from sim.nodes.broker.coordinators import CoordinatorShell
from sim.nodes.process.port import Port
from sim.protocol.broker.replication.events import HighWatermarkMoved, LeadershipApplied
from sim.protocol.broker.share.manager import (
    SHARE_REQUESTS,
    ShareConnectionClosed,
    SharePartitionManager,
    ShareSessionOpened,
)
from sim.protocol.coordinator.share.coordinator import SHARE_COORDINATOR_REQUESTS, ShareCoordinator
from sim.records.share_group_state import batch_for, records_in
from sim.substrate.network import Connection

if TYPE_CHECKING:
    from sim.nodes.broker.node import BrokerNode


class BrokerShares:
    """What one broker process does for share groups; built anew at each start."""

    def __init__(self, node: "BrokerNode") -> None:
        self._node = node
        settings = node.settings
        self.machine = SharePartitionManager(
            node.node_id,
            settings.shares,
            node.replica_manager,
            lambda: node.image,
            node.streams.named(f"share/{node.name}").unit,
        )
        self._port = node.add_machine("shares", self.machine)
        coordinator = node.add_machine(
            "share-coordinator",
            ShareCoordinator(node.node_id, settings.share_coordinator, lambda: node.image),
        )
        self.shell = CoordinatorShell(node, coordinator, SHARE_STATE_TOPIC, batch_for, records_in)
        self._members: dict[Connection, tuple[str, str]] = {}
        """Group and member id by the connection that the member fetches on."""
        node.route(self._port, *SHARE_REQUESTS)
        node.route(coordinator, *SHARE_COORDINATOR_REQUESTS)
        node.performers |= {
            HighWatermarkMoved: self._moved,
            ShareSessionOpened: self._opened,
        }

    def leadership_applied(self, effect: LeadershipApplied) -> None:
        """The broker began or ceased to lead a partition."""
        self._node.deliver(self._port, effect)

    def closed(self, link: Connection) -> None:
        """A connection is over: whoever fetched on it is gone."""
        member = self._members.pop(link, None)
        if member is not None:
            self._node.call_at(self._node.kernel.time, self._gone, *member)

    def start_offset(self, group: str, partition: TopicPartition) -> Offset:
        """Where the share partition begins; -1 if it is not loaded here."""
        share = self.machine.share(group, partition)
        return -1 if share is None else share.start_offset

    def _gone(self, group: str, member_id: str) -> None:
        self._node.deliver(self._port, ShareConnectionClosed(group, member_id))

    def _moved(self, _port: Port, effect: HighWatermarkMoved) -> None:
        self._node.deliver(self._port, effect)

    def _opened(self, _port: Port, effect: ShareSessionOpened) -> None:
        link = self._node.connection_of(effect.token)
        if link is not None:
            self._members[link] = effect.group, effect.member_id
