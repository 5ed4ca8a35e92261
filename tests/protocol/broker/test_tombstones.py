"""Coordinated removal of tombstones, as in Redpanda 25.3: three brokers, messages by hand."""

from sim.error_codes import ErrorCode as E
from sim.ids import TopicPartition
from sim.protocol.broker.tombstones import (
    IDLE_US,
    RETRIES,
    UNKNOWN,
    CleanedLogs,
    LedLog,
    TombstoneCoordinator,
)
from sim.protocol.effects import Reply, Send, SetTimer
from sim.protocol.events import RequestFailed, RequestReceived, ResponseReceived, TimerFired

P = TopicPartition("accounts", 0)
SECOND = 1_000_000
DAY = 86_400 * SECOND
HOUR = 3_600 * SECOND


class Logs(CleanedLogs):
    """One broker's log, cleaned to an offset."""

    def __init__(self, broker):
        self.offset = 0
        self.leads = broker == 1

    def led(self):
        return [LedLog(P, (2, 3), DAY)] if self.leads else []

    def cleaned(self, partition):
        return self.offset if partition == P else UNKNOWN


class Trio:
    """Broker 1 leads; those that are away answer nothing."""

    def __init__(self):
        self.logs = {broker: Logs(broker) for broker in (1, 2, 3)}
        self.machines = {b: TombstoneCoordinator(b, logs) for b, logs in self.logs.items()}
        self.away = ()
        self.now = 0

    def cleaned(self, *offsets):
        for broker, offset in zip((1, 2, 3), offsets, strict=True):
            self.logs[broker].offset = offset

    def round(self, leader=1):
        """One round of the leader, an hour after the one before; brokers that were sent to."""
        self.now += HOUR
        effects = self.machines[leader].handle(TimerFired("tombstones"), self.now)
        sent = [effect for effect in effects if isinstance(effect, Send)]
        for send in sent:
            if send.to in self.away:
                event = RequestFailed(send.to, send.correlation, E.REQUEST_TIMED_OUT)
            else:
                received = RequestReceived(1, f"broker-{leader}", send.request)
                (reply,) = self.machines[send.to].handle(received, self.now)
                assert isinstance(reply, Reply)
                event = ResponseReceived(send.to, send.correlation, reply.response)
            assert self.machines[leader].handle(event, self.now) == []
        return [send.to for send in sent]

    @property
    def removable(self):
        return [self.machines[broker].removable(P) for broker in (1, 2, 3)]


def test_tombstones_may_go_below_what_all_replicas_have_cleaned():
    trio = Trio()
    trio.cleaned(90, 70, 80)
    assert trio.round() == [2, 3]
    assert trio.removable == [0, 0, 0]  # nobody had answered when it began
    trio.round()
    assert trio.removable == [70, 70, 70]


def test_a_replica_that_is_away_holds_it_up_however_long():
    trio = Trio()
    trio.cleaned(90, 70, 80)
    trio.round()
    trio.round()
    trio.away = (3,)
    trio.cleaned(900, 700, 80)
    for _ in range(100):
        trio.round()
    assert trio.removable == [80, 80, 70]  # as far as it had cleaned when it answered last
    trio.away = ()
    trio.cleaned(900, 700, 800)
    trio.round()
    trio.round()
    assert trio.removable == [700, 700, 700]


def test_a_replica_that_has_never_answered_holds_up_everything():
    trio = Trio()
    trio.away = (3,)
    trio.cleaned(90, 70, 80)
    for _ in range(10):
        trio.round()
    assert trio.removable == [0, 0, 0]


def test_it_never_decreases_and_an_empty_replica_counts_as_cleaned_that_far():
    trio = Trio()
    trio.cleaned(90, 70, 80)
    trio.round()
    trio.round()
    trio.cleaned(90, 0, 80)  # broker 2 has lost its log, and knows that offset
    trio.round()
    trio.round()
    assert trio.removable == [70, 70, 70]


def test_another_leader_collects_it_again():
    trio = Trio()
    trio.cleaned(90, 70, 80)
    trio.round()
    trio.round()
    trio.logs[1].leads = False
    assert trio.round() == []
    trio.logs[1].leads = True
    trio.cleaned(900, 700, 800)
    trio.round()
    assert trio.removable == [70, 70, 70]
    trio.round()
    assert trio.removable == [700, 700, 700]


def test_a_round_is_a_24th_of_the_retention_and_who_does_not_answer_is_tried_ten_times_in_it():
    logs = Logs(1)
    machine = TombstoneCoordinator(1, logs)
    assert machine.start(5) == [SetTimer("tombstones", 5 + IDLE_US)]
    first = [e for e in machine.handle(TimerFired("tombstones"), 0) if isinstance(e, Send)]
    assert machine.handle(TimerFired("tombstones"), HOUR - 1)[:-1] == []
    again = [e for e in machine.handle(TimerFired("tombstones"), HOUR) if isinstance(e, Send)]
    assert [e.to for e in first] == [e.to for e in again] == [2, 3]
    machine.handle(RequestFailed(2, again[0].correlation, E.NETWORK_EXCEPTION), HOUR)
    assert machine.handle(TimerFired("tombstones"), HOUR + HOUR // RETRIES - 1)[:-1] == []
    late = machine.handle(TimerFired("tombstones"), HOUR + HOUR // RETRIES)
    assert [e.to for e in late if isinstance(e, Send)] == [2, 3]


def test_a_replica_without_the_log_has_cleaned_nothing():
    logs = Logs(1)
    machine = TombstoneCoordinator(2, logs)
    assert machine.removable(TopicPartition("clicks", 0)) == 0
    assert logs.cleaned(TopicPartition("clicks", 0)) == UNKNOWN
