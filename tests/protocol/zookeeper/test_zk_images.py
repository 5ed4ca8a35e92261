"""What a broker of ZooKeeper mode leads and follows, and what it tells clients."""

from sim.ids import TopicPartition
from sim.protocol.broker.metadata_api import MetadataApi, MetadataApiState
from sim.protocol.events import RequestReceived
from sim.protocol.messages.cluster import NewTopic
from sim.protocol.messages.metadata import MetadataRequest
from sim.protocol.metadata.image import MetadataImage
from sim.protocol.zk_mode.images import ZkImages
from sim.protocol.zk_mode.znodes import BrokerInfo, LeaderIsr, PartitionEntry, TopicFacts

FACTS = TopicFacts("id-of-orders", (("min.insync.replicas", "2"),))


def entry(number, leader=1, epoch=0, version=0):
    state = LeaderIsr(leader, epoch, (1, 2), 1)
    return PartitionEntry(TopicPartition("orders", number), state, version, (1, 2, 3), FACTS)


def told(image):
    desk = MetadataApi(1, NewTopic("__transaction_state", 1, 1))
    desk.handle(MetadataApiState(image, 1, 1), 0)
    (reply,) = desk.handle(RequestReceived(1, "shop", MetadataRequest(("orders",))), 0)
    return [p.partition for p in reply.response.topics.get("orders", ())]


def test_a_leadership_is_taken_up_before_clients_are_told_of_it():
    metadata = MetadataImage()
    images = ZkImages(metadata)
    assert images.lead_or_follow([entry(1)]) == (TopicPartition("orders", 1),)
    assert images.replicas.leader_of(TopicPartition("orders", 1)) == 1
    assert images.replicas.configs_of("orders") == {"min.insync.replicas": "2"}
    assert told(metadata) == []
    images.update([entry(0), entry(1)], [BrokerInfo(1, "a")])
    assert told(metadata) == [0, 1]


def test_a_broker_that_was_told_of_some_partitions_tells_of_these():
    metadata = MetadataImage()
    ZkImages(metadata).update([entry(2)], [BrokerInfo(1)])
    assert told(metadata) == [2]


def test_who_is_alive_is_what_was_told_last_and_both_images_know_it():
    metadata = MetadataImage()
    images = ZkImages(metadata)
    images.update([], [BrokerInfo(1, "a"), BrokerInfo(2, "b")])
    images.update([], [BrokerInfo(2, "b")])
    assert list(images.replicas.brokers) == list(metadata.brokers) == [2]
    assert metadata.brokers[2].rack == "b"
    assert not images.replicas.is_active(1)
    assert images.replicas.is_active(2)
