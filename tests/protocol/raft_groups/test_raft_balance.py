"""Leaders are counted over the brokers, and the fullest gives to the emptiest that can take."""

from sim.ids import TopicPartition
from sim.protocol.metadata.image import BrokerRegistration, MetadataImage, PartitionRegistration
from sim.protocol.raft_groups.leader_balancer import leaders_to_move


def cluster(*leaders, replicas=(1, 2, 3), fenced=(), **partition):
    image = MetadataImage()
    for broker in (1, 2, 3):
        image.brokers[broker] = BrokerRegistration(
            broker, 1, "", "", fenced=broker in fenced, in_controlled_shutdown=False
        )
    for number, leader in enumerate(leaders):
        known = PartitionRegistration("id", replicas, replicas, leader, 1, 0, **partition)
        image.partitions[TopicPartition("orders", number)] = known
    return image


def moves(image):
    return [(p.partition, to) for p, to in leaders_to_move(image).items()]


def test_the_fullest_broker_gives_to_the_emptiest_until_they_differ_by_one_at_most():
    assert moves(cluster(1, 1, 1, 1, 2, 2)) == [(0, 3), (1, 3)]
    assert moves(cluster(1, 1, 2, 3)) == []


def test_a_broker_that_is_fenced_gets_nothing():
    assert moves(cluster(1, 1, 1, 1, fenced=(3,))) == [(0, 2), (1, 2)]


def test_only_a_replica_can_lead():
    assert moves(cluster(1, 1, 1, replicas=(1, 2))) == [(0, 2)]
    assert moves(cluster(1, 1, 1, replicas=(1,))) == []


def test_a_partition_that_is_being_moved_is_left_alone():
    assert moves(cluster(1, 1, 1, adding=(3,))) == []
