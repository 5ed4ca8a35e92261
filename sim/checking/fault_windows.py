"""Produce latency in normal times, and within the window of each fault.

A fault's window begins with it. It ends when the fault is healed, every broker serves again and
every partition has all its replicas in sync (``UnderReplicatedPartitions`` is 0), and the outages
of producers in it have ended. What lies outside of all windows is normal. Windows may
overlap; a record counts in each that holds the instant at which it was meant to be sent, to within
a bin of :mod:`sim.checking.latency_bins`.

Left out: windows of more than :data:`WINDOWS_MAX` faults, of components that fail by chance. Their
time is not normal, and they have no distribution of their own.
"""

from bisect import bisect_right
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, TypedDict, cast

from sim.checking.latency_bins import LatencyBins
from sim.ids import server_name
from sim.trace.rows.cluster import (
    BrokerStates,
    BrokerStatesRow,
    NodeStates,
    NodeStatesRow,
    PartitionChanges,
    PartitionChangesRow,
    TopicDeletions,
    TopicDeletionsRow,
)
from sim.trace.rows.log import ClientBatches, ClientBatchesRow
from sim.trace.rows.run import Faults, FaultsRow
from sim.trace.writer import Listener, Trace
from sim.units import NEVER, Micros

WINDOWS_MAX: Final = 50
"""Faults that have a distribution of their own."""

_DOWN: Final = ("crashed", "powered_off", "stopped", "failed", "paused", "started")

Outage = tuple[Micros, Micros]
"""Beginning and end of a time in which a partition acknowledged nothing that waited."""


class WindowReport(TypedDict):
    """One fault's window, and the latency of what was meant to be sent within it."""

    fault: int
    from_us: Micros
    to_us: Micros
    down_us: Micros
    """The longest part of an outage of a partition's producers within it; 0 without one."""
    produce: dict[str, int]
    """As ``latency_us`` of the verdict; empty if nothing of it was acknowledged."""


class WindowsReport(TypedDict):
    """``windows`` of the verdict."""

    normal: dict[str, int]
    faults: list[WindowReport]


@dataclass(slots=True)
class _Window:
    fault: int
    from_us: Micros
    to_us: Micros = NEVER
    """Instant at which the fault was healed; NEVER before."""


class FaultWindows:
    """Listens to a trace.

    Args:
        trace: The trace; attached before the first row.
    """

    def __init__(self, trace: Trace) -> None:
        self._bins = LatencyBins()
        self._windows: list[_Window] = []
        self._open: dict[int, _Window] = {}
        """Windows of faults that are not healed, by their numbers."""
        self._unwell: dict[str, None] = {}
        """Brokers that do not serve and partitions without all replicas in sync."""
        self._well_since: list[tuple[Micros, Micros]] = []
        """Stretches in which nothing was unwell; the last one is open."""
        self._well_from: Micros = -NEVER
        for name, listener in {
            "client_batches": self._batch,
            "faults": self._fault,
            "partition_changes": self._change,
            "topic_deletions": self._deletion,
            "node_states": self._state,
            "broker_states": self._registration,
        }.items():
            # The schema gives each row its shape; the trace itself carries rows of any.
            trace.table(name).listeners.append(cast("Listener", listener))

    def report(
        self, end_us: Micros, outages: Sequence[Outage] = (), instants: Collection[int] = ()
    ) -> WindowsReport:
        """Distributions of normal times and of each window.

        Args:
            end_us: End of the run.
            outages: Of the producers, in any order.
            instants: Faults without duration, by their numbers: they heal as they begin.
        """
        for window in self._windows:
            if window.fault in instants:
                window.to_us = window.from_us
        well = self._stretches()
        windows = [
            _Window(w.fault, w.from_us, _end(w, well, end_us, outages)) for w in self._windows
        ]

        def is_normal(begin: Micros, end: Micros) -> bool:
            return not any(w.from_us < end and begin < w.to_us for w in windows)

        faults = [
            WindowReport(
                fault=w.fault,
                from_us=w.from_us,
                to_us=w.to_us,
                down_us=_longest(w, outages),
                produce=self._within(w),
            )
            for w in windows[:WINDOWS_MAX]
        ]
        return WindowsReport(normal=self._bins.histogram(is_normal).summary(), faults=faults)

    def _within(self, window: _Window) -> dict[str, int]:
        return self._bins.histogram(
            lambda begin, end: window.from_us < end and begin < window.to_us
        ).summary()

    def _stretches(self) -> list[tuple[Micros, Micros]]:
        now = [] if self._unwell else [(self._well_from, NEVER)]
        return self._well_since + now

    def _set(self, what: str, at: Micros, *, is_well: bool) -> None:
        was_well = not self._unwell
        if is_well:
            self._unwell.pop(what, None)
        else:
            self._unwell[what] = None
        if was_well and self._unwell:
            self._well_since.append((self._well_from, at))
        elif not was_well and not self._unwell:
            self._well_from = at

    def _batch(self, row: ClientBatchesRow) -> None:
        if row[ClientBatches.OUTCOME] == "ok":
            self._bins.add(row[ClientBatches.T_US], row[ClientBatches.LATENCY_US])

    def _fault(self, row: FaultsRow) -> None:
        number, at, phase = row[Faults.FAULT], row[Faults.T_US], row[Faults.PHASE]
        if phase == "began" and row[Faults.RESOLVED]:
            window = self._open[number] = _Window(number, at)
            self._windows.append(window)
        elif phase == "healed":
            healed = self._open.get(number)
            if healed is not None:
                healed.to_us = at
                del self._open[number]

    def _change(self, row: PartitionChangesRow) -> None:
        name = f"{row[PartitionChanges.TOPIC]}-{row[PartitionChanges.PARTITION]}"
        in_sync = row[PartitionChanges.IN_SYNC].count(",") + bool(row[PartitionChanges.IN_SYNC])
        replicas = row[PartitionChanges.REPLICAS].count(",") + 1
        self._set(name, row[PartitionChanges.T_US], is_well=in_sync >= replicas)

    def _deletion(self, row: TopicDeletionsRow) -> None:
        topic = row[TopicDeletions.TOPIC]
        for name in [name for name in self._unwell if name.rpartition("-")[0] == topic]:
            self._set(name, row[TopicDeletions.T_US], is_well=True)

    def _state(self, row: NodeStatesRow) -> None:
        node, state = row[NodeStates.NODE], row[NodeStates.STATE]
        if node.startswith("broker-") and (state in _DOWN or state == "resumed"):
            self._set(f"{node}:", row[NodeStates.T_US], is_well=state == "resumed")

    def _registration(self, row: BrokerStatesRow) -> None:
        if row[BrokerStates.STATE] == "unfenced":
            name = f"{server_name(row[BrokerStates.BROKER])}:"
            self._set(name, row[BrokerStates.T_US], is_well=True)


def _end(
    window: _Window, well: Sequence[Outage], end_us: Micros, outages: Sequence[Outage]
) -> Micros:
    healed = min(window.to_us, end_us)
    after = bisect_right(well, healed, key=_to)
    again = max(well[after][0], healed) if after < len(well) else end_us
    last = [to for begin, to in outages if begin < again and window.from_us < to]
    return min(max(again, max(last, default=again)), end_us)


def _to(stretch: Outage) -> Micros:
    return stretch[1]


def _longest(window: _Window, outages: Sequence[Outage]) -> Micros:
    within = [
        min(to, window.to_us) - max(begin, window.from_us)
        for begin, to in outages
        if begin < window.to_us and window.from_us < to
    ]
    return max(within, default=0)
