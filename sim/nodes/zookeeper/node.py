"""A ZooKeeper server's process on its own host.

Approximate: its disk costs the time of forcing the transaction log, and holds no bytes; the
server's state outlives the process as a value, without writes that were not forced before a power
loss.

Source: ``org.apache.zookeeper.server.quorum.QuorumPeerMain`` (3.8).
"""

from sim.ids import NodeId, server_name
from sim.nodes.process.call import Call
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.process.dispatcher import TRY_AGAIN
from sim.nodes.process.port import Port
from sim.nodes.process.process import World
from sim.nodes.process.server import ServerNode
from sim.nodes.zookeeper.settings import ZooKeeperSettings
from sim.protocol.events import Flushed
from sim.protocol.messages.base import NOTIFICATION
from sim.protocol.zk_mode.trace_rows import TracingServer, ZkTraceRows
from sim.protocol.zookeeper.effects import (
    CloseConnection,
    ForceTransactionLog,
    Notify,
    SessionConnected,
    TreeChanged,
)
from sim.protocol.zookeeper.ensemble import ZkRole
from sim.protocol.zookeeper.messages import NODE_BYTES, ZkPingRequest, ZkRequest
from sim.protocol.zookeeper.server import ZK_REQUESTS, SessionDisconnected, ZooKeeperServer
from sim.protocol.zookeeper.store import ZkStore
from sim.protocol.zookeeper.tree import SessionId
from sim.substrate.host import Host
from sim.substrate.network import Connection, Message
from sim.trace.rows.cluster import Quorum
from sim.units import Micros

_OF_SESSIONS = (ZkRequest, ZkPingRequest)


class ZooKeeperNode(ServerNode):
    """One server of the ensemble; its forced state outlives the process.

    Args:
        node_id: Its number.
        host: Where it runs.
        world: The others.
        cpu: What requests cost.
        settings: Settings.
        facts: Receives rows of commits, once for all servers.
    """

    def __init__(
        self,
        node_id: NodeId,
        host: Host,
        world: World,
        cpu: CpuSpec,
        settings: ZooKeeperSettings,
        facts: ZkTraceRows,
    ) -> None:
        super().__init__(node_id, server_name(node_id), host, world, cpu)
        self.settings = settings
        self.facts = facts
        self.store = ZkStore()
        self._server: ZooKeeperServer | None = None
        self._last_role: tuple[ZkRole, int, NodeId] | None = None
        self._connections: dict[SessionId, Connection] = {}
        self._sessions: dict[Connection, SessionId] = {}
        self.performers |= {
            ForceTransactionLog: self._force,
            TreeChanged: self._write_rows,
            SessionConnected: self._bind,
            Notify: self._notify,
            CloseConnection: self._close,
        }

    @property
    def leads(self) -> bool:
        """True if it leads the ensemble and serves, as far as it knows."""
        server = self._server
        if not self.running or server is None:
            return False
        return server.serving and server.role is ZkRole.LEADING

    # -- life -------------------------------------------------------------------------------------

    def boot(self) -> None:
        """Begins leader election."""
        unit = self.streams.named(f"zookeeper/{self.name}").unit
        settings = self.settings
        server = self._server = TracingServer(
            self.node_id, settings.members, self.store, unit, settings.config
        )
        self._last_role = None
        port = self._port = self.add_machine("zookeeper", server)
        self.route(port, *ZK_REQUESTS)
        self.perform(port, server.begin(self.now()))
        self.note_state("running")

    def lose_power(self) -> None:
        """Loses power: writes that were not forced are lost."""
        super().lose_power()
        self.store.lose_unforced()

    def _forget(self) -> None:
        super()._forget()
        self._connections = {}
        self._sessions = {}

    # -- events -----------------------------------------------------------------------------------

    def _receive_message(
        self, link: Connection, message: Message, correlation: int, sent_us: Micros
    ) -> None:
        """Takes a session's requests in as they come; one that waits does not hold up the next."""
        if isinstance(message, _OF_SESSIONS) and link in self._links:
            self._queue(Call(link, message, correlation, sent_us, self.kernel.time))
        else:
            super()._receive_message(link, message, correlation, sent_us)

    def _connection_closed(self, link: Connection) -> None:
        super()._connection_closed(link)
        session = self._sessions.pop(link, None)
        if session is not None:
            del self._connections[session]
            self.call_at(self.kernel.time, self._disconnected, session)

    def _disconnected(self, session: SessionId) -> None:
        if session not in self._connections:
            self.deliver(self._port, SessionDisconnected(session))

    def deliver(self, port: Port, event: object) -> None:
        """Lets the server handle an event, and notes changes of its role."""
        super().deliver(port, event)
        server = self._server
        assert server is not None, "it has booted"
        role = (server.role, self.store.epoch, server.leader)
        if role != self._last_role:
            self._last_role = role
            self._note_role(port, server)

    def _note_role(self, port: Port, server: ZooKeeperServer) -> None:
        store = self.store
        row = Quorum.row(
            self.node_id,
            role="leader" if server.role is ZkRole.LEADING else str(server.role),
            epoch=store.epoch,
            leader=server.leader,
            voted_for=store.voted_for,
            log_end_offset=store.last_zxid,
            high_watermark=store.tree.zxid,
        )
        self.perform(port, [row])

    # -- effects ----------------------------------------------------------------------------------

    def _force(self, port: Port, effect: ForceTransactionLog) -> Micros | None:
        disk = self.host.disks[0]
        if disk.stalled:
            disk.refuse()
            return TRY_AGAIN
        done = disk.fsync(NODE_BYTES, "zookeeper-log")
        self.call_at(done, self.deliver, port, Flushed(effect.token))
        return None

    def _write_rows(self, port: Port, effect: TreeChanged) -> None:
        self.perform(port, self.facts.take(effect))

    def _bind(self, port: Port, effect: SessionConnected) -> None:  # noqa: ARG002
        """Gives the connection of a request to its session; one that has closed is lost at once."""
        session, link = effect.session, self.connection_of(effect.token)
        former = self._connections.pop(session, None)
        if former is not None:
            del self._sessions[former]
            if former is not link:
                self.drop(former)
        if link is None or link not in self._links:
            self.call_at(self.kernel.time, self._disconnected, session)
            return
        self._connections[session] = link
        self._sessions[link] = session

    def _notify(self, port: Port, effect: Notify) -> None:  # noqa: ARG002
        """Sends a watch event behind what has been sent on the session's connection before."""
        link = self._connections.get(effect.session)
        if link is None:
            return
        now = self._links[link].used_us = self.kernel.time
        transfer = self.cpu.transfer_us(effect.notification.size_bytes, link.tls)
        written = self.host.network_threads.take(now, transfer)
        link.to_client.send(effect.notification, NOTIFICATION, written)

    def _close(self, port: Port, effect: CloseConnection) -> None:  # noqa: ARG002
        link = self._connections.get(effect.session)
        if link is not None:
            self.drop(link)
