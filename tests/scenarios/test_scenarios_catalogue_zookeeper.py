"""Catalogue entries of ZooKeeper mode: what the trace shows beside the expectations."""

import pytest

from tests.scenarios.run_kit import S


def last_isrs(ran, until):
    """Each partition's ISR in ZooKeeper at an instant."""
    return {
        row["partition"]: row["in_sync"]
        for row in ran.rows("partition_changes", topic="orders")
        if row["t_us"] <= until
    }


@pytest.mark.slow
@pytest.mark.xdist_group("catalogue-c01")
@pytest.mark.parametrize("kind", ["historic", "fixed"])
def test_no_isr_grows_back_behind_an_old_version_and_all_do_within_a_minute_without(shared, kind):
    """C1: healed at 38 s; published for "fixed" are the lag limit and a round of fetches."""
    ran = shared.ran(f"c01-zk-cached-version-zombie-{kind}")
    if kind == "fixed":
        assert last_isrs(ran, 60 * S) == dict.fromkeys(range(3), "1,2,3")
    else:
        assert last_isrs(ran, 40 * S) == last_isrs(ran, 90 * S)
        assert all("1" not in isr for isr in last_isrs(ran, 90 * S).values()), "who was cut off"


@pytest.mark.slow
@pytest.mark.xdist_group("catalogue-c04")
@pytest.mark.parametrize("kind", ["historic", "fixed"])
def test_zookeepers_leader_is_another_than_the_brokers_only_without_fencing(shared, kind):
    """C4: from the stale write at 20 s to the death at 40 s."""
    ran = shared.ran(f"c04-stale-controller-writes-zk-{kind}")
    led = {
        row["broker"]
        for row in ran.rows("appends", topic="orders", as_leader=True)
        if 21 * S < row["t_us"] < 40 * S
    }
    in_zookeeper = ran.leader_at(40 * S)
    assert (led == {in_zookeeper}) is (kind == "fixed")
    assert len(led) == 1
