"""ZooKeeper mode with data, clients and faults under it."""

import pytest

from sim.errors import InvariantBroken
from sim.ids import FIRST_ZOOKEEPER_ID
from sim.protocol.zk_mode.controller import ZkController
from sim.protocol.zk_mode.znodes import CONTROLLER_EPOCH
from sim.protocol.zookeeper.ensemble import EnsembleMember
from sim.protocol.zookeeper.session import RECONNECT_US
from sim.protocol.zookeeper.tree import SetData, Tree
from tests.scenarios.run_kit import JOIN_US, S, go

SESSION_S = 6
CONFIG = {"zookeeper.session.timeout.ms": SESSION_S * 1_000}
ZOOKEEPER = {"zookeeper": {"servers": 3}, "config": CONFIG}
SLOWLY = {"rate": "100/s", "config": {"acks": "all", "linger.ms": 0}}
CONTROLLER = [{"at": "2s", "do": "crash", "target": "controller leader", "for": "12s"}]
ENSEMBLE = ["zookeeper-1", "zookeeper-2", "zookeeper-3"]


def under(directory, *, kafka=None, config=(), zookeeper=None, **parts):
    cluster = {
        "zookeeper": zookeeper or {"servers": 3},
        "config": CONFIG | dict(config),
        **({} if kafka is None else {"kafka": kafka}),
    }
    return go(directory, cluster=cluster, **({"producer": SLOWLY, "lasts": "16s"} | parts))


def produce_gap(ran):
    return ran.verdict["availability"]["produce_max_us"]


@pytest.fixture(scope="module")
def headless(tmp_path_factory):
    """The controller's broker dies, and a group reads all the while."""
    reader = {"group": "billing", "topics": ["orders"], "config": {"auto.offset.reset": "earliest"}}
    directory = tmp_path_factory.mktemp("zk-controller")
    return under(directory, faults=CONTROLLER, consumers=[reader])


def test_a_dead_controller_is_followed_when_its_session_has_ended_and_not_before(headless):
    (first, second) = headless.rows("controllers", state="elected")
    assert (first["epoch"], second["epoch"]) == (1, 2)
    assert first["broker"] != second["broker"]
    # The session is counted from the last word of it, in steps of a tick.
    assert 2 * S + (SESSION_S - 2) * S <= second["t_us"] <= 2 * S + (SESSION_S + 2.1) * S
    (_, loaded) = headless.rows("controllers", state="loaded")
    assert loaded["partitions"] == 53, "the topic's and those of committed offsets"


WAYS = {2: 1_600_000, 3: 1_000_000}
"""One-way delays of the brokers that are left, in us."""


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    """ZooKeeper is far away when the controller, broker-1, shuts down."""
    delays = [
        {"at": "7s", "do": "delay", "between": [f"broker-{n}"], "and": ENSEMBLE, "by": f"{way}us"}
        for n, way in WAYS.items()
    ]
    faults = [
        {"at": "0s", "do": "crash", "target": ["broker-2", "broker-3"], "for": "2s"},
        *delays,
        {"at": "8s", "do": "controlled-shutdown", "target": "broker-1", "for": "12s"},
    ]
    return under(tmp_path_factory.mktemp("zk-far"), faults=faults, lasts="22s")


def test_a_far_broker_hears_of_the_controllers_end_one_way_after_zookeeper_has_it(far):
    """C3: ZooKeeper sends an event unrequested, when it happens."""
    (ended,) = far.times("node_states", node="broker-1", state="stopped")
    assert 8 * S <= ended < 8 * S + JOIN_US
    for broker, way in WAYS.items():
        events = far.rows("messages", receiver=f"broker-{broker}", kind="ZkWatchNotification")
        first = next(event for event in events if event["sent_us"] > 8 * S)
        assert first["sent_us"] < ended + JOIN_US
        assert way <= first["t_us"] - first["sent_us"] < way + JOIN_US


def test_who_hears_of_the_controllers_end_first_takes_its_place(far):
    (before, after) = [row for row in far.rows("controllers", state="elected") if row["t_us"] > 0]
    assert (before["broker"], after["broker"]) == (1, 3)
    assert before["t_us"] < 8 * S < after["t_us"]


def test_partitions_of_other_leaders_keep_them_when_the_controller_dies(headless):
    dead = headless.rows("controllers")[0]["broker"]
    led_by_others = [p for p in range(3) if headless.leader_at(S, p) != dead]
    assert len(led_by_others) == 2
    for partition in led_by_others:
        (change,) = headless.leader_changes(partition)
        assert change[1] != dead
    (orphan,) = (p for p in range(3) if p not in led_by_others)
    assert headless.leader_at(12 * S, orphan) not in {dead, -1}


def test_no_acknowledged_record_is_lost_and_a_group_reads_them_all(headless):
    assert headless.records["lost_acked"] == headless.records["divergent"] == 0
    assert headless.records["acked"] == headless.records["sent"]
    assert (SESSION_S - 2) * S <= produce_gap(headless) <= (SESSION_S + 3) * S
    assert headless.verdict["checks"]
    assert headless.checked("one-controller-per-epoch") == 2
    assert headless.checked("one-quorum-leader") > 0


def test_a_broker_that_is_back_registers_with_a_higher_epoch_and_joins_every_isr(headless):
    dead = headless.rows("controllers")[0]["broker"]
    was, now = headless.rows("broker_states", broker=dead, state="registered")
    assert now["broker_epoch"] > was["broker_epoch"]
    for partition in range(3):
        last = headless.rows("partition_changes", topic="orders", partition=partition)[-1]
        assert last["in_sync"] == "1,2,3"


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run(headless, tmp_path):
    reader = {"group": "billing", "topics": ["orders"], "config": {"auto.offset.reset": "earliest"}}
    again = under(tmp_path, faults=CONTROLLER, consumers=[reader])
    for digest in ("trace_digest", "disk_digest"):
        assert again.card[digest] == headless.card[digest]


def test_without_a_majority_of_the_ensemble_produce_goes_on_and_nobody_is_elected(tmp_path):
    lost = [{"at": "1s", "do": "crash", "target": name, "for": "11s"} for name in ENSEMBLE[:2]]
    killed = {"at": "6s", "do": "crash", "target": "leader of orders-0", "for": "1s"}
    ran = under(tmp_path, faults=[*lost, killed], lasts="20s")
    acked = [row["t_us"] for row in ran.rows("acknowledgements") if 2 * S < row["t_us"] < 6 * S]
    assert len(acked) > 300, "with acks=all"
    between = [t for p in range(3) for t, _ in ran.leader_changes(p) if S < t < 12 * S]
    assert between == []
    assert [t for t, who in ran.leader_changes(0) if t > 12 * S and who >= 0]
    assert ran.records["lost_acked"] == 0


def test_a_leader_of_the_ensemble_that_dies_costs_no_session_and_moves_no_partition(tmp_path):
    ran = under(tmp_path, faults=[{"at": "2s", "do": "crash", "target": "zookeeper leader"}])
    led = [row["node"] for row in ran.rows("quorum", role="leader")]
    assert len(dict.fromkeys(led)) == 2
    assert all(node >= FIRST_ZOOKEEPER_ID for node in led)
    assert [row["epoch"] for row in ran.rows("controllers", state="elected")] == [1]
    assert all(len(ran.leader_changes(p)) == 1 for p in range(3))
    assert produce_gap(ran) < S / 10


@pytest.mark.slow
def test_a_controller_that_slept_longer_than_its_session_finds_its_successor_and_resigns(tmp_path):
    ran = under(
        tmp_path, faults=[{"at": "2s", "do": "pause", "target": "controller leader", "for": "9s"}]
    )
    (resigned,) = ran.rows("controllers", state="resigned")
    first, second = ran.rows("controllers", state="elected")
    assert resigned["broker"] == first["broker"]
    assert second["t_us"] < resigned["t_us"]
    # It has heard nothing for 9 s: the next server, which it tries within a second, says so.
    assert 11 * S + RECONNECT_US <= resigned["t_us"] <= 12.1 * S
    assert ran.records["lost_acked"] == 0


@pytest.mark.slow
def test_a_controller_cut_from_the_ensemble_alone_is_deposed_and_learns_it_after_the_cut(tmp_path):
    cut = {
        "at": "2s", "do": "partition", "between": "controller leader", "and": ENSEMBLE, "for": "8s",
    }  # fmt: skip
    ran = under(tmp_path, faults=[cut])
    (resigned,) = ran.rows("controllers", state="resigned")
    assert resigned["t_us"] > 10 * S
    assert len(ran.rows("controllers", state="elected")) == 2
    assert ran.records["lost_acked"] == ran.records["divergent"] == 0


def test_a_controlled_shutdown_moves_leaders_first_and_an_election_brings_them_back(tmp_path):
    stop = {"at": "2s", "do": "controlled-shutdown", "target": "leader of orders-0", "for": "3s"}
    back = {"at": "10s", "do": "elect-leader", "partition": "orders-0", "election": "preferred"}
    ran = under(
        tmp_path, faults=[stop, back], config={"auto.leader.rebalance.enable": False}, lasts="12s"
    )
    (_, left, returned) = ran.leader_changes(0)
    (stopped,) = ran.times("node_states", state="stopped", node=f"broker-{returned[1]}")[:1]
    assert 2 * S <= left[0] < stopped < 2.2 * S
    assert 10 * S <= returned[0] < 10.5 * S
    assert produce_gap(ran) < S / 2


@pytest.mark.parametrize(("kafka", "asked"), [("2.6", False), ("2.7", True)])
def test_leaders_change_their_isr_in_zookeeper_before_2_7_and_by_the_controller_since(
    tmp_path, kafka, asked
):
    cut = {"at": "2s", "do": "pause", "target": "follower of orders-0", "for": "3s"}
    ran = under(
        tmp_path, kafka=kafka, faults=[cut], config={"replica.lag.time.max.ms": 1_000}, lasts="8s",
        topic={"partitions": 1},
    )  # fmt: skip
    sizes = [len(r["in_sync"].split(",")) for r in ran.rows("partition_changes", topic="orders")]
    assert sizes == [3, 2, 3], "it shrinks and is whole again"
    writers = {row["controller"] for row in ran.rows("partition_changes", topic="orders")[1:]}
    controller = ran.rows("controllers")[0]["broker"]
    leader = ran.leader_at(S)
    assert writers == ({controller} if asked else {leader})
    assert bool(ran.rows("requests", kind="AlterPartition")) is asked


def test_what_the_ensemble_has_committed_outlives_the_power_of_everything(tmp_path):
    dark = [{"at": "3s", "do": "power-loss", "target": "all brokers", "for": "1s"}]
    dark += [{"at": "3s", "do": "power-loss", "target": name, "for": "1s"} for name in ENSEMBLE]
    ran = under(tmp_path, faults=dark, config={"log.flush.interval.messages": 1})
    epochs = [row["epoch"] for row in ran.rows("controllers", state="elected")]
    assert epochs == list(range(1, len(epochs) + 1))
    assert len(epochs) >= 2
    assert ran.records["lost_acked"] == 0
    assert all(ran.leader_changes(p)[-1][1] >= 0 for p in range(3))


# -- planted defects ------------------------------------------------------------------------------


def test_a_controller_that_does_not_count_its_epoch_is_caught(tmp_path, monkeypatch):
    real = Tree.apply

    def apply(self, zxid, session, op):
        parts = getattr(op, "ops", ())
        outcome, changes = real(self, zxid, session, op)
        if any(isinstance(part, SetData) and part.path == CONTROLLER_EPOCH for part in parts):
            node = self.nodes[CONTROLLER_EPOCH]
            node.data -= 1
        return outcome, changes

    monkeypatch.setattr(Tree, "apply", apply)
    with pytest.raises(InvariantBroken, match="one-controller-per-epoch"):
        under(tmp_path, faults=CONTROLLER, zookeeper={"servers": 1})


def test_an_ensemble_whose_servers_elect_themselves_is_caught(tmp_path, monkeypatch):
    def wait(self):
        self._set_timer("election", self.config.election_wait_us)

    monkeypatch.setattr(EnsembleMember, "majority", property(lambda _: 1))
    monkeypatch.setattr(EnsembleMember, "_await_election", wait)
    with pytest.raises(InvariantBroken, match="one-quorum-leader"):
        under(tmp_path, faults=[{"at": "2s", "do": "crash", "target": "zookeeper leader"}])


def test_a_controller_that_never_tells_of_elections_leaves_its_partitions_dark(
    tmp_path, monkeypatch
):
    real = ZkController.flush

    def flush(self):
        if self.epoch < 2:
            real(self)

    monkeypatch.setattr(ZkController, "flush", flush)
    ran = under(tmp_path, faults=[CONTROLLER[0] | {"for": "9s"}], then="stop", lasts="12s")
    assert produce_gap(ran) >= 9 * S, "the twin's is over after a session"
