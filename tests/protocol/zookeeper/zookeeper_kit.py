"""An ensemble with clients that write down what they are told."""

from sim.protocol.events import (
    ConnectionLost,
    NotificationReceived,
    RequestFailed,
    ResponseReceived,
    TimerFired,
)
from sim.protocol.zookeeper.server import ZooKeeperServer
from sim.protocol.zookeeper.session import (
    Moved,
    OperationAnswered,
    SessionConfig,
    WatchFired,
    ZkOperation,
    ZkSession,
)
from sim.rng import Streams
from sim.studies.loop import FREE, Loop
from sim.studies.zookeeper import Ensemble

MS, SECOND = 1_000, 1_000_000
A, B, C = 5001, 5002, 5003
READS = 9
"""Tag of reads whose order among the events matters."""


class Recorder:
    """A session, and what it has heard, in order."""

    def __init__(self, servers, first, config):
        self.correlation = 0
        self.session = ZkSession(servers, first, self.correlate, config)
        self.answers = {}
        self.watched = []
        self.watched_at = []
        self.states = []
        self.heard = []

    def correlate(self):
        self.correlation += 1
        return self.correlation

    def handle(self, event, now):
        out, news = [], []
        match event:
            case ResponseReceived() if self.session.owns(event.correlation):
                news = self.session.answered(event.correlation, event.response, now, out)
            case RequestFailed() if self.session.owns(event.correlation):
                news = self.session.failed(event.correlation, now, out)
            case NotificationReceived() | ConnectionLost():
                news = self.session.unrequested(event, now, out)
            case TimerFired():
                news = self.session.timer(event.name, now, out)
        self.heard.extend(news)
        for item in news:
            match item:
                case OperationAnswered():
                    self.answers.setdefault(item.tag, []).append(item.outcome)
                case WatchFired():
                    self.watched.append((item.path, item.change))
                    self.watched_at.append(now)
                case Moved():
                    self.states.append((now, item.state))
        return out

    def codes(self, tag=0):
        return [outcome.code for outcome in self.answers.get(tag, [])]

    def values(self):
        """What reads have shown and which paths an event was about, in the order of arrival."""
        return [
            item.path if isinstance(item, WatchFired) else item.outcome.node.data
            for item in self.heard
            if isinstance(item, WatchFired)
            or (isinstance(item, OperationAnswered) and item.tag == READS)
        ]


class Client(Recorder):
    """A process with a session."""

    def __init__(self, loop, servers, node, first, config):
        super().__init__(servers, first, config)
        self.loop = loop
        self.process = loop.add(node, FREE)
        self.process.start({"client": self})
        self.do(self.session.start)

    def do(self, what, *args):
        out = []
        what(*args, out)
        self.process.perform("client", out)

    def ask(self, *ops, tag=0, watch=False):
        operations = [ZkOperation(op, watch) for op in ops]
        self.do(self.session.submit, tag, operations, self.loop.now)


class World:
    def __init__(self, size=3, seed=1, fsync_us=500, one_way_us=100, kind=ZooKeeperServer):
        self.loop = Loop(one_way_us)
        self.ensemble = Ensemble(self.loop, size, Streams(seed), fsync_us=fsync_us, kind=kind)
        self.clients = []

    def run(self, seconds):
        self.loop.run(self.loop.now + int(seconds * SECOND))

    def client(self, first=0, timeout_us=6 * SECOND):
        config = SessionConfig(timeout_us)
        node = len(self.clients) + 1
        client = Client(self.loop, self.ensemble.members, node, first, config)
        self.clients.append(client)
        self.run(1.5)
        return client

    def settled(self, **how):
        self.run(2)
        assert self.ensemble.leader() is not None
        return self

    @property
    def leader(self):
        leader = self.ensemble.leader()
        return None if leader is None else leader.node

    def followers(self):
        return [m for m in self.ensemble.members if m != self.leader]

    def isolate(self, node):
        for other in self.loop.processes:
            if other != node:
                self.loop.cut(node, other)

    def trees(self):
        return {
            m: {path: (n.data, n.version) for path, n in s.tree.nodes.items()}
            for m, s in self.ensemble.stores.items()
        }


def world(**how):
    return World(**how).settled()
