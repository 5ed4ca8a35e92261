"""Invariants of consumers and groups."""

from collections.abc import Mapping
from typing import Final

from sim.checking.invariant import Invariant
from sim.checking.observer import Observer
from sim.checking.partition import Partition
from sim.ids import OFFSETS_TOPIC, NodeId, TopicPartition, server_name
from sim.trace.rows.clients import (
    Assignments,
    AssignmentsRow,
    CommitsRow,
    GroupMembers,
    GroupMembersRow,
    Groups,
    GroupsRow,
    Positions,
    PositionsRow,
    Reads,
    ReadsRow,
)
from sim.trace.rows.cluster import NodeStates, NodeStatesRow, PartitionChanges
from sim.units import SECOND, Micros

COMMIT_ANSWER_US_MAX: Final[Micros] = 30 * SECOND
"""request.timeout.ms of a consumer: greatest age of a commit's response."""

_GENERATIONS_KEPT: Final = 16

DELETED: Final = frozenset({"forgotten", "deleted"})
"""Reasons of rows of groups that are removed: the next group of the name begins with 1."""

DOWNGRADED: Final = "downgraded"
"""Reason of the row of a consumer group that is a classic group again (KIP-848)."""

OF_OLD: Final = "loaded groups in a leader epoch that had ended: it commits nothing"
"""Reason for which a coordinator may lawfully know less than was committed."""

KEPT_OFFSETS: Final = "while no record of __consumer_offsets is lost: a group then restarts at 0"
"""The condition of a coordinator's durable group state."""


class ReadsAreCommitted(Invariant):
    """Rule S24."""

    name = "reads-are-committed"
    sentence = (
        "A consumer gets no offset at or above the high watermark it is sent, and is sent none "
        "that no leader reached."
    )
    source = "S24; KIP-207, FetchIsolation.HIGH_WATERMARK"

    def _watch(self, observer: Observer) -> None:
        observer.reads.append(self._read)

    def _read(self, partition: Partition, row: ReadsRow) -> None:
        self.checked += 1
        last, watermark = row[Reads.LAST_OFFSET], row[Reads.HIGH_WATERMARK]
        if last >= watermark or watermark > partition.watermark:
            found = (
                f"offsets {row[Reads.BASE_OFFSET]} to {last} with high watermark {watermark}; "
                f"the true one is {partition.watermark}"
            )
            raise self.broken(row[Reads.T_US], row[Reads.CONSUMER], found, partition)


class ReadsAdvance(Invariant):
    """Rule S26."""

    name = "reads-advance"
    sentence = "Within one assignment a consumer's positions in a partition strictly increase."
    source = "S26; SubscriptionState.position"
    conditions = (
        "no share group; no seek in between; no unclean election and no lossy crash of this "
        "partition before (they reset it)"
    )

    def __init__(self) -> None:
        super().__init__()
        self._shared: Mapping[str, None] = {}
        self._held: dict[str, dict[str, Partition]] = {}

    def _watch(self, observer: Observer) -> None:
        self._shared = observer.share_groups
        observer.reads.append(self._read)
        observer.listen("assignments", self._assignment)
        observer.listen("node_states", self._node_state)
        observer.listen("positions", self._position)

    def _read(self, partition: Partition, row: ReadsRow) -> None:
        consumer = row[Reads.CONSUMER]
        if row[Reads.GROUP] in self._shared:
            return
        base, last = row[Reads.BASE_OFFSET], row[Reads.LAST_OFFSET]
        position = partition.positions.get(consumer)
        if position is None:
            self._held.setdefault(consumer, {})[partition.name] = partition
        elif partition.excuse is not None:
            self.suspend(partition.excuse)
        else:
            self.checked += 1
            if base < position:
                found = f"gets offsets {base} to {last} at position {position}"
                raise self.broken(row[Reads.T_US], consumer, found, partition)
        if last < base:
            found = f"offsets {base} to {last}"
            raise self.broken(row[Reads.T_US], consumer, found, partition)
        partition.positions[consumer] = last + 1

    def _assignment(self, row: AssignmentsRow) -> None:
        self._forget(row[Assignments.CONSUMER])

    def _position(self, row: PositionsRow) -> None:
        if row[Positions.REASON] == "seek":
            place = TopicPartition(row[Positions.TOPIC], row[Positions.PARTITION])
            held = self._held.get(row[Positions.CONSUMER], {}).pop(str(place), None)
            if held is not None:
                held.positions.pop(row[Positions.CONSUMER], None)

    def _node_state(self, row: NodeStatesRow) -> None:
        if row[NodeStates.STATE] == "started":
            self._forget(row[NodeStates.NODE])

    def _forget(self, consumer: str) -> None:
        for partition in self._held.pop(consumer, {}).values():
            partition.positions.pop(consumer, None)


class AssignmentsDisjoint(Invariant):
    """Rule S38."""

    name = "assignments-disjoint"
    sentence = "Assignments of one generation of a group are disjoint."
    source = "S38; ConsumerPartitionAssignor"
    conditions = f"no share group; {KEPT_OFFSETS}"

    def __init__(self) -> None:
        super().__init__()
        self._shared: Mapping[str, None] = {}
        self._owners: dict[str, dict[int, dict[str, str]]] = {}
        self._partitions: Mapping[tuple[str, int], Partition] = {}

    def _watch(self, observer: Observer) -> None:
        self._partitions = observer.partitions
        self._shared = observer.share_groups
        observer.listen("assignments", self._assignment)
        observer.listen("groups", self._group)

    def _group(self, row: GroupsRow) -> None:
        if row[Groups.REASON] in DELETED:
            self._owners.pop(row[Groups.GROUP], None)
            return
        if row[Groups.REASON] != "created" or row[Groups.GROUP] not in self._owners:
            return
        lost = lost_offsets(self._partitions)
        if lost is not None:
            self.suspend(lost)
            del self._owners[row[Groups.GROUP]]

    def _assignment(self, row: AssignmentsRow) -> None:
        at, consumer, group, _, generation, partitions = row
        if not group or not partitions or group in self._shared:
            return
        self.checked += 1
        generations = self._owners.setdefault(group, {})
        owners = generations.setdefault(generation, {})
        if len(generations) > _GENERATIONS_KEPT:
            del generations[next(iter(generations))]
        for partition in partitions.split(","):
            # A static member may come back under another member id (KIP-345).
            owner = owners.setdefault(partition, consumer)
            if owner != consumer:
                found = (
                    f"{partition} in generation {generation} of {group} goes to {consumer}, and "
                    f"to {owner}"
                )
                raise self.broken(at, consumer, found)


class GenerationsAreKept(Invariant):
    """Rule S40, for generations."""

    name = "generations-are-kept"
    sentence = "A coordinator that takes over a group knows every generation that was committed."
    source = "S40; GroupMetadataManager.replay"
    conditions = f"{KEPT_OFFSETS}; unless its leader epoch has ended: it commits nothing"

    def __init__(self) -> None:
        super().__init__()
        self._committed: dict[str, int] = {}
        self._partitions: Mapping[tuple[str, int], Partition] = {}

    def _watch(self, observer: Observer) -> None:
        self._partitions = observer.partitions
        observer.listen("groups", self._group)

    def _group(self, row: GroupsRow) -> None:
        at, broker, group, _, generation, _, reason = row
        if reason in DELETED:
            self._committed.pop(group, None)
        if reason == "assignment committed":
            self._committed[group] = max(generation, self._committed.get(group, 0))
        if reason != "loaded":
            return
        lost = lost_offsets(self._partitions)
        if lost is not None:
            self.suspend(lost)
            self._committed.pop(group, None)
            return
        committed = self._committed.get(group, 0)
        if generation < committed and leads_of_old(self._partitions, broker):
            self.suspend(f"{server_name(broker)} {OF_OLD}")
            return
        self.checked += 1
        if generation < committed:
            found = f"{group} is loaded in generation {generation}; {committed} was committed"
            raise self.broken(at, server_name(broker), found)


def lost_offsets(partitions: Mapping[tuple[str, int], Partition]) -> str | None:
    """Reason for which records of groups may lawfully be missing; ``None`` without one."""
    for (topic, _), partition in partitions.items():
        if topic == OFFSETS_TOPIC and partition.excuse is not None:
            return partition.excuse
    return None


def leads_of_old(partitions: Mapping[tuple[str, int], Partition], broker: NodeId) -> bool:
    """True if a broker leads a partition of offsets in an epoch that the controller has ended.

    One that was frozen applies what it missed in order, and loads what it has for an instant.
    """
    for (topic, _), partition in partitions.items():
        if topic != OFFSETS_TOPIC or partition.change is None:
            continue
        epoch = partition.replica(broker).leader_epoch
        is_leader = partition.leaders.get(epoch) == broker
        if is_leader and epoch < partition.change[PartitionChanges.LEADER_EPOCH]:
            return True
    return False


class CommitsAreCurrent(Invariant):
    """Rule S39, as far as a client's view allows: the answer may come after the next generation."""

    name = "commits-are-current"
    sentence = "A commit succeeds only for the group's generation at that time."
    source = "S39; GroupCoordinator.validateOffsetCommit"
    conditions = "always, up to the time an answer may take (request.timeout.ms, 30 s)"

    def __init__(self) -> None:
        super().__init__()
        self._current: dict[str, dict[NodeId, int]] = {}
        self._ended: dict[str, dict[int, Micros]] = {}
        self._by_member: dict[str, None] = {}
        """Consumer-protocol groups, which another invariant checks."""
        self._epochs: dict[tuple[str, str], int] = {}
        self._left: dict[str, dict[int, Micros]] = {}
        """Epochs of members that have left, of which answers may be on their way."""

    def _watch(self, observer: Observer) -> None:
        observer.listen("groups", self._group)
        observer.listen("group_members", self._member)
        observer.listen("commits", self._commit)

    def _member(self, row: GroupMembersRow) -> None:
        group, epoch = row[GroupMembers.GROUP], row[GroupMembers.MEMBER_EPOCH]
        member = group, row[GroupMembers.MEMBER_ID]
        self._by_member[group] = None
        former = self._epochs.pop(member, None)
        if epoch >= 0:
            self._epochs[member] = epoch
        elif former is not None:
            self._left.setdefault(group, {})[former] = row[GroupMembers.T_US]

    def _group(self, row: GroupsRow) -> None:
        # Generations are kept by coordinator: a zombie may still answer for the group, and its
        # successor may have to begin before a generation that was never written.
        at, broker, group, state, generation, _members, reason = row
        current = self._current.setdefault(group, {})
        ended = self._ended.setdefault(group, {})
        if reason == DOWNGRADED:
            self._by_member.pop(group, None)
            ended.update(self._left.pop(group, {}))
        former = current.pop(broker, None)
        if former is not None and former != generation:
            ended.pop(former, None)
            ended[former] = at
            if len(ended) > _GENERATIONS_KEPT:
                del ended[next(iter(ended))]
        if state == "Dead":
            ended[generation] = at
        else:
            current[broker] = generation

    def _commit(self, row: CommitsRow) -> None:
        at, consumer, group, topic, partition, _offset, generation, error = row
        if error != "NONE" or generation < 0 or group in self._by_member:
            return
        current = self._current.get(group)
        if current is None:
            self.suspend("the group's generation is not in the trace")
            return
        self.checked += 1
        if generation in current.values():
            return
        ended = self._ended[group].get(generation)
        if ended is None or at - ended > COMMIT_ANSWER_US_MAX:
            known = ", ".join(f"{g} at {server_name(b)}" for b, g in current.items())
            found = (
                f"commit of {topic}-{partition} succeeds for generation {generation} of {group}, "
                f"which is in generation {known or 'none'}"
            )
            raise self.broken(at, consumer, found)


CLIENT_INVARIANTS: Final[tuple[type[Invariant], ...]] = (
    ReadsAreCommitted,
    ReadsAdvance,
    AssignmentsDisjoint,
    GenerationsAreKept,
    CommitsAreCurrent,
)
"""Invariants of consumers and their groups."""
