"""Brokers of ZooKeeper mode on the studies' host: the control plane without replicas' data."""

from collections.abc import Mapping

from sim.ids import NodeId, TopicPartition
from sim.protocol.zk_mode.broker import ZkBroker
from sim.protocol.zk_mode.broker_types import (
    ZK_BROKER_REQUESTS,
    LeaderAndIsrApplied,
    ShutDownGranted,
    ShutdownRequested,
    ZkBrokerConfig,
)
from sim.protocol.zk_mode.controller_types import ControllerElected, ControllerLoaded
from sim.protocol.zk_mode.znodes import (
    ROOTS,
    TOPICS,
    LeaderIsr,
    TopicAssignment,
    state_path,
    topic_path,
)
from sim.protocol.zookeeper.tree import NO_SESSION, Tree, Znode
from sim.studies.loop import FREE, Costs, Loop, Performer, Process
from sim.studies.zookeeper import Ensemble
from sim.units import Micros

Assignments = Mapping[str, tuple[tuple[NodeId, ...], ...]]
"""Replicas of each partition of each topic."""


def tree_of(assignments: Assignments) -> Tree:
    """ZooKeeper's nodes of a healthy cluster: every first replica leads, all are in sync."""
    tree = Tree()
    for path in ROOTS:
        tree.nodes[path] = Znode(None, 0, 1, 1, NO_SESSION)
        tree.children[path] = {}
    states: dict[tuple[NodeId, ...], LeaderIsr] = {}
    nodes: dict[tuple[NodeId, ...], Znode] = {}
    names = tree.children[TOPICS]
    for topic, replicas in assignments.items():
        names[topic] = None
        tree.nodes[topic_path(topic)] = Znode(TopicAssignment(replicas), 0, 1, 1, NO_SESSION)
        for number, brokers in enumerate(replicas):
            if brokers not in nodes:
                states[brokers] = LeaderIsr(brokers[0], 0, brokers, 0)
                nodes[brokers] = Znode(states[brokers], 0, 1, 1, NO_SESSION)
            tree.nodes[state_path(TopicPartition(topic, number))] = nodes[brokers]
    tree.zxid = 1
    return tree


class ZkCluster:
    """An ensemble and brokers numbered from 1."""

    def __init__(
        self,
        loop: Loop,
        ensemble: Ensemble,
        brokers: int,
        config: ZkBrokerConfig,
        *,
        costs: Costs = FREE,
    ) -> None:
        self.loop = loop
        self.ensemble = ensemble
        self.config = config
        self.brokers: dict[NodeId, ZkBroker] = {}
        self.granted: dict[NodeId, Micros] = {}
        """Ends of controlled shutdowns."""
        self.applied_at: dict[NodeId, Micros] = {}
        """Time at which each broker last applied role changes."""
        self.elected_at: Micros = -1
        """Time at which a broker last became the controller,"""
        self.loaded_at: Micros = -1
        """and when it had read everything."""
        performers: dict[type, Performer] = {
            LeaderAndIsrApplied: self._applied,
            ShutDownGranted: self._granted,
            ControllerElected: self._elected,
            ControllerLoaded: self._loaded,
        }
        for node in range(1, brokers + 1):
            process = loop.add(node, costs)
            process.routes = dict.fromkeys(ZK_BROKER_REQUESTS, "broker")
            process.performers = dict(performers)
            self.start(node)

    def start(self, node: NodeId) -> None:
        """Starts a broker process."""
        broker = self.brokers[node] = ZkBroker(node, self.ensemble.members, self.config)
        process = self.loop.processes[node]
        process.start({"broker": broker})
        process.perform("broker", broker.begin(self.loop.now))

    def stop(self, node: NodeId) -> None:
        """Begins a controlled shutdown."""
        self.loop.processes[node].deliver("broker", ShutdownRequested())

    def running(self) -> list[NodeId]:
        """Brokers whose process runs, by number."""
        return [node for node in self.brokers if self.loop.processes[node].running]

    def controller(self) -> ZkBroker | None:
        """The broker that acts as controller; the newest, if two do."""
        active = [self.brokers[n] for n in self.running() if self.brokers[n].is_controller]
        return max(active, key=lambda b: b.controller.epoch, default=None)

    def state(self, topic: str, partition: int) -> LeaderIsr:
        """State of a partition at the server of the ensemble that is furthest ahead."""
        path = state_path(TopicPartition(topic, partition))
        tree = max((s.tree for s in self.ensemble.stores.values()), key=lambda t: t.zxid)
        data = tree.nodes[path].data
        assert isinstance(data, LeaderIsr)
        return data

    def _applied(self, process: Process, machine: str, effect: object, at: Micros) -> None:  # noqa: ARG002 - a performer's form
        self.applied_at[process.node] = at

    def _elected(self, process: Process, machine: str, effect: object, at: Micros) -> None:  # noqa: ARG002 - a performer's form
        self.elected_at = at

    def _loaded(self, process: Process, machine: str, effect: object, at: Micros) -> None:  # noqa: ARG002 - a performer's form
        self.loaded_at = at

    def _granted(self, process: Process, machine: str, effect: object, at: Micros) -> None:  # noqa: ARG002 - a performer's form
        self.granted[process.node] = at
