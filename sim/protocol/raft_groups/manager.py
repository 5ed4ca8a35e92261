"""Replica manager of a broker whose partitions are Raft groups.

Clients are served as under Kafka's own replication: producers, consumers, transactions and
deletions go through the paths of
:class:`~sim.protocol.broker.replication.replica_manager.ReplicaManager`. Leadership and the high
watermark differ: the groups decide on them, and report to the controller.

Left out: batching of several partitions' records in one request to a broker.

Source: Redpanda v25.1 ``raft/{group_manager,heartbeat_manager}.cc``, ``cluster/partition.cc``.
"""

from collections.abc import Callable
from dataclasses import replace

from sim.error_codes import ErrorCode
from sim.errors import CorruptRecord, StorageFailed
from sim.ids import NO_LEADER, NodeId, Offset, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.fetch_session_slots import UNBOUNDED
from sim.protocol.broker.raft_storage import PersistRaftVote, RaftFlushed, RaftVote
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.replication.directories.assignments import Placement
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.events import (
    BrokerNews,
    DirectoryFailed,
    MetadataApplied,
    ReplicaManagerEvent,
    ShutdownBegun,
    StorageBroke,
)
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.replication.leader.transactions import TransactionPath
from sim.protocol.broker.replication.replica_manager import ReplicaManager
from sim.protocol.broker.replication.trace_rows import note_leadership
from sim.protocol.events import RequestFailed, RequestReceived, ResponseReceived
from sim.protocol.messages.data import LeaderHint
from sim.protocol.messages.raft_groups import (
    RaftAnswer,
    RaftAppend,
    RaftAppendRequest,
    RaftAppendResponse,
    RaftHeartbeatRequest,
    RaftHeartbeatResponse,
    RaftLeadersResponse,
    RaftTimeoutNowRequest,
    RaftTimeoutNowResponse,
    RaftVoteRequest,
    RaftVoteResponse,
)
from sim.protocol.metadata.image import PartitionRegistration
from sim.protocol.ports import ReplicaLog
from sim.protocol.raft_groups.group import RaftGroup
from sim.protocol.raft_groups.leaders import RaftLeaders
from sim.protocol.raft_groups.membership import Nodes
from sim.protocol.raft_groups.performer import ELECTION, RaftPerformer, votes_before_messages
from sim.protocol.raft_groups.produce import RaftProducePath
from sim.protocol.raft_groups.recovery_throttle import RecoveryThrottle
from sim.protocol.raft_groups.replica import RaftReplica
from sim.protocol.raft_groups.types import PersistedState, RaftConfig, RaftEffect, RaftRecords
from sim.units import Micros

HEARTBEAT = "raft-heartbeat"
"""Timer of heartbeats, and of periodic checks."""

RAFT_REQUESTS = (
    RaftVoteRequest,
    RaftAppendRequest,
    RaftHeartbeatRequest,
    RaftTimeoutNowRequest,
)
"""Requests between brokers."""


class RaftHostedPartitions(HostedPartitions):
    """Replicas of one broker, whose leaders are those of their groups."""

    def hint(self, partition: TopicPartition, error: ErrorCode) -> LeaderHint | None:
        """The leader that the group knows, for errors that redirect clients."""
        replica = self.replicas.get(partition)
        if replica is None or replica.leader in {NO_LEADER, self.broker}:
            return None
        has_hint = error in (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)
        if not has_hint or not self.config.gives_leader_hints:
            return None
        return LeaderHint(replica.leader, replica.leader_epoch)


class RaftReplicaManager(ReplicaManager):
    """Every replica of one broker, each a member of its partition's group.

    Args:
        broker: This broker's id.
        config: Settings.
        raft: Settings of the groups.
        open_log: Opens the log of a partition with its topic id and topic settings.
        high_watermarks: Checkpointed high watermarks, as read at the start.
        placement: The log directories; ``None``: a single one.
        recall: Reads a partition's persisted votes and members.
        records: Makes and reads the control records of the groups' logs.
        unit: Draws the jitter of elections, uniform in [0, 1).
    """

    def __init__(
        self,
        broker: NodeId,
        config: ReplicaManagerConfig,
        raft: RaftConfig,
        open_log: Callable[[TopicPartition, str, dict[str, str]], ReplicaLog],
        high_watermarks: dict[TopicPartition, Offset],
        placement: Placement | None,
        recall: Callable[[TopicPartition], PersistedState],
        records: RaftRecords,
        unit: Callable[[], float],
    ) -> None:
        hosted = RaftHostedPartitions(broker, config)
        bare = replace(config, fetch_sessions=UNBOUNDED)
        super().__init__(broker, bare, open_log, high_watermarks, placement, hosted=hosted)
        self.raft = raft
        self.groups: dict[TopicPartition, RaftGroup] = {}
        self.leaders = RaftLeaders(hosted, self.groups, config.balances_leaders_every_us)
        fetches, produces = self.delayed_fetches, self.delayed_produces
        self._performer = RaftPerformer(
            hosted, raft, fetches, produces, self.log_starts, self.leaders
        )
        self.produce = RaftProducePath(
            hosted, self.locks, self.watermarks, produces, fetches, self.groups, self._performer
        )
        self.transactions = TransactionPath(hosted, self.produce, self.markers)
        self._recall = recall
        self._records = records
        self._recovery = RecoveryThrottle(raft.learner_recovery_rate)
        self._unit = unit
        self._beats: dict[int, tuple[RaftAppend, ...]] = {}

    # -- events -----------------------------------------------------------------------------------

    def handle(self, event: ReplicaManagerEvent | RaftFlushed, now: Micros) -> Effects:
        """Handles an event; returns effects in order."""
        votes: list[PersistRaftVote] = []
        self._performer.votes = votes
        if not isinstance(event, RaftFlushed):
            out = super().handle(event, now)
        else:
            out = []
            group = self.groups.get(event.partition)
            if group is not None:
                self._performer.perform(
                    group, group.flushed(event.up_to, event.generation, now), now, out
                )
            self.fetch.answer_woken(now, out)
        return votes_before_messages(tuple(votes), out) if votes else out

    def start(self, now: Micros) -> Effects:
        """Effects of the start: the first heartbeat."""
        return [fx.SetTimer(HEARTBEAT, now + self.raft.heartbeat_interval_us)]

    def _note(self, event: BrokerNews, now: Micros, out: Effects) -> None:
        super()._note(event, now, out)
        if isinstance(event, ShutdownBegun):
            for group in self.groups.values():
                group.silent = True
        elif isinstance(event, DirectoryFailed):
            self._forget_removed()

    # -- requests and responses --------------------------------------------------------------------

    def _request(self, event: RequestReceived, now: Micros, out: Effects) -> None:
        request = event.request
        if isinstance(request, RaftAppendRequest):
            self._on_append_request(event.token, request, now, out)
        elif isinstance(request, RaftHeartbeatRequest):
            self._on_heartbeat_request(event.token, request, now, out)
        elif isinstance(request, RaftVoteRequest):
            group = self.groups.get(request.partition)
            if group is None:
                unknown = RaftVoteResponse(request.partition, 0, granted=False)
                out.append(fx.Reply(event.token, unknown))
            else:
                self._performer.perform(
                    group, group.on_vote_request(event.token, request, now), now, out
                )
        elif isinstance(request, RaftTimeoutNowRequest):
            group = self.groups.get(request.partition)
            if group is not None:
                self._performer.perform(group, group.timeout_now(request.term, now), now, out)
            term = 0 if group is None else group.term
            out.append(fx.Reply(event.token, RaftTimeoutNowResponse(request.partition, term)))
        else:
            super()._request(event, now, out)

    def _on_append_request(
        self, token: int, request: RaftAppendRequest, now: Micros, out: Effects
    ) -> None:
        sent = request.append
        group = self.groups.get(sent.partition)
        unknown = RaftAppendResponse(RaftAnswer(sent.partition, 0))
        if group is None:
            out.append(fx.Reply(token, unknown))
            return
        try:
            effects = group.on_append_request(token, request.leader, sent, now)
        except CorruptRecord:
            # Nothing was written; the leader sends it again.
            out.append(fx.Reply(token, unknown))
        except StorageFailed as failure:
            out.append(fx.Reply(token, unknown))
            self._broke(group, failure, out)
        else:
            self._performer.perform(group, effects, now, out)

    def _on_heartbeat_request(
        self, token: int, request: RaftHeartbeatRequest, now: Micros, out: Effects
    ) -> None:
        answers: list[RaftAnswer] = []
        for sent in request.appends:
            group = self.groups.get(sent.partition)
            answer = RaftAnswer(sent.partition, 0)
            if group is not None:
                effects: list[RaftEffect] = []
                try:
                    answer = group.take(request.leader, sent, now, effects)
                except StorageFailed as failure:
                    self._broke(group, failure, out)
                else:
                    self._performer.perform(group, effects, now, out)
            answers.append(answer)
        out.append(fx.Reply(token, RaftHeartbeatResponse(tuple(answers))))

    def _response(self, event: ResponseReceived, now: Micros, out: Effects) -> None:
        response = event.response
        if isinstance(response, RaftHeartbeatResponse):
            heartbeats = self._beats.pop(event.correlation)
            for sent, answer in zip(heartbeats, response.answers, strict=True):
                self._answered(event.sender, sent, answer, now, out, heartbeat=True)
        elif isinstance(response, RaftAppendResponse):
            request = self._performer.open_requests.pop(event.correlation)
            assert isinstance(request, RaftAppendRequest), "appends have append responses"
            self._answered(event.sender, request.append, response.answer, now, out, heartbeat=False)
        elif isinstance(response, RaftVoteResponse):
            request = self._performer.open_requests.pop(event.correlation)
            assert isinstance(request, RaftVoteRequest), "votes have vote responses"
            group = self.groups.get(request.partition)
            if group is not None:
                self._performer.perform(
                    group, group.voted(event.sender, request, response, now), now, out
                )
        elif isinstance(response, RaftTimeoutNowResponse):
            del self._performer.open_requests[event.correlation]
        elif isinstance(response, RaftLeadersResponse):
            self.leaders.answered(event.correlation, response)
        else:
            super()._response(event, now, out)

    def _answered(
        self,
        sender: NodeId,
        sent: RaftAppend,
        answer: RaftAnswer,
        now: Micros,
        out: Effects,
        *,
        heartbeat: bool,
    ) -> None:
        group = self.groups.get(sent.partition)
        if group is not None:
            effects = group.answered(sender, sent, answer, now, heartbeat=heartbeat)
            self._performer.perform(group, effects, now, out)

    def _failure(self, event: RequestFailed, now: Micros, out: Effects) -> None:
        if self._beats.pop(event.correlation, None) is not None:
            return
        request = self._performer.open_requests.pop(event.correlation, None)
        if request is None:
            if not self.leaders.failed(event.correlation):
                super()._failure(event, now, out)
        elif isinstance(request, RaftAppendRequest):
            group = self.groups.get(request.append.partition)
            if group is not None:
                group.failed(event.sender, request.append)

    # -- time -------------------------------------------------------------------------------------

    def _timer(self, name: str, now: Micros, out: Effects) -> None:
        if name == HEARTBEAT:
            self._beat(now, out)
            for group, to in self.leaders.look(now, out):
                self._performer.perform(group, group.transfer(to, now), now, out)
            out.append(fx.SetTimer(HEARTBEAT, now + self.raft.heartbeat_interval_us))
        elif name == ELECTION:
            self._performer.election_due()
            for group in list(self.groups.values()):
                self._performer.perform(group, group.due(now), now, out)
        else:
            super()._timer(name, now, out)

    def _beat(self, now: Micros, out: Effects) -> None:
        """Sends one heartbeat request to each broker, with all groups in which it follows."""
        heartbeats: dict[NodeId, list[RaftAppend]] = {}
        for group in list(self.groups.values()):
            appends, effects = group.heartbeats(now)
            for node, append in appends:
                heartbeats.setdefault(node, []).append(append)
            self._performer.perform(group, effects, now, out)
        for node, beats in heartbeats.items():
            correlation = self.hosted.next_correlation()
            self._beats[correlation] = tuple(beats)
            request = RaftHeartbeatRequest(self.hosted.broker, tuple(beats))
            timeout = self.raft.heartbeat_timeout_us
            out.append(fx.Send(node, correlation, request, timeout, "raft"))

    # -- metadata ---------------------------------------------------------------------------------

    def _apply(self, event: MetadataApplied, now: Micros, out: Effects) -> None:
        """Joins the groups of new partitions, and leaves those of deleted ones."""
        hosted = self.hosted
        hosted.image = event.image
        self.removal.remove_unassigned(event.image, event.changed, now, out)
        self._forget_removed()
        for partition in event.changed:
            state = event.image.partitions.get(partition)
            if state is None or hosted.broker not in state.replicas:
                continue
            if self.directories.is_online(partition, state):
                self._take_up(self._join, partition, state, now, out)
        for topic in event.reconfigured:
            self._reconfigure(topic, now, out)
        self.directories.send(now, out)

    def _join(
        self,
        partition: TopicPartition,
        state: PartitionRegistration,
        now: Micros,
        out: Effects,
    ) -> None:
        group = self.groups.get(partition)
        if group is not None:
            group.replica.adopt(state)
            self._aim(group, state, now, out)
            return
        hosted = self.hosted
        log = self._open_log(partition, state.topic_id, hosted.image.configs_of(partition.topic))
        checkpointed = self.watermarks.checkpointed(partition)
        replica = RaftReplica(partition, hosted.broker, log, checkpointed)
        replica.adopt(state)
        memory = self._recall(partition)
        if state.leader_epoch > memory.vote.term:
            # Its disk was replaced: the controller's leader epoch keeps it from voting twice.
            memory = memory._replace(vote=RaftVote(state.leader_epoch, state.leader))
        group = RaftGroup(
            replica,
            founders(hosted.broker, state),
            self.raft,
            self._records,
            self._unit,
            memory,
            recovery=self._recovery,
        )
        group.silent = hosted.stopping
        replica.follow(NO_LEADER, group.term)
        self.replicas[partition] = replica
        self.groups[partition] = group
        note_leadership(hosted.broker, replica, "follower", out)
        self._performer.perform(group, group.begin(now), now, out)
        self._aim(group, state, now, out)

    def _aim(
        self, group: RaftGroup, state: PartitionRegistration, now: Micros, out: Effects
    ) -> None:
        """Passes on the controller's target of a move, or the move's end."""
        target = tuple(b for b in state.replicas if b not in state.removing)
        is_moving = bool(state.adding or state.removing)
        self.leaders.moves(group.partition, is_moving=is_moving)
        # Without a move the members stay, whatever an old image has; their order may change.
        applies = is_moving or sorted(target) == sorted(group.voters)
        self._performer.perform(group, group.aim(target if applies else (), now), now, out)

    def _reconfigure(self, topic: str, now: Micros, out: Effects) -> None:
        """Applies a topic's new settings to its logs; a group has none of its own."""
        del now, out
        for partition, replica in self.replicas.items():
            if partition.topic == topic:
                self._open_log(partition, replica.topic_id, self.image.configs_of(topic))

    def _broke(self, group: RaftGroup, failure: StorageFailed, out: Effects) -> None:
        out.append(StorageBroke(group.partition, str(failure)))

    def _forget_removed(self) -> None:
        """Removes groups whose replica was removed with its topic or its log directory."""
        for partition in [p for p in self.groups if p not in self.replicas]:
            del self.groups[partition]
            self.leaders.forget(partition)


def founders(broker: NodeId, state: PartitionRegistration) -> Nodes:
    """Members that a broker assumes until its log has some.

    A broker that is being added waits for its leader; it does not vote before.
    """
    if broker in state.adding:
        return ()
    return tuple(b for b in state.replicas if b not in state.adding)
