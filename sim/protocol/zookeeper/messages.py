"""Messages between ZooKeeper's clients and servers, and within the ensemble.

A server sends watch events unrequested, on the session's connection and in order with its
responses.

Source: ``zookeeper.jute``, ``NIOServerCnxn.process`` (3.8); messages within the ensemble are this
model's own.
"""

from dataclasses import dataclass
from typing import Final

from sim.ids import NO_LEADER, LeaderEpoch, NodeId
from sim.protocol.messages.base import HEADER_BYTES, Notification, Request, Response
from sim.protocol.zookeeper.tree import (
    NO_SESSION,
    ReadOp,
    SessionId,
    Tree,
    WatchEvent,
    WriteOp,
    ZkCode,
    ZkOutcome,
    Zxid,
)
from sim.units import Bytes, Micros

NODE_BYTES: Bytes = 100
"""Approximate bytes of a partition's path and data."""


@dataclass(frozen=True, slots=True)
class ZkConnectRequest(Request):
    """A client connects, or reconnects; ``last_zxid``: last transaction that it has seen."""

    session: SessionId
    timeout_us: Micros
    last_zxid: Zxid


@dataclass(frozen=True, slots=True)
class ZkConnectResponse(Response):
    """SESSION_EXPIRED: there is no such session; CONNECTION_LOSS: try another server."""

    code: ZkCode
    session: SessionId = NO_SESSION


@dataclass(init=False, slots=True, unsafe_hash=True)
class ZkRequest(Request):
    """One operation of a session; ``watch``: leaves a watch on the node that is read."""

    session: Final[SessionId]
    op: Final[ReadOp | WriteOp]
    watch: Final[bool]

    def __init__(self, session: SessionId, op: ReadOp | WriteOp, watch: bool = False) -> None:  # noqa: FBT001, FBT002 - as the client's API has it
        self.session = session
        self.op = op
        self.watch = watch

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + NODE_BYTES


@dataclass(init=False, slots=True, unsafe_hash=True)
class ZkResponse(Response):
    """Outcome, and the last transaction in the server's tree."""

    outcome: Final[ZkOutcome]
    zxid: Final[Zxid]

    def __init__(self, outcome: ZkOutcome, zxid: Zxid) -> None:
        self.outcome = outcome
        self.zxid = zxid

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + NODE_BYTES + 20 * len(self.outcome.children)


@dataclass(frozen=True, slots=True)
class ZkPingRequest(Request):
    """Keeps the session alive; answered in order with the session's operations."""

    session: SessionId


@dataclass(frozen=True, slots=True)
class ZkPingResponse(Response):
    """Shows that the server is there."""

    code: ZkCode
    zxid: Zxid


@dataclass(frozen=True, slots=True)
class ZkWatchNotification(Notification):
    """A watch has fired: the path, and what happened to it. It carries no zxid.

    Source: ``WatcherEvent``, behind a length and a ``ReplyHeader``.
    """

    path: str
    change: WatchEvent

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire: length, header (16), type, state, and the path with its length."""
        return 4 + 16 + 4 + 4 + 4 + len(self.path)


@dataclass(frozen=True, slots=True)
class ZkTransaction:
    """One write in the ensemble's order; its origin answers the client once it is committed."""

    zxid: Zxid
    session: SessionId
    op: WriteOp
    origin: NodeId
    """Server that received the client's request."""
    token: int
    """That server's own number for the client's request; -1: no request waits."""


@dataclass(frozen=True, slots=True)
class ZkVoteRequest(Request):
    """A server without a leader requests a vote in an epoch."""

    candidate: NodeId
    epoch: LeaderEpoch
    history_epoch: LeaderEpoch
    """Epoch of the last leader whose whole history the candidate has."""
    last_zxid: Zxid
    preliminary: bool
    """True in the preliminary round: begins no epoch."""


@dataclass(frozen=True, slots=True)
class ZkVoteResponse(Response):
    """The vote, and the voter's epoch."""

    granted: bool
    epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class ZkReplicateRequest(Request):
    """A leader's transactions after ``previous``, and the commit index; also its ping.

    ``tree``: the state at ``previous``, for a server that the leader's log does not reach.
    """

    leader: NodeId
    epoch: LeaderEpoch
    previous: Zxid
    transactions: tuple[ZkTransaction, ...]
    committed: Zxid
    tree: Tree | None = None

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        stored = 0 if self.tree is None else len(self.tree.nodes)
        return HEADER_BYTES + NODE_BYTES * (len(self.transactions) + stored)


@dataclass(frozen=True, slots=True)
class ZkReplicateResponse(Response):
    """Zxid up to which the follower has the leader's log on disk; and sessions in contact.

    Not accepted: ``last_zxid`` is what it knows to be committed.
    """

    epoch: LeaderEpoch
    accepted: bool
    last_zxid: Zxid
    sessions: tuple[SessionId, ...] = ()
    """Sessions in contact with this follower since its last response."""


@dataclass(frozen=True, slots=True)
class ZkForwardRequest(Request):
    """A follower forwards a client's write to the leader."""

    origin: NodeId
    session: SessionId
    op: WriteOp
    token: int

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + NODE_BYTES


@dataclass(frozen=True, slots=True)
class ZkForwardResponse(Response):
    """True if the receiver is the leader; the outcome comes with the transaction."""

    accepted: bool
    leader: NodeId = NO_LEADER


@dataclass(frozen=True, slots=True)
class ZkReviveRequest(Request):
    """A follower asks the leader if the session of a client that reconnected here still exists."""

    session: SessionId


@dataclass(frozen=True, slots=True)
class ZkReviveResponse(Response):
    """True if the session is open; ``accepted`` is false if the receiver is not the leader."""

    accepted: bool
    open: bool = False
