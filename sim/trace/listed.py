"""Columns that list brokers in one string, as ``in_sync``, ``replicas`` and ``voters`` do."""

from sim.ids import NodeId


def brokers_in(listed: str) -> tuple[NodeId, ...]:
    """Broker ids of such a column: whole numbers joined by commas, or nothing."""
    return tuple(int(broker) for broker in listed.split(",")) if listed else ()
