"""What the parts of a consumer share: open requests, timers, and the effects of one decision.

A request carries what to do with its answer, so that no part has to know the others' numbers. An
answer to a request that is no longer open is dropped.

Source: ``org.apache.kafka.clients.consumer.internals.ConsumerNetworkClient``.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NodeId
from sim.protocol.clients.consumer.config import ConsumerConfig
from sim.protocol.clients.consumer.effects import Deliver, ExternalWrite, Stopped
from sim.protocol.clients.consumer.work import WorkEnding, WorkTaken
from sim.protocol.effects import CancelTimer, Disconnect, Effect, Send, SetTimer
from sim.protocol.events import RequestFailed, ResponseReceived
from sim.protocol.messages.base import Request, Response
from sim.trace.emit import Emit
from sim.units import Micros

COORDINATOR_CHANNEL = "coordinator"
"""Kafka keeps a connection of its own to the coordinator, also when that broker is fetched from."""


ConsumerEffect = Effect | Deliver | Stopped | WorkTaken | WorkEnding | ExternalWrite
"""What a consumer may ask of its host; the last three only that of a task or of a sink."""

OnAnswer: TypeAlias = Callable[[NodeId, Response | None, ErrorCode, Micros], None]
"""Sender, answer or ``None``, why there is none (NONE if there is one), instant."""


@dataclass(frozen=True, slots=True)
class _Open:
    to: NodeId
    on_answer: OnAnswer


class ConsumerLink:
    """The effects of one decision, and the requests and timers that outlive it."""

    def __init__(self, config: ConsumerConfig, unit: Callable[[], float]) -> None:
        self.config = config
        self.unit = unit
        """Draws for jitter and for the choice of a broker; uniform in [0, 1)."""
        self.error = ErrorCode.NONE
        """What the next poll raises; NONE for nothing."""
        self.failed_at: dict[NodeId, Micros] = {}
        """When a request to a server last failed without an answer."""
        self.on_disconnect: Callable[[], None] = _nothing
        """Called when a request fails without an answer: metadata may be stale."""
        self.effects: list[ConsumerEffect] = []
        self._disconnects: list[Disconnect] = []
        self._correlation = 0
        self._open: dict[int, _Open] = {}
        self._open_at: dict[NodeId, int] = {}
        self._timers: dict[str, Callable[[Micros], None]] = {}

    def take(self) -> list[ConsumerEffect]:
        """All effects since the last call, in order."""
        effects, self.effects = self.effects, []
        if self._disconnects:
            effects += self._disconnects
            self._disconnects = []
        return effects

    def disconnect(self, effect: Disconnect) -> None:
        """Close a connection, after all else: requests that fail by it come back at once."""
        self._disconnects.append(effect)

    def fail(self, error: ErrorCode) -> None:
        """The next poll raises this error, on which the application gives up and closes."""
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
        """Send, and say what to do with the answer; a timeout of 0 is ``request.timeout.ms``."""
        self._correlation += 1
        self._open[self._correlation] = _Open(to, on_answer)
        self._open_at[to] = self._open_at.get(to, 0) + 1
        timeout = timeout_us or self.config.request_timeout_us
        self.effects.append(Send(to, self._correlation, request, timeout, channel))
        return self._correlation

    def open_requests(self, node: NodeId) -> int:
        """How many requests a server has not answered."""
        return self._open_at.get(node, 0)

    def abandon(self, correlation: int) -> None:
        """Do not wait for the answer; the place on the connection stays taken until it comes."""
        item = self._open.get(correlation)
        if item is not None:
            self._open[correlation] = _Open(item.to, _drop)

    def answered(self, event: ResponseReceived | RequestFailed, now: Micros) -> None:
        """Hand an answer, or its absence, to whoever asked."""
        item = self._open.pop(event.correlation, None)
        if item is None:
            return
        self._open_at[item.to] -= 1
        if isinstance(event, ResponseReceived):
            item.on_answer(event.sender, event.response, ErrorCode.NONE, now)
            return
        self.failed_at[item.to] = now
        self.on_disconnect()
        item.on_answer(event.sender, None, event.error, now)

    # -- timers -----------------------------------------------------------------------------------

    def set_timer(self, name: str, at: Micros, fn: Callable[[Micros], None]) -> None:
        """Call at the instant; a timer of that name already set is moved."""
        self._timers[name] = fn
        self.effects.append(SetTimer(name, at))

    def cancel_timer(self, name: str) -> None:
        """Do not call; harmless if it is not set."""
        if self._timers.pop(name, None) is not None:
            self.effects.append(CancelTimer(name))

    def is_set(self, name: str) -> bool:
        """Whether a timer of that name is to fire."""
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
        """Forget all open requests and timers."""
        for name in list(self._timers):
            self.cancel_timer(name)
        self._open.clear()
        self._open_at.clear()

    def backoff(self, failures: int) -> Micros:
        """``retry.backoff.ms`` doubled per failure up to its maximum, 20 % jitter (KIP-580)."""
        config = self.config
        wait = min(config.retry_backoff_us << min(failures, 20), config.retry_backoff_us_max)
        return wait * (800 + int(self.unit() * 401)) // 1_000


def _nothing() -> None:
    """Until someone listens."""


def _drop(_to: NodeId, _response: Response | None, _error: ErrorCode, _now: Micros) -> None:
    """An answer nobody waits for."""
