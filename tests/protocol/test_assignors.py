"""The assignors and the hash of a group id, against worked examples and their own promises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.ids import TopicPartition
from sim.protocol.assignors import (
    ASSIGNORS,
    java_string_hash,
    partition_for_group,
    range_assignment,
    roundrobin_assignment,
)

TOPICS = ("a", "b", "c")


def places(topic, *numbers):
    return tuple(TopicPartition(topic, number) for number in numbers)


def test_range_gives_the_first_members_one_more():
    shares = range_assignment({"m2": ("t",), "m1": ("t",), "m3": ("t",)}, {"t": 8})
    assert shares == {
        "m1": places("t", 0, 1, 2),
        "m2": places("t", 3, 4, 5),
        "m3": places("t", 6, 7),
    }


def test_range_works_topic_by_topic_so_small_topics_pile_up_on_the_first_member():
    shares = range_assignment({"m1": ("t", "u"), "m2": ("t", "u")}, {"t": 1, "u": 1})
    assert shares == {"m1": (*places("t", 0), *places("u", 0)), "m2": ()}


def test_roundrobin_spreads_what_range_piles_up():
    shares = roundrobin_assignment({"m1": ("t", "u"), "m2": ("t", "u")}, {"t": 1, "u": 1})
    assert shares == {"m1": places("t", 0), "m2": places("u", 0)}


def test_roundrobin_passes_over_members_without_the_topic():
    shares = roundrobin_assignment(
        {"m1": ("t",), "m2": ("t", "u"), "m3": ("t", "u", "v")}, {"t": 1, "u": 2, "v": 3}
    )
    # The example in the Javadoc of RoundRobinAssignor.
    assert shares["m1"] == places("t", 0)
    assert shares["m2"] == places("u", 0)
    assert shares["m3"] == (*places("u", 1), *places("v", 0, 1, 2))


def test_members_beyond_the_partitions_stay_idle():
    shares = range_assignment({f"m{n}": ("t",) for n in range(5)}, {"t": 3})
    assert [len(share) for share in shares.values()] == [1, 1, 1, 0, 0]


def test_a_topic_of_unknown_size_is_left_out():
    assert range_assignment({"m": ("t", "nowhere")}, {"t": 1}) == {"m": places("t", 0)}


@pytest.mark.parametrize("name", sorted(ASSIGNORS))
@given(
    subscriptions=st.dictionaries(
        st.text("mnop", min_size=1, max_size=3),
        st.lists(st.sampled_from(TOPICS), unique=True, min_size=1).map(tuple),
        min_size=1,
        max_size=6,
    ),
    counts=st.fixed_dictionaries({topic: st.integers(0, 9) for topic in TOPICS}),
)
def test_every_partition_with_a_subscriber_is_assigned_once_to_a_subscriber(
    name, subscriptions, counts
):
    shares = ASSIGNORS[name](subscriptions, counts)
    assert sorted(shares) == sorted(subscriptions)
    given_out = sorted(place for share in shares.values() for place in share)
    wanted = {topic for topics in subscriptions.values() for topic in topics}
    assert given_out == [
        TopicPartition(topic, n)
        for topic in TOPICS
        if topic in wanted
        for n in range(counts[topic])
    ]
    for member, share in shares.items():
        assert all(place.topic in subscriptions[member] for place in share)
    if name == "range":
        for topic in wanted:
            sizes = [
                sum(place.topic == topic for place in share)
                for member, share in shares.items()
                if topic in subscriptions[member]
            ]
            assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("g1", 3242),
        ("my-group", -1906497762),
        ("orders", -1008770331),
        ("tx-1", 3572520),
        ("polygenelubricants", -(1 << 31)),
    ],
)
def test_java_hash_is_that_of_java(text, value):
    assert java_string_hash(text) == value


def test_java_hash_counts_utf_16_units_not_code_points():
    assert java_string_hash("\U0001f600") == 0xD83D * 31 + 0xDE00


@pytest.mark.parametrize(
    ("group", "partition"),
    [
        ("g1", 42),
        ("my-group", 12),
        ("tx-1", 20),
        ("orders", 31),
        ("polygenelubricants", 0),
    ],
)
def test_a_group_lives_where_kafka_puts_it(group, partition):
    assert partition_for_group(group) == partition


def test_another_partition_count_moves_the_group():
    assert partition_for_group("g1", 4) == 2
