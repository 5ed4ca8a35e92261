"""Estimate of a run: bytes on the disk from its scenario alone, time and memory on a machine.

Unit costs are those of a reference, fitted to seventy runs of shipped scenarios. What a machine
adds is how long one workload takes it against the reference, and the memory that it needs without
load (:func:`sim.bench.speed`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from sim.checking.outcomes.latency import BATCHES_KEPT
from sim.scenario.estimate.storage import Storage, storage
from sim.scenario.estimate.traffic import Work, work
from sim.scenario.scenario import Scenario
from sim.trace.schema import BY_NAME, Level
from sim.units import KIB, MIB, SECOND, Bytes

IMPORTED_S: Final = 1.2
"""Seconds of the reference until the simulator is loaded."""

_START_S: Final = 1.2
"""Seconds of its boot, and of the verdict."""

_REQUEST_S: Final = 70e-6
_APPEND_S: Final = 55e-6
"""Of a batch on one replica, its checks and rows included."""

_PACKED_S: Final = 250e-6
"""Of a compressed batch, beyond one that is not."""

_RECORD_S: Final = 0.3e-6
_BYTE_S: Final = 8e-9
"""Of a byte on one replica: built, written, and hashed for the disk digest."""

_REPLICA_S: Final = 5.5e-3
_UNWRITTEN: Final = 0.85
"""Time of a run at level ``facts`` against one at level ``detail``."""

_REQUEST_BYTES: Final[Bytes] = 600
_RECORD_BYTES: Final[Bytes] = 25
_BATCH_BYTES: Final[Bytes] = 210
"""Of a batch whose instants are no longer kept: what the verdict keeps of its outcome."""

_SERVER_BYTES: Final[Bytes] = 3_500 * KIB

BASE_BYTES: Final[Bytes] = 160 * MIB
"""Memory of a run without any load, of the reference."""


@dataclass(frozen=True, slots=True)
class Speed:
    """A machine against the reference."""

    factor: float = 1.0
    """Its time for the same work, in that of the reference."""
    base_bytes: Bytes = BASE_BYTES


@dataclass(frozen=True)
class Estimate:
    """Expected size of a run."""

    works: Sequence[tuple[Scenario, Work]]
    """Of the scenario's own cluster, then of the others."""
    level: Level
    disk: Storage

    @cached_property
    def records(self) -> float:
        """Sent by clients."""
        return sum(work.records for _, work in self.works)

    @cached_property
    def batches(self) -> float:
        """Of clients."""
        return sum(work.batches for _, work in self.works)

    @cached_property
    def requests(self) -> float:
        """Answered by servers."""
        return sum(work.requests for _, work in self.works)

    @cached_property
    def appends(self) -> float:
        """Batches written to the log of a replica."""
        return sum(work.rows["appends"] for _, work in self.works)

    @cached_property
    def replicas(self) -> int:
        """Directories of partitions, of Kafka's own topics too."""
        return sum(work.replicas for _, work in self.works)

    @cached_property
    def rows(self) -> float:
        """Rows of the trace that are written."""
        return sum(
            rows
            for _, work in self.works
            for table, rows in work.rows.items()
            if self.level == "detail" or table not in BY_NAME or BY_NAME[table].level == "facts"
        )

    def run_seconds(self, speed: Speed) -> float:
        """Real time of the run in a process that has loaded the simulator."""
        work_s = self.requests * _REQUEST_S + self.appends * _APPEND_S
        work_s += self.records * _RECORD_S + self.disk.appended * _BYTE_S
        flows = [flow for _, work in self.works for flow in work.flows]
        work_s += sum(flow.batches for flow in flows if flow.is_packed) * _PACKED_S
        if self.level == "facts":
            work_s *= _UNWRITTEN
        return speed.factor * (_START_S + self.replicas * _REPLICA_S + work_s)

    def seconds(self, speed: Speed) -> float:
        """Real time of ``logquake run``, without ``--report``."""
        return speed.factor * IMPORTED_S + self.run_seconds(speed)

    def memory(self, speed: Speed) -> Bytes:
        """Peak memory of the process."""
        return speed.base_bytes + self.load_bytes

    @cached_property
    def load_bytes(self) -> Bytes:
        """Memory for this load, beyond that of a run without any."""
        servers = sum(len(scenario.cluster.servers) for scenario, _ in self.works)
        pages = sum(_dirty(scenario, work) for scenario, work in self.works)
        recent = min(1.0, BATCHES_KEPT / max(1.0, self.batches))
        objects = recent * (self.requests * _REQUEST_BYTES + self.records * _RECORD_BYTES)
        objects += (1 - recent) * self.batches * _BATCH_BYTES
        return round(0.9 * pages + objects + servers * _SERVER_BYTES)


def estimate(scenario: Scenario, level: Level = "detail") -> Estimate:
    """Estimates a run without running anything; some milliseconds.

    Args:
        scenario: What would be run.
        level: Of its trace.
    """
    works = work(scenario)
    return Estimate(works, level, storage(works, level))


def _dirty(scenario: Scenario, work: Work) -> float:
    """Bytes that only the simulated page caches hold: replicas share those of one batch."""
    disk = scenario.cluster.disk
    brokers = len(scenario.cluster.brokers)
    lasts_s = max(1.0, scenario.run.for_us / SECOND)
    window_s = min(lasts_s, (disk.dirty_expire_us + disk.dirty_writeback_us) / SECOND)
    once = sum(size for size, _ in work.topics.values())
    appended = storage([(scenario, work)], "facts").appended
    if not once:
        return 0.0
    of_each = min(float(disk.dirty_background_bytes), appended / brokers * window_s / lasts_s)
    return of_each * brokers * once / max(once, appended)
