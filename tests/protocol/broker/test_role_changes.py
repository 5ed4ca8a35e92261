"""Coordinators that do not hear that their broker leads a partition no more (KAFKA-9307)."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.protocol.broker.replication.events import LeadershipApplied, MetadataApplied
from sim.protocol.coordinator.log import PartitionElected, PartitionLoading
from sim.protocol.events import RequestReceived
from sim.protocol.zk_mode.broker_types import LeaderAndIsrApplied
from sim.protocol.zk_mode.znodes import LeaderAndIsrRequest, LeaderIsr, PartitionEntry
from tests.protocol.broker.replica_kit import Bench, P, image, state
from tests.protocol.coordinator.transaction_bench import P0, PLACE, Desk
from tests.protocol.zookeeper.zk_kit import ORDERS, Cluster


def taken_over_again(**config):
    """It has an open transaction, was not told of a successor, and leads again."""
    desk = Desk(epoch=3, **config)
    desk.begun(P0)
    desk.tell(PartitionLoading(PLACE, 5, takes_over=True))
    loading = desk.init().error
    desk.tell(PartitionElected(PLACE, 5, ()))
    return desk, loading


def test_ids_that_a_coordinator_kept_are_in_the_way_of_its_load_before_2_5():
    """Catalogue: txn-coordinator-partial-transition."""
    desk, loading = taken_over_again(reloads=False)
    assert loading is E.COORDINATOR_LOAD_IN_PROGRESS
    for again in (6, 7):
        assert desk.init().error is E.COORDINATOR_LOAD_IN_PROGRESS
        desk.tell(PartitionLoading(PLACE, again, takes_over=True))
        desk.tell(PartitionElected(PLACE, again, ()))
    assert desk.init().error is E.COORDINATOR_LOAD_IN_PROGRESS, "until it is restarted"


def test_what_it_reads_takes_their_place_since():
    desk, loading = taken_over_again()
    assert loading is E.COORDINATOR_LOAD_IN_PROGRESS
    answer = desk.init()
    assert (answer.error, answer.producer_epoch) == (E.NONE, 0), "the id is unknown to what it read"


@pytest.mark.parametrize("reloads", [True, False])
def test_a_leader_that_stays_leader_reads_nothing_anew(reloads):
    desk = Desk(epoch=3, reloads=reloads)
    ids = desk.begun(P0)
    desk.tell(PartitionLoading(PLACE, 5))
    desk.tell(PartitionElected(PLACE, 5, ()))
    assert desk.end(ids).error is E.NONE, "its transaction is open still"


@pytest.mark.parametrize(("breaks_off", "told"), [(False, 1), (True, 0)])
def test_a_change_of_roles_that_breaks_off_is_done_and_coordinators_are_not_told(breaks_off, told):
    made = Bench()
    made.take(1, LeadershipApplied)
    new = image(state(leader=2, epoch=1, partition_epoch=1))
    made.tell(1, MetadataApplied(new, (P,), breaks_off=breaks_off))
    assert not made.managers[1].replicas[P].is_leader
    assert made.managers[1].replicas[P].leader_epoch == 1
    assert len(made.take(1, LeadershipApplied)) == told


@pytest.mark.parametrize(("breaks_off", "away"), [(True, True), (True, False), (False, True)])
def test_it_breaks_off_only_while_zookeeper_is_away(breaks_off, away):
    c = Cluster(breaks_off=breaks_off)
    broker = c.brokers[1]
    if away:
        c.isolate(1, c.ensemble.members)
        c.run(5)
    epoch = c.controller().controller.epoch
    entry = PartitionEntry(ORDERS, LeaderIsr(2, 9, (2,), epoch), 4, (1, 2, 3))
    request = LeaderAndIsrRequest(2, epoch, -1, (entry,))
    effects = broker.handle(RequestReceived(1, "x", request), c.loop.now)
    (applied,) = [e for e in effects if isinstance(e, LeaderAndIsrApplied)]
    assert applied.breaks_off is (breaks_off and away)
    assert broker.replicas[ORDERS] is entry, "the leader epoch is remembered in any case"
