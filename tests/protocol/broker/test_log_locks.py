"""``flush.messages``: who waits while an append's fsync holds its log's lock."""

from sim.protocol import effects as fx
from sim.protocol.events import Flushed, RequestReceived, TimerFired
from sim.protocol.messages.cluster import AlterPartitionRequest
from sim.protocol.messages.data import ProduceRequest
from sim.units import MS, SECOND
from tests.protocol.broker.replica_kit import Bench, P, ToyBatch

LAG = {"lag_time_max_us": 1 * SECOND}


def flushing(acks=1, **config):
    """A leader that flushes each message, and the fsync that its first append waits for."""
    bench = Bench(**config)
    bench.settle()
    bench.logs[1].flush_due = True
    bench.produce(acks=acks)
    (flush,) = bench.take(1, fx.Flush)
    return bench, flush


def appended(bench):
    """Base offsets as the leader's rows of appends come."""
    rows = [e.row for e in bench.out[1] if isinstance(e, fx.Emit) and e.table == "appends"]
    return [row[3] for row in rows]


def test_the_next_append_to_a_log_waits_for_the_fsync_of_the_one_before():
    bench, first = flushing()
    bench.produce(acks=1, token=901)
    bench.produce(acks=1, token=902)
    assert bench.logs[1].log_end_offset == 1
    bench.tell(1, Flushed(first.token))
    assert bench.logs[1].log_end_offset == 2
    (second,) = bench.take(1, fx.Flush)
    bench.tell(1, Flushed(second.token))
    (third,) = bench.take(1, fx.Flush)
    bench.tell(1, Flushed(third.token))
    assert [reply.token for reply in bench.replies()] == [900, 901, 902]
    assert appended(bench) == [0, 1, 2]


def test_a_request_appends_to_its_next_partition_after_the_fsync_of_the_one_before():
    bench, first = flushing()
    batches = ((P, ToyBatch()), (P, ToyBatch()))
    bench.tell(1, RequestReceived(901, "shop", ProduceRequest(1, 30 * SECOND, batches)))
    bench.tell(1, Flushed(first.token))
    assert bench.logs[1].log_end_offset == 2
    (second,) = bench.take(1, fx.Flush)
    bench.tell(1, Flushed(second.token))
    assert bench.logs[1].log_end_offset == 3


def test_the_handler_that_waits_for_the_lock_is_occupied_as_long():
    bench, first = flushing()
    assert first.by_handler
    began = bench.now
    bench.produce(acks=1, token=901)
    bench.now += 20 * MS
    bench.tell(1, Flushed(first.token))
    assert bench.take(1, fx.HandlerBlocked) == [fx.HandlerBlocked(began)]


def test_the_high_watermark_and_the_fetch_that_would_move_it_wait_for_the_leaders_fsync():
    bench, flush = flushing(acks=-1)
    bench.now += 500 * MS
    bench.tell(1, TimerFired("fetch"))
    bench.answers()  # a read needs no lock: followers get what is being flushed
    assert bench.logs[2].log_end_offset == 1
    bench.carry(2)
    bench.carry(3)
    leader = bench.managers[1].replicas[P]
    assert leader.remotes[2].log_end_offset == leader.remotes[3].log_end_offset == 1
    assert leader.high_watermark == 0
    assert bench.replies() == []
    assert bench.fetches(2) == bench.fetches(3) == []
    bench.tell(1, Flushed(flush.token))
    assert leader.high_watermark == 1
    assert [reply.token for reply in bench.replies()] == [900]
    bench.now += 500 * MS
    bench.tell(1, TimerFired("fetch"))
    bench.answers()
    assert bench.managers[2].replicas[P].high_watermark == 1


def test_a_follower_fetches_again_only_after_its_own_fsync():
    bench = Bench()
    bench.settle()
    bench.logs[2].flush_due = True
    bench.produce()
    bench.answers()
    (flush,) = bench.take(2, fx.Flush)
    assert not flush.by_handler, "a fetcher has a thread of its own"
    assert bench.fetches(2) == []
    bench.tell(2, Flushed(flush.token))
    assert [send.request.replica_id for send in bench.fetches(2)] == [2]


def test_the_look_for_lagging_followers_waits_for_the_leaders_fsync():
    bench, flush = flushing(**LAG)
    bench.take(1, fx.Send)
    bench.now += 3 * SECOND
    bench.tell(1, TimerFired("isr-shrink"))
    assert bench.take(1, fx.Send) == []
    bench.tell(1, Flushed(flush.token))
    (asked,) = [s.request for s in bench.take(1, fx.Send)]
    assert isinstance(asked, AlterPartitionRequest)
    assert [member.broker for member in asked.items[0].in_sync] == [1]
