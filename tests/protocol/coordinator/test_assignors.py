"""The assignors and the hash of a group id, against worked examples and their own promises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.ids import TopicPartition
from sim.protocol.assignors.registry import (
    ASSIGNORS,
    cooperative_sticky_assignment,
    java_string_hash,
    partition_for_group,
    range_assignment,
    roundrobin_assignment,
    sticky_assignment,
)
from sim.protocol.assignors.subscription import Subscription, without_racks

TOPICS = ("a", "b", "c")


def writes_of(subscriptions):
    return {member: Subscription(topics) for member, topics in subscriptions.items()}


def assigned(assignor, subscriptions, counts):
    return assignor(writes_of(subscriptions), without_racks(counts))


def places(topic, *numbers):
    return tuple(TopicPartition(topic, number) for number in numbers)


def test_range_gives_the_first_members_one_more():
    shares = assigned(range_assignment, {"m2": ("t",), "m1": ("t",), "m3": ("t",)}, {"t": 8})
    assert shares == {
        "m1": places("t", 0, 1, 2),
        "m2": places("t", 3, 4, 5),
        "m3": places("t", 6, 7),
    }


def test_range_works_topic_by_topic_so_small_topics_pile_up_on_the_first_member():
    shares = assigned(range_assignment, {"m1": ("t", "u"), "m2": ("t", "u")}, {"t": 1, "u": 1})
    assert shares == {"m1": (*places("t", 0), *places("u", 0)), "m2": ()}


def test_roundrobin_spreads_what_range_piles_up():
    shares = assigned(roundrobin_assignment, {"m1": ("t", "u"), "m2": ("t", "u")}, {"t": 1, "u": 1})
    assert shares == {"m1": places("t", 0), "m2": places("u", 0)}


def test_roundrobin_passes_over_members_without_the_topic():
    shares = assigned(
        roundrobin_assignment,
        {"m1": ("t",), "m2": ("t", "u"), "m3": ("t", "u", "v")},
        {"t": 1, "u": 2, "v": 3},
    )
    # The example in the Javadoc of RoundRobinAssignor.
    assert shares["m1"] == places("t", 0)
    assert shares["m2"] == places("u", 0)
    assert shares["m3"] == (*places("u", 1), *places("v", 0, 1, 2))


def test_members_beyond_the_partitions_stay_idle():
    shares = assigned(range_assignment, {f"m{n}": ("t",) for n in range(5)}, {"t": 3})
    assert [len(share) for share in shares.values()] == [1, 1, 1, 0, 0]


def test_a_topic_of_unknown_size_is_left_out():
    assert assigned(range_assignment, {"m": ("t", "nowhere")}, {"t": 1}) == {"m": places("t", 0)}


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
    shares = assigned(ASSIGNORS[name], subscriptions, counts)
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


def owning(topics, *numbers, generation=1):
    return Subscription(topics, tuple(TopicPartition("t", n) for n in numbers), generation)


def test_a_newcomer_gets_what_moves_only_when_its_owner_has_given_it_up():
    topics = without_racks({"t": 3})
    members = {"a": owning(("t",), 0, 1, 2), "b": owning(("t",), generation=-1)}
    first = cooperative_sticky_assignment(members, topics)
    assert first == {"a": places("t", 0, 1), "b": ()}
    members = {"a": owning(("t",), 0, 1, generation=2), "b": owning(("t",), generation=2)}
    assert cooperative_sticky_assignment(members, topics) == {
        "a": places("t", 0, 1),
        "b": places("t", 2),
    }


def test_what_two_members_of_one_generation_claim_is_nobodys_until_the_next_rebalance():
    members = {"a": owning(("t",), 0, 1), "b": owning(("t",), 1, 2)}
    shares = cooperative_sticky_assignment(members, without_racks({"t": 3}))
    assert TopicPartition("t", 1) not in (*shares["a"], *shares["b"])


def test_a_later_generation_is_right_about_who_owns_what():
    members = {"a": owning(("t",), 0, 1, generation=3), "b": owning(("t",), 1, generation=2)}
    shares = cooperative_sticky_assignment(members, without_racks({"t": 2}))
    assert shares == {"a": places("t", 0), "b": ()}  # one moves, and a has it still


def test_sticky_moves_nothing_that_may_stay():
    def member(*numbers):
        return Subscription(("t",), remembered=places("t", *numbers), remembered_generation=4)

    shares = sticky_assignment(
        {"a": member(0, 3), "b": member(1, 4), "new": Subscription(("t",))}, without_racks({"t": 6})
    )
    assert shares == {"a": places("t", 0, 3), "b": places("t", 1, 4), "new": places("t", 2, 5)}


def test_range_prefers_the_members_own_rack_and_keeps_topics_of_one_size_together():
    racks = dict.fromkeys(("t", "u"), (("y",), ("x",), ("y",), ("x",)))
    members = {
        "m1": Subscription(("t", "u"), rack="x"),
        "m2": Subscription(("t", "u"), rack="y"),
    }
    shares = range_assignment(members, racks)
    assert shares == {
        "m1": (*places("t", 1, 3), *places("u", 1, 3)),
        "m2": (*places("t", 0, 2), *places("u", 0, 2)),
    }


def test_racks_that_all_have_everything_change_nothing():
    members = {"m1": Subscription(("t",), rack="x"), "m2": Subscription(("t",), rack="y")}
    shares = range_assignment(members, {"t": (("x", "y"),) * 2})
    assert shares == {"m1": places("t", 0), "m2": places("t", 1)}


def test_members_with_an_instance_id_come_first_and_in_its_order():
    members = {
        "a": Subscription(("t",)),
        "x": Subscription(("t",), instance_id="two"),
        "y": Subscription(("t",), instance_id="one"),
    }
    shares = range_assignment(members, without_racks({"t": 3}))
    assert shares == {"y": places("t", 0), "x": places("t", 1), "a": places("t", 2)}


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
