"""Incast: senders at the speed of the link overflow a switch's port, and TCP waits for its timer.

Source: Phanishayee et al. (FAST 2008): blocks of 256 KiB from each of several servers to one
client over 1 Gbit/s, with ports of 32 to 256 KiB. Goodput falls by an order of magnitude, and
doubling the buffer about doubles the number of servers that it takes.
"""

from dataclasses import dataclass, field

import pytest

from sim.kernel import Kernel
from sim.rng import Streams
from sim.substrate import switch
from sim.substrate.distributions import Spread
from sim.substrate.network import LinkRule, Network, NetworkSpec
from sim.substrate.switch import INCAST, Port
from sim.units import KIB, MS, SECOND

BLOCK = 256 * KIB
ROUNDS = 10
GIGABIT = 1_000_000_000


@dataclass(frozen=True)
class Block:
    number: int
    size_bytes: int = BLOCK


@dataclass
class Process:
    name: str
    kernel: Kernel
    incarnation: int = 1
    running: bool = True
    tearing_down: bool = False
    inbox: list = field(default_factory=list)
    closed: int = 0

    @property
    def host_name(self):
        return self.name

    def on_message(self, link, message, correlation, sent_us):
        self.inbox.append((self.kernel.now(), message.number))

    def on_open(self, link):
        pass

    def on_accept(self, link):
        pass

    def on_closed(self, link):
        self.closed += 1


class Rack:
    """A client and its servers at one switch."""

    def __init__(self, servers: int, buffer: int) -> None:
        self.kernel = Kernel()
        spec = NetworkSpec(
            same_rack=Spread(40, 60), bandwidth_bits=GIGABIT, switch_buffer_bytes=buffer
        )
        self.network = Network(self.kernel, Streams(5), spec)
        self.delayed = []
        self.network.on_delivery = lambda *delivery: self.delayed.append(delivery[4])
        self.network.add_host("client", "a")
        self.client = Process("client", self.kernel)
        self.links = []
        for number in range(servers):
            self.network.add_host(f"server-{number}", "a")
            server = Process(f"server-{number}", self.kernel)
            self.links.append(self.network.connect(self.client, server))
        self.kernel.run(100 * MS)

    def read(self) -> None:
        """Has a block from each server at once, as often as ROUNDS says."""
        for number in range(ROUNDS):
            for link in self.links:
                link.to_client.send(Block(number), number)
            whole = len(self.links) * (number + 1)
            while len(self.client.inbox) < whole:
                self.kernel.run(self.kernel.now() + 100)

    def goodput(self) -> float:
        """Part of the link's speed that arrives."""
        began = self.kernel.now()
        self.read()
        took = self.kernel.now() - began
        return len(self.links) * ROUNDS * BLOCK * 8 * SECOND / took / GIGABIT


def test_one_sender_never_overflows_a_port_as_fast_as_itself():
    rack = Rack(1, 32 * KIB)
    assert rack.goodput() > 0.75
    assert rack.network.ports["client"].dropped == 0


def test_goodput_collapses_when_senders_overflow_the_buffer():
    rack = Rack(16, 64 * KIB)
    assert rack.goodput() < 0.1
    assert rack.network.ports["client"].dropped > 0
    assert INCAST in rack.delayed


@pytest.mark.parametrize(("buffer", "servers"), [(64, 2), (128, 4), (256, 8)])
def test_twice_the_buffer_serves_about_twice_the_senders(buffer, servers):
    enough = Rack(servers // 2, buffer * KIB).goodput()
    assert enough > 0.75
    assert Rack(servers * 4, buffer * KIB).goodput() < enough / 2


def test_everything_arrives_once_and_in_order():
    rack = Rack(16, 32 * KIB)
    arrived = {link.server.name: [] for link in rack.links}
    rack.network.on_delivery = lambda sender, _, message, *rest: arrived[sender].append(
        message.number
    )
    rack.read()
    assert all(numbers == list(range(ROUNDS)) for numbers in arrived.values())


def test_a_lost_tail_waits_for_the_timer_of_200_ms():
    rack = Rack(2, 16 * KIB)
    first, second = rack.links
    began = rack.kernel.now()
    first.to_client.send(Block(0, 14_480), 0)
    second.to_client.send(Block(1, 14_480), 0)
    rack.network.ports["client"].buffer_bytes = 8 * KIB
    rack.kernel.run(began + 150 * MS)
    early = len(rack.client.inbox)
    rack.kernel.run(began + 250 * MS)
    assert early < 2
    assert len(rack.client.inbox) == 2
    assert 200 * MS <= rack.client.inbox[-1][0] - began < 210 * MS


def test_planted_a_sender_that_needs_no_later_packets_never_waits(monkeypatch):
    """The claim of the collapse is falsifiable: with no timer's wait there is none."""
    monkeypatch.setattr(switch, "retransmission_us", lambda made, *, opens: 1_000)
    assert Rack(16, 64 * KIB).goodput() > 0.3


def test_without_a_buffer_nothing_is_dropped_and_no_port_exists():
    rack = Rack(4, 0)
    assert rack.goodput() > 1
    assert rack.network.ports == {}


def test_a_port_takes_what_it_drains_and_what_its_buffer_holds():
    port = Port(GIGABIT, 16 * KIB)
    taken = [port.admit(14_480, 0, 116)[0] for _ in range(3)]
    assert taken[0] == 14_480
    assert sum(taken) <= 14_480 + 16 * KIB
    assert port.dropped == -(-(3 * 14_480 - sum(taken)) // 1_448)


def test_a_cut_on_the_way_holds_what_is_resent_until_it_heals():
    rack = Rack(2, 16 * KIB)
    link = rack.links[0]
    rule = LinkRule("cut", frozenset({"server-0"}), frozenset({"client"}), cut=True)
    link.to_client.send(Block(0), 0)
    handle = rack.network.add_rule(rule)
    rack.kernel.run(rack.kernel.now() + SECOND)
    assert rack.client.inbox == []
    handle.remove()
    rack.kernel.run(rack.kernel.now() + 2 * SECOND)
    assert [number for _, number in rack.client.inbox] == [0]
    assert "cut" in rack.delayed


def test_a_sender_without_power_resends_nothing():
    rack = Rack(2, 16 * KIB)
    rack.links[0].to_client.send(Block(0), 0)
    rack.network.set_power("server-0", powered=False)
    rack.kernel.run(rack.kernel.now() + 5 * SECOND)
    assert rack.client.inbox == []
