"""A client's connection is given up and made again as Kafka's network client does it."""

import pytest

from sim.kernel import Kernel
from sim.nodes.process.base import Node
from sim.nodes.process.reconnect import BLOCKING, CLIENTS, RAFT, SEND_THREADS, policy_of
from sim.protocol.events import RequestFailed
from sim.protocol.messages.metadata import MetadataRequest
from sim.rng import Streams
from sim.substrate.host import Host, HostSpec
from sim.substrate.network import LinkRule, Network, NetworkSpec
from sim.trace.writer import Trace
from sim.units import SECOND


class Asker:
    """A machine that remembers when its requests failed."""

    def __init__(self):
        self.failed = []

    def handle(self, event, now):
        if isinstance(event, RequestFailed):
            self.failed.append(now)
        return []


class Client(Node):
    def boot(self):
        self.asker = Asker()
        self.port = self.add_machine("asker", self.asker)


class Listener:
    """The other end: it accepts."""

    name, host_name, incarnation, running = "server", "server", 1, True

    def __init__(self):
        self.accepted = []

    def on_accept(self, link):
        self.accepted.append(link)

    def __getattr__(self, name):
        return lambda *_: None


class Scene:
    def __init__(self, label):
        self.label = label
        self.kernel = Kernel(0)
        self.streams = Streams(1)
        self.trace = Trace(None)
        self.network = Network(self.kernel, self.streams, NetworkSpec())
        self.network.add_host("server", "rack a")
        self.listener = Listener()
        self.client = Client("client", Host("client", "a", self.network, HostSpec()), self)
        self.client.start()

    def advertised(self, node):
        return self.server(node)

    def server(self, node):
        return self.listener

    def cut(self):
        ends = frozenset({"client", "server"})
        return self.network.add_rule(LinkRule("cut", ends, ends, cut=True))

    def ask(self, number):
        channel = self.client.channel(7, self.label)
        channel.send(self.client.port, number, MetadataRequest(("orders",)), 120 * SECOND)
        return channel

    def next_failure(self):
        """Ask until it fails; how long that took, in seconds."""
        asker = self.client.asker
        began, count = self.kernel.time, len(asker.failed)
        self.ask(count)
        while len(asker.failed) == count:
            self.kernel.run(self.kernel.time + SECOND // 10)
        return (asker.failed[-1] - began) / SECOND


@pytest.mark.parametrize(
    ("label", "limits"),
    [
        ("", [(8, 12), (16, 24), (24, 30), (24, 30)]),
        ("heartbeat", [(8, 12), (16, 24), (24, 30), (24, 30)]),
        ("fetcher-0", [(8, 12), (8, 12), (8, 12), (8, 12)]),
    ],
)
def test_a_connection_has_10_s_to_be_established_and_twice_as_long_each_time_but_a_fetchers(
    label, limits
):
    scene = Scene(label)
    scene.cut()
    for low, high in limits:
        # The reconnect back-off comes first.
        assert low <= scene.next_failure() <= high + 1


def test_only_attempts_that_failed_lengthen_the_time_for_the_next():
    scene = Scene("")
    channel = scene.ask(0)
    scene.kernel.run(SECOND)
    assert channel.is_open
    channel.disconnect()
    scene.cut()
    assert scene.next_failure() <= 12.1


def test_a_connection_is_there_a_second_after_the_heal_of_a_short_cut():
    scene = Scene("fetcher-0")
    cut = scene.cut()
    channel = scene.ask(0)
    scene.kernel.run(4_700_000)
    cut.remove()
    scene.kernel.run(4_990_000)
    assert not channel.is_open
    scene.kernel.run(5_010_000)
    assert channel.is_open


def test_who_asks_decides_how_soon_a_connection_is_made_again():
    assert policy_of("") is policy_of("coordinator") is CLIENTS
    assert policy_of("fetcher-3") is policy_of("controller") is BLOCKING
    assert policy_of("heartbeat") is policy_of("transactions") is SEND_THREADS
    assert policy_of("quorum") is RAFT
