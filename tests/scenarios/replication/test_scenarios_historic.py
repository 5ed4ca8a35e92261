"""What KIP-841 and the check of the quorum changed, seen in whole clusters."""

import pytest

from tests.scenarios.run_kit import S, go

DEAF = {
    "at": "2s", "do": "partition", "between": ["broker-3"],
    "and": ["controller-1", "controller-2", "controller-3"], "for": "5s",
}  # fmt: skip
CUT = {
    "at": "2s", "do": "partition", "between": ["controller leader"],
    "and": ["controller-1", "controller-2", "controller-3"], "for": "10s",
}  # fmt: skip


def members(ran, at):
    rows = [r for r in ran.rows("partition_changes", topic="orders") if r["t_us"] <= at]
    return {r["partition"]: r["in_sync"].split(",") for r in rows}


@pytest.mark.parametrize(("position", "stays"), [("kip841", False), ("none", True)])
def test_a_fenced_broker_that_still_fetches_is_kept_out_of_the_isr_only_since_kip841(
    position, stays, tmp_path
):
    """Catalogue C8 without the shutdown: the broker hears nothing of the controllers."""
    ran = go(
        tmp_path,
        faults=[DEAF],
        lasts="8s",
        config={"broker.session.timeout.ms": 2_000, "broker.heartbeat.interval.ms": 500},
        producer={"rate": "100/s"},
        behaviours={"isr.eligibility": position},
    )
    (fenced,) = ran.times("broker_states", broker=3, state="fenced")
    assert 3 * S < fenced < 5 * S
    isr = members(ran, 6 * S)
    followed = [p for p in isr if ran.leader_at(2 * S, p) != 3]
    assert len(followed) == 2  # of the third it believes that it leads
    assert [("3" in isr[p]) for p in followed] == [stays, stays]
    # Unfenced again, it comes back everywhere, written to or not.
    assert all("3" in listed for listed in members(ran, 10 * S).values())
    assert ran.records["lost_acked"] == 0


def leaders_at(ran, at):
    last = {}
    for row in ran.rows("quorum"):
        if row["t_us"] <= at:
            last[row["node"]] = row["role"]
    return sorted(node for node, role in last.items() if role == "leader")


@pytest.mark.parametrize(("position", "count"), [("on", 1), ("off", 2)])
def test_a_controller_cut_from_its_quorum_stays_leader_only_without_the_check(
    position, count, tmp_path
):
    """Catalogue C6: until the heal there are two, of which one cannot commit."""
    ran = go(
        tmp_path,
        faults=[CUT],
        lasts="20s",
        producer={"rate": "100/s"},
        behaviours={"kraft.check_quorum": position},
    )
    assert len(leaders_at(ran, 2 * S)) == 1
    assert len(leaders_at(ran, 9 * S)) == count
    old = leaders_at(ran, 2 * S)[0]
    roles = [r["role"] for r in ran.rows("quorum", node=old) if 2 * S < r["t_us"] < 11 * S]
    assert ("resigned" in roles) is (position == "on")
    assert len(leaders_at(ran, 20 * S)) == 1
