"""A killed process dies slowly: its memory is freed before its sockets close."""

from dataclasses import replace

import pytest

from sim.kernel import Kernel
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.process.server import ServerNode
from sim.protocol.messages.metadata import MetadataRequest
from sim.rng import Streams
from sim.substrate.host import Host, HostSpec
from sim.substrate.network import Network, NetworkSpec
from sim.trace.rows.cluster import NodeStates
from sim.trace.writer import Trace

TEARDOWN_US = 60_000
KILLED = CpuSpec(teardown_us=TEARDOWN_US)


class Server(ServerNode):
    """A server that remembers what it was asked."""

    def boot(self):
        self.asked = []
        self.port = self.add_machine("desk", self)
        self.route(self.port, MetadataRequest)

    def handle(self, event, now):
        self.asked.append(now)
        return []


class Client:
    name, host_name, incarnation, running, tearing_down = "client", "client", 1, True, False

    def __init__(self, kernel):
        self.kernel = kernel
        self.log = []

    def on_open(self, link):
        self.log.append(("open", self.kernel.time))

    def on_closed(self, link):
        self.log.append(("closed", self.kernel.time))


class Scene:
    def __init__(self, cpu=KILLED):
        self.kernel = Kernel(0)
        self.streams = Streams(1)
        self.trace = Trace(None)
        self.rows = []
        self.trace.table("node_states").listeners.append(self.rows.append)
        self.network = Network(self.kernel, self.streams, NetworkSpec())
        self.network.add_host("client", "clients")
        self.host = Host("broker-1", "", self.network, HostSpec())
        self.server = Server(1, "broker-1", self.host, self, cpu)
        self.server.start()
        self.client = Client(self.kernel)
        self.link = self.network.connect(self.client, self.server)
        self.run(10_000)
        self.killed_at = self.kernel.time

    def run(self, duration):
        self.kernel.run(self.kernel.time + duration)

    def ask(self):
        self.link.to_server.send(MetadataRequest(("orders",)), 1)

    @property
    def closed(self):
        return [at - self.killed_at for what, at in self.client.log if what == "closed"]


def test_what_a_killed_process_is_sent_is_accepted_and_lost_until_its_sockets_close():
    scene = Scene()
    scene.server.crash()
    scene.ask()
    scene.run(TEARDOWN_US // 2)
    assert scene.closed == [], "the kernel has acknowledged it: nothing is known of the death"
    scene.run(TEARDOWN_US)
    assert scene.server.asked == []
    (closed,) = scene.closed
    assert TEARDOWN_US <= closed < TEARDOWN_US + 2_000


def test_a_killed_process_does_nothing_any_more():
    scene = Scene()
    scene.ask()
    scene.server.crash()
    scene.run(1_000_000)
    assert scene.server.asked == []


def test_a_connection_to_a_killed_process_is_accepted_and_then_reset():
    scene = Scene()
    scene.server.crash()
    scene.network.connect(scene.client, scene.server)
    scene.run(TEARDOWN_US // 2)
    assert [what for what, _ in scene.client.log] == ["open", "open"]
    scene.run(TEARDOWN_US)
    assert [what for what, _ in scene.client.log[2:]] == ["closed", "closed"]
    assert min(scene.closed) >= TEARDOWN_US
    scene.network.connect(scene.client, scene.server)
    scene.run(10_000)
    assert scene.client.log[-1][0] == "closed", "nobody listens now"


def test_a_process_starts_again_only_when_the_sockets_of_the_one_before_are_closed():
    scene = Scene()
    scene.server.crash()
    scene.server.start()
    scene.run(1_000_000)
    assert scene.server.running
    assert [
        (row[NodeStates.STATE], row[NodeStates.T_US] - scene.killed_at) for row in scene.rows[1:]
    ] == [
        ("crashed", 0),
        ("started", TEARDOWN_US),
    ]


def test_a_host_without_power_resets_nothing_of_a_killed_process():
    scene = Scene()
    scene.server.crash()
    scene.server.start()
    scene.run(TEARDOWN_US // 2)
    scene.host.power_off()
    scene.run(1_000_000)
    assert scene.closed == []
    assert not scene.server.running


@pytest.mark.parametrize("way", ["shut_down", "crash"])
def test_an_orderly_stop_and_a_teardown_of_no_time_close_at_once(way):
    scene = Scene(KILLED if way == "shut_down" else replace(KILLED, teardown_us=0))
    getattr(scene.server, way)()
    scene.run(TEARDOWN_US // 2)
    assert len(scene.closed) == 1
