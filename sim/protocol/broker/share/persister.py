"""How a leader of share partitions has their states kept: it asks the share coordinator.

A request that no coordinator takes is sent again, to whoever coordinates then, with waits that
double. Simplified: the coordinator is found in the broker's own metadata, where Kafka asks any
broker for it, and each request travels alone, where Kafka gathers those that wait.

Source: ``DefaultStatePersister``, ``PersisterStateManager``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, SHARE_STATE_TOPIC, NodeId, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.assignors.registry import partition_for_group
from sim.protocol.broker.share.effects import Effects
from sim.protocol.events import RequestFailed, ResponseReceived
from sim.protocol.messages.base import Response
from sim.protocol.messages.share import (
    ReadShareGroupStateRequest,
    ReadShareGroupStateResponse,
    WriteShareGroupStateRequest,
    WriteShareGroupStateResponse,
)
from sim.protocol.metadata.image import MetadataImage
from sim.units import SECOND, Micros

CHANNEL = "share-state"
"""The connections on which leaders ask share coordinators."""

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

StateRequest: TypeAlias = ReadShareGroupStateRequest | WriteShareGroupStateRequest

Answered: TypeAlias = Callable[[Response | None, ErrorCode, Micros], None]
"""The answer, or ``None`` with why there is none; and the instant."""


@dataclass(slots=True)
class _Asked:
    request: StateRequest
    answered: Answered
    attempts: int = 0


class SharePersister:
    """The open requests of one broker to share coordinators.

    Args:
        image: The broker's metadata.
        request_timeout_us: How long an answer may take.
        unit: Draws numbers uniform in [0, 1), for the waits' jitter.
    """

    def __init__(
        self,
        image: Callable[[], MetadataImage],
        request_timeout_us: Micros,
        unit: Callable[[], float],
    ) -> None:
        self.out: Effects = []
        """Effects, until somebody takes them out."""
        self._image = image
        self._request_timeout_us = request_timeout_us
        self._unit = unit
        self._open: dict[int, _Asked] = {}
        self._again: dict[str, _Asked] = {}
        self._number = 0

    def ask(self, request: StateRequest, answered: Answered, now: Micros) -> None:
        """Send a request; ``answered`` is called once."""
        self._send(_Asked(request, answered), now)

    def wake(self, timer: str, now: Micros) -> bool:
        """A timer is due; whether it is one of ours."""
        asked = self._again.pop(timer, None)
        if asked is not None:
            self._send(asked, now)
        return asked is not None

    def heard(self, event: ResponseReceived | RequestFailed, now: Micros) -> None:
        """An answer came, or none will."""
        asked = self._open.pop(event.correlation, None)
        if asked is None:
            return
        if isinstance(event, RequestFailed):
            self._later(asked, event.error, now)
            return
        response = event.response
        assert isinstance(response, ReadShareGroupStateResponse | WriteShareGroupStateResponse)
        if response.error in _TRY_AGAIN:
            self._later(asked, response.error, now)
        else:
            asked.answered(response, response.error, now)

    def _send(self, asked: _Asked, now: Micros) -> None:
        asked.attempts += 1
        coordinator = self._coordinator(asked.request)
        if coordinator == NO_LEADER:
            self._later(asked, ErrorCode.COORDINATOR_NOT_AVAILABLE, now)
            return
        self._number += 1
        self._open[self._number] = asked
        timeout = self._request_timeout_us
        self.out.append(fx.Send(coordinator, self._number, asked.request, timeout, CHANNEL))

    def _coordinator(self, request: StateRequest) -> NodeId:
        image = self._image()
        count = image.partition_counts.get(SHARE_STATE_TOPIC, 0)
        if not count:
            return NO_LEADER
        number = partition_for_group(request.key.text, count)
        leader = image.leader_of(TopicPartition(SHARE_STATE_TOPIC, number))
        registration = image.brokers.get(leader)
        return NO_LEADER if registration is None or registration.fenced else leader

    def _later(self, asked: _Asked, error: ErrorCode, now: Micros) -> None:
        if asked.attempts >= ATTEMPTS_MAX:
            asked.answered(None, error, now)
            return
        wait = min(_BACKOFF_US << (asked.attempts - 1), _BACKOFF_US_MAX)
        wait = wait * (800 + int(self._unit() * 401)) // 1_000
        self._number += 1
        timer = f"share-state/{self._number}"
        self._again[timer] = asked
        self.out.append(fx.SetTimer(timer, now + wait))
