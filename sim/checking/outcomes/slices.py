"""Numbers of a part of a run: a window of time, a topic, a partition, a group, a producer.

A window selects the records that were *meant to be sent* in it: one that was due at 34 s and
written at 45 s belongs to 34 s, with its eleven seconds. Of gaps and samples it takes its part. A
group has the deliveries to its own members, a producer its own records. Throughput is of records
whose acknowledgement lies in the window. A slice listens to the trace only if a scenario uses
it; it keeps the latencies of its records (four bytes each) if end-to-end times are used.
"""

from typing import Final, cast

import numpy as np
from numpy.typing import NDArray

from sim.checking.interval_set import IntervalSet, size
from sim.checking.outcomes.histogram import Histogram
from sim.checking.outcomes.offline import OfflinePartitions, longest
from sim.checking.outcomes.scoped.changes import Changes
from sim.checking.outcomes.service import PartitionService
from sim.checking.outcomes.transactions import common
from sim.checking.scope import Scope
from sim.trace.rows.clients import Reads, ReadsRow
from sim.trace.rows.cluster import PartitionChanges, PartitionChangesRow, TopicDeletionsRow
from sim.trace.rows.log import ClientBatches, ClientBatchesRow
from sim.trace.rows.run import LagRow
from sim.trace.writer import Listener, Trace
from sim.units import NEVER, SECOND, Micros

Key = tuple[str, int, int]
"""Topic, partition, producer index: the scope of record numbers."""

Lost = dict[Key, IntervalSet]
"""Record numbers that were acknowledged and lost."""

_OUTCOMES: Final = {"ok": "acked", "failed": "failed", "unknown": "unknown"}


class Slice:
    """Listens for one scope.

    Args:
        trace: Trace to listen to; attached before the first row.
        scope: Selects its rows.
        keep_latencies: Whether end-to-end times will be used.
        load_us: End of the workload, with which throughput ends.
    """

    def __init__(
        self, trace: Trace, scope: Scope, *, keep_latencies: bool, load_us: Micros = NEVER
    ) -> None:
        self.scope = scope
        self._load = max(0, scope.from_us), min(scope.to_us, load_us)
        self._keep = keep_latencies
        self._counts = dict.fromkeys(("sent", *_OUTCOMES.values()), 0)
        self._acked: Lost = {}
        self._produce = Histogram()
        self._services: dict[tuple[str, int], PartitionService] = {}
        self._batches: dict[Key, list[tuple[int, Micros, NDArray[np.int32]]]] = {}
        self._reads: list[tuple[Key, int, int, Micros]] = []
        self._lag_max = -1
        self._offline = OfflinePartitions()
        self._changes = Changes(max(0, scope.from_us), scope.to_us)
        self._served = [0, 0]
        """Records and bytes acknowledged in the window."""
        for name, listener in {
            "client_batches": self._batch,
            "reads": self._read,
            "lag": self._lag,
            "partition_changes": self._change,
            "topic_deletions": self._deletion,
            "quorum": self._changes.quorum,
            "controllers": self._changes.controller,
            "node_states": self._offline.state,
            "broker_states": self._offline.registration,
        }.items():
            # The schema gives each row its shape; the trace itself carries rows of any.
            trace.table(name).listeners.append(cast("Listener", listener))

    def report(self, lost: Lost, end_us: Micros) -> dict[str, object]:
        """The numbers, in the verdict's structure; of counts those with an instant.

        Args:
            lost: Losses that the judge found.
            end_us: End of the run.
        """
        records = self._counts | {
            "lost_acked": sum(
                size(common(acked, lost[key])) for key, acked in self._acked.items() if key in lost
            )
        }
        found: dict[str, object] = {
            "records": records,
            "latency_us": {
                "produce": self._produce.summary(),
                "end_to_end": self._end_to_end().summary(),
            },
            "availability": self._availability() | self._without_leader(end_us),
            "throughput": self._throughput(end_us),
            "changes": self._changes.report(),
        }
        if self._lag_max >= 0:
            found["groups"] = {"lag_max": self._lag_max}
        return found

    def _is_mine(self, topic: str, partition: int) -> bool:
        scope = self.scope
        return (not scope.topic or topic == scope.topic) and scope.partition in (-1, partition)

    def _service(self, topic: str, partition: int) -> PartitionService:
        return self._services.setdefault((topic, partition), PartitionService())

    def _batch(self, row: ClientBatchesRow) -> None:
        topic, partition = row[ClientBatches.TOPIC], row[ClientBatches.PARTITION]
        scope = self.scope
        if not self._is_mine(topic, partition):
            return
        if scope.clients and row[ClientBatches.PRODUCER] not in scope.clients:
            return
        self._service(topic, partition).batch(row)
        at, latencies = row[ClientBatches.T_US], row[ClientBatches.LATENCY_US]
        if row[ClientBatches.OUTCOME] == "ok" and self._load[0] <= at < self._load[1]:
            self._served[0] += row[ClientBatches.RECORD_COUNT]
            self._served[1] += row[ClientBatches.SIZE_BYTES]
        meant = at - latencies.astype(np.int64)
        # Records join a batch in the order of their instants.
        low, high = np.searchsorted(meant, (self.scope.from_us, self.scope.to_us))
        start, stop = int(low), int(high)
        if start >= stop:
            return
        outcome, first = row[ClientBatches.OUTCOME], row[ClientBatches.FIRST_RECORD]
        self._counts["sent"] += stop - start
        self._counts[_OUTCOMES[outcome]] += stop - start
        key = (topic, partition, row[ClientBatches.PRODUCER_INDEX])
        inside = latencies[start:stop]
        if outcome == "ok":
            self._produce.add(inside)
            self._acked.setdefault(key, IntervalSet()).add(first + start, first + stop)
        if self._keep:
            self._batches.setdefault(key, []).append((first + start, at, inside))

    def _read(self, row: ReadsRow) -> None:
        topic, partition = row[Reads.TOPIC], row[Reads.PARTITION]
        if not self._is_mine(topic, partition):
            return
        if self.scope.group not in ("", row[Reads.GROUP]):
            return
        self._service(topic, partition).read(row)
        producer = row[Reads.PRODUCER_INDEX]
        if self._keep and producer >= 0:
            first, count = row[Reads.FIRST_RECORD], row[Reads.RECORD_COUNT]
            self._reads.append(((topic, partition, producer), first, count, row[Reads.T_US]))

    def _lag(self, row: LagRow) -> None:
        at, group, topic, partition, position, _, high_watermark = row
        if (
            self._is_mine(topic, partition)
            and self.scope.group in ("", group)
            and self.scope.from_us <= at < self.scope.to_us
            and position >= 0 <= high_watermark
        ):
            self._lag_max = max(self._lag_max, high_watermark - position)

    def _end_to_end(self) -> Histogram:
        """End-to-end times of every record of the slice, at each read."""
        found = Histogram()
        starts: dict[Key, NDArray[np.int64]] = {}
        for key, batches in self._batches.items():
            batches.sort(key=lambda batch: batch[:2])
            starts[key] = np.array([first for first, _, _ in batches], dtype=np.int64)
        for key, first, count, at in self._reads:
            if key not in starts:
                continue
            batches = self._batches[key]
            place = max(int(np.searchsorted(starts[key], first, side="right")) - 1, 0)
            while place < len(batches) and batches[place][0] < first + count:
                base, outcome_at, latencies = batches[place]
                low, high = max(first - base, 0), first + count - base
                if low < len(latencies):
                    found.add(latencies[low:high], at - outcome_at)
                place += 1
        return found

    def _change(self, row: PartitionChangesRow) -> None:
        if self._is_mine(row[PartitionChanges.TOPIC], row[PartitionChanges.PARTITION]):
            self._offline.change(row)
            self._changes.change(row)

    def _deletion(self, row: TopicDeletionsRow) -> None:
        self._offline.deletion(row)
        self._changes.deletion(row)

    def _throughput(self, end_us: Micros) -> dict[str, object]:
        """Rates over the window, as far as the workload reaches, whole numbers a second."""
        start, stop = self._load
        lasts = min(stop, end_us) - start
        if lasts <= 0:
            return {}
        records, size = (count * SECOND // lasts for count in self._served)
        return {"records_per_s": records, "bytes_per_s": size}

    def _without_leader(self, end_us: Micros) -> dict[str, object]:
        offline = self._offline.report(end_us, self.scope.from_us, self.scope.to_us)
        return {"offline_max_us": longest(offline), "offline": offline}

    def _availability(self) -> dict[str, object]:
        scope = self.scope
        found: dict[str, object] = {}
        for name, (topic, partition) in ((f"{t}-{p}", (t, p)) for t, p in sorted(self._services)):
            report = self._services[topic, partition].report(scope.from_us, scope.to_us)
            for kind in ("produce", "fetch"):
                gap, so_far = report.get(f"{kind}_us"), found.get(f"{kind}_max_us")
                if gap is not None and (so_far is None or gap > cast("int", so_far)):
                    found |= {
                        f"{kind}_max_us": gap,
                        f"{kind}_max_from_us": report[f"{kind}_from_us"],
                        f"{kind}_max_of": name,
                    }
        return found
