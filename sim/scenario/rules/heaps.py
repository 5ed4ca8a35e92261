"""A broker's heap, and the clients that fill it: rules of both.

Source: the failure catalogue, D11; ``kafka-server-start.sh`` (``KAFKA_HEAP_OPTS``).
"""

from typing import Final

from sim.scenario.model.clients import ProducerModel
from sim.scenario.model.machines import HeapModel
from sim.scenario.text.problems import Problem
from sim.scenario.text.quantities import show_bandwidth, show_size
from sim.substrate.heap import TIGHT
from sim.units import Bytes

SIZE_MAX: Final[Bytes] = 16 * 10**12
"""No collector of HotSpot's takes a larger one (``ZHeapSize`` ends at 16 TB)."""

COLLECTED_MIN: Final = 10**6
"""Bytes a second: a collection of the largest heap then ends within half a year."""


def check_heap(heap: HeapModel | None, replication: str) -> None:
    """Check every broker's heap, if there is one.

    Raises:
        Problem: With a path that starts below ``heap``.
    """
    if heap is None:
        return
    if replication == "raft":
        raise Problem(
            (),
            "heap with cluster.replication: raft, whose brokers have no JVM",
            "cluster.replication: isr",
            "leave it out",
        )
    size = heap.size_bytes
    if not 0 < size <= SIZE_MAX:
        raise Problem(("size",), show_size(size), "more than 0B, at most 16TB")
    if heap.used_bytes * 100 > size * TIGHT:
        raise Problem(
            ("used",),
            f"{show_size(heap.used_bytes)} of {show_size(size)}: no broker could work",
            f"at most {TIGHT} percent of size",
            "raise size, or lower used",
        )
    for key, taken in (
        ("per.producer.id", heap.producer_bytes),
        ("per.connection", heap.connection_bytes),
        ("per.request", heap.request_bytes),
    ):
        if taken > size:
            raise Problem((key,), show_size(taken), f"at most size, {show_size(size)}")
    if heap.collected_bytes_per_s < COLLECTED_MIN:
        raise Problem(("collection",), show_bandwidth(heap.collected_bytes_per_s), "at least 1MB/s")


def check_per_request(model: ProducerModel) -> None:
    """Check a producer that is made for each record.

    Raises:
        Problem: With a path that starts below the producer.
    """
    if model.per_request and model.transaction is not None:
        raise Problem(
            ("producer.per",),
            "request beside transaction",
            "process",
            "a transaction needs one producer from its beginning to its end",
        )
