"""An administrator who wants topics to exist, and asks until they do.

Left out: everything else an admin client can ask for.

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
"""Wait before a refused topic is asked for again."""

TIMEOUT_US: Micros = 5 * SECOND
"""How long one controller is waited for before the next is asked."""


@dataclass(frozen=True, slots=True)
class TopicsWanted:
    """Event: begin."""


@dataclass(frozen=True, slots=True)
class TopicsExist:
    """Effect: every topic exists. Said once."""


BootstrapEffect: TypeAlias = fx.Send | fx.SetTimer | TopicsExist
"""What the creation of topics asks of its host."""


class Admin:
    """Creates topics. ``done`` once every topic exists."""

    def __init__(self, controllers: tuple[NodeId, ...], topics: tuple[NewTopic, ...]) -> None:
        self._controllers = controllers
        self._missing = {topic.name: topic for topic in topics}
        self._asked = 0
        self._has_said_so = False
        self.refused: dict[str, ErrorCode] = {}
        """Why a topic does not exist yet."""

    @property
    def done(self) -> bool:
        """Whether every topic exists."""
        return not self._missing

    def handle(
        self, event: TopicsWanted | ResponseReceived | RequestFailed | TimerFired, now: Micros
    ) -> list[BootstrapEffect]:
        """Decide."""
        match event:
            case TopicsWanted() | TimerFired():
                return self._ask()
            case RequestFailed():
                return [fx.SetTimer("retry", now + RETRY_US)]
            case ResponseReceived():
                return self._answered(event, now)

    def _ask(self) -> list[BootstrapEffect]:
        if self.done:
            return self._exist()
        self._asked += 1
        controller = self._controllers[self._asked % len(self._controllers)]
        request = CreateTopicsRequest(tuple(self._missing.values()))
        return [fx.Send(controller, self._asked, request, TIMEOUT_US)]

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
