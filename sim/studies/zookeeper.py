"""An ensemble of ZooKeeper servers on the studies' host."""

from sim.ids import NodeId
from sim.protocol import events as ev
from sim.protocol.zookeeper.effects import (
    CloseConnection,
    ForceTransactionLog,
    Notify,
    SessionConnected,
)
from sim.protocol.zookeeper.ensemble import DEFAULTS, ZkConfig
from sim.protocol.zookeeper.server import ZK_REQUESTS, ZooKeeperServer
from sim.protocol.zookeeper.store import ZkStore
from sim.protocol.zookeeper.tree import SessionId, Tree
from sim.rng import Streams
from sim.studies.loop import FREE, Costs, Loop, Process
from sim.units import Micros

FIRST_SERVER_ID: NodeId = 5001
"""ZooKeeper servers are numbered from here."""


class Ensemble:
    """Servers with stores that outlive them."""

    def __init__(
        self,
        loop: Loop,
        size: int,
        streams: Streams,
        *,
        fsync_us: Micros = 0,
        costs: Costs = FREE,
        tree: Tree | None = None,
        config: ZkConfig = DEFAULTS,
        kind: type[ZooKeeperServer] = ZooKeeperServer,
    ) -> None:
        """Starts the servers.

        Args:
            loop: The host.
            size: Number of servers, 2n+1, of which n may be lost.
            streams: Random streams of elections.
            fsync_us: Time of forcing the transaction log.
            costs: Costs of a server's thread.
            tree: State of every server at the start; the nodes are shared.
            config: Settings.
            kind: Class of servers; tests plant defects here.
        """
        self._kind = kind
        self.loop = loop
        self.members = tuple(FIRST_SERVER_ID + i for i in range(size))
        self.fsync_us = fsync_us
        self.servers: dict[NodeId, ZooKeeperServer] = {}
        self._streams = streams
        self._config = config
        self._forced_at: dict[NodeId, Micros] = {}
        self._clients: dict[tuple[NodeId, SessionId], NodeId] = {}
        """Process whose connection a session has at a server."""
        self.stores = {m: ZkStore(None if tree is None else tree.copy()) for m in self.members}
        for member in self.members:
            process = loop.add(member, costs)
            process.routes = dict.fromkeys(ZK_REQUESTS, "server")
            process.performers |= {
                ForceTransactionLog: self._force,
                SessionConnected: self._bind,
                Notify: self._notify,
                CloseConnection: self._close,
            }
            self.start(member)

    def start(self, member: NodeId) -> None:
        """Starts a server on its store."""
        unit = self._streams.named(f"zookeeper/{member}").unit
        server = self.servers[member] = self._kind(
            member, self.members, self.stores[member], unit, self._config
        )
        process = self.loop.processes[member]
        process.start({"server": server})
        process.perform("server", server.begin(self.loop.now))

    def leader(self) -> ZooKeeperServer | None:
        """The leader that serves; ``None``: no majority, or an election."""
        for member in self.members:
            server = self.servers[member]
            if self.loop.processes[member].running and server.serving and server.leader == member:
                return server
        return None

    def _force(self, process: Process, machine: str, effect: object, at: Micros) -> None:
        assert isinstance(effect, ForceTransactionLog)
        done = max(at, self._forced_at.get(process.node, 0)) + self.fsync_us
        self._forced_at[process.node] = done
        self.loop.call_at(
            done, self._forced, process, process.incarnation, machine, ev.Flushed(effect.token)
        )

    def _bind(self, process: Process, machine: str, effect: object, at: Micros) -> None:  # noqa: ARG002 - a performer's form
        assert isinstance(effect, SessionConnected)
        client = self.loop.client_of(effect.token)
        if client is not None:
            self._clients[process.node, effect.session] = client

    def _notify(self, process: Process, machine: str, effect: object, at: Micros) -> None:  # noqa: ARG002 - a performer's form
        assert isinstance(effect, Notify)
        client = self._clients.get((process.node, effect.session))
        if client is not None:
            self.loop.notify(process.node, client, effect.notification, at)

    def _close(self, process: Process, machine: str, effect: object, at: Micros) -> None:  # noqa: ARG002 - a performer's form
        assert isinstance(effect, CloseConnection)
        client = self._clients.pop((process.node, effect.session), None)
        if client is not None:
            self.loop.close(process.node, client, at)

    @staticmethod
    def _forced(process: Process, incarnation: int, machine: str, event: ev.Flushed) -> None:
        if process.running and process.incarnation == incarnation:
            process.deliver(machine, event)
