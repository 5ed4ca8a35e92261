"""From what one group asks for to what its broker asks for: requests, trace rows, news for clients.

Source: Redpanda v25.1 ``cluster/{partition,partition_leaders_table}.cc``.
"""

from typing import TYPE_CHECKING

from sim.ids import NO_LEADER
from sim.protocol import effects as fx
from sim.protocol.broker.replication.events import LeadershipApplied
from sim.protocol.broker.replication.log_starts import note_log_start
from sim.protocol.broker.replication.produce import note_append
from sim.protocol.broker.replication.transactions import note_stable
from sim.protocol.messages.base import Request
from sim.protocol.messages.raft_groups import RaftAppendRequest, RaftTimeoutNowRequest
from sim.protocol.raft_groups.effects import FlushRaftLog, PersistRaftVote, PersistRaftVotes
from sim.protocol.raft_groups.group import RaftGroup
from sim.protocol.raft_groups.types import (
    Answer,
    Ask,
    Configured,
    Cut,
    FlushLog,
    Followed,
    Led,
    PersistVote,
    RaftEffect,
    StartLearned,
    VisibleMoved,
    Wrote,
)
from sim.units import SECOND, Micros

if TYPE_CHECKING:
    from sim.protocol.raft_groups.manager import RaftReplicaManager

TRANSFER_TIMEOUT_US: Micros = SECOND
"""How long a leader waits for the one it hands over to; a constant in Redpanda."""


class RaftPerformer:
    """The hands of one broker's groups."""

    def __init__(self, manager: "RaftReplicaManager") -> None:
        self._manager = manager
        self.asked: dict[int, Request] = {}
        """Requests to other members that are not answered yet, by correlation."""
        self.has_votes = False
        """Whether the decision under way has votes to write."""

    def perform(self, group: RaftGroup, effect: RaftEffect, now: Micros, out: list[object]) -> None:
        """Perform one effect of a group."""
        partition = group.partition
        match effect:
            case Ask():
                self._ask(group, effect, out)
            case Answer():
                out.append(fx.Reply(effect.token, effect.response))
            case FlushLog():
                out.append(FlushRaftLog(partition, effect.up_to, effect.generation))
            case Wrote():
                broker = self._manager.broker
                for batch in effect.batches:
                    note_append(broker, partition, batch, out, as_leader=effect.as_leader)
            case VisibleMoved():
                self._visible_moved(group, effect, now, out)
            case PersistVote():
                self.has_votes = True
                out.append(PersistRaftVote(partition, effect.vote, group.settled))
            case _:
                self._news(group, effect, now, out)

    def _ask(self, group: RaftGroup, effect: Ask, out: list[object]) -> None:
        """Appends of a partition have a connection of their own: its fsyncs hold up no other."""
        manager = self._manager
        request = effect.request
        channel, timeout = "raft", manager.raft.heartbeat_timeout_us
        if isinstance(request, RaftAppendRequest):
            channel, timeout = f"raft/{group.partition}", manager.raft.append_timeout_us
        elif isinstance(request, RaftTimeoutNowRequest):
            timeout = TRANSFER_TIMEOUT_US
        correlation = manager.next_correlation()
        self.asked[correlation] = request
        out.append(fx.Send(effect.to, correlation, request, timeout, channel))

    def _visible_moved(
        self, group: RaftGroup, effect: VisibleMoved, now: Micros, out: list[object]
    ) -> None:
        manager, replica = self._manager, group.replica
        where = (manager.broker, *group.partition)
        if not replica.is_leader:
            told = (replica.high_watermark, replica.log.log_end_offset, effect.sent)
            out.append(fx.Emit("follower_watermarks", (*where, replica.leader_epoch, *told)))
            return
        out.append(
            fx.Emit(
                "high_watermarks",
                (
                    *where,
                    replica.leader_epoch,
                    # It may have moved on since, under other members, in the same decision.
                    effect.sent,
                    replica.log.log_end_offset,
                    len(replica.in_sync),
                    replica.min_in_sync,
                    replica.lowest_end_in_sync(),
                ),
            )
        )
        if replica.transactional:
            note_stable(manager, replica, out)
        manager.produce.high_watermark_moved(replica, now, out)
        manager.fetch.high_watermark_moved(group.partition)

    def _news(
        self,
        group: RaftGroup,
        effect: Led | Configured | Followed | Cut | StartLearned,
        now: Micros,
        out: list[object],
    ) -> None:
        manager, replica, partition = self._manager, group.replica, group.partition
        epoch = replica.leader_epoch
        match effect:
            case Led():
                manager.fetch.leadership_changed(partition)
                out.append(LeadershipApplied(partition, is_leader=True, leader_epoch=epoch))
                manager.note_leadership(replica, "leader", out)
                manager.leaders.led(partition, epoch)
                manager.perform(group, group.open_term(now), now, out)
            case Configured():
                where = (manager.broker, *partition, epoch, effect.offset)
                lists = (",".join(map(str, nodes)) for nodes in effect.membership)
                out.append(fx.Emit("raft_configurations", (*where, *lists)))
            case Followed():
                if effect.was_leader:
                    manager.leaders.lost(partition)
                    manager.produce.leadership_lost(partition, now, out)
                    manager.log_starts.check(partition, out)
                    out.append(LeadershipApplied(partition, is_leader=False, leader_epoch=epoch))
                    manager.fetch.leadership_changed(partition)
                role = "offline" if replica.leader == NO_LEADER else "follower"
                manager.note_leadership(replica, role, out)
            case Cut():
                start, after = effect.start_before, effect.start_after
                if after != start:
                    note_log_start(manager.broker, partition, start, after, "truncation", out)
                row = (
                    effect.before,
                    effect.after,
                    effect.high_watermark,
                    epoch,
                    "diverging_epoch",
                )
                out.append(fx.Emit("truncations", (manager.broker, *partition, *row)))
            case StartLearned():
                manager.log_starts.learned(replica, effect.offset, out)


def votes_before_words(effects: list[object]) -> list[object]:
    """The same effects: first the rows of what has happened, then all votes, then the rest.

    What was written is written, even if the process dies before the votes are on the platter; what
    is said is said only after that.
    """
    rows = [effect for effect in effects if isinstance(effect, fx.Emit)]
    votes = tuple(effect for effect in effects if isinstance(effect, PersistRaftVote))
    others = [e for e in effects if not isinstance(e, fx.Emit | PersistRaftVote)]
    return [*rows, PersistRaftVotes(votes), *others]
