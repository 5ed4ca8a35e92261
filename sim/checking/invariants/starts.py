"""Invariants of log starts: policy removes committed records, and nothing else."""

from typing import Final

from sim.checking.invariant import Invariant
from sim.checking.observer import Observer
from sim.checking.outcomes.policy import POLICIES
from sim.checking.partition import Partition, Replica
from sim.ids import Offset
from sim.trace.rows.log import LogStarts, LogStartsRow


class StartIsCommitted(Invariant):
    """Rule S5, its first part."""

    name = "log-start-is-committed"
    sentence = (
        "Retention and DeleteRecords move a log start forward, and never above the true high "
        "watermark."
    )
    source = "S5; UnifiedLog.deletableSegments, UnifiedLog.maybeIncrementLogStartOffset"

    def _watch(self, observer: Observer) -> None:
        observer.log_starts.append(self._moved)

    def _moved(self, partition: Partition, _replica: Replica, row: LogStartsRow) -> None:
        reason = row[LogStarts.REASON]
        if reason not in POLICIES:
            return
        self.checked += 1
        before, after = row[LogStarts.FROM_OFFSET], row[LogStarts.TO_OFFSET]
        if after > partition.watermark or after < before:
            found = (
                f"log start {before} → {after} ({reason}); offsets below {partition.watermark} "
                "are committed"
            )
            raise self.broken_by(row, found, partition)


class StartsFollowTheLeader(Invariant):
    """A follower's log start, which it gets in a leader's response."""

    name = "log-start-behind-leader"
    sentence = "A follower takes no log start that no replica had by policy, a request or a jump."
    source = "AbstractFetcherThread.processPartitionData, UnifiedLog.maybeIncrementLogStartOffset"

    def __init__(self) -> None:
        super().__init__()
        self._highest: dict[str, Offset] = {}

    def _watch(self, observer: Observer) -> None:
        observer.log_starts.append(self._moved)

    def _moved(self, partition: Partition, _replica: Replica, row: LogStartsRow) -> None:
        highest = self._highest.get(partition.name, 0)
        before, after = row[LogStarts.FROM_OFFSET], row[LogStarts.TO_OFFSET]
        if row[LogStarts.REASON] != "leader":
            self._highest[partition.name] = max(highest, after)
            return
        self.checked += 1
        if after > highest:
            found = f"log start {before} → {after} from the leader; the highest known is {highest}"
            raise self.broken_by(row, found, partition)


START_INVARIANTS: Final[tuple[type[Invariant], ...]] = (
    StartIsCommitted,
    StartsFollowTheLeader,
)
"""Invariants of log start offsets."""
