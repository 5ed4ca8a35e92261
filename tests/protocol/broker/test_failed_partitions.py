"""Followers with damage in the way of a truncation: Kafka's failed partitions (KIP-461)."""

import pytest

from sim.error_codes import ErrorCode
from sim.errors import CorruptRecord
from sim.protocol import effects as fx
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.replication.events import (
    MetadataApplied,
    RegisteredWithEpoch,
    StorageBroke,
)
from sim.protocol.broker.replication.replica_manager import ReplicaManager
from sim.protocol.broker.truncation.registry import TRUNCATIONS
from sim.protocol.events import RequestReceived, ResponseReceived, TimerFired
from sim.protocol.messages.data import (
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
)
from sim.protocol.messages.leader_epochs import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from sim.protocol.ports import EpochEnd
from sim.units import SECOND
from tests.protocol.broker.replica_kit import P, ToyBatch, ToyLog, image, state

END = 10


class DamagedLog(ToyLog):
    """Cuts as far as it can; then there is damage."""

    least = 0
    """Below this offset nothing can be cut."""
    damaged = True

    def truncate_to(self, offset):
        super().truncate_to(max(offset, self.least))
        if self.damaged:
            raise CorruptRecord("orders-0: the batch at 4812 declares -1369440245 bytes")

    def append_as_leader(self, batch, epoch, now_ms, guard=0):
        raise CorruptRecord("orders-0: the batch at 0 declares -1 bytes")


class Follower:
    """Broker 2 with ten records of epoch 0 follows broker 1, which is given by hand."""

    def __init__(self, rule="kip320", watermark=4, epochs=((0, 0),), **registration):
        self.log = DamagedLog(epochs, END)
        if not epochs:
            self.log.batches = ToyLog([(0, 0)], END).batches
        config = ReplicaManagerConfig(truncation=TRUNCATIONS[rule])
        self.manager = ReplicaManager(2, config, lambda *_: self.log, {P: watermark})
        self.now = 0
        self.tell(RegisteredWithEpoch(102))
        self.apply(**registration)

    def apply(self, epoch=1, partition_epoch=1, in_sync=(1,), **more):
        registration = state(epoch=epoch, partition_epoch=partition_epoch, in_sync=in_sync, **more)
        self.tell(MetadataApplied(image(registration), (P,)))

    def tell(self, event):
        self.out = self.manager.handle(event, self.now)

    def sent(self, kind):
        return [e for e in self.out if isinstance(e, fx.Send) and isinstance(e.request, kind)]

    def fetch(self):
        (send,) = self.sent(FetchRequest)
        return send

    def answer(self, send, response):
        self.tell(ResponseReceived(1, send.correlation, response))

    def diverge(self, at=6):
        result = FetchResult(P, ErrorCode.NONE, diverging=EpochEnd(0, at))
        self.answer(self.fetch(), FetchResponse(ErrorCode.NONE, 7, (result,)))

    def cuts(self):
        return [e.row for e in self.out if isinstance(e, fx.Emit) and e.table == "truncations"]


def is_left_alone(follower):
    """It does not fetch, and its log directory is online."""
    follower.now += 60 * SECOND
    follower.tell(TimerFired("fetcher/1/0"))
    return not follower.sent(FetchRequest)


def test_a_diverging_log_that_cannot_be_cut_is_not_fetched_and_its_directory_stays_online():
    follower = Follower()
    follower.diverge()
    assert not [e for e in follower.out if isinstance(e, StorageBroke)]
    assert follower.log.log_end_offset == 6
    assert follower.manager.replicas[P].high_watermark == 4
    assert [row[3:5] for row in follower.cuts()] == [(END, 6)]
    assert not follower.sent(FetchRequest)
    assert is_left_alone(follower)


def test_the_next_leader_epoch_takes_a_failed_partition_up_again_and_a_change_of_the_isr_does_not():
    follower = Follower()
    follower.diverge()
    follower.apply(partition_epoch=2, in_sync=(1, 3))
    assert not follower.sent(FetchRequest)
    follower.log.damaged = False
    follower.apply(epoch=2, partition_epoch=3)
    (asked,) = follower.fetch().request.partitions
    assert asked.fetch_offset == 6


def test_what_damage_has_kept_is_no_truncation_and_the_high_watermark_is_in_the_log():
    follower = Follower(watermark=9)
    follower.log.least = END
    follower.diverge()
    assert (follower.log.log_end_offset, follower.cuts()) == (END, [])
    assert follower.manager.replicas[P].high_watermark == 9
    follower = Follower(watermark=9)
    follower.diverge()
    assert follower.manager.replicas[P].high_watermark == 6


@pytest.mark.parametrize(("rule", "epochs"), [("hw", ((0, 0),)), ("kip320", ())])
def test_a_log_that_cannot_be_cut_before_the_first_fetch_fails_the_same_way(rule, epochs):
    """By the high watermark: before KIP-101, and where a log has no epochs."""
    follower = Follower(rule, epochs=epochs)
    assert [row[3:5] for row in follower.cuts()] == [(END, 4)]
    assert not follower.sent(FetchRequest)
    follower.log.damaged = False
    follower.apply(epoch=2, partition_epoch=2)
    follower.fetch()


@pytest.mark.parametrize("rule", ["kip101", "kip279"])
def test_a_log_that_cannot_be_cut_where_its_leader_said_fails_the_same_way(rule):
    follower = Follower(rule)
    (asked,) = follower.sent(OffsetForLeaderEpochRequest)
    answer = OffsetForLeaderEpochResponse(P, ErrorCode.NONE, 0, 6)
    follower.answer(asked, answer)
    assert follower.log.log_end_offset == 6
    assert not follower.sent(FetchRequest)
    assert not follower.sent(OffsetForLeaderEpochRequest)
    assert is_left_alone(follower)


def test_out_of_range_it_is_tried_again_after_the_back_off():
    """Source: ``AbstractFetcherThread.handleOutOfRangeError``: an error there delays, no more."""
    follower = Follower()
    result = FetchResult(P, ErrorCode.OFFSET_OUT_OF_RANGE)
    follower.answer(follower.fetch(), FetchResponse(ErrorCode.NONE, 7, (result,)))
    (asked,) = follower.sent(ListOffsetsRequest)
    follower.answer(asked, ListOffsetsResponse(P, ErrorCode.NONE, 7))
    assert [row[3:5] for row in follower.cuts()] == [(END, 7)]
    assert not follower.sent(FetchRequest)
    follower.now += SECOND
    follower.tell(TimerFired("fetcher/1/0"))
    (again,) = follower.fetch().request.partitions
    assert again.fetch_offset == 7


def test_a_leader_whose_own_segment_is_damaged_answers_corrupt_message_and_stays_online():
    """Source: ``ReplicaManager.appendToLocalLog``: a ``CorruptRecordException`` is the answer."""
    leader = Follower(leader=2, in_sync=(1, 2, 3))
    request = ProduceRequest(1, 30 * SECOND, ((P, ToyBatch()),))
    leader.tell(RequestReceived(900, "shop", request))
    (reply,) = [e for e in leader.out if isinstance(e, fx.Reply)]
    assert [each.error for each in reply.response.results] == [ErrorCode.CORRUPT_MESSAGE]
    assert not [e for e in leader.out if isinstance(e, StorageBroke)]
