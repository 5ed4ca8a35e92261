"""Creates topics, and retries until they exist.

Left out: everything else of an admin client.

Source: ``kafka-topics --create``; ``KafkaAdminClient``'s retries.
"""

from dataclasses import dataclass
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NodeId
from sim.protocol import effects as fx
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.messages.cluster import CreateTopicsRequest, CreateTopicsResponse, NewTopic
from sim.units import MS, SECOND, Micros

RETRY_US: Micros = 100 * MS
"""Wait before a refused topic is requested again."""

TIMEOUT_US: Micros = 5 * SECOND
"""Timeout of one controller, before the next is tried."""


@dataclass(frozen=True, slots=True)
class TopicsRequested:
    """Event: begins."""


@dataclass(frozen=True, slots=True)
class TopicsExist:
    """Effect: every topic exists. Emitted once."""


BootstrapEffect: TypeAlias = fx.Send | fx.SetTimer | TopicsExist
"""Effects of the creation of topics."""


class Admin:
    """Creates topics. ``done`` once every topic exists."""

    def __init__(self, controllers: tuple[NodeId, ...], topics: tuple[NewTopic, ...]) -> None:
        self._controllers = controllers
        self._missing = {topic.name: topic for topic in topics}
        self._correlation = 0
        self._has_said_so = False
        self.refused: dict[str, ErrorCode] = {}
        """Error of each topic that does not exist yet."""

    @property
    def done(self) -> bool:
        """True if every topic exists."""
        return not self._missing

    def handle(
        self, event: TopicsRequested | ResponseReceived | RequestFailed | TimerFired, now: Micros
    ) -> list[BootstrapEffect]:
        """Handles an event; returns effects in order."""
        match event:
            case TopicsRequested() | TimerFired():
                return self._send()
            case RequestFailed():
                return [fx.SetTimer("retry", now + RETRY_US)]
            case ResponseReceived():
                return self._answered(event, now)

    def _send(self) -> list[BootstrapEffect]:
        if self.done:
            return self._exist()
        self._correlation += 1
        controller = self._controllers[self._correlation % len(self._controllers)]
        request = CreateTopicsRequest(tuple(self._missing.values()))
        return [fx.Send(controller, self._correlation, request, TIMEOUT_US)]

    def _answered(self, event: ResponseReceived, now: Micros) -> list[BootstrapEffect]:
        response = event.response
        assert isinstance(response, CreateTopicsResponse)
        for name, error in response.errors:
            if error in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
                self._missing.pop(name, None)
                self.refused.pop(name, None)
            else:
                self.refused[name] = error
        return self._exist() if self.done else [fx.SetTimer("retry", now + RETRY_US)]

    def _exist(self) -> list[BootstrapEffect]:
        said, self._has_said_so = self._has_said_so, True
        return [] if said else [TopicsExist()]
