"""Replaying metadata records."""

import pytest

from sim.ids import NO_LEADER, TopicPartition
from sim.protocol.metadata import records as mr
from sim.protocol.metadata.image import MetadataImage

T0 = TopicPartition("t", 0)
TOPIC = (
    mr.TopicRecord("t", "id-t"),
    mr.ConfigRecord(mr.TOPIC_RESOURCE, "t", "min.insync.replicas", "2"),
    mr.PartitionRecord(0, "id-t", (1, 2, 3), (1, 2, 3), 1),
    mr.PartitionRecord(1, "id-t", (2, 3, 1), (2, 3, 1), 2),
)


def replayed(*records, image=None):
    image = MetadataImage() if image is None else image
    for record in records:
        image.replay(image.offset, 1, record)
    return image


def test_a_topic_its_settings_and_its_partitions_appear():
    image = replayed(*TOPIC)
    assert image.partition_counts == {"t": 2}
    assert image.leader_of(T0) == 1
    assert image.effective_min_in_sync("t") == 2
    assert image.offset == 4


def test_a_change_raises_the_partition_epoch_and_a_named_leader_the_leader_epoch():
    image = replayed(*TOPIC, mr.PartitionChangeRecord(0, "id-t", in_sync=(1, 2)))
    state = image.partitions[T0]
    assert (state.in_sync, state.leader_epoch, state.partition_epoch) == ((1, 2), 0, 1)
    replayed(mr.PartitionChangeRecord(0, "id-t", leader=1), image=image)
    assert image.partitions[T0].leader_epoch == 1
    replayed(mr.PartitionChangeRecord(0, "id-t", leader=NO_LEADER), image=image)
    assert image.leader_of(T0) == NO_LEADER


def test_changed_partitions_are_told_once_each():
    image = replayed(*TOPIC)
    assert image.take_changed() == (T0, TopicPartition("t", 1))
    replayed(
        mr.PartitionChangeRecord(0, "id-t", in_sync=(1, 2)),
        mr.NoOpRecord(),
        mr.PartitionChangeRecord(0, "id-t", in_sync=(1,)),
        image=image,
    )
    assert image.take_changed() == (T0,)
    assert image.take_changed() == ()


def test_a_removed_topic_is_gone_and_its_partitions_are_told():
    image = replayed(*TOPIC)
    image.take_changed()
    replayed(mr.RemoveTopicRecord("id-t"), image=image)
    assert image.take_changed() == (T0, TopicPartition("t", 1))
    assert (image.partitions, image.topic_ids, image.topic_configs) == ({}, {}, {})


def test_a_broker_is_registered_unfenced_shut_down_and_registered_again():
    image = replayed(mr.RegisterBrokerRecord(1, "a", 0, "r", fenced=True))
    assert not image.is_active(1)
    assert image.brokers[1].registered_at == 0
    replayed(mr.BrokerRegistrationChangeRecord(1, 0, fenced=mr.UNFENCE), image=image)
    assert image.is_active(1)
    replayed(mr.BrokerRegistrationChangeRecord(1, 0, in_controlled_shutdown=1), image=image)
    assert not image.is_active(1)
    replayed(mr.RegisterBrokerRecord(1, "b", 3, "r", fenced=True), image=image)
    assert not image.brokers[1].in_controlled_shutdown
    replayed(mr.UnregisterBrokerRecord(1, 3), image=image)
    assert image.brokers == {}


def test_a_change_of_an_older_registration_is_refused():
    image = replayed(mr.RegisterBrokerRecord(1, "a", 0, "r", fenced=True))
    with pytest.raises(AssertionError):
        replayed(mr.BrokerRegistrationChangeRecord(1, 7, fenced=mr.UNFENCE), image=image)


def test_a_gap_in_offsets_is_refused():
    with pytest.raises(AssertionError):
        MetadataImage().replay(1, 1, mr.NoOpRecord())


def test_a_topic_without_a_setting_has_the_clusters():
    image = replayed(
        mr.ConfigRecord(mr.BROKER_RESOURCE, "", "min.insync.replicas", "5"),
        mr.TopicRecord("u", "id-u"),
        mr.PartitionRecord(0, "id-u", (1, 2), (1, 2), 1),
    )
    assert image.config_of("u", "min.insync.replicas", "1") == "5"
    assert image.effective_min_in_sync("u") == 2  # not above the replication factor
    assert image.config_of("u", "flush.messages", "9") == "9"


def test_a_copy_goes_its_own_way():
    image = replayed(*TOPIC)
    other = image.copy()
    replayed(
        mr.PartitionChangeRecord(0, "id-t", leader=2),
        mr.ConfigRecord(mr.TOPIC_RESOURCE, "t", "min.insync.replicas", None),
        image=other,
    )
    assert (image.leader_of(T0), other.leader_of(T0)) == (1, 2)
    assert (image.effective_min_in_sync("t"), other.effective_min_in_sync("t")) == (2, 1)
    assert image.offset == 4


def test_features_and_producer_ids_follow_their_records():
    image = replayed(mr.FeatureLevelRecord("f", 2), mr.ProducerIdsRecord(1, 0, 1000))
    assert (image.features, image.next_producer_id) == ({"f": 2}, 1000)
    assert replayed(mr.FeatureLevelRecord("f", 0), image=image).features == {}
