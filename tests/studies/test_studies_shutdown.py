"""Controlled shutdown before Kafka 1.1 and since: what made it minutes, and what was left."""

from dataclasses import replace

import pytest

from sim.studies.failover import PUBLISHED
from sim.studies.shutdown import SIZE, table

SMALL, LARGE = 300, 600


def seconds(size, costs=PUBLISHED):
    return [row.seconds for row in table((size,), costs)]


def test_the_logging_of_every_state_grows_with_the_square_of_the_cluster_and_the_rest_with_it():
    (small_all, small_one, small_batched), (all_, one, batched) = seconds(SMALL), seconds(LARGE)
    assert (all_ - one) / (small_all - small_one) == pytest.approx(4, rel=0.1)
    assert one / small_one == pytest.approx(2, rel=0.1)
    assert batched / small_batched == pytest.approx(2, rel=0.2)


def test_a_row_says_what_was_moved_and_names_published_times_of_the_published_size_only():
    rows = list(table((SMALL,)))
    assert [row.replicas_moved for row in rows] == [120] * 3
    assert [row.published_seconds for row in rows] == [0.0] * 3


def test_without_the_cost_of_the_logging_the_two_old_ways_take_alike():
    """The twin: it is the logging that makes the difference."""
    free = replace(PUBLISHED, logged_state_ns=0)
    logged, silent, _ = seconds(SMALL, free)
    assert logged == pytest.approx(silent, rel=0.01)


@pytest.mark.slow
def test_six_and_a_half_minutes_become_three_seconds():
    """Catalogue C9: published 6.5 min and 3 s, 30 s without the logging; at least 50 to 1."""
    rows = list(table())
    assert [row.published_seconds for row in rows] == [390.0, 30.0, 3.0]
    assert {row.partitions for row in rows} == {SIZE}
    logged, silent, batched = (row.seconds for row in rows)
    assert 390 / 1.5 <= logged <= 390 * 1.5
    assert 30 / 3 <= silent <= 30, "the writes of the article's servers are not known"
    assert batched <= 5
    assert logged / batched >= 50
