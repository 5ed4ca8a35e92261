"""KIP-1222: a member of a share group may renew the acquisition locks of records that it works on.

A renewal changes no state, counts no delivery and is not written: the lock begins again. A fetch
that renews brings no records. A group's share.renew.acknowledge.enable forbids it.
"""

import pytest

from sim.error_codes import ErrorCode
from sim.protocol.broker.share.partition import ACCEPT, RENEW, Renewal
from sim.protocol.messages.share import PartitionAcknowledgements, ShareFetchRequest
from sim.protocol.messages.share_records import Acknowledgement, Acquired, RecordState
from sim.units import MS, SECOND
from tests.kips.test_kip_932 import LOCK, fresh
from tests.protocol.broker.test_share_manager import JOBS, ready

LATER = 20 * SECOND


def renew(share, member, first, last, now=LATER):
    return share.acknowledge(member, [Acknowledgement(first, last, (RENEW,))], now)


def test_a_renewed_lock_begins_again_and_nothing_else_changes():
    share = fresh()
    share.acquire("a", [(0, 9)], 500, 0)
    before = share.states()
    assert renew(share, "a", 0, 9) == (ErrorCode.NONE, 0, ())
    assert share.states() == before
    assert share.renewals == [Renewal(0, 9, "a", LATER + LOCK)]
    assert share.expire(LOCK) == ()
    assert share.next_deadline() == LATER + LOCK
    share.expire(LATER + LOCK)
    assert share.acquire("b", [(0, 9)], 500, LATER + LOCK) == [Acquired(0, 9, 2)]


def test_records_are_renewed_one_by_one_beside_others_that_are_accepted():
    share = fresh()
    share.acquire("a", [(0, 3)], 500, 0)
    types = (ACCEPT, RENEW, RENEW, ACCEPT)
    error, token, states = share.acknowledge("a", [Acknowledgement(0, 3, types)], LATER)
    assert error is ErrorCode.NONE
    assert [(s.first, s.last, s.state) for s in states] == [
        (0, 0, RecordState.ACKNOWLEDGED), (3, 3, RecordState.ACKNOWLEDGED)
    ]  # fmt: skip
    share.settle(token, written=True, now=LATER)
    assert share.start_offset == 1
    assert share.next_deadline() == LATER + LOCK


def test_only_the_holder_of_a_lock_renews_it():
    share = fresh()
    share.acquire("a", [(0, 9)], 500, 0)
    assert renew(share, "b", 0, 9)[0] is ErrorCode.INVALID_RECORD_STATE
    share.expire(LOCK)
    assert renew(share, "a", 0, 9)[0] is ErrorCode.INVALID_RECORD_STATE
    assert share.renewals == []


def test_a_group_that_forbids_renewals_refuses_all_that_comes_with_one():
    share = fresh(renews=False)
    share.acquire("a", [(0, 9)], 500, 0)
    said = [Acknowledgement(0, 4, (ACCEPT,)), Acknowledgement(5, 9, (RENEW,))]
    assert share.acknowledge("a", said, LATER) == (ErrorCode.INVALID_RECORD_STATE, 0, ())
    assert share.next_deadline() == LOCK


def fetch_that_renews(broker, now=LATER):
    said = (PartitionAcknowledgements(JOBS, (Acknowledgement(0, 9, (RENEW,)),)),)
    request = ShareFetchRequest("g", "a", 1, 0, 0, 0, acknowledgements=said, renews=True)
    return broker.ask("a", request, now)


def test_a_fetch_that_renews_is_answered_at_once_without_records():
    broker = ready()
    broker.produce(10, 14)
    token = fetch_that_renews(broker)
    assert broker.result(token).acknowledge_error is ErrorCode.NONE
    assert broker.result(token).acquired == ()
    assert broker.timers["share-lock/g/jobs-0"] == LATER + LOCK
    assert [row[-4:] for row in broker.rows if row[0] == "share_renewals"] == [
        (0, 9, "a", LATER + LOCK)
    ]
    assert broker.sent == [], "a renewal is not written"


@pytest.mark.parametrize(
    ("name", "value", "error", "lock"),
    [
        ("share.renew.acknowledge.enable", "false", ErrorCode.INVALID_RECORD_STATE, LOCK),
        ("share.record.lock.duration.ms", "15000", ErrorCode.NONE, LATER + 15_000 * MS),
    ],
)
def test_settings_of_the_group_hold_from_the_instant_at_which_the_leader_has_them(
    name, value, error, lock
):
    broker = ready()
    broker.image.group_configs["g"] = {name: value}
    token = fetch_that_renews(broker)
    assert broker.result(token).acknowledge_error is error
    assert broker.machine.share("g", JOBS).next_deadline() == lock
