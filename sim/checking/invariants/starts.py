"""Where a log may begin: policy takes away what is committed, and nothing else."""

from sim.checking.invariant import Invariant
from sim.checking.observer import Observer, Partition, Replica
from sim.checking.outcomes.policy import POLICIES
from sim.checking.rows import LogStartRow
from sim.ids import Offset, server_name


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

    def _moved(self, partition: Partition, _replica: Replica, row: LogStartRow) -> None:
        if row[6] not in POLICIES:
            return
        self.checked += 1
        if row[5] > partition.watermark or row[5] < row[4]:
            found = (
                f"log start {row[4]} → {row[5]} ({row[6]}); offsets below {partition.watermark} "
                "are committed"
            )
            raise self.broken(row[0], server_name(row[1]), found, partition)


class StartsFollowTheLeader(Invariant):
    """A follower's log start, which it learns from a leader's answer."""

    name = "log-start-behind-leader"
    sentence = "A follower takes no log start that no replica had by policy, a request or a jump."
    source = "AbstractFetcherThread.processPartitionData, UnifiedLog.maybeIncrementLogStartOffset"

    def __init__(self) -> None:
        super().__init__()
        self._highest: dict[str, Offset] = {}

    def _watch(self, observer: Observer) -> None:
        observer.log_starts.append(self._moved)

    def _moved(self, partition: Partition, _replica: Replica, row: LogStartRow) -> None:
        highest = self._highest.get(partition.name, 0)
        if row[6] != "leader":
            self._highest[partition.name] = max(highest, row[5])
            return
        self.checked += 1
        if row[5] > highest:
            found = f"log start {row[4]} → {row[5]} from the leader; the highest known is {highest}"
            raise self.broken(row[0], server_name(row[1]), found, partition)
