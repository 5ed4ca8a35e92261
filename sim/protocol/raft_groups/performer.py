"""From what one group asks for to what its broker asks for: requests, answers, trace rows.

Source: Redpanda v25.1 ``cluster/{partition,partition_leaders_table}.cc``.
"""

from sim.ids import NodeId, Offset
from sim.protocol import effects as fx
from sim.protocol.broker.replication.log_starts import note_log_start
from sim.protocol.broker.replication.produce import note_append
from sim.protocol.messages.base import Request
from sim.protocol.messages.raft_groups import RaftAppendRequest, RaftTimeoutNowRequest
from sim.protocol.raft_groups.effects import FlushRaftLog, PersistRaftVote, PersistRaftVotes
from sim.protocol.raft_groups.group import RaftGroup
from sim.protocol.raft_groups.replica import RaftReplica
from sim.protocol.raft_groups.types import (
    Answer,
    Ask,
    Configured,
    Cut,
    FlushLog,
    PersistVote,
    RaftConfig,
    Wrote,
)
from sim.units import SECOND, Micros

TRANSFER_TIMEOUT_US: Micros = SECOND
"""How long a leader waits for the one it hands over to; a constant in Redpanda."""


class RaftPerformer:
    """Requests, answers and trace rows of one broker's groups.

    Args:
        broker: This broker's id.
        raft: Settings of the groups.
    """

    def __init__(self, broker: NodeId, raft: RaftConfig) -> None:
        self._broker = broker
        self._raft = raft
        self.asked: dict[int, Request] = {}
        """Requests to other members that are not answered yet, by correlation."""
        self.has_votes = False
        """Whether the decision under way has votes to write."""

    def ask(self, group: RaftGroup, effect: Ask, correlation: int, out: list[object]) -> None:
        """Send a request to another member.

        Appends of a partition have a connection of their own: its fsyncs hold up no other.
        """
        request = effect.request
        channel, timeout = "raft", self._raft.heartbeat_timeout_us
        if isinstance(request, RaftAppendRequest):
            channel, timeout = f"raft/{group.partition}", self._raft.append_timeout_us
        elif isinstance(request, RaftTimeoutNowRequest):
            timeout = TRANSFER_TIMEOUT_US
        self.asked[correlation] = request
        out.append(fx.Send(effect.to, correlation, request, timeout, channel))

    def perform(
        self,
        group: RaftGroup,
        effect: Answer | FlushLog | Wrote | PersistVote | Configured | Cut,
        out: list[object],
    ) -> None:
        """Perform an effect that concerns nobody but the group."""
        partition, broker = group.partition, self._broker
        match effect:
            case Answer():
                out.append(fx.Reply(effect.token, effect.response))
            case FlushLog():
                out.append(FlushRaftLog(partition, effect.up_to, effect.generation))
            case Wrote():
                for batch in effect.batches:
                    note_append(broker, partition, batch, out, as_leader=effect.as_leader)
            case PersistVote():
                self.has_votes = True
                out.append(PersistRaftVote(partition, effect.vote, group.settled))
            case Configured():
                where = (broker, *partition, group.replica.leader_epoch, effect.offset)
                lists = (",".join(map(str, nodes)) for nodes in effect.membership)
                out.append(fx.Emit("raft_configurations", (*where, *lists)))
            case Cut():
                self._cut(group, effect, out)

    def _cut(self, group: RaftGroup, effect: Cut, out: list[object]) -> None:
        partition = group.partition
        start, after = effect.start_before, effect.start_after
        if after != start:
            note_log_start(self._broker, partition, start, after, "truncation", out)
        row = (
            effect.before,
            effect.after,
            effect.high_watermark,
            group.replica.leader_epoch,
            "diverging_epoch",
        )
        out.append(fx.Emit("truncations", (self._broker, *partition, *row)))


def note_visible(broker: NodeId, replica: RaftReplica, sent: Offset, out: list[object]) -> None:
    """Say in the trace how far a replica's high watermark is now.

    Args:
        broker: This broker's id.
        replica: Whose.
        sent: The high watermark. It may have moved on since, under other members, in the same
            decision.
        out: Where the row goes.
    """
    where = (broker, *replica.partition, replica.leader_epoch)
    if not replica.is_leader:
        row = (*where, replica.high_watermark, replica.log.log_end_offset, sent)
        out.append(fx.Emit("follower_watermarks", row))
        return
    in_sync = (len(replica.in_sync), replica.min_in_sync, replica.lowest_end_in_sync())
    out.append(fx.Emit("high_watermarks", (*where, sent, replica.log.log_end_offset, *in_sync)))


def votes_before_words(effects: list[object]) -> list[object]:
    """The same effects: first the rows of what has happened, then all votes, then the rest.

    What was written is written, even if the process dies before the votes are on the platter; what
    is said is said only after that.
    """
    rows = [effect for effect in effects if isinstance(effect, fx.Emit)]
    votes = tuple(effect for effect in effects if isinstance(effect, PersistRaftVote))
    others = [e for e in effects if not isinstance(e, fx.Emit | PersistRaftVote)]
    return [*rows, PersistRaftVotes(votes), *others]
