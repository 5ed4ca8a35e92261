"""A ZooKeeper server's client side: sessions, reads, writes, watches.

Reads are answered from the server's own tree, which may be behind; a session's requests are
answered in order, so a read after a write of the same session sees it. Writes go through the leader
and are answered by the server that received them, once it has applied them. Watches fire once: the
event leaves as the change is applied, on the session's connection, before a response that shows it.
A connection has the watches that were left on it, and they go with it.

Approximate: watches left at another server are not carried over; the client takes each of them as
triggered when it has moved.

Source: ``org.apache.zookeeper.server.{FinalRequestProcessor,NIOServerCnxn,WatchManager}``,
``server.quorum.{CommitProcessor,LearnerHandler}`` (3.8).
"""

from collections import deque
from dataclasses import dataclass
from typing import assert_never

from sim.ids import NO_LEADER, NodeId
from sim.protocol import events as ev
from sim.protocol.messages.base import Request, Response
from sim.protocol.zookeeper.effects import CloseConnection, Notify, SessionConnected, ZkEffect
from sim.protocol.zookeeper.ensemble import EnsembleMember, ZkRole
from sim.protocol.zookeeper.messages import (
    ZkConnectRequest,
    ZkConnectResponse,
    ZkForwardRequest,
    ZkForwardResponse,
    ZkPingRequest,
    ZkPingResponse,
    ZkReplicateRequest,
    ZkReplicateResponse,
    ZkRequest,
    ZkResponse,
    ZkReviveRequest,
    ZkReviveResponse,
    ZkTransaction,
    ZkVoteRequest,
    ZkVoteResponse,
    ZkWatchNotification,
)
from sim.protocol.zookeeper.tree import (
    NO_SESSION,
    CloseSession,
    Create,
    Delete,
    Multi,
    OpenSession,
    SessionId,
    SetData,
    Watches,
    WatchEvent,
    WriteOp,
    ZkCode,
    ZkOutcome,
)

_WRITES = (Create, SetData, Delete, Multi, CloseSession)

ZK_REQUESTS: tuple[type[Request], ...] = (
    ZkConnectRequest,
    ZkRequest,
    ZkPingRequest,
    ZkVoteRequest,
    ZkReplicateRequest,
    ZkForwardRequest,
    ZkReviveRequest,
)
"""Requests that a server answers."""


@dataclass(frozen=True, slots=True)
class SessionDisconnected:
    """The connection of a session has ended, and there is no other one to this server."""

    session: SessionId


ZkEvent = (
    ev.RequestReceived
    | ev.ResponseReceived
    | ev.RequestFailed
    | ev.TimerFired
    | ev.Flushed
    | SessionDisconnected
)
"""Events of a server. Begins with :meth:`ZooKeeperServer.begin`."""


class ZooKeeperServer(EnsembleMember):
    """One server of the ensemble. Its store outlives the process."""

    def begin(self, now: int) -> list[ZkEffect]:
        """Starts the process: looks for a leader."""
        self._now = now
        out = self._out = []
        self._clients()
        self._look_for_leader()
        return out

    def _clients(self) -> None:
        self._waiting: dict[int, int] = {}
        """Open writes of clients: this server's number for each, and the request's token."""
        self._queues: dict[SessionId, deque[tuple[int, ZkRequest | ZkPingRequest]]] = {}
        """Queues of sessions whose first request is an open write: tokens and requests."""
        self._number = 0
        self._connections: dict[SessionId, None] = {}
        """Sessions with a connection to this server."""
        self._reviving: dict[int, tuple[int, SessionId]] = {}
        self._watches = Watches()

    def handle(self, event: ZkEvent, now: int) -> list[ZkEffect]:
        """Handles an event; returns effects in order."""
        self._now = now
        out = self._out = []
        match event:
            case ev.RequestReceived():
                self._on_request(event.token, event.request)
            case ev.ResponseReceived():
                sent = self._open.pop(event.correlation, None)
                if sent is not None:
                    self._on_response(event.sender, event.correlation, sent[1], event.response)
            case ev.RequestFailed():
                sent = self._open.pop(event.correlation, None)
                if sent is not None:
                    self._on_failure(event.sender, event.correlation, sent[1])
            case ev.TimerFired():
                self._on_timer(event.name)
            case ev.Flushed():
                self._on_forced(event.token)
            case SessionDisconnected():
                self._connections.pop(event.session, None)
                self._watches.forget(event.session)
            case _:
                assert_never(event)
        return out

    # -- routing ----------------------------------------------------------------------------------

    def _on_request(self, token: int, request: Request) -> None:
        match request:
            case ZkRequest():
                self._on_client(token, request)
            case ZkPingRequest():
                self._on_ping(token, request)
            case ZkReplicateRequest():
                self._on_replicate(token, request)
            case ZkForwardRequest():
                self._on_forward(token, request)
            case ZkConnectRequest():
                self._on_connect(token, request)
            case ZkReviveRequest():
                leads = self.role is ZkRole.LEADING and self.serving
                is_open = leads and self._is_open(request.session)
                self._reply(token, ZkReviveResponse(leads, is_open))
            case ZkVoteRequest():
                self._on_vote_request(token, request)
            case _:
                message = f"not a request to ZooKeeper: {request}"
                raise AssertionError(message)

    def _on_response(
        self, sender: NodeId, correlation: int, request: Request, response: Response
    ) -> None:
        if isinstance(request, ZkReplicateRequest) and isinstance(response, ZkReplicateResponse):
            self._on_replicated(sender, request, response)
        elif isinstance(request, ZkForwardRequest) and isinstance(response, ZkForwardResponse):
            if not response.accepted:
                self._abandon(request.token)
        elif isinstance(request, ZkReviveRequest) and isinstance(response, ZkReviveResponse):
            token, session = self._reviving.pop(correlation, (-1, NO_SESSION))
            if response.accepted and token >= 0:
                self._connected(token, session, is_open=response.open)
            elif token >= 0:
                self._reply(token, ZkConnectResponse(ZkCode.CONNECTION_LOSS), close=True)
        elif isinstance(request, ZkVoteRequest) and isinstance(response, ZkVoteResponse):
            self._on_vote(sender, request, response)

    def _on_failure(self, sender: NodeId, correlation: int, request: Request) -> None:
        if isinstance(request, ZkForwardRequest):
            self._abandon(request.token)
        elif isinstance(request, ZkReviveRequest):
            token, _ = self._reviving.pop(correlation, (-1, NO_SESSION))
            if token >= 0:
                self._reply(token, ZkConnectResponse(ZkCode.CONNECTION_LOSS), close=True)
        elif isinstance(request, ZkReplicateRequest) and self.role is ZkRole.LEADING:
            follower = self._followers.get(sender)
            if follower is not None and request.epoch == self.store.epoch:
                follower.in_flight = False  # the next ping tries again

    def _on_timer(self, name: str) -> None:
        if name == "election":
            if self.role is ZkRole.LOOKING:
                self._request_votes()
            elif self.role is ZkRole.FOLLOWING:
                self._look_for_leader()
        elif name == "ping":
            if self.role is ZkRole.LEADING:
                self._ping_followers()
        else:
            assert name == "sessions", f"not a timer of ZooKeeper: {name}"
            if self.role is ZkRole.LEADING and self.serving:
                self._expire_sessions()

    # -- connections ------------------------------------------------------------------------------

    def _on_connect(self, token: int, request: ZkConnectRequest) -> None:
        """Connects a client; one that has seen later transactions is refused."""
        if not self.serving or request.last_zxid > self.store.tree.zxid:
            self._reply(token, ZkConnectResponse(ZkCode.CONNECTION_LOSS), close=True)
        elif request.session == NO_SESSION:
            self._submit(token, NO_SESSION, OpenSession(request.timeout_us))
        elif self.role is ZkRole.LEADING:
            self._connected(token, request.session, is_open=self._is_open(request.session))
        else:
            self._send(self.leader, ZkReviveRequest(request.session), self.config.silence_us)
            self._reviving[self._correlation] = (token, request.session)

    def _is_open(self, session: SessionId) -> bool:
        return session in self.store.tree.sessions and self._expiries.get(session, -1) >= 0

    def _connected(self, token: int, session: SessionId, *, is_open: bool) -> None:
        if not is_open:
            self._reply(token, ZkConnectResponse(ZkCode.SESSION_EXPIRED))
            return
        self._watches.forget(session)
        self._touch(session)
        self._bind(token, session)
        self._reply(token, ZkConnectResponse(ZkCode.OK, session))

    def _bind(self, token: int, session: SessionId) -> None:
        """Makes the connection of a request the session's."""
        self._connections[session] = None
        self._out.append(SessionConnected(token, session))

    def _lost_leader(self) -> None:
        """Closes every client's connection; open writes may or may not be committed."""
        waiting, queues, connections = self._waiting, self._queues, self._connections
        answered: dict[int, None] = {}
        for queue in queues.values():
            for token, request in queue:
                answered[token] = None
                self._refuse(token, request, ZkCode.CONNECTION_LOSS)
        for token in waiting.values():
            if token not in answered:
                self._reply(token, ZkConnectResponse(ZkCode.CONNECTION_LOSS), close=True)
        for token, _ in self._reviving.values():
            self._reply(token, ZkConnectResponse(ZkCode.CONNECTION_LOSS), close=True)
        self._out.extend(CloseConnection(session) for session in connections)
        self._clients()

    def _refuse(self, token: int, request: ZkRequest | ZkPingRequest, code: ZkCode) -> None:
        """Answers a session's request; CONNECTION_LOSS: closes its connection."""
        zxid, close = self.store.tree.zxid, code is ZkCode.CONNECTION_LOSS
        if isinstance(request, ZkPingRequest):
            self._reply(token, ZkPingResponse(code, zxid), close=close)
        else:
            self._reply(token, ZkResponse(ZkOutcome(code), zxid), close=close)

    # -- operations -------------------------------------------------------------------------------

    def _on_client(self, token: int, request: ZkRequest) -> None:
        if not self._admits(token, request):
            return
        session, op = request.session, request.op
        if isinstance(op, _WRITES):
            self._queues.setdefault(session, deque()).append((token, request))
            self._submit(token, session, op)
        elif session in self._queues:
            self._queues[session].append((token, request))
        else:
            self._read(token, request)

    def _on_ping(self, token: int, request: ZkPingRequest) -> None:
        """Answers a ping behind the session's open writes, as ``CommitProcessor`` does."""
        if not self._admits(token, request):
            return
        if request.session in self._queues:
            self._queues[request.session].append((token, request))
        else:
            self._reply(token, ZkPingResponse(ZkCode.OK, self.store.tree.zxid))

    def _admits(self, token: int, request: ZkRequest | ZkPingRequest) -> bool:
        """True if the request's session is in contact by it; answers the request otherwise."""
        if not self.serving:
            self._refuse(token, request, ZkCode.CONNECTION_LOSS)
            return False
        if request.session not in self.store.tree.sessions:
            self._refuse(token, request, ZkCode.SESSION_EXPIRED)
            return False
        self._touch(request.session)
        return True

    def _read(self, token: int, request: ZkRequest) -> None:
        op = request.op
        assert not isinstance(op, Create | SetData | Delete | Multi | OpenSession | CloseSession)
        outcome = self.store.tree.read(op)
        if request.watch:
            self._watches.leave(request.session, op, outcome)
        self._reply(token, ZkResponse(outcome, self.store.tree.zxid))

    def _submit(self, token: int, session: SessionId, op: WriteOp) -> None:
        """Forwards a client's write to the leader, which may be this server."""
        self._number += 1
        self._waiting[self._number] = token
        if self.role is ZkRole.LEADING:
            self._propose(session, op, self.node, self._number)
        else:
            request = ZkForwardRequest(self.node, session, op, self._number)
            self._send(self.leader, request, self.config.silence_us)

    def _on_forward(self, token: int, request: ZkForwardRequest) -> None:
        leads = self.role is ZkRole.LEADING and self.serving
        self._reply(token, ZkForwardResponse(leads, self.leader if leads else NO_LEADER))
        if leads:
            self._propose(request.session, request.op, request.origin, request.token)

    def _abandon(self, number: int) -> None:
        """A write could not be forwarded: closes its client's connection."""
        token = self._waiting.pop(number, None)
        if token is None:
            return
        for session, queue in self._queues.items():
            tokens = [waiting for waiting, _ in queue]
            if token in tokens:
                del self._queues[session]
                self._waiting = {n: t for n, t in self._waiting.items() if t not in tokens}
                for waiting, request in queue:
                    self._refuse(waiting, request, ZkCode.CONNECTION_LOSS)
                return
        self._reply(token, ZkConnectResponse(ZkCode.CONNECTION_LOSS), close=True)

    def _applied(
        self, transaction: ZkTransaction, outcome: ZkOutcome, changes: list[tuple[str, WatchEvent]]
    ) -> None:
        for path, change in changes:
            for session in self._watches.triggered(path, change):
                self._out.append(Notify(session, ZkWatchNotification(path, change)))
        if transaction.origin == self.node:
            token = self._waiting.pop(transaction.token, None)
            if token is not None:
                self._answer(token, transaction.session, outcome)
        op = transaction.op
        if isinstance(op, CloseSession):
            self._end_session(op.session)

    def _answer(self, token: int, session: SessionId, outcome: ZkOutcome) -> None:
        """Answers a write, and the reads of its session that waited for it."""
        zxid = self.store.tree.zxid
        queue = self._queues.get(session)
        if queue is None or queue[0][0] != token:
            if outcome.session != NO_SESSION:
                self._bind(token, outcome.session)
            self._reply(token, ZkConnectResponse(outcome.code, outcome.session))
            return
        queue.popleft()
        self._reply(token, ZkResponse(outcome, zxid))
        while queue and not _is_write(queue[0][1]):
            waiting, request = queue.popleft()
            if isinstance(request, ZkPingRequest):
                self._reply(waiting, ZkPingResponse(ZkCode.OK, zxid))
            else:
                self._read(waiting, request)
        if not queue:
            del self._queues[session]

    def _end_session(self, session: SessionId) -> None:
        """Closes the connection of a session that has ended, behind the response to its request.

        Source: ``FinalRequestProcessor.processRequest``, ``ServerCnxn.sendCloseSession``.
        """
        self._watches.forget(session)
        if session in self._connections:
            del self._connections[session]
            self._out.append(CloseConnection(session))


def _is_write(request: ZkRequest | ZkPingRequest) -> bool:
    return isinstance(request, ZkRequest) and isinstance(request.op, _WRITES)
