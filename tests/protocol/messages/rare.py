"""Messages with what is often absent, or with nothing, and the same in Kafka's words."""

from sim.error_codes import ErrorCode
from sim.ids import SnapshotId, TopicPartition
from sim.protocol.assignors.subscription import Subscription
from sim.protocol.messages import (
    admin,
    cluster,
    consumer_group,
    data,
    group,
    group_admin,
    metadata,
    quorum,
    security,
    share,
    share_records,
    transaction,
)
from sim.protocol.ports import EpochEnd
from sim.wire.assignor_data import sticky_user_data
from sim.wire.schemas import encode
from tests.protocol.messages.filled import (
    ACL,
    BATCH,
    BYTES,
    CONTROLLER,
    HOST,
    LEADER,
    MEMBER,
    QUORUM,
    TOPIC,
    UUID,
    each,
    id_numbers,
    places,
)

NONE = ErrorCode.NONE
MOVED = ErrorCode.NOT_LEADER_OR_FOLLOWER
LONG = "x" * 200
UMLAUTS = "Größe"
A, B, C = TopicPartition("a", 0), TopicPartition("b", 0), TopicPartition("a", 1)
HINT = data.LeaderHint(1, 7)
HINTED = {"currentLeader": {"leaderId": 1, "leaderEpoch": 7}}
ENDS = [{"host": HOST}]
STICKY = Subscription((TOPIC,), (), -1, "r", "one", (A, B, C), 4)
STICKY_BLOB = encode("ConsumerProtocolSubscription", 3, {
    "topics": [TOPIC], "userData": sticky_user_data((A, B, C), 4), "ownedPartitions": [],
    "generationId": -1, "rackId": "r",
})  # fmt: skip
NEW = group.JoinGroupRequest("billing", "", "consumer-1", STICKY, ("sticky",), 0, 0)
SYNC = group.SyncGroupRequest("billing", MEMBER, 1, {}, "one", "sticky")
LEAVE = group.LeaveGroupRequest("billing", "", "one")
QUOTA = admin.QuotaAlteration((("user", None),), (("producer_byte_rate", None),))
QUOTAS = admin.AlterClientQuotasRequest((QUOTA,))
PARTS = [{"partitions": [{}]}]

RARE = [
    (cluster.BrokerHeartbeatRequest(1, 1, 1, False, False, (), (UUID, UUID)),
     {"cordonedLogDirs": [UUID, UUID]}),
    (admin.IncrementalAlterConfigsRequest("", (("log.retention.ms", None),), 12),
     {"resources": [{"resourceName": "12", "configs": [{"name": "log.retention.ms"}]}]}),
    (admin.UpdateFeaturesResponse(NONE, LONG), {"errorMessage": LONG}),
    (QUOTAS, {"entries": [{"entity": [{"entityType": "user"}],
                           "ops": [{"key": "producer_byte_rate"}]}]}),
    (admin.AlterClientQuotasResponse((("user <default>", NONE),)).answering(QUOTAS),
     {"entries": [{"entity": [{"entityType": "user"}]}]}),
    (admin.AlterPartitionReassignmentsRequest(((A, None), (B, (1,)), (C, (1, 2)))),
     {"topics": [{"name": "a", "partitions": [{}, {"replicas": [1, 2]}]},
                 {"name": "b", "partitions": [{"replicas": [1]}]}]}),
    (admin.ElectLeadersRequest("unclean", ()), {"topicPartitions": None}),
    (security.DeleteAclsResponse(((str(ACL), NONE),) * 2), {"filterResults": each(2)}),
    (security.CreateAclsRequest((ACL._replace(resource_name=UMLAUTS, principal=LONG),)),
     {"creations": [{"resourceName": UMLAUTS, "principal": LONG, "host": "*"}]}),
    (security.SaslAuthenticateResponse(NONE, b"", UMLAUTS), {"errorMessage": UMLAUTS}),
    (cluster.BrokerRegistrationRequest(12, UUID, "", -1, (), ()),
     {"clusterId": UUID, "listeners": [{"name": "PLAINTEXT", "host": "broker-12"}]}),
    (cluster.AlterPartitionResponse(ErrorCode.STALE_BROKER_EPOCH), {}),
    (cluster.AssignReplicasToDirsRequest(1, 1, (
        cluster.DirectoryAssignment(A, UUID, "x"), cluster.DirectoryAssignment(B, UUID, "y"),
        cluster.DirectoryAssignment(C, UUID, "x"), cluster.DirectoryAssignment(B, UUID, "x"))),
     {"directories": [{"topics": [{"partitions": each(2)}, *PARTS]}, {"topics": PARTS}]}),
    (cluster.AssignReplicasToDirsResponse(ErrorCode.NOT_CONTROLLER).answering(
        cluster.AssignReplicasToDirsRequest(1, 1, (cluster.DirectoryAssignment(A, UUID, "x"),))),
     {}),
    (data.ProduceRequest(-1, 0, ((A, BATCH), (B, BATCH), (C, BATCH)), "shop-1"),
     {"transactionalId": "shop-1", "topicData": [
         {"partitionData": each(2, records=BYTES)}, {"partitionData": each(1, records=BYTES)}]}),
    (data.ProduceResponse((data.ProduceResult(A, MOVED, hint=HINT),
                           data.ProduceResult(B, MOVED, hint=HINT))),
     {"responses": [{"partitionResponses": [HINTED]}] * 2, "nodeEndpoints": ENDS}),
    (data.FetchRequest(2, 5, 0, 1, 1, 7, 3, ()), {"replicaState": {"replicaId": 2}}),
    (data.FetchRequest(-1, -1, 0, 1, 1, 0, 0, tuple(
        data.FetchPartition(p, 0, 0) for p in (A, B, C)), (A, B, C)),
     {"topics": PARTS * 3, "forgottenTopicsData": [*id_numbers(2), *id_numbers(1)]}),
    (data.FetchResponse(NONE, 1, ()), {}),
    (data.FetchResponse(NONE, 1, (
        data.FetchResult(A, MOVED, hint=HINT),
        data.FetchResult(B, NONE, diverging=EpochEnd(3, 7)),
        data.FetchResult(C, NONE, batches=(BATCH,), aborted=(data.AbortedTransaction(1, 2),)))),
     {"nodeEndpoints": ENDS, "responses": [
         {"partitions": [HINTED]},
         {"partitions": [{"divergingEpoch": {"epoch": 3, "endOffset": 7}}]},
         {"partitions": [{"records": BYTES, "abortedTransactions": each(1)}]}]}),
    (metadata.MetadataRequest(None), {"topics": None}),
    (metadata.MetadataResponse(
        (1, 12), {TOPIC: (metadata.PartitionMetadata(0, 1, 0, (1, 2, 3), (1,)),)}, 1, {12: "r2"},
        ("secret",)),
     {"brokers": [{"host": HOST}, {"host": "broker-12", "rack": "r2"}], "clusterId": UUID,
      "topics": [{"name": TOPIC, "partitions": [
          {"replicaNodes": [1, 2, 3], "isrNodes": [1], "offlineReplicas": [2, 3]}]},
          {"name": "secret"}]}),
    (metadata.InitProducerIdRequest("shop-1"), {"transactionalId": "shop-1"}),
    (group.FindCoordinatorResponse(ErrorCode.COORDINATOR_NOT_AVAILABLE).answering(
        group.FindCoordinatorRequest(UMLAUTS)), {"coordinators": [{"key": UMLAUTS}]}),
    (NEW, {"groupId": "billing", "groupInstanceId": "one", "protocolType": "consumer",
           "protocols": [{"name": "sticky", "metadata": STICKY_BLOB}]}),
    (group.JoinGroupResponse(ErrorCode.MEMBER_ID_REQUIRED, MEMBER), {"memberId": MEMBER}),
    (group.JoinGroupResponse(NONE, MEMBER, 1, "sticky", MEMBER, ((MEMBER, STICKY),)),
     {"protocolType": "consumer", "protocolName": "sticky", "leader": MEMBER, "memberId": MEMBER,
      "members": [{"memberId": MEMBER, "groupInstanceId": "one", "metadata": STICKY_BLOB}]}),
    (SYNC, {"groupId": "billing", "memberId": MEMBER, "groupInstanceId": "one",
            "protocolType": "consumer", "protocolName": "sticky"}),
    (group.SyncGroupResponse(ErrorCode.REBALANCE_IN_PROGRESS).answering(SYNC), {}),
    (group.HeartbeatRequest("billing", MEMBER, 1, "one"),
     {"groupId": "billing", "memberId": MEMBER, "groupInstanceId": "one"}),
    (LEAVE, {"groupId": "billing", "members": [{"groupInstanceId": "one"}]}),
    (group.LeaveGroupResponse(ErrorCode.UNKNOWN_MEMBER_ID).answering(LEAVE),
     {"members": [{"groupInstanceId": "one"}]}),
    (group.LeaveGroupResponse(ErrorCode.NOT_COORDINATOR).answering(LEAVE), {}),
    (group.OffsetCommitRequest("billing", "", -1, ((A, 1, 0), (B, 1, 0), (C, 1, 0)), "one"),
     {"groupId": "billing", "groupInstanceId": "one",
      "topics": [{"partitions": each(2)}, *PARTS]}),
    (consumer_group.ConsumerGroupHeartbeatRequest("billing", UUID, 1),
     {"groupId": "billing", "memberId": UUID}),
    (consumer_group.ConsumerGroupHeartbeatRequest(
        "billing", UUID, 0, 1, (), owned=(), instance_id="one"),
     {"groupId": "billing", "memberId": UUID, "instanceId": "one", "subscribedTopicNames": [],
      "topicPartitions": []}),
    (consumer_group.ConsumerGroupHeartbeatResponse(NONE, UUID, 1), {"memberId": UUID}),
    (group_admin.DescribeGroupsResponse(ErrorCode.GROUP_ID_NOT_FOUND, "Dead").answering(
        group_admin.DescribeGroupsRequest("g")),
     {"groups": [{"groupId": "g", "groupState": "Dead"}]}),
    (quorum.VoteResponse(NONE, False, -1, 3),
     {"topics": [{"topicName": QUORUM, "partitions": [{}]}]}),
    (quorum.QuorumFetchRequest(1, 1, 0, 0, 0, 0, UUID),
     {"clusterId": UUID, "replicaState": {"replicaId": 1},
      "topics": [{"partitions": [{"highWatermark": 0, "replicaDirectoryId": UUID}]}]}),
    (quorum.QuorumFetchResponse(NONE, CONTROLLER, 1, 0, (), EpochEnd(1, 2), SnapshotId(1, 1)),
     {"nodeEndpoints": LEADER, "responses": [{"partitions": [{
         "currentLeader": {"leaderId": 1, "leaderEpoch": 1},
         "divergingEpoch": {"epoch": 1, "endOffset": 2},
         "snapshotId": {"endOffset": 1, "epoch": 1}}]}]}),
    (quorum.FetchSnapshotRequest(1, 1, SnapshotId(1, 1), 0, 1, UUID),
     {"clusterId": UUID, "topics": [
         {"name": QUORUM, "partitions": [{"replicaDirectoryId": UUID}]}]}),
    (transaction.TxnOffsetCommitRequest("shop-1", "billing", 1, 0, "", -1, (), "one"),
     {"transactionalId": "shop-1", "groupId": "billing", "groupInstanceId": "one"}),
    (share.ShareGroupHeartbeatRequest("billing", UUID, 1),
     {"groupId": "billing", "memberId": UUID}),
    (share.ShareGroupHeartbeatResponse(NONE, UUID, 1), {"memberId": UUID}),
    (share.ShareFetchRequest("billing", UUID, 1, 0, 1, 1, (A, B), (C,), (
        share.PartitionAcknowledgements(A, (
            share_records.Acknowledgement(0, 9, (1,)),
            share_records.Acknowledgement(10, 11, (1, 2)))),)),
     {"groupId": "billing", "memberId": UUID, "forgottenTopicsData": id_numbers(1),
      "topics": [{"partitions": [{"acknowledgementBatches": [
          {"acknowledgeTypes": [1]}, {"acknowledgeTypes": [1, 2]}]}]}, *PARTS]}),
    (share.ShareFetchResponse(NONE, (share.ShareFetchResult(places(1)[0], MOVED, hint=HINT),)),
     {"responses": [{"partitions": [{"records": b""}]}], "nodeEndpoints": ENDS}),
]  # fmt: skip
"""Pairs of an instance, paired with its request, and of what Kafka's message has."""
