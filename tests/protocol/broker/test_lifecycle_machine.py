"""A broker's way into service and out of it."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.protocol.broker.controller_channel import RequestTimeout
from sim.protocol.broker.lifecycle import (
    BrokerLifecycle,
    CaughtUp,
    ControlledShutdownRequested,
    ControllerKnown,
    DirectoriesFailed,
    Introduction,
    LifecycleConfig,
    LifecycleStarted,
    LifecycleState,
    ReadyToUnfence,
    Registered,
    RegistrationFailed,
    ShutDownGranted,
    Unfenced,
)
from sim.protocol.broker.resend import Resend, ResendPolicy, ResendTimes
from sim.protocol.effects import Disconnect, Send, SetTimer
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

    def __init__(self, **config):
        self.offset = 20
        self.now = 0
        self.machine = BrokerLifecycle(
            Introduction(1, "inc", "a", ("d",), -1), (3001, 3002, 3003), lambda: self.offset,
            LifecycleConfig(**config),
        )  # fmt: skip
        self.sent = []
        self.heartbeat_at = None
        self.poll_at = None
        self.said = []

    def feed(self, event):
        for effect in self.machine.handle(event, self.now):
            match effect:
                case Send():
                    self.sent.append(effect)
                case SetTimer(name="heartbeat"):
                    self.heartbeat_at = effect.at
                case SetTimer(name="controller"):
                    self.poll_at = effect.at
                case _:
                    self.said.append(effect)
        return self

    def answer(self, response):
        last = self.sent[-1]
        return self.feed(ResponseReceived(last.to, last.correlation, response))

    def fail(self, error=E.NETWORK_EXCEPTION):
        last = self.sent[-1]
        return self.feed(RequestFailed(last.to, last.correlation, error))

    def time_out(self):
        """Let time pass until the connection of the last request is closed."""
        self.now += self.sent[-1].timeout_us
        return self.fail(E.REQUEST_TIMED_OUT)

    def poll(self):
        """Let the channel look for the controller."""
        self.now = self.poll_at
        return self.feed(TimerFired("controller"))

    def due(self):
        """Let the heartbeat timer fire."""
        self.now = self.heartbeat_at
        return self.feed(TimerFired("heartbeat"))

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


@pytest.mark.parametrize(
    ("policy", "longest_ms"), [("backoff", 9_000), ("backoff_half_session", 4_500)]
)
def test_before_4_1_a_refused_broker_waits_twice_as_long_each_time(policy, longest_ms):
    """100 ms, doubled, up to a session or half of one, from the last success on (KAFKA-19294)."""
    process = Process(resend=ResendPolicy(policy)).feed(LifecycleStarted())
    waits = []
    for _ in range(8):
        process.answer(BrokerRegistrationResponse(E.DUPLICATE_BROKER_REGISTRATION))
        waits.append((process.heartbeat_at - process.now) // MS)
        process.now = process.heartbeat_at
        process.feed(TimerFired("heartbeat"))
    assert waits == [min(100 * 2**n, longest_ms) for n in range(8)]
    process.answer(REGISTERED).answer(BrokerHeartbeatResponse(E.STALE_BROKER_EPOCH))
    assert process.heartbeat_at - process.now == 100 * MS


def test_jitter_of_the_wait_is_two_percent_and_no_wait_is_longer_than_the_longest():
    times = ResendTimes(ResendPolicy.BACKOFF, 2 * SECOND, 9 * SECOND)
    assert Resend(times, lambda: 0.0).failed() == 98 * MS
    assert Resend(times, lambda: 0.999_999).failed() == 102 * MS
    late = Resend(times, lambda: 0.999_999)
    assert [late.failed() for _ in range(8)][-1] == 9 * SECOND


def test_an_error_is_never_followed_at_once_whatever_happened_meanwhile(process):
    """``nextSchedulingShouldBeImmediate`` is lost with the failure."""
    process.running()
    process.now = process.heartbeat_at
    process.feed(TimerFired("heartbeat")).feed(DirectoriesFailed(("d",)))
    sent = len(process.sent)
    process.answer(BrokerHeartbeatResponse(E.STALE_BROKER_EPOCH))
    assert len(process.sent) == sent
    assert process.heartbeat_at - process.now == 2 * SECOND


def test_registration_is_given_up_after_a_minute(process):
    process.feed(LifecycleStarted())
    process.now = 60 * SECOND
    process.answer(BrokerRegistrationResponse(E.DUPLICATE_BROKER_REGISTRATION))
    assert process.said == [RegistrationFailed()]


def test_before_it_knows_one_a_broker_tries_the_controllers_in_turn(process):
    process.feed(LifecycleStarted())
    for _ in range(3):
        process.answer(BrokerRegistrationResponse(E.NOT_CONTROLLER))
        assert process.poll_at - process.now == 100 * MS
        process.poll()
    assert [send.to for send in process.sent] == [3001, 3002, 3003, 3001]


@pytest.mark.parametrize(
    ("policy", "request_ms", "wait_ms"),
    [("interval", 2_000, 2_000), ("half_session", 4_500, 100), ("socket", 30_000, 100)],
)
def test_a_silent_controller_is_given_up_as_the_release_does(policy, request_ms, wait_ms):
    """KAFKA-19294, KAFKA-14392: the interval (4.1), half a session (3.4), the socket's timeout."""
    resend = ResendPolicy.INTERVAL if policy == "interval" else ResendPolicy.BACKOFF
    process = Process(request_timeout=RequestTimeout(policy), resend=resend).running().due()
    silent_since = process.now
    process.time_out()
    assert process.now - silent_since == request_ms * MS
    assert process.heartbeat_at - process.now == wait_ms * MS
    sent = len(process.sent)
    process.due()
    assert [send.to for send in process.sent[sent:]] == [3002]


@pytest.mark.parametrize(
    ("policy", "given_up_ms"), [("interval", 2_000), ("half_session", 4_500), ("socket", 9_000)]
)
def test_a_request_that_is_lost_is_sent_again_every_50_ms_until_it_is_too_old(policy, given_up_ms):
    process = Process(request_timeout=RequestTimeout(policy)).running().due()
    first, heartbeat = process.now, process.sent[-1].request
    process.heartbeat_at = None
    while process.fail().heartbeat_at is None:
        assert process.poll_at - process.now == 50 * MS
        process.offset += 1
        process.poll()
        if process.heartbeat_at is not None:
            break
        assert process.sent[-1].request is heartbeat, "the same request, with its offset of then"
    assert process.now - first == given_up_ms * MS


def test_after_a_loss_the_controller_is_looked_up_afresh(process):
    """Another one is sent the request at once: only the same one has a reconnect back-off."""
    process.running().feed(ControllerKnown(3003)).due()
    assert process.sent[-1].to == 3002
    process.now += 10 * MS
    process.fail()
    assert process.sent[-1].to == 3003


def test_a_broker_that_knows_no_controller_any_more_sends_to_none(process):
    process.running().feed(ControllerKnown(-1)).due()
    sent = len(process.sent)
    process.fail()
    for _ in range(19):
        process.poll()
    assert len(process.sent) == sent
    process.heartbeat_at = None
    process.poll()
    assert process.heartbeat_at - process.now == 2 * SECOND, "2 s old: given up"
    assert len(process.sent) == sent


def test_a_controller_that_is_none_loses_its_connection_and_the_request_is_sent_again(process):
    process.running().due()
    process.answer(BrokerHeartbeatResponse(E.NOT_CONTROLLER))
    assert process.said[-1] == Disconnect(3002, "heartbeat")
    assert process.poll_at - process.now == 50 * MS
    process.feed(ControllerKnown(3001))
    assert process.sent[-1].to == 3001


def test_a_controller_that_does_not_accept_the_broker_is_asked_again_after_the_wait(process):
    process.running().due()
    process.fail(E.SSL_AUTHENTICATION_FAILED)
    assert process.heartbeat_at - process.now == 2 * SECOND


def test_news_of_a_controller_is_followed_at_once_by_a_broker_that_looks_for_one(process):
    process.running().due().fail()
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
    process.fail().poll()
    process.feed(ResponseReceived(old.to, old.correlation, REGISTERED))
    assert process.said == []
