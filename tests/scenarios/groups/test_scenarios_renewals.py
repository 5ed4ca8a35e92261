"""A share group whose work outlasts its locks, with renewals and without (KIP-1222)."""

import pytest

from sim.errors import InvariantBroken
from sim.protocol.broker.share.partition import Renewal, SharePartition
from tests.scenarios.run_kit import S, go

WORKERS = {
    "group": "workers",
    "group.type": "share",
    "topics": ["orders"],
    "count": 2,
    "processing": "200ms",
    "config": {
        "share.acknowledgement.mode": "explicit",
        "share.auto.offset.reset": "earliest",
        "share.acquire.mode": "record_limit",
        "max.poll.records": 20,
    },
}
"""Twenty records take four seconds; a lock lasts one and a half."""
PARTS = {
    "topic": {"partitions": 1},
    "producer": {"rate": "20/s", "stop": "2s"},
    "config": {"group.share.min.record.lock.duration.ms": 1_000},
    "lasts": "14s",
}
LOCK = {"share.record.lock.duration.ms": 1_500}


def run(directory, renew=None, **own):
    member = WORKERS if renew is None else WORKERS | {"renew": renew}
    return go(directory, consumers=[member], groups={"workers": {"config": LOCK | own}}, **PARTS)


@pytest.fixture(scope="module")
def renewed(tmp_path_factory):
    return run(tmp_path_factory.mktemp("renewed"), "500ms")


def test_with_renewals_no_lock_expires_and_nothing_is_delivered_twice(renewed):
    assert renewed.verdict["sharing"]["accepted"] == renewed.records["acked"] == 40
    assert renewed.verdict["readers"]["delivered_twice"] == 0
    assert not renewed.rows("share_states", reason="lock timeout")
    assert max(row["delivery_count"] for row in renewed.rows("share_states")) == 1


def test_locks_outlast_their_duration_by_renewals_alone(renewed):
    assert renewed.checked("renewed-locks-hold") > 0
    ends = [row["until_us"] - row["t_us"] for row in renewed.rows("share_renewals")]
    assert set(ends) == {3 * S // 2}
    taken, done = {}, {}
    for row in renewed.rows("share_states"):
        for offset in range(row["first_offset"], row["last_offset"] + 1):
            (taken if row["state"] == "ACQUIRED" else done)[offset] = row["t_us"]
    assert max(done[offset] - taken[offset] for offset in taken) > 3 * S // 2


def test_each_finished_record_is_accepted_at_the_next_renewal_and_not_at_the_end_of_all(renewed):
    rows = renewed.rows("share_acknowledgements", consumer="workers-1")
    accepted = [row for row in rows if row["types"] == "accept"]
    assert all(row["last_offset"] - row["first_offset"] < 4 for row in accepted)
    assert {row["error"] for row in rows} == {"NONE"}


def test_without_renewals_locks_expire_and_records_are_delivered_again(tmp_path):
    ran = run(tmp_path)
    assert ran.rows("share_states", reason="lock timeout")
    assert ran.verdict["readers"]["delivered_twice"] > 0


def test_a_group_that_forbids_renewals_refuses_them_and_loses_its_locks(tmp_path):
    ran = run(tmp_path, "500ms", **{"share.renew.acknowledge.enable": False})
    refused = ran.rows("share_acknowledgements", types="renew")
    assert {row["error"] for row in refused} == {"INVALID_RECORD_STATE"}
    assert not ran.rows("share_renewals")
    assert ran.rows("share_states", reason="lock timeout")


def test_a_member_gives_up_what_it_renews_too_late(tmp_path):
    ran = run(tmp_path, "3s")
    late = ran.rows("share_acknowledgements", types="renew", error="INVALID_RECORD_STATE")
    assert late
    assert ran.verdict["readers"]["delivered_twice"] > 0
    assert ran.verdict["sharing"]["unfinished"] == 0


def test_planted_a_renewal_that_holds_no_lock_is_found_out(tmp_path, monkeypatch):
    def renews_in_words(share, first, last, until):
        member = share._between(first, last)[0].member
        share.renewals.append(Renewal(first, last, member, until))

    monkeypatch.setattr(SharePartition, "_renew", renews_in_words)
    with pytest.raises(InvariantBroken, match="renewed-locks-hold"):
        run(tmp_path, "500ms")
