"""Shared by the parts of a consumer: open requests, timers, and the effects of one decision.

A request carries its callback, so that no part has to know the others' correlation ids. A response
to a request that is no longer open is dropped.

Source: ``org.apache.kafka.clients.consumer.internals.ConsumerNetworkClient``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NodeId
from sim.protocol.clients.backoff import backoff_us
from sim.protocol.clients.consumer.config import ConsumerConfig
from sim.protocol.clients.consumer.effects import (
    ApplicationCalled,
    Deliver,
    ExternalWrite,
    Stopped,
)
from sim.protocol.clients.consumer.work import WorkEnding, WorkTaken
from sim.protocol.effects import CancelTimer, Disconnect, Effect, Send, SetTimer
from sim.protocol.events import RequestFailed, ResponseReceived
from sim.protocol.messages.base import Request, Response
from sim.trace.emit import Emit
from sim.units import Micros

COORDINATOR_CHANNEL = "coordinator"
"""Connection to the coordinator, separate from that of fetches, as in Kafka."""


ConsumerEffect = (
    Effect | Deliver | Stopped | ApplicationCalled | WorkTaken | WorkEnding | ExternalWrite
)
"""Effects of a consumer; the last three only of a task or a sink."""

OnAnswer: TypeAlias = Callable[[NodeId, Response | None, ErrorCode, Micros], None]
"""Sender, response or ``None``, error (NONE with a response), instant."""


@dataclass(frozen=True, slots=True)
class _Open:
    to: NodeId
    on_answer: OnAnswer


class ConsumerLink:
    """Effects of one decision, and the requests and timers that outlive it."""

    def __init__(self, config: ConsumerConfig, unit: Callable[[], float]) -> None:
        self.config = config
        self.unit = unit
        """Draws for jitter and for the choice of a broker; uniform in [0, 1)."""
        self.error = ErrorCode.NONE
        """Error that the next poll raises; NONE without one."""
        self.failed_at: dict[NodeId, Micros] = {}
        """Time of each server's last request without a response."""
        self.on_disconnect: Callable[[], None] = _nothing
        """Called when a request fails without a response: metadata may be stale."""
        self.effects: list[ConsumerEffect] = []
        self._disconnects: list[Disconnect] = []
        self._correlation = 0
        self._open: dict[int, _Open] = {}
        self._open_at: dict[NodeId, int] = {}
        self._timers: dict[str, Callable[[Micros], None]] = {}

    def take(self) -> list[ConsumerEffect]:
        """Effects since the last call, in order."""
        effects, self.effects = self.effects, []
        if self._disconnects:
            effects += self._disconnects
            self._disconnects = []
        return effects

    def disconnect(self, effect: Disconnect) -> None:
        """Closes a connection, after all other effects: its open requests fail at once."""
        self._disconnects.append(effect)

    def fail(self, error: ErrorCode) -> None:
        """The next poll raises this error, on which the application closes."""
        self.error = error

    # -- requests ---------------------------------------------------------------------------------

    def send(
        self,
        to: NodeId,
        request: Request,
        on_answer: OnAnswer,
        *,
        channel: str = "",
        timeout_us: Micros = 0,
    ) -> int:
        """Sends with a callback; a timeout of 0 is ``request.timeout.ms``."""
        self._correlation += 1
        self._open[self._correlation] = _Open(to, on_answer)
        self._open_at[to] = self._open_at.get(to, 0) + 1
        timeout = timeout_us or self.config.request_timeout_us
        self.effects.append(Send(to, self._correlation, request, timeout, channel))
        return self._correlation

    def open_requests(self, node: NodeId) -> int:
        """Number of a server's open requests."""
        return self._open_at.get(node, 0)

    def abandon(self, correlation: int) -> None:
        """Ignores the response; the place on the connection stays taken until it comes."""
        item = self._open.get(correlation)
        if item is not None:
            self._open[correlation] = _Open(item.to, _drop)

    def answered(self, event: ResponseReceived | RequestFailed, now: Micros) -> None:
        """Passes a response, or its absence, to the callback."""
        item = self._open.pop(event.correlation, None)
        if item is None:
            return
        self._open_at[item.to] -= 1
        if isinstance(event, ResponseReceived):
            item.on_answer(event.sender, event.response, ErrorCode.NONE, now)
            return
        self.failed_at[item.to] = now
        self.on_disconnect()
        error = event.error
        if error.is_authentication:
            # Source: ``NetworkClient.processDisconnection``, ``Metadata.fatalError``.
            self.fail(error)
            error = ErrorCode.NETWORK_EXCEPTION
        item.on_answer(event.sender, None, error, now)

    # -- timers -----------------------------------------------------------------------------------

    def set_timer(self, name: str, at: Micros, fn: Callable[[Micros], None]) -> None:
        """Calls at the instant; a timer of that name already set is moved."""
        self._timers[name] = fn
        self.effects.append(SetTimer(name, at))

    def cancel_timer(self, name: str) -> None:
        """Cancels a timer; harmless if it is not set."""
        if self._timers.pop(name, None) is not None:
            self.effects.append(CancelTimer(name))

    def is_set(self, name: str) -> bool:
        """True if a timer of that name is set."""
        return name in self._timers

    def fire(self, name: str, now: Micros) -> None:
        """A timer is due; one that was cancelled is ignored."""
        fn = self._timers.pop(name, None)
        if fn is not None:
            fn(now)

    def emit(self, row: Emit) -> None:
        """Write a row to the trace."""
        self.effects.append(row)

    def end(self) -> None:
        """Drops all open requests and timers."""
        for name in list(self._timers):
            self.cancel_timer(name)
        self._open.clear()
        self._open_at.clear()

    def backoff(self, failures: int) -> Micros:
        """The wait after so many failures in a row, less one."""
        config = self.config
        longest = config.retry_backoff_us_max
        return backoff_us(config.retry_backoff_us, longest, failures, self.unit)


def _nothing() -> None:
    """Default callback."""


def _drop(_to: NodeId, _response: Response | None, _error: ErrorCode, _now: Micros) -> None:
    """Ignores a response."""
