"""A group's committed offsets, asked for or set by someone who is no member of it.

Each request goes to the group's coordinator, which any broker names. What fails is tried again
until the time is up, as by Kafka's admin client.

Source: ``KafkaAdminClient.{listConsumerGroupOffsets,alterConsumerGroupOffsets}``,
``CoordinatorStrategy``.
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
from sim.units import MS, SECOND, Micros

RETRY_US: Final[Micros] = 100 * MS
"""``retry.backoff.ms``."""

REQUEST_TIMEOUT_US: Final[Micros] = 30 * SECOND
"""``request.timeout.ms``."""

API_TIMEOUT_US: Final[Micros] = 60 * SECOND
"""``default.api.timeout.ms``."""

Offsets: TypeAlias = tuple[tuple[TopicPartition, Offset, LeaderEpoch], ...]

Answered: TypeAlias = Callable[[Response, Micros], None]
"""What to do with a coordinator's answer, at which instant."""

_RETRIED: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.UNSTABLE_OFFSET_COMMIT,
    }
)


@dataclass(slots=True)
class _Call:
    """One request to one group's coordinator, until it is answered or given up."""

    group: str
    request: Request
    answered: Answered
    deadline: Micros


class GroupOffsets:
    """Calls to coordinators of groups; a part of a machine, which hands events on to it.

    Args:
        bootstrap: Brokers, any of which can be asked who coordinates a group.
    """

    def __init__(self, bootstrap: tuple[NodeId, ...]) -> None:
        self._bootstrap = bootstrap
        self._asked = 0
        self._looking: dict[int, _Call] = {}
        self._open: dict[int, _Call] = {}
        self._waiting: list[_Call] = []
        self.effects: list[Send | SetTimer] = []
        """What is to be sent; the machine takes it after each event."""

    def fetch(
        self,
        group: str,
        partitions: tuple[TopicPartition, ...],
        answered: Answered,
        now: Micros,
        *,
        stable: bool = False,
    ) -> None:
        """Ask what the group has committed; ``stable``: once no transaction holds more of it."""
        request = OffsetFetchRequest(group, partitions, require_stable=stable)
        self._call(_Call(group, request, answered, now + API_TIMEOUT_US), now)

    def commit(
        self,
        group: str,
        offsets: Offsets,
        answered: Answered,
        now: Micros,
        timeout_us: Micros = API_TIMEOUT_US,
    ) -> None:
        """Set the group's offsets; a group with members refuses it (UNKNOWN_MEMBER_ID)."""
        request = OffsetCommitRequest(group, "", -1, offsets)
        self._call(_Call(group, request, answered, now + timeout_us), now)

    def handle(self, event: ResponseReceived | RequestFailed | TimerFired, now: Micros) -> None:
        """An answer, its absence, or the time to try again (timer ``retry``)."""
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
        self._asked += 1
        self._looking[self._asked] = call
        broker = self._bootstrap[self._asked % len(self._bootstrap)]
        self._send(broker, FindCoordinatorRequest(call.group), call, now)

    def _found(self, call: _Call, response: Response, now: Micros) -> None:
        assert isinstance(response, FindCoordinatorResponse)
        if response.error is not ErrorCode.NONE:
            self._again(call, now)
            return
        self._asked += 1
        self._open[self._asked] = call
        self._send(response.coordinator, call.request, call, now)

    def _send(self, to: NodeId, request: Request, call: _Call, now: Micros) -> None:
        timeout = min(REQUEST_TIMEOUT_US, call.deadline - now)
        self.effects.append(Send(to, self._asked, request, timeout, "groups"))

    def _again(self, call: _Call, now: Micros) -> None:
        if now + RETRY_US >= call.deadline:
            return  # given up: the next round asks anew
        self._waiting.append(call)
        self.effects.append(SetTimer("retry", now + RETRY_US))


def _error_of(response: Response) -> ErrorCode:
    assert isinstance(response, OffsetFetchResponse | OffsetCommitResponse)
    return response.error
