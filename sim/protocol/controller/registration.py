"""A controller's own registration at the active controller (KIP-919).

It registers once the finalized ``metadata.version`` allows it, and again when the metadata names
another process with its id. A registration that fails is tried again after a backoff.

Source: ``kafka.server.ControllerRegistrationManager`` (4.1).
"""

from collections.abc import Callable
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, NodeId
from sim.protocol import effects as fx
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.kraft.types import Committed, LeadershipChanged, SnapshotLoaded
from sim.protocol.messages.cluster import (
    ControllerRegistrationRequest,
    ControllerRegistrationResponse,
)
from sim.protocol.metadata.image import ControllerRegistration, MetadataImage
from sim.protocol.metadata.versions import (
    CONTROLLER_REGISTRATION,
    FEATURE,
    SupportedFeatures,
    is_at_least,
)
from sim.units import MS, SECOND, Micros

CHANNEL = "registration"
"""Label of the connection."""

BACKOFF_US: Micros = 100 * MS
BACKOFF_MAX_US: Micros = 120 * SECOND
REQUEST_TIMEOUT_US: Micros = 30 * SECOND

RegistrationEvent: TypeAlias = (
    Committed | SnapshotLoaded | LeadershipChanged | ResponseReceived | RequestFailed | TimerFired
)
"""Events of a registration; metadata is applied before it hears of it."""

RegistrationEffect: TypeAlias = fx.Send | fx.SetTimer
"""Effects of a registration."""


class ControllerRegistrar:
    """Registration of one controller process.

    Args:
        node: Its ``node.id``.
        incarnation: Of the process.
        supported: Features that it supports.
        image: Committed metadata of the process.
        unit: Draws the jitter of backoffs, uniform in [0, 1).
    """

    def __init__(
        self,
        node: NodeId,
        incarnation: str,
        supported: SupportedFeatures,
        image: Callable[[], MetadataImage],
        unit: Callable[[], float],
    ) -> None:
        self._request = ControllerRegistrationRequest(node, incarnation, supported)
        self._image = image
        self._unit = unit
        self._leader: NodeId = NO_LEADER
        self._correlation = 0
        self._open: int | None = None
        self._failed = 0
        self._waits = False
        self._due = True
        """False once the active controller has answered, until the metadata says otherwise."""
        self._known: tuple[int, ControllerRegistration | None] = (-1, None)

    def handle(self, event: RegistrationEvent, now: Micros) -> list[RegistrationEffect]:
        """Handles an event; returns effects."""
        match event:
            case LeadershipChanged():
                self._leader = event.leader
            case ResponseReceived():
                if event.correlation == self._open:
                    self._open = None
                    response = event.response
                    assert isinstance(response, ControllerRegistrationResponse)
                    if response.error is not ErrorCode.NONE:
                        return self._failure(now)
                    self._failed = 0
                    self._due = False
            case RequestFailed():
                if event.correlation == self._open:
                    self._open = None
                    return self._failure(now)
            case TimerFired():
                self._waits = False
            case _:
                image = self._image()
                registered = image.controllers.get(self._request.controller)
                known = image.features.get(FEATURE, -1), registered
                self._due = self._due or known != self._known
                self._known = known
        return self._send_if_due()

    @property
    def is_registered(self) -> bool:
        """True if the metadata has this process."""
        registered = self._image().controllers.get(self._request.controller)
        return registered is not None and registered.incarnation == self._request.incarnation

    def _send_if_due(self) -> list[RegistrationEffect]:
        image = self._image()
        is_open = self._open is not None or self._waits
        if self._leader == NO_LEADER or is_open or not self._due or self.is_registered:
            return []
        if not image.features or not is_at_least(image.features, CONTROLLER_REGISTRATION):
            return []
        self._correlation += 1
        self._open = self._correlation
        return [fx.Send(self._leader, self._open, self._request, REQUEST_TIMEOUT_US, CHANNEL)]

    def _failure(self, now: Micros) -> list[RegistrationEffect]:
        """Waits, twice as long each time and at most two minutes, give or take two percent."""
        wait = min(BACKOFF_US << min(self._failed, 20), BACKOFF_MAX_US)
        self._failed += 1
        self._waits = True
        return [fx.SetTimer("communication", now + wait * (980 + int(self._unit() * 41)) // 1_000)]
