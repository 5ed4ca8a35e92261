"""Client of share coordinators: initializes, reads and writes the states of share partitions.

Leaders read and write, group coordinators initialize.

A request that no coordinator accepts is sent again, to the coordinator at that time, with waits
that double. Simplified: the coordinator is found in the broker's own metadata, where Kafka asks any
broker for it, and each request is sent alone, where Kafka combines those that wait.

Source: ``DefaultStatePersister``, ``PersisterStateManager``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, SHARE_STATE_TOPIC, NodeId, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.events import RequestFailed, ResponseReceived
from sim.protocol.messages.base import Response
from sim.protocol.messages.share import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from sim.protocol.metadata.image import MetadataImage
from sim.units import SECOND, Micros

CHANNEL = "share-state"
"""Channel of leaders to share coordinators."""

ATTEMPTS_MAX = 5
"""``PersisterStateManager.MAX_FIND_COORD_ATTEMPTS``."""

_BACKOFF_US: Micros = 1 * SECOND
_BACKOFF_US_MAX: Micros = 30 * SECOND

_TRY_AGAIN = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
    }
)

_INITIALIZE_AGAIN = _TRY_AGAIN | {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
"""The same of an initialization: the coordinator may not know the topic yet."""

FENCED = frozenset({ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.FENCED_STATE_EPOCH})
"""Errors of a coordinator after which the leader knows that it was deposed."""

_MEMBER_ERRORS = {
    ErrorCode.NOT_COORDINATOR: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.COORDINATOR_NOT_AVAILABLE: ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.FENCED_STATE_EPOCH: ErrorCode.FENCED_STATE_EPOCH,
    ErrorCode.FENCED_LEADER_EPOCH: ErrorCode.NOT_LEADER_OR_FOLLOWER,
}


def member_error(error: ErrorCode) -> ErrorCode:
    """A member's error for a coordinator's error.

    Source: ``SharePartition.fetchPersisterError``.
    """
    return _MEMBER_ERRORS.get(error, ErrorCode.UNKNOWN_SERVER_ERROR)


StateRequest: TypeAlias = (
    InitializeShareGroupStateRequest | ReadShareGroupStateRequest | WriteShareGroupStateRequest
)

PersisterEffect: TypeAlias = fx.Send | fx.SetTimer
"""Effects of a persister: requests, and timers of those that are sent again."""

OnStateResponse: TypeAlias = Callable[[Response | None, ErrorCode, Micros], None]
"""Callback: the response, or ``None`` with the error; and the instant."""


@dataclass(slots=True)
class _OpenRequest:
    request: StateRequest
    answered: OnStateResponse
    attempts: int = 0


class SharePersister:
    """Open requests of one broker to share coordinators.

    Args:
        image: The broker's metadata.
        request_timeout_us: Timeout of a response.
        unit: Draws numbers uniform in [0, 1), for the waits' jitter.
    """

    def __init__(
        self,
        image: Callable[[], MetadataImage],
        request_timeout_us: Micros,
        unit: Callable[[], float],
    ) -> None:
        self.out: list[PersisterEffect] = []
        """Effects, until the caller takes them."""
        self._image = image
        self._request_timeout_us = request_timeout_us
        self._unit = unit
        self._open: dict[int, _OpenRequest] = {}
        self._again: dict[str, _OpenRequest] = {}
        self._number = 0

    def send(self, request: StateRequest, answered: OnStateResponse, now: Micros) -> None:
        """Sends a request; ``answered`` is called once."""
        self._send(_OpenRequest(request, answered), now)

    def wake(self, timer: str, now: Micros) -> bool:
        """A timer is due; true if it is one of these."""
        pending = self._again.pop(timer, None)
        if pending is not None:
            self._send(pending, now)
        return pending is not None

    def handle(self, event: ResponseReceived | RequestFailed, now: Micros) -> None:
        """A response came, or the request failed."""
        pending = self._open.pop(event.correlation, None)
        if pending is None:
            return
        if isinstance(event, RequestFailed):
            self._later(pending, event.error, now)
            return
        response = event.response
        assert isinstance(
            response,
            InitializeShareGroupStateResponse
            | ReadShareGroupStateResponse
            | WriteShareGroupStateResponse,
        )
        initializes = isinstance(response, InitializeShareGroupStateResponse)
        if response.error in (_INITIALIZE_AGAIN if initializes else _TRY_AGAIN):
            self._later(pending, response.error, now)
        else:
            pending.answered(response, response.error, now)

    def _send(self, pending: _OpenRequest, now: Micros) -> None:
        pending.attempts += 1
        coordinator = self._coordinator(pending.request)
        if coordinator == NO_LEADER:
            self._later(pending, ErrorCode.COORDINATOR_NOT_AVAILABLE, now)
            return
        self._number += 1
        self._open[self._number] = pending
        timeout = self._request_timeout_us
        self.out.append(fx.Send(coordinator, self._number, pending.request, timeout, CHANNEL))

    def _coordinator(self, request: StateRequest) -> NodeId:
        image = self._image()
        count = image.partition_counts.get(SHARE_STATE_TOPIC, 0)
        if not count:
            return NO_LEADER
        number = partition_for_group(request.key.text, count)
        leader = image.leader_of(TopicPartition(SHARE_STATE_TOPIC, number))
        registration = image.brokers.get(leader)
        return NO_LEADER if registration is None or registration.fenced else leader

    def _later(self, pending: _OpenRequest, error: ErrorCode, now: Micros) -> None:
        if pending.attempts >= ATTEMPTS_MAX:
            pending.answered(None, error, now)
            return
        wait = min(_BACKOFF_US << (pending.attempts - 1), _BACKOFF_US_MAX)
        wait = wait * (800 + int(self._unit() * 401)) // 1_000
        self._number += 1
        timer = f"share-state/{self._number}"
        self._again[timer] = pending
        self.out.append(fx.SetTimer(timer, now + wait))
