"""The failure catalogue, part D: what the expectations of its scenarios cannot ask."""

from itertools import pairwise

import pytest

from tests.scenarios.run_kit import S

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("kind", "exits"), [("historic", 3), ("fixed", 0)])
def test_brokers_with_equal_disks_exit_one_after_the_other_and_again_when_started(
    shared, kind, exits
):
    rows = shared.ran(f"d03-disk-full-correlated-{kind}").rows("node_states", state="crashed")
    times = [row["t_us"] for row in rows if row["t_us"] > 0]
    before, after = [t for t in times if t < 36 * S], [t for t in times if t > 36 * S]
    assert len(before) == exits
    assert len(after) >= exits
    assert all(later - sooner < 300 * S for sooner, later in pairwise(times))


@pytest.mark.parametrize(("kind", "unwritable"), [("historic", 10), ("fixed", 0)])
def test_a_quarter_of_forty_partitions_takes_no_writes_and_one_of_them_is_gone(
    shared, kind, unwritable
):
    ran = shared.ran(f"d02-honeycomb-2025-cleanup-destroys-brokers-{kind}")
    gaps = ran.verdict["availability"]["partitions"]
    refused = {name for name, gap in gaps.items() if gap["produce_us"] > 15 * S}
    assert len(refused) == unwritable
    lost = {name: found["lost_acked"] for name, found in ran.verdict["partitions"].items()}
    acked = [
        row["record_count"]
        for row in ran.rows("client_batches", partition=37, outcome="ok")
        if row["t_us"] < 31 * S
    ]
    assert lost["events-37"] == (sum(acked) if unwritable else 0)
    gone = {name for name, count in lost.items() if count}
    assert gone == ({"events-37"} if unwritable else set()), "published: one partition is gone"
    assert gone <= refused


STORM = "d11-producer-per-request-storm"
FASTER = 144
"""How many times as fast D11 is."""


def new_ids(ran, since, until):
    """Producer ids that were written with for the first time between two instants."""
    first = {}
    for row in ran.rows("appends", topic="audit", as_leader=True):
        first.setdefault(row["producer_id"], row["t_us"])
    return sum(since <= at < until for at in first.values())


def fullest(ran, since, until):
    """Bytes that lived in the fullest heap between two instants."""
    return max(row["live_bytes"] for row in ran.rows("heaps") if since <= row["t_us"] < until)


def test_collections_stop_everything_and_two_brokers_and_more_die_within_ten_minutes(shared):
    ran = shared.ran(f"{STORM}-historic")
    deaths = sorted(ran.times("heaps", event="out_of_memory"))
    assert deaths == sorted(ran.times("node_states", state="crashed"))
    assert deaths[1] - deaths[0] < 600 * S // FASTER
    pauses = ran.rows("heaps", event="collection")
    assert len(pauses) >= 5
    assert all(row["t_us"] < deaths[0] for row in pauses[:5])


def test_one_producer_for_all_requests_brings_the_rate_of_new_ids_back_to_one_in_84(shared):
    window = 60 * S, 100 * S
    storm, calm = (
        new_ids(shared.ran(f"{STORM}-{kind}"), *window) for kind in ("historic", "fixed")
    )
    assert calm == 40, "one a second, which is what is usual"
    assert storm == 85 * calm, "84 times as many on top of that"


@pytest.mark.parametrize(
    ("kind", "since", "until"), [("few-requests", 670, 700), ("short-expiry", 60, 200)]
)
def test_heaps_fill_up_to_a_level_when_ids_are_forgotten_as_fast_as_new_ones_come(
    shared, kind, since, until
):
    ran = shared.ran(f"{STORM}-{kind}")
    middle = (since + until) // 2
    before, after = fullest(ran, since * S, middle * S), fullest(ran, middle * S, until * S)
    assert abs(after - before) < before // 50
    grown = fullest(ran, since * S // 3, since * S // 3 + S)
    assert before > grown + 100_000_000, "it was still filling then"
