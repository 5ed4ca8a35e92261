"""KIP-279: a leader answers where an epoch ends together with the epoch that the end belongs to.

A follower that knows epochs of which its leader has nothing goes back to one that both have;
before, it kept what another leader had written below the end that it was given (KAFKA-6361).
"""

import pytest

from sim.protocol.broker.replica import Replica, ReplicaConfig
from sim.protocol.broker.truncation.registry import TRUNCATIONS
from sim.protocol.ports import NO_EPOCH_END
from tests.protocol.broker.replica_kit import P, ToyLog, leader_log

KIP101, KIP279 = TRUNCATIONS["kip101"], TRUNCATIONS["kip279"]


def replica(log, high_watermark=0):
    return Replica(P, 2, log, ReplicaConfig(), high_watermark)


@pytest.mark.parametrize(
    ("asked", "kip101", "kip279"),
    [
        (2, (-1, 21), (1, 21)),
        (1, (-1, 21), (1, 21)),
        (3, (-1, 31), (3, 31)),
        (4, NO_EPOCH_END, NO_EPOCH_END),
        (0, NO_EPOCH_END, (0, 0)),
    ],
)
def test_kip101_answers_with_an_offset_and_kip279_with_the_epoch_it_belongs_to(
    asked, kip101, kip279
):
    assert KIP101.end_for(leader_log(), asked) == kip101
    assert KIP279.end_for(leader_log(), asked) == kip279


@pytest.mark.parametrize(("n", "kip101", "kip279"), [(15, 16, 11), (20, 21, 11), (30, 21, 11)])
def test_kafka_6361_kip101_keeps_what_kip279_cuts(n, kip101, kip279):
    follower = replica(ToyLog([(1, 0), (2, 11)], end=n + 1))
    assert KIP101.cut_for(follower, KIP101.end_for(leader_log(), 2)) == (kip101, True)
    assert KIP279.cut_for(follower, KIP279.end_for(leader_log(), 2)) == (kip279, True)


def test_kip279_takes_two_questions_where_both_sides_missed_an_epoch():
    leader, log = ToyLog([(1, 0), (4, 10)], end=12), ToyLog([(0, 0), (2, 6)], end=9)
    follower = replica(log)
    cut = KIP279.cut_for(follower, KIP279.end_for(leader, log.latest_epoch))
    assert cut == (6, False)
    follower.truncate_to(6)
    assert KIP279.cut_for(follower, KIP279.end_for(leader, log.latest_epoch)) == (0, True)
