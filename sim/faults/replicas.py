"""Faults of one replica of one topic partition: its files are gone, or are not what was written.

Source: the failure catalogue B8, B9.
"""

from typing import Final

from sim.faults.action import Evidence
from sim.faults.spec import Fault
from sim.faults.surface import Broker
from sim.ids import TopicPartition

_DONE: Final[dict[str, str]] = {
    "lost-replica": "files removed",
    "corrupt-replica": "a bit flipped",
    "torn-write": "last batch torn",
    "misdirected-write": "a page overwritten",
}


class ReplicaFault:
    """Done in an instant; there is nothing to heal."""

    def __init__(self, broker: Broker, partition: TopicPartition, fault: Fault) -> None:
        self._broker = broker
        self._partition = partition
        self._kind = fault.kind
        self._done = False

    def begin(self) -> None:
        """Lose or damage the replica."""
        self._done = self._broker.damage_replica(self._kind, self._partition)

    def heal(self) -> bool:
        """Nothing to do."""
        return True

    def evidence(self) -> Evidence:
        """Whether there was a replica with bytes in it."""
        where = f"{self._partition} on {self._broker.name}"
        if not self._done:
            return Evidence(took_effect=False, effect=f"no bytes of {where}, or no room")
        return Evidence(took_effect=True, effect=f"{_DONE[self._kind]}: {where}")
