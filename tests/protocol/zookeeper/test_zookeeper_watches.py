"""Watch events: once, in order, at once, and on the connection on which the watch was left."""

from sim.protocol.events import NotificationReceived
from sim.protocol.zookeeper.effects import Notify
from sim.protocol.zookeeper.messages import ZkWatchNotification
from sim.protocol.zookeeper.server import SessionDisconnected, ZooKeeperServer
from sim.protocol.zookeeper.session import (
    RECONNECT_US,
    OperationAnswered,
    SessionState,
    WatchFired,
)
from sim.protocol.zookeeper.tree import (
    CloseSession,
    Create,
    Exists,
    GetChildren,
    GetData,
    SetData,
    WatchEvent,
)
from tests.protocol.zookeeper.zookeeper_kit import MS, READS, SECOND, world


def test_watches_tell_once_and_in_the_order_of_what_happened():
    w = world()
    one, two = w.client(first=0), w.client(first=1)
    one.ask(Create("/p", None), Create("/p/a", 0))
    w.run(1)
    two.ask(GetChildren("/p"), GetData("/p/a"), Exists("/p/b"), watch=True)
    w.run(1)
    one.ask(SetData("/p/a", 1), Create("/p/b", 0), SetData("/p/a", 2), SetData("/p/b", 1))
    w.run(1)
    assert two.watched == [
        ("/p/a", WatchEvent.DATA_CHANGED),
        ("/p/b", WatchEvent.CREATED),
        ("/p", WatchEvent.CHILDREN_CHANGED),
    ]


NODES = "abcdefghij"


def far_away(kind=ZooKeeperServer):
    """Delays of the events of ten nodes, set 100 ms apart, half a second from their watcher."""
    w = world(size=1, kind=kind)
    setter, watcher = w.client(), w.client()
    setter.ask(*(Create(f"/{name}", 0) for name in NODES))
    w.run(1)
    watcher.ask(*(GetData(f"/{name}") for name in NODES), watch=True)
    w.run(1)
    w.loop.one_way_us = SECOND // 2
    began = w.loop.now
    for name in NODES:
        setter.ask(SetData(f"/{name}", 1))
        w.run(0.1)
    w.run(20)
    assert [path for path, _ in watcher.watched] == [f"/{name}" for name in NODES]
    # The setter is as far away, and its write is forced to the disk.
    arrived = [began + i * 100 * MS + w.loop.one_way_us + 500 for i in range(len(NODES))]
    return [at - since for at, since in zip(watcher.watched_at, arrived, strict=True)]


def test_each_event_is_with_the_client_one_way_after_the_change_however_many_are_on_their_way():
    """Catalogue: honeycomb-2017-split-brain-controller, where the links to ZooKeeper are slow."""
    assert far_away() == [SECOND // 2] * len(NODES)


class PingRiddenServer(ZooKeeperServer):
    """A planted defect: an event waits for the next request of its session."""

    def begin(self, now):
        self.kept = []
        return super().begin(now)

    def handle(self, event, now):
        out = super().handle(event, now)
        session = getattr(getattr(event, "request", None), "session", None)
        due = [e for e in self.kept if e.session == session]
        self.kept = [e for e in [*self.kept, *out] if isinstance(e, Notify) and e not in due]
        return [*due, *(e for e in out if not isinstance(e, Notify))]


def test_events_that_wait_for_a_request_of_their_client_are_noticed():
    assert max(far_away(PingRiddenServer)) > SECOND // 2


def read_beside_writes(kind=ZooKeeperServer):
    """What a client hears that watches a node and reads it again and again while it is set."""
    w = world(size=1, kind=kind)
    setter, watcher = w.client(), w.client()
    setter.ask(Create("/x", 0))
    w.run(1)
    for value in range(1, 6):
        watcher.ask(GetData("/x"), tag=READS, watch=True)
        w.run(0.1)
        setter.ask(SetData("/x", value))
        for _ in range(10):
            watcher.ask(GetData("/x"), tag=READS)
            w.run(0.0001)
        w.run(0.1)
    return watcher.values()


def precedes_what_it_is_about(heard):
    """True if no read shows a value before the event of its writing."""
    events = 0
    for item in heard:
        events += item == "/x"
        if item != "/x" and item > events:
            return False
    return events == 5


def test_an_event_comes_before_a_response_that_shows_what_it_is_about():
    """ZooKeeper Programmer's Guide, "What ZooKeeper Guarantees about Watches"."""
    assert precedes_what_it_is_about(read_beside_writes())


class LateEventServer(ZooKeeperServer):
    """A planted defect: events leave a millisecond's worth of decisions late."""

    def begin(self, now):
        self.kept = []
        return super().begin(now)

    def handle(self, event, now):
        out = super().handle(event, now)
        due = [e for at, e in self.kept if at <= now]
        self.kept = [(at, e) for at, e in self.kept if at > now]
        self.kept += [(now + MS, e) for e in out if isinstance(e, Notify)]
        return [*(e for e in out if not isinstance(e, Notify)), *due]


def test_an_event_behind_such_a_response_is_noticed():
    assert not precedes_what_it_is_about(read_beside_writes(LateEventServer))


def test_the_event_of_a_clients_own_write_comes_before_the_response_to_it():
    w = world()
    client = w.client()
    client.ask(Create("/x", 0))
    client.ask(GetData("/x"), watch=True)
    client.ask(SetData("/x", 1), tag=1)
    w.run(1)
    assert [type(item) for item in client.heard[-2:]] == [WatchFired, OperationAnswered]


def test_an_idle_client_learns_at_once_that_its_server_has_died():
    """``ClientCnxnSocketNIO.doIO``: the end of the stream, not the next ping."""
    w = world()
    client = w.client(first=w.followers()[0] - 5001)
    client.ask(GetData("/"))
    w.run(0.5)
    died = w.loop.now
    w.loop.kill(client.session.server)
    w.run(1.5)
    assert (died + w.loop.one_way_us, SessionState.CONNECTING) in client.states
    assert client.session.state is SessionState.CONNECTED, "at another server"


def test_the_connection_of_an_ended_session_is_closed_and_the_next_one_shows_why():
    w = world()
    ended, other = w.client(first=0), w.client(first=1)
    began = w.loop.now
    other.ask(CloseSession(ended.session.session))
    w.run(1.5)
    states = [(at - began, state) for at, state in ended.states if at > began]
    assert [state for _, state in states] == [SessionState.CONNECTING, SessionState.CLOSED]
    assert states[0][0] < 10 * MS, "closed when the end is committed"
    assert RECONNECT_US < states[1][0] - states[0][0] < RECONNECT_US + 10 * MS
    assert ended.session.state is SessionState.CLOSED


def test_watches_go_with_their_connection_and_count_as_triggered_on_the_next_one():
    w = world(size=1)
    setter, watcher = w.client(), w.client()
    setter.ask(Create("/x", 0))
    w.run(0.1)
    watcher.ask(GetData("/x"), watch=True)
    w.run(0.1)
    server = w.ensemble.servers[w.leader]
    effects = server.handle(SessionDisconnected(watcher.session.session), w.loop.now)
    assert effects == []
    setter.ask(SetData("/x", 1))
    w.run(0.1)
    assert watcher.watched == []
    w.loop.close(server.node, watcher.process.node, w.loop.now)
    w.run(1)
    assert watcher.watched == [("/x", WatchEvent.DATA_CHANGED)]
    setter.ask(SetData("/x", 2))
    w.run(0.1)
    assert len(watcher.watched) == 1, "nobody has left another watch"


def test_an_event_of_a_connection_that_was_left_is_void():
    w = world()
    client = w.client()
    w.isolate(client.process.node)
    w.run(4.5)
    assert client.session.state is SessionState.CONNECTING
    late = NotificationReceived(
        client.session.server, ZkWatchNotification("/x", WatchEvent.CREATED)
    )
    assert client.handle(late, w.loop.now) == []
    assert client.watched == []
