"""The replica's rules against the vectors of Kafka's semantics, machine alone, no time passing."""

import pytest

from sim.error_codes import ErrorCode
from sim.errors import CorruptRecord, StorageFailed
from sim.ids import TopicPartition
from sim.protocol import effects as fx
from sim.protocol.broker.replica import Replica, ReplicaConfig
from sim.protocol.broker.replication.events import MetadataApplied
from sim.protocol.events import Flushed, RequestReceived, ResponseReceived, TimerFired
from sim.protocol.messages.cluster import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
)
from sim.protocol.messages.data import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchResult,
    ListOffsetsRequest,
)
from sim.protocol.ports import EpochEnd
from sim.units import MS, SECOND
from tests.protocol.broker.replica_kit import Bench, P, ToyLog, image, state


def leader_of(log, in_sync=(1, 2, 3), min_insync=2):
    replica = Replica(P, 1, log, ReplicaConfig(min_insync), 0)
    replica.become_leader(state(epoch=1, in_sync=in_sync), 0)
    return replica


# -- last caught up -------------------------------------------------------------------------------


def test_last_caught_up_follows_the_vector_of_fetches():
    log = ToyLog([(0, 0)], 10)
    replica = leader_of(log)
    follower = replica.remotes[2]
    seen = []
    for offset, end, second in ((8, 10, 1), (10, 15, 2), (12, 20, 3), (20, 20, 4)):
        follower.fetched(offset, end, second * SECOND, 102)
        seen.append(follower.last_caught_up_us // SECOND)
    assert seen == [0, 1, 1, 4]


# -- high watermark -------------------------------------------------------------------------------


def test_high_watermark_waits_for_a_caught_up_replica_outside_the_isr():
    replica = leader_of(ToyLog([(0, 0)], 10), in_sync=(1, 2))
    replica.remotes[2].log_end_offset = 8
    replica.remotes[3].log_end_offset = 5
    replica.remotes[3].last_caught_up_us = 0
    assert replica.advance_high_watermark(image(), 1 * SECOND)
    assert replica.high_watermark == 5


def test_high_watermark_does_not_wait_for_a_lagging_or_fenced_replica_outside_the_isr():
    replica = leader_of(ToyLog([(0, 0)], 10), in_sync=(1, 2))
    replica.remotes[2].log_end_offset = 8
    replica.remotes[3].log_end_offset = 5
    assert replica.advance_high_watermark(image(), 31 * SECOND)
    assert replica.high_watermark == 8


def test_high_watermark_is_frozen_below_min_isr():
    replica = leader_of(ToyLog([(0, 0)], 10), in_sync=(1,))
    replica.remotes[2].log_end_offset = replica.remotes[3].log_end_offset = 10
    assert not replica.advance_high_watermark(image(), 0)


def test_high_watermark_waits_for_the_replica_that_is_being_added():
    replica = leader_of(ToyLog([(0, 0)], 10), in_sync=(1, 2))
    replica.remotes[2].log_end_offset = 8
    replica.remotes[3].log_end_offset = 7
    replica.maximal_in_sync = (1, 2, 3)
    assert replica.advance_high_watermark(image(), 60 * SECOND)
    assert replica.high_watermark == 7


def test_an_isr_member_unknown_since_the_election_holds_the_high_watermark_back():
    replica = leader_of(ToyLog([(0, 0)], 10))
    replica.remotes[2].log_end_offset = 10
    assert not replica.advance_high_watermark(image(), 0)


# -- divergence -----------------------------------------------------------------------------------


def follow_until_settled(leader_log, follower_log):
    """Fetch, diverge, truncate, fetch again; returns (asked, answered) pairs."""
    leader = leader_of(leader_log)
    leader.log.epochs.pop()  # the vectors' leaders have no epoch of their own
    follower = Replica(P, 2, follower_log, ReplicaConfig(), 0)
    conversation = []
    while True:
        end, epoch = follower_log.log_end_offset, follower_log.latest_epoch
        answer = leader.divergence(FetchPartition(P, end, 1, epoch))
        conversation.append(((end, epoch), answer))
        if answer is None:
            return conversation
        offset, _ = follower.truncate_for(answer, end)
        follower.truncate_to(offset)


def test_divergence_in_one_step():
    talk = follow_until_settled(ToyLog([(0, 0), (2, 5)], 8), ToyLog([(0, 0), (1, 5)], 9))
    assert talk == [((9, 1), EpochEnd(0, 5)), ((5, 0), None)]


def test_divergence_over_several_epochs_takes_several_fetches():
    talk = follow_until_settled(ToyLog([(1, 0), (4, 10)], 12), ToyLog([(0, 0), (2, 6)], 9))
    assert talk == [((9, 2), EpochEnd(1, 10)), ((6, 0), EpochEnd(0, 0)), ((0, -1), None)]


def test_divergence_truncates_to_the_followers_own_end_of_the_epoch():
    talk = follow_until_settled(ToyLog([(0, 0), (3, 10)], 12), ToyLog([(0, 0), (1, 4), (2, 8)], 11))
    assert talk == [((11, 2), EpochEnd(0, 10)), ((4, 0), None)]


# -- a whole broker -------------------------------------------------------------------------------


def result_of(reply):
    return reply.response.results[0]


def test_acks_all_is_answered_only_after_every_isr_member_has_fetched_past_the_record():
    bench = Bench()
    bench.settle()
    bench.produce()
    assert bench.replies() == []
    bench.answers()  # both parked fetches bring the record to the followers
    bench.carry(2)
    assert bench.replies() == []
    bench.carry(3)
    (reply,) = bench.replies()
    assert result_of(reply).error is ErrorCode.NONE
    assert result_of(reply).base_offset == 0
    assert bench.managers[1].replicas[P].high_watermark == 1


def test_acks_1_is_answered_at_once_and_promises_nothing():
    bench = Bench()
    bench.produce(acks=1)
    (reply,) = bench.replies()
    assert result_of(reply).error is ErrorCode.NONE
    assert bench.managers[1].replicas[P].high_watermark == 0


def test_acks_0_gets_no_answer_and_an_error_closes_the_connection():
    bench = Bench()
    bench.produce(acks=0)
    (reply,) = bench.replies()
    assert reply.response is None
    assert not reply.close
    bench.produce(acks=0, leader=2)
    (reply,) = bench.replies(2)
    assert reply.close


def test_acks_all_below_min_isr_appends_nothing():
    bench = Bench(in_sync=(1,))
    bench.produce()
    (reply,) = bench.replies()
    assert result_of(reply).error is ErrorCode.NOT_ENOUGH_REPLICAS
    assert bench.logs[1].log_end_offset == 0
    bench.produce(acks=1)
    assert bench.logs[1].log_end_offset == 1


def test_a_parked_produce_times_out_and_its_record_stays():
    bench = Bench()
    bench.produce()
    bench.now = 30 * SECOND
    bench.tell(1, TimerFired("produce"))
    (reply,) = bench.replies()
    assert result_of(reply).error is ErrorCode.REQUEST_TIMED_OUT
    assert bench.logs[1].log_end_offset == 1


def test_a_deposed_leader_fails_parked_requests_and_hints_at_the_new_one():
    bench = Bench()
    bench.produce()
    bench.apply(state(leader=2, epoch=1, partition_epoch=1))
    (reply,) = bench.replies()
    assert result_of(reply).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert result_of(reply).hint.leader == 2


def test_with_flush_messages_nothing_happens_before_the_fsync_is_done():
    bench = Bench(flush_due=True)
    bench.settle()
    bench.produce(acks=1)
    (flush,) = bench.take(1, fx.Flush)
    assert bench.replies() == []
    bench.tell(1, Flushed(flush.token))
    assert len([r for r in bench.replies() if r.token == 900]) == 1


def test_a_follower_learns_the_final_high_watermark_with_its_next_answer():
    bench = Bench()
    bench.settle()
    bench.produce()
    bench.answers()
    bench.carry(2)
    bench.carry(3)
    assert bench.managers[2].replicas[P].high_watermark == 0
    bench.now += 500 * MS
    bench.tell(1, TimerFired("fetch"))
    bench.answers()
    assert bench.managers[2].replicas[P].high_watermark == 1


def test_a_late_answer_to_a_fetch_of_a_former_epoch_is_dropped():
    bench = Bench()
    bench.settle()
    bench.produce(acks=1)
    late = [r for r in bench.out[1] if isinstance(r, fx.Reply) and r.token in bench.open]
    broker, send = bench.open[late[0].token]
    bench.apply(state(leader=3, epoch=1, partition_epoch=1, in_sync=(2, 3)), brokers=(broker,))
    end = bench.logs[broker].log_end_offset
    bench.tell(broker, ResponseReceived(send.to, send.correlation, late[0].response))
    assert bench.logs[broker].log_end_offset == end == 0


def test_a_follower_with_a_stale_epoch_is_fenced_and_one_from_the_future_is_told_to_wait():
    bench = Bench()
    for epoch, error in ((-1, None), (5, ErrorCode.UNKNOWN_LEADER_EPOCH)):
        request = FetchRequest(2, 102, 0, 1, 1 << 20, 0, 0, (FetchPartition(P, 0, epoch, -1),))
        bench.tell(1, RequestReceived(77, "broker-2", request))
        (reply,) = bench.replies()
        if error is not None:
            assert reply.response.results[0].error is error


def test_a_follower_that_caught_up_is_proposed_for_the_isr_and_joins_when_the_controller_agrees():
    bench = Bench(in_sync=(1, 2))
    bench.settle()
    (send,) = [s for s in bench.take(1, fx.Send) if isinstance(s.request, AlterPartitionRequest)]
    item = send.request.items[0]
    assert [m.broker for m in item.in_sync] == [1, 2, 3]
    assert bench.managers[1].replicas[P].maximal_in_sync == (1, 2, 3)
    result = AlterPartitionResult(P, ErrorCode.NONE, 1, 0, (1, 2, 3), 1)
    bench.tell(
        1,
        ResponseReceived(3001, send.correlation, AlterPartitionResponse(ErrorCode.NONE, (result,))),
    )
    assert bench.managers[1].replicas[P].in_sync == (1, 2, 3)


def test_a_fenced_follower_is_not_proposed():
    bench = Bench(in_sync=(1, 2))
    bench.apply(state(in_sync=(1, 2), partition_epoch=1), fenced=(3,))
    bench.settle()
    assert not [
        s for s in bench.out[1] if isinstance(getattr(s, "request", None), AlterPartitionRequest)
    ]


def test_a_silent_follower_leaves_the_isr_after_the_lag_time_and_an_idle_one_does_not():
    bench = Bench()
    bench.settle()
    bench.produce(acks=1)
    bench.answers()
    bench.carry(2)  # broker 3 falls silent with one record missing
    bench.now = 45 * SECOND
    bench.tell(1, TimerFired("isr-shrink"))
    (send,) = [s for s in bench.take(1, fx.Send) if isinstance(s.request, AlterPartitionRequest)]
    assert [m.broker for m in send.request.items[0].in_sync] == [1, 2]


def test_who_caught_up_before_its_removal_was_agreed_on_is_proposed_with_its_next_fetch():
    bench = Bench()
    bench.settle()
    bench.produce(acks=1)
    bench.carry(2)  # broker 3 falls silent with one record missing
    bench.now = 45 * SECOND
    bench.tell(1, TimerFired("isr-shrink"))
    (send,) = [s for s in bench.take(1, fx.Send) if isinstance(s.request, AlterPartitionRequest)]
    for _ in range(3):  # until its fetches have nothing more to list
        bench.carry(3)
        bench.now += SECOND
        bench.tell(1, TimerFired("fetch"))
        bench.answers()
    result = AlterPartitionResult(P, ErrorCode.NONE, 1, 0, (1, 2), 1)
    bench.tell(
        1,
        ResponseReceived(3001, send.correlation, AlterPartitionResponse(ErrorCode.NONE, (result,))),
    )
    assert bench.managers[1].replicas[P].in_sync == (1, 2)
    bench.carry(3)
    (send,) = [s for s in bench.take(1, fx.Send) if isinstance(s.request, AlterPartitionRequest)]
    assert [m.broker for m in send.request.items[0].in_sync] == [1, 2, 3]


def test_an_idle_partition_keeps_a_silent_follower_in_the_isr():
    bench = Bench()
    bench.settle()
    bench.now = 300 * SECOND
    bench.tell(1, TimerFired("isr-shrink"))
    assert not [
        s for s in bench.out[1] if isinstance(getattr(s, "request", None), AlterPartitionRequest)
    ]


def test_a_fetcher_without_partitions_ends_and_waits_for_no_answer():
    """The leader's host is dark: it will never answer, and it leads again before anyone gave up."""
    bench = Bench()
    bench.settle()
    open_ = next(send for broker, send in bench.open.values() if broker == 2)
    bench.apply(state(leader=2, epoch=1, partition_epoch=1))
    assert bench.take(2, fx.Close) == [fx.Close(1, "fetcher-0")]
    bench.apply(state(leader=1, epoch=2, partition_epoch=2))
    (fetch,) = bench.fetches(2)
    assert (fetch.to, fetch.request.session_epoch) == (1, 0)
    late = FetchResponse(ErrorCode.NONE, 1, (FetchResult(P, ErrorCode.NONE, 7),))
    bench.tell(2, ResponseReceived(1, open_.correlation, late))
    assert not bench.fetches(2)
    assert bench.managers[2].replicas[P].high_watermark == 0


def test_a_fetcher_that_has_another_partition_left_goes_on_waiting():
    bench = Bench()
    bench.settle()
    other = TopicPartition("orders", 1)
    both = image(state())
    both.partitions[other] = state()
    bench.tell(2, MetadataApplied(both, (other,)))
    bench.take(2, fx.Close)
    both.partitions[P] = state(leader=2, epoch=1, partition_epoch=1)
    bench.tell(2, MetadataApplied(both, (P,)))
    assert not bench.take(2, fx.Close)


def test_consumers_see_the_high_watermark_and_a_new_leader_may_not_know_it_yet():
    bench = Bench()
    bench.settle()
    bench.produce()
    ask = ListOffsetsRequest(P, -1)
    bench.tell(1, RequestReceived(5, "billing", ask))
    assert [r.response.offset for r in bench.replies() if r.token == 5] == [0]
    bench.answers()
    bench.apply(state(leader=2, epoch=1, partition_epoch=1))
    bench.tell(2, RequestReceived(6, "billing", ask))
    errors = [r.response.error for r in bench.replies(2) if r.token == 6]
    assert errors == [ErrorCode.OFFSET_NOT_AVAILABLE]


def test_a_consumer_is_never_served_above_the_high_watermark():
    bench = Bench()
    bench.settle()
    bench.produce()
    request = FetchRequest(-1, -1, 0, 1, 1 << 20, 0, 0, (FetchPartition(P, 0, -1),))
    bench.tell(1, RequestReceived(5, "billing", request))
    (reply,) = [r for r in bench.replies() if r.token == 5]
    assert reply.response.results[0].batches == ()


@pytest.mark.parametrize("acks", [2, -2, 7])
def test_other_acks_are_refused(acks):
    bench = Bench()
    bench.produce(acks=acks)
    (reply,) = bench.replies()
    assert result_of(reply).error is ErrorCode.INVALID_REQUIRED_ACKS


def test_a_follower_that_got_a_corrupt_batch_writes_nothing_and_asks_again_a_second_later():
    bench = Bench()
    bench.settle()
    intact = bench.logs[2].append_as_follower

    def refuse(batches):
        raise CorruptRecord("bad checksum")

    bench.logs[2].append_as_follower = refuse
    bench.produce(acks=1)
    bench.answers()
    assert bench.logs[2].log_end_offset == 0
    assert [e.at for e in bench.out[2] if isinstance(e, fx.SetTimer) and "fetcher" in e.name] == [
        SECOND
    ]
    bench.logs[2].append_as_follower = intact
    bench.now = SECOND
    bench.tell(2, TimerFired("fetcher/1/0"))
    bench.carry(2)
    assert bench.logs[2].log_end_offset == 1


def test_a_leader_that_cannot_read_its_log_says_so():
    bench = Bench()
    bench.settle()

    def refuse(start, end, max_bytes):
        raise CorruptRecord("no header")

    bench.logs[1].read = refuse
    bench.produce(acks=1)
    errors = [
        r.response.results[0].error
        for r in bench.out[1]
        if isinstance(r, fx.Reply) and r.token >= 2_000
    ]
    assert errors == [ErrorCode.CORRUPT_MESSAGE] * 2


def test_a_fetch_that_waits_tells_at_its_end_what_was_committed_before_it_came():
    bench = Bench()
    bench.settle()
    bench.produce(acks=1)
    bench.carry(2)
    bench.carry(3)  # both have the record; the next fetch of each says so, and waits
    bench.carry(2)
    bench.carry(3)
    assert bench.managers[1].replicas[P].high_watermark == 1
    assert bench.managers[3].replicas[P].high_watermark == 0
    bench.carry(3)
    bench.now = SECOND
    bench.tell(1, TimerFired("fetch"))
    bench.answers()
    assert [bench.managers[b].replicas[P].high_watermark for b in (2, 3)] == [1, 1]


@pytest.mark.parametrize(("broken", "method"), [(1, "append_as_leader"), (2, "append_as_follower")])
def test_what_a_file_took_before_its_disk_failed_is_told_as_appended(broken, method):
    bench = Bench()
    bench.settle()
    log = bench.logs[broken]
    intact = getattr(log, method)

    def half(*args):
        intact(*args)
        raise StorageFailed("an index refused its entry", "/disk")

    setattr(log, method, half)
    bench.produce(acks=1)
    bench.answers()
    told = [e for e in bench.out[broken] if isinstance(e, fx.Emit) and e.table == "appends"]
    assert [(emit.row[0], emit.row[3], emit.row[6]) for emit in told] == [(broken, 0, broken == 1)]
    assert log.log_end_offset == 1
