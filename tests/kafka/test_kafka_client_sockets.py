"""A client that is closed while it connects leaves no open socket to the garbage collector."""

import socket
import warnings

import pytest

from tests.kafka.client_sockets import AS_IT_IS, KafkaNetSocket, closing

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.net.compat import KafkaNetClient

pytestmark = pytest.mark.kafka


@pytest.fixture
def dropped(monkeypatch):
    """The sockets of connections that a client had begun when it was closed."""
    made = []

    def kept(self, *words):
        made.append(socket.socket(*words))
        return made[-1]

    monkeypatch.setattr(KafkaNetSocket, "socket", kept)

    def close_while_connecting():
        with socket.create_server(("127.0.0.1", 0)) as server:
            host, port = server.getsockname()
            client = KafkaNetClient(bootstrap_servers=[f"{host}:{port}"])
            (node,) = client.cluster.bootstrap_brokers()
            client.maybe_connect(node.node_id)
            client.close()
        return made

    yield close_while_connecting
    for sock in made:
        sock.close()


def test_a_client_closes_the_socket_of_a_connection_that_it_drops(dropped, monkeypatch):
    monkeypatch.setattr(KafkaNetSocket, "sock_connect", closing)
    assert [sock.fileno() for sock in dropped()] == [-1]


def test_kafka_python_alone_leaves_it_open(dropped, monkeypatch):
    """If this fails, kafka-python closes it, and client_sockets is not needed any more."""
    monkeypatch.setattr(KafkaNetSocket, "sock_connect", AS_IT_IS)
    assert [sock.fileno() >= 0 for sock in dropped()] == [True]
