"""Proxies between nodes, with real sockets: cuts, delays, narrow links, and absent servers."""

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager

import pytest

from sim.rehearsal import launcher
from sim.rehearsal.links import Addresses, Links
from sim.substrate.links import LinkRule

PATIENCE_S = 10
SHORT_S = 0.3


class Echo:
    """Server of a node: sends back what it gets."""

    def __init__(self, address):
        self.listening = socket.create_server(address)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        """Stop listening; a thread that waits in accept() would keep a closed socket listening."""
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()

    def _accept(self):
        while True:
            try:
                found, _ = self.listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(found,), daemon=True).start()

    def _serve(self, found):
        with found:
            while data := found.recv(65_536):
                found.sendall(data)


@pytest.fixture
def nodes(tmp_path):
    """Two servers and a client, with their proxies; the second server listens."""
    addresses = Addresses(["broker-1", "broker-2"], ["clients"])
    with ExitStack() as ended:
        links = Links(addresses, tmp_path / "proxies.log")
        ended.callback(links.close)
        echo = Echo((addresses.address("broker-2"), addresses.ports[0]))
        ended.callback(echo.close)
        yield addresses, links


def connect(nodes, source="clients", target="broker-2", wait=PATIENCE_S):
    addresses, _ = nodes
    return socket.create_connection((addresses.seen(source, target), addresses.ports[0]), wait)


def rule(senders, receivers, **what):
    return LinkRule("test", frozenset(senders), frozenset(receivers), **what)


@contextmanager
def in_force(nodes, wrong):
    handle = nodes[1].add_rule(wrong)
    yield handle
    handle.remove()


def answer(connection, text, wait=PATIENCE_S):
    connection.settimeout(wait)
    connection.sendall(text)
    return connection.recv(100)


def test_bytes_pass_in_both_directions(nodes):
    with connect(nodes) as one, connect(nodes, "broker-1") as other:
        assert answer(one, b"from a client") == b"from a client"
        assert answer(other, b"from a broker") == b"from a broker"


def test_every_pair_of_nodes_has_a_proxy_of_its_own(nodes):
    addresses, _ = nodes
    listening = [(pair["host"], pair["port"]) for pair in addresses.pairs()]
    assert len(set(listening)) == len(listening) == 2 * (2 * 2)  # ports, sources, targets
    assert all(str(pair["host"]).startswith("127.") for pair in addresses.pairs())


def test_a_cut_holds_what_was_sent_until_it_is_healed(nodes):
    with connect(nodes) as connection:
        assert answer(connection, b"before") == b"before"
        with in_force(nodes, rule(["clients"], ["broker-2"], cut=True)) as handle:
            with pytest.raises(TimeoutError):
                answer(connection, b"held", SHORT_S)
            assert handle.affected == 1
        connection.settimeout(PATIENCE_S)
        assert connection.recv(100) == b"held"
        assert handle.affected == 1


def test_a_one_way_cut_lets_the_other_direction_pass(nodes):
    with connect(nodes) as connection:
        with in_force(nodes, rule(["broker-2"], ["clients"], cut=True)):
            with pytest.raises(TimeoutError):
                answer(connection, b"arrives, and its answer does not", SHORT_S)
            with connect(nodes, "broker-1") as other:
                assert answer(other, b"another node") == b"another node"
        assert connection.recv(100) == b"arrives, and its answer does not"


@pytest.mark.parametrize("ways", [(["clients"], ["broker-2"]), (["broker-2"], ["clients"])])
def test_a_cut_link_lets_no_connection_be_opened_and_refuses_none(nodes, ways):
    with in_force(nodes, rule(*ways, cut=True)):
        with pytest.raises(TimeoutError):
            connect(nodes, wait=SHORT_S)
        waiting = []
        thread = threading.Thread(target=lambda: waiting.append(connect(nodes)))
        thread.start()
        time.sleep(SHORT_S)
        assert not waiting
    thread.join(PATIENCE_S)
    with waiting[0] as connection:
        assert answer(connection, b"TCP tried again") == b"TCP tried again"


def test_the_end_of_a_connection_waits_behind_a_cut_too(nodes):
    with connect(nodes) as connection:
        assert answer(connection, b"x") == b"x"
        with in_force(nodes, rule(["broker-2"], ["clients"], cut=True)):
            connection.shutdown(socket.SHUT_WR)  # the server answers with its own end
            connection.settimeout(SHORT_S)
            with pytest.raises(TimeoutError):
                connection.recv(100)
        connection.settimeout(PATIENCE_S)
        assert connection.recv(100) == b""


def test_a_delay_is_added_to_each_direction_that_it_is_for(nodes):
    with connect(nodes) as connection:
        assert answer(connection, b"warm") == b"warm"
        wrong = rule(["clients"], ["broker-2"], delay_us=400_000)
        with in_force(nodes, wrong) as handle:
            began = time.monotonic()
            assert answer(connection, b"later") == b"later"
            took = time.monotonic() - began
            assert handle.affected == 1
        assert took >= 0.4
        began = time.monotonic()
        assert answer(connection, b"soon") == b"soon"
        assert time.monotonic() - began < took


def test_delayed_bytes_keep_their_order_and_travel_at_the_same_time(nodes):
    with connect(nodes) as connection:
        with in_force(nodes, rule(["clients"], ["broker-2"], delay_us=400_000)):
            began = time.monotonic()
            for number in range(20):
                connection.sendall(b"%02d" % number)
                time.sleep(0.01)
            got = b""
            while len(got) < 40:
                got += connection.recv(100)
        assert got == b"".join(b"%02d" % number for number in range(20))
        assert time.monotonic() - began < 20 * 0.4


def test_a_narrow_link_lets_so_many_bytes_a_second_pass(nodes):
    narrow = rule(["clients"], ["broker-2"], bandwidth_bits=8 * 200_000)
    with connect(nodes) as connection, in_force(nodes, narrow) as handle:
        began = time.monotonic()
        connection.sendall(b"x" * 200_000)
        got = 0
        while got < 200_000:
            got += len(connection.recv(65_536))
        assert time.monotonic() - began >= 0.6  # a first piece may pass at once
        assert handle.affected >= 1


def test_a_connection_to_a_server_that_is_not_there_is_reset(nodes):
    def read():  # b"" would mean that a server was there, and closed it in order
        with connect(nodes, "clients", "broker-1") as found:
            return found.recv(100)

    with pytest.raises(ConnectionResetError):  # already at the end of connecting, if it is quick
        read()


def test_rules_of_two_faults_are_independent(nodes):
    with connect(nodes) as connection:
        with in_force(nodes, rule(["clients"], ["broker-2"], cut=True)):
            with in_force(nodes, rule(["clients"], ["broker-2"], cut=True)):
                pass
            with pytest.raises(TimeoutError):
                answer(connection, b"still held", SHORT_S)
        assert connection.recv(100) == b"still held"


def test_the_proxies_end_with_their_parent_and_free_their_ports(tmp_path):
    code = (
        "import sys, time; from pathlib import Path\n"
        "from sim.rehearsal.links import Addresses, Links\n"
        "a = Addresses(['broker-1', 'broker-2'], []); l = Links(a, Path(sys.argv[1]))\n"
        "p = a.pairs()[0]; print(l.pid, p['host'], p['port'], flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "log")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        pid, host, port = parent.stdout.readline().split()
        parent.send_signal(signal.SIGKILL)
    wait_for_end(int(pid))
    # While the proxies listened, a connection was taken, and reset for want of a server.
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)), PATIENCE_S)


def test_a_launched_program_ends_with_its_parent():
    program = "import os; print(os.getpid(), flush=True); __import__('time').sleep(600)"
    code = (
        "import subprocess, sys; from sim.rehearsal import launcher\n"
        "subprocess.Popen(launcher.command([sys.executable, '-c', sys.argv[1]])).wait()"
    )
    command = [sys.executable, "-c", code, program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        pid = int(parent.stdout.readline())
        os.kill(pid, 0)
        parent.send_signal(signal.SIGKILL)
    wait_for_end(pid)


def test_a_program_whose_parent_has_ended_before_is_not_started():
    command = launcher.command([sys.executable, "-c", "print('started')"])
    command[4] = "1"  # another parent than the one that it has
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == ""


def wait_for_end(pid):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    raise AssertionError(f"process {pid} is still there")
