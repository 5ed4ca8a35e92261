"""KIP-101: a follower cuts its log where its leader says that the follower's last epoch ends.

Before, it cut at its own high watermark, which it learns one fetch later than records: a record
that was committed was lost if the follower led next, and logs could part without anybody seeing it.
"""

import pytest

from sim.protocol.broker.replica import Replica, ReplicaConfig
from sim.protocol.broker.truncation.registry import TRUNCATIONS
from sim.protocol.ports import NO_EPOCH_END
from tests.protocol.broker.replica_kit import Bench, P, ToyLog, state

KIP101 = TRUNCATIONS["kip101"]


def replica(log, high_watermark=0):
    return Replica(P, 2, log, ReplicaConfig(), high_watermark)


@pytest.mark.parametrize(
    ("asked", "end"), [(1, 20), (2, 20), (3, 31)], ids=["former", "unknown", "latest"]
)
def test_a_leader_answers_with_the_start_of_its_next_epoch_and_for_its_latest_with_the_end(
    asked, end
):
    log = ToyLog([(1, 0), (3, 20)], end=31)
    assert KIP101.end_for(log, asked).offset == end


@pytest.mark.parametrize(("own_end", "leader_end", "cut"), [(9, 4, 4), (4, 9, 4), (4, 4, 4)])
def test_a_follower_keeps_what_both_have_of_the_epoch(own_end, leader_end, cut):
    leader = ToyLog([(5, 0), (6, leader_end)], end=leader_end + 3)
    follower = replica(ToyLog([(5, 0)], end=own_end))
    answer = KIP101.end_for(leader, 5)
    assert KIP101.cut_for(follower, answer) == (cut, True)


def test_without_a_common_epoch_the_high_watermark_is_all_that_is_sure():
    follower = replica(ToyLog([(5, 0)], end=9), high_watermark=4)
    assert KIP101.cut_for(follower, NO_EPOCH_END) == (4, True)


def log_of_a_new_leader(rule):
    """A record is acknowledged; the follower follows a new epoch, and leads the one after."""
    bench = Bench(in_sync=(1, 2), truncation=TRUNCATIONS[rule])
    bench.carry(2)
    bench.produce()
    bench.answers()
    bench.carry(2)
    assert len(bench.replies()) == 1, "acks=all is answered: both have the record"
    bench.apply(state(leader=1, epoch=1, partition_epoch=1, in_sync=(1, 2)), brokers=(2,))
    bench.apply(state(leader=2, epoch=2, partition_epoch=2, in_sync=(2,)), brokers=(2,))
    return bench.logs[2].log_end_offset


@pytest.mark.parametrize("rule", ["kip101", "kip279", "kip320"])
def test_a_committed_record_outlives_a_follower_that_did_not_know_that_it_was(rule):
    assert log_of_a_new_leader(rule) == 1


def test_before_it_the_record_was_lost():
    assert log_of_a_new_leader("hw") == 0
