"""Between ZooKeeper's clients and servers, and inside the ensemble.

Watches need words from the server: a client keeps one :class:`ZkPingRequest` open, which the server
answers when it has something to tell, or after a third of the session's timeout. Kafka's client
pings at the same rate; there the notice of a watch comes by itself, at the same instant.

Source: ``zookeeper.jute`` (3.8); the inside of the ensemble is this model's own.
"""

from dataclasses import dataclass
from typing import Final

from sim.ids import NO_LEADER, LeaderEpoch, NodeId
from sim.protocol.messages.base import HEADER_BYTES, Request, Response
from sim.protocol.zookeeper.tree import (
    NO_SESSION,
    Change,
    Outcome,
    ReadOp,
    SessionId,
    Tree,
    WriteOp,
    ZkCode,
    Zxid,
)
from sim.units import Bytes, Micros

NODE_BYTES: Bytes = 100
"""Path and data of a partition's node, about."""


@dataclass(frozen=True, slots=True)
class ZkConnectRequest(Request):
    """A client comes, or comes back, to a server; ``last_zxid``: it has seen as much."""

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
    """One operation of a session; ``watch``: tell of the next change of what is read."""

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
    """The outcome, and the last transaction in the server's tree."""

    outcome: Final[Outcome]
    zxid: Final[Zxid]

    def __init__(self, outcome: Outcome, zxid: Zxid) -> None:
        self.outcome = outcome
        self.zxid = zxid

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        return HEADER_BYTES + NODE_BYTES + 20 * len(self.outcome.children)


@dataclass(frozen=True, slots=True)
class ZkPingRequest(Request):
    """The session lives; waits for watches at the server."""

    session: SessionId
    max_wait_us: Micros


@dataclass(frozen=True, slots=True)
class ZkPingResponse(Response):
    """Watches that were triggered, in order."""

    code: ZkCode
    zxid: Zxid
    events: tuple[tuple[str, Change], ...] = ()


@dataclass(frozen=True, slots=True)
class Transaction:
    """One write in the ensemble's order; its origin answers the client once it is committed."""

    zxid: Zxid
    session: SessionId
    op: WriteOp
    origin: NodeId
    """The server that the client asked."""
    token: int
    """That server's own number for the client's request; -1: nobody waits."""


@dataclass(frozen=True, slots=True)
class ZkVoteRequest(Request):
    """A server without a leader asks for votes in an epoch."""

    candidate: NodeId
    epoch: LeaderEpoch
    history_epoch: LeaderEpoch
    """Of the last leader whose whole history the candidate took."""
    last_zxid: Zxid
    preliminary: bool
    """Only asked whether the vote would be given; no epoch begins by it."""


@dataclass(frozen=True, slots=True)
class ZkVoteResponse(Response):
    """The vote, and the epoch of who votes."""

    granted: bool
    epoch: LeaderEpoch


@dataclass(frozen=True, slots=True)
class ZkReplicateRequest(Request):
    """A leader's transactions behind ``previous``, and how far they are committed; also its ping.

    ``tree``: the state at ``previous``, for a server that the leader's log does not reach.
    """

    leader: NodeId
    epoch: LeaderEpoch
    previous: Zxid
    transactions: tuple[Transaction, ...]
    committed: Zxid
    tree: Tree | None = None

    @property
    def size_bytes(self) -> Bytes:
        """Bytes on the wire."""
        stored = 0 if self.tree is None else len(self.tree.nodes)
        return HEADER_BYTES + NODE_BYTES * (len(self.transactions) + stored)


@dataclass(frozen=True, slots=True)
class ZkReplicateResponse(Response):
    """How far the follower's log agrees with the leader's, on its disk; and whom it heard of.

    Not accepted: ``last_zxid`` is what it knows to be committed.
    """

    epoch: LeaderEpoch
    accepted: bool
    last_zxid: Zxid
    sessions: tuple[SessionId, ...] = ()
    """Sessions that this follower heard of since its last answer."""


@dataclass(frozen=True, slots=True)
class ZkForwardRequest(Request):
    """A follower hands a client's write to the leader."""

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
    """Whether it is the leader that was asked; the outcome comes with the transaction."""

    accepted: bool
    leader: NodeId = NO_LEADER


@dataclass(frozen=True, slots=True)
class ZkReviveRequest(Request):
    """A follower asks the leader whether a client that moved here still has its session."""

    session: SessionId


@dataclass(frozen=True, slots=True)
class ZkReviveResponse(Response):
    """Whether the session is open; ``accepted`` is false if not the leader was asked."""

    accepted: bool
    open: bool = False
