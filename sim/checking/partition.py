"""State of one partition from the trace so far: its replicas, leaders and committed records.

:class:`~sim.checking.observer.Observer` keeps it. Of a log its end and its epochs are kept, never
its batches.
"""

from collections import deque
from typing import Final

from sim.checking.chains import Chains
from sim.checking.interval_set import IntervalSet
from sim.ids import LeaderEpoch, NodeId, Offset, server_name
from sim.trace.rows.cluster import PartitionChangesRow
from sim.trace.rows.log import RaftConfigurationsRow
from sim.trace.writer import Row
from sim.units import Micros, show_instant

LOSSES: Final = frozenset({"recovery", "unrecovered", "wiped", "overwritten"})
"""Reasons of truncations that are losses."""

RECENT_ROWS: Final = 6
"""Rows of a partition that a broken invariant shows."""


class Replica:
    """One replica's log by its appends, truncations and recoveries."""

    __slots__ = (
        "broker", "epoch", "epochs", "has_strange", "leader_epoch", "log_end", "log_start",
        "partition_epoch", "producers", "watermark", "watermark_epoch",
    )  # fmt: skip

    def __init__(self, broker: NodeId) -> None:
        self.broker = broker
        self.log_start: Offset = 0
        self.log_end: Offset = 0
        self.epoch: LeaderEpoch = -1
        """Epoch of the last batch; -1 for an empty log."""
        self.epochs: list[tuple[Offset, LeaderEpoch]] = []
        """Start of each epoch, in order of offset."""
        self.producers: dict[int, list[tuple[Offset, int, int]]] = {}
        """Last batches of each producer id: base offset, producer epoch, next sequence number."""
        self.watermark: Offset = -1
        """Last high watermark reached as leader; -1 if none in this process."""
        self.watermark_epoch: LeaderEpoch = -1
        self.leader_epoch: LeaderEpoch = -1
        """Last leader epoch applied by this process; -1 if none."""
        self.partition_epoch = -1
        self.has_strange = False
        """True if bytes of another log were written into this one, and recovery may have kept
        them."""

    def begin_process(self) -> None:
        """Forgets the watermark and epochs of a former process: they do not bind the next one."""
        self.watermark = self.watermark_epoch = -1
        self.leader_epoch = self.partition_epoch = -1

    def spans(self, start: Offset) -> list[tuple[Offset, Offset, LeaderEpoch]]:
        """The log from the offset on, as (first offset, end offset, epoch)."""
        found = []
        end = self.log_end
        for begin, epoch in reversed(self.epochs):
            if max(begin, start) < end:
                found.append((max(begin, start), end, epoch))
            end = begin
        return found

    def cut(self, end: Offset) -> None:
        """Truncates the log to the offset."""
        self.log_end = end
        self.log_start = min(self.log_start, end)
        while self.epochs and self.epochs[-1][0] >= end:
            self.epochs.pop()
        self.epoch = self.epochs[-1][1] if self.epochs else -1
        for batches in self.producers.values():
            while batches and batches[-1][0] >= end:
                batches.pop()


class Partition:
    """One partition: its replicas, its leaders by epoch, and the last rows about it."""

    __slots__ = (
        "assigned",
        "began",
        "chains",
        "change",
        "cleaned_below",
        "committer",
        "configurations",
        "excuse",
        "holes",
        "lapsed",
        "leaders",
        "name",
        "positions",
        "reached",
        "recent",
        "removed_below",
        "replicas",
        "watermark",
    )  # fmt: skip

    def __init__(self, topic: str, partition: int) -> None:
        self.name = f"{topic}-{partition}"
        self.replicas: dict[NodeId, Replica] = {}
        self.assigned: tuple[NodeId, ...] = ()
        """Replicas as the controller last committed them."""
        self.configurations: dict[LeaderEpoch, RaftConfigurationsRow] = {}
        """The last configuration of the Raft group in the log of each term's leader."""
        self.change: PartitionChangesRow | None = None
        """Last state committed by a controller."""
        self.leaders: dict[LeaderEpoch, NodeId] = {}
        self.began: list[tuple[LeaderEpoch, Offset]] = []
        """Log end of each epoch's leader at its election, in order of epoch."""
        self.reached: dict[LeaderEpoch, Offset] = {}
        """Highest high watermark that the leader of each epoch had."""
        self.watermark: Offset = 0
        """The true high watermark: the highest that any leader ever had."""
        self.committer: Replica | None = None
        """The leader that had it: its log below the watermark is committed."""
        self.excuse: str | None = None
        """Reason for which committed records may lawfully be missing; ``None`` without one."""
        self.lapsed: list[tuple[Replica, Offset, str]] = []
        """Replicas that lost uncommitted records, the end that their leader may still count, and
        the reason."""
        self.chains = Chains()
        self.cleaned_below: Offset = 0
        """Greatest cleaned offset of any replica: below, copies of batches may have gaps."""
        self.holes = IntervalSet()
        """Offsets missing between two segments in some replica's recovery: a copy may lack them."""
        self.removed_below: Offset = 0
        """Policy has removed records below on some replica: any other may remove them, too."""
        self.positions: dict[str, Offset] = {}
        """Next offset of each consumer within its present assignment."""
        self.recent: deque[tuple[str, Row]] = deque(maxlen=RECENT_ROWS)

    def replica(self, broker: NodeId) -> Replica:
        """The replica on a broker; a new empty one if the trace has no row of it yet."""
        replica = self.replicas.get(broker)
        if replica is None:
            replica = self.replicas[broker] = Replica(broker)
        return replica

    def lost(self, replica: Replica, end: Offset, at: Micros) -> None:
        """Handles records that a replica lost: an excuse if they are committed, now or later."""
        why = loss(replica.broker, at)
        if self.excuse is None and end < self.watermark:
            self.excuse = why
        elif end < replica.log_end:
            self.lapsed.append((replica, replica.log_end, why))

    def count_lapsed(self, reached: Offset) -> None:
        """Commits up to the offset, perhaps by records that replicas have lost since."""
        for replica, promised, why in self.lapsed:
            if self.excuse is None and replica.log_end < reached <= promised:
                self.excuse = why

    def committed_before(self, epoch: LeaderEpoch) -> Offset:
        """High watermark of earlier epochs' leaders; a leader may get its own epoch late."""
        if max(self.reached, default=-1) < epoch:
            return self.watermark
        return max((end for known, end in self.reached.items() if known < epoch), default=0)

    def commit(self, watermark: Offset, leader: Replica) -> None:
        """Sets a leader's high watermark; the true one never decreases."""
        if watermark > self.watermark:
            self.watermark = watermark
            self.committer = leader

    def is_committed(self, start: Offset, end: Offset, epoch: LeaderEpoch) -> bool:
        """True if any offset in [start, end) is committed with that epoch."""
        if self.committer is None:
            return False
        end = min(end, self.watermark)
        stop = end
        for begin, own in reversed(self.committer.epochs):
            if own == epoch and max(begin, start) < min(stop, end):
                return True
            stop = min(stop, begin)
        return False

    def lowest_end(self) -> Offset:
        """Smallest log end of the assigned replicas, those without any append included."""
        known = self.replicas
        brokers = self.assigned or tuple(known)
        return min((known[b].log_end if b in known else 0 for b in brokers), default=0)


def loss(broker: NodeId, at: Micros) -> str:
    """Excuse of a broken invariant after a crash that lost committed bytes."""
    name = server_name(broker)
    return f"{name} lost bytes below the high watermark, seen at {show_instant(at)}"
