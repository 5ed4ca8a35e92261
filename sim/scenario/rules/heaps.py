"""A broker's heap, and the clients that fill it: what a scenario may ask for.

Source: the failure catalogue, D11; ``kafka-server-start.sh`` (``KAFKA_HEAP_OPTS``).
"""

from typing import Final

from sim.scenario.model.parts import HeapSpec
from sim.scenario.schema.file import HeapModel, ProducerModel
from sim.scenario.text.problems import Problem
from sim.scenario.text.quantities import show_bandwidth, show_size
from sim.substrate.heap import TIGHT
from sim.units import Bytes

SIZE_MAX: Final[Bytes] = 16 * 10**12
"""No collector of HotSpot's takes a larger one (``ZHeapSize`` ends at 16 TB)."""

COLLECTED_MIN: Final = 10**6
"""Bytes a second: a collection of the largest heap then ends within half a year."""


def heap_of(model: HeapModel | None, replication: str) -> HeapSpec | None:
    """Every broker's heap; ``None`` where memory has no end.

    Raises:
        Problem: With a path that starts below ``heap``.
    """
    if model is None:
        return None
    if replication == "raft":
        raise Problem(
            (),
            "heap with cluster.replication: raft, whose brokers have no JVM",
            "cluster.replication: isr",
            "leave it out",
        )
    if not 0 < model.size <= SIZE_MAX:
        raise Problem(("size",), show_size(model.size), "more than 0B, at most 16TB")
    if model.used * 100 > model.size * TIGHT:
        raise Problem(
            ("used",),
            f"{show_size(model.used)} of {show_size(model.size)}: no broker could work",
            f"at most {TIGHT} percent of size",
            "raise size, or lower used",
        )
    for key, taken in (
        ("per.producer.id", model.per_producer_id),
        ("per.connection", model.per_connection),
        ("per.request", model.per_request),
    ):
        if taken > model.size:
            raise Problem((key,), show_size(taken), f"at most size, {show_size(model.size)}")
    if model.collection < COLLECTED_MIN:
        raise Problem(("collection",), show_bandwidth(model.collection), "at least 1MB/s")
    return HeapSpec(
        model.size,
        model.used,
        model.per_producer_id,
        model.per_connection,
        model.per_request,
        model.collection,
    )


def per_request(model: ProducerModel) -> bool:
    """Whether a producer is made for each record.

    Raises:
        Problem: With a path that starts below the producer.
    """
    asked = model.producer_per == "request"
    if asked and model.transaction is not None:
        raise Problem(
            ("producer.per",),
            "request beside transaction",
            "process",
            "a transaction needs one producer from its beginning to its end",
        )
    return asked
