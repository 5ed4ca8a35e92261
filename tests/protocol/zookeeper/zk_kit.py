"""Brokers of ZooKeeper mode in which nothing costs anything."""

from sim.ids import TopicPartition
from sim.protocol.events import RequestReceived
from sim.protocol.zk_mode.broker_types import IsrUpdate, ZkBrokerConfig
from sim.protocol.zk_mode.controller_types import ZkControllerConfig
from sim.protocol.zookeeper.session import SessionConfig
from sim.rng import Streams
from sim.studies.loop import Loop
from sim.studies.zk_cluster import ZkCluster, tree_of
from sim.studies.zookeeper import Ensemble

SECOND = 1_000_000
ORDERS = TopicPartition("orders", 0)
ROUND = {"orders": ((1, 2, 3), (2, 3, 1), (3, 1, 2))}


class Cluster(ZkCluster):
    def __init__(
        self, assignments=None, *, brokers=3, servers=3, session_s=6, seed=1, resumes=False,
        breaks_off=False, **controller,
    ):  # fmt: skip
        loop = Loop(100)
        tree = tree_of(ROUND if assignments is None else assignments)
        ensemble = Ensemble(loop, 3, Streams(1), fsync_us=500, tree=tree)
        session = SessionConfig(session_s * SECOND)
        config = ZkBrokerConfig(
            session, ZkControllerConfig(**controller), resumes=resumes, breaks_off=breaks_off
        )
        super().__init__(loop, ensemble, brokers, config)
        self.run(3)

    @classmethod
    def with_spare_controller(cls, **switches):
        """The controller has no replica: its successor has nothing to write when it is gone."""
        controller = cls(**switches).controller().node
        one, other = (n for n in (1, 2, 3) if n != controller)
        found = cls({"orders": ((one, other), (other, one), (one, other))}, **switches)
        assert found.controller().node == controller
        return found

    def forgetful(self):
        """Plant a defect: a controller that lost its session goes on acting (KAFKA-4447)."""
        for broker in self.brokers.values():
            broker.controller.resign = lambda: None
        return self

    def run(self, seconds):
        self.loop.run(self.loop.now + int(seconds * SECOND))

    def run_until(self, holds):
        self.loop.run(self.loop.now + 20 * SECOND, stop=holds)
        assert holds()

    def kill(self, node):
        self.loop.kill(node)

    def isolate(self, node, others=None):
        for other in self.loop.processes if others is None else others:
            if other != node:
                self.loop.cut(node, other)

    def wish(self, broker, in_sync, partition=ORDERS):
        self.loop.processes[broker].deliver("broker", IsrUpdate(partition, in_sync))

    def send(self, request):
        """A request to the controller; the list receives its answer."""
        replies = []
        process = self.loop.processes[self.controller().node]
        perform = process.perform
        process.perform = lambda machine, effects, lane=0: (
            replies.extend(e.response for e in effects if getattr(e, "token", None) == 78),
            perform(machine, effects, lane),
        )
        process.deliver("broker", RequestReceived(78, "admin", request))
        return replies

    def ask(self, request):
        """The controller's answer, within a second."""
        replies = self.send(request)
        self.run(1)
        return replies[-1]

    def of(self, partition=0):
        state = self.state("orders", partition)
        return state.leader, state.leader_epoch, state.in_sync

    def views(self, partition=0):
        """Who each running broker believes to lead: by its own replica, and by its metadata."""
        key = TopicPartition("orders", partition)
        return [
            (self.brokers[n].replicas[key].state.leader, self.brokers[n].metadata[key].state.leader)
            for n in self.running()
        ]

    def others(self, *nodes):
        return [n for n in self.brokers if n not in nodes]
