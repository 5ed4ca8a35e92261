"""The hash that clients agree on, and the sticky partitioner."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.protocol.clients.producer.partitioner import (
    StickyPartitioner,
    key_of,
    load_table,
    murmur2,
    partition_of,
    partitions_of_keys,
    pick_by_load,
)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"abc", 479470107),
        (b"", 275646681),
    ],
)
def test_murmur2_is_kafkas(key, value):
    assert murmur2(key) == value


def test_keys_go_where_kafka_sends_them_over_twelve_partitions():
    assert [partition_of(key, 12) for key in (b"21", b"foobar", b"abc")] == [0, 6, 3]


@given(st.lists(st.integers(0, 99_999_999), min_size=1, max_size=40), st.integers(1, 200))
def test_many_keys_at_once_go_where_each_goes_alone(ids, count):
    many = partitions_of_keys(np.array(ids, dtype=np.int64), count)
    assert many.tolist() == [partition_of(key_of(each), count) for each in ids]


def test_short_queues_are_preferred_in_proportion():
    table = load_table([0, 3, 1], 3)
    assert table == (4, 5, 8)
    assert [pick_by_load(table, number) for number in range(8)] == [0, 0, 0, 0, 1, 2, 2, 2]


@pytest.mark.parametrize(("lengths", "count"), [([2, 2, 2], 3), ([], 3), ([5], 1)])
def test_queues_that_tell_nothing_give_no_statistics(lengths, count):
    assert load_table(lengths, count) is None


def test_equal_queues_count_when_a_partition_has_no_leader():
    assert load_table([2, 2], 3) == (1, 2)


def test_a_partition_is_left_at_one_batch_only_if_no_open_batch_stays_behind():
    sticky = StickyPartitioner(lambda: 0.0, 1_000)
    sticky.produced_bytes = 1_000
    assert sticky.may_switch(all_full=True)
    assert not sticky.may_switch(all_full=False)


def test_a_partition_is_left_at_two_batches_in_any_case():
    sticky = StickyPartitioner(lambda: 0.0, 1_000)
    sticky.produced_bytes = 1_999
    assert not sticky.may_switch(all_full=False)
    sticky.produced_bytes = 2_000
    assert sticky.may_switch(all_full=False)


def test_a_partition_without_leader_is_not_chosen_unless_none_has_one():
    sticky = StickyPartitioner(lambda: 0.99, 1_000)
    sticky.switch((0, 1), 3, None)
    assert sticky.partition == 1
    sticky.switch((), 3, None)
    assert sticky.partition == 2
