"""Administration of groups at their coordinator: describe, delete, delete offsets.

Left out: deletion of share groups and of several groups in one request.

Source: ``GroupCoordinatorShard.deleteGroups``, ``OffsetMetadataManager.{deleteOffsets,
deleteAllOffsets}``, ``ClassicGroup.{validateDeleteGroup,validateOffsetDelete}``, ``ConsumerGroup``.
"""

from collections.abc import Callable
from functools import partial

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.coordinator.group.classic_state import Group, GroupState
from sim.protocol.coordinator.group.consumer_groups import ConsumerGroups
from sim.protocol.coordinator.group.context import CoordinatorContext
from sim.protocol.coordinator.group.records import GroupRecord, GroupTombstone, OffsetTombstone
from sim.protocol.coordinator.group.transactions import PendingOffsets
from sim.protocol.coordinator.log import error_for_client
from sim.protocol.messages.base import Response
from sim.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from sim.units import Micros

ADMINISTRATIVE = (DescribeGroupsRequest, DeleteGroupsRequest, OffsetDeleteRequest)
"""Requests of an administrator to a coordinator."""


class GroupAdministration:
    """Administration of one coordinator's groups.

    Args:
        context: Receives answers and tombstones.
        groups: Classic groups, and the offsets of all groups, by name.
        consumer_groups: Groups of the consumer protocol.
        pending: Offsets that wait for a marker.
        partition_of: Partition of ``__consumer_offsets`` of a group.
    """

    def __init__(
        self,
        context: CoordinatorContext[GroupRecord],
        groups: dict[str, Group],
        consumer_groups: ConsumerGroups,
        pending: PendingOffsets,
        partition_of: Callable[[str], int],
    ) -> None:
        self._context = context
        self._groups = groups
        self._consumer_groups = consumer_groups
        self._pending = pending
        self._partition_of = partition_of

    def request(
        self,
        request: DescribeGroupsRequest | DeleteGroupsRequest | OffsetDeleteRequest,
        token: int,
        now: Micros,
    ) -> None:
        """Answers, at once or when what it deletes is committed."""
        state = self._state(request.group)
        if isinstance(request, DescribeGroupsRequest):
            error = ErrorCode.NONE if state else ErrorCode.GROUP_ID_NOT_FOUND
            dead = GroupState.DEAD.value
            self._context.reply(token, DescribeGroupsResponse(error, state or dead))
        elif isinstance(request, OffsetDeleteRequest):
            self._delete_offsets(request, token, now, exists=bool(state))
        elif not state:
            self._context.reply(token, DeleteGroupsResponse(ErrorCode.GROUP_ID_NOT_FOUND))
        elif state != GroupState.EMPTY.value:
            self._context.reply(token, DeleteGroupsResponse(ErrorCode.NON_EMPTY_GROUP))
        else:
            self._delete(request.group, token, now)

    def _state(self, name: str) -> str:
        """State of a group; empty without it."""
        modern = self._consumer_groups.get(name)
        if modern is not None and modern.epoch > 0:
            return modern.state.value
        group = self._groups.get(name)
        return "" if group is None else group.state.value

    def _delete(self, name: str, token: int, now: Micros) -> None:
        group, home = self._groups.get(name), self._partition_of(name)
        places = self._places(group, home, name)
        records: list[GroupRecord] = [OffsetTombstone(name, place) for place in places]
        if self._consumer_groups.get(name) is None:
            records.append(GroupTombstone(name))
            self._write(home, records, DeleteGroupsResponse, token, now)
            return
        if records:
            self._context.write(home, tuple(records), _nobody_waits, now)

        def deleted(error: ErrorCode, _now: Micros) -> None:
            self._context.reply(token, DeleteGroupsResponse(error_for_client(error)))

        self._consumer_groups.delete(name, deleted, now)

    def _delete_offsets(
        self, request: OffsetDeleteRequest, token: int, now: Micros, *, exists: bool
    ) -> None:
        if not exists:
            self._context.reply(token, OffsetDeleteResponse(ErrorCode.GROUP_ID_NOT_FOUND))
            return
        name, home = request.group, self._partition_of(request.group)
        known = self._places(self._groups.get(name), home, name)
        results = tuple((place, self._refusal(name, place)) for place in request.partitions)
        records: list[GroupRecord] = [
            OffsetTombstone(name, place)
            for place, error in results
            if error is ErrorCode.NONE and place in known
        ]
        if records:
            answer = partial(OffsetDeleteResponse, results=results)
            self._write(home, records, answer, token, now)
        else:
            self._context.reply(token, OffsetDeleteResponse(ErrorCode.NONE, results))

    def _refusal(self, name: str, place: TopicPartition) -> ErrorCode:
        subscribed = self._subscribed(name, place.topic)
        return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE

    def _subscribed(self, name: str, topic: str) -> bool:
        """True if a member subscribes to the topic, or may: before the first generation.

        Source: ``ClassicGroup.isSubscribedToTopic``, ``ConsumerGroup.isSubscribedToTopic``.
        """
        modern = self._consumer_groups.get(name)
        if modern is not None and modern.members:
            return any(topic in member.topics for member in modern.members.values())
        group = self._groups.get(name)
        if group is None or not group.members:
            return False
        return not group.protocol or any(
            topic in member.subscription.topics for member in group.members.values()
        )

    def _places(self, group: Group | None, home: int, name: str) -> tuple[TopicPartition, ...]:
        """Partitions with an offset of the group, committed or pending, sorted."""
        committed = () if group is None else tuple(group.offsets)
        pending = self._pending.places(home, name)
        return tuple(sorted(dict.fromkeys((*committed, *pending))))

    def _write(
        self,
        home: int,
        records: list[GroupRecord],
        answer: Callable[[ErrorCode], Response],
        token: int,
        now: Micros,
    ) -> None:
        def outcome(error: ErrorCode, _now: Micros) -> None:
            self._context.reply(token, answer(error_for_client(error)))

        self._context.write(home, tuple(records), outcome, now)


def _nobody_waits(_error: ErrorCode, _now: Micros) -> None:
    """The answer waits for a later record."""
