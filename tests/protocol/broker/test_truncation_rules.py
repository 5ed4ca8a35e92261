"""The truncation rules of older versions beside that of Kafka 4.1, as functions and as machines."""

from dataclasses import replace

import pytest

from sim.error_codes import ErrorCode
from sim.protocol import effects as fx
from sim.protocol.broker.replica import Replica, ReplicaConfig
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.replication.events import MetadataApplied, RegisteredWithEpoch
from sim.protocol.broker.replication.fetcher import Fetcher, FetcherConfig, FetchState
from sim.protocol.broker.replication.replica_manager import ReplicaManager
from sim.protocol.broker.truncation.registry import TRUNCATIONS
from sim.protocol.events import RequestFailed, RequestReceived, ResponseReceived, TimerFired
from sim.protocol.messages.data import FetchRequest, FetchResponse, FetchResult
from sim.protocol.messages.leader_epochs import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
)
from sim.protocol.ports import NO_EPOCH_END
from sim.units import SECOND
from tests.protocol.broker.replica_kit import P, ToyBatch, ToyLog, image, leader_log, state

KIP101, KIP279, HW, KIP320 = (TRUNCATIONS[n] for n in ("kip101", "kip279", "hw", "kip320"))


def replica(log, high_watermark=0):
    return Replica(P, 2, log, ReplicaConfig(), high_watermark)


def test_where_the_leader_knows_nothing_all_cut_at_the_high_watermark():
    follower = replica(ToyLog([(5, 0)], end=9), high_watermark=4)
    for rule in (KIP101, KIP279, KIP320):
        assert rule.cut_for(follower, NO_EPOCH_END) == (4, True)


@pytest.mark.parametrize(("name", "cut"), [("hw", 4), ("kip101", 9), ("kip279", 9), ("kip320", 9)])
def test_only_the_oldest_rule_cuts_at_the_high_watermark_before_anything_is_known(name, cut):
    follower = replica(ToyLog([(5, 0)], end=9), high_watermark=4)
    assert TRUNCATIONS[name].cut_before_fetching(follower) == cut
    without_epochs = replica(ToyLog(), high_watermark=0)
    without_epochs.log.batches = follower.log.batches
    without_epochs.high_watermark = 4
    assert TRUNCATIONS[name].cut_before_fetching(without_epochs) == 4


class Follower:
    """Broker 2 under a rule, following broker 1."""

    def __init__(self, rule, log, high_watermark=0):
        self.manager = ReplicaManager(
            2,
            ReplicaManagerConfig(truncation=TRUNCATIONS[rule]),
            lambda *_: log,
            {P: high_watermark},
        )
        self.log = log
        self.tell(RegisteredWithEpoch(102))
        self.tell(MetadataApplied(image(state(epoch=3)), (P,)))

    def tell(self, event, now=0):
        self.out = self.manager.handle(event, now)
        return self.out

    @property
    def sent(self):
        return [e for e in self.out if isinstance(e, fx.Send)]

    def answer(self, correlation, epoch, offset, error=ErrorCode.NONE):
        response = OffsetForLeaderEpochResponse(P, error, epoch, offset)
        return self.tell(ResponseReceived(1, correlation, response))


def test_a_follower_of_old_asks_first_and_then_fetches_without_epochs():
    follower = Follower("kip279", ToyLog([(1, 0), (2, 11)], end=16))
    (question,) = follower.sent
    assert question.request == OffsetForLeaderEpochRequest(P, 2, -1, 2)
    follower.answer(question.correlation, 1, 21)
    assert follower.log.log_end_offset == 11
    (fetch,) = follower.sent
    assert isinstance(fetch.request, FetchRequest)
    (asked,) = fetch.request.partitions
    assert (asked.fetch_offset, asked.leader_epoch, asked.last_fetched_epoch) == (11, -1, -1)


def test_todays_follower_fetches_at_once_with_both_epochs():
    follower = Follower("kip320", ToyLog([(1, 0), (2, 11)], end=16))
    (fetch,) = follower.sent
    (asked,) = fetch.request.partitions
    assert (asked.fetch_offset, asked.leader_epoch, asked.last_fetched_epoch) == (16, 3, 2)


class OldLog(ToyLog):
    """Holds batches against its end by their last offset."""

    def append_as_follower(self, batches):
        assert all(batch.last_offset >= self.log_end_offset for batch in batches)
        self.batches += batches
        return False


@pytest.mark.parametrize(
    ("rule", "last", "taken"),
    [("hw", 20, True), ("hw", 16, True), ("hw", 15, False), ("kip320", 20, False)],
)
def test_before_kip101_a_batch_that_begins_below_the_end_is_taken_if_it_ends_above(
    rule, last, taken
):
    """KAFKA-3919: the end, 16, lies within a batch of the leader, which serves all of it."""
    follower = Follower(rule, OldLog([(1, 0)], end=16), high_watermark=16)
    (fetch,) = follower.sent
    assert fetch.request.partitions[0].fetch_offset == 16
    served = ToyBatch(10, last, 3, record_count=last - 9)
    result = FetchResult(P, ErrorCode.NONE, 16, batches=(served,))
    out = follower.tell(
        ResponseReceived(1, fetch.correlation, FetchResponse(ErrorCode.NONE, 77, (result,)))
    )
    told = [e.row[3:5] for e in out if isinstance(e, fx.Emit) and e.table == "appends"]
    assert told == ([(10, last)] if taken else [])
    (again,) = follower.sent
    moved = [asked.fetch_offset for asked in again.request.partitions]
    assert moved == ([last + 1] if taken else []), "a session tells of what has changed"


@pytest.mark.parametrize("how", ["error", "failure"])
def test_a_question_without_an_answer_is_asked_again_after_the_back_off(how):
    follower = Follower("kip101", ToyLog([(1, 0)], end=16))
    (question,) = follower.sent
    if how == "error":
        follower.answer(question.correlation, -1, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    else:
        failure = RequestFailed(1, question.correlation, ErrorCode.NETWORK_EXCEPTION)
        follower.tell(failure)
    assert fx.SetTimer("epochs", SECOND) in follower.out
    assert not follower.sent, "nothing is fetched meanwhile"
    follower.tell(TimerFired("epochs"), now=SECOND)
    (again,) = follower.sent
    assert again.request == question.request


def test_an_answer_made_in_a_former_epoch_is_obeyed_before_kip320():
    """The defect that KIP-320 closes: the answer says nothing of the epoch it was made in."""
    follower = Follower("kip279", ToyLog([(1, 0), (2, 11)], end=16))
    (question,) = follower.sent
    follower.tell(MetadataApplied(image(state(epoch=4, partition_epoch=1)), (P,)))
    assert not follower.sent, "the question of epoch 3 is still on its way"
    follower.answer(question.correlation, 1, 5)
    assert follower.log.log_end_offset == 5


def leader_answer(request, rule="kip320"):
    log = leader_log()
    manager = ReplicaManager(
        1, ReplicaManagerConfig(truncation=TRUNCATIONS[rule]), lambda *_: log, {}
    )
    manager.handle(MetadataApplied(image(state(epoch=3)), (P,)), 0)
    (reply,) = [
        e
        for e in manager.handle(RequestReceived(1, "broker-2", request), 0)
        if isinstance(e, fx.Reply)
    ]
    return reply.response


def test_leaders_answer_the_question_and_fence_those_who_say_their_epoch():
    question = OffsetForLeaderEpochRequest(P, 2, -1, 2)
    answer = leader_answer(question)
    assert (answer.error, answer.leader_epoch, answer.end_offset) == (ErrorCode.NONE, 1, 21)
    assert leader_answer(question, "kip101").leader_epoch == -1
    old, new = (replace(question, current_leader_epoch=e) for e in (2, 4))
    assert leader_answer(old).error is ErrorCode.FENCED_LEADER_EPOCH
    assert leader_answer(new).error is ErrorCode.UNKNOWN_LEADER_EPOCH
    unknown = replace(question, partition=P._replace(partition=7))
    assert leader_answer(unknown).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_a_partition_left_out_for_a_question_is_not_forgotten_by_the_fetch_that_follows():
    fetcher = Fetcher(1, 0, FetcherConfig())
    fetcher.add(P, FetchState(5, 0, 0))
    fetcher.next_request(2, 102, 0)
    fetcher.answered(77)
    fetcher.delay(P, 1_000)
    assert fetcher.next_request(2, 102, 0) is None
    fetcher.moved(P, 3, 0)
    request = fetcher.next_request(2, 102, 0)
    assert [asked.fetch_offset for asked in request.partitions] == [3]
    assert request.forgotten == ()


def replicas(config, log=None, high_watermark=0):
    one = Replica(P, 1, log or ToyLog([(0, 0)], end=4), config, high_watermark)
    one.become_leader(state(epoch=1, in_sync=(1,)), 0)
    return one


def test_below_min_isr_the_high_watermark_stands_still_only_since_kafka_15583():
    gated = replicas(ReplicaConfig(min_insync_replicas=2))
    assert not gated.advance_high_watermark(image(), 0)
    free = replicas(ReplicaConfig(min_insync_replicas=2, gates_high_watermark=False))
    assert free.advance_high_watermark(image(), 0)
    assert free.high_watermark == 4


def test_a_follower_below_the_epochs_start_joins_only_before_kafka_7128():
    for config, joins in ((ReplicaConfig(), False), (ReplicaConfig(2, 0, True, False), True)):
        one = replicas(config)
        one.remotes[3].log_end_offset = 2
        assert (one.expand_isr(3, image()) is not None) is joins
