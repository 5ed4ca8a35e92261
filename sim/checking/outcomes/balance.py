"""Balance of replicas and leaders over the brokers at the end of a run."""

from collections.abc import Iterable

from sim.ids import NodeId, server_name
from sim.trace.listed import brokers_in
from sim.trace.rows.cluster import (
    BrokerStates,
    BrokerStatesRow,
    PartitionChanges,
    PartitionChangesRow,
    TopicDeletions,
    TopicDeletionsRow,
)


class Balance:
    """Counts from the controller's committed decisions, of all topics, internal ones among them."""

    def __init__(self) -> None:
        self._partitions: dict[tuple[str, int], tuple[NodeId, tuple[NodeId, ...]]] = {}
        self._states: dict[NodeId, str] = {}

    def change(self, row: PartitionChangesRow) -> None:
        """Sets a partition's leader and replicas."""
        key = row[PartitionChanges.TOPIC], row[PartitionChanges.PARTITION]
        replicas = brokers_in(row[PartitionChanges.REPLICAS])
        self._partitions[key] = row[PartitionChanges.LEADER], replicas

    def deletion(self, row: TopicDeletionsRow) -> None:
        """Removes a deleted topic."""
        for key in [key for key in self._partitions if key[0] == row[TopicDeletions.TOPIC]]:
            del self._partitions[key]

    def state(self, row: BrokerStatesRow) -> None:
        """Follows a broker into service, or out of it."""
        self._states[row[BrokerStates.BROKER]] = row[BrokerStates.STATE]

    def report(self) -> dict[str, object]:
        """Counts of each broker in service, and their spread; empty without brokers."""
        live = sorted(broker for broker, state in self._states.items() if state == "unfenced")
        if not live:
            return {}
        replicas = dict.fromkeys(live, 0)
        leaders = dict.fromkeys(live, 0)
        for leader, holders in self._partitions.values():
            for broker in holders:
                if broker in replicas:
                    replicas[broker] += 1
            if leader in leaders:
                leaders[leader] += 1
        return {
            "replicas_spread": _spread(replicas.values()),
            "leaders_spread": _spread(leaders.values()),
            "brokers": {
                server_name(b): {"replicas": replicas[b], "leaders": leaders[b]} for b in live
            },
        }


def _spread(counts: Iterable[int]) -> int:
    """The largest less the smallest."""
    return max(counts) - min(counts)
