"""A started process does nothing until its code is loaded, as a JVM does.

Source: rehearsals of Kafka 4.3.1 in ``docs/real-cluster``, in which a restarted broker is back
seconds after its start.
"""

from dataclasses import replace

import pytest

from sim.faults.process import Restarting
from sim.trace.rows.cluster import NodeStates
from tests.nodes.test_nodes_teardown import KILLED, TEARDOWN_US, Scene

START_US = 3_000_000


class Starting(Scene):
    """A server that was there before, and is killed."""

    def __init__(self, start_us=START_US):
        super().__init__(replace(KILLED, start_us=start_us))
        self.run(START_US + 10_000)  # this kernel begins at zero: its first start takes time, too
        self.server.crash()
        self.run(2 * TEARDOWN_US)
        self.killed_at = self.kernel.time
        self.rows.clear()

    def states(self):
        return [(row[NodeStates.STATE], row[NodeStates.T_US] - self.killed_at) for row in self.rows]


def test_a_started_process_does_nothing_until_its_code_is_loaded():
    scene = Starting()
    scene.server.start()
    assert scene.host.in_use
    scene.run(START_US - 1)
    assert not scene.server.running
    before = len(scene.client.log)
    scene.network.connect(scene.client, scene.server)
    scene.run(1)
    assert scene.states() == [("started", START_US)]
    scene.run(10_000)
    assert [what for what, _ in scene.client.log[before:]] in (["open"], ["closed"])


def test_a_connection_meanwhile_is_refused():
    scene = Starting()
    scene.server.start()
    before = len(scene.client.log)
    scene.network.connect(scene.client, scene.server)
    scene.run(START_US // 2)
    assert [what for what, _ in scene.client.log[before:]] == ["closed"]


def test_another_start_meanwhile_has_no_effect():
    scene = Starting()
    scene.server.start()
    scene.run(START_US // 2)
    scene.server.start()
    scene.run(START_US)
    assert scene.states() == [("started", START_US)]


def test_a_host_without_power_ends_a_start_and_begins_it_again_when_it_boots():
    scene = Starting()
    scene.server.start()
    scene.run(START_US // 2)
    scene.host.power_off()
    scene.run(START_US // 4)
    scene.host.power_on()
    scene.run(START_US - 1)
    assert not scene.server.running, "the time that it had before the power loss does not count"
    scene.run(1)
    assert scene.server.running
    assert [state for state, _ in scene.states()] == ["started"]


def test_without_start_time_a_process_begins_at_once():
    scene = Starting(0)
    scene.server.start()
    assert scene.states() == [("started", 0)]


def test_what_starts_before_zero_is_there():
    scene = Scene()
    scene.server.crash()
    scene.run(2 * TEARDOWN_US)
    scene.server.start_us = START_US
    scene.kernel.time = -1
    scene.server.start()
    assert scene.server.running


@pytest.mark.parametrize("start_us", [0, START_US])
def test_a_restart_takes_effect_whenever_it_begins_to_work(start_us):
    scene = Starting(start_us)

    class World:
        nodes = {"broker-1": scene.server}  # noqa: RUF012

        def host_of(self, name):
            return scene.host

    restarting = Restarting(World(), ["broker-1"])
    restarting.begin()
    assert restarting.evidence().took_effect
