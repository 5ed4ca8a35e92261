"""Connections keep order and lose nothing; rules cut, delay and lose; power and crashes show."""

from dataclasses import dataclass, field

import pytest

from sim.kernel import Kernel
from sim.rng import Streams
from sim.substrate.distributions import Spread, quantile_table
from sim.substrate.links import CLIENTS
from sim.substrate.network import Connection, LinkRule, Network, NetworkSpec


@dataclass(frozen=True)
class Note:
    text: str
    size_bytes: int = 100


@dataclass
class Process:
    name: str
    host_name: str
    kernel: Kernel
    incarnation: int = 1
    running: bool = True
    tearing_down: bool = False
    inbox: list = field(default_factory=list)
    log: list = field(default_factory=list)
    accepted: list = field(default_factory=list)

    def on_message(self, link, message, correlation, sent_us):
        self.inbox.append((self.kernel.now(), message.text, correlation))

    def on_open(self, link):
        self.log.append(("open", self.kernel.now()))

    def on_accept(self, link):
        self.accepted.append(link)

    def on_closed(self, link):
        self.log.append(("closed", self.kernel.now()))


SPEC = NetworkSpec(
    same_rack=Spread(100, 100), cross_rack=Spread(400, 2_000), client=Spread(100, 100)
)


def world():
    kernel = Kernel()
    network = Network(kernel, Streams(5), SPEC)
    for host, rack in (("h1", "a"), ("h2", "a"), ("h3", "b"), ("h9", "")):
        network.add_host(host, f"rack {rack}" if rack else CLIENTS)
    return kernel, network


def connected(server_host="h3", client_host="h1"):
    kernel, network = world()
    client = Process("client", client_host, kernel)
    server = Process("server", server_host, kernel)
    link = network.connect(client, server)
    kernel.run(100_000)
    assert link.is_open
    return kernel, network, client, server, link


def send_all(link: Connection, count: int, size: int = 100) -> None:
    for number in range(count):
        link.to_server.send(Note(str(number), size), number)


def texts(process: Process) -> list[str]:
    return [text for _, text, _ in process.inbox]


def test_messages_of_one_connection_arrive_in_order_whatever_their_delays():
    kernel, _, _, server, link = connected()
    send_all(link, 200)
    kernel.run(kernel.now() + 1_000_000)
    assert texts(server) == [str(n) for n in range(200)]


def test_distance_decides_the_delay_and_the_topology_is_a_graph():
    _, network = world()
    assert network.topology.racks_between("h1", "h2") == 2
    assert network.topology.racks_between("h1", "h3") == 4
    kernel, _, _, server, link = connected(server_host="h2")
    start = kernel.now()
    link.to_server.send(Note("x"), 1)
    kernel.run(start + 10_000)
    assert server.inbox[0][0] == start + 1 + 100  # one microsecond on the wire, then the way


def test_bandwidth_makes_a_large_message_late_and_what_follows_waits_for_it():
    kernel, _, _, server, link = connected(server_host="h2")
    start = kernel.now()
    link.to_server.send(Note("large", 12_500_000), 1)  # 10 ms at 10 Gbit/s
    link.to_server.send(Note("small", 100), 2)
    kernel.run(start + 100_000)
    assert [t - start for t, _, _ in server.inbox] == [10_100, 10_101]


def test_a_slower_interface_receives_at_its_own_speed_whoever_sends():
    kernel, network = world()
    network.add_host("slow", "rack a", 1_000_000_000)
    server = Process("server", "slow", kernel)
    links = [
        network.connect(Process(f"client-{host}", host, kernel), server) for host in ("h1", "h2")
    ]
    kernel.run(100_000)
    start = kernel.now()
    for link in links:
        link.to_server.send(Note("1MB", 1_000_000), 1)  # 0.8 ms at 10 Gbit/s, 8 ms at 1 Gbit/s
    kernel.run(start + 100_000)
    assert [t - start for t, _, _ in server.inbox] == [800 + 8_000 + 100, 800 + 16_000 + 100]


def test_a_slower_interface_sends_at_its_own_speed_and_others_keep_theirs():
    kernel, network = world()
    network.add_host("slow", "rack a", 1_000_000_000)
    received = []
    for sender in ("slow", "h2"):
        server = Process(f"server-{sender}", "h1", kernel)
        link = network.connect(Process(f"client-{sender}", sender, kernel), server)
        kernel.run(kernel.now() + 100_000)
        start = kernel.now()
        link.to_server.send(Note("1MB", 1_000_000), 1)
        kernel.run(start + 100_000)
        received.append(server.inbox[0][0] - start)
    assert received == [8_000 + 100, 800 + 100]


def test_a_cut_loses_nothing_and_the_retry_after_the_heal_comes_late():
    kernel, network, _, server, link = connected()
    cut = network.add_rule(LinkRule("cut", frozenset({"h1"}), frozenset({"h3"}), cut=True))
    start = kernel.now()
    send_all(link, 3)
    kernel.run(start + 5_000_000)
    assert server.inbox == []
    cut.remove()
    kernel.run(start + 60_000_000)
    assert texts(server) == ["0", "1", "2"]
    # Retries come 0.2, 0.6, 1.4, 3.0 and 6.2 s after the first loss: the first after 5 s is at 6.2
    # s.
    assert server.inbox[0][0] - start == pytest.approx(6_200_000, abs=5_000)
    assert cut.affected >= 3


@pytest.mark.parametrize(("senders", "receivers"), [("h1", "h3"), ("h3", "h1")])
def test_a_connection_opens_within_a_second_of_the_heal_and_later_after_five(senders, receivers):
    for heals, opens in ((0.5, 1), (1.5, 2), (2.5, 3), (3.5, 4), (4.5, 5), (5.5, 7), (7.5, 11)):
        kernel, network = world()
        rule = LinkRule("cut", frozenset({senders}), frozenset({receivers}), cut=True)
        cut = network.add_rule(rule)
        link = network.connect(Process("client", "h1", kernel), Process("server", "h3", kernel))
        kernel.run(int(heals * 1_000_000))
        cut.remove()
        kernel.run(opens * 1_000_000 - 10_000)
        assert not link.is_open, f"healed after {heals} s"
        kernel.run(opens * 1_000_000 + 20_000)
        assert link.is_open, f"healed after {heals} s"


def test_a_host_that_comes_back_is_found_by_the_next_syn():
    kernel, network = world()
    network.set_power("h3", powered=False)
    link = network.connect(Process("client", "h1", kernel), Process("server", "h3", kernel))
    kernel.run(3_500_000)
    network.set_power("h3", powered=True)
    kernel.run(4_020_000)
    assert link.is_open


def test_lost_syns_go_again_each_second_and_then_ever_later():
    kernel, network = world()
    network.add_rule(LinkRule("loss", frozenset({"h1"}), frozenset({"h3"}), loss=0.999_999))
    link = network.connect(Process("client", "h1", kernel), Process("server", "h3", kernel))
    kernel.run(100_000_000)
    # 1, 1, 1, 1, 1, 2, 4, 8, 16, 32, 64 s: who waits longer has given up.
    assert not link.is_open
    kernel.run(132_000_000)
    assert link.is_open


def test_a_socket_that_is_closed_while_it_connects_sends_nothing_more():
    kernel, network = world()
    cut = network.add_rule(LinkRule("cut", frozenset({"h1"}), frozenset({"h3"}), cut=True))
    client, server = Process("client", "h1", kernel), Process("server", "h3", kernel)
    link = network.connect(client, server)
    kernel.run(2_500_000)
    link.close(client)
    cut.remove()
    kernel.run(60_000_000)
    assert server.accepted == []
    assert server.log == []


def test_a_one_way_cut_lets_the_other_way_pass():
    kernel, network, client, _, link = connected()
    network.add_rule(LinkRule("cut", frozenset({"h1"}), frozenset({"h3"}), cut=True))
    link.to_client.send(Note("hello"), 1)
    kernel.run(kernel.now() + 1_000_000)
    assert texts(client) == ["hello"]


def test_delay_and_loss_slow_messages_but_keep_order():
    kernel, network, _, server, link = connected(server_host="h2")
    start = kernel.now()
    slow = network.add_rule(
        LinkRule("far", frozenset({"h1"}), frozenset({"h2"}), delay_us=50_000, loss=0.2)
    )
    send_all(link, 100)
    kernel.run(start + 60_000_000)
    assert texts(server) == [str(n) for n in range(100)]
    assert server.inbox[0][0] - start >= 50_000
    assert server.inbox[-1][0] - start >= 250_000  # at least one retransmission was paid
    assert slow.affected == 100


def test_a_dead_process_refuses_and_a_dark_host_says_nothing():
    kernel, network = world()
    client = Process("client", "h1", kernel)
    dead = Process("dead", "h2", kernel, running=False)
    network.connect(client, dead)
    kernel.run(1_000_000)
    assert [what for what, _ in client.log] == ["closed"]
    network.set_power("h3", powered=False)
    network.connect(client, Process("dark", "h3", kernel))
    kernel.run(5_000_000)
    assert [what for what, _ in client.log] == ["closed"]


def test_a_killed_process_still_delivers_what_it_sent_and_then_resets():
    kernel, _, client, server, link = connected()
    send_all(link, 3)
    client.running = False
    link.reset(client)
    kernel.run(kernel.now() + 1_000_000)
    assert texts(server) == ["0", "1", "2"]
    assert server.log[0][0] == "closed"


def test_a_closed_connection_loses_what_its_socket_held():
    kernel, network, client, server, link = connected()
    cut = network.add_rule(LinkRule("cut", frozenset({"h1"}), frozenset({"h3"}), cut=True))
    send_all(link, 3)
    kernel.run(kernel.now() + 1_000_000)
    link.close(client)
    cut.remove()
    kernel.run(kernel.now() + 60_000_000)
    assert server.inbox == []
    assert server.log[-1][0] == "closed"


def test_a_restarted_process_resets_connections_of_its_former_life():
    kernel, _, client, server, link = connected()
    server.incarnation = 2
    send_all(link, 1)
    kernel.run(kernel.now() + 1_000_000)
    assert server.inbox == []
    assert client.log[-1][0] == "closed"


def test_a_spread_keeps_its_median_and_its_99th_percentile():
    table = quantile_table(Spread(600, 2_000))
    assert table[512] == pytest.approx(600, abs=3)
    assert table[int(0.99 * 1_024)] == pytest.approx(2_000, rel=0.03)
    assert all(type(delay) is int for delay in table)
    assert quantile_table(Spread(100, 100)) == (100,) * 1_024


def test_a_spread_with_its_ends_crossed_is_refused():
    with pytest.raises(ValueError, match="p50"):
        Spread(500, 400)


@dataclass(frozen=True)
class Memo(Note):
    """Another kind of message."""


def rule(**what):
    return LinkRule("r", frozenset({"h1"}), frozenset({"h3"}), kinds=frozenset({"Memo"}), **what)


def test_a_held_kind_waits_until_released_and_what_follows_waits_behind_it():
    kernel, network, _, server, link = connected()
    handle = network.add_rule(rule(hold=True))
    link.to_server.send(Note("before"), 0)
    link.to_server.send(Memo("held"), 1)
    link.to_server.send(Note("behind"), 2)
    kernel.run(10_000_000)
    assert texts(server) == ["before"]
    assert handle.affected == 1
    released = kernel.now()
    handle.remove()
    kernel.run(released + 10_000)
    assert texts(server) == ["before", "held", "behind"]
    assert server.inbox[1][0] - released < 10_000, "no retransmission timer stands in the way"


def test_only_so_many_messages_are_held():
    kernel, network, _, server, link = connected()
    handle = network.add_rule(rule(hold=True, count=1))
    link.to_server.send(Memo("first"), 0)
    kernel.run(1_000_000)
    handle.remove()
    handle = network.add_rule(rule(hold=True, count=1))
    link.to_server.send(Memo("second"), 1)
    kernel.run(2_000_000)
    assert texts(server) == ["first"]
    other = network.connect(link.client, link.server)
    kernel.run(2_100_000)
    other.to_server.send(Memo("third"), 2)
    kernel.run(3_000_000)
    assert texts(server) == ["first", "third"]
    assert handle.affected == 1


def test_a_lost_message_takes_its_connection_with_it():
    kernel, network, client, server, link = connected()
    network.add_rule(rule(drop=True))
    link.to_server.send(Memo("gone"), 0)
    link.to_server.send(Note("behind"), 1)
    kernel.run(1_000_000)
    assert texts(server) == []
    assert not link.is_open
    assert [what for what, _ in client.log] == ["open", "closed"]
    assert [what for what, _ in server.log] == ["closed"]


def test_messages_share_a_collapsed_link_one_after_the_other():
    kernel, network, _, server, link = connected()
    narrow = LinkRule("r", frozenset({"h1"}), frozenset({"h3"}), bandwidth_bits=8_000)
    handle = network.add_rule(narrow)
    start = kernel.now()
    send_all(link, 3, size=1_000)  # a second each
    kernel.run(start + 10_000_000)
    arrived = [at - start for at, _, _ in server.inbox]
    assert [round(at / 1_000_000) for at in arrived] == [1, 2, 3]
    assert handle.affected == 3


def test_a_held_request_arrives_before_the_end_of_its_connection_that_its_client_gave_up():
    kernel, network, client, server, link = connected()
    handle = network.add_rule(rule(hold=True))
    link.to_server.send(Memo("held"), 0)
    link.to_server.send(Note("behind"), 1)
    kernel.run(kernel.now() + 30_000_000)
    link.close(client)
    kernel.run(kernel.now() + 1_000_000)
    assert server.log == []
    handle.remove()
    kernel.run(kernel.now() + 1_000_000)
    assert texts(server) == ["held", "behind"]
    assert [what for what, _ in server.log] == ["closed"]
    assert server.inbox[-1][0] <= server.log[0][1]
    assert handle.affected == 1


def test_a_held_request_of_a_killed_process_arrives_and_then_the_reset():
    kernel, network, client, server, link = connected()
    handle = network.add_rule(rule(hold=True))
    link.to_server.send(Memo("held"), 0)
    link.to_server.send(Note("behind"), 1)
    client.running = False
    link.reset(client)
    kernel.run(kernel.now() + 1_000_000)
    handle.remove()
    kernel.run(kernel.now() + 1_000_000)
    assert texts(server) == ["held", "behind"]
    assert [what for what, _ in server.log] == ["closed"]


@pytest.mark.parametrize("is_back", [False, True])
def test_of_a_host_that_lost_its_power_only_what_had_left_it_arrives(is_back):
    kernel, network, client, server, link = connected()
    handle = network.add_rule(rule(hold=True))
    link.to_server.send(Memo("held"), 0)
    link.to_server.send(Note("behind"), 1)
    kernel.run(kernel.now() + 1_000_000)
    client.running = False
    network.set_power("h1", powered=False)
    if is_back:
        network.set_power("h1", powered=True)
    handle.remove()
    kernel.run(kernel.now() + 60_000_000)
    assert texts(server) == ["held"]


def test_a_host_that_is_back_sends_nothing_that_its_former_kernel_had_accepted():
    kernel, network, client, server, link = connected()
    cut = network.add_rule(LinkRule("cut", frozenset({"h1"}), frozenset({"h3"}), cut=True))
    send_all(link, 3)
    client.running = False
    network.set_power("h1", powered=False)
    network.set_power("h1", powered=True)
    cut.remove()
    kernel.run(kernel.now() + 60_000_000)
    assert server.inbox == []


def test_a_held_answer_reaches_no_client_that_has_closed_meanwhile():
    kernel, network, client, server, link = connected()
    back = LinkRule("r", frozenset({"h3"}), frozenset({"h1"}), kinds=frozenset({"Memo"}), hold=True)
    handle = network.add_rule(back)
    link.to_client.send(Memo("held"), 0)
    link.close(client)
    kernel.run(kernel.now() + 1_000_000)
    handle.remove()
    kernel.run(kernel.now() + 1_000_000)
    assert client.inbox == []
    assert [what for what, _ in server.log] == ["closed"]


def test_delays_of_messages_on_their_way_do_not_add_up():
    kernel, network, _, server, link = connected()
    network.add_rule(LinkRule("r", frozenset({"h1"}), frozenset({"h3"}), delay_us=50_000))
    start = kernel.now()
    send_all(link, 10)
    kernel.run(start + 1_000_000)
    assert texts(server) == [str(n) for n in range(10)]
    assert server.inbox[-1][0] - start < 60_000
