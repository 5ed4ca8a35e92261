"""``kafka-consumer-groups``: offsets that are reset or deleted, and groups that are deleted.

A reset is refused by the tool itself unless the group is inactive; a member that joins between the
look and the commit makes the coordinator refuse it. Offsets beyond the log are moved into it.

Source: ``ConsumerGroupCommand.{resetOffsets,prepareOffsetsToReset,checkOffsetsRange,deleteOffsets,
deleteGroups}``; KIP-122, KIP-496.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal, TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NO_EPOCH, NO_LEADER, NO_OFFSET, NodeId, Offset, TopicPartition
from sim.protocol.assignors.subscription import NO_GENERATION
from sim.protocol.clients.admin.client import OperationDone, leader_in
from sim.protocol.clients.admin.group_offsets import (
    API_TIMEOUT_US,
    REQUEST_TIMEOUT_US,
    RETRY_US,
    GroupOffsets,
)
from sim.protocol.effects import Effect, Send, SetTimer
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.data import (
    EARLIEST_TIMESTAMP,
    LATEST_TIMESTAMP,
    ListOffsetsRequest,
    ListOffsetsResponse,
)
from sim.protocol.messages.group import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from sim.protocol.messages.group_admin import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
)
from sim.protocol.messages.metadata import MetadataRequest, MetadataResponse
from sim.trace.rows.clients import Positions
from sim.units import Micros

CHANNEL = "offsets"
"""Connections of requests to leaders."""

_INACTIVE = ("Empty", "Dead")


@dataclass(frozen=True, slots=True)
class ResetOffsets:
    """``--reset-offsets --execute``: sets a group's offsets of some partitions.

    Attributes:
        group: The group.
        partitions: Its partitions to reset.
        to: ``offset``, ``current``, or ``timestamp`` (earliest and latest are timestamps, too).
        amount: The offset, the timestamp, or for ``shift`` the number of records, which may be
            negative.
    """

    group: str
    partitions: tuple[TopicPartition, ...]
    to: Literal["offset", "timestamp", "current", "shift"]
    amount: int = 0


GroupCommand: TypeAlias = ResetOffsets | DeleteGroupsRequest | OffsetDeleteRequest
"""Commands of the tool."""


@dataclass(frozen=True, slots=True)
class GroupCommandGiven:
    """Event: a command; ``number`` identifies it."""

    number: int
    command: GroupCommand


GroupToolEvent: TypeAlias = GroupCommandGiven | ResponseReceived | RequestFailed | TimerFired
"""Events of the tool."""

GroupToolEffect: TypeAlias = Effect | OperationDone
"""Effects of the tool."""


@dataclass(slots=True)
class _Reset:
    """A reset under way."""

    number: int
    command: ResetOffsets
    deadline: Micros
    committed: dict[TopicPartition, Offset] = field(default_factory=dict)
    found: dict[tuple[TopicPartition, int], Offset] = field(default_factory=dict)
    """Offsets of partitions by timestamp."""
    required: list[tuple[TopicPartition, int]] = field(default_factory=list)
    """Offsets by timestamp that are looked up, one after the other."""


@dataclass(frozen=True, slots=True)
class _Lookup:
    """An open request for an offset by timestamp, or for the leader that is asked."""

    reset: _Reset
    place: TopicPartition
    timestamp: int


class GroupTool:
    """The tool's runs, any number at a time.

    Args:
        bootstrap: ``--bootstrap-server``.
        name: As which it appears in the trace.
    """

    def __init__(self, bootstrap: tuple[NodeId, ...], name: str) -> None:
        self._bootstrap = bootstrap
        self._name = name
        self._groups = GroupOffsets(bootstrap)
        self._lookups: dict[int, _Lookup] = {}
        self._waiting: list[_Reset] = []
        self._correlation = 0
        self._out: list[GroupToolEffect] = []

    def handle(self, event: GroupToolEvent, now: Micros) -> list[GroupToolEffect]:
        """Handles an event; returns effects in order."""
        match event:
            case GroupCommandGiven():
                self._begin(event, now)
            case TimerFired("lookup"):
                waiting, self._waiting = self._waiting, []
                for reset in waiting:
                    self._look_up(reset, now)
            case ResponseReceived() | RequestFailed() if event.correlation < 0:
                self._looked_up(event, now)
            case _:
                self._groups.handle(event, now)
        effects: list[GroupToolEffect] = [*self._out, *self._groups.effects]
        self._out, self._groups.effects = [], []
        return effects

    # -- commands ---------------------------------------------------------------------------------

    def _begin(self, event: GroupCommandGiven, now: Micros) -> None:
        number, command = event.number, event.command
        if isinstance(command, ResetOffsets):
            reset = _Reset(number, command, now + API_TIMEOUT_US)
            request = DescribeGroupsRequest(command.group)
            self._request(number, command.group, request, partial(self._described, reset), now)
        else:
            self._request(
                number, command.group, command, partial(self._deleted, command, number), now
            )

    def _request(
        self,
        number: int,
        group: str,
        request: Request,
        answered: Callable[[Response, Micros], None],
        now: Micros,
    ) -> None:
        expired = partial(self._expired, number, group)
        self._groups.send(group, request, answered, now, API_TIMEOUT_US, expired)

    def _expired(self, number: int, group: str, _now: Micros) -> None:
        self._done(number, ((group, ErrorCode.REQUEST_TIMED_OUT),))

    def _deleted(
        self,
        command: DeleteGroupsRequest | OffsetDeleteRequest,
        number: int,
        response: Response,
        _now: Micros,
    ) -> None:
        assert isinstance(response, DeleteGroupsResponse | OffsetDeleteResponse)
        if isinstance(response, OffsetDeleteResponse) and response.error is ErrorCode.NONE:
            results = tuple((str(place), error) for place, error in response.results)
            self._done(number, results)
        else:
            self._done(number, ((command.group, response.error),))

    def _done(self, number: int, errors: tuple[tuple[str, ErrorCode], ...]) -> None:
        self._out.append(OperationDone(number, errors))

    # -- a reset ----------------------------------------------------------------------------------

    def _described(self, reset: _Reset, response: Response, now: Micros) -> None:
        assert isinstance(response, DescribeGroupsResponse)
        group, state = reset.command.group, response.state
        known = response.error in {ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND}
        if not known or state not in _INACTIVE:
            error = ErrorCode.NON_EMPTY_GROUP if known else response.error
            self._done(reset.number, ((f"{group} is {state}, not inactive:", error),))
        elif reset.command.to in {"current", "shift"}:
            request = OffsetFetchRequest(group, reset.command.partitions)
            self._request(reset.number, group, request, partial(self._fetched, reset), now)
        else:
            self._plan(reset, now)

    def _fetched(self, reset: _Reset, response: Response, now: Micros) -> None:
        assert isinstance(response, OffsetFetchResponse)
        if response.error is not ErrorCode.NONE:
            self._done(reset.number, ((reset.command.group, response.error),))
            return
        reset.committed = {p: offset for p, offset, _ in response.offsets if offset >= 0}
        missing = [p for p in reset.command.partitions if p not in reset.committed]
        if missing and reset.command.to == "shift":
            error = ErrorCode.INVALID_REQUEST
            self._done(reset.number, tuple((f"{p} has no offset:", error) for p in missing))
        else:
            self._plan(reset, now)

    def _plan(self, reset: _Reset, now: Micros) -> None:
        """Lists offsets by timestamp that the new ones depend on."""
        command = reset.command
        for place in command.partitions:
            if command.to == "timestamp":
                reset.required.append((place, command.amount))
            elif command.to != "current":
                reset.required += [(place, EARLIEST_TIMESTAMP), (place, LATEST_TIMESTAMP)]
            elif place not in reset.committed:
                reset.required.append((place, LATEST_TIMESTAMP))
        self._look_up(reset, now)

    def _look_up(self, reset: _Reset, now: Micros) -> None:
        """Looks the next offset up, or commits."""
        if reset.required:
            place, timestamp = reset.required[0]
            lookup = _Lookup(reset, place, timestamp)
            broker = self._bootstrap[-self._correlation % len(self._bootstrap)]
            self._send(lookup, broker, MetadataRequest((place.topic,)), now)
        else:
            self._commit(reset, now)

    def _send(self, lookup: _Lookup, to: NodeId, request: Request, now: Micros) -> None:
        self._correlation -= 1
        self._lookups[self._correlation] = lookup
        timeout = min(REQUEST_TIMEOUT_US, lookup.reset.deadline - now)
        self._out.append(Send(to, self._correlation, request, timeout, CHANNEL))

    def _looked_up(self, event: ResponseReceived | RequestFailed, now: Micros) -> None:
        lookup = self._lookups.pop(event.correlation, None)
        if lookup is None:
            return
        reset, place = lookup.reset, lookup.place
        response = event.response if isinstance(event, ResponseReceived) else None
        if isinstance(response, MetadataResponse):
            leader = leader_in(response, place)
            if leader != NO_LEADER:
                self._send(lookup, leader, ListOffsetsRequest(place, lookup.timestamp), now)
                return
        elif isinstance(response, ListOffsetsResponse) and response.error is ErrorCode.NONE:
            del reset.required[0]
            reset.found[place, lookup.timestamp] = response.offset
            if response.offset == NO_OFFSET:  # no record is as young as that
                reset.required.insert(0, (place, LATEST_TIMESTAMP))
            self._look_up(reset, now)
            return
        if now + RETRY_US >= reset.deadline:
            self._done(reset.number, ((str(place), ErrorCode.REQUEST_TIMED_OUT),))
            return
        self._waiting.append(reset)
        self._out.append(SetTimer("lookup", now + RETRY_US))

    def _commit(self, reset: _Reset, now: Micros) -> None:
        offsets = tuple((p, self._new_offset(reset, p), NO_EPOCH) for p in reset.command.partitions)
        places = {place: offset for place, offset, _ in offsets}
        group = reset.command.group
        request = OffsetCommitRequest(group, "", NO_GENERATION, offsets)
        self._request(reset.number, group, request, partial(self._committed, reset, places), now)

    def _new_offset(self, reset: _Reset, place: TopicPartition) -> Offset:
        command, latest = reset.command, reset.found.get((place, LATEST_TIMESTAMP), 0)
        if command.to == "timestamp":
            found = reset.found[place, command.amount]
            return latest if found == NO_OFFSET else found
        if command.to == "current":
            return reset.committed.get(place, latest)
        offset = command.amount
        if command.to == "shift":
            offset += reset.committed[place]
        return max(min(offset, latest), reset.found[place, EARLIEST_TIMESTAMP])

    def _committed(
        self,
        reset: _Reset,
        places: dict[TopicPartition, Offset],
        response: Response,
        _now: Micros,
    ) -> None:
        assert isinstance(response, OffsetCommitResponse)
        group = reset.command.group
        if response.error is ErrorCode.NONE:
            for place, offset in places.items():
                row = Positions.row(
                    self._name,
                    group,
                    *place,
                    offset_before=reset.committed.get(place, NO_OFFSET),
                    offset=offset,
                    reason="altered",
                )
                self._out.append(row)
        self._done(reset.number, tuple((f"{group} {p}", response.error) for p in places))
