"""An administrator's requests: to whom they go, when they are tried again, when they are over."""

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol import effects as fx
from sim.protocol.clients.admin.client import (
    API_TIMEOUT_US,
    RETRY_US,
    AdminClient,
    OperationDone,
    OperationRequested,
)
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.messages.admin import DeleteTopicsRequest, DeleteTopicsResponse
from sim.protocol.messages.delete_records import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsResult,
)
from sim.protocol.messages.metadata import MetadataRequest, MetadataResponse, PartitionMetadata
from sim.units import SECOND

P = TopicPartition("orders", 1)
DELETION = DeleteRecordsRequest(((P, 5),), SECOND)


def led_by(leader: int) -> MetadataResponse:
    others = PartitionMetadata(0, 1, 0, (1, 2), (1, 2))
    mine = PartitionMetadata(1, leader, 3, (2, 3), (2, 3))
    return MetadataResponse((1, 2, 3), {"orders": (others, mine)})


class Desk:
    """An admin client, and what it sent last."""

    def __init__(self) -> None:
        self.client = AdminClient((3001, 3002), (1, 2, 3))
        self.now = 0
        self.sent: list[fx.Send] = []
        self.done: list[OperationDone] = []

    def tell(self, event, after=0) -> None:
        self.now += after
        for effect in self.client.handle(event, self.now):
            if isinstance(effect, fx.Send):
                self.sent.append(effect)
            elif isinstance(effect, OperationDone):
                self.done.append(effect)

    def answer(self, response) -> None:
        last = self.sent[-1]
        self.tell(ResponseReceived(last.to, last.correlation, response))

    def wait(self) -> None:
        self.tell(TimerFired("retry"), RETRY_US)


def deleted(error: ErrorCode) -> DeleteRecordsResponse:
    return DeleteRecordsResponse((DeleteRecordsResult(P, error),))


def test_a_deletion_of_records_asks_a_broker_for_the_leader_and_goes_there():
    desk = Desk()
    desk.tell(OperationRequested(7, DELETION))
    assert desk.sent[-1].to in (1, 2, 3)
    assert desk.sent[-1].request == MetadataRequest(("orders",))
    desk.answer(led_by(3))
    assert (desk.sent[-1].to, desk.sent[-1].request) == (3, DELETION)
    desk.answer(deleted(ErrorCode.NONE))
    assert desk.done == [OperationDone(7, (("orders-1", ErrorCode.NONE),))]


def test_a_leader_that_leads_no_more_is_looked_up_anew():
    desk = Desk()
    desk.tell(OperationRequested(7, DELETION))
    desk.answer(led_by(3))
    desk.answer(deleted(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    assert desk.done == []
    desk.wait()
    assert isinstance(desk.sent[-1].request, MetadataRequest)
    desk.answer(led_by(2))
    assert desk.sent[-1].to == 2


def test_a_partition_without_a_leader_is_waited_for():
    desk = Desk()
    desk.tell(OperationRequested(7, DELETION))
    desk.answer(led_by(-1))
    assert len(desk.sent) == 1
    desk.wait()
    assert isinstance(desk.sent[-1].request, MetadataRequest)


def test_a_refusal_for_good_ends_it():
    """The twin: what no repetition would mend."""
    desk = Desk()
    desk.tell(OperationRequested(7, DELETION))
    desk.answer(led_by(3))
    desk.answer(deleted(ErrorCode.OFFSET_OUT_OF_RANGE))
    assert desk.done == [OperationDone(7, (("orders-1", ErrorCode.OFFSET_OUT_OF_RANGE),))]


def test_after_the_time_of_the_whole_operation_it_is_given_up():
    desk = Desk()
    desk.tell(OperationRequested(7, DELETION))
    failed = RequestFailed(1, desk.sent[-1].correlation, ErrorCode.NETWORK_EXCEPTION)
    desk.tell(failed, API_TIMEOUT_US)
    assert desk.done == [OperationDone(7, (("no answer", ErrorCode.REQUEST_TIMED_OUT),))]


def test_what_concerns_the_cluster_goes_to_the_controllers_in_turn():
    desk = Desk()
    desk.tell(OperationRequested(1, DeleteTopicsRequest(("orders",))))
    first = desk.sent[-1].to
    desk.answer(DeleteTopicsResponse((("orders", ErrorCode.NOT_CONTROLLER),)))
    desk.wait()
    assert {first, desk.sent[-1].to} == {3001, 3002}


# -- the controller --------------------------------------------------------------------------------


def deletion_of(topic: str) -> DeleteTopicsRequest:
    return DeleteTopicsRequest((topic,))


def says(send: fx.Send, error: ErrorCode) -> ResponseReceived:
    assert isinstance(send.request, DeleteTopicsRequest)
    answer = DeleteTopicsResponse(((send.request.topics[0], error),))
    return ResponseReceived(send.to, send.correlation, answer)


def asked(desk: Desk) -> list[tuple[int, str]]:
    """Every request for the controller: to whom, and for which topic."""
    return [(s.to, s.request.topics[0]) for s in desk.sent]


def test_who_answered_as_the_controller_is_asked_from_then_on():
    desk = Desk()
    for number, topic in enumerate("abc"):
        desk.tell(OperationRequested(number, deletion_of(topic)))
        desk.tell(says(desk.sent[-1], ErrorCode.NONE))
    assert len({to for to, _ in asked(desk)}) == 1
    assert len(desk.done) == 3


def test_what_is_wanted_while_the_controller_is_looked_for_comes_after_it():
    desk = Desk()
    desk.tell(OperationRequested(1, deletion_of("a")))
    desk.tell(OperationRequested(2, deletion_of("b")))
    assert asked(desk) == [(3002, "a")]
    desk.tell(says(desk.sent[-1], ErrorCode.NOT_CONTROLLER))
    desk.tell(OperationRequested(3, deletion_of("c")))
    assert len(desk.sent) == 1, "not before the first one has been tried again"
    desk.wait()
    assert asked(desk)[1:] == [(3001, "a")]
    desk.tell(says(desk.sent[-1], ErrorCode.NONE))
    assert asked(desk)[2:] == [(3001, "b"), (3001, "c")], "both at once: any number may be open"


def test_what_was_open_at_a_controller_that_steps_down_goes_to_the_next_in_its_order():
    desk = Desk()
    desk.tell(OperationRequested(0, deletion_of("z")))
    desk.tell(says(desk.sent[-1], ErrorCode.NONE))
    for number, topic in enumerate("ab", 1):
        desk.tell(OperationRequested(number, deletion_of(topic)))
    first, second = desk.sent[-2:]
    desk.tell(says(second, ErrorCode.NOT_CONTROLLER))
    desk.tell(RequestFailed(first.to, first.correlation, ErrorCode.NETWORK_EXCEPTION))
    desk.wait()
    assert asked(desk)[3:] == [(3001, "a")]
    desk.tell(says(desk.sent[-1], ErrorCode.NONE))
    assert asked(desk)[4:] == [(3001, "b")]


def test_what_is_given_up_makes_room_for_what_came_after_it():
    desk = Desk()
    desk.tell(OperationRequested(1, deletion_of("a")))
    desk.tell(OperationRequested(2, deletion_of("b")), SECOND)
    first = desk.sent[-1]
    failed = RequestFailed(first.to, first.correlation, ErrorCode.NETWORK_EXCEPTION)
    desk.tell(failed, API_TIMEOUT_US - SECOND)
    assert [done.number for done in desk.done] == [1]
    assert asked(desk)[1:] == [(3001, "b")]


def test_a_deletion_of_records_waits_for_no_controller():
    desk = Desk()
    desk.tell(OperationRequested(1, deletion_of("a")))
    desk.tell(OperationRequested(2, DELETION))
    assert isinstance(desk.sent[-1].request, MetadataRequest)
