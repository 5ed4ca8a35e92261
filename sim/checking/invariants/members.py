"""Invariants of members of consumer-protocol groups (KIP-848)."""

from collections.abc import Mapping
from typing import Final

from sim.checking.invariant import Invariant
from sim.checking.invariants.clients import (
    COMMIT_ANSWER_US_MAX,
    DELETED,
    DOWNGRADED,
    KEPT_OFFSETS,
    OF_OLD,
    leads_of_old,
    lost_offsets,
)
from sim.checking.observer import Observer
from sim.checking.partition import Partition
from sim.ids import server_name
from sim.trace.rows.clients import CommitsRow, GroupMembersRow, Groups, GroupsRow
from sim.units import Micros

_LEFT = (-1, -2)
"""Epochs of members that have left, or that have left their place to a static successor."""

_TAKEN_OVER = ("loaded", "created")
"""Reasons of the first row at another coordinator; it creates a group of which it has no record."""


class PartitionsHaveOneOwner(Invariant):
    """Rule S38, for the consumer protocol."""

    name = "partitions-have-one-owner"
    sentence = "A partition is owned, or still to be revoked, by at most one member of a group."
    source = "S38; ConsumerGroup.currentPartitionEpoch"
    conditions = f"no share group; {KEPT_OFFSETS}; unless its leader epoch has ended"

    def __init__(self) -> None:
        super().__init__()
        self._shared: Mapping[str, None] = {}
        self._owners: dict[str, dict[str, str]] = {}
        self._partitions: Mapping[tuple[str, int], Partition] = {}

    def _watch(self, observer: Observer) -> None:
        self._shared = observer.share_groups
        self._partitions = observer.partitions
        observer.listen("groups", self._group)
        observer.listen("group_members", self._member)

    def _group(self, row: GroupsRow) -> None:
        if row[Groups.REASON] == "created" and self._owners.get(row[Groups.GROUP]):
            lost = lost_offsets(self._partitions)
            if lost is not None:
                self.suspend(lost)
                del self._owners[row[Groups.GROUP]]
        if row[Groups.REASON] != "loaded":
            return
        if leads_of_old(self._partitions, row[Groups.BROKER]):
            self.suspend(f"{server_name(row[Groups.BROKER])} {OF_OLD}")
            return
        self._owners.pop(row[Groups.GROUP], None)  # rows of all its members follow

    def _member(self, row: GroupMembersRow) -> None:
        at, broker, group, member, _consumer, _epoch, _state, assigned, revoked = row
        if group in self._shared or leads_of_old(self._partitions, broker):
            return
        owners = self._owners.setdefault(group, {})
        for partition in [p for p, owner in owners.items() if owner == member]:
            del owners[partition]
        self.checked += 1
        for partition in f"{assigned},{revoked}".strip(",").split(","):
            owner = owners.setdefault(partition, member) if partition else member
            if owner != member:
                found = f"{partition} of {group} goes to {member}, and {owner} has it"
                raise self.broken(at, server_name(broker), found)


class MemberEpochsAdvance(Invariant):
    """Rule S40, for the consumer protocol."""

    name = "member-epochs-advance"
    sentence = (
        "A member's epoch never goes back while it is in its group, and is none that the group "
        "has not reached; a coordinator that takes over knows what was committed."
    )
    source = "S40; GroupMetadataManager.replay(ConsumerGroupCurrentMemberAssignment)"
    conditions = f"{KEPT_OFFSETS}; unless its leader epoch has ended: it commits nothing"

    def __init__(self) -> None:
        super().__init__()
        self._epochs: dict[str, dict[str, int]] = {}
        self._reached: dict[str, int] = {}
        self._partitions: Mapping[tuple[str, int], Partition] = {}

    def _watch(self, observer: Observer) -> None:
        self._partitions = observer.partitions
        observer.listen("groups", self._group)
        observer.listen("group_members", self._member)

    def _group(self, row: GroupsRow) -> None:
        _at, _broker, group, _state, epoch, _members, reason = row
        if reason in DELETED:
            self._epochs.pop(group, None)
            self._reached.pop(group, None)
        if reason in _TAKEN_OVER and group in self._epochs:
            lost = lost_offsets(self._partitions)
            if lost is not None:
                self.suspend(lost)
                del self._epochs[group]
                self._reached.pop(group, None)
        self._reached[group] = max(epoch, self._reached.get(group, 0))

    def _member(self, row: GroupMembersRow) -> None:
        at, broker, group, member, _consumer, epoch, _state, _assigned, _revoked = row
        epochs = self._epochs.setdefault(group, {})
        if epoch in _LEFT:
            epochs.pop(member, None)
            return
        self.checked += 1
        before, most = epochs.get(member, 0), self._reached.get(group, 0)
        if not before <= epoch <= most and leads_of_old(self._partitions, broker):
            self.suspend(f"{server_name(broker)} {OF_OLD}")
            return
        epochs[member] = epoch
        if not before <= epoch <= most:
            found = f"{member} of {group} is in epoch {epoch}; it was in {before}, the group {most}"
            raise self.broken(at, server_name(broker), found)


class CommitsCarryTheMemberEpoch(Invariant):
    """Rule S39, for the consumer protocol."""

    name = "commits-carry-the-member-epoch"
    sentence = "A commit succeeds only for the epoch that its member has at that time."
    source = "S39; ConsumerGroup.validateOffsetCommit"
    conditions = "always, up to the time an answer may take (request.timeout.ms, 30 s)"

    def __init__(self) -> None:
        super().__init__()
        self._consumers: dict[str, str] = {}
        self._current: dict[tuple[str, str], int] = {}
        self._ended: dict[tuple[str, str], dict[int, Micros]] = {}

    def _watch(self, observer: Observer) -> None:
        observer.listen("groups", self._group)
        observer.listen("group_members", self._member)
        observer.listen("commits", self._commit)

    def _group(self, row: GroupsRow) -> None:
        if row[Groups.REASON] == DOWNGRADED:  # its members have generations from now on
            group = row[Groups.GROUP]
            for consumer in [each for each in self._current if each[0] == group]:
                del self._current[consumer]
                self._ended.pop(consumer, None)

    def _member(self, row: GroupMembersRow) -> None:
        at, _broker, group, member, named, epoch, _state, _assigned, _revoked = row
        consumer = group, self._consumers.setdefault(member, named)
        former = self._current.get(consumer, epoch)
        if former != epoch:
            self._ended.setdefault(consumer, {})[former] = at
        self._current[consumer] = epoch

    def _commit(self, row: CommitsRow) -> None:
        at, name, group, topic, partition, _offset, epoch, error = row
        consumer = group, name
        current = self._current.get(consumer)
        if error != "NONE" or current is None:
            return
        self.checked += 1
        if epoch == current:
            return
        ended = self._ended.get(consumer, {}).get(epoch)
        if ended is None or at - ended > COMMIT_ANSWER_US_MAX:
            found = (
                f"commit of {topic}-{partition} succeeds for epoch {epoch} of a member of {group} "
                f"that is in epoch {current}"
            )
            raise self.broken(at, name, found)


MEMBER_INVARIANTS: Final[tuple[type[Invariant], ...]] = (
    PartitionsHaveOneOwner,
    MemberEpochsAdvance,
    CommitsCarryTheMemberEpoch,
)
"""Invariants of the consumer protocol."""
