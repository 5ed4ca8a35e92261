"""Every request and response with ``n`` elements, and the same in Kafka's words."""

from sim.error_codes import ErrorCode
from sim.ids import SnapshotId, TopicPartition
from sim.protocol.acls import Acl
from sim.protocol.assignors.subscription import Subscription
from sim.protocol.messages import (
    admin,
    cluster,
    consumer_group,
    data,
    delete_records,
    group,
    group_admin,
    leader_epochs,
    log_dirs,
    metadata,
    quorum,
    security,
    share,
    share_records,
    transaction,
    voters,
)
from sim.wire.assignor_data import cooperative_user_data
from sim.wire.schemas import encode
from tests.log.list_log import ListBatch

TOPIC = "orders"
UUID = "dNAcL_edIud9BnlR3R025A"
"""An id of a directory or an incarnation; ids of clusters and members are as long."""

MEMBER = f"consumer-1-{UUID}"
QUORUM = "__cluster_metadata"
HOST = "broker-1"
NONE = ErrorCode.NONE
BATCH = ListBatch(size_bytes=100)
ACL = Acl("topic", TOPIC, "literal", "User:shop", "*", "Read", "allow")
ACL_SAID = {"resourceName": TOPIC, "principal": "User:shop", "host": "*"}
BYTES = b"\0" * BATCH.size_bytes
CONTROLLER = 3001
END = {"name": "CONTROLLER", "host": "controller-1"}
LEADER = [{"host": "controller-1"}]
"""Endpoint of the leader of the quorum, which a response has if it is known."""


def places(n):
    return tuple(TopicPartition(TOPIC, number) for number in range(n))


def each(n, **values):
    return [values] * n


def topics(n, array="partitions", name="name", **values):
    """One topic with ``n`` structures; none without any."""
    return [{name: TOPIC, array: each(n, **values)}] if n else []


def numbers(n, array="partitions", name="name"):
    """One topic with ``n`` partition numbers."""
    return [{name: TOPIC, array: list(range(n))}] if n else []


def ids(n, array="partitions", **values):
    """One topic, by its id, with ``n`` structures."""
    return [{array: each(n, **values)}] if n else []


def id_numbers(n, array="partitions"):
    """One topic, by its id, with ``n`` partition numbers."""
    return [{array: list(range(n))}] if n else []


def metadata_partition(**values):
    return [{"partitions": [values]}]


def said(n):
    return Subscription((TOPIC,), places(n))


def blob(n, user_data=None):
    return encode(
        "ConsumerProtocolSubscription",
        3,
        {
            "topics": [TOPIC],
            "userData": user_data,
            "ownedPartitions": numbers(n, name="topic"),
            "generationId": -1,
        },
    )


def share_blob(n):
    held = {"assignedPartitions": numbers(n, name="topic")}
    return encode("ConsumerProtocolAssignment", 3, held)


def states(n):
    return tuple(
        share_records.StateBatch(at, at, share_records.RecordState.AVAILABLE, 1) for at in range(n)
    )


def acknowledged(n):
    one = (share_records.Acknowledgement(0, 9, (1,)),)
    return tuple(share.PartitionAcknowledgements(place, one) for place in places(n))


ACKNOWLEDGED = {"acknowledgementBatches": [{"acknowledgeTypes": [1]}]}
ENTITY = (("user", "alice"), ("client-id", "shop"))
ENTITY_SAID = {
    "entity": [{"entityType": "user", "entityName": "alice"},
               {"entityType": "client-id", "entityName": "shop"}],
}  # fmt: skip
NODES = {"replicaNodes": [1, 2, 3], "isrNodes": [1, 2, 3]}

ADMIN = [
    (lambda n: admin.DeleteTopicsRequest((TOPIC,) * n),
     lambda n: {"topics": each(n, name=TOPIC)}),
    (lambda n: admin.DeleteTopicsResponse(((TOPIC, NONE),) * n),
     lambda n: {"responses": each(n, name=TOPIC)}),
    (lambda n: admin.CreatePartitionsRequest(TOPIC, n, ((1, 2, 3),) * n),
     lambda n: {"topics": [{"name": TOPIC, "assignments": each(n, brokerIds=[1, 2, 3])}]}),
    (lambda n: admin.CreatePartitionsResponse(NONE), lambda n: {"results": [{"name": TOPIC}]}),
    (lambda n: admin.IncrementalAlterConfigsRequest(TOPIC, (("retention.ms", "60000"),) * n),
     lambda n: {"resources": [
         {"resourceName": TOPIC, "configs": each(n, name="retention.ms", value="60000")}]}),
    (lambda n: admin.IncrementalAlterConfigsResponse(NONE),
     lambda n: {"responses": [{"resourceName": TOPIC}]}),
    (lambda n: admin.UnregisterBrokerRequest(broker=n), lambda n: {"brokerId": n}),
    (lambda n: admin.UnregisterBrokerResponse(NONE), lambda n: {}),
    (lambda n: admin.UpdateFeaturesRequest((("metadata.version", 29),) * n),
     lambda n: {"featureUpdates": each(n, feature="metadata.version")}),
    (lambda n: admin.UpdateFeaturesResponse(NONE), lambda n: {}),
    (lambda n: admin.AlterClientQuotasRequest(
        (admin.QuotaAlteration(ENTITY, (("producer_byte_rate", 1.0),)),) * n),
     lambda n: {"entries": each(n, **ENTITY_SAID, ops=[{"key": "producer_byte_rate"}])}),
    (lambda n: admin.AlterClientQuotasResponse((("user alice, client-id shop", NONE),) * n),
     lambda n: {"entries": each(n, **ENTITY_SAID)}),
    (lambda n: security.CreateAclsRequest((ACL,) * n),
     lambda n: {"creations": each(n, **ACL_SAID)}),
    (lambda n: security.CreateAclsResponse((("", NONE),) * n),
     lambda n: {"results": each(n)}),
    (lambda n: security.DeleteAclsRequest((ACL,) * n),
     lambda n: {"filters": each(n, **{f"{key}Filter": said for key, said in ACL_SAID.items()})}),
    (lambda n: security.DeleteAclsResponse(((str(ACL), NONE),) * n, (ACL,) * n),
     lambda n: {"filterResults": each(n, matchingAcls=[ACL_SAID])}),
    (lambda n: admin.AlterPartitionReassignmentsRequest(tuple((p, (1, 2, 3)) for p in places(n))),
     lambda n: {"topics": topics(n, replicas=[1, 2, 3])}),
    (lambda n: admin.AlterPartitionReassignmentsResponse(tuple((p, NONE) for p in places(n))),
     lambda n: {"responses": topics(n)}),
    (lambda n: admin.ElectLeadersRequest("preferred", places(n)),
     lambda n: {"topicPartitions": numbers(n, name="topic")}),
    (lambda n: admin.ElectLeadersResponse(tuple((p, NONE) for p in places(n))),
     lambda n: {"replicaElectionResults": topics(n, "partitionResult", "topic")}),
]  # fmt: skip

CLUSTER = [
    (lambda n: cluster.AlterPartitionRequest(1, 1, tuple(
        cluster.AlterPartitionItem(p, 0, 0, (cluster.IsrMember(1, 1),) * 3) for p in places(n))),
     lambda n: {"topics": ids(n, newIsrWithEpochs=each(3))}),
    (lambda n: cluster.AlterPartitionResponse(NONE, tuple(
        cluster.AlterPartitionResult(p, NONE, 1, 0, (1, 2, 3), 1) for p in places(n))),
     lambda n: {"topics": ids(n, isr=[1, 2, 3])}),
    (lambda n: cluster.BrokerRegistrationRequest(1, UUID, "a", -1, (UUID,) * n),
     lambda n: {"clusterId": UUID, "rack": "a", "logDirs": [UUID] * n,
                "listeners": [{"name": "PLAINTEXT", "host": HOST}],
                "features": [{"name": name} for name in (
                    "metadata.version", "group.version", "transaction.version",
                    "eligible.leader.replicas.version")]}),
    (lambda n: cluster.BrokerRegistrationResponse(NONE, 1), lambda n: {}),
    (lambda n: cluster.ControllerRegistrationRequest(
        CONTROLLER, UUID, (("metadata.version", 1, 2),) * n),
     lambda n: {"listeners": [END],
                "features": each(n, name="metadata.version")}),
    (lambda n: cluster.ControllerRegistrationResponse(NONE), lambda n: {}),
    (lambda n: cluster.BrokerHeartbeatRequest(1, 1, 1, False, False, (UUID,) * n),
     lambda n: {"offlineLogDirs": [UUID] * n}),
    (lambda n: cluster.BrokerHeartbeatResponse(NONE), lambda n: {}),
    (lambda n: cluster.AssignReplicasToDirsRequest(1, 1, tuple(
        cluster.DirectoryAssignment(p, UUID, UUID) for p in places(n))),
     lambda n: {"directories": [{"topics": ids(n)}] if n else []}),
    (lambda n: cluster.AssignReplicasToDirsResponse(NONE, tuple((p, NONE) for p in places(n))),
     lambda n: {"directories": [{"topics": ids(n)}] if n else []}),
    (lambda n: cluster.AllocateProducerIdsRequest(1, 1), lambda n: {}),
    (lambda n: cluster.AllocateProducerIdsResponse(NONE, 0, 1_000), lambda n: {}),
    (lambda n: cluster.CreateTopicsRequest((cluster.NewTopic(
        TOPIC, 3, 3, (("retention.ms", "60000"),), ((1, 2, 3),) * 3),) * n),
     lambda n: {"topics": each(
         n, name=TOPIC, configs=[{"name": "retention.ms", "value": "60000"}],
         assignments=each(3, brokerIds=[1, 2, 3]))}),
    # Without the topic's configs, which a broker adds: they are not modelled.
    (lambda n: cluster.CreateTopicsResponse(((TOPIC, NONE),) * n),
     lambda n: {"topics": each(n, name=TOPIC)}),
]  # fmt: skip

DATA = [
    (lambda n: data.ProduceRequest(-1, 0, tuple((p, BATCH) for p in places(n))),
     lambda n: {"topicData": ids(n, "partitionData", records=BYTES)}),
    (lambda n: data.ProduceResponse(tuple(data.ProduceResult(p, NONE) for p in places(n))),
     lambda n: {"responses": ids(n, "partitionResponses")}),
    (lambda n: data.FetchRequest(-1, -1, 0, 1, 1, 0, 0, tuple(
        data.FetchPartition(p, 0, 0) for p in places(n)), places(n), "a"),
     lambda n: {"topics": ids(n), "rackId": "a",
                "forgottenTopicsData": id_numbers(n)}),
    (lambda n: data.FetchResponse(NONE, 1, tuple(
        data.FetchResult(p, NONE, batches=(BATCH,)) for p in places(n))),
     lambda n: {"responses": ids(n, records=BYTES)}),
    (lambda n: data.ListOffsetsRequest(places(1)[0], -1), lambda n: {"topics": topics(1)}),
    (lambda n: data.ListOffsetsResponse(places(1)[0], NONE), lambda n: {"topics": topics(1)}),
    (lambda n: delete_records.DeleteRecordsRequest(tuple((p, 0) for p in places(n)), 0),
     lambda n: {"topics": topics(n)}),
    (lambda n: delete_records.DeleteRecordsResponse(tuple(
        delete_records.DeleteRecordsResult(p, NONE) for p in places(n))),
     lambda n: {"topics": topics(n)}),
    (lambda n: leader_epochs.OffsetForLeaderEpochRequest(places(1)[0], 0),
     lambda n: {"topics": topics(1, name="topic")}),
    (lambda n: leader_epochs.OffsetForLeaderEpochResponse(places(1)[0], NONE),
     lambda n: {"topics": topics(1, name="topic")}),
    (lambda n: log_dirs.AlterReplicaLogDirsRequest(tuple((p, "/disk-1/logs") for p in places(n))),
     lambda n: {"dirs": [{"path": "/disk-1/logs", "topics": numbers(n)}] if n else []}),
    (lambda n: log_dirs.AlterReplicaLogDirsResponse(tuple((p, NONE) for p in places(n))),
     lambda n: {"results": topics(n, name="topicName")}),
    (lambda n: metadata.MetadataRequest((TOPIC,) * n),
     lambda n: {"topics": each(n, name=TOPIC)}),
    (lambda n: metadata.MetadataResponse((1, 2, 3), {TOPIC: tuple(
        metadata.PartitionMetadata(p, 1, 0, (1, 2, 3), (1, 2, 3)) for p in range(n))} if n else {}),
     lambda n: {"brokers": each(3, host=HOST), "clusterId": UUID,
                "topics": topics(n, **NODES)}),
    (lambda n: metadata.InitProducerIdRequest(), lambda n: {}),
    (lambda n: metadata.InitProducerIdResponse(NONE, 0, 0), lambda n: {}),
]  # fmt: skip

GROUP = [
    (lambda n: group.FindCoordinatorRequest("billing"),
     lambda n: {"coordinatorKeys": ["billing"]}),
    (lambda n: group.FindCoordinatorResponse(NONE, 1),
     lambda n: {"coordinators": [{"key": "billing", "host": HOST}]}),
    (lambda n: group.JoinGroupRequest(
        "billing", MEMBER, "consumer-1", said(n), ("range", "cooperative-sticky"), 0, 0),
     lambda n: {"groupId": "billing", "memberId": MEMBER, "protocolType": "consumer",
                "protocols": [
                    {"name": "range", "metadata": blob(n)},
                    {"name": "cooperative-sticky", "metadata": blob(n, cooperative_user_data(-1))},
                ]}),
    (lambda n: group.JoinGroupResponse(NONE, MEMBER, 1, "range", MEMBER, ((MEMBER, said(3)),) * n),
     lambda n: {"protocolType": "consumer", "protocolName": "range", "leader": MEMBER,
                "memberId": MEMBER, "members": each(n, memberId=MEMBER, metadata=blob(3))}),
    (lambda n: group.SyncGroupRequest(
        "billing", MEMBER, 1, {f"{MEMBER[:-3]}{m:03}": places(3) for m in range(n)}, "", "range"),
     lambda n: {"groupId": "billing", "memberId": MEMBER, "protocolType": "consumer",
                "protocolName": "range",
                "assignments": each(n, memberId=MEMBER, assignment=share_blob(3))}),
    (lambda n: group.SyncGroupResponse(NONE, places(n)),
     lambda n: {"protocolType": "consumer", "protocolName": "range", "assignment": share_blob(n)}),
    (lambda n: group.HeartbeatRequest("billing", MEMBER, 1),
     lambda n: {"groupId": "billing", "memberId": MEMBER}),
    (lambda n: group.HeartbeatResponse(NONE), lambda n: {}),
    (lambda n: group.LeaveGroupRequest("billing", MEMBER),
     lambda n: {"groupId": "billing", "members": [{"memberId": MEMBER}]}),
    (lambda n: group.LeaveGroupResponse(NONE), lambda n: {"members": [{"memberId": MEMBER}]}),
    (lambda n: group.OffsetCommitRequest("billing", MEMBER, 1, tuple(
        (p, 1, 0) for p in places(n))),
     lambda n: {"groupId": "billing", "memberId": MEMBER, "topics": topics(n)}),
    (lambda n: group.OffsetCommitResponse(NONE), lambda n: {"topics": topics(n)}),
    (lambda n: group.OffsetFetchRequest("billing", places(n)),
     lambda n: {"groups": [{"groupId": "billing", "topics": numbers(n, "partitionIndexes")}]}),
    (lambda n: group.OffsetFetchResponse(NONE, tuple((p, 1, 0) for p in places(n))),
     lambda n: {"groups": [{"groupId": "billing", "topics": topics(n)}]}),
    (lambda n: consumer_group.ConsumerGroupHeartbeatRequest(
        "billing", UUID, 1, 0, (TOPIC,), "uniform", places(n), "a"),
     lambda n: {"groupId": "billing", "memberId": UUID, "rackId": "a", "serverAssignor": "uniform",
                "subscribedTopicNames": [TOPIC],
                "topicPartitions": id_numbers(n)}),
    (lambda n: consumer_group.ConsumerGroupHeartbeatResponse(NONE, UUID, 1, 0, places(n)),
     lambda n: {"memberId": UUID,
                "assignment": {"topicPartitions": id_numbers(n)}}),
    (lambda n: group_admin.DescribeGroupsRequest("billing"), lambda n: {"groups": ["billing"]}),
    (lambda n: group_admin.DescribeGroupsResponse(NONE, "Empty"),
     lambda n: {"groups": [{"groupId": "billing", "groupState": "Empty",
                            "protocolType": "consumer"}]}),
    (lambda n: group_admin.DeleteGroupsRequest("billing"),
     lambda n: {"groupsNames": ["billing"]}),
    (lambda n: group_admin.DeleteGroupsResponse(NONE), lambda n: {"results": [
        {"groupId": "billing"}]}),
    (lambda n: group_admin.OffsetDeleteRequest("billing", places(n)),
     lambda n: {"groupId": "billing", "topics": topics(n)}),
    (lambda n: group_admin.OffsetDeleteResponse(NONE, tuple((p, NONE) for p in places(n))),
     lambda n: {"topics": topics(n)}),
]  # fmt: skip

QUORUM_MESSAGES = [
    (lambda n: quorum.VoteRequest(1, 1, 1, 1, pre_vote=False),
     lambda n: {"clusterId": UUID, "topics": [{"topicName": QUORUM, "partitions": [{}]}]}),
    (lambda n: quorum.VoteResponse(NONE, True, CONTROLLER, 1),
     lambda n: {"topics": [{"topicName": QUORUM, "partitions": [{}]}], "nodeEndpoints": LEADER}),
    (lambda n: quorum.BeginQuorumEpochRequest(CONTROLLER, 1),
     lambda n: {"clusterId": UUID, "leaderEndpoints": [END],
                "topics": [{"topicName": QUORUM, "partitions": [{}]}]}),
    (lambda n: quorum.EndQuorumEpochRequest(CONTROLLER, 1, (3002, 3003)),
     lambda n: {"clusterId": UUID, "leaderEndpoints": [END], "topics": [
         {"topicName": QUORUM, "partitions": [{"preferredCandidates": each(2)}]}]}),
    (lambda n: quorum.QuorumEpochResponse(NONE, CONTROLLER, 1),
     lambda n: {"topics": [{"topicName": QUORUM, "partitions": [{}]}], "nodeEndpoints": LEADER}),
    (lambda n: quorum.QuorumFetchRequest(1, 1, 0, 0, 0, 0),
     lambda n: {"clusterId": UUID, "replicaState": {"replicaId": 1},
                "topics": metadata_partition(highWatermark=0)}),
    (lambda n: quorum.QuorumFetchResponse(NONE, CONTROLLER, 1, 0, (BATCH,) * n),
     lambda n: {"nodeEndpoints": LEADER, "responses": metadata_partition(
         records=BYTES * n, currentLeader={"leaderId": 1, "leaderEpoch": 1})}),
    (lambda n: quorum.FetchSnapshotRequest(1, 1, SnapshotId(1, 1), 0, 1),
     lambda n: {"clusterId": UUID, "topics": [{"name": QUORUM, "partitions": [{}]}]}),
    (lambda n: quorum.FetchSnapshotResponse(
        NONE, CONTROLLER, 1, SnapshotId(1, 1), 100, 0, BYTES * n),
     lambda n: {"nodeEndpoints": LEADER, "topics": [{"name": QUORUM, "partitions": [
         {"unalignedRecords": BYTES * n, "currentLeader": {"leaderId": 1, "leaderEpoch": 1}}]}]}),
    (lambda n: voters.AddRaftVoterRequest(CONTROLLER, UUID),
     lambda n: {"clusterId": UUID, "listeners": [END]}),
    (lambda n: voters.AddRaftVoterResponse(NONE), lambda n: {}),
    (lambda n: voters.RemoveRaftVoterRequest(1, UUID), lambda n: {"clusterId": UUID}),
    (lambda n: voters.RemoveRaftVoterResponse(NONE), lambda n: {}),
    (lambda n: voters.ApiVersionsRequest(),
     lambda n: {"clientSoftwareName": "apache-kafka-java", "clientSoftwareVersion": "4.3.1"}),
    (lambda n: voters.ApiVersionsResponse(0, 1),
     lambda n: {"apiKeys": each(41), "supportedFeatures": [{"name": name} for name in (
         "metadata.version", "kraft.version", "transaction.version", "group.version",
         "eligible.leader.replicas.version", "share.version", "streams.version")]}),
]  # fmt: skip

TRANSACTION = [
    (lambda n: transaction.AddPartitionsToTxnRequest("shop-1", 1, 0, places(n)),
     lambda n: {"transactions": [{"transactionalId": "shop-1", "topics": numbers(n)}]}),
    (lambda n: transaction.AddPartitionsToTxnResponse(NONE),
     lambda n: {"resultsByTransaction": [
         {"transactionalId": "shop-1", "topicResults": topics(n, "resultsByPartition")}]}),
    (lambda n: transaction.AddOffsetsToTxnRequest("shop-1", 1, 0, "billing"),
     lambda n: {"transactionalId": "shop-1", "groupId": "billing"}),
    (lambda n: transaction.AddOffsetsToTxnResponse(NONE), lambda n: {}),
    (lambda n: transaction.TxnOffsetCommitRequest("shop-1", "billing", 1, 0, MEMBER, 1, tuple(
        (p, 1, 0) for p in places(n))),
     lambda n: {"transactionalId": "shop-1", "groupId": "billing", "memberId": MEMBER,
                "topics": topics(n)}),
    (lambda n: transaction.TxnOffsetCommitResponse(NONE), lambda n: {"topics": topics(n)}),
    (lambda n: transaction.EndTxnRequest("shop-1", 1, 0, True),
     lambda n: {"transactionalId": "shop-1"}),
    (lambda n: transaction.EndTxnResponse(NONE), lambda n: {}),
    (lambda n: transaction.WriteTxnMarkersRequest(1, 0, 0, True, places(n)),
     lambda n: {"markers": [{"topics": numbers(n, "partitionIndexes")}]}),
    (lambda n: transaction.WriteTxnMarkersResponse(tuple((p, NONE) for p in places(n))),
     lambda n: {"markers": [{"topics": topics(n)}]}),
]  # fmt: skip

SHARE = [
    (lambda n: share.ShareGroupHeartbeatRequest("billing", UUID, 1, (TOPIC,) * n, "a"),
     lambda n: {"groupId": "billing", "memberId": UUID, "rackId": "a",
                "subscribedTopicNames": [TOPIC] * n}),
    (lambda n: share.ShareGroupHeartbeatResponse(NONE, UUID, 1, 0, places(n)),
     lambda n: {"memberId": UUID,
                "assignment": {"topicPartitions": id_numbers(n)}}),
    (lambda n: share.ShareFetchRequest("billing", UUID, 1, 0, 1, 1, (), (), acknowledged(n)),
     lambda n: {"groupId": "billing", "memberId": UUID,
                "topics": ids(n, **ACKNOWLEDGED)}),
    (lambda n: share.ShareFetchResponse(NONE, tuple(share.ShareFetchResult(
        p, batches=(BATCH,), acquired=(share_records.Acquired(0, 0, 1),)) for p in places(n))),
     lambda n: {"responses": ids(n, records=BYTES, acquiredRecords=each(1))}),
    (lambda n: share.ShareAcknowledgeRequest("billing", UUID, 1, acknowledged(n)),
     lambda n: {"groupId": "billing", "memberId": UUID,
                "topics": ids(n, **ACKNOWLEDGED)}),
    (lambda n: share.ShareAcknowledgeResponse(NONE, tuple((p, NONE) for p in places(n))),
     lambda n: {"responses": ids(n)}),
    (lambda n: share.InitializeShareGroupStateRequest(
        share_records.ShareKey("billing", UUID, 0), 1),
     lambda n: {"groupId": "billing", "topics": [{"partitions": [{}]}]}),
    (lambda n: share.InitializeShareGroupStateResponse(NONE),
     lambda n: {"results": [{"partitions": [{}]}]}),
    (lambda n: share.ReadShareGroupStateRequest(share_records.ShareKey("billing", UUID, 0), 0),
     lambda n: {"groupId": "billing", "topics": [{"partitions": [{}]}]}),
    (lambda n: share.ReadShareGroupStateResponse(NONE, 0, 0, states(n)),
     lambda n: {"results": [{"partitions": [{"stateBatches": each(n)}]}]}),
    (lambda n: share.WriteShareGroupStateRequest(
        share_records.ShareKey("billing", UUID, 0), 0, 0, 0, states(n)),
     lambda n: {"groupId": "billing", "topics": [{"partitions": [{"stateBatches": each(n)}]}]}),
    (lambda n: share.WriteShareGroupStateResponse(NONE),
     lambda n: {"results": [{"partitions": [{}]}]}),
]  # fmt: skip

TOKEN = b"n,,n=shop,r=1b0c3f"
MECHANISMS = ("PLAIN", "SCRAM-SHA-512")

SASL = [
    (lambda n: security.SaslHandshakeRequest("SCRAM-SHA-512"),
     lambda n: {"mechanism": MECHANISMS[1]}),
    (lambda n: security.SaslHandshakeResponse(NONE, MECHANISMS * n),
     lambda n: {"mechanisms": list(MECHANISMS * n)}),
    (lambda n: security.SaslAuthenticateRequest(TOKEN * n), lambda n: {"authBytes": TOKEN * n}),
    (lambda n: security.SaslAuthenticateResponse(NONE, TOKEN * n),
     lambda n: {"authBytes": TOKEN * n}),
]  # fmt: skip

OWNER = security.TokenRequester("User:shop")
PERSON = {"principalType": "User", "principalName": "shop"}
HMAC = b"\x07" * 64

TOKENS = [
    (lambda n: security.CreateDelegationTokenRequest(UUID, OWNER, ("User:ops",) * n, 1_000),
     lambda n: {"ownerPrincipalType": None, "ownerPrincipalName": None, "maxLifetimeMs": 1_000,
                "renewers": each(n, principalType="User", principalName="ops")}),
    (lambda n: security.CreateDelegationTokenResponse(
        NONE, "User:shop", 1, 2, 3, UUID, HMAC[:n]),
     lambda n: PERSON | {"tokenRequesterPrincipalType": "User", "hmac": HMAC[:n],
                         "tokenRequesterPrincipalName": "shop", "tokenId": UUID}),
    (lambda n: security.RenewDelegationTokenRequest(HMAC * n, OWNER),
     lambda n: {"hmac": HMAC * n}),
    (lambda _: security.RenewDelegationTokenResponse(NONE, 1), lambda _: {}),
    (lambda n: security.ExpireDelegationTokenRequest(HMAC * n, OWNER),
     lambda n: {"hmac": HMAC * n}),
    (lambda _: security.ExpireDelegationTokenResponse(NONE, 1), lambda _: {}),
]  # fmt: skip

FILLED = [*ADMIN, *CLUSTER, *DATA, *GROUP, *QUORUM_MESSAGES, *TRANSACTION, *SHARE, *SASL, *TOKENS]
"""Pairs of functions of the number of elements: an instance, and what Kafka's message has."""

OTHER_NAMES = {
    "QuorumEpochResponse": "BeginQuorumEpochResponse",
    "QuorumFetchRequest": "FetchRequest",
    "QuorumFetchResponse": "FetchResponse",
}
"""Messages whose class has another name than Kafka's."""
