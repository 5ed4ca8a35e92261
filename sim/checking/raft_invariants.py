"""What must hold where each partition's replicas are a Raft group, beside the other invariants.

That a term has one leader and that logs match is said by ``one-leader-per-epoch`` and
``logs-match``, for a leader epoch is a term, and every leader writes in its own.
"""

from typing import Final

from sim.checking.invariant import Invariant
from sim.checking.observer import Observer, Partition, Replica
from sim.checking.rows import WatermarkRow
from sim.ids import server_name


class CommitNeedsMajority(Invariant):
    """What the leader believes of its followers is held against what they have appended."""

    name = "raft-commit-needs-majority"
    sentence = (
        "The high watermark moves only to where the logs of a majority of replicas have been."
    )
    source = "Raft, section 5.3; Redpanda's consensus::do_maybe_update_leader_commit_idx"
    conditions = "cluster.replication: raft, and no replica has lost records"

    def _watch(self, observer: Observer) -> None:
        observer.watermarks.append(self._leader)

    def _leader(self, partition: Partition, _replica: Replica, row: WatermarkRow) -> None:
        if partition.excuse is not None:
            self.suspend(partition.excuse)
            return
        self.checked += 1
        assigned = partition.assigned
        known = partition.replicas
        ends = [known[broker].log_end if broker in known else 0 for broker in assigned]
        have = sum(end >= row[5] for end in ends)
        if have <= len(assigned) // 2:
            found = f"moves to {row[5]}, the logs of {list(assigned)} end at {ends}"
            raise self.broken(row[0], server_name(row[1]), found, partition)


RAFT_INVARIANTS: Final[tuple[type[Invariant], ...]] = (CommitNeedsMajority,)
"""Every invariant of its own kind."""
