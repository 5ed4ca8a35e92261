"""Fixes of the ISR one at a time: KAFKA-7164, KIP-903, KAFKA-15221, KAFKA-15021."""

import pytest

from sim.error_codes import ErrorCode as E
from sim.protocol.broker.replica import ReplicaConfig
from sim.protocol.broker.truncation.new_epoch import NewEpoch
from sim.protocol.broker.truncation.registry import TRUNCATIONS
from sim.protocol.effects import Send
from sim.protocol.events import RequestReceived
from sim.protocol.messages.cluster import AlterPartitionItem, AlterPartitionRequest, IsrMember
from sim.protocol.messages.data import FetchPartition, FetchRequest
from sim.protocol.messages.leader_epochs import OffsetForLeaderEpochRequest
from tests.protocol.broker.replica_kit import Bench, P, ToyLog, image, state
from tests.protocol.controller.controller_kit import ORDERS, SECOND, Desk

# -- a leader that leads again (KAFKA-7164) -------------------------------------------------------


def look_up(bench, broker=2):
    """Carry the follower's OffsetForLeaderEpoch requests; their number."""
    taken = bench.take(broker, Send)
    sends = [s for s in taken if isinstance(s.request, OffsetForLeaderEpochRequest)]
    bench.out[broker] += [s for s in taken if s not in sends]
    for send in sends:
        token = 5_000 + send.correlation
        bench.open = {**getattr(bench, "open", {}), token: (broker, send)}
        bench.tell(send.to, RequestReceived(token, f"broker-{broker}", send.request))
    bench.answers()
    return len(sends)


@pytest.mark.parametrize(
    ("rule", "next_one", "after_next"),
    [
        (NewEpoch.EACH, True, True),
        (NewEpoch.MISSED, False, True),
        (NewEpoch.ANOTHER_LEADER, False, False),
    ],
)
def test_a_follower_asks_where_to_cut_at_the_epochs_of_its_rule(rule, next_one, after_next):
    for epoch, asks in ((1, next_one), (2, after_next)):
        bench = Bench(
            log=lambda: ToyLog([(0, 0)], 10), truncation=TRUNCATIONS["kip101"], new_epoch=rule
        )
        assert look_up(bench)  # it follows for the first time
        bench.apply(state(epoch=epoch, partition_epoch=epoch))
        assert bool(look_up(bench)) is asks


@pytest.mark.parametrize(("rule", "parts"), [(NewEpoch.EACH, 0), (NewEpoch.ANOTHER_LEADER, 2)])
def test_a_follower_that_missed_the_epoch_in_between_keeps_what_the_leader_has_cut(rule, parts):
    """Its leader has lost two records, and leads again; before, another one led unheard of."""
    bench = Bench(
        log=lambda: ToyLog([(0, 0)], 10), truncation=TRUNCATIONS["kip101"], new_epoch=rule
    )
    look_up(bench)
    bench.logs[1].truncate_to(8)
    bench.apply(state(epoch=2, partition_epoch=2))
    look_up(bench)
    assert bench.logs[2].log_end_offset == 8 + parts


def test_a_follower_that_fetches_on_does_so_in_the_new_epoch():
    bench = Bench(new_epoch=NewEpoch.ANOTHER_LEADER)
    bench.settle()
    bench.apply(state(epoch=1, partition_epoch=1))
    bench.produce(acks=1)
    bench.settle()
    assert bench.managers[2].replicas[P].leader_epoch == 1
    assert bench.logs[2].log_end_offset == bench.logs[1].log_end_offset == 1


# -- processes in the ISR (KIP-903, KAFKA-15221) ---------------------------------------------------


def late_fetch(bench, offset, epoch):
    """A fetch of broker 2's process of that broker epoch, at that offset."""
    request = FetchRequest(2, epoch, 0, 0, 1_000, 0, 0, (FetchPartition(P, offset, 0, 0),))
    bench.tell(1, RequestReceived(7_000, "broker-2", request))


@pytest.mark.parametrize(("checked", "joins"), [(True, False), (False, True)])
def test_what_a_former_process_has_fetched_lets_the_next_one_join_only_before_kip903(
    checked, joins
):
    bench = Bench(in_sync=(1, 3), checks_broker_epochs=checked)
    replica = bench.managers[1].replicas[P]
    bench.logs[1].batches = ToyLog([(0, 0)], 10).batches
    replica.remotes[2].fetched(10, 10, 1, 55)  # it has epoch 102 by now
    item = replica.expand_isr(2, image(state(in_sync=(1, 3))))
    assert (item is not None) is joins
    if item is not None:
        assert [member.broker_epoch for member in item.in_sync] == [-1, -1, -1]


@pytest.mark.parametrize(("epoch", "error"), [(99, E.INELIGIBLE_REPLICA), (-1, E.NONE)])
def test_the_controller_refuses_a_former_process_and_nobody_whose_process_is_not_named(
    epoch, error
):
    desk = Desk(checks_eligibility=False)
    desk.create()
    found = desk.state()
    members = tuple(IsrMember(broker, epoch if broker == 3 else -1) for broker in (1, 2, 3))
    item = AlterPartitionItem(ORDERS, found.leader_epoch, found.partition_epoch, members)
    answer = desk.ask(AlterPartitionRequest(found.leader, desk.epochs[found.leader], (item,)))
    assert answer.results[0].error is error


@pytest.mark.parametrize("refused", [True, False])
def test_a_late_fetch_of_a_former_process_moves_the_high_watermark_only_before_3_7(refused):
    bench = Bench(in_sync=(1, 2), refuses_former_process=refused)
    bench.logs[1].batches = ToyLog([(0, 0)], 10).batches
    bench.managers[1].replicas[P].remotes[3].fetched(10, 10, 1, 103)
    late_fetch(bench, 10, epoch=55)
    assert bench.managers[1].replicas[P].high_watermark == (0 if refused else 10)


# -- who is waited for, and when an epoch begins (KAFKA-15021) -------------------------------------


@pytest.mark.parametrize(("eligible", "moved"), [(True, True), (False, False)])
def test_the_high_watermark_waits_for_a_fenced_follower_only_before_3_6(eligible, moved):
    bench = Bench(in_sync=(1, 2))
    replica = bench.managers[1].replicas[P]
    replica.config = ReplicaConfig(1, waits_for_eligible=eligible)
    bench.logs[1].batches = ToyLog([(0, 0)], 10).batches
    now = image(state(in_sync=(1, 2)), fenced=(3,))
    replica.remotes[2].fetched(10, 10, 1, 102)
    replica.remotes[3].fetched(0, 0, 1, 103)
    assert replica.advance_high_watermark(now, 1) is moved
    assert replica.expand_isr(3, now) is None  # it may not join in either case


def wish(desk, *members):
    """The leader's wish for an ISR, and what comes of it."""
    found = desk.state()
    asked = tuple(IsrMember(broker, -1) for broker in members)
    item = AlterPartitionItem(ORDERS, found.leader_epoch, found.partition_epoch, asked)
    desk.ask(AlterPartitionRequest(1, desk.epochs[1], (item,)))
    assert desk.state().in_sync == members
    return desk.state().leader_epoch


@pytest.mark.parametrize(
    ("bumps", "leaders"), [(False, False), (True, False), (True, True)], ids=["3.6", "2.8", "3.0"]
)
def test_a_smaller_isr_begins_a_leader_epoch_and_a_greater_one_none(bumps, leaders):
    desk = Desk(bumps_on_shrink=bumps, bumps_for_leaders=leaders)
    desk.create()
    first = desk.state().leader_epoch
    desk.pass_time(13 * SECOND, alive=(1, 2))
    found = desk.state()
    assert (found.leader, found.in_sync) == (1, (1, 2))
    assert found.leader_epoch == first + bumps
    desk.beat(3)
    assert wish(desk, 1, 2, 3) == first + bumps
    assert wish(desk, 1, 2) == first + bumps + leaders  # it lags, says the leader
