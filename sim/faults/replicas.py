"""Faults of one replica of one topic partition: its files are gone, or a bit of them has flipped.

Source: the failure catalogue B8, B9.
"""

from sim.faults.action import Evidence
from sim.faults.spec import Fault
from sim.faults.surface import Broker
from sim.ids import TopicPartition


class ReplicaFault:
    """Done in an instant; there is nothing to heal."""

    def __init__(self, broker: Broker, partition: TopicPartition, fault: Fault) -> None:
        self._broker = broker
        self._partition = partition
        self._lose = fault.kind == "lost-replica"
        self._done = False

    def begin(self) -> None:
        """Lose or corrupt the replica."""
        broker, partition = self._broker, self._partition
        act = broker.lose_replica if self._lose else broker.corrupt_replica
        self._done = act(partition)

    def heal(self) -> bool:
        """Nothing to do."""
        return True

    def evidence(self) -> Evidence:
        """Whether there was a replica with bytes in it."""
        where = f"{self._partition} on {self._broker.name}"
        if not self._done:
            return Evidence(took_effect=False, effect=f"no bytes of {where}")
        verb = "files removed" if self._lose else "a bit flipped"
        return Evidence(took_effect=True, effect=f"{verb}: {where}")
