"""An administrator's requests while the cluster runs: each goes on until a server answers.

What concerns the cluster goes to the active controller, what concerns records to the partition's
leader, which a broker is asked for first, and what concerns one broker to that broker. Any number
are open at a time, as in Kafka's admin client. A request that was lost may be carried out twice;
the second time the server says so (UNKNOWN_TOPIC_OR_PARTITION after a deletion).

Who answered as the controller is remembered and asked from then on, until it says that it is not
the active one, or does not answer: then the next one is tried, with the oldest request, and what
came after it waits and keeps its order. Approximate: Kafka's client asks for the controller by a
request of its own, or has a broker forward everything to it (KIP-590).

A controller may say for how long it does not want to be asked (KIP-599): what is for it waits, and
what it refused for that reason is asked for again.

Source: ``KafkaAdminClient`` (``default.api.timeout.ms``, ``retry.backoff.ms``,
``ControllerNodeProvider``, ``handleNotControllerError``), ``AdminMetadataManager``,
``PartitionLeaderStrategy``, ``DeleteRecordsHandler``; KIP-919.
"""

from dataclasses import dataclass
from typing import TypeAlias

from sim.error_codes import ErrorCode
from sim.ids import NO_LEADER, NodeId, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.messages.admin import (
    AlterClientQuotasResponse,
    AlterPartitionReassignmentsResponse,
    CreatePartitionsResponse,
    DeleteTopicsResponse,
    ElectLeadersResponse,
    IncrementalAlterConfigsResponse,
)
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.cluster import CreateTopicsResponse
from sim.protocol.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse
from sim.protocol.messages.log_dirs import AlterReplicaLogDirsResponse
from sim.protocol.messages.metadata import MetadataRequest, MetadataResponse
from sim.protocol.messages.raft_membership import DecommissionBrokerResponse
from sim.protocol.messages.voters import AddRaftVoterResponse, RemoveRaftVoterResponse
from sim.units import LONG_AGO, MS, SECOND, Micros

RETRY_US: Micros = 100 * MS
"""``retry.backoff.ms``."""

REQUEST_TIMEOUT_US: Micros = 30 * SECOND
"""``request.timeout.ms``."""

API_TIMEOUT_US: Micros = 60 * SECOND
"""``default.api.timeout.ms``: no operation is tried for longer."""

_TRY_AGAIN = (
    ErrorCode.NOT_CONTROLLER,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.REQUEST_TIMED_OUT,
)


@dataclass(frozen=True, slots=True)
class OperationWanted:
    """Event: ask; ``number`` names the operation, ``broker`` the one broker that is concerned."""

    number: int
    request: Request
    broker: NodeId = NO_LEADER


@dataclass(frozen=True, slots=True)
class OperationDone:
    """Effect: the server has answered, or the administrator has given up.

    ``errors`` names what the operation was about, each with NONE or why not.
    """

    number: int
    errors: tuple[tuple[str, ErrorCode], ...]


AdminEvent = OperationWanted | ResponseReceived | RequestFailed | TimerFired
"""What can happen to an admin client."""

AdminEffect: TypeAlias = fx.Send | fx.SetTimer | OperationDone
"""What an admin client asks of its host."""


@dataclass(slots=True)
class _Open:
    number: int
    request: Request
    deadline: Micros
    broker: NodeId
    """Where it goes; NO_LEADER: to the controller, or to a leader that is not known yet."""
    place: int
    """Its place in the order in which they were wanted."""
    asked: NodeId = NO_LEADER
    """Whom it was last sent to."""

    @property
    def is_for_controller(self) -> bool:
        """Whether it is neither about records nor about one broker."""
        return self.broker == NO_LEADER and self.partition is None

    @property
    def partition(self) -> TopicPartition | None:
        """The partition whose leader alone can do it."""
        request = self.request
        return request.offsets[0][0] if isinstance(request, DeleteRecordsRequest) else None


class AdminClient:
    """Asks the right server; controllers in turn until one answers as the active one.

    Args:
        controllers: The controllers.
        brokers: The brokers, any of which can be asked who leads.
    """

    def __init__(self, controllers: tuple[NodeId, ...], brokers: tuple[NodeId, ...] = ()) -> None:
        self._controllers = controllers
        self._brokers = brokers
        self._asked = 0
        self._wanted = 0
        self._turn = 1
        """Which controller is asked."""
        self._is_known = False
        """Whether that one has answered as the active controller."""
        self._in_flight: dict[int, _Open] = {}
        self._waiting: list[_Open] = []
        self._throttled_until: Micros = LONG_AGO
        """Before that nothing is sent to a controller."""

    def handle(self, event: AdminEvent, now: Micros) -> list[AdminEffect]:
        """Decide."""
        out: list[AdminEffect] = []
        match event:
            case OperationWanted():
                deadline = now + API_TIMEOUT_US
                number, request, broker = event.number, event.request, event.broker
                self._wanted += 1
                self._send(_Open(number, request, deadline, broker, self._wanted), now, out)
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
        """What waited for an answer of the controller, and for no time to pass, is sent."""
        patient = [o for o in self._waiting if not o.is_for_controller]
        self._waiting = [o for o in self._waiting if o.is_for_controller]
        self._send_waiting(now, out)
        self._waiting.extend(patient)

    def _comes_later(self, operation: _Open) -> bool:
        """Whether what was wanted before it goes to the controller first, or looks for it."""
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
        self._asked += 1
        self._in_flight[self._asked] = operation
        request, partition = operation.request, operation.partition
        server = operation.broker
        if partition is not None and server == NO_LEADER:
            request = MetadataRequest((partition.topic,))
            server = self._brokers[self._asked % len(self._brokers)]
        elif server == NO_LEADER:
            server = self._controller
            operation.asked = server
        timeout = min(REQUEST_TIMEOUT_US, operation.deadline - now)
        out.append(fx.Send(server, self._asked, request, timeout))

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
        errors = errors_of(response)
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
            self._is_known |= operation.asked == self._controller
            self._send_behind(now, out)

    def _again(self, operation: _Open | None, now: Micros, out: list[AdminEffect]) -> None:
        if operation is None:
            return
        if operation.is_for_controller and operation.asked == self._controller:
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
    # What one broker says of itself stands; a controller may not be the active one.
    return operation.broker == NO_LEADER and error in _TRY_AGAIN


def throttle_of(response: Response) -> Micros:
    """``throttle_time_ms`` of an answer that may have one; 0: nobody has to wait."""
    match response:
        case CreateTopicsResponse() | DeleteTopicsResponse() | CreatePartitionsResponse():
            return response.throttle_us
        case _:
            return 0


def leader_in(response: MetadataResponse, partition: TopicPartition) -> NodeId:
    """Who leads a partition, as the broker that answered knows it; NO_LEADER if nobody does."""
    for known in response.topics.get(partition.topic, ()):
        if known.partition == partition.partition:
            return known.leader
    return NO_LEADER


def errors_of(response: Response) -> tuple[tuple[str, ErrorCode], ...]:
    """What the server says of each topic or partition that was asked about."""
    match response:
        case CreateTopicsResponse() | DeleteTopicsResponse() | AlterClientQuotasResponse():
            return response.errors
        case (
            CreatePartitionsResponse()
            | IncrementalAlterConfigsResponse()
            | AddRaftVoterResponse()
            | RemoveRaftVoterResponse()
            | DecommissionBrokerResponse()
        ):
            return (("", response.error),)
        case (
            AlterPartitionReassignmentsResponse()
            | ElectLeadersResponse()
            | AlterReplicaLogDirsResponse()
        ):
            return tuple((str(partition), error) for partition, error in response.errors)
        case DeleteRecordsResponse():
            return tuple((str(result.partition), result.error) for result in response.results)
        case _:
            message = f"not an answer to an administrator: {type(response).__name__}"
            raise AssertionError(message)
