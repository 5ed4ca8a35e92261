"""What a partition's Raft group writes of its members: control records, and the vote file.

The record that opens a term is Kafka's LeaderChange, with the voters; where there are old voters or
learners as well, and at each change within a term, Kafka's VotersRecord says them: once for the
voters, and after that for the old ones and the learners. The vote file is Kafka's, too, and names
the members that are settled.

Source: Redpanda v25.1 ``raft/configuration_manager.cc`` (its own records, and its key-value store).
"""

import json
from collections.abc import Iterator
from typing import cast

from sim.ids import NO_LEADER, NodeId, Offset, TopicPartition
from sim.log.partition.log import PartitionLog
from sim.log.store.files import FileStore
from sim.nodes.storage.metadata_log import NO_DIRECTORY, read_quorum_state, write_quorum_state
from sim.protocol.broker.raft_storage import Membership, RaftVote, Settled
from sim.protocol.kraft.types import QuorumState
from sim.protocol.metadata.records import (
    LeaderChangeMessage,
    MetadataRecord,
    Voter,
    VotersRecord,
)
from sim.protocol.ports import Batch
from sim.protocol.raft_groups.membership import Nodes
from sim.protocol.raft_groups.types import RaftMemory
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
        """The batch that changes who is a member."""
        return _batch(_voters_records(membership), now_ms)

    def membership_of(self, batch: Batch) -> Membership | None:
        """What a batch says of members; ``None`` for the markers of transactions."""
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


def read_memory(store: FileStore, log: PartitionLog) -> RaftMemory:
    """What a member has written down of itself.

    Of the log, the part since the last term began is read, or since the settled membership: that
    of every earlier term was committed, or does not count, once the term's first record was there.

    Raises:
        DiskFailed: If the disk has failed.
    """
    name = _file(log.partition)
    state = read_quorum_state(store, name)
    data = store.read_whole(name)
    settled = Settled(-1, Membership())
    if data is not None:
        fields: dict[str, object] = json.loads(data)
        nodes = [_read(cast("list[dict[str, int]] | None", fields.get(key))) for key in _KEYS]
        settled = Settled(cast("int", fields["appliedOffset"]), Membership(*nodes))
    epochs = log.epochs
    known = settled.offset + 1 if settled.membership.voters else 0
    start = max(known, epochs[-1][1] if epochs else 0, log.log_start_offset)
    later = tuple(_members_since(log, start)) if start < log.log_end_offset else ()
    return RaftMemory(RaftVote(state.epoch, state.voted_for), settled, later)


def _members_since(log: PartitionLog, start: Offset) -> Iterator[Settled]:
    """What the log says of members from the offset on, as far as it can be read."""
    try:
        for batch in log.batches(start):
            found = _membership(batch) if batch.is_control else None
            if found is not None and batch.base_offset >= start:
                yield Settled(batch.base_offset, found)
    except MalformedBytes:
        # Damage on the platter, which readers will meet as well: what lies behind it is lost.
        return


_KEYS = ("currentVoters", "oldVoters", "learners")


def _read(listed: list[dict[str, int]] | None) -> Nodes:
    return tuple(voter["voterId"] for voter in listed or ())


def write_memory(
    store: FileStore, partition: TopicPartition, vote: RaftVote, settled: Settled
) -> None:
    """Replace the vote file, durably.

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
"""Where a group's first record is, which says what the partition was created with."""


def _file(partition: TopicPartition) -> str:
    return f"{partition}/quorum-state"
