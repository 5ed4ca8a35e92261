"""Finds a consumer's group coordinator, and detects its loss.

Source: ``AbstractCoordinator.ensureCoordinatorReady``, ``FindCoordinatorResponseHandler``.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, NodeId
from sim.protocol.clients.consumer.context import COORDINATOR_CHANNEL, ConsumerLink, OnAnswer
from sim.protocol.clients.consumer.metadata import ConsumerMetadata
from sim.protocol.effects import Disconnect
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.consumer_group import ConsumerGroupHeartbeatResponse
from sim.protocol.messages.group import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatResponse,
    JoinGroupResponse,
    OffsetCommitResponse,
    OffsetFetchResponse,
    SyncGroupResponse,
)
from sim.protocol.messages.share import ShareGroupHeartbeatResponse
from sim.units import LONG_AGO, Micros

_GROUP_RESPONSES = (
    JoinGroupResponse,
    SyncGroupResponse,
    HeartbeatResponse,
    OffsetCommitResponse,
    OffsetFetchResponse,
    ConsumerGroupHeartbeatResponse,
    ShareGroupHeartbeatResponse,
)

OnGroupAnswer: TypeAlias = Callable[[Response | None, ErrorCode, Micros], None]
"""Answer or ``None``, its error or why there is none, instant."""

_LOST = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.REQUEST_TIMED_OUT,
    }
)


class CoordinatorFinder:
    """The coordinator's id, as long as it is valid."""

    def __init__(self, link: ConsumerLink, metadata: ConsumerMetadata) -> None:
        self.node: NodeId = NO_LEADER
        """The coordinator; NO_LEADER while it is unknown."""
        self.found_at: Micros = LONG_AGO
        """Time when it was last found: the session begins again from then on."""
        self.on_answer: Callable[[ErrorCode, Micros], None] = _nobody_waits
        """Called when a lookup has ended: NONE if the coordinator is known now."""
        self._link = link
        self._metadata = metadata
        self._asking = False
        self._failures = 0

    @property
    def known(self) -> bool:
        """True if the coordinator is known."""
        return self.node != NO_LEADER

    def send(self, request: Request, on_answer: OnAnswer, timeout_us: Micros = 0) -> None:
        """Sends to the coordinator, over its own connection.

        Raises:
            AssertionError: If it is not known.
        """
        assert self.known, "no coordinator to send to"
        self._link.send(
            self.node, request, on_answer, channel=COORDINATOR_CHANNEL, timeout_us=timeout_us
        )

    def send_for_group(
        self, request: Request, on_answer: OnGroupAnswer, timeout_us: Micros = 0
    ) -> None:
        """Sends a request, and notes coordinator errors of the response before passing it on."""
        self.send(request, partial(self._on_group_answer, on_answer), timeout_us)

    def find(self, now: Micros) -> None:
        """Sends FindCoordinator to any broker, unless it is known, looked up, or was just now."""
        if self.known or self._asking or self._link.is_set("find"):
            return
        self._asking = True
        self._link.send(
            self._metadata.least_loaded(now),
            FindCoordinatorRequest(self._link.config.group_id),
            self._on_answer,
        )

    def lose(self, node: NodeId) -> None:
        """That node is not, or no longer, the coordinator: drops it, and closes its connection.

        Open requests on it fail. No effect for another node.
        """
        if node == self.node:
            self.node = NO_LEADER
            self._link.disconnect(Disconnect(node, COORDINATOR_CHANNEL))

    def _on_group_answer(
        self,
        on_answer: OnGroupAnswer,
        sender: NodeId,
        response: Response | None,
        error: ErrorCode,
        now: Micros,
    ) -> None:
        """Drops the coordinator if its error, or failure, shows that it is not one."""
        if response is not None:
            assert isinstance(response, _GROUP_RESPONSES)
            error = response.error
            if error in _LOST:
                self.lose(sender)
        elif sender == self.node:
            self.node = NO_LEADER  # the connection is closed already
        on_answer(response, error, now)

    def _on_answer(
        self, _sender: NodeId, response: Response | None, error: ErrorCode, now: Micros
    ) -> None:
        self._asking = False
        found = NO_LEADER
        if response is not None:
            assert isinstance(response, FindCoordinatorResponse)
            error, found = response.error, response.coordinator
        if error is ErrorCode.NONE:
            self._failures = 0
            self.node = found
            self.found_at = now
        elif error.retriable:
            wait = self._link.backoff(self._failures)
            self._failures += 1
            self._metadata.request_update(now)
            self._link.set_timer("find", now + wait, self.find)
        else:
            self._link.fail(error)
        self.on_answer(error, now)


def _nobody_waits(_error: ErrorCode, _now: Micros) -> None:
    """Default callback."""
