"""Who had which partition when, from what members and their coordinator wrote into the trace."""

import pandas as pd
import pytest

from analysis.report import groups

END = 100


def frame(columns, rows):
    return pd.DataFrame(rows, columns=columns.split())


def had(assignments=(), revocations=(), states=()):
    members, owners = groups.memberships(
        frame("t_us consumer group partitions", assignments),
        frame("t_us consumer partitions", revocations),
        frame("t_us node state", states),
        END,
    )
    shares = [tuple(row)[1:] for row in members.itertuples(index=False)]
    return shares, [tuple(row)[2:] for row in owners.itertuples(index=False)]


def test_a_partition_is_its_owners_until_the_end():
    members, owners = had([(10, "a", "g", "orders-0,orders-1")])
    assert members == [("a", 10, END, 2)]
    assert owners == [(0, "a", 10, END), (1, "a", 10, END)]


def test_what_stays_is_one_interval_and_what_moves_ends_where_it_is_given_up():
    assignments = [(10, "a", "g", "orders-0,orders-1"), (30, "a", "g", "orders-0")]
    members, owners = had([*assignments, (40, "b", "g", "orders-1")], [(30, "a", "orders-1")])
    assert owners == [(0, "a", 10, END), (1, "a", 10, 30), (1, "b", 40, END)]
    assert [row for row in members if row[0] == "b"] == [("b", 40, END, 1)]


@pytest.mark.parametrize("state", ["crashed", "stopped", "powered_off"])
def test_a_process_that_is_gone_has_nothing_and_one_that_is_paused_has_all(state):
    assigned = [(10, "a", "g", "orders-0")]
    assert had(assigned, states=[(50, "a", state)])[1] == [(0, "a", 10, 50)]
    assert had(assigned, states=[(50, "a", "paused")])[1] == [(0, "a", 10, END)]


def test_an_idle_member_is_there_with_no_partition_and_takes_over_later():
    assignments = [(10, "a", "g", "orders-0"), (10, "b", "g", ""), (60, "b", "g", "orders-0")]
    members, owners = had(assignments, states=[(50, "a", "crashed")])
    assert members == [("a", 10, 50, 1), ("b", 10, 60, 0), ("b", 60, END, 1)]
    assert owners == [(0, "a", 10, 50), (0, "b", 60, END)]


def test_an_eager_member_has_nothing_while_the_group_rebalances():
    assignments = [(10, "a", "g", "orders-0"), (40, "a", "g", "orders-0")]
    _, owners = had(assignments, [(30, "a", "orders-0")])
    assert owners == [(0, "a", 10, 30), (0, "a", 40, END)]


def test_topics_with_dashes_keep_their_names():
    _, owners = groups.memberships(
        frame("t_us consumer group partitions", [(1, "a", "g", "my-orders-12")]),
        frame("t_us consumer partitions", []),
        frame("t_us node state", []),
        END,
    )
    assert owners[["topic", "partition"]].to_numpy().tolist() == [["my-orders", 12]]


def test_a_rebalance_lasts_from_preparing_until_the_group_is_stable_or_empty():
    rows = [
        (1, "g", "Empty", 0), (2, "g", "PreparingRebalance", 0), (5, "g", "CompletingRebalance", 1),
        (6, "g", "Stable", 1), (50, "h", "PreparingRebalance", 3),
    ]  # fmt: skip
    found = groups.rebalances(frame("t_us group state generation", rows), END)
    assert found.to_numpy().tolist() == [["g", 2, 6, 1], ["h", 50, END, 3]]
