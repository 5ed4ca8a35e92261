"""Turns effects of one group into those of its broker: requests, trace rows, client responses.

Source: Redpanda v25.1 ``cluster/{partition,partition_leaders_table}.cc``.
"""

from sim.ids import NO_LEADER
from sim.protocol import effects as fx
from sim.protocol.broker.raft_storage import FlushRaftLog, PersistRaftVote, PersistRaftVotes
from sim.protocol.broker.replication.effects import Effects
from sim.protocol.broker.replication.events import LeadershipApplied
from sim.protocol.broker.replication.hosted import HostedPartitions
from sim.protocol.broker.replication.leader.delayed_fetches import DelayedFetches
from sim.protocol.broker.replication.leader.delayed_produces import DelayedProduces
from sim.protocol.broker.replication.leader.log_starts import LogStarts
from sim.protocol.broker.replication.trace_rows import (
    note_append,
    note_leadership,
    note_log_start,
    note_stable,
)
from sim.protocol.messages.base import Request
from sim.protocol.messages.raft_groups import RaftAppendRequest, RaftTimeoutNowRequest
from sim.protocol.raft_groups.group import RaftGroup
from sim.protocol.raft_groups.leaders import RaftLeaders
from sim.protocol.raft_groups.types import (
    Configured,
    FlushLog,
    Followed,
    Led,
    PersistVote,
    RaftConfig,
    RaftEffect,
    ReplyToMember,
    SendToMember,
    StartLearned,
    Truncated,
    VisibleMoved,
    Wrote,
)
from sim.trace.emit import Emit
from sim.trace.rows.log import FollowerWatermarks, HighWatermarks, RaftConfigurations, Truncations
from sim.units import NEVER, SECOND, Micros

ELECTION = "raft-election"
"""Timer of the earliest election timeout among the groups."""

TRANSFER_TIMEOUT_US: Micros = SECOND
"""Timeout of a leadership transfer; a constant in Redpanda."""


class RaftPerformer:
    """Performs the effects of one broker's groups.

    Args:
        hosted: The broker's partitions.
        config: Settings of the groups.
        fetches: Woken when a group's high watermark or leader changes.
        produces: Completed then, too.
        log_starts: The starts of the groups' logs.
        leaders: Groups that this broker leads.
    """

    def __init__(
        self,
        hosted: HostedPartitions,
        config: RaftConfig,
        fetches: DelayedFetches,
        produces: DelayedProduces,
        log_starts: LogStarts,
        leaders: RaftLeaders,
    ) -> None:
        self._hosted = hosted
        self._config = config
        self._fetches = fetches
        self._produces = produces
        self._log_starts = log_starts
        self._leaders = leaders
        self._election_at: Micros = NEVER
        self.open_requests: dict[int, Request] = {}
        """Open requests to other members, by correlation."""
        self.votes: list[PersistRaftVote] = []
        """Those of the decision that is being taken."""
        """True if the current decision has votes to write."""

    def perform(
        self, group: RaftGroup, effects: list[RaftEffect], now: Micros, out: Effects
    ) -> None:
        """Turns a group's effects into effects of this machine, in the same order."""
        for effect in effects:
            self._perform(group, effect, now, out)
        if group.deadline < self._election_at:
            self._election_at = group.deadline
            out.append(fx.SetTimer(ELECTION, self._election_at))

    def election_due(self) -> None:
        """The timer of elections has fired: the next group that waits sets it again."""
        self._election_at = NEVER

    def _perform(self, group: RaftGroup, effect: RaftEffect, now: Micros, out: Effects) -> None:
        partition = group.partition
        match effect:
            case SendToMember():
                self._send(group, effect, out)
            case ReplyToMember():
                out.append(fx.Reply(effect.token, effect.response))
            case FlushLog():
                out.append(FlushRaftLog(partition, effect.up_to, effect.generation))
            case Wrote():
                broker = self._hosted.broker
                for batch in effect.batches:
                    note_append(broker, partition, batch, out, as_leader=effect.as_leader)
            case VisibleMoved():
                self._visible_moved(group, effect, now, out)
            case PersistVote():
                self.votes.append(PersistRaftVote(partition, effect.vote, group.settled))
            case _:
                self._news(group, effect, now, out)

    def _send(self, group: RaftGroup, effect: SendToMember, out: Effects) -> None:
        """Appends of a partition have a connection of their own: its fsyncs delay no other."""
        request = effect.request
        channel, timeout = "raft", self._config.heartbeat_timeout_us
        if isinstance(request, RaftAppendRequest):
            channel, timeout = f"raft/{group.partition}", self._config.append_timeout_us
        elif isinstance(request, RaftTimeoutNowRequest):
            timeout = TRANSFER_TIMEOUT_US
        correlation = self._hosted.next_correlation()
        self.open_requests[correlation] = request
        out.append(fx.Send(effect.to, correlation, request, timeout, channel))

    def _visible_moved(
        self, group: RaftGroup, effect: VisibleMoved, now: Micros, out: Effects
    ) -> None:
        broker, replica, partition = self._hosted.broker, group.replica, group.partition
        if not replica.is_leader:
            out.append(
                FollowerWatermarks.row(
                    broker,
                    partition.topic,
                    partition.partition,
                    leader_epoch=replica.leader_epoch,
                    high_watermark=replica.high_watermark,
                    log_end_offset=replica.log.log_end_offset,
                    sent_by_leader=effect.sent,
                )
            )
            return
        out.append(
            HighWatermarks.row(
                broker,
                partition.topic,
                partition.partition,
                leader_epoch=replica.leader_epoch,
                # It may have advanced since, under other members, in the same decision.
                high_watermark=effect.sent,
                log_end_offset=replica.log.log_end_offset,
                in_sync_count=len(replica.in_sync),
                min_in_sync=replica.min_in_sync,
                lowest_in_sync_end=replica.lowest_end_in_sync(),
            )
        )
        note_stable(broker, replica, out)
        self._produces.high_watermark_moved(replica, now, out)
        self._fetches.high_watermark_moved(group.partition)

    def _news(
        self,
        group: RaftGroup,
        effect: Led | Configured | Followed | Truncated | StartLearned,
        now: Micros,
        out: Effects,
    ) -> None:
        broker, replica, partition = self._hosted.broker, group.replica, group.partition
        epoch = replica.leader_epoch
        match effect:
            case Led():
                self._fetches.leadership_changed(partition)
                out.append(LeadershipApplied(partition, is_leader=True, leader_epoch=epoch))
                note_leadership(broker, replica, "leader", out)
                note_stable(broker, replica, out)
                self._leaders.led(partition, epoch)
                self.perform(group, group.open_term(now), now, out)
            case Configured():
                voters, old, learners = (",".join(map(str, n)) for n in effect.membership)
                out.append(
                    RaftConfigurations.row(
                        broker,
                        *partition,
                        leader_epoch=epoch,
                        offset=effect.offset,
                        voters=voters,
                        old=old,
                        learners=learners,
                    )
                )
            case Followed():
                if effect.was_leader:
                    self._leaders.lost(partition)
                    self._produces.leadership_lost(partition, now, out)
                    self._log_starts.check(partition, out)
                    out.append(LeadershipApplied(partition, is_leader=False, leader_epoch=epoch))
                    self._fetches.leadership_changed(partition)
                role = "offline" if replica.leader == NO_LEADER else "follower"
                note_leadership(broker, replica, role, out)
            case Truncated():
                start, after = effect.start_before, effect.start_after
                if after != start:
                    note_log_start(broker, partition, start, after, "truncation", out)
                out.append(
                    Truncations.row(
                        broker,
                        *partition,
                        from_offset=effect.before,
                        to_offset=effect.after,
                        high_watermark=effect.high_watermark,
                        leader_epoch=epoch,
                        reason="diverging_epoch",
                    )
                )
            case StartLearned():
                self._log_starts.learned(replica, effect.offset, out)


def votes_before_messages(votes: tuple[PersistRaftVote, ...], effects: Effects) -> Effects:
    """The same effects: first the rows of what has happened, then all votes, then the rest.

    Rows are written even if the process dies before the votes are on the platter; messages are sent
    only after that.
    """
    rows = [effect for effect in effects if isinstance(effect, Emit)]
    others = [effect for effect in effects if not isinstance(effect, Emit)]
    return [*rows, PersistRaftVotes(votes), *others]
