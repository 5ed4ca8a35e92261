"""The failure catalogue, part D: what the expectations of its scenarios cannot ask."""

from itertools import pairwise

import pytest

from tests.scenarios.run_kit import S

pytestmark = pytest.mark.slow


@pytest.mark.xdist_group("catalogue-d03")
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


@pytest.mark.xdist_group("catalogue-d02")
@pytest.mark.parametrize(("kind", "unwritable"), [("historic", 10), ("fixed", 0)])
def test_a_quarter_of_forty_partitions_takes_no_writes_and_one_of_them_is_gone(
    shared, kind, unwritable
):
    ran = shared.ran(f"d02-honeycomb-2025-cleanup-destroys-brokers-{kind}")
    gaps = ran.verdict["availability"]["partitions"].values()
    assert sum(gap["produce_us"] > 15 * S for gap in gaps) == unwritable
    lost = {name: found["lost_acked"] for name, found in ran.verdict["partitions"].items()}
    acked = [
        row["record_count"]
        for row in ran.rows("client_batches", partition=37, outcome="ok")
        if row["t_us"] < 31 * S
    ]
    # The others that lose anything keep what a stale replica had.
    assert lost["events-37"] == (sum(acked) if unwritable else 0)
    assert sum(count > 0 for count in lost.values()) == (4 if unwritable else 0)
