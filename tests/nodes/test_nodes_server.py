"""A server's queues: one request of a connection at a time, several connections at once."""

import pytest

from sim.kernel import Kernel
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.process.server import ServerNode
from sim.protocol import effects as fx
from sim.protocol.messages.group import FindCoordinatorRequest
from sim.protocol.messages.metadata import MetadataRequest
from sim.rng import Streams
from sim.substrate.distributions import Spread
from sim.substrate.host import Host, HostSpec, Servers
from sim.substrate.network import Network, NetworkSpec
from sim.substrate.wakeups import Wakeups
from sim.trace.writer import Trace

CPU = CpuSpec(network_request_us=10, handler_request_us=20)


class Desk:
    """A machine that remembers what it was asked and answers when the test says so."""

    def __init__(self):
        self.asked = []

    def handle(self, event, now):
        self.asked.append((now, event.token))
        return []


class Client:
    """The other end of connections; of what it is told only the end of one matters here."""

    name, host_name, incarnation, running = "client", "client", 1, True
    closed = 0

    def on_closed(self, link):
        Client.closed += 1

    def __getattr__(self, name):
        return lambda *_: None


class Server(ServerNode):
    """A server with the desk and nothing else."""

    stalled_until = 0

    def may_decide_at(self, request):
        return self.stalled_until

    def boot(self):
        self.port = self.add_machine("desk", self.desk)
        self.route(self.port, MetadataRequest)


class Scene:
    def __init__(self, handlers, cpu=CPU, **spec):
        self.kernel = Kernel(0)
        self.streams = Streams(1)
        self.trace = Trace(None)
        self.network = Network(self.kernel, self.streams, NetworkSpec())
        self.network.add_host("client", "clients")
        host = Host("broker-1", "", self.network, HostSpec(request_handlers=handlers, **spec))
        self.desk = Desk()
        self.server = Server(1, "broker-1", host, self, cpu)
        self.server.desk = self.desk
        self.server.start()

    def connect(self):
        link = self.network.connect(Client(), self.server)
        self.kernel.run(self.kernel.time + 10_000)
        return link

    def send(self, link, correlation):
        link.to_server.send(MetadataRequest(("orders",)), correlation)

    def run(self, duration):
        self.kernel.run(self.kernel.time + duration)

    def answer(self, token):
        self.server.perform(self.server.port, [fx.Reply(token, None)])


@pytest.fixture
def scene():
    return Scene(handlers=8)


def test_the_next_request_of_a_connection_waits_for_the_answer_to_the_one_before(scene):
    link = scene.connect()
    for correlation in range(3):
        scene.send(link, correlation)
    scene.run(1_000_000)
    assert [token for _, token in scene.desk.asked] == [1], "parked, so the connection is muted"
    answered = scene.kernel.time
    scene.answer(1)
    scene.run(1_000_000)
    assert [token for _, token in scene.desk.asked] == [1, 2]
    assert scene.desk.asked[1][0] - answered < 100


def test_another_connection_does_not_wait(scene):
    first, second = scene.connect(), scene.connect()
    scene.send(first, 1)
    scene.run(10_000)
    scene.send(second, 1)
    scene.run(10_000)
    assert [token for _, token in scene.desk.asked] == [1, 2]


def closed_with_one_in_hand_and_one_behind(scene):
    link = scene.connect()
    for correlation in range(2):
        scene.server.on_message(link, MetadataRequest(("orders",)), correlation, scene.kernel.time)
    scene.server.on_closed(link)


def test_a_closed_port_refuses_connections_until_it_is_opened(scene, monkeypatch):
    monkeypatch.setattr(Client, "closed", 0)
    scene.server.listening = False
    refused = scene.connect()
    assert (refused.is_open, Client.closed) == (False, 1)
    scene.server.listening = True
    assert scene.connect().is_open


def test_where_another_port_is_open_only_what_comes_by_it_is_served(scene, monkeypatch):
    monkeypatch.setattr(Client, "closed", 0)
    scene.server.listening = False
    scene.server.served_before = (MetadataRequest,)
    link = scene.connect()
    scene.send(link, 1)
    scene.run(1_000)
    assert len(scene.desk.asked) == 1
    scene.answer(1)
    link.to_server.send(FindCoordinatorRequest("billing"), 2)
    scene.run(10_000)
    assert (len(scene.desk.asked), Client.closed) == (1, 1)


def test_what_a_handler_has_in_hand_is_done_although_its_connection_is_closed(scene):
    """But what waited behind it was never read from the socket."""
    closed_with_one_in_hand_and_one_behind(scene)
    scene.run(1_000_000)
    assert [token for _, token in scene.desk.asked] == [1]
    scene.answer(1)
    scene.run(1_000_000)
    assert [token for _, token in scene.desk.asked] == [1]
    assert scene.server.requests_answered == 0


def test_what_a_handler_has_in_hand_ends_with_its_process(scene):
    closed_with_one_in_hand_and_one_behind(scene)
    scene.server.crash()
    scene.run(1_000_000)
    assert scene.desk.asked == []


@pytest.mark.parametrize(("handlers", "apart"), [(8, False), (1, True)])
def test_requests_that_arrive_together_are_served_by_as_many_handlers_as_there_are(handlers, apart):
    scene = Scene(handlers)
    links = [scene.connect() for _ in range(3)]
    now = scene.kernel.time
    for link in links:
        scene.server.on_message(link, MetadataRequest(("orders",)), 1, now)
    scene.run(10_000)
    first, *_, last = [at for at, _ in scene.desk.asked]
    assert len(scene.desk.asked) == 3
    assert (last - first >= 2 * CPU.handler_request_us) is apart


@pytest.mark.parametrize("heals", [True, False])
def test_what_waits_for_a_slow_cpu_is_done_at_the_usual_speed_when_it_heals(heals):
    """Ten requests of 2 ms each, of which the first is half done when the CPU is well again."""
    scene = Scene(handlers=1)
    links = [scene.connect() for _ in range(10)]
    host = scene.server.host
    host.slow_cpu(100)
    began = scene.kernel.time
    for link in links:
        scene.server.on_message(link, MetadataRequest(("orders",)), 1, began)
    scene.run(2_000)
    assert len(scene.desk.asked) == 0
    if heals:
        host.slow_cpu(1)
    scene.run(1_000_000)
    times = [at - began for at, _ in scene.desk.asked]
    assert len(times) == 10
    assert times == sorted(times), "in the order of their arrival"
    assert (times[-1] < 2_500) is heals
    assert (times[-1] > 20_000) is not heals


@pytest.mark.parametrize("busy", [False, True])
def test_a_thread_that_waited_takes_a_while_to_wake_up_and_a_busy_one_does_not(busy):
    threads = Servers(1, Wakeups(Spread(30, 30), Streams(1).vector("wakeups")))
    first = threads.take(1_000, 100)
    assert first == 1_000 + 30 + 100
    second = threads.take(first - 50 if busy else first + 50, 100)
    assert second == (first + 100 if busy else first + 50 + 30 + 100)


def read_by_a_full_queue(bound):
    """Six requests at once, 1 ms each, for one handler and one network thread; when it is free."""
    scene = Scene(1, CpuSpec(handler_request_us=1_000), network_threads=1, queued_requests=bound)
    links = [scene.connect() for _ in range(6)]
    began = scene.kernel.time
    for link in links:
        scene.server.on_message(link, MetadataRequest(("orders",)), 1, began)
    free = scene.server.host.network_threads.free_at() - began
    scene.run(10_000)
    return free, [at - began for at, _ in scene.desk.asked]


def test_a_network_thread_that_cannot_enqueue_is_blocked_until_a_handler_takes_a_request():
    """The handler has one and the queue two: the fourth waits for the turn of the second."""
    unbounded, asked = read_by_a_full_queue(0)
    assert unbounded < 200, "six messages are read"
    ample, asked_of_ample = read_by_a_full_queue(5)
    blocked, asked_of_two = read_by_a_full_queue(2)
    assert unbounded == ample
    assert 3_000 < blocked < 3_200, "the sixth has a place when the fourth is taken"
    assert asked == asked_of_ample == asked_of_two, "handlers have work all the time"


@pytest.mark.parametrize(("bound", "read"), [(0, 9), (3, 5)])
def test_a_queue_that_no_handler_empties_keeps_all_further_requests_in_their_sockets(bound, read):
    """Two handlers wait for a disk and three requests are in the queue: no other is read."""
    scene = Scene(2, network_threads=1, queued_requests=bound)
    server, threads = scene.server, scene.server.host.network_threads
    links = [scene.connect() for _ in range(9)]
    server.stalled_until = scene.kernel.time + 5_000_000
    for link in links:
        server.on_message(link, MetadataRequest(("orders",)), 1, scene.kernel.time)
        scene.run(1_000)
    assert len(links) - len(server._unread) == read
    scene.run(1_000_000)
    assert len(links) - len(server._unread) == read
    assert (threads.free_at() > scene.kernel.time) is bool(bound), "and none is answered"
    scene.run(5_000_000)
    assert [token for _, token in scene.desk.asked] == list(range(1, 10))
    assert threads.free_at() < scene.kernel.time


def test_a_restarted_process_has_an_empty_request_queue():
    scene = Scene(1, network_threads=1, queued_requests=1)
    scene.server.stalled_until = scene.kernel.time + 60_000_000
    for link in [scene.connect() for _ in range(5)]:
        scene.server.on_message(link, MetadataRequest(("orders",)), 1, scene.kernel.time)
        scene.run(1_000)
    assert scene.server._unread
    scene.server.crash()
    scene.run(1_000_000)
    scene.server.start()
    scene.server.stalled_until = 0
    link = scene.connect()
    scene.server.on_message(link, MetadataRequest(("orders",)), 1, scene.kernel.time)
    scene.run(1_000)
    assert len(scene.desk.asked) == 1
