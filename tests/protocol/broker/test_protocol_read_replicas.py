"""The closest replica (KIP-392): whom leaders name, what followers serve, where consumers go."""

from dataclasses import replace
from itertools import pairwise

import pytest

from sim.error_codes import ErrorCode as E
from sim.ids import NO_LEADER, TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replica import FetchClock
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.replication.leader.read_replicas import preferred_read_replica
from sim.protocol.events import RequestReceived
from sim.protocol.messages.data import FetchPartition, FetchRequest, FetchResponse, FetchResult
from sim.units import MS, SECOND
from tests.protocol.broker.replica_kit import Bench, P, image, state
from tests.protocol.coordinator.group_bench import Bench as Table

RACKS = {1: "a", 2: "b", 3: "c"}


def in_racks(racks=RACKS, fenced=(), **said):
    made = image(state(**said), fenced)
    for broker, rack in racks.items():
        made.brokers[broker] = replace(made.brokers[broker], rack=rack)
    return made


class Racks(Bench):
    """Three brokers in three racks; the first leads and sends consumers away if told to."""

    def __init__(self, *, selects=True, **said):
        super().__init__(**said)
        for manager in self.managers.values():
            manager.fetch._selects = selects
            manager.hosted.image = in_racks()

    def read(self, broker, rack="c", offset=0, epoch=0, wait=500 * MS):
        """A consumer's first fetch; its answer, or ``None`` if it waits."""
        asked = (FetchPartition(P, offset, epoch),)
        request = FetchRequest(-1, -1, wait, 1, 1 << 20, 0, 0, asked, (), rack)
        effects = self.tell(broker, RequestReceived(77, "reader", request))
        found = [e.response for e in effects if isinstance(e, fx.Reply) and e.token == 77]
        return found[0].results[0] if found and found[0].results else None


# -- whom the leader names ------------------------------------------------------------------------


def told(bench):
    bench.produce(acks=1)
    bench.settle()
    return bench


def test_a_consumer_is_sent_at_once_to_the_replica_in_its_rack():
    bench = told(Racks())
    assert (bench.read(1).preferred, bench.read(1).batches) == (3, ())
    assert bench.read(1, "b").preferred == 2


@pytest.mark.parametrize("rack", ["a", "nowhere", ""])
def test_otherwise_the_leader_serves(rack):
    answer = told(Racks()).read(1, rack)
    assert answer.preferred == NO_LEADER
    assert len(answer.batches) == 1


def test_without_the_selector_the_leader_serves_everybody():
    answer = told(Racks(selects=False)).read(1)
    assert (answer.preferred, len(answer.batches)) == (NO_LEADER, 1)
    assert ReplicaManagerConfig().rack_aware_reads is False


def leader(ends, caught_up=(0, 0, 0), in_sync=(1, 2, 3)):
    """The leader with followers at these log ends, caught up at these instants."""
    bench = Racks(in_sync=in_sync)
    replica = bench.managers[1].replicas[P]
    for broker, end, at in zip((1, 2, 3), ends, caught_up, strict=True):
        if broker == 1:
            continue
        remote = replica.remotes[broker]
        remote.log_end_offset, remote.last_caught_up_us, remote.clock = end, at, None
        remote.log_start_offset = 0
    return replica


SAME = {1: "a", 2: "c", 3: "c"}


@pytest.mark.parametrize(
    ("said", "racks", "offset", "chosen"),
    [
        ({"ends": (9, 9, 9), "in_sync": (1, 2)}, RACKS, 0, NO_LEADER),
        ({"ends": (9, 9, 4)}, RACKS, 5, NO_LEADER),
        ({"ends": (9, 9, 5)}, RACKS, 5, 3),
        ({"ends": (9, 7, 6)}, SAME, 5, 2),
        ({"ends": (9, 7, 7), "caught_up": (0, 5 * MS, 4 * MS)}, SAME, 5, 2),
        ({"ends": (9, 7, 7), "caught_up": (0, 4 * MS + 900, 4 * MS)}, SAME, 5, 3),
        ({"ends": (9, 7, 7)}, {1: "c", 2: "c", 3: "c"}, 5, NO_LEADER),
    ],
)
def test_members_of_the_isr_that_have_the_offset_are_chosen_by_log_and_time(
    said, racks, offset, chosen
):
    assert preferred_read_replica(leader(**said), in_racks(racks), "c", offset) == chosen


def test_an_offset_that_the_follower_has_deleted_already_stays_with_the_leader():
    replica = leader((9, 9, 9))
    replica.remotes[3].log_start_offset = 4
    assert preferred_read_replica(replica, in_racks(), "c", 3) == NO_LEADER
    assert preferred_read_replica(replica, in_racks(), "c", 4) == 3


def test_nobody_is_sent_to_a_fenced_broker():
    assert preferred_read_replica(leader((9, 9, 9)), in_racks(fenced=(3,)), "c", 0) == NO_LEADER


def test_a_fetch_that_does_not_list_the_partition_counts_as_caught_up():
    replica = leader((0, 0, 0), (0, 3 * MS, 1 * MS))
    replica.remotes[3].clock = FetchClock()
    replica.remotes[3].clock.last_fetch_us = 7 * MS
    assert replica.log.log_end_offset == 0
    assert preferred_read_replica(replica, in_racks(SAME), "c", 0) == 3


# -- what a follower serves -----------------------------------------------------------------------


def test_a_follower_serves_what_it_knows_to_be_committed():
    bench = told(Racks())
    follower = bench.managers[3].replicas[P]
    bench.produce(acks=1)
    bench.carry(3)  # it has the second record, and does not know yet that it is committed
    assert (follower.log.log_end_offset, follower.high_watermark) == (2, 1)
    answer = bench.read(3)
    assert (len(answer.batches), answer.high_watermark) == (1, 1)


def test_a_position_between_its_high_watermark_and_its_end_waits_and_one_beyond_is_out_of_range():
    bench = told(Racks())
    bench.produce(acks=1)
    bench.carry(3)
    assert bench.read(3, offset=2, wait=0).batches == ()
    assert bench.read(3, offset=3).error is E.OFFSET_OUT_OF_RANGE


def test_a_waiting_reader_is_woken_when_the_follower_learns_of_a_commit():
    bench = told(Racks())
    bench.read(3, offset=1)
    for _ in range(2):  # that the first is committed comes with the second
        bench.produce(acks=1)
        bench.settle()
    (answer,) = [e.response for e in bench.out[3] if isinstance(e, fx.Reply) and e.token == 77]
    assert [b.base_offset for b in answer.results[0].batches] == [1]


def test_epochs_are_looked_at_before_leadership():
    bench = told(Racks())
    assert bench.read(3, epoch=1).error is E.UNKNOWN_LEADER_EPOCH
    bench.apply(state(leader=2, epoch=1, partition_epoch=1))
    assert bench.read(3, epoch=0).error is E.FENCED_LEADER_EPOCH
    assert bench.read(1, epoch=0).error is E.FENCED_LEADER_EPOCH


def test_who_does_not_have_the_partition_says_so():
    bench = Racks()
    del bench.managers[3].replicas[P]
    assert bench.read(3).error is E.NOT_LEADER_OR_FOLLOWER


# -- where consumers go ---------------------------------------------------------------------------

ORDERS = TopicPartition("orders", 0)


class Sending(Table):
    """Broker 1 leads and sends its consumer to broker 2, which serves or says an error."""

    def __init__(self, **settings):
        super().__init__({"orders": 1})
        self.sends = True
        self.follower_error = E.NONE
        self.asked = []
        told = {"group_id": "", "auto_offset_reset": "earliest", "client_rack": "c"} | settings
        self.consumer("a", **told)

    def _serve(self, asker, effect, session, deadline):
        if session:
            self.asked.append((self.now, effect.to))
        result = None
        if self.leader_of(ORDERS) == effect.to and self.sends and session:
            result = FetchResult(ORDERS, E.NONE, self.end_of(ORDERS), 0, preferred=2)
        elif effect.to == 2 and self.follower_error is not E.NONE and session:
            result = FetchResult(ORDERS, self.follower_error)
        if result is not None and not self.brokers[effect.to].dead:
            self._answer(asker, effect, FetchResponse(E.NONE, 7, (result,)))
            return
        leaders, self.leaders = self.leaders, {**self.leaders, ORDERS: effect.to}
        super()._serve(asker, effect, session, deadline)
        self.leaders = leaders

    def read(self):
        return [o for _, _, d in self.delivered for o in range(d.base_offset, d.last_offset + 1)]

    def whom(self, start, end):
        return [to for at, to in self.asked if start <= at < end]


def test_a_consumer_goes_where_the_leader_sends_it_and_stays_there():
    table = Sending()
    table.run(SECOND)
    for _ in range(3):
        table.produce(ORDERS, 2)
        table.run(table.now + SECOND)
    assert table.read() == list(range(6))
    assert table.asked[0][1] == 1
    assert set(table.whom(100 * MS, 10 * SECOND)) == {2}
    assert {d.read_from for _, _, d in table.delivered} == {2}


def test_when_the_lease_ends_the_leader_is_asked_again():
    table = Sending(metadata_age_us_max=2 * SECOND)
    table.run(7 * SECOND)
    asked = [at for at, to in table.asked if to == 1]
    assert len(asked) == 4
    assert all(2 * SECOND <= b - a < 3 * SECOND for a, b in pairwise(asked))


@pytest.mark.parametrize(
    "error", [E.OFFSET_OUT_OF_RANGE, E.NOT_LEADER_OR_FOLLOWER, E.FENCED_LEADER_EPOCH]
)
def test_an_error_of_the_replica_sends_the_consumer_back_to_the_leader(error):
    table = Sending()
    table.produce(ORDERS, 3)
    table.run(SECOND)
    table.follower_error = error
    table.sends = False
    table.run(2 * SECOND)
    table.produce(ORDERS, 3)
    table.run(4 * SECOND)
    assert set(table.whom(2 * SECOND, 4 * SECOND)) == {1}
    assert table.read() == list(range(6))  # it did not begin anew, out of range or not


def test_an_epoch_that_the_replica_does_not_know_yet_is_tried_again_there():
    table = Sending()
    table.run(SECOND)
    table.follower_error = E.UNKNOWN_LEADER_EPOCH
    table.run(SECOND + 20 * MS)
    assert set(table.whom(SECOND, 2 * SECOND)) == {2}


def test_a_dead_replica_sends_the_consumer_back_to_the_leader():
    table = Sending()
    table.produce(ORDERS, 3)
    table.run(SECOND)
    table.sends = False
    table.brokers[2].dead = True
    table.produce(ORDERS, 3)
    table.run(4 * SECOND)
    assert table.read() == list(range(6))
    assert set(table.whom(2 * SECOND, 4 * SECOND)) == {1}


def test_a_replica_that_is_offline_by_the_metadata_is_not_asked():
    table = Sending()
    table.brokers[2].dead = True
    table.run(3 * SECOND)
    assert 2 not in table.whom(0, 3 * SECOND)


def test_another_leader_chooses_anew():
    table = Sending()
    table.run(SECOND)
    metadata = table.consumers["a"].machine._metadata
    known = metadata.leader(ORDERS)
    assert metadata.take_hint(ORDERS, replace(known, leader_epoch=known.leader_epoch + 1))
    table.consumers["a"].machine._positions.rearranged()
    table.run(3 * SECOND)
    assert 1 in table.whom(SECOND, 3 * SECOND)


def test_a_consumer_that_is_alone_with_its_leader_asks_nobody_else():
    table = Sending()
    table.sends = False
    table.produce(ORDERS, 3)
    table.run(2 * SECOND)
    assert set(table.whom(0, 2 * SECOND)) == {1}
    assert table.read() == [0, 1, 2]
