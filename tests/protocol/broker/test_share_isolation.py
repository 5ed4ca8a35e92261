"""KAFKA-17541 (4.2): a record that fails again and again does not take its neighbours along."""

import pytest

from sim.protocol.broker.share.limits import ShareLimits
from sim.protocol.broker.share.partition import ACCEPT, RELEASE, SharePartition
from sim.protocol.messages.share_records import RecordState
from tests.kips.test_kip_932 import say

FETCHED = [(0, 499)]


def delivered(bad, **limits):
    """Sizes of deliveries until all records are done with: each with a bad record is released."""
    share = SharePartition(ShareLimits(**limits), 0, ())
    sizes, archived = [], []
    while share.start_offset < 500:
        for got in share.acquire("a", FETCHED, 500, 0):
            sizes.append(got.last - got.first + 1)
            kind = RELEASE if got.first <= bad <= got.last else ACCEPT
            say(share, "a", got.first, got.last, kind)
        archived += [c for c in share.changes if c.state is RecordState.ARCHIVED]
        share.changes.clear()
    return sizes, archived


def test_only_the_bad_record_is_archived():
    _, archived = delivered(bad=0, isolates=True)
    assert [(change.first, change.last) for change in archived] == [(0, 0)]


def test_before_4_2_its_whole_batch_is():
    sizes, archived = delivered(bad=0)
    assert sizes == [500] * 5
    assert [(change.first, change.last) for change in archived] == [(0, 499)]


def test_from_half_of_the_limit_on_deliveries_are_halved_and_the_last_is_of_one_record():
    sizes, _ = delivered(bad=0, isolates=True, deliveries_max=10)
    assert sizes[:10] == [500, 500, 500, 500, 500, 250, 125, 62, 31, 1]


@pytest.mark.parametrize(
    ("limit", "deliveries", "alone"),
    [(5, 2, 0), (5, 3, 250), (5, 4, 1), (10, 4, 0), (10, 5, 250), (10, 9, 1), (2, 1, 0)],
)
def test_how_many_may_be_acquired_together_is_kafkas_number(limit, deliveries, alone):
    assert ShareLimits(deliveries_max=limit, isolates=True).alone(deliveries, 500) == alone


def test_a_record_that_is_delivered_alone_waits_for_a_fetch_of_its_own():
    share = SharePartition(ShareLimits(isolates=True, deliveries_max=4), 0, ())
    share.acquire("a", [(0, 9)], 10, 0)
    say(share, "a", 5, 9, RELEASE)
    share.acquire("b", [(5, 9)], 5, 0)
    say(share, "b", 5, 9, RELEASE)
    say(share, "a", 0, 4, RELEASE)
    assert [(got.first, got.last) for got in share.acquire("c", [(0, 9)], 10, 0)] == [(0, 4)]
    assert [(got.first, got.last) for got in share.acquire("d", [(0, 9)], 10, 0)] == [(5, 9)]


def test_a_share_partition_counts_its_completed_records_in_flight():
    share = SharePartition(ShareLimits(counts=True), 0, ())
    share.acquire("a", [(0, 9)], 10, 0)
    say(share, "a", 5, 9, ACCEPT)
    assert share.completed_in_flight() == 5
    say(share, "a", 0, 4, ACCEPT)
    assert (share.start_offset, share.completed_in_flight()) == (10, 0)
    assert SharePartition(ShareLimits(), 0, ()).completed_in_flight() == -1
