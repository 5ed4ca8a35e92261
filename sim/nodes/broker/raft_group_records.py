"""Records and vote file in which a partition's Raft group stores its members.

The record that opens a term is Kafka's LeaderChange, with the voters; where there are old voters or
learners as well, and at each change within a term, Kafka's VotersRecord holds them: one for the
voters, and a second for the old ones and the learners. The vote file is Kafka's, too, and holds the
committed members.

Source: Redpanda v25.1 ``raft/configuration_manager.cc`` (its own records, and its key-value store).
"""

import json
from collections.abc import Iterator
from typing import cast

from sim.ids import NO_LEADER, NodeId, Offset, TopicPartition
from sim.log.partition.log import PartitionLog
from sim.log.store.files import FileStore
from sim.nodes.storage.metadata_log import NO_DIRECTORY, read_quorum_state, write_quorum_state
from sim.protocol.broker.raft_storage import CommittedMembership, Membership, RaftVote
from sim.protocol.kraft.types import QuorumState
from sim.protocol.metadata.records import (
    LeaderChangeMessage,
    MetadataRecord,
    Voter,
    VotersRecord,
)
from sim.protocol.ports import Batch
from sim.protocol.raft_groups.membership import Nodes
from sim.protocol.raft_groups.types import PersistedState
from sim.records.metadata import build_metadata_batch, records_of
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import RecordBatch

_PARTS = len(Membership._fields)


class GroupRecords:
    """Control records of Raft groups: :class:`~sim.protocol.raft_groups.types.RaftRecords`."""

    def opening(self, leader: NodeId, membership: Membership, now_ms: int) -> Batch:
        """The record with which a leader opens its term, which clients skip."""
        change = LeaderChangeMessage(leader, membership.voters, ())
        is_plain = membership == Membership(membership.voters)
        more = () if is_plain else _voters_records(membership)
        return _batch((change, *more), now_ms)

    def configuration(self, membership: Membership, now_ms: int) -> Batch:
        """The batch of a membership change."""
        return _batch(_voters_records(membership), now_ms)

    def membership_of(self, batch: Batch) -> Membership | None:
        """Membership in a batch; ``None`` for markers of transactions."""
        return _membership(cast("RecordBatch", batch))


def _batch(records: tuple[MetadataRecord, ...], now_ms: int) -> Batch:
    # The batch has the port's shape; its class lives on a lower floor.
    return cast("Batch", build_metadata_batch(records, 0, -1, now_ms))


def _voters_records(membership: Membership) -> tuple[VotersRecord, ...]:
    parts = (membership.voters, membership.old, membership.learners)
    return tuple(VotersRecord(tuple(Voter(n, NO_DIRECTORY) for n in nodes)) for nodes in parts)


def _membership(batch: RecordBatch) -> Membership | None:
    if batch.is_transactional:
        return None
    parts: list[Nodes] = []
    voters: Nodes = ()
    for record in records_of(batch):
        if isinstance(record, LeaderChangeMessage):
            voters = record.voters
        elif isinstance(record, VotersRecord):
            parts.append(tuple(voter.node for voter in record.voters))
    if len(parts) == _PARTS:
        return Membership(parts[0], parts[1], parts[2])
    return Membership(voters) if voters else None


def read_persisted(store: FileStore, log: PartitionLog) -> PersistedState:
    """State that a member has persisted.

    Of the log, it reads the part since the last term began, or since the committed membership:
    configurations of earlier terms were committed, or do not count, once the term's first record
    was appended.

    Raises:
        DiskFailed: If the disk has failed.
    """
    name = _file(log.partition)
    state = read_quorum_state(store, name)
    data = store.read_whole(name)
    settled = CommittedMembership(-1, Membership())
    if data is not None:
        fields: dict[str, object] = json.loads(data)
        nodes = [_read(cast("list[dict[str, int]] | None", fields.get(key))) for key in _KEYS]
        settled = CommittedMembership(cast("int", fields["appliedOffset"]), Membership(*nodes))
    epochs = log.epochs
    known = settled.offset + 1 if settled.membership.voters else 0
    start = max(known, epochs[-1][1] if epochs else 0, log.log_start_offset)
    later = tuple(_members_since(log, start)) if start < log.log_end_offset else ()
    return PersistedState(RaftVote(state.epoch, state.voted_for), settled, later)


def _members_since(log: PartitionLog, start: Offset) -> Iterator[CommittedMembership]:
    """Configurations in the log from the offset on, up to the first damage."""
    try:
        for batch in log.batches(start):
            found = _membership(batch) if batch.is_control else None
            if found is not None and batch.base_offset >= start:
                yield CommittedMembership(batch.base_offset, found)
    except MalformedBytes:
        # Damage on the platter, which readers will meet as well: later records are lost.
        return


_KEYS = ("currentVoters", "oldVoters", "learners")


def _read(listed: list[dict[str, int]] | None) -> Nodes:
    return tuple(voter["voterId"] for voter in listed or ())


def write_persisted(
    store: FileStore, partition: TopicPartition, vote: RaftVote, settled: CommittedMembership
) -> None:
    """Replaces the vote file, durably.

    Raises:
        DiskFailed: If the disk has failed or is full.
    """
    state = QuorumState(vote.term, NO_LEADER, vote.voted_for)
    members = settled.membership
    more: dict[str, object] = {"appliedOffset": max(settled.offset, _FIRST)}
    for key, nodes in (("oldVoters", members.old), ("learners", members.learners)):
        if nodes:
            more[key] = [{"voterId": node} for node in nodes]
    write_quorum_state(store, state, members.voters, _file(partition), more=more)


_FIRST: Offset = 0
"""Offset of a group's first record, which holds the members that the partition was created with."""


def _file(partition: TopicPartition) -> str:
    return f"{partition}/quorum-state"
