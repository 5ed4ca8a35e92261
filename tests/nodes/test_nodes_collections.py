"""Young collections stop a server for a moment, as often as requests fill the young generation."""

import pytest

from sim.nodes.process.cpu import CpuSpec
from sim.substrate.distributions import Spread
from sim.trace.rows.cluster import NodeStates
from tests.nodes.test_nodes_teardown import Scene

PAUSE_US = 5_000
MIB = 1 << 20


def scene_of(requests_between):
    """A server whose young generation is full after so many requests."""
    young = requests_between * MIB
    cpu = CpuSpec(
        young_bytes=young, young_request_bytes=MIB, young_pause=Spread(PAUSE_US, PAUSE_US)
    )
    return Scene(cpu)


def served(scene, links):
    """Ask once on each connection, one millisecond after the other; when each was taken up."""
    began = scene.kernel.time
    for link in links:
        scene.link = link
        scene.ask()
        scene.run(1_000)
    scene.run(1_000_000)
    return [at - began for at in scene.server.asked]


def test_a_full_young_generation_stops_all_threads_for_the_pause():
    scene = scene_of(3)
    links = [scene.network.connect(scene.client, scene.server) for _ in range(5)]
    scene.run(10_000)
    at = served(scene, links)
    waited = [then - 1_000 * number for number, then in enumerate(at)]
    assert [wait < 1_000 for wait in waited] == [True, True, False, False, False]
    assert all(wait <= PAUSE_US + 1_000 for wait in waited)
    assert len(set(at[2:])) > 1, "they go on in their order"


def test_a_pause_of_the_collector_is_no_state_of_the_process_but_a_signal_in_it_is():
    scene = scene_of(1)
    scene.ask()
    scene.run(PAUSE_US // 2)
    assert scene.server.frozen
    scene.server.pause()
    scene.run(1_000_000)
    assert scene.server.frozen
    scene.server.resume()
    assert not scene.server.frozen
    assert [row[NodeStates.STATE] for row in scene.rows] == ["started", "paused", "resumed"]


def test_a_kill_in_a_pause_of_the_collector_leaves_nothing_of_it():
    scene = scene_of(1)
    scene.ask()
    scene.run(PAUSE_US // 2)
    scene.server.crash()
    scene.server.start()
    scene.run(10_000)
    assert scene.server.running
    assert not scene.server.frozen


@pytest.mark.parametrize("young", [0, 1 << 40])
def test_without_or_with_room_in_a_young_generation_nothing_stops(young):
    scene = Scene(CpuSpec(young_bytes=young, young_request_bytes=MIB))
    scene.ask()
    scene.run(1_000)
    assert not scene.server.frozen
    assert len(scene.server.asked) == 1
