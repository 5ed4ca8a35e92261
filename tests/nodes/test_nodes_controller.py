"""Three controller processes with real files, from their first start to the death of the leader."""

import pytest

from sim.ids import METADATA_PARTITION
from sim.kernel import Kernel
from sim.log.store.files import FileStore
from sim.nodes.controller.node import ControllerNode
from sim.nodes.controller.role import ControllerSettings
from sim.nodes.process.cpu import CpuSpec
from sim.nodes.storage.metadata_log import read_quorum_state
from sim.protocol.metadata.records import FeatureLevelRecord, LeaderChangeMessage, NoOpRecord
from sim.records.metadata import records_of
from sim.rng import Streams
from sim.substrate.disk import Disk, DiskSpec
from sim.substrate.host import Host, HostSpec
from sim.substrate.network import Network, NetworkSpec
from sim.trace.rows.cluster import Quorum
from sim.trace.writer import Trace
from sim.units import SECOND

VOTERS = (3001, 3002, 3003)


class World:
    """Three controllers and nothing else."""

    def __init__(self, root, seed=1):
        self.kernel = Kernel(0)
        self.streams = Streams(seed)
        self.trace = Trace(None)
        self.network = Network(self.kernel, self.streams, NetworkSpec())
        self.nodes = {}
        self.rows = []
        self.trace.table("quorum").listeners.append(self.rows.append)
        for number, node in enumerate(VOTERS, 1):
            host = Host(f"controller-{number}", "", self.network, HostSpec())
            store = FileStore(root / host.name)
            unit = self.streams.named(f"disk/{number}").unit
            host.disks.append(Disk(self.kernel, store, DiskSpec(), unit))
            settings = ControllerSettings(VOTERS)
            self.nodes[node] = ControllerNode(node, host, self, CpuSpec(), settings)

    def advertised(self, node):
        return self.server(node)

    def server(self, node):
        return self.nodes.get(node)

    def start(self):
        for node in self.nodes.values():
            node.start()
        return self

    def active(self):
        return [node for node in self.nodes.values() if node.is_active]


@pytest.fixture
def world(tmp_path):
    return World(tmp_path).start()


def records_in(node):
    log = node._manager.get(METADATA_PARTITION)
    return [record for batch in log.batches() for record in records_of(batch)]


def test_three_controllers_elect_one_and_write_the_first_records(world):
    world.kernel.run(5 * SECOND)
    (leader,) = world.active()
    records = records_in(leader)
    assert isinstance(records[0], LeaderChangeMessage)
    assert records[0].leader == leader.node_id
    assert FeatureLevelRecord("metadata.version", 25) in records
    assert NoOpRecord() in records


def test_followers_hold_the_same_bytes_and_the_same_state(world):
    world.kernel.run(10 * SECOND)
    (leader,) = world.active()
    logs = [
        [batch.data for batch in n._manager.get(METADATA_PARTITION).batches()]
        for n in world.nodes.values()
    ]
    shortest = min(map(len, logs))
    assert shortest > 5
    assert logs[0][:shortest] == logs[1][:shortest] == logs[2][:shortest]
    for node in world.nodes.values():
        assert leader.image.offset - node.image.offset <= 1
        assert node.image.features == leader.image.features


def test_a_crashed_leader_is_followed_by_another_within_three_seconds(world):
    world.kernel.run(10 * SECOND)
    (leader,) = world.active()
    epoch = leader.quorum_epoch
    leader.crash()
    world.kernel.run(14 * SECOND)
    (successor,) = world.active()
    assert successor is not leader
    assert successor.quorum_epoch > epoch
    elected = [
        row[Quorum.T_US]
        for row in world.rows
        if row[Quorum.ROLE] == "leader" and row[Quorum.EPOCH] > epoch
    ]
    assert elected[0] - 10 * SECOND < 3.5 * SECOND


def test_a_leader_that_shuts_down_hands_over_within_a_tenth_of_a_second(world):
    world.kernel.run(10 * SECOND)
    (leader,) = world.active()
    epoch = leader.quorum_epoch
    leader.shut_down()
    world.kernel.run(11 * SECOND)
    (successor,) = world.active()
    assert successor is not leader
    assert not leader.running
    elected = [
        row[Quorum.T_US]
        for row in world.rows
        if row[Quorum.ROLE] == "leader" and row[Quorum.EPOCH] > epoch
    ]
    assert elected[0] - 10 * SECOND < SECOND // 10


def test_a_restarted_process_remembers_its_epoch_and_its_log(world):
    world.kernel.run(10 * SECOND)
    (leader,) = world.active()
    follower = next(n for n in world.nodes.values() if n is not leader)
    before = read_quorum_state(follower.host.disks[0].store)
    assert before.leader == leader.node_id
    end = follower.image.offset
    follower.crash()
    follower.start()
    world.kernel.run(11 * SECOND)
    assert follower.quorum_epoch == before.epoch
    assert follower.image.offset > end
    assert world.active() == [leader]


def test_flushed_metadata_survives_a_power_cut_of_every_controller(world):
    world.kernel.run(10 * SECOND)
    committed = max(node.image.offset for node in world.nodes.values())
    for node in world.nodes.values():
        node.host.power_off()
    world.kernel.run(11 * SECOND)
    for node in world.nodes.values():
        node.host.power_on()
    world.kernel.run(18 * SECOND)
    (leader,) = world.active()
    assert leader.image.offset > committed
    changes = [r for r in records_in(leader) if isinstance(r, LeaderChangeMessage)]
    assert len(changes) >= 2


def test_a_stalled_disk_stops_a_voter_until_it_is_healed(world):
    world.kernel.run(10 * SECOND)
    (leader,) = world.active()
    leader.host.disks[0].stall()
    world.kernel.run(16 * SECOND)
    assert [n for n in world.active() if n is not leader] != []
    leader.host.disks[0].heal()
    world.kernel.run(20 * SECOND)
    (now_active,) = world.active()
    assert now_active is not leader
    assert leader.image.offset >= now_active.image.offset - 1


def test_a_failed_disk_ends_the_process(world):
    world.kernel.run(10 * SECOND)
    (leader,) = world.active()
    leader.host.disks[0].fail()
    world.kernel.run(15 * SECOND)
    assert not leader.running
    assert len(world.active()) == 1


def test_the_same_seed_gives_the_same_trace(tmp_path):
    digests = []
    for number in range(2):
        world = World(tmp_path / str(number)).start()
        world.kernel.run(8 * SECOND)
        digests.append(world.trace.digest())
    assert digests[0] == digests[1]
