"""Messages of the internal logs: Kafka's worked bytes, versions, tags and refusals."""

import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.errors import SimulationError
from sim.wire.fields import uuid_bytes, uuid_text
from sim.wire.primitives import MalformedBytes
from sim.wire.schemas import (
    control_key,
    decode,
    decode_as,
    decode_control,
    decode_coordinator,
    encode,
)

with warnings.catch_warnings():
    # The library reads its resources in a way that Python 3.11 calls deprecated.
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.protocol.consumer.metadata import (
        ConsumerProtocolAssignment,
        ConsumerProtocolSubscription,
    )

RAW = [bytes(range(start, start + 16)) for start in (0, 16, 32)]
A, B, C = (uuid_text(raw) for raw in RAW)
HEX = [raw.hex() for raw in RAW]

PARTITION = {
    "partitionId": 0, "topicId": A, "replicas": (1, 2), "isr": (1, 2), "removingReplicas": (),
    "addingReplicas": (), "leader": 1, "leaderEpoch": 0, "partitionEpoch": 0, "directories": (B, C),
}  # fmt: skip

VECTORS = [
    ("FeatureLevelRecord", 0, {"name": "metadata.version", "featureLevel": 25},
     "010c00 11 6d657461646174612e76657273696f6e 0019 00"),
    ("TopicRecord", 0, {"name": "t", "topicId": A}, f"010200 02 74 {HEX[0]} 00"),
    ("PartitionRecord", 1, PARTITION,
     (f"010301 00000000 {HEX[0]} 03 00000001 00000002 03 00000001 00000002 01 01 00000001 00000000"
     f"00000000 03 {HEX[1]} {HEX[2]} 00")),
    ("ConfigRecord", 0,
     {"resourceType": 2, "resourceName": "t", "name": "retention.ms", "value": "-1"},
     "010400 02 02 74 0d 726574656e74696f6e2e6d73 03 2d31 00"),
    ("PartitionChangeRecord", 1, {"partitionId": 0, "topicId": A, "isr": [1], "leader": 1},
     f"010501 00000000 {HEX[0]} 02 00 05 02 00000001 01 04 00000001"),
    ("ProducerIdsRecord", 0, {"brokerId": 1, "brokerEpoch": 13, "nextProducerId": 1000},
     "010f00 00000001 000000000000000d 00000000000003e8 00"),
    ("BrokerRegistrationChangeRecord", 1, {"brokerId": 1, "brokerEpoch": 13, "fenced": -1},
     "011101 00000001 000000000000000d 01 00 01 ff"),
    ("NoOpRecord", 0, {}, "01140000"),
    ("LeaderChangeMessage", 0,
     {"leaderId": 1, "voters": [{"voterId": v} for v in (1, 2, 3)],
      "grantingVoters": [{"voterId": v} for v in (1, 2)]},
     "0000 00000001 04 00000001 00 00000002 00 00000003 00 03 00000001 00 00000002 00 00"),
    ("OffsetCommitKey", 0, {"group": "g1", "topic": "t1", "partition": 0},
     "0001 0002 6731 0002 7431 00000000"),
    ("OffsetCommitValue", 4,
     {"offset": 20, "leaderEpoch": 0, "metadata": "", "commitTimestamp": 0x1A1FB115255,
      "topicId": A},
     f"0004 0000000000000014 00000000 01 000001a1fb115255 01 00 10 {HEX[0]}"),
    ("OffsetCommitValue", 3,
     {"offset": 20, "leaderEpoch": 0, "metadata": "", "commitTimestamp": 0x1A1FB115255},
     "0003 0000000000000014 00000000 0000 000001a1fb115255"),
    ("EndTxnMarker", 0, {"coordinatorEpoch": 3}, "0000 00000003"),
    # Made by Kafka 4.3.1's own generated classes: a structure that may be null has a byte in front.
    ("ConsumerGroupMemberMetadataValue", 0,
     {"instanceId": None, "rackId": "r", "clientId": "c", "clientHost": "/h",
      "subscribedTopicNames": ["t"], "subscribedTopicRegex": "", "rebalanceTimeoutMs": 300_000,
      "serverAssignor": None, "classicMemberMetadata": {
          "sessionTimeoutMs": 45_000,
          "supportedProtocols": [{"name": "range", "metadata": b"\x01\x02"}]}},
     ("0000 00 0272 0263 032f68 02 0274 01 000493e0 00 01 00 11 01 0000afc8 02 0672616e6765 030102"
     "00 00")),
    ("ConsumerGroupMemberMetadataValue", 0,
     {"instanceId": None, "rackId": "r", "clientId": "c", "clientHost": "/h",
      "subscribedTopicNames": ["t"], "subscribedTopicRegex": "", "rebalanceTimeoutMs": 300_000,
      "serverAssignor": None, "classicMemberMetadata": None},
     "0000 00 0272 0263 032f68 02 0274 01 000493e0 00 01 00 01 00"),
    ("StreamsGroupMemberMetadataValue", 0,
     {"instanceId": None, "rackId": None, "clientId": "c", "clientHost": "h",
      "rebalanceTimeoutMs": 1, "topologyEpoch": 2, "processId": "p",
      "userEndpoint": {"host": "h", "port": 9}, "clientTags": []},
     "0000 00 00 0263 0268 00000001 00000002 0270 01 0268 0009 00 01 00"),
    ("StreamsGroupMemberMetadataValue", 0,
     {"instanceId": None, "rackId": None, "clientId": "c", "clientHost": "h",
      "rebalanceTimeoutMs": 1, "topologyEpoch": 2, "processId": "p", "userEndpoint": None,
      "clientTags": []},
     "0000 00 00 0263 0268 00000001 00000002 0270 ff 01 00"),
    ("ClientQuotaRecord", 0,
     {"entity": [{"entityType": "user", "entityName": None}], "key": "producer_byte_rate",
      "value": 1.5, "remove": False},
     "010e00 02 0575736572 00 00 1370726f64756365725f627974655f72617465 3ff8000000000000 00 00"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "version", "values", "expected"), VECTORS)
def test_messages_have_kafkas_bytes_and_come_back(name, version, values, expected) -> None:
    data = encode(name, version, values)
    assert data.hex() == expected.replace(" ", "")
    found = decode_as(name, data)
    assert (found.name, found.version) == (name, version)
    for field, value in values.items():
        assert found.values[field] == (list(value) if isinstance(value, tuple) else value)


def test_tagged_fields_at_their_default_are_omitted_and_others_are_not() -> None:
    plain = encode("PartitionRecord", 2, PARTITION)
    said = encode("PartitionRecord", 2, {**PARTITION, "eligibleLeaderReplicas": None})
    told = encode("PartitionRecord", 2, {**PARTITION, "eligibleLeaderReplicas": [2]})
    assert plain == said
    assert decode(told).values["eligibleLeaderReplicas"] == [2]
    assert len(told) > len(plain)


def test_a_field_that_a_version_cannot_say_is_refused_unless_it_has_its_default() -> None:
    change = {"brokerId": 1, "brokerEpoch": 13, "fenced": -1}
    encode("BrokerRegistrationChangeRecord", 0, {**change, "inControlledShutdown": 0})
    with pytest.raises(SimulationError, match="cannot say inControlledShutdown"):
        encode("BrokerRegistrationChangeRecord", 0, {**change, "inControlledShutdown": 1})


def test_unknown_missing_and_oversized_fields_are_refused() -> None:
    with pytest.raises(SimulationError, match="has no field nmae"):
        encode("TopicRecord", 0, {"nmae": "t", "topicId": A})
    with pytest.raises(SimulationError, match="lacks name"):
        encode("TopicRecord", 0, {"topicId": A})
    with pytest.raises(SimulationError, match="featureLevel = 70000"):
        encode("FeatureLevelRecord", 0, {"name": "x", "featureLevel": 70000})
    with pytest.raises(SimulationError, match="unknown message"):
        encode("TopicRecrod", 0, {})
    with pytest.raises(SimulationError, match="versions 0 to 0"):
        encode("TopicRecord", 1, {"name": "t", "topicId": A})


def test_unknown_tags_are_skipped_and_trailing_bytes_are_not() -> None:
    data = encode("NoOpRecord", 0, {})
    assert decode(data[:-1] + bytes((1, 9, 2, 0xAA, 0xBB))).values == {}
    with pytest.raises(MalformedBytes, match="1 bytes follow"):
        decode(data + b"\x00")
    with pytest.raises(MalformedBytes, match="type 99"):
        decode(bytes((1, 99, 0, 0)))


def test_register_broker_comes_back_in_every_version() -> None:
    values = {
        "brokerId": 1, "incarnationId": B, "brokerEpoch": 5, "rack": None, "fenced": True,
        "endPoints": [{"name": "PLAINTEXT", "host": "b", "port": 60000, "securityProtocol": 0}],
        "features": [
            {"name": "metadata.version", "minSupportedVersion": 7, "maxSupportedVersion": 30}
        ],
    }  # fmt: skip
    later = {"isMigratingZkBroker": False, "inControlledShutdown": False}
    for version in range(5):
        extra = {"logDirs": [C]} if version >= 3 else {}
        found = decode(encode("RegisterBrokerRecord", version, {**values, **later, **extra})).values
        assert {**values, **extra}.items() <= found.items()


def test_control_records_come_back_by_their_key() -> None:
    voters = {
        "voters": [
            {
                "voterId": 1, "voterDirectoryId": A,
                "endpoints": [{"name": "CONTROLLER", "host": "c", "port": 9093}],
                "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
            }
        ]
    }  # fmt: skip
    found = decode_control(control_key("VotersRecord"), encode("VotersRecord", 0, voters))
    assert found == ("VotersRecord", 0, voters)
    assert control_key("EndTxnMarker", commit=True) == bytes((0, 0, 0, 1))


def test_group_metadata_v3_comes_back_with_its_blobs() -> None:
    subscription = encode(
        "ConsumerProtocolSubscription", 1,
        {"topics": ["a", "b"], "ownedPartitions": [{"topic": "a", "partitions": [0, 2]}]},
    )  # fmt: skip
    assignment = encode(
        "ConsumerProtocolAssignment", 1,
        {"assignedPartitions": [{"topic": "a", "partitions": [1]}], "userData": None},
    )  # fmt: skip
    values = {
        "protocolType": "consumer", "generation": 4, "protocol": "range", "leader": "m1",
        "currentStateTimestamp": 9,
        "members": [
            {
                "memberId": "m1", "groupInstanceId": None, "clientId": "c",
                "clientHost": "/127.0.0.1", "rebalanceTimeout": 300000, "sessionTimeout": 45000,
                "subscription": subscription, "assignment": assignment,
            }
        ],
    }  # fmt: skip
    key = encode("GroupMetadataKey", 0, {"group": "g"})
    found_key, found = decode_coordinator(key, encode("GroupMetadataValue", 3, values))
    assert found_key.values == {"group": "g"}
    assert found is not None
    assert found.values == values
    assert decode_coordinator(key, None)[1] is None

    theirs = ConsumerProtocolSubscription.decode(subscription)
    assert list(theirs.topics) == ["a", "b"]
    given_out = ConsumerProtocolAssignment.decode(assignment)
    assert [(p.topic, list(p.partitions)) for p in given_out.assigned_partitions] == [("a", [1])]


@given(st.binary(min_size=16, max_size=16))
def test_ids_come_back_from_their_text(raw: bytes) -> None:
    text = uuid_text(raw)
    assert len(text) == 22
    assert uuid_bytes(text) == raw


def test_a_text_that_is_no_id_is_refused() -> None:
    with pytest.raises(SimulationError, match="no id"):
        uuid_bytes("short")
