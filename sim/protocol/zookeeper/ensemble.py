"""A ZooKeeper server among its peers: election, replication, session expiry.

Zab is simplified to its guarantees: a leader is elected by a majority of which none has a longer
history; it brings a majority to its own history before it serves; then every transaction is
committed once a majority has it on disk, in one order; a server without a leader, and a leader
without a majority, serve no clients. Replication is a request from the leader with all transactions
that a follower lacks, one at a time, which makes group commits; it is also the ping.

Approximate: votes are requested after a drawn delay, where FastLeaderElection exchanges
notifications until they agree; a follower is synchronised by missing transactions or by the whole
tree.

Source: ``org.apache.zookeeper.server.quorum.{Leader,Follower,QuorumPeer}``, ``SessionTrackerImpl``,
``ExpiryQueue`` (3.8); Junqueira, Reed, Serafini, "Zab" (DSN 2011).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from sim.ids import NO_LEADER, NodeId
from sim.protocol import effects as fx
from sim.protocol.messages.base import Request, Response
from sim.protocol.zookeeper.effects import ForceTransactionLog, ZkEffect
from sim.protocol.zookeeper.messages import (
    ZkReplicateRequest,
    ZkReplicateResponse,
    ZkTransaction,
    ZkVoteRequest,
    ZkVoteResponse,
)
from sim.protocol.zookeeper.store import ZkStore
from sim.protocol.zookeeper.tree import (
    NO_SESSION,
    CloseSession,
    SessionId,
    WatchEvent,
    WriteOp,
    ZkOutcome,
    Zxid,
)
from sim.units import MS, NEVER, SECOND, Micros

CHANNEL = "ensemble"
"""The connection between servers."""


class ZkRole(StrEnum):
    """Source: ``QuorumPeer.ServerState``."""

    LOOKING = "looking"
    FOLLOWING = "following"
    LEADING = "leading"


@dataclass(frozen=True, slots=True)
class ZkConfig:
    """Settings of a server; those of the file that Kafka's documentation shows."""

    tick_us: Micros = 2 * SECOND
    """``tickTime``: sessions are expired in steps of it."""
    sync_limit: int = 2
    """``syncLimit``: ticks without contact between leader and follower."""
    election_wait_us: Micros = 200 * MS
    """``zookeeper.fastleader.minNotificationInterval``: least wait before votes are requested."""

    @property
    def silence_us(self) -> Micros:
        """Time without contact after which leader and follower give each other up."""
        return self.tick_us * self.sync_limit


DEFAULTS = ZkConfig()


class Follower:
    """The leader's state of one follower."""

    __slots__ = ("heard_at", "in_flight", "known_commit", "match", "previous")

    def __init__(self, previous: Zxid, now: Micros) -> None:
        self.previous = previous
        """Zxid at which the next request begins."""
        self.match: Zxid = -1
        """Zxid up to which the follower has the leader's history on disk."""
        self.in_flight = False
        self.known_commit: Zxid = -1
        """Zxid up to which the follower knows of commits."""
        self.heard_at = now


class EnsembleMember:
    """Roles, replication and the session tracker. The subclass serves clients."""

    def __init__(
        self,
        node: NodeId,
        members: tuple[NodeId, ...],
        store: ZkStore,
        unit: Callable[[], float],
        config: ZkConfig = DEFAULTS,
    ) -> None:
        self.node = node
        self.members = members
        self.store = store
        self.config = config
        self.role = ZkRole.LOOKING
        self.leader: NodeId = NO_LEADER
        self.serving = False
        """True if clients are served: the leader has a majority, and this server is in sync."""
        self._unit = unit
        self._others = tuple(m for m in members if m != node)
        self._now: Micros = 0
        self._out: list[ZkEffect] = []
        self._open: dict[int, tuple[NodeId, Request]] = {}
        self._correlation = 0
        self._votes: dict[NodeId, None] = {}
        self._preliminary = True
        self._followers: dict[NodeId, Follower] = {}
        self._established: Zxid = 0
        self._counter = 0
        self._forcing: dict[int, tuple[Zxid, int]] = {}
        self._force_token = 0
        self._own_match: Zxid = 0
        self._expiries: dict[SessionId, Micros] = {}
        self._heard: dict[SessionId, None] = {}

    @property
    def majority(self) -> int:
        """Size of a majority: of 2n+1 servers, n may be lost."""
        return len(self.members) // 2 + 1

    # -- hooks of the subclass --------------------------------------------------------------------

    def _applied(
        self, transaction: ZkTransaction, outcome: ZkOutcome, changes: list[tuple[str, WatchEvent]]
    ) -> None:
        """Hook: a transaction is committed and in the tree."""
        raise NotImplementedError

    def _lost_leader(self) -> None:
        """Hook: clients are no longer served."""
        raise NotImplementedError

    # -- roles ------------------------------------------------------------------------------------

    def _look_for_leader(self) -> None:
        """Looks for a leader: serves no clients, and becomes candidate after a while."""
        if self.serving:
            self.serving = False
            self._lost_leader()
        self.role, self.leader = ZkRole.LOOKING, NO_LEADER
        self._votes = {}
        self._followers = {}
        self._expiries = {}
        self._out.append(fx.CancelTimer("ping"))
        self._out.append(fx.CancelTimer("sessions"))
        self._await_election()

    def _await_election(self) -> None:
        wait = self.config.election_wait_us
        self._set_timer("election", wait + int(self._unit() * 2 * wait))

    def _request_votes(self, *, preliminary: bool = True) -> None:
        """Requests votes in a new epoch; first a preliminary round.

        So a server that was cut off raises no epoch, and disturbs none when it is back.
        """
        store = self.store
        epoch = store.epoch + 1
        if not preliminary:
            store.epoch, store.voted_for = epoch, self.node
        self._preliminary = preliminary
        self._votes = {self.node: None}
        self._await_election()
        request = ZkVoteRequest(self.node, epoch, store.history_epoch, store.last_zxid, preliminary)
        for member in self._others:
            self._send(member, request, self.config.election_wait_us)
        self._count_votes()

    def _count_votes(self) -> None:
        if len(self._votes) < self.majority:
            return
        if self._preliminary:
            self._request_votes(preliminary=False)
        else:
            self._lead()

    def _on_vote_request(self, token: int, request: ZkVoteRequest) -> None:
        """Votes once an epoch, for no candidate whose history ends before this server's.

        A server that has contact with its leader does not vote.
        """
        store = self.store
        granted = False
        if self.role is ZkRole.LOOKING and request.epoch >= store.epoch:
            own = (store.history_epoch, store.last_zxid)
            is_as_good = (request.history_epoch, request.last_zxid) >= own
            if request.preliminary:
                granted = is_as_good and request.epoch > store.epoch
            else:
                if request.epoch > store.epoch:
                    store.epoch, store.voted_for = request.epoch, NO_LEADER
                granted = is_as_good and store.voted_for in {NO_LEADER, request.candidate}
            if granted and not request.preliminary:
                store.voted_for = request.candidate
                self._await_election()
        self._reply(token, ZkVoteResponse(granted, store.epoch))

    def _on_vote(self, sender: NodeId, request: ZkVoteRequest, response: ZkVoteResponse) -> None:
        epoch = self.store.epoch + (1 if self._preliminary else 0)
        if self.role is not ZkRole.LOOKING or request.epoch != epoch:
            return
        if request.preliminary is not self._preliminary:
            return
        if response.granted:
            self._votes[sender] = None
            self._count_votes()
        elif response.epoch > self.store.epoch:
            self.store.epoch, self.store.voted_for = response.epoch, NO_LEADER
            self._votes = {}

    def _lead(self) -> None:
        """Brings a majority to this history, then serves."""
        self.role, self.leader = ZkRole.LEADING, self.node
        store = self.store
        store.history_epoch = store.epoch
        self._established = store.last_zxid
        self._own_match = store.forced_zxid
        self._counter = 0
        self._followers = {m: Follower(store.last_zxid, self._now) for m in self._others}
        self._out.append(fx.CancelTimer("election"))
        self._set_timer("ping", self.config.tick_us // 2)
        if self._own_match < self._established:
            self._force(-1)
        for member in self._others:
            self._replicate(member)
        self._advance()

    def _begin_serving(self) -> None:
        """Renews every session: last contacts are unknown to a new leader."""
        self.serving = True
        for session in self.store.tree.sessions:
            self._touch(session)
        self._set_timer("sessions", self._tick_after(self._now) - self._now)

    def _follow(self, leader: NodeId) -> None:
        if self.role is not ZkRole.FOLLOWING or self.leader != leader:
            if self.serving:
                self.serving = False
                self._lost_leader()
            self.role, self.leader = ZkRole.FOLLOWING, leader
            self._followers = {}
            self._expiries = {}
            self._out.append(fx.CancelTimer("ping"))
            self._out.append(fx.CancelTimer("sessions"))
        self._set_timer("election", self.config.silence_us)

    # -- replication ------------------------------------------------------------------------------

    def _propose(self, session: SessionId, op: WriteOp, origin: NodeId, token: int) -> None:
        """Leader: assigns the write its zxid."""
        self._counter += 1
        zxid = (self.store.epoch << 32) | self._counter
        self.store.append(ZkTransaction(zxid, session, op, origin, token))
        if not self._forcing:
            self._force(-1)
        for member in self._others:
            if not self._followers[member].in_flight:
                self._replicate(member)

    def _force(self, reply_to: int) -> None:
        """Forces the log; later writes wait for the next force."""
        self._force_token += 1
        self._forcing[self._force_token] = (self.store.last_zxid, reply_to)
        self._out.append(ForceTransactionLog(self._force_token))

    def _on_forced(self, token: int) -> None:
        forced = self._forcing.pop(token, None)
        if forced is None:
            return
        zxid, reply_to = forced
        self.store.forced(zxid)
        if reply_to >= 0:
            self._reply(reply_to, self._accepted(zxid))
        if self.role is ZkRole.LEADING:
            self._own_match = min(zxid, self.store.last_zxid)
            if self.store.last_zxid > zxid:
                self._force(-1)
            self._advance()

    def _replicate(self, member: NodeId) -> None:
        """Sends a follower all transactions that it lacks."""
        follower = self._followers[member]
        store = self.store
        tree = None
        if follower.previous < store.base:
            tree = store.tree.copy()
            follower.previous = tree.zxid
        follower.in_flight = True
        follower.known_commit = store.tree.zxid
        request = ZkReplicateRequest(
            self.node,
            store.epoch,
            follower.previous,
            store.after(follower.previous),
            store.tree.zxid,
            tree,
        )
        self._send(member, request, self.config.silence_us)

    def _on_replicate(self, token: int, request: ZkReplicateRequest) -> None:
        """Handles a leader's transactions. What follows the common prefix is truncated."""
        store = self.store
        if request.epoch < store.epoch or (
            request.epoch == store.epoch and self.role is ZkRole.LEADING
        ):
            self._reply(token, self._refused())
            return
        store.epoch = request.epoch
        self._follow(request.leader)
        if request.tree is not None:
            store.install(request.tree)
        previous = request.previous
        if not (store.has(previous) or previous == store.tree.zxid):
            self._reply(token, self._refused())
            return
        self._take_over(previous, request.transactions)
        store.history_epoch = request.epoch
        self._commit(request.committed)
        self.serving = True
        if store.forced_zxid < store.last_zxid:
            self._force(token)
        else:
            self._reply(token, self._accepted(store.last_zxid))

    def _take_over(self, previous: Zxid, transactions: tuple[ZkTransaction, ...]) -> None:
        """Makes the log end as the leader's does."""
        store = self.store
        last = transactions[-1].zxid if transactions else previous
        if store.last_zxid != last or not store.has(last):
            agreed = previous
            for transaction in transactions:
                if not store.has(transaction.zxid):
                    break
                agreed = transaction.zxid
            store.truncate_after(agreed)
            for transaction in transactions:
                if transaction.zxid > agreed:
                    store.append(transaction)

    def _refused(self) -> ZkReplicateResponse:
        return ZkReplicateResponse(self.store.epoch, accepted=False, last_zxid=self.store.tree.zxid)

    def _accepted(self, zxid: Zxid) -> ZkReplicateResponse:
        heard, self._heard = self._heard, {}
        return ZkReplicateResponse(
            self.store.epoch, accepted=True, last_zxid=zxid, sessions=tuple(heard)
        )

    def _on_replicated(
        self, sender: NodeId, request: ZkReplicateRequest, response: ZkReplicateResponse
    ) -> None:
        if self.role is not ZkRole.LEADING or request.epoch != self.store.epoch:
            return
        if response.epoch > self.store.epoch:
            self.store.epoch, self.store.voted_for = response.epoch, NO_LEADER
            self._look_for_leader()
            return
        follower = self._followers[sender]
        follower.in_flight = False
        follower.heard_at = self._now
        if not response.accepted:
            follower.previous = self.store.not_above(response.last_zxid)  # it is committed
            self._replicate(sender)
            return
        follower.match = max(follower.match, response.last_zxid)
        follower.previous = follower.match
        for session in response.sessions:
            self._touch(session)
        self._advance()
        if not follower.in_flight and self._lacks_something(follower):
            self._replicate(sender)

    def _lacks_something(self, follower: Follower) -> bool:
        return (
            follower.previous < self.store.last_zxid or follower.known_commit < self.store.tree.zxid
        )

    def _advance(self) -> None:
        """Commits what a majority has on disk, and replicates the commit."""
        matches = sorted(
            (self._own_match, *(f.match for f in self._followers.values())), reverse=True
        )
        agreed = matches[self.majority - 1]
        if agreed < self._established:
            return
        self._commit(agreed)
        if not self.serving:
            self._begin_serving()
        for member in self._others:
            follower = self._followers[member]
            if not follower.in_flight and follower.match >= 0 and self._lacks_something(follower):
                self._replicate(member)

    def _commit(self, zxid: Zxid) -> None:
        for transaction, outcome, changes in self.store.apply_to(zxid):
            op = transaction.op
            if isinstance(op, CloseSession):
                self._expiries.pop(op.session, None)
            elif self.role is ZkRole.LEADING and outcome.session != NO_SESSION:
                self._touch(outcome.session)
            self._applied(transaction, outcome, changes)

    # -- sessions ---------------------------------------------------------------------------------

    def _touch(self, session: SessionId) -> None:
        """Renews a session; the leader gives it another timeout, rounded up to a tick."""
        if self.role is not ZkRole.LEADING:
            self._heard[session] = None
            return
        timeout = self.store.tree.sessions.get(session)
        if timeout is not None and self._expiries.get(session) != NEVER:
            self._expiries[session] = self._tick_after(self._now + timeout)

    def _tick_after(self, instant: Micros) -> Micros:
        tick = self.config.tick_us
        return (instant // tick + 1) * tick

    def _expire_sessions(self) -> None:
        """Expires sessions without contact, in the order of their ids."""
        for session in sorted(self._expiries):
            if self._expiries[session] <= self._now:
                self._expiries[session] = NEVER
                self._propose(session, CloseSession(session), self.node, -1)
        self._set_timer("sessions", self._tick_after(self._now) - self._now)

    def _ping_followers(self) -> None:
        """Pings followers, and steps down if a majority has been silent too long."""
        silence = self._now - self.config.silence_us
        heard = 1 + sum(f.heard_at >= silence for f in self._followers.values())
        if heard < self.majority:
            self._look_for_leader()
            return
        for member in self._others:
            if not self._followers[member].in_flight:
                self._replicate(member)
        self._set_timer("ping", self.config.tick_us // 2)

    # -- helpers -----------------------------------------------------------------------------------

    def _set_timer(self, name: str, delay: Micros) -> None:
        self._out.append(fx.SetTimer(name, self._now + delay))

    def _send(self, to: NodeId, request: Request, timeout_us: Micros) -> None:
        self._correlation += 1
        self._open[self._correlation] = (to, request)
        self._out.append(fx.Send(to, self._correlation, request, timeout_us, CHANNEL))

    def _reply(self, token: int, response: Response, *, close: bool = False) -> None:
        self._out.append(fx.Reply(token, response, close))
