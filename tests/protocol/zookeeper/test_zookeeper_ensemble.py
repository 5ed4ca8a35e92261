"""An ensemble of 2n+1 keeps one order of writes while n are lost, and serves nobody beyond."""

import random

import pytest

from sim.protocol.zookeeper.messages import ZkPingRequest, ZkTransaction
from sim.protocol.zookeeper.server import ZooKeeperServer
from sim.protocol.zookeeper.session import SessionState
from sim.protocol.zookeeper.store import ZkStore
from sim.protocol.zookeeper.tree import (
    Check,
    Create,
    Delete,
    Exists,
    GetChildren,
    GetData,
    Multi,
    OpenSession,
    SetData,
    Tree,
    WatchEvent,
    ZkCode,
)
from tests.protocol.zookeeper.zookeeper_kit import MS, SECOND, World, world

OK = ZkCode.OK


def opened(tree=None):
    tree = Tree() if tree is None else tree
    session = tree.apply(tree.zxid + 1, 0, OpenSession(6 * SECOND))[0].session
    return tree, session


# -- the tree -------------------------------------------------------------------------------------


def test_a_write_with_an_old_version_changes_nothing():
    tree, session = opened()
    tree.apply(2, session, Create("/a", "x"))
    assert tree.apply(3, session, SetData("/a", "y", 0))[0].node.version == 1
    assert tree.apply(4, session, SetData("/a", "z", 0))[0].code is ZkCode.BAD_VERSION
    assert tree.nodes["/a"].data == "y"
    assert tree.apply(5, session, SetData("/a", "w", -1))[0].code is OK


def test_a_multi_is_done_as_a_whole_or_not_at_all():
    tree, session = opened()
    tree.apply(2, session, Create("/epoch", 1))
    failed, changes = tree.apply(3, session, Multi((Create("/a", 1), Check("/epoch", 7))))
    assert failed.code is ZkCode.BAD_VERSION
    assert [p.code for p in failed.parts] == [ZkCode.RUNTIME_INCONSISTENCY, ZkCode.BAD_VERSION]
    assert changes == []
    assert "/a" not in tree.nodes
    done, _ = tree.apply(4, session, Multi((Create("/a", 1), Check("/epoch", 0))))
    assert done.code is OK
    assert "/a" in tree.nodes


def test_sequential_names_are_never_given_twice():
    tree, session = opened()
    tree.apply(2, session, Create("/n", None))
    first = tree.apply(3, session, Create("/n/c_", 1, sequential=True))[0].path
    tree.apply(4, session, Delete(first))
    second = tree.apply(5, session, Create("/n/c_", 1, sequential=True))[0].path
    assert (first, second) == ("/n/c_0000000000", "/n/c_0000000001")
    assert tree.read(GetChildren("/n")).children == ("c_0000000001",)


def test_an_ephemeral_node_has_no_children_and_a_parent_is_not_deleted_under_them():
    tree, session = opened()
    tree.apply(2, session, Create("/e", None, ephemeral=True))
    no_children = tree.apply(3, session, Create("/e/x", None))[0].code
    assert no_children is ZkCode.NO_CHILDREN_FOR_EPHEMERALS
    tree.apply(4, session, Create("/p", None))
    tree.apply(5, session, Create("/p/x", None))
    assert tree.apply(6, session, Delete("/p"))[0].code is ZkCode.NOT_EMPTY


def test_a_store_refuses_to_cut_what_it_has_applied():
    store = ZkStore()
    store.append(ZkTransaction(1, 0, OpenSession(6 * SECOND), 5001, -1))
    store.append(ZkTransaction(2, 1, Create("/a", 0), 5001, -1))
    store.apply_to(1)
    store.truncate_after(1)
    assert store.last_zxid == 1
    with pytest.raises(AssertionError, match="committed"):
        store.truncate_after(0)


# -- the ensemble ---------------------------------------------------------------------------------


def test_writes_have_one_order_on_every_server():
    w = world()
    one, two = w.client(first=0), w.client(first=1)
    one.ask(Create("/x", 0))
    w.run(0.1)
    for i in range(20):
        one.ask(SetData("/x", ("one", i)))
        two.ask(SetData("/x", ("two", i)))
    w.run(2)
    assert one.codes() == [OK] * 21
    assert two.codes() == [OK] * 20
    trees = list(w.trees().values())
    assert trees[0]["/x"][1] == 40
    assert trees[0] == trees[1] == trees[2]


def test_of_two_conditional_writes_of_one_version_one_wins():
    w = world()
    one, two = w.client(first=0), w.client(first=1)
    one.ask(Create("/x", 0))
    w.run(1)
    one.ask(SetData("/x", 1, 0))
    two.ask(SetData("/x", 2, 0))
    w.run(1)
    assert sorted([one.codes()[-1], two.codes()[-1]]) == [ZkCode.BAD_VERSION, OK]


def test_a_session_reads_its_own_writes_and_another_may_read_what_is_old():
    w = world(fsync_us=50 * MS)
    follower = w.followers()[0]
    one = w.client(first=follower - 5001)
    one.ask(Create("/x", 0))
    w.run(1)
    one.ask(SetData("/x", 1), GetData("/x"))
    two = w.client(first=w.leader - 5001)
    w.loop.cut(follower, w.leader)
    two.ask(SetData("/x", 2))
    w.run(1)
    two.ask(GetData("/x"), tag=1)
    one.ask(GetData("/x"), tag=1)
    w.run(1)
    assert one.answers[0][-1].node.data == 1
    assert two.answers[1][-1].node.data == 2
    assert one.answers[1][-1].node.data == 1, "reads are local"


def test_the_loss_of_the_leader_costs_no_write_that_was_answered():
    w = world()
    client = w.client(first=w.followers()[0] - 5001)
    client.ask(Create("/x", 0))
    w.run(1)
    dead = w.leader
    for i in range(5):
        client.ask(SetData("/x", i))
    w.run(0.01)
    w.loop.kill(dead)
    w.run(10)
    assert w.leader not in {None, dead}
    client.ask(GetData("/x"), tag=1)
    w.run(1)
    assert client.answers[1][0].node.data == 4
    assert client.states[-1][1] is SessionState.CONNECTED


@pytest.mark.parametrize(
    ("size", "lost", "serves"), [(3, 1, True), (3, 2, False), (5, 2, True), (5, 3, False)]
)
def test_2n_plus_1_servers_survive_the_loss_of_n_and_not_of_more(size, lost, serves):
    w = World(size=size).settled()
    client = w.client()
    for member in w.ensemble.members[:lost]:
        w.loop.kill(member)
    w.run(12)
    client.ask(Create("/x", 0))
    w.run(5)
    assert (w.leader is not None) is serves
    assert client.codes() == ([OK] if serves else [])


def test_a_lost_majority_comes_back_with_what_was_answered():
    w = world()
    client = w.client()
    client.ask(Create("/x", 1))
    w.run(1)
    gone = w.ensemble.members[1:]
    for member in gone:
        w.loop.kill(member)
    w.run(30)
    assert w.leader is None
    for member in gone:
        w.ensemble.start(member)
    w.run(8)
    client.ask(GetData("/x"), tag=1)
    w.run(2)
    assert client.answers[1][0].node.data == 1


def test_a_leader_that_is_cut_off_steps_down_and_its_leftover_goes():
    w = world()
    old = w.leader
    client = w.client(first=old - 5001)
    client.ask(Create("/x", 0))
    w.run(1)
    for other in w.followers():
        w.loop.cut(old, other)
    client.ask(SetData("/x", "leftover"))
    w.run(10)
    assert w.leader not in {None, old}
    assert not w.ensemble.servers[old].serving
    assert w.ensemble.stores[old].last_zxid > w.ensemble.stores[old].tree.zxid
    w.loop.heal()
    w.run(10)
    trees = list(w.trees().values())
    assert trees[0] == trees[1] == trees[2]


def test_a_server_that_was_cut_off_raises_no_epoch():
    w = world()
    epoch, away = w.ensemble.servers[w.leader].store.epoch, w.followers()[0]
    leader = w.leader
    w.isolate(away)
    w.run(30)
    w.loop.heal()
    w.run(5)
    assert (w.leader, w.ensemble.servers[leader].store.epoch) == (leader, epoch)
    assert w.ensemble.servers[away].serving


def test_a_server_far_behind_gets_the_whole_tree():
    w = world()
    client = w.client(first=w.leader - 5001)
    client.ask(Create("/x", 0))
    w.run(1)
    away = w.followers()[0]
    w.loop.kill(away)
    for i in range(1_200):
        client.ask(SetData("/x", i))
    w.run(5)
    assert w.ensemble.servers[w.leader].store.base > w.ensemble.stores[away].last_zxid
    w.ensemble.start(away)
    w.run(5)
    assert w.trees()[away]["/x"] == (1_199, 1_200)


# -- sessions and watches -------------------------------------------------------------------------


def test_a_dead_clients_ephemeral_nodes_go_with_its_session_not_before():
    w = world()
    dying, watching = w.client(first=0, timeout_us=6 * SECOND), w.client(first=1)
    dying.ask(Create("/controller", 1, ephemeral=True))
    w.run(1)
    watching.ask(Exists("/controller"), watch=True)
    w.run(1)
    died = w.loop.now
    w.loop.kill(dying.process.node)
    w.run(3.9)
    assert watching.watched == [], "the session still has time"
    while not watching.watched and w.loop.now < died + 20 * SECOND:
        w.run(0.01)
    assert watching.watched == [("/controller", WatchEvent.DELETED)]
    # The last ping was up to a third of the timeout ago; the end is rounded up to a tick of 2 s.
    assert 4 * SECOND <= w.loop.now - died <= 8.1 * SECOND


def test_a_client_that_pings_keeps_its_session_though_it_asks_for_nothing():
    w = world()
    client = w.client(timeout_us=4 * SECOND)
    client.ask(Create("/e", 1, ephemeral=True))
    w.run(60)
    assert all("/e" in tree for tree in w.trees().values())
    assert client.session.state is SessionState.CONNECTED


def test_a_client_moves_to_another_server_and_keeps_its_session():
    w = world()
    server = w.followers()[0]
    client = w.client(first=server - 5001)
    client.ask(Create("/e", 1, ephemeral=True))
    client.ask(GetData("/e"), watch=True)
    w.run(1)
    session = client.session.session
    w.loop.kill(server)
    w.run(4)
    assert client.session.session == session
    assert client.session.state is SessionState.CONNECTED
    assert ("/e", WatchEvent.DATA_CHANGED) in client.watched, "what it watched counts as changed"
    assert "/e" in w.ensemble.servers[w.leader].store.tree.nodes


def test_a_client_that_was_away_too_long_learns_of_its_end_when_it_is_back():
    w = world()
    client = w.client(timeout_us=6 * SECOND)
    client.ask(Create("/e", 1, ephemeral=True))
    w.run(1)
    w.isolate(client.process.node)
    w.run(15)
    assert client.session.state is SessionState.CONNECTING, "nobody has told it"
    assert "/e" not in w.ensemble.servers[w.leader].store.tree.nodes
    w.loop.heal()
    w.run(5)
    assert client.session.state is SessionState.CLOSED


def test_a_lost_majority_ends_no_session():
    w = world()
    client = w.client(timeout_us=6 * SECOND)
    client.ask(Create("/e", 1, ephemeral=True))
    w.run(1)
    gone = w.ensemble.members[1:]
    for member in gone:
        w.loop.kill(member)
    w.run(60)
    for member in gone:
        w.ensemble.start(member)
    w.run(5)
    assert client.session.state is SessionState.CONNECTED
    assert "/e" in w.ensemble.servers[w.leader].store.tree.nodes


def pings(client, seconds, w):
    """Instants at which the client sends a ping, since now."""
    began, at, send = w.loop.now, [], w.loop.send

    def noted(sender, machine, effect, when):
        if isinstance(effect.request, ZkPingRequest) and sender is client.process:
            at.append(when - began)
        send(sender, machine, effect, when)

    w.loop.send = noted
    w.run(seconds)
    return at


def test_a_client_pings_when_it_has_sent_nothing_for_a_third_of_the_timeout():
    """``ClientCnxn.SendThread``: ``timeToNextPing`` counts from the last packet sent."""
    w = world()
    client = w.client(timeout_us=6 * SECOND)
    client.ask(GetData("/"))
    assert pings(client, 5, w) == [2 * SECOND, 4 * SECOND]


def test_a_client_leaves_a_server_that_says_nothing_for_two_thirds_of_the_timeout():
    w = world()
    client = w.client(timeout_us=6 * SECOND)
    client.ask(GetData("/"))
    heard = w.loop.now + 2 * w.loop.one_way_us
    w.run(1)
    w.isolate(client.process.node)
    w.run(1)
    client.ask(GetData("/"), tag=1)  # what it says itself changes nothing
    w.run(4)
    left = [at for at, state in client.states if state is SessionState.CONNECTING]
    assert left[0] == heard + 4 * SECOND


def test_a_ping_is_answered_behind_the_writes_of_its_session():
    """``CommitProcessor``: so a write that cannot be forced ends the connection."""
    w = world(size=1)
    client = w.client(timeout_us=6 * SECOND)
    w.ensemble.fsync_us = 5 * SECOND
    asked = w.loop.now
    client.ask(Create("/x", 0))
    w.run(5)
    left = [at - asked for at, state in client.states if state is SessionState.CONNECTING]
    assert len(left) == 1
    assert left[0] <= 4 * SECOND


def test_at_most_ten_operations_are_in_flight():
    w = world()
    client = w.client()
    sent = []
    send = w.loop.send
    w.loop.send = lambda *args: (sent.append(args), send(*args))
    client.ask(Create("/x", 0), *[GetData("/x")] * 50)
    assert len(sent) == 10
    w.run(1)
    assert len(client.codes()) == 51


def swarm(seed, kind=ZooKeeperServer):
    """Kills, power losses and cuts at random; whether answered writes stay and trees agree."""
    chance = random.Random(seed)
    w = World(seed=seed, kind=kind).settled()
    clients = [w.client(first=i) for i in range(2)]
    clients[0].ask(*(Create(f"/x{i}", -1) for i in range(2)))
    w.run(1)
    dead = []
    for number in range(1, 26):
        match chance.randrange(4):
            case 0 if not dead:
                dead.append(chance.choice(w.ensemble.members))
                w.loop.kill(dead[0])
                w.ensemble.stores[dead[0]].lose_unforced()
            case 1 if dead:
                w.ensemble.start(dead.pop())
            case 2:
                w.isolate(chance.choice(w.ensemble.members))
            case _:
                w.loop.heal()
        for index, client in enumerate(clients):
            client.ask(SetData(f"/x{index}", number), tag=number)
        w.run(chance.random() * 4)
    w.loop.heal()
    for member in dead:
        w.ensemble.start(member)
    w.run(20)
    trees = list(w.trees().values())
    agree = trees[0] == trees[1] == trees[2]
    answered = [
        max((t for t in client.answers if t > 0 and OK in client.codes(t)), default=0)
        for client in clients
    ]
    kept = all(tree[f"/x{i}"][0] >= answered[i] for tree in trees for i in range(2))
    return agree, kept, min(answered) > 0


SEEDS = range(12)


def test_under_kills_and_cuts_no_answered_write_is_lost_and_trees_agree():
    outcomes = [swarm(seed) for seed in SEEDS]
    assert all(agree and kept for agree, kept, _ in outcomes)
    assert any(wrote for _, _, wrote in outcomes)


class AloneServer(ZooKeeperServer):
    """A planted defect: every server is enough of a majority."""

    majority = 1


def test_without_majorities_the_same_swarm_loses_answered_writes():
    def holds(seed):
        try:
            agree, kept, _ = swarm(seed, AloneServer)
        except AssertionError:
            return False  # a server would have had to drop what it had applied
        return agree and kept

    assert not all(holds(seed) for seed in SEEDS)
