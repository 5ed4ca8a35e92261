"""The simulated cluster: hosts, servers, clients, and the present roles of servers.

Roles are those that an omniscient observer sees: the leader of a partition is the one in the active
controller's committed state.
"""

from sim.ids import (
    NO_LEADER,
    OBJECT_STORE_ID,
    TRANSACTIONS_TOPIC,
    NodeId,
    Offset,
    TopicPartition,
    server_name,
)
from sim.kernel import Kernel
from sim.nodes.broker.combined import CombinedNode
from sim.nodes.broker.node import BrokerNode
from sim.nodes.broker.zookeeper import ZkControl
from sim.nodes.clients.admin import AdminNode
from sim.nodes.clients.consumer import ConsumerNode
from sim.nodes.clients.producer import ProducerNode
from sim.nodes.clients.transactional_producer import TransactionalProducerNode
from sim.nodes.controller.node import ControllerNode
from sim.nodes.object_store import ObjectStoreNode
from sim.nodes.process.base import Node
from sim.nodes.process.server import ServerNode
from sim.nodes.zookeeper.node import ZooKeeperNode
from sim.protocol.controller.no_ops import is_no_op
from sim.protocol.coordinator.lookup import find_coordinator
from sim.protocol.messages.base import Request
from sim.protocol.messages.delete_records import UP_TO_HIGH_WATERMARK, DeleteRecordsRequest
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.metadata.records import Voter
from sim.rng import Streams
from sim.substrate.host import Host
from sim.substrate.network import Network
from sim.trace.writer import Trace


class Cluster:
    """All hosts and processes. Built by the scenario's run; faults act on its members."""

    def __init__(self, kernel: Kernel, network: Network, trace: Trace, streams: Streams) -> None:
        self.kernel = kernel
        self.network = network
        self.trace = trace
        self.streams = streams
        self.hosts: dict[str, Host] = {}
        self.nodes: dict[str, Node] = {}
        self.brokers: dict[NodeId, BrokerNode] = {}
        self.controllers: dict[NodeId, ControllerNode | CombinedNode] = {}
        """Some may be brokers as well."""
        self.zookeepers: dict[NodeId, ZooKeeperNode] = {}
        """Servers of the ensemble; none under KRaft."""
        self.object_store: ObjectStoreNode | None = None
        """Of tiered storage; ``None`` without any."""
        self._administrator: AdminNode | None = None
        self._misnamed: dict[NodeId, NodeId] = {}
        """Servers behind wrong advertised names; NO_LEADER: nobody."""
        self.misled: dict[NodeId, int] = {}
        """Connections of clients that went by a wrong name, by the server that they meant."""

    def server(self, node: NodeId) -> ServerNode | None:
        """Server with a ``node.id``."""
        if node == OBJECT_STORE_ID:
            return self.object_store
        return self.brokers.get(node) or self.controllers.get(node) or self.zookeepers.get(node)

    def advertised(self, node: NodeId) -> ServerNode | None:
        """Server that answers at a server's advertised name; ``None``: the name has no address."""
        if node not in self._misnamed:
            return self.server(node)
        self.misled[node] = self.misled.get(node, 0) + 1
        other = self._misnamed[node]
        return None if other == NO_LEADER else self.server(other)

    def misname(self, node: NodeId, other: NodeId | None) -> None:
        """A broker advertises another one's address (NO_LEADER: nobody's); ``None``: its own."""
        if other is None:
            self._misnamed.pop(node, None)
        else:
            self._misnamed[node] = other

    @property
    def servers(self) -> tuple[str, ...]:
        """Printed names of brokers, then controllers or ZooKeeper servers, by number."""
        nodes = [*sorted(self.brokers), *sorted(self.controllers), *sorted(self.zookeepers)]
        return tuple(dict.fromkeys(server_name(node) for node in nodes))

    @property
    def processes(self) -> tuple[ServerNode, ...]:
        """Object store, controllers or ZooKeeper servers, then brokers, each process once."""
        controllers = [c for c in self.controllers.values() if c.node_id not in self.brokers]
        store = () if self.object_store is None else (self.object_store,)
        return (*store, *controllers, *self.zookeepers.values(), *self.brokers.values())

    def host_of(self, node: str) -> Host:
        """Host of a process."""
        return self.nodes[node].host

    def broker(self, name: str) -> BrokerNode | None:
        """The broker of that name; ``None`` if there is none."""
        node = self.nodes.get(name)
        return node if isinstance(node, BrokerNode) else None

    def add(self, node: Node) -> None:
        """Adds a process."""
        self.nodes[node.name] = node
        self.hosts[node.host.name] = node.host
        if isinstance(node, BrokerNode):
            self.brokers[node.node_id] = node
        if isinstance(node, ControllerNode | CombinedNode):
            self.controllers[node.node_id] = node
        elif isinstance(node, ZooKeeperNode):
            self.zookeepers[node.node_id] = node
        elif isinstance(node, ObjectStoreNode):
            self.object_store = node
        elif isinstance(node, AdminNode):
            self._administrator = node

    @property
    def administrator(self) -> AdminNode:
        """The process that operates the cluster."""
        assert self._administrator is not None, "every cluster has an administrator"
        return self._administrator

    @property
    def image(self) -> MetadataImage:
        """Latest committed metadata that any server has replayed, or ZooKeeper's."""
        if self.zookeepers:
            return next(iter(self.zookeepers.values())).facts.image
        images = [controller.image for controller in self.controllers.values()]
        images += [broker.image for broker in self.brokers.values()]
        return max(images, key=lambda image: image.offset, default=MetadataImage())

    def share_start(self, group: str, partition: TopicPartition) -> Offset:
        """Start offset of a group's share partition at its leader; -1 if unknown."""
        leader = self.brokers.get(self.image.leader_of(partition))
        return -1 if leader is None else leader.share_start(group, partition)

    def sender(self, name: str) -> ProducerNode | None:
        """The producer of that name; ``None`` if there is none."""
        node = self.nodes.get(name)
        return node if isinstance(node, ProducerNode) else None

    def reader(self, name: str) -> ConsumerNode | None:
        """The consumer of that name; ``None`` if there is none."""
        node = self.nodes.get(name)
        return node if isinstance(node, ConsumerNode) else None

    def transactions(self, name: str) -> TransactionalProducerNode | None:
        """The transactional producer of that name; ``None`` if there is none."""
        node = self.nodes.get(name)
        return node if isinstance(node, TransactionalProducerNode) else None

    def coordinator_of(self, transactional_id: str) -> NodeId:
        """Coordinator of a transactional id; NO_LEADER between two."""
        return find_coordinator(self.image, transactional_id, TRANSACTIONS_TOPIC).coordinator

    def is_no_op(self, request: Request) -> bool:
        """True if an administrator's request would change nothing."""
        if not isinstance(request, DeleteRecordsRequest):
            return is_no_op(self.image, request)
        for partition, before in request.offsets:
            leader = self.brokers.get(self.image.leader_of(partition))
            # A leader that has died, or does not know yet that it leads, cannot answer.
            known = None if leader is None else leader.committed_range(partition)
            if known is None:
                return False
            start, high_watermark = known
            if (high_watermark if before == UP_TO_HIGH_WATERMARK else before) > start:
                return False
        return True

    def serves(self, broker: NodeId) -> bool:
        """True if clients reach the broker: its process is in service.

        A new process whose former session still lasts leads in the metadata, and serves nobody.
        """
        node = self.brokers.get(broker)
        return node is not None and node.running and node.listening

    def is_in_sync(self, name: str) -> bool:
        """True if a server works as a part of the cluster again.

        A broker is unfenced and in the ISR of all its partitions; a controller runs, and there is
        an active one.
        """
        broker = self.broker(name)
        if broker is None:
            return self.nodes[name].running and self.controller_leader() is not None
        number, image = broker.node_id, self.image
        registration = image.brokers.get(number)
        return (
            broker.running
            and registration is not None
            and not registration.fenced
            and not registration.in_controlled_shutdown
            and all(
                number in state.in_sync
                for state in image.partitions.values()
                if number in state.replicas
            )
        )

    def release_of(self, name: str) -> str:
        """Release of Kafka that is installed on a server; empty for one that is not Kafka's."""
        node = self.nodes[name]
        return node.release if isinstance(node, BrokerNode | ControllerNode) else ""

    def install(self, name: str, release: str) -> None:
        """Installs a release of Kafka on a server that is down; its next process runs it."""
        node = self.nodes[name]
        assert isinstance(node, BrokerNode | ControllerNode), f"{name} is no server of Kafka"
        node.install(release)

    def is_member(self, name: str) -> bool:
        """True if a broker is registered, alive or not."""
        broker = self.broker(name)
        return broker is not None and broker.node_id in self.image.brokers

    def leader_of(self, partition: TopicPartition) -> str | None:
        """Printed name of the partition's leader; ``None`` if it has none."""
        leader = self.image.leader_of(partition)
        return server_name(leader) if leader >= 0 else None

    def replicas_of(self, partition: TopicPartition) -> tuple[str, ...]:
        """Printed names of the partition's replicas, in assignment order."""
        state = self.image.partitions.get(partition)
        return tuple(server_name(b) for b in state.replicas) if state is not None else ()

    def voter_key(self, controller: str) -> Voter:
        """A controller's id with its present directory id."""
        node = self._controller(controller)
        return Voter(node.node_id, node.directory)

    def vote_of(self, controller: str) -> Voter:
        """Voter with a controller's id, as the active controller has it.

        The controller's own key if it is no voter.
        """
        own = self.voter_key(controller)
        active = self.controller_leader()
        voters = () if active is None else self._controller(active).voters
        return next((voter for voter in voters if voter.node == own.node), own)

    def _controller(self, name: str) -> ControllerNode | CombinedNode:
        node = self.nodes[name]
        assert isinstance(node, ControllerNode | CombinedNode), f"{name} is no controller"
        return node

    def controller_leader(self) -> str | None:
        """Printed name of the active controller; of the newest epoch, if two are active."""
        active = [(c.quorum_epoch, c.name) for c in self.controllers.values() if c.is_active]
        for broker in self.brokers.values():
            control = broker.control
            if broker.running and isinstance(control, ZkControl) and control.controller_epoch:
                active.append((control.controller_epoch, broker.name))
        return max(active)[1] if active else None

    def zookeeper_leader(self) -> str | None:
        """Printed name of the ensemble's leader; of the newest epoch, if two lead."""
        leading = [(z.store.epoch, z.name) for z in self.zookeepers.values() if z.leads]
        return max(leading)[1] if leading else None
