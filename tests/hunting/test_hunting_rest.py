"""Liveness: what is not at rest after the last heal is named with what it waits for."""

from pathlib import Path

import pytest

from sim.checking.observer import Observer
from sim.hunting import sought
from sim.hunting.replay import replay
from sim.hunting.rest import Leftover, Rest, in_words, kinds
from sim.ids import TRANSACTIONS_TOPIC
from sim.protocol.assignors.registry import partition_for_group
from sim.scenario.loader import load, load_data
from sim.trace.rows.clients import ConsumerErrors, Groups, StableLag, StableOffsets, Transactions
from sim.trace.rows.cluster import BrokerStates, NodeStates, PartitionChanges, TopicDeletions
from sim.trace.rows.log import HighWatermarks
from sim.trace.rows.run import Lag
from sim.trace.writer import Trace
from sim.units import SECOND
from tests.hunting.losing import TRANSACTING, losing, losing_a_coordinators_log

STUCK = sought.parse("stuck")
HOME = partition_for_group("shop")
CATALOGUE = Path(__file__).parents[2] / "scenarios" / "catalogue"


class World:
    """A trace to which a test writes rows."""

    def __init__(self):
        self.trace = Trace(None)
        self.rest = Rest(load_data(losing()), Observer(self.trace))

    def at(self, second, *rows):
        for row in rows:
            self.trace.write(second * SECOND, row)
        return self

    def left(self, second=100):
        return kinds(self.rest.leftovers(second * SECOND))


def partition(leader=1, isr="1,2,3", elr="", epoch=1):
    return PartitionChanges.row(
        1001, "orders", 0, leader=leader, leader_epoch=epoch, partition_epoch=2, in_sync=isr,
        eligible=elr, replicas="1,2,3", unclean=False,
    )  # fmt: skip


def group(state, reason="a member joined"):
    return Groups.row(1, "audit", state=state, generation=3, members=2, reason=reason)


def transaction(state, epoch=0):
    return Transactions.row(
        1, transactional_id="shop", producer_id=7, producer_epoch=0, state=state, partitions=1,
        coordinator_epoch=epoch, reason="EndTxn",
    )  # fmt: skip


def stable(broker, last, high, epoch=1):
    return StableOffsets.row(
        broker, "orders", 0, leader_epoch=epoch, last_stable_offset=last, high_watermark=high
    )


def watermark(reached, broker=1):
    return HighWatermarks.row(
        broker, "orders", 0, leader_epoch=1, high_watermark=reached, log_end_offset=reached,
        in_sync_count=3, min_in_sync=2, lowest_in_sync_end=reached,
    )  # fmt: skip


def test_a_cluster_that_has_everything_is_at_rest():
    world = World().at(1, partition(), group("Stable"), transaction("CompleteCommit"))
    world.at(2, stable(1, 9, 9), NodeStates.row("broker-1", state="running", incarnation=1))
    world.at(3, Lag.row("audit", "orders", 0, position=9, committed=9, high_watermark=9))
    world.at(3, BrokerStates.row(1001, 1, state="unfenced", broker_epoch=5))
    assert world.left() == ()


@pytest.mark.parametrize(
    ("row", "kind", "words"),
    [
        (partition(isr="1"), "short-isr", "it waits for broker-2, broker-3 to catch up"),
        (partition(-1, "", "2"), "no-leader", "it waits for one of its ISR [] or ELR [2]"),
        (group("CompletingRebalance"), "group-CompletingRebalance", "with 2 members, at broker-1"),
        (transaction("PrepareCommit"), "transaction-PrepareCommit", "in PrepareCommit for 95 s"),
        (transaction("Ongoing"), "transaction-Ongoing", "in Ongoing for 95 s"),
        (NodeStates.row("broker-2", state="crashed", incarnation=1), "server-down", "crashed"),
        (BrokerStates.row(1001, 2, state="fenced", broker_epoch=5), "broker-fenced", "heartbeats"),
        (
            Lag.row("audit", "orders", 0, position=4, committed=4, high_watermark=9),
            "reader-behind",
            "group audit is at offset 4 of orders-0, which ends at 9",
        ),
        (
            Lag.row("audit", "orders", 0, position=-1, committed=4, high_watermark=9),
            "reader-behind",
            "group audit has no reader of orders-0, which ends at 9",
        ),
    ],
)
def test_planted_each_kind_of_unrest_is_named(row, kind, words):
    world = World().at(1, partition()).at(5, row)
    assert world.left() == (kind,)
    assert words in in_words(world.rest.leftovers(100 * SECOND))


def test_a_transaction_may_be_open_for_its_time_and_hangs_if_no_coordinator_has_it():
    world = World().at(1, partition(), transaction("Ongoing"), stable(1, 4, 9))
    assert world.left(30) == ()
    assert world.left(100) == ("transaction-Ongoing",)
    world.at(101, transaction("CompleteAbort"))
    assert world.left(102) == ("hanging-transaction",)
    assert world.at(103, stable(1, 9, 9)).left(104) == ()


def coordinator(leader_epoch, leader=2):
    return PartitionChanges.row(
        1001, TRANSACTIONS_TOPIC, HOME, leader=leader, leader_epoch=leader_epoch, partition_epoch=2,
        in_sync="1,2,3", eligible="", replicas="1,2,3", unclean=False,
    )  # fmt: skip


def test_a_transaction_that_the_next_coordinators_log_lost_is_open_no_more_and_hangs():
    world = World().at(1, partition(), coordinator(0), transaction("Ongoing"), stable(1, 4, 9))
    world.at(20, coordinator(1))
    assert world.left(25) == ()  # it may be loading
    assert world.left(31) == ("hanging-transaction",)
    assert world.left(100) == ("hanging-transaction",)


def test_a_transaction_that_the_next_coordinator_loads_is_open():
    world = World().at(1, partition(), coordinator(0), transaction("Ongoing"), stable(1, 4, 9))
    world.at(20, coordinator(1)).at(21, transaction("Ongoing", 1))
    assert world.left(31) == ()
    assert world.left(100) == ("transaction-Ongoing",)


def test_a_coordinator_of_a_later_epoch_that_was_there_all_the_time_loads_nothing():
    world = World().at(1, partition(), coordinator(0, 1), transaction("Ongoing"), stable(1, 4, 9))
    world.at(20, coordinator(1, 1))
    assert world.left(100) == ("transaction-Ongoing",)
    world.at(110, NodeStates.row("broker-1", state="running", incarnation=2))
    assert world.left(120) == ("hanging-transaction",)


def test_a_transaction_without_a_coordinator_stays_open():
    world = World().at(1, partition(), coordinator(0), transaction("Ongoing"), stable(1, 4, 9))
    world.at(20, coordinator(1, leader=-1))
    assert world.left(100) == ("no-leader", "transaction-Ongoing")


def test_a_last_stable_offset_that_stays_while_records_are_committed_hangs():
    world = World().at(1, partition(), stable(1, 4, 4))
    assert world.left() == ()
    world.at(2, watermark(9))
    assert world.left() == ("hanging-transaction",)


def test_the_high_watermark_of_another_leader_does_not_make_a_transaction_hang():
    world = World().at(1, partition(), watermark(9, broker=2), stable(1, 4, 4))
    assert world.left() == ()


def test_a_transaction_that_the_leader_s_next_process_has_not_in_its_log_does_not_hang():
    world = World().at(1, partition(), watermark(9), stable(1, 4, 9))
    assert world.left() == ("hanging-transaction",)
    world.at(2, NodeStates.row("broker-1", state="started", incarnation=2), watermark(4))
    assert world.left() == ()


@pytest.mark.parametrize("first", [stable(2, 9, 9), stable(2, 4, 4)])
def test_a_former_leader_says_nothing_about_its_partition(first):
    world = World().at(1, partition(leader=2), first, stable(1, 4, 9, epoch=0))
    assert world.left() == ()


def test_a_leader_without_a_row_of_its_epoch_has_nothing_that_hangs():
    world = World().at(1, partition(epoch=0), stable(1, 4, 4, epoch=0))
    world.at(2, partition(epoch=1), watermark(9))
    assert world.left() == ()


def test_a_group_without_a_reader_says_which_consumer_ended_and_with_what():
    world = World()
    world.at(5, ConsumerErrors.row("audit-2", "audit", error="GROUP_ID_NOT_FOUND"))
    world.at(6, ConsumerErrors.row("other-1", "other", error="OFFSET_OUT_OF_RANGE"))
    world.at(7, Lag.row("audit", "orders", 0, position=-1, committed=4, high_watermark=9))
    (left,) = world.rest.leftovers(100 * SECOND)
    assert left == Leftover(
        "reader-behind",
        "group audit has no reader of orders-0, which ends at 9; "
        "audit-2 ended at 5.000000 s with GROUP_ID_NOT_FOUND",
    )
    world.at(8, NodeStates.row("audit-2", state="started", incarnation=2))
    (left,) = world.rest.leftovers(100 * SECOND)
    assert left.words == "group audit has no reader of orders-0, which ends at 9"


def test_readers_of_committed_data_are_measured_by_the_last_stable_offset():
    world = World().at(1, partition(), transaction("Ongoing"), stable(1, 4, 4))
    world.at(2, Lag.row("audit", "orders", 0, position=4, committed=4, high_watermark=9))
    world.at(2, StableLag.row("audit", "orders", 0, position=4, last_stable_offset=4))
    assert world.left(30) == ()


def test_a_topic_that_is_deleted_keeps_nobody_waiting():
    world = World().at(1, partition(-1, ""))
    world.at(1, Lag.row("audit", "orders", 0, position=4, committed=4, high_watermark=9))
    deleted = TopicDeletions.row(1001, topic="orders", topic_id="x")
    assert world.at(2, deleted).left() == ()


def test_many_leftovers_are_counted():
    some = [Leftover("short-isr", f"orders-{n}") for n in range(5)]
    assert in_words(some) == "orders-0; orders-1; orders-2; and 2 more"
    assert kinds(some) == ("short-isr",)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted", None])
def test_a_power_loss_that_takes_the_coordinators_log_leaves_a_hanging_transaction(isolation):
    billing = {
        "group": "billing", "topics": ["orders"],
        "config": {"isolation.level": isolation, "auto.offset.reset": "earliest"},
    }  # fmt: skip
    data = losing_a_coordinators_log(consumers=[billing] if isolation else [])
    (found,) = replay(load_data(data), 1, STUCK).findings
    assert found.fingerprint == "stuck: hanging-transaction"
    assert "orders-0 is held at its last stable offset 0" in found.words


def test_a_topic_with_and_without_transactions_whose_leader_changes_comes_to_rest():
    """Only the former leader had transactions; the next one's records are not of any."""
    plain = {"name": "plain", "topic": "orders", "rate": "20/s", "record.size": "100B"}
    data = losing(
        [{"at": "9s", "do": "restart", "target": "leader of orders-0"}],
        topics={"orders": {"partitions": 1, "replication.factor": 3}},
        producers=[TRANSACTING | {"transaction": {"every": "1s"}}, plain],
        consumers=[],
        run={"for": "16s", "then": "heal and drain", "seed": 1},
    )
    assert replay(load_data(data), 1, STUCK).findings == ()


@pytest.mark.parametrize(
    "kind",
    [
        {"config": {"group.protocol": "consumer", "auto.offset.reset": "earliest"}},
        {"group.type": "share", "config": {"share.auto.offset.reset": "earliest"}},
    ],
)
def test_a_group_that_its_coordinator_rebalances_comes_to_rest(kind):
    member = {"group": "workers", "topics": ["orders"], "processing": "1ms"} | kind
    data = losing(
        [],
        topics={"orders": {"partitions": 2, "replication.factor": 3}},
        producers=[{"name": "shop", "topic": "orders", "rate": "20/s", "record.size": "100B"}],
        consumers=[member | {"name": "one"}, member | {"name": "two", "start": "6s"}],
        run={"for": "12s", "then": "heal and drain", "seed": 1},
    )
    assert replay(load_data(data), 1, STUCK).findings == ()


# -- stories of the catalogue ----------------------------------------------------------------------


@pytest.mark.slow
def test_a_transaction_that_hangs_keeps_a_cluster_from_rest_and_with_its_cure_it_does_not():
    name = "f04-hanging-transaction-late-produce"
    historic = load(CATALOGUE / f"{name}-historic.yaml")
    (found,) = replay(historic, historic.run.seed, STUCK).findings
    assert found.fingerprint == "stuck: hanging-transaction"
    assert "it waits for the marker of a transaction that no coordinator has open" in found.words
    fixed = load(CATALOGUE / f"{name}-fixed.yaml")
    assert replay(fixed, fixed.run.seed, STUCK).findings == ()
