"""What a message is charged for, and what Kafka 4.3 would send: schema facts against estimates."""

from importlib import import_module
from pkgutil import iter_modules

import pytest

from sim.protocol import messages
from sim.protocol.messages.base import Request, Response
from sim.protocol.messages.data import FetchRequest
from sim.protocol.messages.quorum import VoteRequest
from sim.wire.definitions import definition
from tests.log.list_log import ListBatch
from tests.protocol.messages import filled
from tests.protocol.messages.filled import FILLED, OTHER_NAMES
from tests.protocol.messages.kafka_sizes import kafka_size, negotiated

NOT_KAFKAS = {
    "RaftVote", "RaftAppend", "RaftHeartbeat", "RaftTimeoutNow", "RaftLeaders",
    "DecommissionBroker", "GetReplicaLogInfo", "TombstoneOffsets",
}  # fmt: skip
"""Requests between members of Redpanda's Raft groups; and one of KIP-966 that no release has."""

OBJECT_STORE = {"PutObject", "GetObject", "DeleteObject", "ObjectResponse"}
"""Calls of the object store, which speaks HTTP."""

FEW = 8
"""Bytes that an estimate may be off without a line below."""

ROUGH = {
    "DeleteTopicsRequest": (-5, -221), "DeleteTopicsResponse": (8, -235),
    "CreatePartitionsRequest": (-9, -135), "CreatePartitionsResponse": (24, 24),
    "IncrementalAlterConfigsRequest": (-9, -198), "IncrementalAlterConfigsResponse": (23, 23),
    "UnregisterBrokerRequest": (20, 20), "UnregisterBrokerResponse": (33, 33),
    "AlterClientQuotasRequest": (-38, -578), "AlterClientQuotasResponse": (2, -295),
    "AlterPartitionReassignmentsRequest": (-9, -171),
    "AlterPartitionReassignmentsResponse": (14, -58), "ElectLeadersRequest": (5, -31),
    "ElectLeadersResponse": (16, -56), "AlterPartitionRequest": (-1, 53),
    "AlterPartitionResponse": (-18, -315), "BrokerRegistrationRequest": (-177, -321),
    "BrokerRegistrationResponse": (26, 26), "BrokerHeartbeatRequest": (-17, -162),
    "BrokerHeartbeatResponse": (31, 31), "AssignReplicasToDirsRequest": (-10, 125),
    "AssignReplicasToDirsResponse": (-10, -73), "AllocateProducerIdsRequest": (12, 12),
    "AllocateProducerIdsResponse": (22, 22), "CreateTopicsRequest": (-72, -882),
    "CreateTopicsResponse": (1, -305), "ProduceRequest": (32, 338), "ProduceResponse": (24, 87),
    "FetchRequest": (-34, -7), "FetchResponse": (14, 41), "ListOffsetsRequest": (-12, -12),
    "DeleteRecordsRequest": (37, 280), "DeleteRecordsResponse": (51, 276),
    "AlterReplicaLogDirsRequest": (35, 359), "AlterReplicaLogDirsResponse": (59, 356),
    "MetadataRequest": (-3, -219), "MetadataResponse": (4, -14), "InitProducerIdRequest": (9, 9),
    "InitProducerIdResponse": (24, 24), "FindCoordinatorRequest": (14, 14),
    "JoinGroupRequest": (-155, -227), "JoinGroupResponse": (-144, -945),
    "SyncGroupRequest": (-109, -739), "SyncGroupResponse": (-8, -44),
    "HeartbeatRequest": (-23, -23), "HeartbeatResponse": (34, 34),
    "LeaveGroupRequest": (-22, -22), "OffsetCommitRequest": (-20, 178),
    "OffsetCommitResponse": (10, -53), "OffsetFetchRequest": (-15, -51),
    "DescribeGroupsRequest": (14, 14), "DeleteGroupsRequest": (15, 15),
    "DeleteGroupsResponse": (24, 24), "OffsetDeleteResponse": (20, 20),
    "OffsetFetchResponse": (-15, -195), "ConsumerGroupHeartbeatRequest": (-32, -32),
    "VoteRequest": (-83, -83), "BeginQuorumEpochRequest": (-82, -82),
    "EndQuorumEpochRequest": (-105, -105), "QuorumFetchRequest": (-101, -101),
    "FetchSnapshotRequest": (-61, -61), "AddRaftVoterRequest": (-52, -52),
    "AddRaftVoterResponse": (33, 33), "RemoveRaftVoterRequest": (-19, -19),
    "RemoveRaftVoterResponse": (33, 33), "ApiVersionsResponse": (-426, -426),
    "AddPartitionsToTxnRequest": (40, 274), "AddPartitionsToTxnResponse": (8, -55),
    "AddOffsetsToTxnResponse": (34, 34), "TxnOffsetCommitRequest": (12, 210),
    "TxnOffsetCommitResponse": (19, -44), "EndTxnResponse": (24, 24),
    "WriteTxnMarkersRequest": (42, 276), "WriteTxnMarkersResponse": (43, 250),
    "ShareGroupHeartbeatRequest": (1, -62), "ShareFetchRequest": (4, 319),
    "ShareFetchResponse": (27, 189), "ShareAcknowledgeRequest": (26, 341),
    "ShareAcknowledgeResponse": (32, 239), "ReadShareGroupStateRequest": (-12, -12),
    "ReadShareGroupStateResponse": (39, 30), "WriteShareGroupStateRequest": (10, 1),
    "WriteShareGroupStateResponse": (13, 13),
}  # fmt: skip
"""Bytes that are charged beyond Kafka's, with one element and with ten."""


def kafka_name(instance):
    name = type(instance).__name__
    return OTHER_NAMES.get(name, name)


def excess(pair, n):
    """Bytes charged beyond what Kafka sends."""
    instance, values = pair
    said = instance(n)
    return said.size_bytes - kafka_size(kafka_name(said), values(n))


def by_name():
    return {type(pair[0](1)).__name__: pair for pair in FILLED}


def test_every_request_and_response_of_kafka_is_compared():
    modules = (
        import_module(f"{messages.__name__}.{m.name}") for m in iter_modules(messages.__path__)
    )
    kinds = [kind for module in modules for kind in vars(module).values() if isinstance(kind, type)]
    found = {kind.__name__ for kind in kinds if issubclass(kind, Request | Response)}
    ours = {f"{name}{end}" for name in NOT_KAFKAS for end in ("Request", "Response")}
    assert found - {"Request", "Response"} - ours - OBJECT_STORE == by_name().keys()
    assert len(FILLED) == len(by_name())


@pytest.mark.parametrize("name", by_name())
def test_a_message_is_charged_for_what_kafka_sends_but_for_the_difference_that_is_listed(name):
    pair = by_name()[name]
    found = excess(pair, 1), excess(pair, 10)
    if max(map(abs, found)) > FEW:
        assert found == ROUGH[name]
    else:
        assert name not in ROUGH


@pytest.mark.parametrize(
    "name", ["ProduceRequest", "FetchResponse", "ShareFetchResponse", "QuorumFetchResponse"]
)
def test_record_batches_are_charged_byte_for_byte(name, monkeypatch):
    before = excess(by_name()[name], 10)
    monkeypatch.setattr(filled, "BATCH", ListBatch(size_bytes=900))
    monkeypatch.setattr(filled, "BYTES", b"\0" * 900)
    assert abs(excess(by_name()[name], 10) - before) <= FEW + 2


def test_an_estimate_that_is_changed_is_found(monkeypatch):
    before = excess(by_name()["FetchRequest"], 10)
    monkeypatch.setattr(FetchRequest, "size_bytes", property(lambda _: 100))
    assert excess(by_name()["FetchRequest"], 10) != before
    monkeypatch.setattr(VoteRequest, "size_bytes", property(lambda _: 133), raising=False)
    assert excess(by_name()["VoteRequest"], 1) == 0


def test_sizes_are_those_of_the_versions_that_kafka_negotiates():
    assert negotiated("FetchRequest") == negotiated("FetchResponse") == 18
    assert negotiated("InitProducerIdRequest") == 5, "the sixth is unstable"
    # Length, api key, version, correlation and client id; two texts and their tags, by hand.
    header = 4 + 2 + 2 + 4 + (2 + 10) + 1
    said = {"clientSoftwareName": "apache-kafka-java", "clientSoftwareVersion": "4.3.1"}
    assert kafka_size("ApiVersionsRequest", said) == header + (1 + 17) + (1 + 5) + 1
    one = {"partitions": [{}]}
    fetch = 4 + 4 + 4 + 1 + 4 + 4 + (1 + (16 + (1 + 33) + 1)) + 1 + 1 + 1
    assert kafka_size("FetchRequest", {"topics": [one]}) == header + fetch
    assert definition("ApiVersionsResponse").flexible_since == 3
    assert kafka_size("ApiVersionsResponse", {}) == 4 + 4 + (2 + 1 + 4 + 1)
