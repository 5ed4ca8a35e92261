"""Threads take a while to run: drawn for each host, in blocks."""

from statistics import median

from sim.kernel import Kernel
from sim.nodes.process.base import Node
from sim.protocol import effects as fx
from sim.protocol.events import TimerFired
from sim.rng import Streams
from sim.substrate.distributions import Spread
from sim.substrate.host import Host, HostSpec
from sim.substrate.network import Network, NetworkSpec
from sim.substrate.wakeups import Wakeups
from sim.trace.writer import Trace

INTERVAL_US = 2_000_000
WAKEUP = Spread(30, 121)


def wakeups(name, spread=WAKEUP, seed=1):
    return Wakeups(spread, Streams(seed).vector(f"wakeups/{name}"))


class Beating:
    """A machine that asks for its next beat an interval after the one before."""

    def __init__(self):
        self.beats = []

    def handle(self, event, now):
        assert event == TimerFired("beat")
        self.beats.append(now)
        return [fx.SetTimer("beat", now + INTERVAL_US)]


class Process(Node):
    def boot(self):
        self.machine = Beating()
        self.perform(self.add_machine("beating", self.machine), [fx.SetTimer("beat", INTERVAL_US)])


class World:
    def __init__(self, spread):
        self.kernel = Kernel(0)
        self.streams = Streams(1)
        self.trace = Trace(None)
        self.network = Network(self.kernel, self.streams, NetworkSpec())
        self.nodes = []
        for name in ("a", "b"):
            host = Host(name, "", self.network, HostSpec(), wakeups=wakeups(name, spread))
            node = Process(name, host, self)
            node.start()
            self.nodes.append(node)
        self.kernel.run(21 * INTERVAL_US)


def test_a_beat_that_is_set_after_the_one_before_drifts_with_each_wake_up():
    first, second = (node.machine.beats for node in World(WAKEUP).nodes)
    assert first[0] != second[0]
    for beats in (first, second):
        # Twenty wake-ups of at least some microseconds each; they are never made up for.
        assert 20 * 5 < beats[19] - 20 * INTERVAL_US < 20 * 200


def test_without_a_wake_up_time_beats_come_on_the_microsecond():
    for node in World(Spread(0, 0)).nodes:
        assert node.machine.beats[19] == 20 * INTERVAL_US


def test_wake_ups_have_their_quantiles_and_each_host_its_own():
    source = wakeups("a")
    drawn = sorted(source.draw() for _ in range(50_000))
    assert abs(median(drawn) - WAKEUP.p50_us) <= 1
    assert abs(drawn[49_500] - WAKEUP.p99_us) <= 5
    again, other = wakeups("a"), wakeups("b")
    once = [again.draw() for _ in range(10)]
    assert once == [source.draw() for source in [wakeups("a")] for _ in range(10)]
    assert once != [other.draw() for _ in range(10)]
