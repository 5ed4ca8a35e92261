"""Pending transactional offsets (KIP-447).

They are in the log of the group's partition under the producer's id; a COMMIT marker makes them the
group's offsets, unless the group has committed others since, and an ABORT marker drops them.

Source: ``OffsetMetadataManager``'s pending transactional offsets.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import ProducerId, TopicPartition
from sim.protocol.coordinator.group.classic_state import Group, GroupState
from sim.protocol.coordinator.group.records import (
    OffsetCommitRecord,
    OffsetTombstone,
    PendingOffsetRecord,
)
from sim.protocol.messages.transaction import TxnOffsetCommitRequest


@dataclass(slots=True)
class _Pending:
    record: OffsetCommitRecord
    superseded: bool = False
    """True if the group has committed another offset since, or its offset was deleted."""


class PendingOffsets:
    """Pending offsets, by partition of the offsets topic and producer."""

    def __init__(self) -> None:
        self._by_partition: dict[int, dict[ProducerId, list[_Pending]]] = {}

    def add(self, partition: int, producer: ProducerId, record: OffsetCommitRecord) -> None:
        """Adds an offset of a transaction in the log."""
        by_producer = self._by_partition.setdefault(partition, {})
        by_producer.setdefault(producer, []).append(_Pending(record))

    def committed_outside(
        self, partition: int, record: OffsetCommitRecord | OffsetTombstone
    ) -> None:
        """The group has an offset, or none, without a transaction: the later record counts."""
        for waiting in self._by_partition.get(partition, {}).values():
            for item in waiting:
                same = item.record.group == record.group
                if same and item.record.partition == record.partition:
                    item.superseded = True

    def end(
        self, partition: int, producer: ProducerId, *, committed: bool
    ) -> tuple[OffsetCommitRecord, ...]:
        """A marker is committed: returns the offsets that become the group's, in log order."""
        waiting = self._by_partition.get(partition, {}).pop(producer, [])
        if not committed:
            return ()
        return tuple(item.record for item in waiting if not item.superseded)

    def places(self, partition: int, group: str) -> tuple[TopicPartition, ...]:
        """Partitions with a pending offset of the group."""
        return tuple(
            item.record.partition
            for waiting in self._by_partition.get(partition, {}).values()
            for item in waiting
            if item.record.group == group
        )

    def is_pending(self, partition: int, group: str, places: tuple[TopicPartition, ...]) -> bool:
        """True if any of the group's offsets for the places is pending."""
        return any(
            item.record.group == group and item.record.partition in places
            for waiting in self._by_partition.get(partition, {}).values()
            for item in waiting
        )

    def forget(self, partition: int) -> None:
        """The partition has another leader."""
        self._by_partition.pop(partition, None)


def holds_offset(
    group: str, places: tuple[TopicPartition, ...], record: object, *, in_transaction: bool
) -> bool:
    """True if a record has an offset of the group for one of the places.

    Args:
        group: Its name.
        places: Partitions.
        record: One of the offsets topic.
        in_transaction: True for transactions' offsets only.
    """
    if isinstance(record, PendingOffsetRecord):
        record = record.commit
    elif in_transaction:
        return False
    return (
        isinstance(record, OffsetCommitRecord)
        and record.group == group
        and record.partition in places
    )


def transactional_error(group: Group | None, request: TxnOffsetCommitRequest) -> ErrorCode:
    """Kafka's checks in Kafka's order; a producer without a member is admitted.

    Source: ``OffsetMetadataManager.validateTransactionalOffsetCommit``, ``ClassicGroup``.
    """
    if group is None:
        return ErrorCode.NONE if request.generation < 0 else ErrorCode.ILLEGAL_GENERATION
    if request.generation < 0 and (group.state is GroupState.EMPTY or not request.member_id):
        return ErrorCode.NONE
    error = group.member_error(request.member_id, request.instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return ErrorCode.NONE
