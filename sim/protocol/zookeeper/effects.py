"""Effects of a ZooKeeper server."""

from dataclasses import dataclass

from sim.protocol import effects as fx
from sim.protocol.zookeeper.messages import ZkWatchNotification
from sim.protocol.zookeeper.tree import SessionId, Znode, Zxid


@dataclass(frozen=True, slots=True)
class ForceTransactionLog:
    """Forces the transaction log to disk; ``Flushed(token)`` follows. No effect waits."""

    token: int


@dataclass(frozen=True, slots=True)
class TreeChanged:
    """Nodes that a transaction changed: each with its new value, ``None`` if it was deleted."""

    zxid: Zxid
    session: SessionId
    nodes: tuple[tuple[str, Znode | None], ...]


@dataclass(frozen=True, slots=True)
class SessionConnected:
    """The connection of an unanswered request is the session's now; a former one is closed.

    Source: ``ServerCnxnFactory.addSession``, ``ZooKeeperServer.processConnectRequest``.
    """

    token: int
    session: SessionId


@dataclass(frozen=True, slots=True)
class Notify:
    """Sends a watch event on the session's connection; lost if there is none any more.

    Source: ``NIOServerCnxn.process``.
    """

    session: SessionId
    notification: ZkWatchNotification


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Closes the session's connection, if it is still open."""

    session: SessionId


ZkEffect = (
    fx.Effect | ForceTransactionLog | TreeChanged | SessionConnected | Notify | CloseConnection
)
"""Union of the effects."""
