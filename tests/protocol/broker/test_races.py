"""Races that Kafka had: what comes between two halves of a step, and that today's has one half."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.ids import OFFSETS_TOPIC, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replication.events import (
    AppendInternal,
    InternalAppended,
    LeadershipApplied,
)
from sim.protocol.coordinator.transaction.config import TransactionConfig
from sim.protocol.coordinator.transaction.records import TransactionState as S
from sim.protocol.events import RequestReceived
from sim.protocol.messages.data import FetchPartition, FetchRequest, ProduceRequest
from sim.protocol.preemption import Preempt, Resumed
from sim.units import MS, SECOND
from tests.log.list_log import ListBatch, ListLog
from tests.protocol.broker.replica_kit import Bench, P, state
from tests.protocol.coordinator.transaction_bench import P0, Desk

READER = 77


class Race(Bench):
    """Three brokers whose logs know of transactions, and a reader."""

    def __init__(self, **config):
        unverified = TransactionConfig(version=0, verifies=False)
        super().__init__(log=ListLog, transaction=unverified, **config)

    def write(self, leader=1, acks=-1, **fields):
        batch = ListBatch(**fields)
        name = "till" if batch.is_transactional else ""
        request = ProduceRequest(acks, 30 * SECOND, ((P, batch),), name)
        self.tell(leader, RequestReceived(900, "shop", request))

    def write_in_transaction(self):
        self.write(producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True)

    def read(self, broker=1, offset=0, epoch=0, isolation="read_uncommitted", wait=500 * MS):
        asked = (FetchPartition(P, offset, epoch),)
        request = FetchRequest(-1, -1, wait, 1, 1 << 20, 0, 0, asked, (), "", isolation)
        self.tell(broker, RequestReceived(READER, "reader", request))

    def wake(self, broker=1):
        """Every interrupted thread of a broker goes on; returns how many there were."""
        interrupted = self.take(broker, Preempt)
        for effect in interrupted:
            self.tell(broker, Resumed(effect.token))
        return len(interrupted)

    def answers_to_reader(self, broker=1):
        """Base offsets of the batches of each answer."""
        mine = [e for e in self.take(broker, fx.Reply) if e.token == READER]
        return [[b.base_offset for r in e.response.results for b in r.batches] for e in mine]


# -- KAFKA-9807: the bound of a read of committed data --------------------------------------------


@pytest.mark.parametrize("once", [True, False])
def test_a_reader_of_committed_data_that_looks_twice_gets_an_open_transaction(once):
    bench = Race(reads_bound_once=once)
    bench.write_in_transaction()
    bench.read(isolation="read_committed")
    bench.settle()
    assert bench.managers[1].replicas[P].high_watermark == 1
    assert bench.wake() == (0 if once else 1)
    assert bench.answers_to_reader() == ([] if once else [[0]])


def test_who_looks_twice_is_held_back_by_a_transaction_that_it_sees_at_the_first_look():
    bench = Race(reads_bound_once=False)
    bench.write()
    bench.write_in_transaction()
    bench.settle()
    bench.read(isolation="read_committed")
    assert bench.wake() == 0
    assert bench.answers_to_reader() == [[0]]


def test_who_reads_uncommitted_data_looks_once():
    bench = Race(reads_bound_once=False)
    bench.write_in_transaction()
    bench.settle()
    bench.read()
    assert bench.wake() == 0
    assert bench.answers_to_reader() == [[0]]


def test_a_second_look_for_a_fetch_that_is_over_answers_nobody():
    bench = Race(reads_bound_once=False)
    bench.write()
    bench.settle()
    bench.read(isolation="read_committed")
    bench.managers[1].delayed_fetches._sessions.of(P)[-1].token = -1
    assert bench.wake() == 1
    assert bench.answers_to_reader() == []


# -- KAFKA-10080: who writes that a transaction is complete ---------------------------------------


def ended(**config):
    """A transaction with both markers written, in front of its last record."""
    desk = Desk(version=0, **config)
    ids = desk.begun()
    assert desk.end(ids).error is E.NONE
    desk.answer_markers()
    return desk, ids


def written(desk, state):
    return sum(record.state is state for record in desk.log)


@pytest.mark.parametrize(("once", "times"), [(True, 1), (False, 3)])
def test_a_transaction_is_complete_once_or_for_every_thread_that_looked_in_time(once, times):
    desk, _ = ended(completes_once=once)
    assert desk.wake() == (0 if once else 3)  # each sees that it is complete
    assert written(desk, S.COMPLETE_COMMIT) == (1 if once else 0)
    assert desk.wake() == (0 if once else 3)  # each writes so
    assert written(desk, S.COMPLETE_COMMIT) == times
    assert desk.state == "CompleteCommit"


def test_a_thread_that_looks_when_another_has_begun_to_write_sees_nothing_to_do():
    desk, _ = ended(completes_once=False)
    desk.wake(1)  # the first sees that it is complete
    *others, first = desk.interrupted
    desk.interrupted = [first]
    desk.wake()  # and writes so
    desk.interrupted = others
    desk.wake()
    assert desk.interrupted == []
    assert written(desk, S.COMPLETE_COMMIT) == 1


@pytest.mark.parametrize("once", [True, False])
def test_a_late_second_record_hides_the_next_transaction_from_the_next_coordinator(once):
    desk, ids = ended(completes_once=once)
    desk.wake()
    desk.wake(1)
    assert desk.add(ids, P0).error is E.NONE
    desk.wake()
    assert desk.state == "Ongoing"  # memory knows better than the log
    heir = Desk(version=0, records=desk.log, epoch=4)
    assert heir.state == ("Ongoing" if once else "CompleteCommit")
    assert heir.end(ids).error is E.NONE
    assert len(heir.sent) == (1 if once else 0)  # no marker for what was committed


def test_who_was_about_to_write_writes_nothing_when_the_partition_is_led_elsewhere():
    desk, _ = ended(completes_once=False)
    desk.wake()
    desk.resign()
    assert desk.wake() == 3
    assert written(desk, S.COMPLETE_COMMIT) == 0


# -- KAFKA-14704: the high watermark of another branch --------------------------------------------


def demoted(**config):
    """The first broker has led alone with its last two records; the second has gone further."""
    bench = Race(**config)
    bench.write()
    bench.settle()
    for _ in range(2):
        bench.write(acks=1)
    bench.apply(state(leader=2, epoch=1, partition_epoch=1, in_sync=(2, 3)))
    for broker in (1, 2, 3):
        bench.take(broker, Preempt)
    for _ in range(4):
        bench.write(leader=2)
    bench.carry(3)
    bench.carry(3)
    assert bench.managers[2].replicas[P].high_watermark == 5
    return bench


@pytest.mark.parametrize("first", [True, False])
def test_a_former_leader_serves_a_dead_branch_only_if_it_adopts_the_watermark_first(first):
    bench = demoted(truncates_first=first)
    bench.carry(1)
    replica = bench.managers[1].replicas[P]
    bench.read(offset=1, epoch=-1, wait=0)
    assert bench.answers_to_reader() == ([[]] if first else [[1, 2]])
    assert bench.wake() == (0 if first else 1)
    assert (replica.log.log_end_offset, replica.high_watermark) == (1, 1)


def test_a_reader_that_has_asked_before_sees_the_dead_branch_with_its_next_fetch():
    bench = demoted(truncates_first=False)
    bench.read(offset=1, epoch=-1, wait=0)
    session = bench.managers[1].delayed_fetches._sessions.of(P)[-1]
    bench.carry(1)
    again = FetchRequest(-1, -1, 0, 1, 1 << 20, session.session_id, 1, ())
    bench.tell(1, RequestReceived(READER, "reader", again))
    assert bench.answers_to_reader() == [[], [1, 2]]


def test_the_fetcher_waits_for_its_interrupted_thread_and_then_fetches_from_the_cut():
    bench = demoted(truncates_first=False)
    bench.carry(1)
    bench.managers[1].follower.send_all(0, bench.out[1])
    assert not [e for e in bench.out[1] if isinstance(e, fx.Send)]
    bench.wake()
    (fetch,) = bench.fetches(1)
    assert fetch.request.partitions[0].fetch_offset == 1


def test_waiting_readers_are_woken_after_the_cut_and_get_nothing_of_it():
    bench = demoted(truncates_first=False)
    bench.read(offset=1, epoch=-1)
    bench.carry(1)
    bench.wake()
    assert bench.answers_to_reader() == []


def test_nothing_is_cut_for_a_leader_that_is_followed_no_more():
    bench = demoted(truncates_first=False)
    bench.carry(1)
    bench.apply(state(leader=3, epoch=2, partition_epoch=2, in_sync=(2, 3)))
    bench.wake()
    assert bench.managers[1].replicas[P].log.log_end_offset == 3


# -- KAFKA-20634: a coordinator that is unloaded late ---------------------------------------------

OFFSETS = TopicPartition(OFFSETS_TOPIC, 0)


class Commits(Race):
    """The same brokers with a partition of the offsets topic, in which a coordinator writes."""

    place = OFFSETS

    def commit(self, leader=1):
        event = AppendInternal(1, OFFSETS, ListBatch(), 5 * SECOND)
        return self.tell(leader, event)

    def outcomes(self, broker=1):
        return [effect.error for effect in self.take(broker, InternalAppended)]

    def resigned(self, broker=1):
        return [e for e in self.take(broker, LeadershipApplied) if not e.is_leader]


def overtaken(**config):
    """A commit is in the log of the first broker alone; the second leads, and has written more."""
    bench = Commits(**config)
    bench.commit()
    bench.apply(state(leader=2, epoch=1, partition_epoch=1, in_sync=(2, 3)))
    for _ in range(3):
        bench.commit(leader=2)
    for _ in range(2):
        bench.carry(3)
    for _ in range(3):
        bench.carry(1)
    replica = bench.managers[1].replicas[OFFSETS]
    assert (replica.log.batches[0].leader_epoch, replica.high_watermark) == (1, 3)
    return bench


@pytest.mark.parametrize(("at_once", "error"), [(True, E.NOT_LEADER_OR_FOLLOWER), (False, E.NONE)])
def test_a_commit_that_was_cut_is_acknowledged_only_if_the_coordinator_is_unloaded_late(
    at_once, error
):
    bench = overtaken(unloads_at_once=at_once)
    assert bench.outcomes() == [error]
    assert len(bench.resigned()) == (1 if at_once else 0)
    assert bench.wake() == (0 if at_once else 1)
    assert len(bench.resigned()) == (0 if at_once else 1)
    assert bench.outcomes() == []


def test_what_no_high_watermark_has_passed_fails_when_the_coordinator_is_unloaded():
    bench = Commits(unloads_at_once=False)
    bench.commit()
    bench.apply(state(leader=2, epoch=1, partition_epoch=1))
    assert bench.outcomes() == []
    bench.wake()
    assert bench.outcomes() == [E.NOT_LEADER_OR_FOLLOWER]


def test_who_leads_again_lets_go_before_it_loads_anew():
    bench = Commits(unloads_at_once=False)
    bench.apply(state(leader=2, epoch=1, partition_epoch=1))
    bench.take(1, LeadershipApplied)
    bench.apply(state(leader=1, epoch=2, partition_epoch=2))
    assert [e.is_leader for e in bench.take(1, LeadershipApplied)] == [False, True]
    assert bench.wake() == 1
    assert bench.take(1, LeadershipApplied) == []


def test_produce_requests_of_clients_fail_at_once_however_late_coordinators_are():
    bench = Race(unloads_at_once=False)
    bench.write()
    bench.apply(state(leader=2, epoch=1, partition_epoch=1))
    assert [reply.token for reply in bench.take(1, fx.Reply)] == [900]
    assert bench.wake() == 0
