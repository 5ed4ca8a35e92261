"""Further invariants where each partition's replicas are a Raft group.

``one-leader-per-epoch`` and ``logs-match`` cover leaders of terms and matching logs, as a leader
epoch is a term, and every leader writes in its own.
"""

from typing import Final

from sim.checking.invariant import Invariant
from sim.checking.observer import Observer
from sim.checking.partition import Partition, Replica
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
from sim.trace.rows.log import (
    HighWatermarks,
    HighWatermarksRow,
    RaftConfigurations,
    RaftConfigurationsRow,
)

Nodes = tuple[NodeId, ...]


class CommitNeedsMajority(Invariant):
    """Compares a leader's view of its followers with their appends.

    The leader's own log at that moment determines the electorate: the voters, and the old ones
    while members change; learners never.
    """

    name = "raft-commit-needs-majority"
    sentence = (
        "The high watermark moves only to where the logs of a majority of voters have been, and of "
        "a majority of the old voters while members change."
    )
    source = "Raft, sections 5.3 and 6; Redpanda's consensus::do_maybe_update_leader_commit_idx"
    conditions = "cluster.replication: raft, and no replica has lost records"

    def _watch(self, observer: Observer) -> None:
        observer.watermarks.append(self._leader)

    def _leader(self, partition: Partition, _replica: Replica, row: HighWatermarksRow) -> None:
        if partition.excuse is not None:
            self.suspend(partition.excuse)
            return
        term, watermark = row[HighWatermarks.LEADER_EPOCH], row[HighWatermarks.HIGH_WATERMARK]
        members = partition.configurations.get(term)
        if members is None:
            found = f"moves to {watermark} before the log has the members of term {term}"
            raise self.broken_by(row, found, partition)
        self.checked += 1
        known = partition.replicas
        for voters in electorates(members):
            ends = [known[broker].log_end if broker in known else 0 for broker in voters]
            if sum(end >= watermark for end in ends) <= len(voters) // 2:
                found = f"moves to {watermark}, the logs of {list(voters)} end at {ends}"
                raise self.broken_by(row, found, partition)


class OneChangeAtATime(Invariant):
    """Compares a leader's changes of its group's members with the previous ones."""

    name = "raft-one-change-at-a-time"
    sentence = (
        "A leader changes who is a member only when the last change is committed, and so that "
        "every majority before shares a voter with every majority after."
    )
    source = "Raft, section 6; Redpanda's consensus::change_configuration"
    conditions = "cluster.replication: raft"

    def _watch(self, observer: Observer) -> None:
        observer.configurations.append(self._configured)

    def _configured(
        self, partition: Partition, leader: Replica, row: RaftConfigurationsRow
    ) -> None:
        term = row[RaftConfigurations.LEADER_EPOCH]
        before = partition.configurations.get(term)
        if before is None:
            # The term begins with the log's latest configuration.
            return
        self.checked += 1
        at, where = row[RaftConfigurations.T_US], server_name(row[RaftConfigurations.BROKER])
        former_at, changed_at = before[RaftConfigurations.OFFSET], row[RaftConfigurations.OFFSET]
        committed = leader.watermark if leader.watermark_epoch == term else 0
        if committed <= former_at:
            found = f"changes at {changed_at}, the change at {former_at} is not committed"
            raise self.broken(at, where, found, partition)
        pairs = [(one, two) for one in electorates(before) for two in electorates(row)]
        if not any(_meet(one, two) for one, two in pairs):
            found = f"{_words(before)} becomes {_words(row)}: their majorities need not meet"
            raise self.broken(at, where, found, partition)


class DrainedBeforeRemoved(Invariant):
    """Compares the removal of a broker with the assignments of replicas."""

    name = "raft-drained-before-removed"
    sentence = "A broker leaves the cluster only when no partition has a replica on it."
    source = 'Redpanda\'s members_backend; "Decommission Brokers"'
    conditions = "cluster.replication: raft"

    def __init__(self) -> None:
        super().__init__()
        self._holders: dict[tuple[str, int], Nodes] = {}

    def _watch(self, observer: Observer) -> None:
        observer.changes.append(self._change)
        observer.listen("broker_states", self._state)
        observer.listen("topic_deletions", self._deletion)

    def _change(self, _partition: Partition, row: PartitionChangesRow) -> None:
        key = row[PartitionChanges.TOPIC], row[PartitionChanges.PARTITION]
        self._holders[key] = brokers_in(row[PartitionChanges.REPLICAS])

    def _deletion(self, row: TopicDeletionsRow) -> None:
        for key in [key for key in self._holders if key[0] == row[TopicDeletions.TOPIC]]:
            del self._holders[key]

    def _state(self, row: BrokerStatesRow) -> None:
        if row[BrokerStates.STATE] != "unregistered":
            return
        self.checked += 1
        broker = row[BrokerStates.BROKER]
        for (topic, number), holders in self._holders.items():
            if broker in holders:
                found = f"it leaves with a replica of {topic}-{number}, one of {list(holders)}"
                raise self.broken(row[BrokerStates.T_US], server_name(broker), found)


def electorates(row: RaftConfigurationsRow) -> tuple[Nodes, ...]:
    """Electorates, each of which has to agree by a majority."""
    voters = brokers_in(row[RaftConfigurations.VOTERS])
    old = brokers_in(row[RaftConfigurations.OLD])
    return (voters, old) if old else (voters,)


def _meet(one: Nodes, two: Nodes) -> bool:
    """True if every majority of the one shares a voter with every majority of the other."""
    everyone = dict.fromkeys((*one, *two))
    return len(one) // 2 + 1 + len(two) // 2 + 1 > len(everyone)


def _words(row: RaftConfigurationsRow) -> str:
    return " beside ".join(f"{list(nodes)}" for nodes in electorates(row))


RAFT_INVARIANTS: Final[tuple[type[Invariant], ...]] = (
    CommitNeedsMajority,
    OneChangeAtATime,
    DrainedBeforeRemoved,
)
"""Every invariant of Raft groups."""
