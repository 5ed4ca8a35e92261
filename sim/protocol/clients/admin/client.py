"""An administrator's requests while the cluster runs: each is retried until a server answers.

Requests about the cluster go to the active controller, those about records to the partition's
leader, which is looked up at a broker first, and those about one broker to that broker. Any number
are open at a time, as in Kafka's admin client. A request that was lost may be carried out twice;
the second time the server returns that error (UNKNOWN_TOPIC_OR_PARTITION after a deletion).

A controller that has answered is used from then on, until it is not the active one, or does not
respond: then the next one is tried, with the oldest request, and later ones wait and keep their
order. Approximate: Kafka's client looks the controller up by a request, or has a broker forward
everything to it (KIP-590).

A controller may throttle the client (KIP-599): requests to it wait, and refused ones are sent
again.

Source: ``KafkaAdminClient`` (``default.api.timeout.ms``, ``retry.backoff.ms``,
``ControllerNodeProvider``, ``handleNotControllerError``), ``AdminMetadataManager``,
``PartitionLeaderStrategy``, ``DeleteRecordsHandler``, ``FenceProducersHandler``; KIP-919.
"""

from dataclasses import dataclass
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, NodeId, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.messages.admin import (
    CreatePartitionsResponse,
    DeleteTopicsResponse,
)
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.cluster import CreateTopicsResponse
from sim.protocol.messages.delete_records import DeleteRecordsRequest
from sim.protocol.messages.metadata import (
    InitProducerIdRequest,
    MetadataRequest,
    MetadataResponse,
)
from sim.units import LONG_AGO, MS, SECOND, Micros

RETRY_US: Micros = 100 * MS
"""``retry.backoff.ms``."""

REQUEST_TIMEOUT_US: Micros = 30 * SECOND
"""``request.timeout.ms``."""

API_TIMEOUT_US: Micros = 60 * SECOND
"""``default.api.timeout.ms``: limit of all attempts of an operation."""

_TRY_AGAIN = (
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
)


@dataclass(frozen=True, slots=True)
class OperationRequested:
    """Event: an operation; ``number`` identifies it, ``broker`` is the one broker concerned."""

    number: int
    request: Request
    broker: NodeId = NO_LEADER


@dataclass(frozen=True, slots=True)
class OperationDone:
    """Effect: the server has answered, or the operation has timed out.

    ``errors`` has the operation's resources, each with NONE or its error.
    """

    number: int
    errors: tuple[tuple[str, ErrorCode], ...]


AdminEvent = OperationRequested | ResponseReceived | RequestFailed | TimerFired
"""Events of an admin client."""

AdminEffect: TypeAlias = fx.Send | fx.SetTimer | OperationDone
"""Effects of an admin client."""


@dataclass(slots=True)
class _Open:
    number: int
    request: Request
    deadline: Micros
    broker: NodeId
    """Receiver; NO_LEADER: the controller, or a leader that is not known yet."""
    place: int
    """Its place in the order of operations."""
    sent_to: NodeId = NO_LEADER
    """Server to which it was last sent."""

    @property
    def is_for_controller(self) -> bool:
        """True if it concerns neither records nor one broker."""
        return self.broker == NO_LEADER and self.partition is None

    @property
    def partition(self) -> TopicPartition | None:
        """Partition whose leader alone can do it."""
        request = self.request
        return request.offsets[0][0] if isinstance(request, DeleteRecordsRequest) else None


class AdminClient:
    """Sends to the right server; controllers in turn until one answers as the active one.

    Args:
        controllers: The controllers.
        brokers: The brokers, for metadata of leaders.
    """

    def __init__(self, controllers: tuple[NodeId, ...], brokers: tuple[NodeId, ...] = ()) -> None:
        self._controllers = controllers
        self._brokers = brokers
        self._correlation = 0
        self._count = 0
        self._turn = 1
        """Index of the controller in use."""
        self._is_known = False
        """True if that one has answered as the active controller."""
        self._in_flight: dict[int, _Open] = {}
        self._waiting: list[_Open] = []
        self._throttled_until: Micros = LONG_AGO
        """No request is sent to a controller before."""

    def handle(self, event: AdminEvent, now: Micros) -> list[AdminEffect]:
        """Handles an event; returns effects in order."""
        out: list[AdminEffect] = []
        match event:
            case OperationRequested():
                deadline = now + API_TIMEOUT_US
                number, request, broker = event.number, event.request, event.broker
                self._count += 1
                self._send(_Open(number, request, deadline, broker, self._count), now, out)
            case ResponseReceived():
                self._answered(event, now, out)
            case RequestFailed():
                self._again(self._in_flight.pop(event.correlation, None), now, out)
            case TimerFired():
                self._send_waiting(now, out)
        return out

    def _send_waiting(self, now: Micros, out: list[AdminEffect]) -> None:
        waiting, self._waiting = self._waiting, []
        for operation in sorted(waiting, key=lambda waits: waits.place):
            if now >= operation.deadline:
                _give_up(operation, out)
            else:
                self._send(operation, now, out)

    def _send_behind(self, now: Micros, out: list[AdminEffect]) -> None:
        """Sends operations that waited only for the controller's response."""
        patient = [o for o in self._waiting if not o.is_for_controller]
        self._waiting = [o for o in self._waiting if o.is_for_controller]
        self._send_waiting(now, out)
        self._waiting.extend(patient)

    def _comes_later(self, operation: _Open) -> bool:
        """True if an earlier operation goes to the controller first, or looks for it."""
        if any(o.is_for_controller and o.place < operation.place for o in self._waiting):
            return True
        return not self._is_known and any(o.is_for_controller for o in self._in_flight.values())

    def _send(self, operation: _Open, now: Micros, out: list[AdminEffect]) -> None:
        if operation.is_for_controller and now < self._throttled_until:
            self._waiting.append(operation)
            out.append(fx.SetTimer("throttled", self._throttled_until))
            return
        if operation.is_for_controller and self._comes_later(operation):
            self._waiting.append(operation)
            return
        self._correlation += 1
        self._in_flight[self._correlation] = operation
        request, partition = operation.request, operation.partition
        server = operation.broker
        if partition is not None and server == NO_LEADER:
            request = MetadataRequest((partition.topic,))
            server = self._brokers[self._correlation % len(self._brokers)]
        elif server == NO_LEADER:
            server = self._controller
            operation.sent_to = server
        timeout = min(REQUEST_TIMEOUT_US, operation.deadline - now)
        out.append(fx.Send(server, self._correlation, request, timeout))

    @property
    def _controller(self) -> NodeId:
        return self._controllers[self._turn % len(self._controllers)]

    def _answered(self, event: ResponseReceived, now: Micros, out: list[AdminEffect]) -> None:
        operation = self._in_flight.pop(event.correlation, None)
        if operation is None:
            return
        response = event.response
        if isinstance(response, MetadataResponse):
            assert operation.partition is not None, "only leaders are looked up"
            operation.broker = leader_in(response, operation.partition)
            if operation.broker == NO_LEADER:
                self._again(operation, now, out)
            else:
                self._send(operation, now, out)
            return
        self._throttled_until = max(self._throttled_until, now + throttle_of(response))
        errors = response.named_errors()
        if any(error is ErrorCode.THROTTLING_QUOTA_EXCEEDED for _, error in errors):
            if self._throttled_until >= operation.deadline:
                out.append(OperationDone(operation.number, errors))
            else:
                self._waiting.append(operation)
        elif any(_may_try_again(operation, error) for _, error in errors):
            self._again(operation, now, out)
            return
        else:
            out.append(OperationDone(operation.number, errors))
        if operation.is_for_controller:
            self._is_known |= operation.sent_to == self._controller
            self._send_behind(now, out)

    def _again(self, operation: _Open | None, now: Micros, out: list[AdminEffect]) -> None:
        if operation is None:
            return
        if operation.is_for_controller and operation.sent_to == self._controller:
            self._turn += 1
            self._is_known = False
        if operation.partition is not None:
            operation.broker = NO_LEADER
        if now + RETRY_US >= operation.deadline:
            _give_up(operation, out)
            self._send_behind(now, out)
            return
        self._waiting.append(operation)
        out.append(fx.SetTimer("retry", now + RETRY_US))


def _give_up(operation: _Open, out: list[AdminEffect]) -> None:
    gave_up = (("no answer", ErrorCode.REQUEST_TIMED_OUT),)
    out.append(OperationDone(operation.number, gave_up))


def _may_try_again(operation: _Open, error: ErrorCode) -> bool:
    if operation.partition is not None:
        return error.retriable
    if isinstance(operation.request, InitProducerIdRequest):
        return error is ErrorCode.CONCURRENT_TRANSACTIONS
    # A broker's answer about itself is final; a controller may not be the active one.
    return operation.broker == NO_LEADER and error in _TRY_AGAIN


def throttle_of(response: Response) -> Micros:
    """``throttle_time_ms`` of a response that may have one; 0: not throttled."""
    match response:
        case CreateTopicsResponse() | DeleteTopicsResponse() | CreatePartitionsResponse():
            return response.throttle_us
        case _:
            return 0


def leader_in(response: MetadataResponse, partition: TopicPartition) -> NodeId:
    """Leader of a partition in a broker's metadata; NO_LEADER without one."""
    for known in response.topics.get(partition.topic, ()):
        if known.partition == partition.partition:
            return known.leader
    return NO_LEADER
