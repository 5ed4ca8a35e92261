"""Quantities are exact, and nothing without a unit passes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.scenario.expect.bounds import parse
from sim.scenario.text import quantities as q


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("15s", 15_000_000),
        ("600us", 600),
        ("1.5ms", 1_500),
        ("2min", 120_000_000),
        ("0s", 0),
        ("1 h", 3_600_000_000),
    ],
)
def test_duration_is_whole_microseconds(text, us):
    assert q.parse_duration(text) == us


@pytest.mark.parametrize(
    "value", [15, 1.5, "15", "-5s", "5 parsecs", "s", "", None, True, [], {}, "1.5us", "1e3s", "٣s"]
)
def test_duration_without_unit_or_sense_is_refused(value):
    with pytest.raises(q.QuantityError):
        q.parse_duration(value)


def test_decimal_and_binary_sizes_are_kept_apart():
    assert (q.parse_size("64KiB"), q.parse_size("64kB")) == (65_536, 64_000)


def test_a_bit_is_an_eighth_of_a_byte():
    assert q.parse_bandwidth("10Gbit/s") == 1_250_000_000
    assert q.parse_bandwidth("1GB/s") == 1_000_000_000


def test_rate_of_a_minute_counts_only_if_whole_each_second():
    assert q.parse_rate("300/min") == 5
    with pytest.raises(q.QuantityError):
        q.parse_rate("90/min")


def test_zero_rate_is_refused():
    with pytest.raises(q.QuantityError, match="zero"):
        q.parse_rate("0/s")


@pytest.mark.parametrize(
    ("asked", "held", "broken"),
    [
        (0, [0], [1]),
        ("0", [0], [1]),
        ("at least 1", [1, 9], [0]),
        ("> 0", [1], [0]),
        (">= 2", [2], [1]),
        ("< 5", [4], [5]),
        ("<= 5", [5], [6]),
        ("at most 5", [0, 5], [6]),
        ("0..10", [0, 10], [11]),
    ],
)
def test_bound_of_records_holds_inside_and_not_outside(asked, held, broken):
    line = parse("lost_acked", asked)
    assert all(line.holds(number) for number in held)
    assert not any(line.holds(number) for number in broken)


def test_bound_of_time_needs_its_unit():
    assert q.parse_bound("7s..15s", "time") == q.Bound(7_000_000, 15_000_000, False, False)
    assert q.parse_bound("< 250ms", "time") == q.Bound(None, 250_000, False, True)
    for wrong in ("< 250", 250, "15s..7s", "soon", None, "at least"):
        with pytest.raises(q.QuantityError):
            q.parse_bound(wrong, "time")


@given(st.integers(min_value=0, max_value=1 << 50))
def test_what_is_shown_reads_back_the_same(number):
    assert q.parse_duration(q.show_duration(number)) == number
    assert q.parse_size(q.show_size(number)) == number


@given(st.integers(min_value=1, max_value=1 << 50))
def test_shown_bandwidth_and_rate_read_back_the_same(number):
    assert q.parse_bandwidth(q.show_bandwidth(number)) == number
    assert q.parse_rate(q.show_rate(number)) == number
