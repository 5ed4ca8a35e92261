"""Replicas go where fewer are, leave who goes, and only so many partitions move at a time."""

import random

from sim.ids import TopicPartition
from sim.protocol.controller.partition_balancer import Away, BalancerConfig, moves_under_way, plan
from sim.protocol.metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration
from sim.protocol.metadata.records import DRAINING, JOINING

NOBODY = Away()


def cluster(topics, brokers=(1, 2, 3, 4), racks="", **memberships):
    """``topics``: by name, the replicas of each partition; ``memberships``: ``b4="joining"``."""
    image = MetadataImage()
    for place, broker in enumerate(brokers):
        rack = racks[place] if racks else ""
        image.brokers[broker] = BrokerRegistration(
            broker, 1, "", rack, fenced=False, in_controlled_shutdown=False
        )
    for name, partitions in topics.items():
        for number, replicas in enumerate(partitions):
            known = PartitionRegistration(name, replicas, replicas, replicas[0], 1, 0)
            image.partitions[TopicPartition(name, number)] = known
    image.memberships = {int(name[1:]): value for name, value in memberships.items()}
    return image


def planned(image, away=NOBODY, seed=1, **config):
    return plan(image, BalancerConfig(**config), away, random.Random(seed).random)


def counts(image, made, topic=None):
    found = dict.fromkeys(image.brokers, 0)
    for partition, known in image.partitions.items():
        for broker in made.moves.get(partition, known.replicas):
            if topic in (None, partition.topic):
                found[broker] += 1
    return found


EIGHT = {"orders": [(1, 2, 3)] * 8}


def test_a_broker_that_has_come_gets_replicas_until_the_counts_are_even():
    image = cluster(EIGHT, b4=JOINING)
    made = planned(image)
    assert counts(image, made) == {1: 6, 2: 6, 3: 6, 4: 6}
    assert len(made.moves) == 6
    assert not made.is_even


def test_when_nothing_is_to_be_gained_the_counts_are_even():
    image = cluster({"orders": [(1, 2, 3), (1, 2, 4), (1, 3, 4), (2, 3, 4)]}, b4=JOINING)
    made = planned(image)
    assert made.moves == {}
    assert made.is_even


def test_without_a_broker_that_has_come_nothing_moves_however_uneven_it_is():
    assert planned(cluster(EIGHT)).moves == {}
    assert planned(cluster(EIGHT, b4=JOINING), mode="off").moves == {}


def test_a_replica_keeps_its_group_and_the_new_one_comes_last():
    image = cluster({"orders": [(1, 2, 3)] * 2}, b4=JOINING)
    for replicas in planned(image).moves.values():
        assert replicas[2] == 4
        assert len({*replicas}) == 3


def test_only_so_many_partitions_move_at_a_time_those_under_way_included():
    image = cluster(EIGHT, b4=JOINING)
    assert len(planned(image, concurrent_moves=2).moves) == 2
    under_way = PartitionRegistration("o", (1, 2, 4, 3), (1, 2, 3), 1, 1, 0, (), (3,), (4,))
    image.partitions[TopicPartition("orders", 0)] = under_way
    assert moves_under_way(image) == 1
    made = planned(image, concurrent_moves=2)
    assert len(made.moves) == 1
    assert TopicPartition("orders", 0) not in made.moves
    assert not made.is_even


def test_each_topic_is_spread_evenly_first():
    topics = {"orders": [(1,), (2,)] * 2, "bills": [(1,), (2,)] * 2}
    image = cluster(topics, brokers=(1, 2, 3, 4), b3=JOINING, b4=JOINING)
    made = planned(image)
    for topic in topics:
        assert counts(image, made, topic) == {1: 1, 2: 1, 3: 1, 4: 1}


def test_replicas_leave_a_broker_that_is_drained_in_every_mode():
    image = cluster({"orders": [(1, 2, 3), (2, 3, 1), (3, 2, 4)]}, b1=DRAINING)
    for mode in ("off", "node_add", "continuous"):
        made = planned(image, mode=mode)
        assert [1 in replicas for replicas in made.moves.values()] == [False, False]
        assert all(4 in replicas for replicas in made.moves.values())


def test_a_replica_that_has_nowhere_to_go_stays():
    image = cluster({"orders": [(1, 2, 3)]}, brokers=(1, 2, 3), b1=DRAINING)
    assert planned(image).moves == {}


def test_nothing_goes_to_a_broker_that_is_away_and_it_is_not_even_until_it_is_back():
    image = cluster(EIGHT, b4=JOINING)
    made = planned(image, away=Away((4,)))
    assert made.moves == {}
    assert not made.is_even


def test_a_group_without_its_majority_is_left_alone():
    image = cluster({"orders": [(1, 2, 3)]}, brokers=(1, 2, 3, 4, 5), b1=DRAINING)
    assert planned(image, away=Away((2, 3))).moves == {}
    assert len(planned(image, away=Away((2,))).moves) == 1


def test_replicas_of_a_broker_that_is_away_for_long_move_in_continuous_mode_only():
    image = cluster({"orders": [(1, 2, 3)]})
    away = Away((3,), (3,))
    assert planned(image, away).moves == {}
    (moved,) = planned(image, away, mode="continuous").moves.values()
    assert moved == (1, 2, 4)
    assert planned(image, Away((3,)), mode="continuous").moves == {}


def test_a_move_to_a_broker_that_is_to_hold_nothing_is_called_off():
    image = cluster({"orders": [(1, 2, 3)]}, b4=DRAINING)
    partition = TopicPartition("orders", 0)
    image.partitions[partition] = PartitionRegistration(
        "o", (1, 2, 4, 3), (1, 2, 3), 1, 1, 0, (), (3,), (4,)
    )
    made = planned(image)
    assert made.cancelled == (partition,)
    assert made.moves == {}


def test_a_replica_goes_to_another_rack_than_the_others_before_it_goes_where_fewer_are():
    topics = {"orders": [(1, 2)], "bills": [(3,), (3,), (3,)]}
    image = cluster(topics, brokers=(1, 2, 3, 4), racks="abca", b2=DRAINING)
    made = planned(image)
    assert made.moves[TopicPartition("orders", 0)] == (1, 3)


def test_a_second_replica_in_a_rack_goes_to_a_rack_without_any_in_continuous_mode():
    image = cluster({"orders": [(1, 2)]}, brokers=(1, 2, 3), racks="aab")
    assert planned(image, mode="node_add").moves == {}
    assert list(planned(image, mode="continuous").moves.values()) == [(1, 3)]


def test_which_replicas_move_is_drawn():
    image = cluster(EIGHT, b4=JOINING)
    assert planned(image, seed=1).moves != planned(image, seed=2).moves
    assert planned(image, seed=1).moves == planned(image, seed=1).moves
