"""KIP-320: positions have leader epochs, so that a truncation is seen and not read across.

A consumer asks each new leader where the epoch of its position ends, and goes back to there if that
is below it; requests with another leader epoch than the leader's are refused.
"""

import pytest

from sim.error_codes import ErrorCode
from sim.ids import TopicPartition
from sim.protocol.broker.replication.config import ReplicaManagerConfig
from sim.protocol.broker.replication.events import MetadataApplied
from sim.protocol.broker.replication.replica_manager import ReplicaManager
from sim.protocol.effects import Reply
from sim.protocol.events import RequestReceived
from sim.protocol.messages.data import FetchPartition, FetchRequest
from sim.protocol.messages.leader_epochs import OffsetForLeaderEpochRequest
from sim.trace.rows.clients import Positions
from sim.units import MIB, MS, SECOND
from tests.protocol.broker.replica_kit import P as ORDERS
from tests.protocol.broker.replica_kit import image, leader_log, state
from tests.protocol.coordinator.group_bench import Bench, FakeBatch

P0 = TopicPartition("orders", 0)
AT = 2 * SECOND
"""When the leader changes."""


def reader(grown, **settings):
    """One that has read 0..9 of epoch 0 when another leader, which has 0..7 of it, takes over.

    ``grown``: how many records the new leader has appended in its epoch before it is asked.
    """
    bench = Bench({"orders": 1})
    told = {"group_id": "", "auto_offset_reset": "earliest", "metadata_age_us_max": SECOND}
    bench.consumer("a", **(told | settings))
    if settings.get("group_id"):
        bench.elect(1)
    bench.data[P0] = [FakeBatch(0, 8), FakeBatch(8, 2, first_record=8)]
    bench.run(AT)
    bench.data[P0] = [FakeBatch(0, 8)]
    if grown:
        bench.data[P0].append(FakeBatch(8, grown, leader_epoch=1, first_record=8))
    bench.leaders[P0], bench.epochs[P0] = 2, 1
    return bench


def offsets(bench, after=0):
    return [
        offset
        for at, _, part in bench.delivered
        if at > after
        for offset in range(part.base_offset, part.last_offset + 1)
    ]


def reasons(bench):
    return [
        (row[Positions.OFFSET_BEFORE], row[Positions.OFFSET], row[Positions.REASON])
        for row in bench.table("positions")
    ]


def questions(bench):
    return [r for _, _, r in bench.requests if isinstance(r, OffsetForLeaderEpochRequest)]


def test_a_reader_goes_back_to_where_the_logs_part_and_skips_nothing():
    bench = reader(grown=5)
    bench.run(6 * SECOND)
    assert offsets(bench, AT) == [8, 9, 10, 11, 12]
    assert reasons(bench) == [(-1, 0, "reset"), (10, 8, "truncated")]


def test_without_detection_it_reads_on_and_skips_what_was_written_below_its_position():
    """What was until 2.2, silently."""
    bench = reader(grown=5, validates=False)
    bench.run(6 * SECOND)
    assert offsets(bench, AT) == [10, 11, 12]
    assert questions(bench) == []


def test_a_log_that_has_not_grown_again_is_read_from_where_it_ends():
    bench = reader(grown=0)
    bench.run(4 * SECOND)
    bench.produce(P0, 1, leader_epoch=1)
    bench.run(6 * SECOND)
    assert offsets(bench, AT) == [8]


def test_without_detection_it_is_out_of_range_and_begins_by_policy():
    bench = reader(grown=0, validates=False)
    bench.run(6 * SECOND)
    assert offsets(bench, AT) == list(range(8))
    assert reasons(bench)[1:] == [(10, 0, "reset")]


def test_a_reader_without_a_policy_raises_at_a_truncation():
    settings = {"group_id": "g", "auto_offset_reset": "none", "auto_commit_interval_us": 100 * MS}
    bench = Bench({"orders": 1})
    bench.consumer("early", group_id="g", auto_offset_reset="earliest", metadata_age_us_max=SECOND)
    bench.elect(1)
    bench.data[P0] = [FakeBatch(0, 10)]
    bench.run(9 * SECOND)
    bench.close("early")
    bench.run(10 * SECOND)
    bench.consumer("a", start_at=10 * SECOND, **settings)
    bench.run(15 * SECOND)
    assert bench.stopped == {"early": ErrorCode.NONE}
    bench.data[P0] = [FakeBatch(0, 4)]
    bench.leaders[P0], bench.epochs[P0] = 2, 1
    bench.run(20 * SECOND)
    assert bench.stopped["a"] is ErrorCode.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize(("commits_epochs", "first"), [(True, 5), (False, 8)])
def test_a_committed_offset_is_validated_by_who_takes_over_if_it_has_its_epoch(
    commits_epochs, first
):
    """Without it a number is left, at which other records lie now (KAFKA-19902)."""
    bench = reader(
        grown=0, group_id="g", auto_commit_interval_us=500 * MS, commits_epochs=commits_epochs
    )
    bench.run(4 * SECOND)  # the first is not there long enough to read anything
    bench.run(8 * SECOND)
    committed = bench.consumers["a"].machine.committed()
    assert committed[P0] == 8
    bench.kill("a")
    bench.data[P0] = [FakeBatch(0, 5), FakeBatch(5, 9, leader_epoch=2, first_record=5)]
    bench.leaders[P0], bench.epochs[P0] = 1, 2
    bench.consumer("b", start_at=9 * SECOND, group_id="g")
    bench.run(80 * SECOND)
    assert offsets(bench, 9 * SECOND) == list(range(first, 14))


def test_a_leader_that_has_everything_moves_nobody():
    bench = reader(grown=0)
    bench.data[P0] = [FakeBatch(0, 10), FakeBatch(10, 3, leader_epoch=1, first_record=10)]
    bench.run(6 * SECOND)
    assert offsets(bench, AT) == [10, 11, 12]
    assert len(questions(bench)) == 1
    assert reasons(bench) == [(-1, 0, "reset")]


def test_a_question_of_a_leader_that_is_gone_is_asked_again_of_the_next():
    bench = reader(grown=0)
    bench.brokers[2].dead = True
    bench.run(3 * SECOND)
    assert offsets(bench, AT) == []
    bench.data[P0] = [FakeBatch(0, 10), FakeBatch(10, 1, leader_epoch=2, first_record=10)]
    bench.leaders[P0], bench.epochs[P0] = 1, 2
    bench.run(8 * SECOND)
    assert offsets(bench, AT) == [10]


def test_what_arrives_of_the_former_leader_while_a_position_is_checked_is_not_returned():
    bench = reader(grown=5)
    bench.run(6 * SECOND)
    read = offsets(bench)
    assert read == [*range(10), *range(8, 13)]


def test_a_position_that_was_reset_has_no_epoch_and_is_not_checked():
    bench = Bench({"orders": 1})
    bench.consumer("a", group_id="", metadata_age_us_max=SECOND)
    bench.data[P0] = [FakeBatch(0, 10)]
    bench.run(AT)
    bench.leaders[P0], bench.epochs[P0] = 2, 1
    bench.run(5 * SECOND)
    assert questions(bench) == []


@pytest.mark.parametrize("error", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.UNKNOWN_LEADER_EPOCH])
def test_a_leader_of_another_epoch_is_asked_again_with_newer_metadata(error, monkeypatch):
    real = Bench._end_of_epoch
    refusals = [error]

    def answer(self, place, epoch, broker):
        found = real(self, place, epoch, broker)
        return type(found)(place, refusals.pop()) if refusals else found

    monkeypatch.setattr(Bench, "_end_of_epoch", answer)
    bench = reader(grown=5)
    bench.run(8 * SECOND)
    assert offsets(bench, AT) == [8, 9, 10, 11, 12]
    assert len(questions(bench)) == 2


@pytest.mark.parametrize("names", [True, False])
def test_an_unaware_reader_names_no_leader_epoch(names):
    bench = reader(grown=5, validates=names, names_epochs=names)
    bench.run(6 * SECOND)
    fetches = [r for _, _, r in bench.requests if isinstance(r, FetchRequest)]
    epochs = {asked.leader_epoch for fetch in fetches for asked in fetch.partitions}
    assert epochs == ({0, 1} if names else {-1})


def test_a_committed_position_is_checked_when_somebody_leads_again():
    bench = Bench({"orders": 1})
    bench.consumer("early", group_id="g", auto_offset_reset="earliest", metadata_age_us_max=SECOND)
    bench.elect(1)
    bench.data[P0] = [FakeBatch(0, 10)]
    bench.run(9 * SECOND)
    bench.close("early")
    bench.run(10 * SECOND)
    bench.leaders[P0], bench.epochs[P0] = -1, 1
    bench.consumer("a", group_id="g", start_at=10 * SECOND)
    bench.run(15 * SECOND)
    assert questions(bench) == []
    bench.leaders[P0] = 2
    bench.run(20 * SECOND)
    assert len(questions(bench)) == 1
    bench.produce(P0, 1, leader_epoch=1)
    bench.run(25 * SECOND)
    assert offsets(bench, 10 * SECOND) == [10]


# -- what followers and consumers are refused ------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "error"),
    [
        (2, ErrorCode.FENCED_LEADER_EPOCH),
        (3, ErrorCode.NONE),
        (4, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (-1, ErrorCode.NONE),
    ],
    ids=["older", "the leader's", "newer", "none"],
)
def test_a_leader_refuses_who_names_another_leader_epoch_than_its_own(asked, error):
    manager = ReplicaManager(1, ReplicaManagerConfig(), lambda *_: leader_log(), {})
    manager.handle(MetadataApplied(image(state(epoch=3)), (ORDERS,)), 0)
    wanted = FetchPartition(ORDERS, 5, asked)
    request = FetchRequest(-1, -1, 0, 1, MIB, 0, 0, (wanted,))
    out = manager.handle(RequestReceived(1, "consumer", request), 0)
    (reply,) = [effect for effect in out if isinstance(effect, Reply)]
    (result,) = reply.response.results
    assert result.error is error
