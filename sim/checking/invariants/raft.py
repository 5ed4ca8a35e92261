"""What must hold where each partition's replicas are a Raft group, beside the other invariants.

That a term has one leader and that logs match is said by ``one-leader-per-epoch`` and
``logs-match``, for a leader epoch is a term, and every leader writes in its own.
"""

from typing import Final

from sim.checking.invariant import Invariant
from sim.checking.observer import Observer, Partition, Replica
from sim.checking.rows import (
    BrokerStateRow,
    ChangeRow,
    ConfigurationRow,
    DeletionRow,
    WatermarkRow,
    brokers_in,
)
from sim.ids import NodeId, server_name

Nodes = tuple[NodeId, ...]


class CommitNeedsMajority(Invariant):
    """What the leader believes of its followers is held against what they have appended.

    Who counts is what the leader's own log says at that moment: the voters, and the old ones while
    members change; learners never.
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

    def _leader(self, partition: Partition, _replica: Replica, row: WatermarkRow) -> None:
        if partition.excuse is not None:
            self.suspend(partition.excuse)
            return
        said = partition.configurations.get(row[4])
        if said is None:
            found = f"moves to {row[5]} before the log said who is a member in term {row[4]}"
            raise self.broken(row[0], server_name(row[1]), found, partition)
        self.checked += 1
        known = partition.replicas
        for voters in electorates(said):
            ends = [known[broker].log_end if broker in known else 0 for broker in voters]
            if sum(end >= row[5] for end in ends) <= len(voters) // 2:
                found = f"moves to {row[5]}, the logs of {list(voters)} end at {ends}"
                raise self.broken(row[0], server_name(row[1]), found, partition)


class OneChangeAtATime(Invariant):
    """What a leader writes of its group's members is held against what it wrote before."""

    name = "raft-one-change-at-a-time"
    sentence = (
        "A leader changes who is a member only when the last change is committed, and so that "
        "every majority before shares a voter with every majority after."
    )
    source = "Raft, section 6; Redpanda's consensus::change_configuration"
    conditions = "cluster.replication: raft"

    def _watch(self, observer: Observer) -> None:
        observer.configurations.append(self._configured)

    def _configured(self, partition: Partition, leader: Replica, row: ConfigurationRow) -> None:
        before = partition.configurations.get(row[4])
        if before is None:
            # The term begins, with what the log said before.
            return
        self.checked += 1
        where = server_name(row[1])
        committed = leader.watermark if leader.watermark_epoch == row[4] else 0
        if committed <= before[5]:
            found = f"changes at {row[5]}, the members said at {before[5]} are not committed"
            raise self.broken(row[0], where, found, partition)
        pairs = [(one, two) for one in electorates(before) for two in electorates(row)]
        if not any(_meet(one, two) for one, two in pairs):
            found = f"{_words(before)} becomes {_words(row)}: their majorities need not meet"
            raise self.broken(row[0], where, found, partition)


class DrainedBeforeRemoved(Invariant):
    """What the controller decides of a broker is held against where it says that replicas are."""

    name = "raft-drained-before-removed"
    sentence = "A broker leaves the cluster only when no partition has a replica on it."
    source = 'Redpanda\'s members_backend; "Decommission Brokers"'
    conditions = "cluster.replication: raft"

    def __init__(self) -> None:
        super().__init__()
        self._holders: dict[tuple[str, int], Nodes] = {}

    def _watch(self, observer: Observer) -> None:
        observer.changes.append(self._change)
        observer.broker_states.append(self._state)
        observer.topic_deletions.append(self._deletion)

    def _change(self, _partition: Partition, row: ChangeRow) -> None:
        self._holders[row[2], row[3]] = brokers_in(row[9])

    def _deletion(self, row: DeletionRow) -> None:
        for key in [key for key in self._holders if key[0] == row[2]]:
            del self._holders[key]

    def _state(self, row: BrokerStateRow) -> None:
        if row[3] != "unregistered":
            return
        self.checked += 1
        for (topic, number), holders in self._holders.items():
            if row[2] in holders:
                found = f"it leaves with a replica of {topic}-{number}, one of {list(holders)}"
                raise self.broken(row[0], server_name(row[2]), found)


def electorates(row: ConfigurationRow) -> tuple[Nodes, ...]:
    """Each of these has to agree by a majority."""
    voters, old = brokers_in(row[6]), brokers_in(row[7])
    return (voters, old) if old else (voters,)


def _meet(one: Nodes, two: Nodes) -> bool:
    """Whether every majority of the one shares somebody with every majority of the other."""
    everyone = dict.fromkeys((*one, *two))
    return len(one) // 2 + 1 + len(two) // 2 + 1 > len(everyone)


def _words(row: ConfigurationRow) -> str:
    return " beside ".join(f"{list(nodes)}" for nodes in electorates(row))


RAFT_INVARIANTS: Final[tuple[type[Invariant], ...]] = (
    CommitNeedsMajority,
    OneChangeAtATime,
    DrainedBeforeRemoved,
)
"""Every invariant of its own kind."""
