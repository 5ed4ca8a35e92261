"""Connections through which nothing has passed for ``connections.max.idle.ms``, at both ends."""

import pytest

from sim.nodes.process.idle import UNLIMITED
from sim.units import MINUTE, MS, SECOND
from tests.nodes import test_nodes_channel as clients
from tests.nodes import test_nodes_server as servers


@pytest.fixture
def server():
    servers.Client.closed = 0
    return servers.Scene(handlers=8, network_threads=2, idle_us=10 * SECOND)


def test_a_server_closes_a_connection_that_nobody_has_used_for_so_long(server):
    link = server.connect()
    server.run(9 * SECOND)
    server.send(link, 1)
    server.run(10 * MS)
    server.answer(1)
    server.run(9 * SECOND)
    assert servers.Client.closed == 0, "a request has passed"
    server.run(2 * SECOND)
    assert servers.Client.closed == 1
    assert not link.is_open


def test_a_response_counts_as_use(server):
    link = server.connect()
    server.send(link, 1)
    server.run(9 * SECOND)
    server.answer(1)
    server.run(9 * SECOND)
    assert servers.Client.closed == 0


def test_each_network_thread_closes_one_connection_in_a_poll(server):
    """Two threads, whose polls are 300 ms apart; the first one finds the oldest connection."""
    links = [server.network.connect(servers.Client(), server.server) for _ in range(5)]
    seen = []
    server.run(10 * SECOND - 100 * MS)
    for _ in range(4):
        server.run(300 * MS)
        seen.append(sum(not link.is_open for link in links))
    assert seen == [1, 3, 5, 5]
    assert not links[0].is_open
    link = server.connect()
    server.run(11 * SECOND)
    assert not link.is_open, "it is watched again"


def test_without_a_limit_nothing_is_closed():
    servers.Client.closed = 0
    scene = servers.Scene(handlers=8)
    link = scene.connect()
    scene.run(60 * MINUTE)
    assert link.is_open


def client(idle_us=10 * SECOND, never=frozenset()):
    scene = clients.Scene("")
    scene.client.idle_us, scene.client.never_idle = idle_us, never
    return scene, scene.client.channel(7, "")


def run(scene, duration):
    scene.kernel.run(scene.kernel.time + duration)


def opened(scene, channel):
    scene.ask(0)
    run(scene, SECOND)
    assert channel.is_open
    # The other end answers nothing: the request is as good as answered.
    channel.no_answer_to(0)


def test_a_client_closes_its_idle_connection_and_connects_again_for_the_next_request():
    scene, channel = client()
    opened(scene, channel)
    run(scene, 8 * SECOND)
    assert channel.is_open
    run(scene, 2 * SECOND)
    assert not channel.is_open
    assert scene.client.asker.failed == [], "no request was open"
    scene.ask(1)
    run(scene, SECOND)
    assert channel.is_open
    run(scene, 10 * SECOND)
    assert len(scene.client.asker.failed) == 1, "one that waited for its answer fails"


def test_each_request_puts_the_end_of_a_connection_off():
    scene, channel = client()
    opened(scene, channel)
    for number in range(1, 4):
        run(scene, 9 * SECOND)
        scene.ask(number)
        channel.no_answer_to(number)
    assert channel.is_open
    run(scene, 11 * SECOND)
    assert not channel.is_open


def test_channels_to_the_controller_are_never_too_long_idle():
    """Planted: the same channel with the limit is closed, see above."""
    scene, channel = client(never=UNLIMITED)
    opened(scene, channel)
    run(scene, 60 * MINUTE)
    assert channel.is_open
    assert "fetcher-0" not in UNLIMITED
