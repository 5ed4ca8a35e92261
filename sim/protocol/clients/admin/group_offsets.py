"""Requests of a client that is no member to the coordinators of groups.

Each request goes to the group's coordinator, found by FindCoordinator. Failed ones are retried
until the timeout, as by Kafka's admin client.

Source: ``KafkaAdminClient.{listConsumerGroupOffsets,alterConsumerGroupOffsets,
describeConsumerGroups,deleteConsumerGroups,deleteConsumerGroupOffsets}``, ``CoordinatorStrategy``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import LeaderEpoch, NodeId, Offset, TopicPartition
from sim.protocol.effects import Send, SetTimer
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.group import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
)
from sim.protocol.messages.group_admin import (
    DeleteGroupsResponse,
    DescribeGroupsResponse,
    OffsetDeleteResponse,
)
from sim.units import MS, SECOND, Micros

RETRY_US: Final[Micros] = 100 * MS
"""``retry.backoff.ms``."""

REQUEST_TIMEOUT_US: Final[Micros] = 30 * SECOND
"""``request.timeout.ms``."""

API_TIMEOUT_US: Final[Micros] = 60 * SECOND
"""``default.api.timeout.ms``."""

Offsets: TypeAlias = tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...]

OnGroupResponse: TypeAlias = Callable[[Response, Micros], None]
"""Callback of a coordinator's response, with the instant."""

_RETRIED: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)


_RESPONSES = (
    OffsetFetchResponse,
    OffsetCommitResponse,
    DescribeGroupsResponse,
    DeleteGroupsResponse,
    OffsetDeleteResponse,
)


@dataclass(slots=True)
class _Call:
    """One request to one group's coordinator, until it is answered or times out."""

    group: str
    request: Request
    answered: OnGroupResponse
    deadline: Micros
    expired: Callable[[Micros], None]
    """Called when it has timed out."""


class GroupOffsets:
    """Calls to coordinators of groups; a part of a machine, which passes events to it.

    Args:
        bootstrap: ``bootstrap.servers``.
    """

    def __init__(self, bootstrap: tuple[NodeId, ...]) -> None:
        self._bootstrap = bootstrap
        self._correlation = 0
        self._looking: dict[int, _Call] = {}
        self._open: dict[int, _Call] = {}
        self._waiting: list[_Call] = []
        self.effects: list[Send | SetTimer] = []
        """Effects; the machine takes them after each event."""

    def fetch(
        self,
        group: str,
        partitions: tuple[TopicPartition, ...],
        answered: OnGroupResponse,
        now: Micros,
        *,
        stable: bool = False,
    ) -> None:
        """Fetches a group's committed offsets; ``stable``: once no transaction has pending ones."""
        request = OffsetFetchRequest(group, partitions, require_stable=stable)
        self.send(group, request, answered, now)

    def commit(
        self,
        group: str,
        offsets: Offsets,
        answered: OnGroupResponse,
        now: Micros,
        timeout_us: Micros = API_TIMEOUT_US,
    ) -> None:
        """Commits a group's offsets; a group with members refuses it (UNKNOWN_MEMBER_ID)."""
        self.send(group, OffsetCommitRequest(group, "", -1, offsets), answered, now, timeout_us)

    def send(
        self,
        group: str,
        request: Request,
        answered: OnGroupResponse,
        now: Micros,
        timeout_us: Micros = API_TIMEOUT_US,
        expired: Callable[[Micros], None] = lambda _now: None,
    ) -> None:
        """Sends any request to a group's coordinator; ``expired`` is called at the timeout."""
        self._call(_Call(group, request, answered, now + timeout_us, expired), now)

    def handle(self, event: ResponseReceived | RequestFailed | TimerFired, now: Micros) -> None:
        """Handles a response, a failure, or the timer ``retry``."""
        if isinstance(event, TimerFired):
            waiting, self._waiting = self._waiting, []
            for call in waiting:
                self._call(call, now)
            return
        looking = self._looking.pop(event.correlation, None)
        known = looking or self._open.pop(event.correlation, None)
        if known is None:
            return
        if isinstance(event, RequestFailed):
            self._again(known, now)
        elif looking is not None:
            self._found(known, event.response, now)
        elif _error_of(event.response) in _RETRIED:
            self._again(known, now)
        else:
            known.answered(event.response, now)

    def _call(self, call: _Call, now: Micros) -> None:
        self._correlation += 1
        self._looking[self._correlation] = call
        broker = self._bootstrap[self._correlation % len(self._bootstrap)]
        self._send(broker, FindCoordinatorRequest(call.group), call, now)

    def _found(self, call: _Call, response: Response, now: Micros) -> None:
        assert isinstance(response, FindCoordinatorResponse)
        if response.error is not ErrorCode.NONE:
            self._again(call, now)
            return
        self._correlation += 1
        self._open[self._correlation] = call
        self._send(response.coordinator, call.request, call, now)

    def _send(self, to: NodeId, request: Request, call: _Call, now: Micros) -> None:
        timeout = min(REQUEST_TIMEOUT_US, call.deadline - now)
        self.effects.append(Send(to, self._correlation, request, timeout, "groups"))

    def _again(self, call: _Call, now: Micros) -> None:
        if now + RETRY_US >= call.deadline:
            call.expired(now)  # without a callback, the next round requests it again
            return
        self._waiting.append(call)
        self.effects.append(SetTimer("retry", now + RETRY_US))


def _error_of(response: Response) -> ErrorCode:
    assert isinstance(response, _RESPONSES)
    return response.error
