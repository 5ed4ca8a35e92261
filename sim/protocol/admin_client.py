"""An administrator's requests while the cluster runs: each goes on until the controller answers.

Any number are open at a time, as in Kafka's admin client. A request that was lost may be carried
out twice; the second time the controller says so (UNKNOWN_TOPIC_OR_PARTITION after a deletion).

Source: ``KafkaAdminClient`` (``default.api.timeout.ms``, ``retry.backoff.ms``); KIP-919.
"""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.ids import NodeId
from sim.protocol import effects as fx
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.messages import (
    AlterPartitionReassignmentsResponse,
    CreatePartitionsResponse,
    CreateTopicsResponse,
    DeleteTopicsResponse,
    ElectLeadersResponse,
    IncrementalAlterConfigsResponse,
    Request,
    Response,
)
from sim.units import MS, SECOND, Micros

RETRY_US: Micros = 100 * MS
"""``retry.backoff.ms``."""

REQUEST_TIMEOUT_US: Micros = 30 * SECOND
"""``request.timeout.ms``."""

API_TIMEOUT_US: Micros = 60 * SECOND
"""``default.api.timeout.ms``: no operation is tried for longer."""

_TRY_AGAIN = (ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT)


@dataclass(frozen=True, slots=True)
class OperationWanted:
    """Event: ask the controller; ``number`` names the operation."""

    number: int
    request: Request


@dataclass(frozen=True, slots=True)
class OperationDone:
    """Effect: the controller has answered, or the administrator has given up.

    ``errors`` names what the operation was about, each with NONE or why not.
    """

    number: int
    errors: tuple[tuple[str, ErrorCode], ...]


AdminEvent = OperationWanted | ResponseReceived | RequestFailed | TimerFired
"""What can happen to an admin client."""


@dataclass(slots=True)
class _Open:
    number: int
    request: Request
    deadline: Micros


class AdminClient:
    """Asks the controllers in turn until the active one answers."""

    def __init__(self, controllers: tuple[NodeId, ...]) -> None:
        self._controllers = controllers
        self._asked = 0
        self._in_flight: dict[int, _Open] = {}
        self._waiting: list[_Open] = []

    def handle(self, event: AdminEvent, now: Micros) -> list[object]:
        """Decide."""
        out: list[object] = []
        match event:
            case OperationWanted():
                self._send(_Open(event.number, event.request, now + API_TIMEOUT_US), now, out)
            case ResponseReceived():
                self._answered(event, now, out)
            case RequestFailed():
                self._again(self._in_flight.pop(event.correlation, None), now, out)
            case TimerFired():
                waiting, self._waiting = self._waiting, []
                for operation in waiting:
                    self._send(operation, now, out)
        return out

    def _send(self, operation: _Open, now: Micros, out: list[object]) -> None:
        self._asked += 1
        self._in_flight[self._asked] = operation
        controller = self._controllers[self._asked % len(self._controllers)]
        timeout = min(REQUEST_TIMEOUT_US, operation.deadline - now)
        out.append(fx.Send(controller, self._asked, operation.request, timeout))

    def _answered(self, event: ResponseReceived, now: Micros, out: list[object]) -> None:
        operation = self._in_flight.pop(event.correlation, None)
        if operation is None:
            return
        errors = errors_of(event.response)
        if any(error in _TRY_AGAIN for _, error in errors):
            self._again(operation, now, out)
        else:
            out.append(OperationDone(operation.number, errors))

    def _again(self, operation: _Open | None, now: Micros, out: list[object]) -> None:
        if operation is None:
            return
        if now + RETRY_US >= operation.deadline:
            gave_up = (("no answer", ErrorCode.REQUEST_TIMED_OUT),)
            out.append(OperationDone(operation.number, gave_up))
            return
        self._waiting.append(operation)
        out.append(fx.SetTimer("retry", now + RETRY_US))


def errors_of(response: Response) -> tuple[tuple[str, ErrorCode], ...]:
    """What the controller says of each topic or partition that was asked about."""
    match response:
        case CreateTopicsResponse() | DeleteTopicsResponse():
            return response.errors
        case CreatePartitionsResponse() | IncrementalAlterConfigsResponse():
            return (("", response.error),)
        case AlterPartitionReassignmentsResponse() | ElectLeadersResponse():
            return tuple((str(partition), error) for partition, error in response.errors)
        case _:
            message = f"not an answer to an administrator: {type(response).__name__}"
            raise AssertionError(message)
