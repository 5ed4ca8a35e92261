"""A partition is offline while nobody leads it, or nobody who is in service."""

import pytest

from sim.checking.outcomes.offline import OfflinePartitions, longest
from tests.scenarios.run_kit import S

HOUR = 3600 * S


def offline(*changes, deleted=()):
    """(instant, leader) of orders-0, or (instant, leader, partition)."""
    found = OfflinePartitions()
    for at, leader, *rest in changes:
        partition = rest[0] if rest else 0
        found.change((at, 3001, "orders", partition, leader, 0, 0, "", "", "1,2,3", False))
    for at, topic in deleted:
        found.deletion((at, 3001, topic, "an-id"))
    return found


def dying(*states, leaders=((0, 1),), registrations=()):
    """orders-0 with leaders, the states of broker-1, and of its registration."""
    found = offline(*leaders)
    rows = [(at, found.state, (at, "broker-1", state, 1)) for at, state in states]
    rows += [(at, found.registration, (at, 3001, 1, state, 7)) for at, state in registrations]
    for _, listener, row in sorted(rows, key=lambda each: each[0]):
        listener(row)
    return found.report(HOUR).get("orders-0")


@pytest.mark.parametrize("state", ["crashed", "powered_off", "stopped", "paused"])
def test_a_leader_that_is_dead_or_stands_still_leads_nothing_whatever_the_controller_knows(state):
    told = dying((2 * S, state), leaders=((0, 1), (11 * S, 2)))
    assert told == {"max_us": 9 * S, "from_us": 2 * S, "total_us": 9 * S}


def test_death_and_what_is_committed_of_it_are_one_outage():
    told = dying((2 * S, "crashed"), leaders=((0, 1), (11 * S, -1), (20 * S, 2)))
    assert told == {"max_us": 18 * S, "from_us": 2 * S, "total_us": 18 * S}


def test_a_leader_that_is_started_again_leads_once_its_new_registration_is_unfenced():
    told = dying(
        (15 * S, "crashed"), (20 * S, "started"), (21 * S, "running"),
        registrations=((48 * S, "registered"), (51 * S, "unfenced")),
    )  # fmt: skip
    assert told == {"max_us": 36 * S, "from_us": 15 * S, "total_us": 36 * S}


def test_a_process_that_goes_on_after_a_pause_leads_at_once():
    told = dying((2 * S, "paused"), (5 * S, "resumed"))
    assert told == {"max_us": 3 * S, "from_us": 2 * S, "total_us": 3 * S}


def test_a_leader_that_shuts_down_in_good_order_leads_until_others_do():
    states = ((3 * S, "stopped"), (5 * S, "started"))
    shutdown = ((2 * S, "controlled_shutdown"), (6 * S, "registered"), (7 * S, "unfenced"))
    assert dying(*states, leaders=((0, 1), (2 * S, 2)), registrations=shutdown) is None


def test_the_death_of_a_broker_that_does_not_lead_is_no_outage():
    assert dying((2 * S, "crashed"), leaders=((0, 2),)) is None


def test_the_longest_stretch_and_all_of_them_are_told():
    told = offline((1 * S, 1), (2 * S, -1), (3 * S, 2), (5 * S, -1), (9 * S, 1)).report(HOUR)
    assert told == {"orders-0": {"max_us": 4 * S, "from_us": 5 * S, "total_us": 5 * S}}
    assert longest(told) == 4 * S


def test_a_change_that_leaves_nobody_leading_begins_nothing_anew():
    told = offline((2 * S, -1), (3 * S, -1), (6 * S, 1)).report(HOUR)
    assert told["orders-0"] == {"max_us": 4 * S, "from_us": 2 * S, "total_us": 4 * S}


def test_who_is_offline_at_the_end_was_so_until_the_end():
    assert offline((2 * S, -1)).report(10 * S)["orders-0"]["max_us"] == 8 * S


def test_of_equal_stretches_the_earliest_is_told():
    told = offline((2 * S, -1), (3 * S, 1), (7 * S, -1), (8 * S, 1)).report(HOUR)
    assert told["orders-0"]["from_us"] == 2 * S


def test_what_comes_before_the_run_is_no_outage():
    assert offline((-9 * S, -1), (-8 * S, 1)).report(HOUR) == {}
    assert offline((-9 * S, -1), (2 * S, 1)).report(HOUR)["orders-0"]["max_us"] == 2 * S


def test_a_topic_that_is_gone_is_missed_by_nobody():
    found = offline((2 * S, -1), (2 * S, -1, 1), deleted=[(5 * S, "orders"), (6 * S, "other")])
    told = found.report(HOUR)
    assert [told[name]["total_us"] for name in ("orders-0", "orders-1")] == [3 * S, 3 * S]


def test_of_a_window_what_lies_in_it_counts():
    found = offline((2 * S, -1), (6 * S, 1), (8 * S, -1, 1), (9 * S, 1, 1))
    assert found.report(HOUR, 4 * S, 7 * S) == {
        "orders-0": {"max_us": 2 * S, "from_us": 4 * S, "total_us": 2 * S}
    }
    assert found.report(HOUR, 6 * S, 8 * S) == {}


def test_where_everybody_has_a_leader_the_longest_time_is_none():
    assert longest(offline((0, 1), (5 * S, 2)).report(HOUR)) == 0
