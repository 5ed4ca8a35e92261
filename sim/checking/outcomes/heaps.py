"""Use of brokers' heaps, and their collections."""

from typing import TypedDict

from sim.ids import NodeId, server_name
from sim.trace.rows.cluster import HeapsRow
from sim.units import Micros


class Filled(TypedDict):
    """One broker's heap, over all its processes."""

    used_max_percent: int
    """Greatest live share, rounded up."""
    collections: int
    """Number of pauses."""
    stopped_us: Micros
    """Sum of the pauses."""
    exhausted: int
    """Number of OutOfMemoryErrors."""


class Heaps:
    """Counts from rows of brokers' heaps; empty where heaps are unlimited."""

    def __init__(self) -> None:
        self._brokers: dict[NodeId, Filled] = {}

    def heap(self, row: HeapsRow) -> None:
        """Handles a row about a heap."""
        _, broker, event, live, size, _, _, pause = row
        known = self._brokers.get(broker)
        if known is None:
            known = self._brokers[broker] = Filled(
                used_max_percent=0, collections=0, stopped_us=0, exhausted=0
            )
        known["used_max_percent"] = max(known["used_max_percent"], -(-live * 100 // size))
        known["collections"] += event == "collection"
        known["stopped_us"] += pause
        known["exhausted"] += event == "out_of_memory"

    def report(self) -> dict[str, object]:
        """``heaps`` of the verdict: each broker, and the values for expectations; or nothing."""
        if not self._brokers:
            return {}
        every = list(self._brokers.values())
        return {
            "heaps": {
                "exhausted": sum(1 for each in every if each["exhausted"]),
                "used_max_percent": max(each["used_max_percent"] for each in every),
                "brokers": {server_name(b): self._brokers[b] for b in sorted(self._brokers)},
            }
        }
