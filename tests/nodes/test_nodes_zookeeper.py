"""Watch events on the connection of their session, between processes on a network."""

import pytest

from sim.ids import FIRST_ZOOKEEPER_ID
from sim.kernel import Kernel
from sim.log.store.files import FileStore
from sim.nodes.process.base import Node
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.zookeeper.node import ZooKeeperNode
from sim.nodes.zookeeper.settings import ZooKeeperSettings
from sim.protocol import effects as fx
from sim.protocol.zk_mode.trace_rows import ZkTraceRows
from sim.protocol.zookeeper.ensemble import ZkConfig
from sim.protocol.zookeeper.session import CHANNEL, SessionConfig, SessionState, ZkOperation
from sim.protocol.zookeeper.tree import Create, GetData, SetData, WatchEvent
from sim.rng import Streams
from sim.substrate.disk import Disk, DiskSpec
from sim.substrate.distributions import Spread
from sim.substrate.host import Host, HostSpec
from sim.substrate.network import LinkRule, Network, NetworkSpec
from sim.substrate.tls import TlsSpec
from sim.trace.writer import Trace
from tests.protocol.zookeeper.zookeeper_kit import MS, READS, SECOND, Recorder

SERVER = FIRST_ZOOKEEPER_ID
ONE_WAY_US = SECOND // 2
FSYNC_US = 20 * MS
"""Longer than forcing the log takes, and much shorter than a way."""


class Client(Node):
    """A process with a session."""

    def boot(self):
        self.recorder = Recorder((SERVER,), 0, SessionConfig(12 * SECOND))
        self.port = self.add_machine("client", self.recorder)
        self.act(self.recorder.session.start)

    def act(self, what, *args):
        out = []
        what(*args, out)
        self.perform(self.port, out)

    def ask(self, *ops, tag=0, watch=False):
        operations = [ZkOperation(op, watch) for op in ops]
        self.act(self.recorder.session.submit, tag, operations, self.now())


class Scene:
    """One server and two clients; every message takes another time if ``jitter_us`` is given."""

    def __init__(self, directory, *, tls=None, jitter_us=0, kind=ZooKeeperNode):
        self.kernel = Kernel(0)
        self.streams = Streams(1)
        self.trace = Trace(None)
        spread = Spread(100 + jitter_us // 20, 100 + jitter_us)
        spec = NetworkSpec(same_rack=spread, cross_rack=spread, client=spread)
        self.network = Network(self.kernel, self.streams, spec)
        settings = ZooKeeperSettings((SERVER,), ZkConfig())
        host = Host("zookeeper", "a", self.network, HostSpec(network_threads=1, request_handlers=1))
        disk = Disk(self.kernel, FileStore(directory), DiskSpec(), self.streams.named("disk").unit)
        host.disks.append(disk)
        self.zookeeper = kind(SERVER, host, self, CpuSpec(), settings, ZkTraceRows())
        self.zookeeper.start()
        self.setter, self.watcher = self.client("setter", tls), self.client("watcher", tls)
        self.run(4)
        assert self.watcher.recorder.session.state is SessionState.CONNECTED

    def client(self, name, tls):
        client = Client(name, Host(name, "b", self.network, HostSpec()), self)
        client.tls = tls
        client.start()
        return client

    def server(self, node):
        return self.zookeeper

    advertised = server

    def run(self, seconds):
        self.kernel.run(self.kernel.time + int(seconds * SECOND))

    def delay(self):
        ends = frozenset({"watcher", "zookeeper"})
        self.network.add_rule(LinkRule("delay", ends, ends, delay_us=ONE_WAY_US))


NODES = "abcdefghij"


@pytest.mark.parametrize("tls", [None, TlsSpec()])
def test_each_event_is_with_a_far_client_one_way_after_the_change(tls, tmp_path):
    scene = Scene(tmp_path, tls=tls)
    scene.setter.ask(*(Create(f"/{name}", 0) for name in NODES))
    scene.run(1)
    scene.watcher.ask(*(GetData(f"/{name}") for name in NODES), watch=True)
    scene.run(1)
    scene.delay()
    began = scene.kernel.time
    for name in NODES:
        scene.setter.ask(SetData(f"/{name}", 1))
        scene.run(0.1)
    scene.run(5)
    heard = scene.watcher.recorder
    assert heard.watched == [(f"/{name}", WatchEvent.DATA_CHANGED) for name in NODES]
    for number, at in enumerate(heard.watched_at):
        since = at - (began + number * 100 * MS)
        assert ONE_WAY_US < since < ONE_WAY_US + FSYNC_US


def read_beside_writes(scene):
    """What a client hears that watches a node and reads it again and again while it is set."""
    scene.setter.ask(Create("/x", 0))
    scene.run(1)
    for value in range(1, 21):
        scene.watcher.ask(GetData("/x"), tag=READS, watch=True)
        scene.run(0.2)
        scene.setter.ask(SetData("/x", value))
        for _ in range(100):
            scene.watcher.ask(GetData("/x"), tag=READS)
            scene.run(0.001)
        scene.run(0.2)
    return scene.watcher.recorder.values()


def events_behind(heard):
    """Number of reads that showed a value before the event of its writing; and of events."""
    events = early = 0
    for item in heard:
        events += item == "/x"
        early += item != "/x" and item > events
    return early, events


def test_an_event_comes_before_a_response_that_shows_what_it_is_about_whatever_each_takes(tmp_path):
    """ZooKeeper Programmer's Guide, "What ZooKeeper Guarantees about Watches"."""
    assert events_behind(read_beside_writes(Scene(tmp_path, jitter_us=20 * MS))) == (0, 20)


class OnItsOwnWayNode(ZooKeeperNode):
    """A planted defect: an event takes a time of its own, not the connection's order."""

    def _notify(self, port, effect):
        at = self.kernel.time + int(self.streams.named("own way").unit() * 20 * MS)
        self.call_at(at, super()._notify, port, effect)


def test_an_event_that_a_response_overtakes_is_noticed(tmp_path):
    early, events = events_behind(read_beside_writes(Scene(tmp_path, kind=OnItsOwnWayNode)))
    assert events == 20
    assert early > 0


def test_an_idle_client_learns_of_its_servers_death_when_the_reset_arrives(tmp_path):
    scene = Scene(tmp_path)
    died = scene.kernel.time
    scene.zookeeper.crash()
    scene.run(0.1)
    (at,) = (at for at, state in scene.watcher.recorder.states if at >= died)
    assert at - died < 20 * MS
    assert scene.watcher.recorder.session.state is SessionState.CONNECTING


def test_a_connection_that_breaks_takes_its_watches_and_events_with_it(tmp_path):
    """``NIOServerCnxn.close``: nothing is sent, and the client's next connection has the news."""
    scene = Scene(tmp_path)
    scene.setter.ask(Create("/x", 0))
    scene.run(1)
    scene.watcher.ask(GetData("/x"), watch=True)
    scene.run(1)
    (link,) = (link for link in scene.zookeeper.open_connections() if link.client is scene.watcher)
    scene.zookeeper.drop(link)
    scene.setter.ask(SetData("/x", 1))
    scene.run(0.3)
    heard = scene.watcher.recorder
    assert heard.watched == []
    assert heard.session.state is SessionState.CONNECTING
    scene.run(1)
    assert heard.watched == [("/x", WatchEvent.DATA_CHANGED)]
    scene.setter.ask(SetData("/x", 2))
    scene.run(0.3)
    assert len(heard.watched) == 1, "the watch was the former connection's"


def test_a_client_that_connects_again_takes_its_session_from_the_connection_before(tmp_path):
    """``ZooKeeperServer.processConnectRequest``: CLIENT_RECONNECT."""
    scene = Scene(tmp_path)
    ends = frozenset({"watcher", "zookeeper"})
    scene.setter.ask(Create("/x", 0))
    scene.run(1)
    cut = scene.network.add_rule(LinkRule("cut", ends, ends, cut=True))
    scene.run(9)
    heard = scene.watcher.recorder
    assert heard.session.state is SessionState.CONNECTING, "silent for two thirds of its timeout"
    mine = [link for link in scene.zookeeper.open_connections() if link.client is scene.watcher]
    assert len(mine) == 1, "the server has not heard of it"
    scene.network.remove_rule(cut)
    scene.run(2)
    now = [link for link in scene.zookeeper.open_connections() if link.client is scene.watcher]
    assert len(now) == 1
    assert now != mine
    scene.watcher.ask(GetData("/x"), watch=True)
    scene.run(1)
    scene.setter.ask(SetData("/x", 1))
    scene.run(1)
    assert heard.watched == [("/x", WatchEvent.DATA_CHANGED)]


def test_the_end_of_a_connection_is_reported_once(tmp_path):
    scene = Scene(tmp_path)
    scene.watcher.perform(scene.watcher.port, [fx.Disconnect(SERVER, CHANNEL)])
    scene.run(0.1)
    states = [state for _, state in scene.watcher.recorder.states]
    assert states == [SessionState.CONNECTED, SessionState.CONNECTING]
