"""Groups whose members send nothing but heartbeats, at the coordinator: epochs, targets, the log.

What follows from a heartbeat is written, changes memory at once and is answered when it is
committed; a write that fails takes its change back. Consumer groups (KIP-848) and share groups
(KIP-932) differ in what a heartbeat says, in the assignor, and in how a member comes to its target.

Source: ``org.apache.kafka.coordinator.group.modern.ModernGroup``, ``GroupMetadataManager``,
``TargetAssignmentBuilder``.
"""

import hashlib
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.assignors.registry import Assignments
from sim.protocol.coordinator.group.assignors import TopicDescription
from sim.protocol.coordinator.group.consumer_group_records import (
    ConsumerGroupEpochRecord,
    ConsumerGroupRecord,
    CurrentMemberAssignmentRecord,
    MemberGoneRecord,
    TargetAssignmentEpochRecord,
    TargetAssignmentMemberRecord,
    member_keys,
)
from sim.protocol.coordinator.group.consumer_group_state import ConsumerGroup, ConsumerGroupMember
from sim.protocol.coordinator.group.context import CoordinatorContext, Outcome
from sim.protocol.coordinator.group.records import GroupRecord
from sim.protocol.coordinator.log import error_for_client
from sim.protocol.messages.base import Response
from sim.protocol.messages.consumer_group import LEAVE_EPOCH
from sim.protocol.metadata.image import MetadataImage
from sim.trace.rows.clients import GroupMembers
from sim.units import Micros


@dataclass(slots=True)
class Written:
    """Records of one change, and who waits for them."""

    records: tuple[ConsumerGroupRecord, ...]
    outcomes: list[Outcome] = field(default_factory=list)
    is_doubtful: bool = False
    """It stands in the log, and it took too long to be committed."""


@dataclass(slots=True)
class Coordinated:
    """A group with what is written of it, and what is committed."""

    live: ConsumerGroup
    committed: ConsumerGroup
    unsettled: deque[Written] = field(default_factory=deque)


class ModernGroups:
    """The groups of one kind that one broker coordinates.

    ``image`` is the broker's metadata: which topics there are, under which ids.
    """

    share = False
    """Whether they are share groups."""

    def __init__(
        self, context: CoordinatorContext[GroupRecord], image: Callable[[], MetadataImage]
    ) -> None:
        self._context = context
        self._image = image
        self._groups: dict[str, Coordinated] = {}

    # -- views ------------------------------------------------------------------------------------

    def get(self, name: str) -> ConsumerGroup | None:
        """The group as it stands; ``None`` if it is not known here. Not to be changed."""
        group = self._groups.get(name)
        return group.live if group is not None else None

    def _group(self, name: str, partition: int) -> Coordinated:
        """The group, made if there is none."""
        group = self._groups.get(name)
        if group is None:
            fresh = ConsumerGroup(name, partition, self.share)
            group = self._groups[name] = Coordinated(fresh, fresh.copy())
            self._note(group, "created")
        return group

    # -- what the kinds differ in -----------------------------------------------------------------

    def _shares(
        self,
        group: ConsumerGroup,
        subscriptions: Mapping[str, tuple[str, ...]],
        topics: Mapping[str, TopicDescription],
    ) -> Assignments:
        """What the assignor gives to everybody."""
        raise NotImplementedError

    def _refused(self, error: ErrorCode, member_id: str) -> Response:
        """The answer to a heartbeat that says only an error."""
        raise NotImplementedError

    def _session_timeout_us(self) -> Micros:
        """How long a member may be silent."""
        raise NotImplementedError

    def _watch_member(self, group: Coordinated, member: ConsumerGroupMember, now: Micros) -> None:
        """Miss a member that stays silent."""
        self._await_next(group, member.member_id, now)

    # -- epochs and assignments -------------------------------------------------------------------

    def _count_epoch(
        self, group: Coordinated, records: list[ConsumerGroupRecord], *, changed: bool
    ) -> None:
        """A new group epoch, if subscriptions or topics are other than they were."""
        live = group.live
        fingerprint = self._metadata_hash(live)
        if changed or live.epoch == 0 or fingerprint != live.metadata_hash:
            epoch = live.epoch + 1
            record = ConsumerGroupEpochRecord(live.name, epoch, fingerprint, self.share)
            self._change(group, records, record)

    def _assign(self, group: Coordinated, records: list[ConsumerGroupRecord]) -> None:
        """A new target assignment, if the group's epoch is ahead of it."""
        live = group.live
        if live.epoch <= live.assignment_epoch:
            return
        image = self._image()
        topics = {
            topic_id: TopicDescription(topic_id, image.partition_counts[name])
            for name, topic_id in image.topic_ids.items()
            if image.partition_counts[name]
        }
        subscriptions = {
            member.member_id: tuple(image.topic_ids.get(topic, topic) for topic in member.topics)
            for member in live.members.values()
        }
        shares = self._shares(live, subscriptions, topics)
        for member_id, partitions in shares.items():
            if live.target.get(member_id) != partitions:
                target = TargetAssignmentMemberRecord(live.name, member_id, partitions, self.share)
                self._change(group, records, target)
        self._change(group, records, TargetAssignmentEpochRecord(live.name, live.epoch, self.share))

    def _metadata_hash(self, group: ConsumerGroup) -> int:
        """Over the topics that members subscribe to; Kafka's is another function of the same.

        Source: ``Utils.computeGroupHash``.
        """
        image = self._image()
        wanted = {topic for member in group.members.values() for topic in member.topics}
        known = [topic for topic in sorted(wanted) if topic in image.topic_ids]
        if not known:
            return 0
        said = ";".join(f"{t} {image.topic_ids[t]} {image.partition_counts[t]}" for t in known)
        return int.from_bytes(hashlib.sha256(said.encode()).digest()[:8], "big", signed=True)

    # -- who goes ---------------------------------------------------------------------------------

    def _remove(
        self,
        group: Coordinated,
        member_id: str,
        response: Response | None,
        token: int | None,
        now: Micros,
    ) -> None:
        """A member goes, its partitions are free, and the others get a new epoch.

        Source: ``GroupMetadataManager.consumerGroupFenceMember``.
        """
        name, records = group.live.name, list[ConsumerGroupRecord]()
        for key_type in member_keys(share=self.share):
            self._change(group, records, MemberGoneRecord(name, member_id, key_type))
        epoch, fingerprint = group.live.epoch + 1, self._metadata_hash(group.live)
        self._change(group, records, ConsumerGroupEpochRecord(name, epoch, fingerprint, self.share))
        self._forget_alarms(name, member_id)
        self._settle(group, records, response, member_id, token, now)

    def _await_next(self, group: Coordinated, member_id: str, now: Micros) -> None:
        self._context.set_alarm(
            f"session/{group.live.name}/{member_id}",
            now + self._session_timeout_us(),
            partial(self._silent, group, member_id),
        )

    def _silent(self, group: Coordinated, member_id: str, now: Micros) -> None:
        if member_id in group.live.members:
            self._note(group, f"session of {member_id} expired")
            self._remove(group, member_id, None, None, now)

    def _forget_alarms(self, name: str, member_id: str) -> None:
        self._context.cancel_alarm(f"session/{name}/{member_id}")
        self._context.cancel_alarm(f"revoke/{name}/{member_id}")

    # -- the log ----------------------------------------------------------------------------------

    def _change(
        self,
        group: Coordinated,
        records: list[ConsumerGroupRecord],
        record: ConsumerGroupRecord,
    ) -> None:
        records.append(record)
        group.live.replay(record)

    def _settle(
        self,
        group: Coordinated,
        records: list[ConsumerGroupRecord],
        response: Response | None,
        member_id: str,
        token: int | None,
        now: Micros,
    ) -> None:
        """Write, and answer when that and all before it is committed."""

        def answer(error: ErrorCode, _now: Micros) -> None:
            if error is ErrorCode.NONE or response is None:
                self._context.reply(token, response)
            else:
                told = error_for_client(error)
                self._context.reply(token, self._refused(told, member_id))

        if not records and not group.unsettled:
            answer(ErrorCode.NONE, now)
        elif not records and group.unsettled[-1].is_doubtful:
            answer(ErrorCode.REQUEST_TIMED_OUT, now)
        elif not records:
            group.unsettled[-1].outcomes.append(answer)
        else:
            written = Written(tuple(records), [answer])
            group.unsettled.append(written)
            outcome = partial(self._outcome, group, written)
            self._context.write(group.live.partition, written.records, outcome, now)

    def _outcome(self, group: Coordinated, written: Written, error: ErrorCode, now: Micros) -> None:
        if error is ErrorCode.REQUEST_TIMED_OUT:  # it stands in the log
            written.is_doubtful = True
        elif error is not ErrorCode.NONE and self._groups.get(group.live.name) is group:
            self._take_back(group, written, now)
        outcomes, written.outcomes = written.outcomes, []
        for outcome in outcomes:
            outcome(error, now)

    def _take_back(self, group: Coordinated, written: Written, now: Micros) -> None:
        """The log does not have it: be what the rest of the records say."""
        group.unsettled = deque(one for one in group.unsettled if one is not written)
        former = group.live.members
        group.live = group.committed.copy()
        for one in group.unsettled:
            for record in one.records:
                group.live.replay(record)
        for member_id in former:
            if member_id not in group.live.members:
                self._forget_alarms(group.live.name, member_id)
        self._watch(group, now)

    def apply(self, record: ConsumerGroupRecord) -> None:
        """A record is committed, in the order of the log."""
        group = self._groups.get(record.group)
        assert group is not None, f"a record of {record.group}, which is not coordinated here"
        group.committed.replay(record)
        first = group.unsettled[0]
        assert record in first.records, f"{record} is committed out of turn"
        if record is first.records[-1]:
            group.unsettled.popleft()
        if isinstance(record, CurrentMemberAssignmentRecord):
            self._note_member(group.committed, record.member_id)
        elif isinstance(record, MemberGoneRecord):
            if record.is_last:
                self._note_member(group.committed, record.member_id)
        elif isinstance(record, ConsumerGroupEpochRecord):
            self._note(group, "new group epoch")
        elif isinstance(record, TargetAssignmentEpochRecord):
            self._note(group, "assignment committed")

    def replay(self, record: ConsumerGroupRecord, partition: int) -> None:
        """A record is read, of a partition that is being loaded."""
        group = self._groups.get(record.group)
        if group is None:
            fresh = ConsumerGroup(record.group, partition, self.share)
            group = self._groups[record.group] = Coordinated(fresh, fresh)
        group.live.replay(record)

    def loaded(self, partition: int, now: Micros) -> None:
        """All records of the partition have been read: sessions begin anew.

        Source: ``GroupMetadataManager.onLoaded``.
        """
        for group in self._groups.values():
            if group.live.partition == partition:
                group.committed = group.live.copy()
                self._note(group, "loaded")
                for member_id in group.live.members:
                    self._note_member(group.live, member_id)
                self._watch(group, now)

    def _watch(self, group: Coordinated, now: Micros) -> None:
        for member in group.live.members.values():
            self._watch_member(group, member, now)

    def resigned(self, partition: int) -> None:
        """The partition is led elsewhere: its groups are not ours any more."""
        for group in [g for g in self._groups.values() if g.live.partition == partition]:
            del self._groups[group.live.name]
            for member_id in group.live.members:
                self._forget_alarms(group.live.name, member_id)
            live = group.live
            self._context.note_group(live.name, "Dead", live.epoch, 0, "coordinated elsewhere")

    # -- names and facts --------------------------------------------------------------------------

    def _by_id(self, places: tuple[TopicPartition, ...]) -> tuple[TopicPartition, ...]:
        ids = self._image().topic_ids
        return tuple(TopicPartition(ids[p.topic], p.partition) for p in places if p.topic in ids)

    def _by_name(self, places: tuple[TopicPartition, ...]) -> tuple[TopicPartition, ...]:
        names = self._image().topic_names
        return tuple(
            sorted(TopicPartition(names[p.topic], p.partition) for p in places if p.topic in names)
        )

    def _note(self, group: Coordinated, reason: str) -> None:
        live = group.live
        self._context.note_group(live.name, live.state.value, live.epoch, len(live.members), reason)

    def _note_member(self, group: ConsumerGroup, member_id: str) -> None:
        member = group.members.get(member_id)
        gone = member is None
        shown = ConsumerGroupMember(member_id) if member is None else member
        self._context.emit(
            GroupMembers.row(
                self._context.broker,
                group.name,
                member_id=member_id,
                consumer=shown.client_id,
                member_epoch=LEAVE_EPOCH if gone else shown.epoch,
                state="GONE" if gone else shown.state.name,
                assigned=_text(self._by_name(shown.assigned)),
                pending_revocation=_text(self._by_name(shown.pending_revocation)),
            )
        )


def _text(places: tuple[TopicPartition, ...]) -> str:
    return ",".join(map(str, places))
