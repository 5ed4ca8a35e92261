"""A broker's way into service and out of it."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.protocol.broker.lifecycle import (
    BrokerLifecycle,
    CaughtUp,
    ControlledShutdownRequested,
    ControllerKnown,
    DirectoriesFailed,
    Introduction,
    LifecycleStarted,
    LifecycleState,
    ReadyToUnfence,
    Registered,
    RegistrationFailed,
    ShutDownGranted,
    Unfenced,
)
from sim.protocol.effects import Send, SetTimer
from sim.protocol.events import RequestFailed, ResponseReceived, TimerFired
from sim.protocol.messages.cluster import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
)

MS, SECOND = 1_000, 1_000_000
REGISTERED = BrokerRegistrationResponse(E.NONE, 17)


class Process:
    """A lifecycle machine, its last request, and its heartbeat timer."""

    def __init__(self):
        self.offset = 20
        self.now = 0
        self.machine = BrokerLifecycle(
            Introduction(1, "inc", "a", ("d",), -1), (3001, 3002, 3003), lambda: self.offset
        )
        self.sent = []
        self.heartbeat_at = None
        self.said = []

    def feed(self, event):
        for effect in self.machine.handle(event, self.now):
            match effect:
                case Send():
                    self.sent.append(effect)
                case SetTimer(name="heartbeat"):
                    self.heartbeat_at = effect.at
                case _:
                    self.said.append(effect)
        return self

    def answer(self, response):
        last = self.sent[-1]
        return self.feed(ResponseReceived(last.to, last.correlation, response))

    def fail(self):
        last = self.sent[-1]
        return self.feed(RequestFailed(last.to, last.correlation, E.NETWORK_EXCEPTION))

    def beat(self, **fields):
        """Let the heartbeat timer fire, and answer what it sends."""
        self.now = self.heartbeat_at
        self.feed(TimerFired("heartbeat"))
        return self.answer(BrokerHeartbeatResponse(E.NONE, **fields))

    def running(self):
        self.feed(ControllerKnown(3002)).feed(LifecycleStarted()).answer(REGISTERED)
        self.answer(BrokerHeartbeatResponse(E.NONE, is_caught_up=True))
        self.feed(ReadyToUnfence())
        self.answer(BrokerHeartbeatResponse(E.NONE, is_caught_up=True, is_fenced=False))
        assert self.machine.state is LifecycleState.RUNNING
        return self


@pytest.fixture
def process():
    return Process()


def test_a_broker_registers_catches_up_recovers_and_is_unfenced(process):
    process.feed(ControllerKnown(3002)).feed(LifecycleStarted())
    assert process.sent[-1].to == 3002
    process.answer(REGISTERED)
    assert process.said == [Registered(17)]
    first = process.sent[-1].request
    assert isinstance(first, BrokerHeartbeatRequest)
    assert (first.want_fence, first.metadata_offset) == (True, 20)
    process.answer(BrokerHeartbeatResponse(E.NONE, is_caught_up=False))
    assert process.heartbeat_at == 10 * MS
    process.beat(is_caught_up=True)
    assert process.said[-1] == CaughtUp()
    process.beat(is_caught_up=True)
    assert process.machine.state is LifecycleState.RECOVERY
    process.feed(ReadyToUnfence())
    assert not process.sent[-1].request.want_fence
    process.answer(BrokerHeartbeatResponse(E.NONE, is_caught_up=True, is_fenced=False))
    assert process.said[-1] == Unfenced()
    assert process.heartbeat_at - process.now == 2 * SECOND


def test_a_broker_is_not_unfenced_before_it_says_it_is_ready(process):
    process.feed(LifecycleStarted()).answer(REGISTERED)
    for _ in range(5):
        process.answer(BrokerHeartbeatResponse(E.NONE, is_caught_up=True))
        process.now = process.heartbeat_at
        process.feed(TimerFired("heartbeat"))
        assert process.sent[-1].request.want_fence
    assert Unfenced() not in process.said


def test_a_duplicate_registration_is_tried_again_every_two_seconds(process):
    process.feed(LifecycleStarted())
    for attempt in range(1, 5):
        process.answer(BrokerRegistrationResponse(E.DUPLICATE_BROKER_REGISTRATION))
        assert process.heartbeat_at == attempt * 2 * SECOND
        process.now = process.heartbeat_at
        process.feed(TimerFired("heartbeat"))
    process.answer(REGISTERED)
    assert process.said == [Registered(17)]


def test_registration_is_given_up_after_a_minute(process):
    process.feed(LifecycleStarted())
    process.now = 60 * SECOND
    process.answer(BrokerRegistrationResponse(E.DUPLICATE_BROKER_REGISTRATION))
    assert process.said == [RegistrationFailed()]


def test_a_controller_that_is_none_sends_the_broker_to_the_next(process):
    process.feed(LifecycleStarted())
    seen = []
    for _ in range(3):
        seen.append(process.sent[-1].to)
        process.answer(BrokerRegistrationResponse(E.NOT_CONTROLLER))
        process.now = process.heartbeat_at
        process.feed(TimerFired("heartbeat"))
    assert seen == [3001, 3002, 3003]


def test_news_of_a_controller_is_followed_at_once_by_a_broker_that_looks_for_one(process):
    process.running()
    process.now = process.heartbeat_at
    process.feed(TimerFired("heartbeat")).fail()
    process.feed(ControllerKnown(3003))
    assert process.sent[-1].to == 3003


def test_a_broker_whose_controller_answers_stays_with_it(process):
    process.running().feed(ControllerKnown(3003))
    process.beat(is_caught_up=True, is_fenced=False)
    assert process.sent[-1].to == 3002


def test_a_fenced_broker_only_keeps_on_asking(process):
    process.running()
    said = list(process.said)
    process.beat(is_fenced=True)
    assert process.machine.state is LifecycleState.RUNNING
    assert process.said == said


def test_a_controlled_shutdown_asks_at_once_then_soon_then_at_the_interval(process):
    process.running().feed(ControlledShutdownRequested())
    assert process.sent[-1].request.want_shut_down
    process.answer(BrokerHeartbeatResponse(E.NONE, is_fenced=False))
    assert process.heartbeat_at - process.now == 50 * MS
    process.beat(is_fenced=False)
    assert process.heartbeat_at - process.now == 2 * SECOND
    process.beat(should_shut_down=True)
    assert process.said[-1] == ShutDownGranted()
    assert process.machine.state is LifecycleState.SHUTTING_DOWN


def test_a_shutdown_that_nobody_grants_ends_after_five_minutes(process):
    process.running().feed(ControlledShutdownRequested())
    process.now = 300 * SECOND
    process.feed(TimerFired("shutdown"))
    assert process.said[-1] == ShutDownGranted()


def test_a_process_that_never_came_into_service_stops_at_once(process):
    process.feed(LifecycleStarted()).feed(ControlledShutdownRequested())
    assert process.said[-1] == ShutDownGranted()


def test_failed_directories_are_told_at_once_and_again(process):
    process.running().feed(DirectoriesFailed(("d",)))
    assert process.sent[-1].request.offline_directories == ("d",)
    process.answer(BrokerHeartbeatResponse(E.NONE, is_fenced=False))
    process.beat(is_fenced=False)
    assert process.sent[-1].request.offline_directories == ("d",)


def test_a_late_answer_to_an_earlier_request_changes_nothing(process):
    process.feed(LifecycleStarted())
    old = process.sent[-1]
    process.fail()
    process.now = process.heartbeat_at
    process.feed(TimerFired("heartbeat"))
    process.feed(ResponseReceived(old.to, old.correlation, REGISTERED))
    assert process.said == []
