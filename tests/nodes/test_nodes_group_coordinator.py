"""Group records as bytes: Kafka's own bytes, read back whole, and by another client's decoder."""

import warnings
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.ids import TopicPartition
from sim.protocol.assignors.subscription import NO_GENERATION, Subscription
from sim.protocol.coordinator.group.consumer_group_records import (
    GROUP_KEYS,
    ClassicMember,
    ConsumerGroupMemberRecord,
    GroupKeyTombstone,
)
from sim.protocol.coordinator.group.records import (
    GroupMetadataRecord,
    GroupTombstone,
    MemberRecord,
    OffsetCommitRecord,
    OffsetTombstone,
)
from sim.records.consumer_groups import value_of
from sim.records.consumer_offsets import batch_for, records_in
from sim.scenario.build.translate import offsets_form
from sim.scenario.settings.registry import resolve
from sim.units import MS, SECOND
from sim.wire.primitives import MalformedBytes
from sim.wire.record_batch import NewRecord, RecordBatch, build_batch
from sim.wire.schemas import decode_as

with warnings.catch_warnings():
    # That client reads its own schemas in a deprecated way when it is imported.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.consumer.metadata import (
        ConsumerProtocolAssignment,
        ConsumerProtocolSubscription,
    )

CLASSIC = "classicMemberMetadata"
NOW = 1_767_225_600_000
PLACE = TopicPartition("t1", 0)

names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)
places = st.builds(TopicPartition, names, st.integers(0, 99))
owned = st.lists(places, max_size=5, unique=True).map(lambda found: tuple(sorted(found)))
members = st.builds(
    MemberRecord,
    names,
    names,
    names.map("/{}".format),
    st.integers(1, 9_999).map(lambda ms: ms * MS),
    st.integers(1, 9_999).map(lambda ms: ms * MS),
    st.builds(
        Subscription,
        st.lists(names, min_size=1, max_size=3).map(tuple),
        owned,
        st.integers(-1, 1 << 20),
        st.just("") | names,
        st.just("") | names,
    ),
    owned,
)
records = st.one_of(
    st.builds(
        OffsetCommitRecord,
        names,
        places,
        st.integers(0, 1 << 50),
        st.integers(-1, 99),
        st.integers(0, 1 << 45),
    ),
    st.builds(
        GroupMetadataRecord,
        names,
        st.integers(0, 1 << 20),
        st.just("range"),
        names,
        st.integers(0, 1 << 45),
        st.lists(members, max_size=3).map(tuple),
    ),
    st.builds(OffsetTombstone, names, places),
    st.builds(GroupTombstone, names),
)


@given(st.lists(records, min_size=1, max_size=5))
def test_records_are_read_back_from_their_bytes(written):
    batch = batch_for(written, NOW)
    assert records_in([RecordBatch.parse(batch.data)]) == tuple(written)


def test_keys_and_values_are_kafkas_bytes():
    (record,) = batch_for([OffsetCommitRecord("g1", PLACE, 20, 0, NOW)], NOW).records()
    assert record.key.hex() == "0001000267310002743100000000"
    assert record.value.hex() == (f"00030000000000000014000000000000{NOW:016x}")


@pytest.mark.parametrize(
    ("release", "commit", "group"),
    [("0.10", 1, 1), ("2.0", 1, 1), ("2.1", 3, 2), ("2.2", 3, 2), ("2.3", 3, 3), ("4.3", 3, 3)],
)
def test_values_have_the_versions_of_the_release(release, commit, group):
    """``MetadataVersion.offsetCommitValueVersion``, ``groupMetadataValueVersion``."""
    config = resolve("broker", {"offsets.retention.minutes": 2}, version=release)
    form = offsets_form(config)
    assert (form.commit, form.group) == (commit, group)
    said = Subscription(("t1",), (), NO_GENERATION, "", "")
    member = MemberRecord("m", "c", "/h", 300 * SECOND, 45 * SECOND, said, (PLACE,))
    records = [
        OffsetCommitRecord("g1", PLACE, 20, -1, NOW),
        GroupMetadataRecord("g1", 4, "range", "m", NOW, (member,)),
    ]
    batch = batch_for(records, NOW, form)
    values = [record.value for record in batch.records()]
    assert [int.from_bytes(value[:2], "big") for value in values] == [commit, group]
    fields = decode_as("OffsetCommitValue", values[0]).values
    assert fields.get("expireTimestamp") == (NOW + 120_000 if commit == 1 else None)
    read, again = records_in((batch,))
    assert read == records[0]
    assert again == replace(records[1], timestamp_ms=NOW if group > 1 else -1)


def test_a_batch_belongs_to_no_producer_and_is_whole():
    batch = batch_for([OffsetTombstone("g1", PLACE), GroupTombstone("g1")], NOW)
    assert (batch.producer_id, batch.producer_index, batch.record_count) == (-1, -1, 2)
    assert batch.max_timestamp_ms == NOW
    assert batch.valid()
    assert [record.value for record in batch.records()] == [None, None]


def test_another_client_reads_subscription_and_assignment():
    said = Subscription(("t1", "t2"), (PLACE,), 3, "a", "shop")
    share = (PLACE, TopicPartition("t1", 3))
    member = MemberRecord("m", "c", "/h", 300 * SECOND, 45 * SECOND, said, share)
    (record,) = batch_for(
        [GroupMetadataRecord("g1", 4, "range", "m", NOW, (member,))], NOW
    ).records()
    fields = decode_as("GroupMetadataValue", record.value).values
    (theirs,) = fields["members"]
    subscription = ConsumerProtocolSubscription.decode(theirs["subscription"])
    assignment = ConsumerProtocolAssignment.decode(theirs["assignment"])
    assert list(subscription.topics) == ["t1", "t2"]
    assert [tuple(place) for place in assignment.partitions()] == [("t1", 0), ("t1", 3)]
    assert theirs["groupInstanceId"] == "shop"
    assert (theirs["sessionTimeout"], theirs["rebalanceTimeout"]) == (45_000, 300_000)
    assert fields["protocolType"] == "consumer"


def test_a_member_of_the_consumer_protocol_is_none_of_the_classic_one():
    member = ConsumerGroupMemberRecord("g", "m", "", "c", "/h", ("t1",), 5 * SECOND, "")
    value = value_of(member)
    assert decode_as("ConsumerGroupMemberMetadataValue", value).values[CLASSIC] is None
    without = value[:-4] + b"\0"
    found = decode_as("ConsumerGroupMemberMetadataValue", without).values[CLASSIC]
    assert found == {"sessionTimeoutMs": 0, "supportedProtocols": []}


def test_a_classic_member_of_a_consumer_group_is_read_back_with_its_assignors():
    protocols = ("range", "cooperative-sticky", "sticky")
    said = Subscription(("t1",), (PLACE,), 3, "a", "shop", (PLACE,), 3)
    classic = ClassicMember(45 * SECOND, protocols, said)
    member = ConsumerGroupMemberRecord(
        "g", "m", "a", "c", "/h", ("t1",), 300 * SECOND, "", instance_id="shop", classic=classic
    )
    batch = batch_for([member], NOW)
    assert records_in([RecordBatch.parse(batch.data)]) == (member,)
    (record,) = batch.records()
    fields = decode_as("ConsumerGroupMemberMetadataValue", record.value).values[CLASSIC]
    assert fields["sessionTimeoutMs"] == 45_000
    assert [each["name"] for each in fields["supportedProtocols"]] == [*protocols]
    theirs = ConsumerProtocolSubscription.decode(fields["supportedProtocols"][0]["metadata"])
    assert list(theirs.topics) == ["t1"], "another client reads it"


def test_a_static_member_and_a_deleted_group_are_read_back():
    member = ConsumerGroupMemberRecord(
        "g", "m", "", "c", "/h", ("t1",), 5 * SECOND, "", instance_id="shop-1"
    )
    written = (member, *(GroupKeyTombstone("g", kind) for kind in GROUP_KEYS))
    batch = batch_for(written, NOW)
    assert records_in([RecordBatch.parse(batch.data)]) == written
    keys = [int.from_bytes(record.key[:2], "big") for record in batch.records()]
    assert keys == [5, 6, 4, 3]
    value = decode_as("ConsumerGroupMemberMetadataValue", value_of(member)).values
    assert value["instanceId"] == "shop-1"


def test_keys_of_other_types_are_passed_over():
    strange = build_batch([NewRecord(NOW, b"\x00\x11\x00\x01g", b"\x00\x00")])
    assert records_in([strange, batch_for([GroupTombstone("g1")], NOW)]) == (GroupTombstone("g1"),)


def test_a_known_key_with_broken_bytes_is_not_passed_over():
    broken = build_batch([NewRecord(NOW, b"\x00\x02\x00\x09g", None)])
    with pytest.raises(MalformedBytes):
        records_in([broken])
