"""Waits between a client's attempts are those of Kafka's ExponentialBackoff."""

import pytest

from sim.protocol.clients.backoff import backoff_us


def undrawn():
    raise AssertionError("chance was asked for")


@pytest.mark.parametrize(("initial", "longest"), [(100, 100), (100, 40), (0, 0), (100, 0)])
def test_where_the_longest_wait_is_not_above_the_first_all_are_alike_without_jitter(
    initial, longest
):
    assert {backoff_us(initial, longest, n, undrawn) for n in range(5)} == {longest}


def test_waits_double_up_to_the_longest_within_a_fifth():
    low = [backoff_us(1_000, 6_000, n, lambda: 0.0) for n in range(5)]
    high = [backoff_us(1_000, 6_000, n, lambda: 0.999_999) for n in range(5)]
    assert low == [800, 1_600, 3_200, 4_800, 4_800]
    assert high == [1_200, 2_400, 4_800, 6_000, 6_000]
