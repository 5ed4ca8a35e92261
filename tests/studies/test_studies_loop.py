"""The studies' host: constant ways, threads that are busy, deaths and cuts that are noticed."""

from dataclasses import dataclass

from sim.error_codes import ErrorCode
from sim.protocol import effects as fx
from sim.protocol import events as ev
from sim.protocol.messages.base import Request, Response
from sim.studies.loop import FREE, Costs, Loop

WAY = 100


@dataclass(frozen=True)
class Ask(Request):
    number: int


@dataclass(frozen=True)
class Answer(Response):
    number: int


class Server:
    def handle(self, event, now):
        match event:
            case ev.RequestReceived():
                return [fx.Reply(event.token, Answer(event.request.number))]
        return []


class Client:
    def __init__(self):
        self.got = []

    def handle(self, event, now):
        match event:
            case ev.ResponseReceived():
                self.got.append((now, event.response.number))
            case ev.RequestFailed():
                self.got.append((now, event.error))
            case ev.TimerFired():
                self.got.append((now, event.name))
        return []


class Slow(Costs):
    """Two threads: even requests are taken by one, odd ones by the other."""

    def lane(self, machine, event):
        return event.request.number % 2 if isinstance(event, ev.RequestReceived) else 2

    def event_us(self, event):
        return 1_000 if isinstance(event, ev.RequestReceived) else 0


def pair(costs=None):
    loop = Loop(WAY)
    server, client = loop.add(1, costs or FREE), loop.add(2, FREE)
    server.routes = {Ask: "server"}
    server.start({"server": Server()})
    machine = Client()
    client.start({"client": machine})
    return loop, client, machine


def ask(client, *numbers, timeout=5_000):
    client.perform("client", [fx.Send(1, n, Ask(n), timeout) for n in numbers])


def test_an_answer_takes_two_ways():
    loop, client, machine = pair()
    ask(client, 7)
    loop.run(1_000)
    assert machine.got == [(2 * WAY, 7)]


def test_a_thread_does_one_thing_after_the_other_and_two_threads_two():
    loop, client, machine = pair(Slow())
    ask(client, 0, 2, 1)
    loop.run(10_000)
    assert machine.got == [(1_200, 0), (1_200, 1), (2_200, 2)]


def test_the_death_of_a_server_is_noticed_and_its_late_answer_is_not():
    loop, client, machine = pair(Slow())
    ask(client, 0)
    loop.run(500)
    loop.kill(1)
    loop.run(10_000)
    assert machine.got == [(500 + WAY, ErrorCode.NETWORK_EXCEPTION)]
    ask(client, 1)
    loop.run(20_000)
    assert machine.got[1:] == [(10_000 + 2 * WAY, ErrorCode.NETWORK_EXCEPTION)]


def test_a_cut_is_noticed_at_the_timeout_and_a_healed_one_is_not_noticed():
    loop, client, machine = pair()
    loop.cut(1, 2)
    ask(client, 1)
    loop.run(4_000)
    assert machine.got == []
    loop.heal()
    ask(client, 2)
    loop.run(10_000)
    assert machine.got == [(4_000 + 2 * WAY, 2), (5_000, ErrorCode.REQUEST_TIMED_OUT)]


def test_a_server_that_is_too_busy_answers_too_late():
    loop, client, machine = pair(Slow())
    ask(client, 0, 2, 4, timeout=2_500)
    loop.run(10_000)
    assert machine.got[:2] == [(1_200, 0), (2_200, 2)]
    assert machine.got[2:] == [(2_500, ErrorCode.REQUEST_TIMED_OUT)]


def test_a_moved_timer_fires_once_and_a_cancelled_one_never():
    loop, client, machine = pair()
    effects = [fx.SetTimer("a", 100), fx.SetTimer("a", 300), fx.SetTimer("b", 200)]
    client.perform("client", [*effects, fx.CancelTimer("b")])
    loop.run(1_000)
    assert machine.got == [(300, "a")]


def test_a_new_life_hears_nothing_of_what_the_former_one_asked():
    loop, client, machine = pair(Slow())
    ask(client, 0)
    loop.kill(2)
    client.start({"client": machine})
    loop.run(10_000)
    assert machine.got == []
