"""Log starts: DeleteRecords on a leader, what followers hear, what waits for whom."""

import pytest

from sim.error_codes import ErrorCode
from sim.errors import StorageFailed
from sim.protocol import effects as fx
from sim.protocol.broker.replication.events import LogStartMoved, MetadataApplied, StorageBroke
from sim.protocol.broker.replication.leader.log_starts import TIMER
from sim.protocol.events import RequestReceived, TimerFired
from sim.protocol.messages.delete_records import (
    UP_TO_HIGH_WATERMARK,
    DeleteRecordsRequest,
    DeleteRecordsResult,
)
from sim.units import SECOND
from tests.protocol.broker.replica_kit import Bench, P, image, state


def bench(records: int = 10) -> Bench:
    """Three brokers that all have so many committed records."""
    made = Bench()
    made.settle()
    for _ in range(records):
        made.produce()
        made.settle()
    made.replies()
    return made


def ask(made: Bench, offset: int, leader: int = 1) -> None:
    request = DeleteRecordsRequest(((P, offset),), 30 * SECOND)
    made.tell(leader, RequestReceived(500, "admin", request))


def results(made: Bench, leader: int = 1) -> list[DeleteRecordsResult]:
    return [r for reply in made.replies(leader) for r in reply.response.results]


def starts(made: Bench) -> list[int]:
    return [made.logs[broker].log_start_offset for broker in (1, 2, 3)]


def rows(made: Bench, broker: int) -> list[tuple]:
    return [e.row for e in made.take(broker, fx.Emit) if e.table == "log_starts"]


def test_the_request_waits_until_every_live_follower_has_followed():
    made = bench()
    ask(made, 4)
    assert starts(made) == [4, 0, 0]
    assert results(made) == []
    made.produce()  # the followers' parked fetches are answered, and tell the new log start
    made.settle()
    assert starts(made) == [4, 4, 4]
    assert DeleteRecordsResult(P, ErrorCode.NONE, 4) in results(made)
    assert rows(made, 1) == [(1, "orders", 0, 0, 4, "delete_records")]
    assert rows(made, 2) == [(2, "orders", 0, 0, 4, "leader")]


def test_minus_one_means_the_high_watermark():
    made = bench()
    ask(made, UP_TO_HIGH_WATERMARK)
    assert starts(made)[0] == 10


@pytest.mark.parametrize("offset", [11, -2])
def test_an_offset_beyond_the_high_watermark_is_refused(offset):
    made = bench()
    ask(made, offset)
    assert results(made) == [DeleteRecordsResult(P, ErrorCode.OFFSET_OUT_OF_RANGE)]
    assert starts(made) == [0, 0, 0]


def test_an_offset_that_is_gone_already_is_answered_at_once():
    made = bench()
    ask(made, 4)
    made.produce()
    made.settle()
    made.replies()
    ask(made, 3)
    assert results(made) == [DeleteRecordsResult(P, ErrorCode.NONE, 4)]


def test_a_topic_that_is_only_compacted_refuses():
    made = bench()
    registered = image(state())
    registered.topic_configs["orders"]["cleanup.policy"] = "compact"
    made.tell(1, MetadataApplied(registered, (P,)))
    ask(made, 4)
    assert results(made) == [DeleteRecordsResult(P, ErrorCode.POLICY_VIOLATION)]
    registered.topic_configs["orders"]["cleanup.policy"] = "compact,delete"
    ask(made, 4)
    assert starts(made)[0] == 4


def test_only_the_leader_deletes():
    made = bench()
    ask(made, 4, leader=2)
    assert results(made, 2) == [DeleteRecordsResult(P, ErrorCode.NOT_LEADER_OR_FOLLOWER)]


@pytest.mark.parametrize("fenced", [(3,), ()])
def test_a_follower_that_is_not_alive_is_not_waited_for(fenced):
    made = bench()
    made.apply(state(partition_epoch=1, in_sync=(1, 2)), fenced=fenced, brokers=(1,))
    ask(made, 4)
    made.produce()
    made.carry(2)
    made.carry(2)
    assert made.managers[1].replicas[P].remotes[3].log_start_offset == 0
    answered = DeleteRecordsResult(P, ErrorCode.NONE, 4) in results(made)
    assert answered == bool(fenced)


def test_a_request_that_waits_too_long_times_out_and_the_log_start_stays():
    made = bench()
    ask(made, 4)
    made.now += 30 * SECOND
    made.tell(1, TimerFired(TIMER))
    assert results(made) == [DeleteRecordsResult(P, ErrorCode.REQUEST_TIMED_OUT)]
    assert starts(made)[0] == 4


def test_whoever_waits_hears_that_the_leader_leads_no_more():
    made = bench()
    ask(made, 4)
    made.apply(state(leader=2, epoch=1, partition_epoch=1), brokers=(1,))
    assert results(made) == [DeleteRecordsResult(P, ErrorCode.NOT_LEADER_OR_FOLLOWER)]


def test_a_disk_that_refuses_is_told_and_nothing_moves():
    made = bench()

    def broken(offset):
        raise StorageFailed(f"no space for {offset}")

    made.logs[1].raise_log_start = broken
    ask(made, 4)
    assert results(made) == [DeleteRecordsResult(P, ErrorCode.KAFKA_STORAGE_ERROR)]
    assert made.take(1, StorageBroke)
    assert starts(made) == [0, 0, 0]


def test_a_follower_does_not_pass_its_own_high_watermark():
    made = bench()
    replica = made.managers[2].replicas[P]
    assert not made.managers[2].log_starts.learned(replica, replica.high_watermark + 1, [])
    assert made.managers[2].log_starts.learned(replica, replica.high_watermark, [])


def test_retention_on_the_leader_reaches_the_followers_with_their_next_answer():
    made = bench()
    made.logs[1].raise_log_start(6)
    made.tell(1, LogStartMoved(P, 0, 6, "retention.ms"))
    assert rows(made, 1) == [(1, "orders", 0, 0, 6, "retention.ms")]
    made.produce()
    made.settle()
    assert starts(made) == [6, 6, 6]
