"""KIP-1206: with record_limit a share consumer acquires no more records than it can take in a poll.

Before, and by default, whole batches are acquired, so that it may get more than max.poll.records.
"""

from sim.protocol.broker.share.limits import ShareLimits
from sim.protocol.broker.share.partition import RELEASE, SharePartition
from sim.protocol.messages.share_records import Acquired
from tests.kips.test_kip_932 import fresh, say

BATCHES = [(0, 4), (5, 9), (10, 14)]


def test_new_records_are_acquired_up_to_the_limit_and_not_beyond_in_a_batch():
    share = fresh()
    assert share.acquire("a", BATCHES, 7, 0, exact=True) == [Acquired(0, 6, 1)]
    assert share.next_fetch_offset() == 7
    assert share.acquire("b", BATCHES[1:], 7, 0, exact=True) == [Acquired(7, 13, 1)]


def test_so_are_records_that_were_given_back():
    share = fresh()
    share.acquire("a", BATCHES, 15, 0)
    say(share, "a", 0, 14, RELEASE)
    assert share.acquire("b", BATCHES, 7, 0, exact=True) == [Acquired(0, 6, 2)]
    assert share.acquire("c", BATCHES, 7, 0) == [Acquired(7, 14, 2)]


def test_fewer_records_than_the_limit_are_all_acquired():
    assert fresh().acquire("a", BATCHES, 500, 0, exact=True) == [Acquired(0, 14, 1)]


def test_the_bound_of_records_in_flight_is_exact_too():
    share = SharePartition(ShareLimits(in_flight_max=12), 0, ())
    assert share.acquire("a", BATCHES, 500, 0, exact=True) == [Acquired(0, 11, 1)]
